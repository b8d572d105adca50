//! The knobs of a host: everything about an endpoint that differs between stacks.

use ackclock_cc::EcnFeedback;
use ackclock_units::parameter::{Choice, Configurable, Domain, Named as _, Setting, Value, Visitor};
use ackclock_units::{Span, configuration, named};

use crate::stack::loss::TimerRelease;
use crate::stack::tuning::payload_of_bare_buffers;
use crate::{
    AccEcnRule, BufferTuning, CwndValidation, DetectorRules, OffloadRule, Pacing, PathRules, SpaceRule, StateRules,
    TransferRules, WindowRule,
};

defaults! {
/// The settings of a host. [`Config::default`] is what the RFCs recommend; [`crate::profile`] has
/// the settings of real stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The MSS announced and the most sent before options are subtracted, in bytes: 1460 for an MTU
    /// of 1500. Default 1460.
    pub mss: u16 = 1460;
    /// The MSS of a peer whose SYN announces none, in bytes (RFC 9293 section 3.7.1, MUST-15): 536
    /// over IPv4, 1220 over IPv6. Default 536.
    pub default_peer_mss: u16 = 536;
    /// Initial congestion window. Default: RFC 6928.
    pub initial_window: InitialWindow = InitialWindow::Segments(10);
    /// Selective acknowledgments (RFC 2018). Default true.
    pub sack: bool = true;
    /// Report duplicates in the first SACK block (RFC 2883). Default true.
    pub dsack: bool = true;
    /// Timestamps and PAWS (RFC 7323). Default true.
    pub timestamps: bool = true;
    /// Window scaling (RFC 7323). Default true; without it the window is at most 65,535 bytes.
    pub window_scaling: bool = true;
    /// Explicit congestion notification: the best feedback that is asked for and accepted (RFC
    /// 3168, RFC 8257, RFC 9768). A handshake does not distinguish RFC 8257's from RFC 3168's: both
    /// ends have to be set to it. Default none.
    pub ecn: EcnFeedback = EcnFeedback::None;
    /// Bytes of the stream that the endpoint holds, unsent or unacknowledged. Default 4 MiB.
    pub send_buffer: u64 = 4 << 20;
    /// Bytes that the receiver is ready to hold: the largest window announced. Default 4 MiB.
    pub receive_buffer: u64 = 4 << 20;
    /// When an in-order segment is acknowledged. Default: every second one, or after 40 ms.
    pub delayed_ack: DelayedAck = DelayedAck::default();
    /// Lower bound of the retransmission timeout. Default 1 s, on the whole of it (RFC 6298 rule
    /// 2.4).
    pub min_rto: MinRto = MinRto::OfTotal(Span::from_secs(1));
    /// Upper bound of the retransmission timeout, back-off included. Default 60 s (RFC 6298 rule
    /// 2.5).
    pub max_rto: Span = Span::from_secs(60);
    /// Timeout before the first RTT sample. Default 1 s (RFC 6298 rule 2.1).
    pub initial_rto: Span = Span::from_secs(1);
    /// Added to every computed timeout after back-off, as FreeBSD's `rexmit_slop`. Default 0.
    pub rto_slop: Span = Span::ZERO;
    /// Send new data on the first two duplicate ACKs (RFC 3042). Default true.
    pub limited_transmit: bool = true;
    /// The reduction of the window during fast recovery. Default: RFC 9937.
    pub prr: Prr = Prr::Rfc9937;
    /// The detection of losses. Default: RFC 6675.
    pub loss_detector: LossDetector = LossDetector::Rfc6675;
    /// Take reductions back that turn out needless: by DSACK (RFC 3708) and by timestamps (RFC
    /// 3522, RFC 4015). Default false.
    pub undo: bool = false;
    /// F-RTO (RFC 5682): find out whether a timeout was spurious, and take it back. Default false.
    pub frto: bool = false;
    /// Tail loss probes (RFC 8985 section 7), with SACK. Default false.
    pub tlp: bool = false;
    /// Hold back small segments while data is outstanding (RFC 9293 section 3.7.4). Default true.
    pub nagle: bool = true;
    /// Fall back to the initial window after an idle time of one RTO (RFC 5681 section 4.1).
    /// Default true.
    pub slow_start_after_idle: bool = true;
    /// The treatment of a congestion window that is not used. Default: it does not grow.
    pub cwnd_validation: CwndValidation = CwndValidation::default();
    /// When segments leave at a rate, and at which. Default: when the controller has one.
    pub pacing: Pacing = Pacing::default();
    /// Duration of TIME-WAIT: twice the maximum segment lifetime. Default 60 s.
    pub time_wait: Span = Span::from_secs(60);
    /// Number of timeouts that resend a segment before the connection is given up. Default 15.
    pub max_retries: u32 = 15;
    /// Opening, keeping and ending connections. Default: the RFCs.
    pub states: StateRules = StateRules::default();
    /// Sending, offering and acknowledging data. Default: the RFCs.
    pub transfer: TransferRules = TransferRules::default();
    /// ICMP errors and the MTU of the path. Default: the RFCs.
    pub path: PathRules = PathRules::default();
    /// Segments that are as expected, and full segments and acknowledgments that go out while
    /// nothing is lost, take a short way through the endpoint, which has the same effects as the
    /// ordinary one: only their cost differs. Default true.
    pub header_prediction: bool = true;
}
}

