//! The sender's part of what an acknowledgment does: `connection::input` has the steps.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::ecn::Delivered;
use crate::loss::AckContext;
use crate::loss::DuplicateReport;
use crate::loss::scoreboard::{Progress, Whole};
use crate::send::Sender;
use crate::{Acknowledgment, CaState, PeerWindow, RttRule};

impl Sender {
    /// Nothing was in flight: the receiver of a stream. Only the window can have changed.
    #[inline]
    pub(crate) fn input_window(&mut self, now: Time, segment: &Segment, left: u64, ack: u64) {
        let window_before = self.sequence.window();
        self.take_stream_segment(now, segment, left, ack);
        self.reopen_window(now, window_before);
        self.persist.answered(now, &self.config, &self.rtt);
    }

    /// Takes in an acceptable ACK up to `ack`, on a segment that begins at `left`; `echo` if it
    /// echoes a mark. Returns how many units it acknowledges.
    #[inline(always)]
    pub(crate) fn input_ack(&mut self, now: Time, segment: &Segment, left: u64, ack: u64, echo: bool) -> u64 {
        let mut context = self.begin_ack(now, segment);
        self.account(segment, left, ack, &mut context);
        self.sample(segment, echo, &mut context);
        self.on_ack(&context);
        self.finish_ack(&context);
        context.progress.acked
    }

    /// The congestion state has reacted: rates, timers and the window follow.
    #[inline(always)]
    fn finish_ack(&mut self, context: &AckContext) {
        let now = context.now;
        self.end_rate_sample(now);
        self.update_pacing_rate();
        if self.loss.restarts_timer_after(context) {
            self.restart_timer_by_ack(now);
        }
        self.reopen_window(now, context.window_before);
        self.persist.answered(now, &self.config, &self.rtt);
    }

    /// Notes the state with which the ACK in hand is compared.
    #[inline(always)]
    fn begin_ack(&mut self, now: Time, segment: &Segment) -> AckContext {
        if self.loss.board.samples_rates() {
            self.check_app_limited(now, self.sequence.written());
        }
        self.take_time(now);
        let in_detail = self.loss.linux_episodes();
        let (mut echo, mut min_rtt) = (None, Span::ZERO);
        if in_detail || self.loss.recovery.state() == CaState::Loss {
            let age = self.negotiated.echo_age(now, segment);
            echo = age.and_then(|age| (now.as_nanos() / 1_000_000).checked_sub(u64::from(age)));
        }
        if in_detail {
            min_rtt = self.loss.detector.min_rtt();
        }
        let has_data = segment.sequence_len() > 0;
        let (order, reported) = (self.order, self.loss.board.reported());
        AckContext {
            now,
            una_before: self.sequence.una(),
            window_before: self.sequence.window(),
            outstanding_before: !self.loss.board.is_empty(),
            losses_before: self.loss.board.losses(),
            units_lost_before: self.loss.board.units_declared_lost(),
            is_old: false,
            has_data,
            not_duplicate: has_data,
            ece: false,
            duplicates: DuplicateReport::default(),
            progress: Progress { order, in_detail, min_rtt, echo, reported, ..Progress::new(now) },
        }
    }

    /// The scoreboard takes in what the ACK reports and acknowledges, and the sender its window.
    #[inline(always)]
    fn account(&mut self, segment: &Segment, left: u64, ack: u64, context: &mut AckContext) {
        // SACKed data is older than the data that the same ACK acknowledges.
        if self.negotiated.sack() && !segment.sack.is_empty() {
            context.duplicates = self.take_sack(segment, ack, &mut context.progress);
        }
        let una = context.una_before;
        let before = self.loss.reports_before();
        if ack > una {
            self.advance(ack, &mut context.progress);
        }
        self.loss.learn_from_ack(&self.negotiated, &self.sequence, context, before);
        if ack >= una {
            let window = u64::from(segment.window) << self.negotiated.peer_shift();
            context.not_duplicate |= ack > una || self.sequence.is_newer(left) || window > self.sequence.window();
            self.set_window(segment, left, ack, ack > una);
        } else {
            context.is_old = true;
        }
    }

    /// Everything below `ack` has arrived.
    #[inline(always)]
    pub(crate) fn advance(&mut self, ack: u64, progress: &mut Progress) {
        self.loss.board.acknowledge(ack, progress);
        self.sequence.acknowledge(ack);
        self.rtt.progress();
        self.persist.acknowledged();
        if self.path.probing.size > 0 {
            self.on_ack_of_mtu_probe();
        }
    }

