//! The sending half of a connection: its state, and what the rest of the endpoint asks of it.

use std::any::Any;
use std::sync::Arc;

use ackclock_cc::{CongestionControl, Flight, Learner, Shared, Subflow, Window};
use ackclock_packet::Segment;
use ackclock_units::{Span, Time};

use crate::connection::negotiated::Negotiated;
use crate::connection::remembered::Metrics;
use crate::ecn::EcnState;
use crate::loss::Loss;
use crate::receiver::Receiver;
use crate::send::burst::Burst;
use crate::send::counters::Counters;
use crate::send::limited::LimitClock;
use crate::send::observer::Observer;
use crate::send::offload::Units;
use crate::send::pacing::{NANOS, Pacer, UNPACED};
use crate::send::persist::Persist;
use crate::send::pmtu::Path;
use crate::send::retransmission_timer::RetransmissionTimer;
use crate::send::rtt::RttEstimator;
use crate::send::segmentation::Queue;
use crate::send::sequence::SendSequence;
use crate::send::validation::Validation;
use crate::send::validation::WindowUse;
use crate::send::writing::Writing;
use crate::{Config, LossCounts, Pacing, Scoreboard, SentAs, Stamp, Stats};

/// The sending half of a connection: the stream, its segments in flight, the congestion window and
/// the timers. Fields that most segments touch lie together.
#[derive(Debug)]
#[repr(C)]
pub struct Sender {
    // Every visit.
    pub(crate) burst: Burst,
    /// Segments may take the short way of `prediction`.
    pub(crate) predicts: bool,
    /// The timer of a probe was set with the ACK in hand, and new data does not change it.
    pub(crate) probe_stands: bool,
    /// Why the last data segment was sent.
    pub(crate) sent_as: SentAs,
    /// The SYN or its answer was presumably lost.
    pub(crate) syn_lost: bool,
    /// The number of earlier ACKs at the time of the last one, or of the last transmission.
    pub(crate) order: u32,
    pub(crate) sequence: SendSequence,
    pub(crate) negotiated: Negotiated,
    /// The time of the last ACK or timer.
    pub(crate) now: Time,
    /// The RTT sample of the ACK in hand.
    pub(crate) latest_sample: Option<Span>,
    pub(crate) timer: RetransmissionTimer,
    pub(crate) persist: Persist,
    pub(crate) loss: Loss,
    pub(crate) counters: Counters,

    // The parts of sending.
    /// The endpoint's.
    pub(crate) config: Arc<Config>,
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) observer: Observer,
    pub(crate) window_use: WindowUse,
    pub(crate) rtt: RttEstimator,
    pub(crate) stats: Stats,
    pub(crate) queue: Queue,
    pub(crate) held: LimitClock,
    pub(crate) ecn: EcnState,
    pub(crate) pacer: Pacer,
    pub(crate) validation: Validation,
    pub(crate) writing: Writing,
    pub(crate) path: Path,

    // Parts that few connections have.
    /// Its units of segments, where it sends such.
    pub(crate) units: Option<Box<Units>>,
}

impl Sender {
    /// The endpoint's settings have changed.
    #[cold]
    pub(crate) fn configured(&mut self, config: &Arc<Config>) {
        self.config = Arc::clone(config);
        self.loss.config = Arc::clone(config);
    }

    /// Nothing is sent yet; `isn` and `ts_offset` as [`crate::Endpoint::new`] has them.
    pub(crate) fn new(config: Arc<Config>, cc: Box<dyn CongestionControl>, isn: u32, ts_offset: u32) -> Sender {
        let observer = Observer::new(&*cc);
        let needs = observer.needs;
        Sender {
            burst: Burst::default(),
            predicts: false,
            probe_stands: false,
            sent_as: SentAs::New,
            syn_lost: false,
            sequence: SendSequence::new(isn),
            negotiated: Negotiated::new(u32::from(config.mss).max(1), ts_offset),
            now: Time::ZERO,
            order: 0,
            latest_sample: None,
            timer: RetransmissionTimer::new(),
            persist: Persist::default(),
            loss: Loss::new(Arc::clone(&config), needs.delivery_rate, needs.whole_control),
            counters: Counters::new(),
            cc,
            observer,
            window_use: WindowUse::default(),
            rtt: RttEstimator::new(),
            stats: Stats::default(),
            queue: Queue::new(config.send_buffer),
            held: LimitClock::default(),
            ecn: EcnState::new(needs.ecn),
            pacer: Pacer::default(),
            validation: Validation::default(),
            writing: Writing::default(),
            path: Path::new(&config),
            units: None,
            config,
        }
    }

