//! The knobs of a host: everything about an endpoint that differs between stacks.

use ackclock_cc::EcnFeedback;
use ackclock_units::Span;

use crate::stack::tuning::payload_of_bare_buffers;
use crate::{
    BufferTuning, CwndValidation, DetectorRules, OffloadRule, Pacing, PathRules, SpaceRule, StateRules, TransferRules,
    WindowRule,
};

/// What a host does. [`Config::default`] is what the RFCs recommend; [`crate::profile`] has the
/// settings of real stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The MSS announced and the most sent before options are subtracted, in bytes: 1460 for an MTU
    /// of 1500. Default 1460.
    pub mss: u16,
    /// The MSS of a peer whose SYN announces none, in bytes (RFC 9293 section 3.7.1, MUST-15): 536
    /// over IPv4, 1220 over IPv6. Default 536.
    pub default_peer_mss: u16,
    /// Initial congestion window. Default: RFC 6928.
    pub initial_window: InitialWindow,
    /// Selective acknowledgments (RFC 2018). Default true.
    pub sack: bool,
    /// Report duplicates in the first SACK block (RFC 2883). Default true.
    pub dsack: bool,
    /// Timestamps and PAWS (RFC 7323). Default true.
    pub timestamps: bool,
    /// Window scaling (RFC 7323). Default true; without it the window is at most 65,535 bytes.
    pub window_scaling: bool,
    /// Explicit congestion notification: the best feedback that is asked for and accepted (RFC
    /// 3168, RFC 8257, RFC 9768). A handshake does not distinguish RFC 8257's from RFC 3168's: both
    /// ends have to be set to it. Default none.
    pub ecn: EcnFeedback,
    /// Bytes of the stream that the endpoint holds, unsent or unacknowledged. Default 4 MiB.
    pub send_buffer: u64,
    /// Bytes that the receiver is ready to hold: the largest window announced. Default 4 MiB.
    pub receive_buffer: u64,
    /// When an in-order segment is acknowledged. Default: every second one, or after 40 ms.
    pub delayed_ack: DelayedAck,
    /// Lower bound of the retransmission timeout. Default 1 s, on the whole of it (RFC 6298 rule
    /// 2.4).
    pub min_rto: MinRto,
    /// Upper bound of the retransmission timeout, back-off included. Default 60 s (RFC 6298 rule
    /// 2.5).
    pub max_rto: Span,
    /// Timeout before the first RTT sample. Default 1 s (RFC 6298 rule 2.1).
    pub initial_rto: Span,
    /// Added to every computed timeout after back-off, as FreeBSD's `rexmit_slop`. Default 0.
    pub rto_slop: Span,
    /// Send new data on the first two duplicate ACKs (RFC 3042). Default true.
    pub limited_transmit: bool,
    /// How the window comes down during fast recovery. Default: RFC 9937.
    pub prr: Prr,
    /// How losses are detected. Default: RFC 6675.
    pub loss_detector: LossDetector,
    /// Take reductions back that turn out needless: by DSACK (RFC 3708) and by timestamps (RFC
    /// 3522, RFC 4015). Default false.
    pub undo: bool,
    /// F-RTO (RFC 5682): find out whether a timeout was spurious, and take it back. Default false.
    pub frto: bool,
    /// Tail loss probes (RFC 8985 section 7), with SACK. Default false.
    pub tlp: bool,
    /// Hold back small segments while data is outstanding (RFC 9293 section 3.7.4). Default true.
    pub nagle: bool,
    /// Fall back to the initial window after an idle time of one RTO (RFC 5681 section 4.1).
    /// Default true.
    pub slow_start_after_idle: bool,
    /// What happens to a congestion window that is not used. Default: it does not grow.
    pub cwnd_validation: CwndValidation,
    /// When segments leave at a rate, and at which. Default: when the controller has one.
    pub pacing: Pacing,
    /// How long a connection stays in TIME-WAIT: twice the maximum segment lifetime. Default 60 s.
    pub time_wait: Span,
    /// How often a segment is resent by timeout before the connection is given up. Default 15.
    pub max_retries: u32,
    /// Opening, keeping and ending connections. Default: the RFCs.
    pub states: StateRules,
    /// Sending, offering and acknowledging data. Default: the RFCs.
    pub transfer: TransferRules,
    /// ICMP errors and the MTU of the path. Default: the RFCs.
    pub path: PathRules,
    /// Segments that are as expected, and full segments and acknowledgments that go out while
    /// nothing is lost, take a short way through the endpoint, which has the same effects as the
    /// ordinary one: only their cost differs. Default true.
    pub header_prediction: bool,
}

