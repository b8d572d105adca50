//! The size of a path's packets: the estimate that ICMP messages lower (RFC 1191, RFC 8201), and
//! probes that find it without them (RFC 4821).
//!
//! # Source
//! Linux 6.1: `tcp_v4_mtu_reduced`, `tcp_v6_mtu_reduced`, `__ip_rt_update_pmtu`
//! (`net/ipv4/route.c`), `tcp_mtu_to_mss`, `tcp_mss_to_mtu`, `tcp_mtup_init`, `tcp_sync_mss`,
//! `tcp_mtu_probe`, `tcp_mtu_check_reprobe` (`tcp_output.c`), `tcp_simple_retransmit`,
//! `tcp_mtup_probe_failed`, `tcp_mtup_probe_success` (`tcp_input.c`), `tcp_mtu_probing`
//! (`tcp_timer.c`). FreeBSD 14: `tcp_next_pmtu`, `tcp6_next_pmtu`, `tcp_mtudisc` (`tcp_subr.c`),
//! `ip_next_mtu` (`ip_icmp.c`).
//!
//! # Departures
//! - What is too big is resent as the congestion window allows, which stays what it was; RFC 1191
//!   section 6.5 would resend one segment and wait for its ACK.
//! - FreeBSD sends everything again from the first unacknowledged byte; here what was SACKed is
//!   not.
//! - FreeBSD's detection of black holes (`pmtud_blackhole_detection`, off by default) is not here.
//! - A controller that rules its window at all times (BBR) is not told of the new size: it counts
//!   in segments by itself.
//! - Probes are not put off because the unsent data lies in buffers that cannot be merged, but for
//!   ends of records.

use ackclock_cc::Window;
use ackclock_units::{Span, Time};

use crate::send::Sender;
use crate::{CaState, Config, GiveUp, IcmpError, IcmpRule, MtuProbing, SendRule, State};

/// The smallest MTU over IPv6 (RFC 8200 section 5).
const LEAST_V6: u32 = 1280;
/// Sizes to try for routers that tell none (RFC 1191 section 7.1); 1280 is FreeBSD's.
const PLATEAUS: [u32; 12] = [65_535, 32_000, 17_914, 8166, 4352, 2002, 1492, 1280, 1006, 508, 296, 68];
/// A window below which no probe is sent, in segments.
const LEAST_WINDOW: u64 = 11;

/// The estimate of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The most bytes of a packet (`icsk_pmtu_cookie`).
    pub(crate) mtu: u32,
    /// When the estimate is forgotten.
    expires_at: Time,
    /// The MTU of the route, to which the estimate goes back.
    route: u32,
    /// The most payload and options that the peer takes (`mss_clamp`).
    clamp: u32,
    /// Bytes of the options that a layer above adds to every segment.
    pub(crate) reserved: u8,
    pub(crate) probing: Probing,
}

/// Path MTU discovery by probes (`icsk_mtup`). Sizes are of whole packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probing {
    pub(crate) enabled: bool,
    /// Bounds of the path's packet size: one that passes, and the most that it takes.
    low: u32,
    high: u32,
    /// Size of the probe in flight; 0 if there is none.
    pub(crate) size: u32,
    /// The part of the stream that it carries.
    start: u64,
    end: u64,
    /// When the search began.
    since: Time,
}

/// The next step of probing.
pub(crate) enum ProbeStep {
    /// No.
    No,
    /// The probe waits for the congestion window, and so does everything else.
    Wait,
    /// One with this payload.
    Send(u32),
}

impl Path {
    pub(crate) fn new(config: &Config) -> Path {
        let route = config.path.mtu.unwrap_or(u32::from(config.mss) + config.path.headers());
        let clamp = u32::from(config.mss);
        Path { mtu: route, expires_at: Time::NEVER, route, clamp, reserved: 0, probing: Probing::default() }
    }