    /// Bytes of the options that every data segment carries.
    #[inline]
    pub(crate) fn options_len(&self) -> u32 {
        self.negotiated.options_len() + u32::from(self.path.reserved)
    }

    /// The retransmission timeout, back-off included.
    #[inline]
    pub fn rto(&self) -> Span {
        self.rtt.rto(&self.config)
    }

    /// The sequence numbers sent, acknowledged and allowed by the peer.
    #[inline]
    pub fn sequence(&self) -> &SendSequence {
        &self.sequence
    }

    /// The round trips measured.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The congestion state, with the segments in flight.
    #[inline]
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// The segments in flight.
    #[inline]
    pub fn scoreboard_mut(&mut self) -> &mut Scoreboard {
        &mut self.loss.board
    }

    /// The limit that holds the sender back, if it has stopped, and the earlier ones.
    pub fn limits(&self) -> &LimitClock {
        &self.held
    }

    /// The largest packet that the path is believed to take, bytes.
    pub fn path_mtu(&self) -> u32 {
        self.path.mtu
    }

    /// The segment size in use, bytes.
    pub fn mss(&self) -> u32 {
        self.negotiated.mss()
    }

    /// The payload of a full segment: the MSS, less what the AccECN option takes.
    #[inline]
    pub fn full_payload(&self) -> u32 {
        let mss = self.negotiated.mss();
        if self.ecn.has_no_option() {
            return mss;
        }
        self.ecn.payload_beside_option(&self.config, self.now, self.rtt.srtt(), mss)
    }

    /// Segments that arrived and were as expected ([`Config::header_prediction`]).
    pub fn predicted_segments(&self) -> u64 {
        self.counters.predicted
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The congestion controller.
    pub fn congestion_control(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// Bytes believed to be in the network (RFC 6675 `pipe`).
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.loss.pipe(&self.negotiated)
    }

    /// The counts after the last call.
    pub fn loss_counts(&self) -> LossCounts {
        LossCounts {
            packets_out: self.loss.board.segments(),
            sacked_out: self.loss.sacked_segments(&self.negotiated),
            fackets_out: self.loss.board.segments_to_highest(),
            retrans_out: self.loss.board.resent_segments(),
            lost_out: self.loss.board.lost_segments(),
            reordering: self.loss.detector.threshold(),
            reord_seen: self.loss.detector.reorderings(),
        }
    }

    /// Returns `true` if the segment that was sent last is of the same unit as the one before it.
    pub fn continues_unit(&self) -> bool {
        self.units.as_ref().is_some_and(|units| units.continues(self.stats.sent_packets))
    }

    /// Why the last data segment was sent that [`crate::Endpoint::transmit`] wrote.
    #[inline]
    pub fn sent_as(&self) -> SentAs {
        self.sent_as
    }

    // A layer above, with several subflows.

    /// Every segment from now on carries `bytes` bytes of options of a layer above, which is to add
    /// them: full segments are smaller by as much.
    pub fn reserve_options(&mut self, bytes: u8) {
        self.path.reserved = bytes;
    }

    /// No segment has bytes of both what was written and what will be. Not with
    /// [`crate::Config::header_prediction`].
    pub fn end_record(&mut self) {
        if self.sequence.written() + 1 > self.sequence.nxt() {
            self.queue.end_record(self.sequence.written() + 1);
        }
    }

    /// Bytes that the congestion window has room for beyond what is in the network, waits to be
    /// sent, or is to be sent again.
    pub fn window_room(&self) -> u64 {
        let waits = self.sequence.unsent() + self.loss.board.lost().saturating_sub(self.loss.board.resent());
        self.cwnd().saturating_sub(self.window_used() + waits)
    }

    /// Returns `true` if the controller asks for the state of its siblings
    /// ([`ackclock_cc::Needs::siblings`]).
    pub fn is_coupled(&self) -> bool {
        self.observer.needs.siblings
    }

    /// The state of this subflow that the controllers of its siblings may read.
    pub fn as_sibling(&mut self) -> Subflow {
        let Window { cwnd, ssthresh } = self.cc.window();
        let mss = self.negotiated.mss();
        let shared = self.cc.coupled().map_or_else(Shared::default, |cc| cc.shared());
        Subflow { cwnd, ssthresh, mss, srtt: self.rtt.srtt(), min_rtt: self.rtt.min(), shared }
    }

    /// Tells its controller of all subflows of the connection, of which it is number `own`.
    pub fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        if let Some(cc) = self.cc.coupled() {
            cc.couple(own, subflows);
        }
    }