impl Config {
    /// Whose rules episodes follow: see [`LossDetector`].
    pub(crate) fn episodes(&self) -> Episodes {
        match self.loss_detector {
            _ if self.undo || self.frto || self.tlp => Episodes::Linux,
            LossDetector::Rfc6675 => Episodes::Rfc,
            LossDetector::FreeBsd9 => Episodes::FreeBsd,
            LossDetector::Tahoe(_) | LossDetector::Reno(_) => Episodes::Berkeley,
            LossDetector::Linux(_) | LossDetector::Ncr(_) | LossDetector::RrTcp(_) | LossDetector::Rack => {
                Episodes::Linux
            }
        }
    }

    /// Whether SACK is offered and agreed to: [`LossDetector::Tahoe`] and [`LossDetector::Reno`]
    /// know none.
    pub(crate) fn knows_sack(&self) -> bool {
        self.sack && self.episodes() != Episodes::Berkeley
    }

    /// The receive buffer is tuned. Windows then follow Linux's rules ([`WindowRule::Linux`]).
    pub fn tune_receive_buffer(&mut self, tuning: BufferTuning) {
        self.receive_buffer = tuning.default;
        self.transfer.window = WindowRule::Linux { most: tuning.most };
        self.transfer.receive_tuning = Some(tuning);
    }

    /// The send buffer is tuned ([`SpaceRule::Tuned`]).
    pub fn tune_send_buffer(&mut self, tuning: BufferTuning) {
        let mss = u64::from(self.mss) - if self.timestamps { 12 } else { 0 };
        self.send_buffer = match tuning.law.counts_shared_info {
            true => tuning.default,
            false => payload_of_bare_buffers(tuning.default, mss),
        };
        self.transfer.send_space = SpaceRule::Tuned;
        self.transfer.send_tuning = Some(tuning);
    }

    /// Segments are handed down in units. A send buffer that is tuned then counts the memory of
    /// these ([`SpaceRule::Linux`]).
    pub fn hand_down_units(&mut self, rule: OffloadRule) {
        self.transfer.offload = rule;
        if rule.is_on() && self.transfer.send_space == SpaceRule::Tuned {
            self.transfer.send_space = SpaceRule::Linux;
        }
    }

    /// What a receive buffer that is not tuned holds of data, bytes.
    pub fn receive_space(&self) -> u64 {
        self.transfer.window.space(self.receive_buffer)
    }

    /// The receive buffer holds `bytes` of data.
    pub fn set_receive_space(&mut self, bytes: u64) {
        self.receive_buffer = self.transfer.window.memory(bytes);
    }

    /// A receive buffer that is not tuned is another's too, as a connection's is its subflows':
    /// what lies beyond a gap takes none of the window.
    #[must_use]
    pub fn with_shared_window(mut self) -> Config {
        if self.transfer.window == (WindowRule::Linux { most: 0 }) {
            (self.receive_buffer, self.transfer.window) = (self.receive_space(), WindowRule::Rfc);
        }
        self
    }

