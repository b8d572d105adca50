//! A packet for tests of queues, and sequences of offers and dequeues.

use ackclock_aqm::{Dequeue, Drops, Entry, QueueDisc, Queued};
use ackclock_units::{Ecn, Span, Time};
use proptest::prelude::*;

/// A minimal packet: what a queue sees, and a number that identifies it; as large as a real handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubPacket {
    /// The value of [`Queued::flow_hash`].
    pub flow: u64,
    /// A number of the test's choice.
    pub id: u32,
    /// The value of [`Queued::wire_len`].
    pub wire_len: u32,
    /// The value of [`Queued::ecn`].
    pub ecn: Ecn,
}

const _: () = assert!(size_of::<StubPacket>() == 24);

impl Queued for StubPacket {
    fn wire_len(&self) -> u32 {
        self.wire_len
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// # Panics
    /// If the packet cannot carry a mark.
    fn set_ce(&mut self) {
        assert!(self.ecn.is_capable(), "packet {} is Not-ECT and must not be marked", self.id);
        self.ecn = Ecn::Ce;
    }

    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// Asking as a link does.
pub trait Ask<P> {
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

/// The next event at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAction {
    /// A packet arrives; it is numbered in order of arrival.
    Offer {
        /// Its flow.
        flow: u64,
        /// Its size in bytes.
        wire_len: u32,
        /// Its codepoint.
        ecn: Ecn,
    },
    /// The transmitter asks for a packet.
    Send,
}

/// An action and the time since the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStep {
    /// Time since the last step.
    pub gap: Span,
    /// The event.
    pub action: QueueAction,
}

/// Any codepoint.
pub fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect1), Just(Ecn::Ect0), Just(Ecn::Ce)]
}

/// Up to `most` steps that make queues stand and run empty: more offers than sends, of few flows,
/// at gaps from none to an hour.
pub fn queue_steps(most: usize) -> impl Strategy<Value = Vec<QueueStep>> {
    let gap = prop_oneof![
        8 => Just(0),
        24 => 0u64..2_000_000,
        6 => 0u64..60_000_000,
        1 => 0u64..3_600_000_000_000,
    ];
    let wire_len = prop_oneof![4 => Just(1514u32), 2 => 40u32..1515, 1 => 1u32..70_000];
    let action = prop_oneof![
        5 => (0u64..6, wire_len, ecn()).prop_map(|(flow, wire_len, ecn)| QueueAction::Offer { flow, wire_len, ecn }),
        4 => Just(QueueAction::Send),
    ];
    let step = (gap, action).prop_map(|(gap, action)| QueueStep { gap: Span::from_nanos(gap), action });
    prop::collection::vec(step, 0..most)
}
