//! The reporting and reading of marks: by ECE as in RFC 3168 and RFC 8257, or by Accurate ECN, for
//! which `accurate` counts.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use crate::Config;
use crate::ecn::EcnState;
use crate::loss::scoreboard::Progress;
use crate::receiver::Receiver;

impl EcnState {
    /// Returns `true` if an ACK reports marks, as far as its flags show.
    #[inline]
    pub(crate) fn hears_echo(&self, segment: &Segment) -> bool {
        if self.agreed.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: also of packets that were not ECT.
            let counted = !self.heard.deaf && segment.flags.ace() != self.heard.reported;
            counted || segment.acc_ecn.is_some() && self.hears_bytes(segment)
        } else {
            self.agreed.sends && segment.flags.contains(Flags::ECE)
        }
    }

    /// An ACK reports marks by classic feedback or DCTCP's if it echoes, once it is known what it
    /// delivers. Returns the number of marked segments.
    #[inline]
    pub(crate) fn take_echo(&mut self, echo: bool, progress: &Progress) -> u64 {
        self.heard.marks = echo;
        self.heard.bytes = if echo { progress.delivered } else { 0 };
        if echo { progress.delivered_segments } else { 0 }
    }

    /// ECE, or the ACE counter, of a segment that acknowledges; nothing of a counter if the socket
    /// `is_forgotten`.
    #[inline]
    pub(crate) fn echo_flags(&mut self, is_forgotten: bool) -> Flags {
        if self.agreed.mode == EcnFeedback::Accurate {
            (self.echo.pending, self.echo.hurries) = (0, false);
            if is_forgotten { Flags::NONE } else { Flags::from_ace((self.echo.received & 7) as u8) }
        } else if self.echo.on {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }

    /// An acceptable segment of an open connection arrived with codepoint `ecn`; Accurate ECN
    /// counts it. Returns `true` if an ACK is to be sent at once.
    #[inline]
    pub(crate) fn count_mark(&mut self, config: &Config, segment: &Segment, ecn: Ecn, owes_ack: bool) -> bool {
        self.agreed.mode == EcnFeedback::Accurate && self.count_accurately(config, segment.payload.len, ecn, owes_ack)
    }

    /// Data arrived with codepoint `ecn`, and is about to be taken in; classic feedback and
    /// DCTCP's.
    #[inline]
    pub(crate) fn note_mark(&mut self, segment: &Segment, ecn: Ecn, ecn_seen: bool, receiver: &mut Receiver) {
        let marked = ecn == Ecn::Ce;
        match self.agreed.mode {
            EcnFeedback::Dctcp => {
                if marked != self.echo.on {
                    self.echo.on = marked;
                    receiver.acknowledge_now();
                }
            }
            EcnFeedback::Accurate => {}
            EcnFeedback::None | EcnFeedback::Classic => {
                // RFC 3168 section 6.1.3: the echo goes on until the sender confirms.
                if segment.flags.contains(Flags::CWR) {
                    self.echo.on = false;
                    receiver.window_was_reduced();
                }
                if marked {
                    if !self.echo.on {
                        receiver.congestion_began();
                    }
                    self.echo.on = true;
                } else if ecn == Ecn::NotEct {
                    receiver.not_capable_arrived(ecn_seen);
                }
            }
        }
    }
}