    /// The round trip, marks, and what was delivered; the controller hears of the ACK if it asked
    /// to.
    #[inline(always)]
    fn sample(&mut self, segment: &Segment, echo: bool, context: &mut AckContext) {
        let now = context.now;
        let progress = &context.progress;
        self.take_rtt_sample(now, segment, progress);
        let marks = self.take_marks(segment, echo, progress, context.outstanding_before);
        if self.ecn.hears_marks() {
            self.stats.ece_acks += 1;
            // Linux leaves an ACK below SND.UNA before it looks at ECE (`tcp_ack`).
            context.ece = !(context.is_old && progress.in_detail);
        }
        self.counters.progressed(progress, marks);
        self.queue.acked = true;
        self.stats.reordering_max = self.stats.reordering_max.max(progress.reordering);
        if progress.acked > 0 {
            self.measure_use(now);
        }
        if self.observer.needs.arrivals {
            let news = (progress.acked, progress.delivered);
            self.tell_arrival(now, segment, news, context.una_before, context.window_before);
        }
    }

    /// The number of marked segments that an ACK reports, once it is known what it delivers. `echo`
    /// if its flags show that it reports some, `outstanding` if anything was in flight.
    #[inline]
    fn take_marks(&mut self, segment: &Segment, echo: bool, progress: &Progress, outstanding: bool) -> u64 {
        if self.ecn.mode() != EcnFeedback::Accurate {
            return self.ecn.take_echo(echo, progress);
        }
        let delivered = Delivered {
            newer: self.negotiated.ahead_of_recent(segment).is_some_and(|ahead| ahead > 0),
            outstanding,
            // Without SACK, duplicate ACKs have reported some before.
            packets: progress.delivered_segments.saturating_sub(self.loss.recovery.emulated_sacks()),
            is_clear: self.negotiated.sack() || matches!(self.loss.recovery.state(), CaState::Open | CaState::Cwr),
            mss: self.negotiated.mss().into(),
            sent: self.counters.bytes_sent,
        };
        self.ecn.take_counted(segment, progress, &delivered)
    }

    /// An ACK has arrived at `now`: what it releases comes after what was sent before, at this time
    /// too.
    #[inline]
    pub(crate) fn take_time(&mut self, now: Time) {
        let is_first = now > self.now.max(self.sequence.last_sent_at());
        self.order = if is_first { 0 } else { self.order.saturating_add(1) };
        self.now = now;
        self.probe_stands = false;
    }

    #[inline]
    fn take_rtt_sample(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let backoff = self.rtt.backoff();
        self.take_rtt_sample_by_rule(now, segment, progress);
        let kept = progress.covers_resent && self.loss.recovery.state() == CaState::Loss;
        if backoff > 0 && kept && self.config.transfer.timer.repeats_keep_backoff {
            self.rtt.keep_backoff(backoff);
        }
    }

    fn take_rtt_sample_by_rule(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        if self.config.transfer.rtt == RttRule::Linux {
            self.take_rtt_sample_linux(now, segment, progress);
            return;
        }
        // A segment that is acknowledged along with a retransmission may have waited for it at the
        // receiver.
        let sent_at = progress.newest_sent_at.filter(|_| !progress.covers_resent);
        // tcp_do_segment measures no duplicate ACK.
        let sent_at = sent_at.filter(|_| progress.acked > 0 || !self.loss.bsd_episodes());
        self.latest_sample = sent_at.map(|sent_at| now.since(sent_at));
        if let Some(sent_at) = progress.last_sacked_at.or(sent_at) {
            self.loss.detector.measured(now, now.since(sent_at));
        }
        if let Some(rtt) = self.latest_sample {
            self.sample_rtt(rtt);
        } else if let Some(rtt) = self.negotiated.echoed_rtt(now, segment).filter(|_| progress.acked > 0) {
            self.loss.detector.measured(now, rtt);
            self.sample_rtt(rtt);
        }
    }

    /// `tcp_ack_update_rtt`: the timeout is for the first segment acknowledged, or else SACKed; the
    /// controller and the shortest round trip take the last one.
    fn take_rtt_sample_linux(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let once = !progress.acked_resent;
        let first = progress.first_acked_at.filter(|_| once).or(progress.first_sacked_at);
        let last = progress.last_sacked_at.or(progress.last_acked_at.filter(|_| once));
        let (first, last) = match (first, last) {
            (Some(first), Some(last)) => (Some(now.since(first)), Some(now.since(last))),
            _ => {
                let echoed = self.negotiated.echoed_rtt(now, segment).filter(|_| progress.acked > 0);
                (echoed, echoed)
            }
        };
        self.latest_sample = last;
        if let (Some(first), Some(last)) = (first, last) {
            self.loss.detector.measured(now, last);
            self.rtt.note_min(last);
            self.sample_rtt(first);
        }
    }