impl Config {
    /// The system whose rules episodes follow: see [`LossDetector`].
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

    /// Returns `true` if SACK is offered and agreed to: [`LossDetector::Tahoe`] and
    /// [`LossDetector::Reno`] know none.
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

    /// The data that a receive buffer that is not tuned holds, bytes.
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

    /// The data that the largest buffers hold, bytes: to receive, and to send.
    pub fn largest_buffers(&self) -> [u64; 2] {
        let receive = self.transfer.receive_tuning.map_or(self.receive_buffer, |tuning| tuning.most);
        let send = self.transfer.send_tuning.map_or(self.send_buffer, |tuning| tuning.most);
        [receive, send]
    }

    /// Retransmissions or probes that may stay unanswered. Nobody waits for an orphan whose timeout
    /// has reached its maximum (Linux `tcp_orphan_retries`).
    pub(crate) fn retry_limit(&self, is_orphan: bool, wait: Span) -> u32 {
        match self.states.orphan_retries.filter(|_| is_orphan) {
            Some(_) if wait >= self.max_rto => 0,
            Some(retries) => retries,
            None => self.max_retries,
        }
    }

    /// Duration of `retries` retransmissions if the timeout starts at `least` (Linux
    /// `tcp_model_timeout`).
    pub(crate) fn model_time(&self, retries: u32, least: Span) -> Span {
        let (least, most) = (least.as_nanos().max(1), self.max_rto.as_nanos());
        // Doublings that stay below the maximum.
        let doublings = (most / least).checked_ilog2().unwrap_or(0);
        let doubled = least.saturating_mul((2u64 << retries.min(doublings).min(62)) - 1);
        Span::from_nanos(doubled.saturating_add(most.saturating_mul(u64::from(retries.saturating_sub(doublings)))))
    }
}

/// Any length of time.
const TIME: Domain = Domain::Time { positive: false };
const SOME_TIME: Domain = Domain::Time { positive: true };

/// The largest window that can be announced (RFC 7323 section 2.3).
pub const MAX_BUFFER: u64 = 1 << 30;

/// Options take up to 40 bytes of a segment; 88 is also Linux's minimum.
pub const MIN_MSS: u64 = 88;

/// The settings of a host but for its buffers: names, meanings, ranges and sources.
impl Configurable for Config {
    fn parameters(&mut self, v: &mut impl Visitor) {
        self.handshake(v);
        self.behaviour(v);
    }
}