    /// The congestion window becomes this one, for a reason that is not of this path.
    pub fn reduce_window(&mut self, window: Window) {
        self.burst.end();
        self.cc.take_over(window);
    }

    /// The controller, if its decisions come from outside or from a policy, with what it sees of
    /// the sender. Its decisions apply from the next [`crate::Endpoint::transmit`] on.
    pub fn learner(&mut self, now: Time) -> Option<(&mut Learner, Flight)> {
        self.burst.end();
        let flight = self.flight(now);
        let cc: &mut dyn Any = &mut *self.cc;
        Some((cc.downcast_mut()?, flight))
    }

    /// The window and all that follows from it are set up: data may be sent. Metrics of the
    /// destination may be `recalled`.
    pub(crate) fn begin_sending(&mut self, now: Time, is_passive: bool, recalled: Option<Box<Metrics>>) {
        self.bound_segment();
        if self.config.transfer.marks_writes() {
            self.mark_early_writes();
        }
        self.begin_probing(now, is_passive);
        let flight = self.flight(now);
        self.cc.on_established(&flight);
        if let Some(metrics) = recalled {
            self.apply(&metrics);
        }
        self.cc.on_ecn(self.ecn.usable_feedback());
        if self.cc.needs() != self.observer.needs {
            self.adopt_needs();
        }
        self.decide_pacing(now);
        self.begin_validation(now);
        self.review_prediction();
    }

    /// Adds the AccECN option to a segment that is ready otherwise; not if the socket `is_forgotten`.
    #[inline]
    pub(crate) fn add_option(&mut self, now: Time, out: &mut Segment, is_forgotten: bool, receiver: &Receiver) {
        if self.ecn.has_no_option() {
            return;
        }
        let due = !is_forgotten && self.ecn.is_option_due(&self.config, now, self.rtt.srtt());
        let most = 20 + self.options_len() + self.negotiated.mss();
        self.ecn.report_bytes(now, out, due, most, receiver);
    }

    /// The time by which a segment that is sent now is ordered among others: what different ACKs
    /// release never has the same, even if they arrive at one time; what one ACK releases has
    /// (`tcp_mstamp_refresh`).
    #[inline]
    pub fn stamp(&self, now: Time) -> Stamp {
        Stamp { at: now, order: if now == self.now { self.order } else { 0 } }
    }

    // Pacing.

    /// No more than so many bytes a second leave from now on; `None` for no bound. Setting one turns
    /// pacing on.
    pub(crate) fn bound_pacing_rate(&mut self, bytes_per_second: Option<u64>) {
        self.burst.end();
        self.pacer.bound(bytes_per_second);
        // sk_pacing_status stays SK_PACING_NEEDED.
        if !self.pacer.is_on() {
            self.decide_pacing(self.now);
        }
    }

    /// Decides about pacing, when a connection opens and when its controller changes.
    pub(crate) fn decide_pacing(&mut self, now: Time) {
        let asked = self.cc.pacing_rate(&self.flight(now));
        self.pacer.decide(self.config.pacing.when, asked.is_some());
        self.update_pacing_rate();
    }