    /// When the estimate of the MTU is forgotten.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.expires_at
    }

    /// The route has another MTU.
    pub(crate) fn reroute(&mut self, mtu: u32) {
        (self.route, self.mtu, self.expires_at) = (mtu, mtu, Time::NEVER);
    }

    /// The estimate of the MTU is not forgotten.
    pub(crate) fn keep_estimate_for_good(&mut self) {
        self.expires_at = Time::NEVER;
    }

    /// The peer's SYN has told the largest segment that it takes: the largest that is sent to it,
    /// options included.
    pub(crate) fn clamp_segment(&mut self, config: &Config, wish: Option<u16>, peer_mss: u16) -> u32 {
        let most = match (config.path.mtu, wish) {
            (None, _) => config.mss,
            (Some(_), wish) => wish.unwrap_or(u16::MAX),
        };
        self.clamp = u32::from(most.min(peer_mss)).max(1);
        // A path that takes less than an MTU of 68 is none.
        self.clamp.min(self.mtu.saturating_sub(config.path.headers())).max(1)
    }

    /// The MSS that a SYN tells.
    pub(crate) fn announced_mss(&self, config: &Config) -> u16 {
        let mss = config.mss;
        if !config.path.advertise || self.mtu >= self.route {
            return mss;
        }
        mss.min(self.mtu.saturating_sub(config.path.headers()) as u16)
    }

    /// Keeps an estimate that was reported again for longer, if half of its time is over.
    fn keep_estimate(&mut self, now: Time, timeout: Option<Span>) {
        if let Some(timeout) = timeout
            && now + timeout / 2 >= self.expires_at
        {
            self.expires_at = now + timeout;
        }
    }
}

/// The MTU that a message leads to; `None` if it is not believed.
fn told_mtu(config: &Config, state: State, error: &IcmpError) -> Option<u32> {
    let rules = &config.path;
    match (rules.icmp, error.v6) {
        // IPV6_MMTU - 8: room for a fragment header.
        (IcmpRule::FreeBsd, true) if error.mtu < LEAST_V6 => Some(LEAST_V6 - 8),
        // RFC 8201 section 4.
        (_, true) => Some(error.mtu).filter(|&mtu| mtu >= LEAST_V6),
        (IcmpRule::Linux, false) => Some(error.mtu.max(rules.least_mtu)),
        (rule, false) => {
            let plateau = |&&mtu: &&u32| mtu < error.length && (mtu != LEAST_V6 || rule == IcmpRule::FreeBsd);
            let told = if error.mtu > 0 { error.mtu } else { *PLATEAUS.iter().find(plateau)? };
            let mtu = told.max(rules.least_mtu);
            let opening = rule == IcmpRule::FreeBsd && state == State::SynSent;
            (!opening || mtu < unopened_mtu(config)).then_some(mtu)
        }
    }
}

/// Before the handshake tells more, FreeBSD's `t_maxseg` is the default, and the packet as
/// large.
fn unopened_mtu(config: &Config) -> u32 {
    u32::from(config.default_peer_mss) + config.path.headers()
}

impl Sender {
    /// `tcp_mtu_to_mss`: the payload of a packet of `mtu` bytes.
    fn payload_of(&self, mtu: u32) -> u32 {
        let rules = &self.config.path;
        let segment = mtu.saturating_sub(rules.headers()).min(self.path.clamp).max(rules.least_segment);
        segment.saturating_sub(self.options_len()).max(1)
    }

    /// `tcp_mss_to_mtu`.
    fn packet_of(&self, payload: u32) -> u32 {
        payload.saturating_add(self.options_len() + self.config.path.headers())
    }

    /// `tcp_sync_mss`: the segment size that follows from what is known of the path.
    pub(crate) fn sync_mss(&mut self) {
        self.path.probing.high = self.path.probing.high.min(self.path.mtu);
        let mut mss = self.payload_of(self.path.mtu);
        if self.config.transfer.sending == SendRule::Linux {
            mss = self.sequence.bound_to_half_window(mss);
        }
        if self.path.probing.enabled {
            mss = mss.min(self.payload_of(self.path.probing.low));
        }
        let old = self.negotiated.set_mss(mss);
        if old == mss {
            return;
        }
        if self.config.path.icmp == IcmpRule::Linux {
            self.rescale_window(old, mss);
        }
        // Any window holds a segment, and no threshold is below two (RFC 5681 section 3.1).
        let mss = u64::from(mss);
        self.loss.recovery.hold_a_segment(mss);
        let Window { cwnd, ssthresh } = self.cc.window();
        if cwnd < mss || ssthresh < 2 * mss {
            self.cc.take_over(Window { cwnd: cwnd.max(mss), ssthresh: ssthresh.max(2 * mss) });
        }
    }

    /// Linux's windows are so many segments, of whatever size.
    fn rescale_window(&mut self, old: u32, new: u32) {
        let scaled = |bytes: u64| (u128::from(bytes) * u128::from(new) / u128::from(old.max(1))) as u64;
        self.loss.recovery.rescale(scaled);
        let Window { cwnd, ssthresh } = self.cc.window();
        let ssthresh = if ssthresh == Window::INFINITE { ssthresh } else { scaled(ssthresh) };
        self.put_window(Window { cwnd: scaled(cwnd).max(u64::from(new)), ssthresh });
    }

    /// Sets the controller's window, if the endpoint may.
    fn put_window(&mut self, window: Window) {
        if !self.loss.recovery.whole_control() {
            self.cc.take_over(window);
        }
    }