impl Config {
    /// The settings that a handshake announces.
    pub fn handshake(&mut self, v: &mut impl Visitor) {
        let flag = Domain::Flag;
        v.setting(
            "mss",
            "advertised maximum segment size",
            Domain::Bytes(MIN_MSS, 65_495),
            "RFC 9293 s3.7.1",
            &mut self.mss,
        );
        let window = Domain::OrName("rfc3390", &Domain::Packets(1, 65_535));
        v.setting(
            "initial_window",
            "initial congestion window",
            window,
            "RFC 6928, RFC 3390",
            &mut self.initial_window,
        );
        v.setting("dsack", "duplicate SACK (RFC 2883)", flag, "RFC 2883", &mut self.dsack);
        v.setting("timestamps", "timestamps (RFC 7323)", flag, "RFC 7323", &mut self.timestamps);
        v.setting("window_scaling", "window scaling (RFC 7323)", flag, "RFC 7323", &mut self.window_scaling);
        const FEEDBACK: Domain = Domain::Name { what: "feedback of ECN", names: &["dctcp", "accecn"] };
        let meaning = "ECN feedback: classic, DCTCP's or accurate";
        v.setting("ecn", meaning, Domain::FlagOr(&FEEDBACK), "RFC 3168, RFC 8257, RFC 9768", &mut self.ecn);
        let falls_back = self.states.ecn_syn_retries != u32::MAX;
        let mut fallback = falls_back;
        v.setting("ecn_fallback", "retransmit a lost SYN without ECN", flag, "tcp_ecn_fallback", &mut fallback);
        if fallback != falls_back {
            self.states.ecn_syn_retries = if falls_back { u32::MAX } else { 0 };
        }
        let rules = &mut self.transfer.acc_ecn;
        let domain = Domain::named::<AccEcnRule>("rules of Accurate ECN");
        v.setting("accecn_rules", "Accurate ECN by RFC 9768 or by Linux", domain, "RFC 9768", &mut rules.rule);
        v.choice("accecn_option", "when the Accurate ECN option carries byte counters", rules);
    }