    /// What the largest buffers hold of data, bytes: to receive, and to send.
    pub fn largest_buffers(&self) -> [u64; 2] {
        let receive = self.transfer.receive_tuning.map_or(self.receive_buffer, |tuning| tuning.most);
        let send = self.transfer.send_tuning.map_or(self.send_buffer, |tuning| tuning.most);
        [receive, send]
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1460,
            default_peer_mss: 536,
            initial_window: InitialWindow::Segments(10),
            sack: true,
            dsack: true,
            timestamps: true,
            window_scaling: true,
            ecn: EcnFeedback::None,
            send_buffer: 4 << 20,
            receive_buffer: 4 << 20,
            delayed_ack: DelayedAck::default(),
            min_rto: MinRto::OfTotal(Span::from_secs(1)),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
            rto_slop: Span::ZERO,
            limited_transmit: true,
            prr: Prr::Rfc9937,
            loss_detector: LossDetector::Rfc6675,
            undo: false,
            frto: false,
            tlp: false,
            nagle: true,
            slow_start_after_idle: true,
            cwnd_validation: CwndValidation::default(),
            pacing: Pacing::default(),
            time_wait: Span::from_secs(60),
            max_retries: 15,
            states: StateRules::default(),
            transfer: TransferRules::default(),
            path: PathRules::default(),
            header_prediction: true,
        }
    }
}

/// The initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// min(4 MSS, max(2 MSS, 4380 bytes)) (RFC 3390).
    Rfc3390,
    /// This many segments; 10 is RFC 6928.
    Segments(u32),
}

impl InitialWindow {
    /// Bytes of window for segments of `mss` bytes.
    #[inline]
    pub fn bytes(self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        match self {
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            InitialWindow::Segments(n) => u64::from(n) * mss,
        }
    }
}

/// When in-order data is acknowledged (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge at the latest when this many full segments are unacknowledged; 1 acknowledges
    /// every segment. Default 2.
    pub segments: u32,
    /// Acknowledge at the latest this long after the first of them. Default 40 ms.
    pub timeout: Span,
    /// Segments at the start of a connection and after one that repeats what has arrived, which are
    /// acknowledged at once, as in Linux's quick-ACK mode; 0 is no such mode, whatever `hurry`
    /// says. Default 0.
    pub quick: u32,
    /// What else begins that mode. Default nothing.
    pub hurry: QuickAcks,
    /// Linux acknowledges every segment while its receive window grows: by two segments for each
    /// one that arrives, from this many bytes up to the receive buffer. Default 0: no such growth.
    pub growth_from: u64,
}

impl Default for DelayedAck {
    fn default() -> DelayedAck {
        DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40),
            quick: 0,
            hurry: QuickAcks::default(),
            growth_from: 0,
        }
    }
}

/// Signs of trouble after which segments are acknowledged at once, as in Linux's quick-ACK mode:
/// the sender's window may be so small that it waits for these ACKs. Counts are of segments, the
/// one with the sign included; 0 is none. Releases of Linux differ in every one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickAcks {
    /// Data that is not next in order, nor known altogether (`tcp_data_queue` up to 4.17).
    pub gap: u8,
    /// A congestion mark while none is echoed (`__tcp_ecn_check_ce`, from 3.7 on).
    pub mark: u8,
    /// Data that is not ECN-capable, on a connection with ECN: surely a retransmission
    /// (`TCP_ECN_check_ce`, `__tcp_ecn_check_ce`).
    pub not_ect: u8,
    /// Data in order, the first for longer than the receiver's own retransmission timeout: the
    /// sender has had a timeout (`tcp_event_data_recv`).
    pub idle: u8,
    /// `not_ect` requires that ECN-capable data has arrived before (`TCP_ECN_SEEN`, from 3.4 on).
    pub after_ect: bool,
    /// Data that says that the window came down is acknowledged at once, by itself
    /// (`tcp_ecn_accept_cwr`, from 4.19 on).
    pub cwr: bool,
    /// A segment with PSH, or a small one, is acknowledged as soon as everything is read
    /// (`tcp_measure_rcv_mss`, `TCP_REMNANT`, and `cleanup_rbuf` of 2.4; not from 2.6 to 6.1.56,
    /// where a full segment with PSH waits as any other).
    pub push: bool,
}