    /// RFC 9293 section 3.10.7.4: the window of the newest segment counts. A segment with a new ACK
    /// is new, even if it repeats old data: without its window, the right edge would move by what
    /// it acknowledges.
    #[inline]
    pub(crate) fn set_window(&mut self, segment: &Segment, left: u64, ack: u64, advances: bool) {
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.negotiated.peer_shift() };
        let window = u64::from(segment.window) << shift;
        let same = self.sequence.is_level(left)
            && match self.config.transfer.peer_window {
                PeerWindow::Newest => self.sequence.window_ack() <= ack,
                PeerWindow::Larger => window > self.sequence.window(),
                PeerWindow::LargerOrClosed => window > self.sequence.window() || window == 0,
            };
        if advances || self.sequence.is_newer(left) || same {
            self.sequence.set_window(window, left, ack);
        }
    }

    /// The window has opened: waiting for it is over, and a probe that was not taken goes out again
    /// at once.
    fn reopen_window(&mut self, now: Time, window_before: u64) {
        if self.sequence.window() > window_before && self.persist.window_opened() {
            self.restart_retransmit_timer(now);
        }
    }

    /// The meaning of an acceptable ACK that acknowledged so many units.
    #[inline]
    pub(crate) fn acknowledgment(&self, acked: u64) -> Acknowledgment {
        Acknowledgment { acked, rtt: self.latest_sample, is_ack: true }
    }

    // Header prediction: the short way of `connection::input`.

    /// Returns `true` if a segment has an ordinary header, and nothing that this end has sent is
    /// missing or waited for.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self, segment: &Segment, ecn: Ecn) -> bool {
        self.has_ordinary_header(segment, ecn) && self.is_quiet()
    }

    /// Nothing that this end has sent is missing or waited for.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.loss.recovery.is_quiet() && self.persist.is_quiet() && self.path.probing.size == 0
    }

    /// Returns `true` if a segment has an ordinary header.
    #[inline(always)]
    pub(crate) fn has_ordinary_header(&self, segment: &Segment, ecn: Ecn) -> bool {
        segment.sack.is_empty() && self.has_plain_header(segment, ecn)
    }

    /// Returns `true` if a segment has a header that is ordinary but for SACK blocks.
    #[inline(always)]
    pub(crate) fn has_plain_header(&self, segment: &Segment, ecn: Ecn) -> bool {
        let flags = segment.flags.bits() & !Flags::PSH.bits();
        flags == Flags::ACK.bits()
            && self.negotiated.expects(segment.timestamps)
            && ecn != Ecn::Ce
            && (!self.ecn.may_arrive_marked() || self.ecn.is_ordinary(segment.payload.len, ecn))
    }

    /// Everything below `ack` has arrived, whole segments that were sent once.
    #[inline(always)]
    pub(crate) fn input_predicted_ack(&mut self, now: Time, segment: &Segment, left: u64, ack: u64, whole: Whole) {
        let (una, window_before) = (self.sequence.una(), self.sequence.window());
        self.sequence.acknowledge(ack);
        self.rtt.progress();
        self.persist.acknowledged();
        let window = u64::from(segment.window) << self.negotiated.peer_shift();
        self.sequence.set_window(window, left, ack);
        let rtt = now.since(whole.last.at);
        self.latest_sample = Some(rtt);
        self.loss.detector.measured(now, rtt);
        if self.config.transfer.rtt == RttRule::Linux {
            self.rtt.note_min(rtt);
            self.sample_rtt(now.since(whole.first_at));
        } else {
            self.sample_rtt(rtt);
        }
        self.ecn.hears_nothing();
        self.counters.delivered_segments += whole.segments;
        self.queue.acked = true;
        self.measure_use(now);
        if self.observer.needs.arrivals {
            self.tell_arrival(now, segment, (whole.units, whole.units), una, window_before);
        }
        self.on_whole_ack(now, &whole);
        self.update_pacing_rate();
        if !self.loss.linux_episodes() || self.loss.board.is_empty() {
            self.restart_timer_by_ack(now);
        }
    }

    /// A segment has reached the receiver of a stream, which has nothing in flight: its window
    /// counts.
    #[inline(always)]
    pub(crate) fn take_stream_segment(&mut self, now: Time, segment: &Segment, left: u64, ack: u64) {
        self.take_time(now);
        self.latest_sample = None;
        if self.sequence.is_newer(left) && !segment.flags.contains(Flags::SYN) {
            self.sequence.set_window(u64::from(segment.window) << self.negotiated.peer_shift(), left, ack);
        } else {
            self.set_window(segment, left, ack, false);
        }
        if self.loss.linux_episodes() {
            self.restart_retransmit_timer(now);
        }
    }

    /// Takes an RTT sample in.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, rtt: Span) {
        match self.config.transfer.rtt {
            RttRule::Rfc6298 => self.rtt.sample(rtt),
            RttRule::Linux => {
                self.rtt.sample_linux(rtt, self.config.min_rto.least(), self.sequence.una(), self.sequence.nxt());
            }
        }
    }
}