    /// The settings of acknowledging, loss recovery and sending.
    pub fn behaviour(&mut self, v: &mut impl Visitor) {
        let flag = Domain::Flag;
        let meaning = "delayed acknowledgments; `segments = 1` acknowledges every segment";
        v.table("delayed_ack", meaning, &mut self.delayed_ack);
        let compression = self.transfer.sack_compression;
        let mut compresses = compression.is_some();
        let meaning = "Linux's compression of SACKs: fewer ACKs for out-of-order data";
        v.setting("sack_compression", meaning, flag, "tcp_comp_sack_nr", &mut compresses);
        self.transfer.sack_compression = compresses.then(|| compression.unwrap_or_default());
        v.table_or("min_rto", "lower bound of the retransmission timeout", "time", &mut self.min_rto);
        let meaning = "upper bound of the retransmission timeout";
        v.setting("max_rto", meaning, SOME_TIME, "RFC 6298 s2.5", &mut self.max_rto);
        let meaning = "retransmission timeout before the first RTT sample";
        v.setting("initial_rto", meaning, SOME_TIME, "RFC 6298 s2.1", &mut self.initial_rto);
        let meaning = "constant added to every backed-off timeout (FreeBSD's `rexmit_slop`)";
        v.setting("rto_slop", meaning, TIME, "net.inet.tcp.rexmit_slop", &mut self.rto_slop);
        let mut timer = self.transfer.timer.release();
        let domain = Domain::named::<TimerRelease>("rules of the timer");
        v.setting("rto_timer", "how ACKs restart the retransmission timer", domain, "RFC 6298 s5", &mut timer);
        self.transfer.timer = timer.rules();
        let ticks = &mut self.transfer.ticks;
        let mut tick = ticks.length();
        let meaning = "tick of the host's timers, 1 s / HZ, at most 1 s; 0 makes them exact";
        v.setting("timer_tick", meaning, TIME, "CONFIG_HZ", &mut tick);
        *ticks = ticks.of_length(tick).unwrap_or(*ticks);
        v.setting("limited_transmit", "limited transmit (RFC 3042)", flag, "RFC 3042", &mut self.limited_transmit);
        const REDUCTION: Domain = Domain::named::<Prr>("rate reduction");
        let meaning = "proportional rate reduction (RFC 6937, RFC 9937)";
        v.setting("prr", meaning, Domain::OrOff(&REDUCTION), "RFC 6937, RFC 9937", &mut self.prr);
        let default = self.loss_detector;
        v.choice("loss_detector", "how losses are detected from ACKs", &mut self.loss_detector);
        if self.loss_detector == LossDetector::FreeBsd9 && default != LossDetector::FreeBsd9 {
            self.cwnd_validation = CwndValidation::Peer;
        }
        v.setting("undo", "undo spurious window reductions (DSACK, Eifel)", flag, "RFC 3708, RFC 4015", &mut self.undo);
        v.setting("frto", "forward RTO recovery (RFC 5682)", flag, "RFC 5682", &mut self.frto);
        v.setting("tlp", "tail loss probes (RFC 8985)", flag, "RFC 8985 s7", &mut self.tlp);
        if matches!(self.loss_detector, LossDetector::Tahoe(_) | LossDetector::Reno(_)) {
            self.sack = false;
        }
        v.setting("sack", "selective acknowledgments (RFC 2018)", flag, "RFC 2018", &mut self.sack);
        v.setting("nagle", "Nagle's algorithm", flag, "RFC 9293 s3.7.4", &mut self.nagle);
        let meaning = "Minshall's variant of Nagle's algorithm: one small segment may be in flight";
        v.setting("minshall", meaning, flag, "Linux tcp_minshall_check", &mut self.transfer.minshall);
        let meaning = "set PSH at the end of each write, and after half of the peer's largest window";
        v.setting("push_writes", meaning, flag, "Linux tcp_push", &mut self.transfer.push_writes);
        v.setting("fast_open", "data with the SYN (RFC 7413)", flag, "RFC 7413", &mut self.states.fast_open);
        let meaning = "restart the window after idle periods (RFC 5681)";
        v.setting("slow_start_after_idle", meaning, flag, "RFC 5681 s4.1", &mut self.slow_start_after_idle);
        let domain = Domain::named::<CwndValidation>("congestion window validation");
        let meaning = "growth or decay of an unused congestion window";
        v.setting("cwnd_validation", meaning, domain, "RFC 2861, RFC 7661", &mut self.cwnd_validation);
        v.choice("pacing", "spread segments over the round trip", &mut self.pacing);
        v.setting("time_wait", "duration of TIME-WAIT", TIME, "RFC 9293 s3.4.2", &mut self.time_wait);
        let meaning = "consecutive timeouts after which the connection is aborted";
        v.setting("max_retries", meaning, Domain::Whole(0, 255, ""), "tcp_retries2", &mut self.max_retries);
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

impl Setting for InitialWindow {
    fn value(&self) -> Value {
        match *self {
            InitialWindow::Rfc3390 => Value::Name("rfc3390"),
            InitialWindow::Segments(segments) => Value::Whole(segments.into()),
        }
    }

    fn from_value(value: Value) -> Option<InitialWindow> {
        match value {
            Value::Name("rfc3390") => Some(InitialWindow::Rfc3390),
            value => u32::from_value(value).map(InitialWindow::Segments),
        }
    }
}

defaults! {
/// When in-order data is acknowledged (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Acknowledge at the latest when this many full segments are unacknowledged; 1 acknowledges
    /// every segment. Default 2.
    pub segments: u32 = 2;
    /// Acknowledge at the latest this long after the first of them. Default 40 ms.
    pub timeout: Span = Span::from_millis(40);
    /// Segments at the start of a connection and after one that repeats what has arrived, which are
    /// acknowledged at once, as in Linux's quick-ACK mode; 0 is no such mode, whatever `hurry`
    /// says. Default 0.
    pub quick: u32 = 0;
    /// Further events that begin that mode. Default nothing.
    pub hurry: QuickAcks = QuickAcks::default();
    /// Linux acknowledges every segment while its receive window grows: by two segments for each
    /// one that arrives, from this many bytes up to the receive buffer. Default 0: no such growth.
    pub growth_from: u64 = 0;
}
}

impl Configurable for DelayedAck {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let hurry = &mut self.hurry;
        let (count, flag) = (Domain::Whole(0, 255, ""), Domain::Flag);
        v.setting(
            "segments",
            "segments per acknowledgment",
            Domain::Whole(1, 1000, ""),
            "RFC 5681 s4.2",
            &mut self.segments,
        );
        v.setting("timeout", "longest delay of an acknowledgment", SOME_TIME, "RFC 5681 s4.2", &mut self.timeout);
        let meaning = "segments acknowledged immediately at the start (quick ACKs)";
        v.setting("quick", meaning, Domain::Whole(0, 1 << 20, ""), "Linux tcp_incr_quickack", &mut self.quick);
        let meaning = "segments acknowledged immediately after out-of-order data; 0 disables it";
        v.setting("quick_gap", meaning, count, "Linux tcp_data_queue", &mut hurry.gap);
        let meaning = "segments acknowledged immediately after a CE mark while none is echoed; 0 disables it";
        v.setting("quick_mark", meaning, count, "Linux __tcp_ecn_check_ce", &mut hurry.mark);
        let meaning = "segments acknowledged immediately after not-ECT data on an ECN connection; 0 disables it";
        v.setting("quick_not_ect", meaning, count, "Linux __tcp_ecn_check_ce", &mut hurry.not_ect);
        let meaning =
            "segments acknowledged immediately after a gap longer than the retransmission timeout; 0 disables it";
        v.setting("quick_idle", meaning, count, "Linux tcp_event_data_recv", &mut hurry.idle);
        let meaning = "`quick_not_ect` applies only after ECT data";
        v.setting("quick_after_ect", meaning, flag, "Linux TCP_ECN_SEEN", &mut hurry.after_ect);
        let meaning = "acknowledge segments with CWR immediately";
        v.setting("quick_cwr", meaning, flag, "Linux tcp_ecn_accept_cwr", &mut hurry.cwr);
        let meaning = "acknowledge segments with PSH, or shorter than full, once the application has read all data";
        v.setting("quick_push", meaning, flag, "Linux tcp_measure_rcv_mss", &mut hurry.push);
        let meaning = "window above which its growth forces no ACK";
        v.setting(
            "growth_from",
            meaning,
            Domain::Bytes(0, MAX_BUFFER),
            "Linux __tcp_select_window",
            &mut self.growth_from,
        );
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
    /// Returns `true` if something beside the data of a segment counts.
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

/// The quantities that [`MinRto`] may bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounded {
    Total,
    Variance,
}

named! { Bounded: Total = "total", Variance = "variance" }

impl MinRto {
    /// The shortest timeout, or variance in it.
    pub(crate) fn least(self) -> Span {
        let (MinRto::OfTotal(least) | MinRto::OfVariance(least)) = self;
        least
    }
}

impl Configurable for MinRto {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let (mut of, mut time) = match *self {
            MinRto::OfTotal(time) => (Bounded::Total, time),
            MinRto::OfVariance(time) => (Bounded::Variance, time),
        };
        let (meaning, domain) =
            ("the bounded quantity: the variance term, or the sum", Domain::named::<Bounded>("bound"));
        v.setting("of", meaning, domain, "RFC 6298 s2.4, Linux tcp_set_rto", &mut of);
        v.setting("time", "the bound", TIME, "RFC 6298 s2.4, TCP_RTO_MIN", &mut time);
        *self = match of {
            Bounded::Total => MinRto::OfTotal(time),
            Bounded::Variance => MinRto::OfVariance(time),
        };
    }
}

