//! The ECN state of one connection: what is agreed on, what marks are reported to the peer, and what
//! the peer reports, by ECE as in RFC 3168 and RFC 8257, or by Accurate ECN, for which `accurate`
//! counts.

use ackclock_cc::{EcnFeedback, EcnUse};
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use super::bytes::ByteCounters;
use crate::Config;
use crate::loss::scoreboard::Progress;
use crate::receiver::Receiver;

/// The initial value of r.cep and s.cep (RFC 9768 section 3.2.1).
pub(super) const FIRST_COUNT: u32 = 5;

/// The average number of segments that an ACK delivers has a gain of 2^-6 and is in units of 1/64
/// (`PKTS_ACKED_WEIGHT`, `PKTS_ACKED_PREC`); above 4 (`ACK_COMP_THRESH`) an ACK of many is no sign
/// that others were lost.
const DELIVERED_SHIFT: u32 = 6;
const MOST_DELIVERED: u64 = 4 << DELIVERED_SHIFT;

/// ECN on one connection.
#[derive(Debug)]
pub(crate) struct EcnState {
    pub(super) agreed: Agreed,
    pub(super) echo: Echo,
    pub(super) heard: Heard,
    /// The packets that the controller wants to be ECN-capable.
    pub(super) wants: EcnUse,
    /// Bytes by codepoint in both directions, if the option is read.
    pub(super) bytes: Option<Box<ByteCounters>>,
}

/// The outcome of the handshake.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) mode: EcnFeedback,
    /// Our packets may be ECN-capable.
    pub(super) sends: bool,
    /// The peer may send ECN-capable packets; without `sends` if a SYN of ours did not ask for ECN
    /// (RFC 3168 section 6.1.1).
    pub(super) echoes: bool,
    /// The codepoints of new data and of everything else.
    pub(super) data: Ecn,
    pub(super) control: Ecn,
    /// The codepoint of our SYN or its answer, and that with which the peer's arrived.
    pub(super) syn_sent: Ecn,
    pub(super) syn_arrived: Ecn,
}

/// The receiver's side: what has arrived, and what is reported of it.
#[derive(Debug)]
pub(super) struct Echo {
    /// The ECN echo is on (RFC 3168 section 6.1.3), or DCTCP.CE (RFC 8257 section 3.2).
    pub(super) on: bool,
    /// r.cep: packets that came with a mark.
    pub(super) received: u32,
    /// Marks since the last ACK.
    pub(super) pending: u8,
    /// The codepoint of the last packet that arrived.
    pub(super) last: Ecn,
    /// The next ACK that is owed is sent at once (Linux `ICSK_ACK_NOW`).
    pub(super) hurries: bool,
    /// Our first ACK reports how the answer to our SYN arrived.
    pub(super) reflects: bool,
    /// The challenge that is due also reports it, after that answer has come again.
    pub(super) challenge_reflects: bool,
}

/// The sender's side: what the peer has reported, and what it is told.
#[derive(Debug)]
pub(super) struct Heard {
    /// The ACK in hand reports marks.
    pub(super) marks: bool,
    /// The bytes that it reports as marked.
    pub(super) bytes: u64,
    /// s.cep modulo 8: packets of ours that the peer has reported as marked.
    pub(super) reported: u8,
    /// Something on the path zeroes the ACE field: it is ignored.
    pub(super) deaf: bool,
    /// Segments that an ACK delivers on average, in 1/64 (`pkts_acked_ewma`); 0 before the first.
    pub(super) each: u64,
    /// The next new data segment carries CWR.
    pub(super) cwr: bool,
}

impl Heard {
    /// An ACK delivers `packets`: the average.
    pub(super) fn average(&mut self, packets: u64) {
        self.each = match (packets, self.each) {
            (0, each) => each,
            (_, 0) => packets << DELIVERED_SHIFT,
            (_, each) => ((each << DELIVERED_SHIFT) - each + (packets << DELIVERED_SHIFT)) >> DELIVERED_SHIFT,
        };
    }

    /// Returns `true` if ACKs mostly deliver many segments.
    pub(super) fn delivers_many(&self) -> bool {
        self.each > MOST_DELIVERED
    }
}

impl EcnState {
    pub(crate) fn new(wants: EcnUse) -> EcnState {
        EcnState {
            agreed: Agreed {
                mode: EcnFeedback::None,
                sends: false,
                echoes: false,
                data: Ecn::NotEct,
                control: Ecn::NotEct,
                syn_sent: Ecn::NotEct,
                syn_arrived: Ecn::NotEct,
            },
            echo: Echo {
                on: false,
                received: FIRST_COUNT,
                pending: 0,
                last: Ecn::NotEct,
                hurries: false,
                reflects: false,
                challenge_reflects: false,
            },
            heard: Heard { marks: false, bytes: 0, reported: FIRST_COUNT as u8, deaf: false, each: 0, cwr: false },
            wants,
            bytes: None,
        }
    }