    /// `tcp_current_ssthresh`.
    fn current_ssthresh(&self) -> u64 {
        let Window { ssthresh, .. } = self.cc.window();
        if self.loss.recovery.in_reduction() { ssthresh } else { ssthresh.max(self.cwnd() / 4 * 3) }
    }

    /// The connection is open.
    pub(crate) fn begin_probing(&mut self, now: Time, is_passive: bool) {
        if self.config.path.probing == MtuProbing::Off {
            return;
        }
        let enabled = self.config.path.probing == MtuProbing::Always;
        self.path.probing = Probing {
            enabled,
            low: self.packet_of(self.config.path.base_segment),
            high: self.path.clamp + self.config.path.headers(),
            since: now,
            ..Probing::default()
        };
        // A listening socket's child begins with the MTU of the route (tcp_v4_syn_recv_sock comes
        // before tcp_mtup_init).
        if !is_passive {
            self.sync_mss();
        }
    }

    /// A message says that a packet was too big. Returns `true` if the SYN is to be sent again.
    pub(crate) fn packet_too_big(&mut self, now: Time, state: State, error: &IcmpError) -> bool {
        let rules = &self.config.path;
        if !rules.discovery || rules.locked {
            return false;
        }
        let Some(mtu) = told_mtu(&self.config, state, error) else { return false };
        let timeout = rules.timeout;
        if mtu >= self.path.mtu {
            if mtu == self.path.mtu && self.path.expires_at != Time::NEVER {
                self.path.keep_estimate(now, timeout);
            }
            return false;
        }
        self.path.mtu = mtu;
        self.path.expires_at = timeout.map_or(Time::NEVER, |timeout| now + timeout);
        if state.is_opening() {
            // tcp_mtudisc sends at once. ICMPv6 changes the host cache for what TCP ignores, too
            // (icmp6_mtudisc_update).
            let freebsd = self.config.path.icmp == IcmpRule::FreeBsd && mtu < unopened_mtu(&self.config);
            // tcp_simple_retransmit: what went with the SYN is lost, and the SYN goes again.
            let linux = self.config.path.icmp == IcmpRule::Linux && self.sequence.nxt() > 1;
            return state == State::SynSent && (freebsd || linux);
        }
        self.sync_mss();
        // tcp_mtudisc sends all again from the first unacknowledged byte on. So does the BSDs'
        // recovery, which counts what lies before the next byte to send again, and no more.
        if self.config.path.icmp == IcmpRule::FreeBsd || self.loss.bsd_episodes() {
            self.loss.board.lose_larger(0);
        }
        self.resend_too_large(now);
        false
    }

    /// The estimate has held for long enough.
    pub(crate) fn forget_path_mtu(&mut self, state: State) {
        self.path.expires_at = Time::NEVER;
        self.path.mtu = self.path.route;
        if !matches!(state, State::Closed | State::SynSent | State::SynReceived) {
            self.sync_mss();
        }
    }

    /// `tcp_simple_retransmit`: what is too large for the path is lost, and sent again in smaller
    /// pieces. That is no congestion: the window stays.
    fn resend_too_large(&mut self, now: Time) {
        self.loss.board.lose_larger(self.negotiated.mss());
        if self.loss.board.lost_segments() == 0 {
            return;
        }
        if !self.negotiated.sack() {
            let most = self.loss.board.segments() - self.loss.board.lost_segments();
            self.loss.recovery.limit_emulated_sacks(most);
        }
        self.tell_losses(now);
        if self.loss.recovery.state() != CaState::Loss {
            let window = Window { cwnd: self.cwnd(), ssthresh: self.current_ssthresh() };
            self.loss.begin_loss_without_reduction(now, self.sequence.nxt());
            self.put_window(window);
        }
        self.loss.recovery.resend_lost();
    }

    /// `tcp_mtu_probe`, asked before new data is sent: `available` bytes are unsent, `window` of
    /// them fit the peer's window; `reports` if ACKs have something to report.
    #[cold]
    pub(crate) fn mtu_probe(&mut self, now: Time, available: u64, window: u64, reports: bool) -> ProbeStep {
        let mss = u64::from(self.negotiated.mss());
        let cwnd = self.cwnd() / mss;
        let ready = self.path.probing.size == 0 && self.loss.recovery.state() == CaState::Open;
        if !ready || cwnd < LEAST_WINDOW || reports || self.loss.recovery.probe().is_unbounded() {
            return ProbeStep::No;
        }
        let Probing { low, high, .. } = self.path.probing;
        let payload = self.payload_of(low.midpoint(high));
        let narrow = high.saturating_sub(low) < self.config.path.probe_threshold;
        if narrow || payload > self.payload_of(high) {
            self.probe_anew(now);
            return ProbeStep::No;
        }
        let needed = u64::from(payload) + (u64::from(self.loss.detector.threshold()) + 1) * mss;
        if available < needed
            || self.sequence.window() < needed
            || self.queue.ends_record_within(self.sequence.nxt(), u64::from(payload))
        {
            return ProbeStep::No;
        }
        if window < needed {
            return ProbeStep::Wait;
        }
        match self.loss.segments_in_flight(&self.negotiated) {
            0 if cwnd < 2 => ProbeStep::No,
            in_flight if in_flight + 2 > cwnd => ProbeStep::Wait,
            _ => ProbeStep::Send(payload),
        }
    }