/// The reduction of the window during fast recovery.
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
    /// SSRB with resent data counted, as in stacks: Linux 3.2 to 4.x, FreeBSD.
    Ssrb,
    /// Proportional rate reduction with the conservative bound unless ACKs make good progress (RFC
    /// 9937).
    Rfc9937,
}

named! { Prr or Off: RateHalving = "rate-halving", Rfc6937 = "rfc6937", Ssrb = "ssrb", Rfc9937 = "rfc9937" }

/// The detection of losses: a choice independent of the congestion controller.
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

/// The system whose rules recovery episodes follow.
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

/// The amount of new data that TCP-NCR sends while it waits (RFC 4653 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcrVariant {
    /// A segment for every two that are reported.
    Careful,
    /// A segment for each.
    Aggressive,
}

/// The kinds of [`LossDetector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectorKind {
    /// [`LossDetector::Rfc6675`].
    Rfc6675,
    /// [`LossDetector::FreeBsd9`].
    FreeBsd9,
    /// [`LossDetector::Tahoe`].
    Tahoe,
    /// [`LossDetector::Reno`].
    Reno,
    /// [`LossDetector::Linux`].
    Linux,
    /// [`NcrVariant::Careful`].
    Ncr,
    /// [`NcrVariant::Aggressive`].
    NcrAggressive,
    /// [`LossDetector::RrTcp`].
    RrTcp,
    /// [`LossDetector::Rack`].
    Rack,
}

