//! One segment in flight, and when it was sent.

use ackclock_units::Time;

/// When a segment was sent, in an order that holds at equal times too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The time.
    pub at: Time,
    /// The number of ACKs that had arrived at that very time, and after something else was sent at
    /// it.
    pub order: u32,
}

impl Stamp {
    /// The first of `at`.
    pub fn first(at: Time) -> Stamp {
        Stamp { at, order: 0 }
    }
}

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// First unit of sequence space.
    pub(crate) seq: u64,
    /// When it was last sent.
    pub(crate) sent_at: Time,
    /// Units of sequence space: payload, and one for a FIN.
    pub(crate) len: u32,
    /// While SACKed: how many SACKed segments are known to begin with this one, 0 for 1. After a
    /// retransmission: how far SND.NXT was from `seq` then.
    pub(super) aux: u32,
    /// Order of [`Stamp`] of when it was last sent.
    pub(super) order: u32,
    /// [`Sent::FIN`] and others.
    pub(super) marks: u8,
    /// The receiver reported it.
    pub(in crate::loss) sacked: bool,
    /// Declared lost.
    pub(in crate::loss) lost: bool,
    /// A retransmission of it is in flight.
    pub(in crate::loss) resent: bool,
}

const _: () = assert!(size_of::<Sent>() == 32, "two segments should fit a cache line");

impl Sent {
    /// None: it counts for nothing.
    pub(super) const NONE: Sent = Sent {
        seq: 0,
        sent_at: Time::ZERO,
        len: 0,
        aux: 0,
        order: 0,
        marks: 0,
        sacked: false,
        lost: false,
        resent: false,
    };
    pub(super) const FIN: u8 = 1;
    pub(super) const PUSH: u8 = 2;
    pub(super) const BY_TIMEOUT: u8 = 4;
    pub(super) const EVER_RESENT: u8 = 8;
    pub(super) const MERGED: u8 = 16;
    pub(super) const JOINED: u8 = 32;
    pub(super) const UNLISTED: u8 = 64;

    /// The last unit is a FIN.
    pub(crate) fn fin(&self) -> bool {
        self.marks & Sent::FIN > 0
    }

    /// The receiver reported it.
    pub(crate) fn is_sacked(&self) -> bool {
        self.sacked
    }

    /// Returns `true` if the segment was sent with PSH, where a rule says so.
    pub(crate) fn push(&self) -> bool {
        self.marks & Sent::PUSH > 0
    }

    /// Declared lost by the retransmission timer.
    pub(crate) fn by_timeout(&self) -> bool {
        self.marks & Sent::BY_TIMEOUT > 0
    }

    /// Returns `true` if the segment was ever retransmitted: no RTT sample (Karn).
    pub(crate) fn ever_resent(&self) -> bool {
        self.marks & Sent::EVER_RESENT > 0
    }

    /// Returns `true` if the segment was sent once, and is not reported or lost: nothing is known
    /// of it.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.marks & (Sent::EVER_RESENT | Sent::MERGED | Sent::JOINED) == 0
            && !self.sacked
            && !self.lost
            && !self.resent
    }

    /// Linux has added it to the socket buffer of the segment before it.
    pub(super) fn merged(&self) -> bool {
        self.marks & Sent::MERGED > 0
    }

    /// Returns `true` if the segment was handed down with the one before it, in one socket buffer.
    pub(super) fn joined(&self) -> bool {
        self.marks & Sent::JOINED > 0
    }

    /// RACK has declared it lost since it was last sent, and does not judge it any more.
    pub(super) fn unlisted(&self) -> bool {
        self.marks & Sent::UNLISTED > 0
    }

    pub(super) fn set(&mut self, mark: u8, on: bool) {
        self.marks = self.marks & !mark | if on { mark } else { 0 };
    }

    /// When it was last sent, in order among all others.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { at: self.sent_at, order: self.order }
    }

    pub(super) fn sent_again(&mut self, stamp: Stamp) {
        (self.sent_at, self.order) = (stamp.at, stamp.order);
        self.marks = self.marks & !Sent::UNLISTED | Sent::EVER_RESENT;
    }

    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Bytes that it carries.
    pub(crate) fn payload(&self) -> u32 {
        self.len - u32::from(self.fin())
    }
}

/// A retransmission of the segments of `seq..end`; what became of them since is not known here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) seq: u64,
    pub(super) end: u64,
    pub(super) stamp: Stamp,
    /// SND.NXT then.
    pub(super) nxt: u64,
}