    /// The window's rate, after an ACK (`tcp_update_pacing_rate`).
    #[inline]
    pub(crate) fn update_pacing_rate(&mut self) {
        if self.pacer.is_on() {
            self.pacer.follow(self.rate_of_window());
        }
        if self.units.is_some() {
            self.update_rate_of_units();
        }
    }

    /// The rate from which the size of units follows.
    #[cold]
    fn update_rate_of_units(&mut self) {
        let rate = self.rate_of_units();
        self.units.iter_mut().for_each(|units| units.rate = rate);
    }

    /// A share of the window in each round trip, bytes a second; `None` before there is an RTT.
    pub fn rate_of_window(&self) -> Option<u64> {
        let Pacing { ss_ratio, ca_ratio, .. } = self.config.pacing;
        self.rate_by_ratios(ss_ratio, ca_ratio)
    }

    /// The rate from which the size of units follows, bytes a second (`sk_pacing_rate`, whether
    /// there is pacing or not); `None` before there is an RTT.
    pub(crate) fn rate_of_units(&self) -> Option<u64> {
        let own = || match self.config.transfer.offload.twice_the_window {
            true => self.rate_by_ratios(200, 200),
            false => self.rate_of_window(),
        };
        let asked = self.cc.pacing_rate(&self.flight(self.now)).map(|rate| rate.as_bps() / 8);
        let rate = asked.or_else(own)?;
        Some(self.pacer.bounded(rate))
    }

    fn rate_by_ratios(&self, ss_ratio: u32, ca_ratio: u32) -> Option<u64> {
        let srtt = self.rtt.srtt()?;
        let cwnd = self.cwnd();
        let ratio = if cwnd < self.cc.window().ssthresh / 2 { ss_ratio } else { ca_ratio };
        let in_flight = cwnd.max(self.loss.window_outstanding(&self.negotiated));
        let rate = u128::from(in_flight) * u128::from(ratio) * (NANOS / 100) / u128::from(srtt.as_nanos().max(1));
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// A segment with `payload` bytes from `seq` on leaves: the next one has to wait, or the next
    /// unit if it begins one.
    #[inline(never)]
    pub(crate) fn pace(&mut self, flight: &Flight, seq: u64, payload: u32) {
        let (span, sent) = ((seq, seq + u64::from(payload)), self.stats.sent_packets);
        let bytes = match &self.units {
            Some(units) => units.departing(flight.now, span, self.sequence.nxt(), sent),
            None => Some(payload.into()),
        };
        let Some(bytes) = bytes else { return };
        let asked = self.cc.pacing_rate(flight);
        let segments = bytes.div_ceil(u64::from(self.negotiated.mss())).max(1);
        let counts = sent + segments >= UNPACED;
        self.pacer.departs(flight.now, bytes, asked, counts);
    }

    /// Returns `true` if data waits for its time. The first retransmission after a timeout and a
    /// window probe do not.
    #[inline(never)]
    pub(crate) fn waits_for_release(&mut self, now: Time) -> bool {
        let urgent = self.persist.has_expired() || self.loss.recovery.is_first_after_timeout();
        let waits = self.pacer.is_early(now) && !urgent;
        let held = waits && self.has_data_to_send();
        self.pacer.hold(held);
        waits
    }

    fn has_data_to_send(&mut self) -> bool {
        self.sequence.unsent() > 0
            || self.sequence.is_closed() && !self.sequence.is_fin_sent()
            || self.loss.board.next_lost().is_some()
    }

    /// The rate at which segments leave, bytes a second; `u64::MAX` without a bound.
    pub(crate) fn told_pacing_rate(&self, now: Time) -> u64 {
        self.paced_bps(now).map_or(u64::MAX, |bits| bits / 8)
    }

    /// The rate at which segments leave, bits/s; `None` without a bound.
    pub fn pacing_bps(&self) -> Option<u64> {
        self.paced_bps(self.now)
    }

    fn paced_bps(&self, now: Time) -> Option<u64> {
        let asked = || self.cc.pacing_rate(&self.flight(now));
        self.pacer.is_on().then(|| self.pacer.rate(asked())).flatten()
    }
}