named! {
    DetectorKind: Rfc6675 = "rfc6675", FreeBsd9 = "freebsd-9", Tahoe = "tahoe", Reno = "reno", Linux = "linux",
    Ncr = "ncr", NcrAggressive = "ncr-aggressive", RrTcp = "rr-tcp", Rack = "rack"
}

impl LossDetector {
    /// Its name in scenarios and summaries.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }
}

impl Choice for LossDetector {
    type Kind = DetectorKind;
    const WHAT: &'static str = "loss detector";

    fn kind(&self) -> DetectorKind {
        match self {
            LossDetector::Rfc6675 => DetectorKind::Rfc6675,
            LossDetector::FreeBsd9 => DetectorKind::FreeBsd9,
            LossDetector::Tahoe(_) => DetectorKind::Tahoe,
            LossDetector::Reno(_) => DetectorKind::Reno,
            LossDetector::Linux(_) => DetectorKind::Linux,
            LossDetector::Ncr(NcrVariant::Careful) => DetectorKind::Ncr,
            LossDetector::Ncr(NcrVariant::Aggressive) => DetectorKind::NcrAggressive,
            LossDetector::RrTcp(_) => DetectorKind::RrTcp,
            LossDetector::Rack => DetectorKind::Rack,
        }
    }

    fn of_kind(&self, kind: DetectorKind) -> LossDetector {
        match kind {
            _ if kind == self.kind() => *self,
            DetectorKind::Rfc6675 => LossDetector::Rfc6675,
            DetectorKind::FreeBsd9 => LossDetector::FreeBsd9,
            DetectorKind::Tahoe => LossDetector::Tahoe(BerkeleyRules::default()),
            DetectorKind::Reno => LossDetector::Reno(BerkeleyRules::default()),
            // A kernel that has RACK has neither FACK nor early retransmit: `tcp_recovery` = 0.
            DetectorKind::Linux if *self == LossDetector::Rack => LossDetector::Linux(AdaptiveRules::rack_off()),
            DetectorKind::Linux => LossDetector::Linux(AdaptiveRules::default()),
            DetectorKind::Ncr => LossDetector::Ncr(NcrVariant::Careful),
            DetectorKind::NcrAggressive => LossDetector::Ncr(NcrVariant::Aggressive),
            DetectorKind::RrTcp => LossDetector::RrTcp(RrRules::default()),
            DetectorKind::Rack => LossDetector::Rack,
        }
    }
}