impl QuickAcks {
    /// Whether something beside the data of a segment counts.
    pub(crate) fn looks_closer(&self) -> bool {
        self.push || self.idle > 0
    }

    /// Linux 2.4: marks are no reason to hurry.
    pub fn linux_2_4() -> QuickAcks {
        QuickAcks { gap: 16, mark: 0, not_ect: 16, idle: 16, after_ect: false, cwr: false, push: true }
    }

    /// Linux from 3.7 to 4.17.
    pub fn linux_3_7() -> QuickAcks {
        QuickAcks { gap: 16, mark: 16, not_ect: 16, idle: 16, after_ect: true, cwr: false, push: false }
    }

    /// Linux from 4.19 on, with what 6.1.57 added.
    pub fn linux_4_19() -> QuickAcks {
        QuickAcks { gap: 0, mark: 2, not_ect: 2, idle: 16, after_ect: true, cwr: true, push: true }
    }
}

/// A lower bound of the retransmission timeout, and what it bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRto {
    /// The whole timeout (RFC 6298 rule 2.4).
    OfTotal(Span),
    /// The variance term alone, so that the timeout is never below SRTT plus this: Linux.
    OfVariance(Span),
}

/// How the window comes down during fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prr {
    /// At once to the slow start threshold; `pipe` holds back sending until it is below (RFC 6675
    /// section 5).
    Off,
    /// A segment for every second ACK, and never more than one beyond what is in flight: Linux
    /// before 3.2. Where episodes run as the RFCs write them, as RFC 6937.
    RateHalving,
    /// Proportional rate reduction with the slow start reduction bound, as in the figures of RFC
    /// 6937 section 3.1: what is resent does not count as in flight until it is acknowledged.
    Rfc6937,
    /// The same with what is resent counted, as in stacks: Linux 3.2 to 4.x, FreeBSD.
    Ssrb,
    /// Proportional rate reduction with the conservative bound unless ACKs make good progress (RFC
    /// 9937).
    Rfc9937,
}

/// How losses are detected: a choice independent of the congestion controller.
///
/// Episodes run as the RFCs write them with RFC 6675's, as FreeBSD 9 has them with FreeBSD 9's, and
/// as the releases of Berkeley with Tahoe's and Reno's; neither of these asks [`Prr`]. With any
/// other, and where undoing, F-RTO or tail loss probes are on, they run as Linux has them: counted
/// in segments, with PRR from the window at their start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossDetector {
    /// Three discontiguous SACKed sequences, or more than two segments' worth of SACKed bytes,
    /// above a hole (RFC 6675); three duplicate ACKs without SACK (RFC 5681, RFC 6582).
    Rfc6675,
    /// FreeBSD 9 (`tcp_do_segment`, `tcp_sack.c`): three duplicate ACKs, counted, whatever they
    /// report; then every hole is lost. The window is one segment at first, and grows by one for
    /// each further duplicate while less than the threshold is in flight.
    FreeBsd9,
    /// Tahoe: the third duplicate ACK begins slow start from one segment, and everything is sent
    /// again in order, as far as it is not acknowledged by then. Without SACK.
    Tahoe(BerkeleyRules),
    /// Reno (RFC 2581): the third duplicate ACK begins fast recovery, which the first ACK of new
    /// data ends. Without SACK.
    Reno(BerkeleyRules),
    /// Linux before RACK: a threshold that grows with the reordering that is seen.
    Linux(AdaptiveRules),
    /// TCP-NCR (RFC 4653): a threshold of a round trip's worth of segments, for which new data goes
    /// out meanwhile.
    Ncr(NcrVariant),
    /// RR-TCP (ICSI TR-02-006): a percentile of the reordering that was seen.
    RrTcp(RrRules),
    /// RACK (RFC 8985 section 6.2) as Linux has it.
    Rack,
}