    /// The probe that [`Sender::mtu_probe`] asked for has left from `start` on. It counts as two
    /// segments.
    pub(crate) fn mtu_probe_sent(&mut self, start: u64, payload: u32) {
        let size = self.packet_of(payload);
        let probing = &mut self.path.probing;
        (probing.size, probing.start, probing.end) = (size, start, start + u64::from(payload));
        let Window { cwnd, ssthresh } = self.cc.window();
        self.put_window(Window { cwnd: cwnd.saturating_sub(u64::from(self.negotiated.mss())), ssthresh });
    }

    /// `tcp_mtu_check_reprobe`.
    fn probe_anew(&mut self, now: Time) {
        if now.since(self.path.probing.since) >= self.config.path.probe_interval {
            let (low, high) = (self.packet_of(self.negotiated.mss()), self.path.clamp + self.config.path.headers());
            let probing = &mut self.path.probing;
            (probing.size, probing.low, probing.high, probing.since) = (0, low, high, now);
        }
    }

    /// New data was acknowledged while a probe is in flight (`tcp_mtup_probe_success`): packets of
    /// its size pass. The window stays the same in bytes.
    #[cold]
    pub(crate) fn on_ack_of_mtu_probe(&mut self) {
        if self.sequence.una() < self.path.probing.end {
            return;
        }
        let size = u64::from(self.path.probing.size.max(1));
        let old = u64::from(self.negotiated.mss());
        let segments = |bytes: u64| bytes / old;
        let cwnd = (segments(self.cwnd()) * u64::from(self.packet_of(self.negotiated.mss())) / size).max(1);
        let Window { ssthresh, .. } = self.cc.window();
        self.path.probing.low = self.path.probing.size;
        self.path.probing.size = 0;
        self.sync_mss();
        let mss = u64::from(self.negotiated.mss());
        let ssthresh = match ssthresh {
            Window::INFINITE.. => ssthresh,
            _ if self.loss.recovery.in_reduction() => segments(ssthresh) * mss,
            _ => segments(ssthresh).max(cwnd * 3 / 4) * mss,
        };
        self.put_window(Window { cwnd: cwnd * mss, ssthresh });
    }

    /// Returns `true` if the loss in hand is that of a probe alone: then it was too large
    /// (`tcp_mtup_probe_failed`), and nothing is reduced.
    #[cold]
    pub(crate) fn mtu_probe_failed(&mut self, now: Time) -> bool {
        let Probing { size, start, .. } = self.path.probing;
        if size == 0 || self.loss.recovery.state() >= CaState::Cwr || self.sequence.una() != start {
            return false;
        }
        self.path.probing.high = size - 1;
        self.path.probing.size = 0;
        let Window { cwnd, ssthresh } = self.cc.window();
        self.put_window(Window { cwnd: cwnd + u64::from(self.negotiated.mss()), ssthresh });
        self.resend_too_large(now);
        true
    }

    /// The retransmission timer has expired. Several times in a row, it may be that large packets
    /// vanish without a message (`tcp_mtu_probing`).
    #[cold]
    pub(crate) fn suspect_black_hole(&mut self, now: Time) {
        let rules = &self.config.path;
        let timeouts = self.rtt.timeouts();
        let enough = match self.config.states.give_up {
            GiveUp::Retries => timeouts >= rules.black_hole_retries,
            GiveUp::ModelTime(least) => {
                let resending = now.since(self.timer.resending_since());
                timeouts > 0 && resending >= self.config.model_time(rules.black_hole_retries, least)
            }
        };
        if !enough {
            return;
        }
        if self.path.probing.enabled {
            let rules = &self.config.path;
            let half = self.payload_of(self.path.probing.low) / 2;
            let segment = half.min(rules.base_segment).max(rules.probe_floor).max(rules.least_segment);
            self.path.probing.low = self.packet_of(segment);
        } else {
            (self.path.probing.enabled, self.path.probing.since) = (true, now);
        }
        self.sync_mss();
    }
}