impl Configurable for LossDetector {
    fn parameters(&mut self, v: &mut impl Visitor) {
        match self {
            LossDetector::Tahoe(rules) | LossDetector::Reno(rules) => rules.parameters(v),
            LossDetector::Linux(rules) => rules.parameters(v),
            LossDetector::RrTcp(rules) => rules.parameters(v),
            LossDetector::Rfc6675 | LossDetector::FreeBsd9 | LossDetector::Ncr(_) | LossDetector::Rack => {}
        }
    }
}

configuration! {
/// Parameters of Tahoe and Reno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BerkeleyRules {
    /// Duplicate ACKs begin nothing until all is acknowledged that had been sent when the last fast
    /// retransmit or timeout was (ns-2's `bugFix_`; RFC 2582 section 5). Default false: neither the
    /// releases of Berkeley nor RFC 2581 have it.
    pub bugfix: bool = false
        => ("no fast retransmit for data sent before the last retransmission or timeout": Domain::Flag, "RFC 2582 s5");
}
}

const RR_TCP: &str = "ICSI TR-02-006";
const SHARE: Domain = Domain::Number(0.0, 1.0, "");

configuration! {
/// Parameters of RR-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RrRules {
    /// Reordering lengths that are remembered. Default 1000.
    pub history: u16 = 1000 => ("reordering lengths that RR-TCP remembers": Domain::Whole(1, 10_000, ""), RR_TCP);
    /// The share of reordering that is to cause no false fast retransmit (FA ratio), at the start.
    /// Default 0.9, the paper's example of a fixed one.
    pub initial_ratio: f64 = 0.9 => ("share of reordering without false retransmits at the start": SHARE, RR_TCP);
    /// The increment by a false fast retransmit (S). Default 0.01.
    pub step: f64 = 0.01 => ("increase of that share by a false fast retransmit": SHARE, RR_TCP);
}
}

defaults! {
/// Parameters of Linux's adaptive duplicate threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveRules {
    /// The most that the threshold grows to, in segments: `tcp_max_reordering`. Default 300; 127
    /// before 3.18.
    pub max_reordering: u32 = 300;
    /// FACK until reordering is seen, and the rules that went with it: lost retransmissions,
    /// forward retransmissions, and recovery where nothing can be sent. Default true; false for
    /// `tcp_recovery=0` of later kernels.
    pub fack: bool = true;
    /// Early retransmit (RFC 5827) after a quarter of a round trip, until reordering is seen:
    /// `tcp_early_retrans` 2 and 3. Default true.
    pub early_retransmit: bool = true;
    /// While the threshold is above 3, reports let the window grow as ACKs do
    /// (`tcp_may_raise_cwnd`), and a timeout takes the threshold back only if it came after many
    /// duplicates (`tcp_enter_loss`); an ACK with ECE lets the window grow above the threshold too,
    /// before it comes down. Default true; false before 3.12.
    pub high_reordering: bool = true;
    /// The order in which an ACK is dealt with. Default: Linux 4.0's.
    pub order: DetectorRules = DetectorRules::LINUX_4_0;
}
}

impl Configurable for AdaptiveRules {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let (flag, segments) = (Domain::Flag, Domain::Packets(3, 1000));
        let meaning = "largest duplicate threshold, in segments";
        v.setting("max_reordering", meaning, segments, "tcp_max_reordering", &mut self.max_reordering);
        v.setting("fack", "forward acknowledgment until reordering is seen", flag, "tcp_fack", &mut self.fack);
        let meaning = "early retransmit (RFC 5827) until reordering is seen";
        v.setting("early_retransmit", meaning, flag, "tcp_early_retrans", &mut self.early_retransmit);
        let meaning = "above a threshold of 3, SACKs grow the window and a timeout may keep the threshold; ACKs \
                       with ECE also grow a window above ssthresh";
        v.setting("high_reordering", meaning, flag, "Linux tcp_may_raise_cwnd", &mut self.high_reordering);
        if self.fack || self.early_retransmit {
            self.order = DetectorRules::LINUX_4_0;
        }
    }
}