    // The agreed mode.

    /// The feedback that was agreed on, whether our packets are ECN-capable or not.
    pub(crate) fn mode(&self) -> EcnFeedback {
        self.agreed.mode
    }

    /// Returns `true` if packets of ours may be ECN-capable.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.agreed.sends
    }

    /// The feedback for the controller to know.
    pub(crate) fn usable_feedback(&self) -> EcnFeedback {
        if self.agreed.sends { self.agreed.mode } else { EcnFeedback::None }
    }

    /// Returns `true` if the peer's packets may be ECN-capable.
    #[inline]
    pub(crate) fn may_arrive_marked(&self) -> bool {
        self.agreed.echoes
    }

    /// The codepoint of everything but new data.
    #[inline]
    pub(crate) fn control(&self) -> Ecn {
        self.agreed.control
    }

    /// The codepoint of a segment with new data, which tells the peer of a reduction of the window
    /// (RFC 3168 section 6.1.2).
    #[inline]
    pub(crate) fn mark_data(&mut self, out: &mut Segment) -> Ecn {
        if self.agreed.sends && std::mem::take(&mut self.heard.cwr) && self.agreed.mode != EcnFeedback::Accurate {
            out.flags |= Flags::CWR;
        }
        self.agreed.data
    }

    // Reports to the peer.

    /// Returns `true` if data with this codepoint changes DCTCP.CE (RFC 8257 section 3.2): what is
    /// still unacknowledged gets an ACK with the old value, the data in hand one with the new
    /// value.
    #[inline]
    pub(crate) fn changes_echo(&self, arrived: Ecn) -> bool {
        self.agreed.mode == EcnFeedback::Dctcp && (arrived == Ecn::Ce) != self.echo.on
    }

    /// Returns `true` if an unmarked segment means nothing: not that marks ceased, where each
    /// change is reported (RFC 8257 section 3.2), nor, being data that is not ECN-capable, that it
    /// was sent again.
    #[inline]
    pub(crate) fn is_ordinary(&self, payload: u32, ecn: Ecn) -> bool {
        let echoes_by_packet = self.echo.on && self.agreed.mode == EcnFeedback::Dctcp;
        !echoes_by_packet && (payload == 0 || ecn != Ecn::NotEct)
    }

    /// Returns `true` if the ECN echo is on.
    pub(crate) fn is_echoing(&self) -> bool {
        self.echo.on
    }

    /// Packets that came with a mark.
    pub(crate) fn marks_received(&self) -> u32 {
        self.echo.received.wrapping_sub(FIRST_COUNT)
    }

    // The peer's reports.

    /// The ACK in hand reports no marks.
    #[inline]
    pub(crate) fn hears_nothing(&mut self) {
        (self.heard.marks, self.heard.bytes) = (false, 0);
    }

    /// Returns `true` if the ACK in hand reports marks.
    #[inline]
    pub(crate) fn hears_marks(&self) -> bool {
        self.heard.marks
    }

    /// The bytes that the ACK in hand reports as marked.
    #[inline]
    pub(crate) fn marked_bytes(&self) -> u64 {
        self.heard.bytes
    }

    /// The window was reduced: the peer is told, if it has to be.
    pub(crate) fn window_reduced(&mut self) {
        self.heard.cwr = self.agreed.sends;
    }

    /// The reduction was taken back before the peer was told.
    pub(crate) fn reduction_undone(&mut self) {
        self.heard.cwr = false;
    }

    /// Returns `true` if the next new data segment carries CWR.
    pub(crate) fn owes_cwr(&self) -> bool {
        self.heard.cwr
    }

    // The AccECN option.

    /// Returns `true` if the AccECN option is neither sent nor read.
    #[inline]
    pub(crate) fn has_no_option(&self) -> bool {
        self.bytes.is_none()
    }

    /// Payload that arrived, and payload reported: of ECT(1), ECT(0) and CE.
    pub(crate) fn byte_totals(&self) -> ([u32; 3], [u32; 3]) {
        self.bytes.as_deref().map_or_else(Default::default, ByteCounters::totals)
    }

    /// `tcpi_accecn_opt_seen`, and whether the peer's option is ignored and ours stopped.
    pub(crate) fn option_seen(&self) -> (u8, bool, bool) {
        self.bytes.as_deref().map_or((0, false, false), ByteCounters::seen)
    }

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
