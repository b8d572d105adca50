//! A packet for the tests of this crate. (Those outside it use the one of `testkit`, which depends
//! on this crate.)

use ackclock_units::{Ecn, Time};

use crate::{Dequeue, Drops, Entry, QueueDisc, Queued};

/// A minimal packet: what a queue sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    pub(crate) id: u32,
    pub(crate) bytes: u32,
    pub(crate) flow: u64,
    pub(crate) ecn: Ecn,
}

/// A packet of flow 0 that cannot carry a mark.
pub(crate) fn stub(id: u32, bytes: u32) -> Stub {
    Stub { id, bytes, flow: 0, ecn: Ecn::NotEct }
}

impl Queued for Stub {
    fn wire_len(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ce(&mut self) {
        assert!(self.ecn.is_capable(), "packet {} cannot carry a mark", self.id);
        self.ecn = Ecn::Ce;
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// Asking as a link does.
pub(crate) trait Ask<P> {
    /// The packet to transmit. Where nothing waits, the queue is told that the link is idle.
    fn ask(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Entry<P>>;
}

impl<P: Queued, Q: QueueDisc<P> + ?Sized> Ask<P> for Q {
    fn ask(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Entry<P>> {
        let dequeued = self.dequeue(now, drops);
        if matches!(dequeued, Dequeue::Empty) {
            self.idle(now);
        }
        dequeued.packet()
    }
}