/// Whose rules recovery episodes follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Episodes {
    /// The RFCs'.
    #[default]
    Rfc,
    /// Linux's.
    Linux,
    /// FreeBSD's, of release 9.
    FreeBsd,
    /// Tahoe's or Reno's.
    Berkeley,
}

impl Episodes {
    /// Duplicate ACKs are counted, and everything between SND.UNA and what is sent next counts
    /// against the window.
    pub(crate) fn of_bsd(self) -> bool {
        matches!(self, Episodes::FreeBsd | Episodes::Berkeley)
    }
}

/// How much new data TCP-NCR sends while it waits (RFC 4653 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcrVariant {
    /// A segment for every two that are reported.
    Careful,
    /// A segment for each.
    Aggressive,
}

impl LossDetector {
    /// Its name in scenarios and summaries.
    pub fn name(self) -> &'static str {
        match self {
            LossDetector::Rfc6675 => "rfc6675",
            LossDetector::FreeBsd9 => "freebsd-9",
            LossDetector::Tahoe(_) => "tahoe",
            LossDetector::Reno(_) => "reno",
            LossDetector::Linux(_) => "linux",
            LossDetector::Ncr(NcrVariant::Careful) => "ncr",
            LossDetector::Ncr(NcrVariant::Aggressive) => "ncr-aggressive",
            LossDetector::RrTcp(_) => "rr-tcp",
            LossDetector::Rack => "rack",
        }
    }
}

/// Parameters of Tahoe and Reno.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BerkeleyRules {
    /// Duplicate ACKs begin nothing until all is acknowledged that had been sent when the last fast
    /// retransmit or timeout was (ns-2's `bugFix_`; RFC 2582 section 5). Default false: neither the
    /// releases of Berkeley nor RFC 2581 have it.
    pub bugfix: bool,
}

/// Parameters of RR-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RrRules {
    /// Reordering lengths that are remembered. Default 1000.
    pub history: u16,
    /// The share of reordering that is to cause no false fast retransmit (FA ratio), at the start.
    /// Default 0.9, the paper's example of a fixed one.
    pub initial_ratio: f64,
    /// What a false fast retransmit adds to it (S). Default 0.01.
    pub step: f64,
}

impl Default for RrRules {
    fn default() -> RrRules {
        RrRules { history: 1000, initial_ratio: 0.9, step: 0.01 }
    }
}

/// Parameters of Linux's adaptive duplicate threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveRules {
    /// The most that the threshold grows to, in segments: `tcp_max_reordering`. Default 300; 127
    /// before 3.18.
    pub max_reordering: u32,
    /// FACK until reordering is seen, and the rules that went with it: lost retransmissions,
    /// forward retransmissions, and recovery where nothing can be sent. Default true; false for
    /// `tcp_recovery=0` of later kernels.
    pub fack: bool,
    /// Early retransmit (RFC 5827) after a quarter of a round trip, until reordering is seen:
    /// `tcp_early_retrans` 2 and 3. Default true.
    pub early_retransmit: bool,
    /// While the threshold is above 3, reports let the window grow as ACKs do
    /// (`tcp_may_raise_cwnd`), and a timeout takes the threshold back only if it came after many
    /// duplicates (`tcp_enter_loss`); an ACK with ECE lets the window grow above the threshold too,
    /// before it comes down. Default true; false before 3.12.
    pub high_reordering: bool,
    /// The order in which an ACK is dealt with. Default: Linux 4.0's.
    pub order: DetectorRules,
}

impl Default for AdaptiveRules {
    fn default() -> AdaptiveRules {
        AdaptiveRules {
            max_reordering: 300,
            fack: true,
            early_retransmit: true,
            high_reordering: true,
            order: DetectorRules::LINUX_4_0,
        }
    }
}
