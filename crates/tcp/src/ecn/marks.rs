//! How marks are reported and read: by ECE as RFC 3168 and RFC 8257 have it, or by Accurate ECN,
//! for which `accurate` counts.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use crate::Endpoint;
use crate::loss::scoreboard::Progress;
use crate::send::Sender;

impl Sender {
    /// Whether an ACK reports marks, as far as its flags show.
    #[inline]
    pub(crate) fn hears_echo(&self, segment: &Segment) -> bool {
        if self.ecn.agreed.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: also of packets that were not ECT.
            let counted = !self.ecn.heard.deaf && segment.flags.ace() != self.ecn.heard.reported;
            counted || segment.acc_ecn.is_some() && self.hears_bytes(segment)
        } else {
            self.ecn.agreed.sends && segment.flags.contains(Flags::ECE)
        }
    }

    /// What an ACK reports of marks, once it is known what it delivers: how many segments were
    /// marked. `echo` is what [`Sender::hears_echo`] says, `outstanding` if anything was in
    /// flight.
    #[inline]
    pub(crate) fn take_marks(&mut self, segment: &Segment, echo: bool, progress: &Progress, outstanding: bool) -> u64 {
        if self.ecn.agreed.mode == EcnFeedback::Accurate {
            return self.take_counted(segment, progress, outstanding);
        }
        self.ecn.heard.marks = echo;
        self.ecn.heard.bytes = if echo { progress.delivered } else { 0 };
        if echo { progress.delivered_segments } else { 0 }
    }
}

impl Endpoint {
    /// ECE, or the ACE counter, of a segment that acknowledges.
    #[inline]
    pub(crate) fn echo_flags(&mut self) -> Flags {
        if self.sender.ecn.agreed.mode == EcnFeedback::Accurate {
            (self.sender.ecn.echo.pending, self.sender.ecn.echo.hurries) = (0, false);
            if self.answers_for_orphan() {
                Flags::NONE
            } else {
                Flags::from_ace((self.sender.ecn.echo.received & 7) as u8)
            }
        } else if self.sender.ecn.echo.on {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }

    /// An acceptable segment of an open connection arrived with codepoint `ecn`; Accurate ECN
    /// counts it.
    #[inline]
    pub(crate) fn count_mark(&mut self, segment: &Segment, ecn: Ecn) {
        if self.sender.ecn.agreed.mode == EcnFeedback::Accurate {
            self.count_accurately(segment.payload.len, ecn);
        }
    }

    /// Data arrived with codepoint `ecn`, and is about to be taken in; classic feedback and
    /// DCTCP's.
    #[inline]
    pub(crate) fn note_mark(&mut self, segment: &Segment, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        match self.sender.ecn.agreed.mode {
            EcnFeedback::Dctcp => {
                if marked != self.sender.ecn.echo.on {
                    self.sender.ecn.echo.on = marked;
                    self.receiver.acknowledge_now();
                }
            }
            EcnFeedback::Accurate => {}
            EcnFeedback::None | EcnFeedback::Classic => {
                // RFC 3168 section 6.1.3: the echo goes on until the sender confirms.
                if segment.flags.contains(Flags::CWR) {
                    self.sender.ecn.echo.on = false;
                    self.receiver.window_was_reduced();
                }
                if marked {
                    if !self.sender.ecn.echo.on {
                        self.receiver.congestion_began();
                    }
                    self.sender.ecn.echo.on = true;
                } else if ecn == Ecn::NotEct {
                    self.receiver.not_capable_arrived(self.sender.counters.ecn_seen);
                }
            }
        }
    }
}
