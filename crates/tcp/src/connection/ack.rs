//! What an acknowledgment does (RFC 9293 section 3.10.7.4, fifth check).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Span, Time};

use crate::loss::linux::{Duplicates, Facts};
use crate::loss::scoreboard::Progress;
use crate::seq::lift;
use crate::{CaState, Endpoint, RttRule, SendRule, State};

impl Endpoint {
    /// The acknowledgment field, window and SACK option: how many units it acknowledges, with [`Endpoint::latest_sample`].
    /// `None` if the segment is to be dropped.
    pub(crate) fn input_ack(&mut self, now: Time, segment: &Segment, left: u64) -> Option<u64> {
        let ack = lift(segment.ack, self.send.isn, self.send.una);
        if self.state == State::SynReceived {
            let Some(ack) = ack.filter(|ack| (1..=self.send.nxt).contains(ack)) else {
                self.refuse(segment);
                return None;
            };
            self.set_window(segment, left, ack, true);
            self.check_first_ace(segment);
            if self.is_open_early() {
                self.complete_early(now);
            } else {
                self.establish(now);
            }
            self.latest_sample = None;
            if self.send.nxt == 1 {
                return Some(0);
            }
            // Data of ours is in flight already: it is an ACK like any other.
        }
        let una = self.send.una;
        // RFC 5961 section 5: an ACK for what was never sent, or older than the largest window, is answered and dropped.
        let ack = match ack {
            Some(ack) if ack <= self.send.nxt && ack + self.send.max_wnd >= una => ack,
            Some(ack) if ack > self.send.nxt => {
                // RFC 9293 section 3.10.7.4, fifth check.
                if self.state != State::Established || self.config.states.answer_unsent_ack {
                    self.challenge(now);
                }
                return None;
            }
            _ => {
                self.challenge(now);
                return None;
            }
        };

        let window_before = self.send.wnd;
        let echo = self.hears_echo(segment);
        if ack == una
            && self.board.is_empty()
            && segment.sack.is_empty()
            && self.recovery.state == CaState::Open
            && !echo
        {
            // Nothing was in flight: the receiver of a stream. Only the window can have changed.
            self.take_time(now);
            self.latest_sample = None;
            self.set_window(segment, left, ack, false);
            if self.linux_episodes() {
                self.restart_retransmit_timer(now);
            }
            self.reopen_window(now, window_before);
            self.window_answered(now);
            return Some(0);
        }

        if self.board.rates.is_some() {
            self.check_app_limited(now, self.send.written);
        }
        let mut progress = Progress::new(now);
        self.begin_ack(now, segment, &mut progress);
        let mut facts = Facts {
            una_before: una,
            outstanding_before: !self.board.is_empty(),
            plain: segment.sequence_len() > 0,
            ece: false,
            duplicates: Duplicates::default(),
            losses_before: self.board.losses(),
            units_lost_before: self.board.units_judged_lost(),
        };
        progress.reported = self.board.reported();
        // What SACK reports is older than what the same ACK acknowledges.
        if self.negotiated.sack() && !segment.sack.is_empty() {
            facts.duplicates = self.take_sack(segment, ack, &mut progress);
        }
        let reach = self.board.reported().map_or(0, |(_, end)| end);
        let reports = self.board.sacked_segments();
        if ack > una {
            self.board.acknowledge(ack, &mut progress);
            self.send.una = ack;
            self.rtt.progress();
            self.persist.acknowledged();
            if self.path.probing.size > 0 {
                self.on_ack_of_mtu_probe();
            }
        }
        let (low, position) = progress.low_acked;
        if self.negotiated.sack() && progress.reported.is_some_and(|(highest, _)| low < highest) {
            // A hole has filled without retransmission.
            let high = self.board.highest_sacked().unwrap_or(ack);
            self.detector.reordered(low, high, reach.saturating_sub(position), reports, self.negotiated.mss());
        }
        if progress.covers_resent && ack > una {
            self.detector.resent_acknowledged(una, ack, reports);
        }
        if ack >= una {
            facts.plain |= ack > una
                || self.send.wl1 < left
                || u64::from(segment.window) << self.negotiated.peer_shift() > self.send.wnd;
            self.set_window(segment, left, ack, ack > una);
        }
        self.take_rtt_sample(now, segment, &progress);
        let marks = self.take_marks(segment, echo, &progress, facts.outstanding_before);
        let ece = self.feedback.echo;
        facts.ece = ece;
        self.stats.ece_acks += u64::from(ece);
        self.counters.progressed(&progress, marks);
        self.queue.acked = true;
        self.stats.reordering_max = self.stats.reordering_max.max(progress.reordering);
        if progress.acked > 0 {
            self.measure_use(now);
        }
        if self.observer.needs.arrivals {
            self.tell_arrival(now, segment, &progress, una, window_before);
        }

        if self.linux_episodes() {
            if (facts.outstanding_before || facts.duplicates.segments > 0) && !self.persist.is_in_flight() {
                self.on_ack_linux(now, &progress, &facts);
            }
            self.end_rate_sample(now);
            self.update_pacing_rate();
            if self.board.is_empty() {
                self.restart_retransmit_timer(now);
            }
            if progress.acked > 0 {
                self.on_fin_acknowledged(now);
            }
            self.reopen_window(now, window_before);
            self.window_answered(now);
            return Some(progress.acked);
        }

        // RFC 5681 section 2: a duplicate ACK. With SACK it is one that reports something new (RFC 6675 section 2).
        let duplicate = ack == una
            && !self.board.is_empty()
            && !self.persist.is_in_flight()
            && if self.negotiated.sack() {
                progress.delivered > 0
            } else {
                segment.sequence_len() == 0 && self.send.wnd == window_before
            };
        if self.recovery.state != CaState::Open || progress.delivered > 0 || duplicate || ece {
            self.on_ack_progress(now, &progress, duplicate, ece);
        }
        self.end_rate_sample(now);
        self.update_pacing_rate();
        if progress.acked > 0 {
            // RFC 6298 rules 5.2 and 5.3.
            self.restart_retransmit_timer(now);
            self.on_fin_acknowledged(now);
        }
        self.reopen_window(now, window_before);
        self.window_answered(now);
        Some(progress.acked)
    }

    /// An ACK has come at `now`: what it releases comes after what was sent before, at this time too.
    #[inline]
    fn take_time(&mut self, now: Time) {
        let is_first = now > self.now.max(self.send.last_sent_at);
        self.order = if is_first { 0 } else { self.order.saturating_add(1) };
        self.now = now;
    }

    /// What the ACK in hand is held against.
    #[inline]
    fn begin_ack(&mut self, now: Time, segment: &Segment, progress: &mut Progress) {
        self.take_time(now);
        progress.order = self.order;
        progress.in_detail = self.linux_episodes();
        if progress.in_detail {
            let age = self.negotiated.echo_age(now, segment);
            progress.echo = age.and_then(|age| (now.as_nanos() / 1_000_000).checked_sub(u64::from(age)));
            progress.min_rtt = self.detector.min_rtt();
        }
    }

    /// SACK blocks that make sense, and duplicates reported in the first (RFC 2883 section 4).
    fn take_sack(&mut self, segment: &Segment, ack: u64, progress: &mut Progress) -> Duplicates {
        let mut blocks = [(0u64, 0u64); 4];
        let mut len = 0;
        let mut duplicates = Duplicates::default();
        let (isn, una) = (self.send.isn, self.send.una);
        let lifted = |wire| lift(wire, isn, una).unwrap_or(0);
        let wire = segment.sack.as_slice();
        for (i, &(left, right)) in wire.iter().enumerate() {
            let (left, right) = (lifted(left), lifted(right));
            // Nothing before the first byte can be reported, nor what was not sent.
            if left == 0 || left >= right || right > self.send.nxt {
                continue;
            }
            let within_second = || wire.get(1).is_some_and(|&(l, r)| lifted(l) <= left && right <= lifted(r));
            if i == 0 && (right <= ack || within_second()) {
                self.stats.dsacks += 1;
                duplicates = self.take_dsack(left, right, progress);
                continue;
            }
            if right > ack {
                blocks[len] = (left.max(ack), right);
                len += 1;
            }
        }
        self.board.sack(&blocks[..len], progress);
        // Not after a timeout, when what was retransmitted is not known well (`tcp_sacktag_write_queue`).
        if self.recovery.state != CaState::Loss || self.recovery.undo.marker > 0 {
            let high = self.board.highest_sacked().unwrap_or(self.send.una);
            if progress.low_sacked < high {
                let segments = self.board.segments_between(progress.low_sacked, high);
                let counts = self.detector.counts_reports();
                let reports = if counts { self.board.sacked_above(progress.low_sacked) } else { 0 };
                self.detector.reordered(progress.low_sacked, high, segments, reports, self.negotiated.mss());
            }
        }
        duplicates
    }

    /// `tcp_check_dsack`: segments reported twice, as far as our retransmissions explain them.
    fn take_dsack(&mut self, left: u64, right: u64, progress: &mut Progress) -> Duplicates {
        let mss = u64::from(self.negotiated.mss());
        if right - left > self.send.max_wnd {
            return Duplicates::default();
        }
        let segments = (right - left).div_ceil(mss).max(1);
        let probe = self.recovery.probe.high == right && right - left <= mss;
        self.recovery.duplicates += segments;
        if self.recovery.duplicates > self.stats.retransmitted_packets {
            // The network has doubled something.
            return Duplicates::default();
        }
        self.detector.duplicated(left, right, probe);
        let marker = self.recovery.undo.marker;
        if right <= self.send.una {
            // Forgotten already: the count has to do.
            self.recovery.undo.duplicated(if right > marker { segments } else { 0 });
        } else {
            let known = self.board.duplicated(left, right, marker, progress);
            self.recovery.undo.duplicated(known);
        }
        Duplicates { segments, probe }
    }

    fn take_rtt_sample(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        if self.config.transfer.rtt == RttRule::Linux {
            self.take_rtt_sample_linux(now, segment, progress);
            return;
        }
        // A segment that is acknowledged along with a retransmission may have waited for it at the receiver.
        let sent_at = progress.newest_sent_at.filter(|_| !progress.covers_resent);
        self.latest_sample = sent_at.map(|sent_at| now.since(sent_at));
        if let Some(sent_at) = progress.last_sacked_at.or(sent_at) {
            self.detector.measured(now, now.since(sent_at));
        }
        if let Some(rtt) = self.latest_sample {
            self.sample_rtt(rtt);
        } else if let Some(rtt) = self.echoed_rtt(now, segment, progress) {
            self.detector.measured(now, rtt);
            self.sample_rtt(rtt);
        }
    }

    /// `tcp_ack_update_rtt`: the timeout is for the first segment acknowledged, or else SACKed; the controller and the
    /// shortest round trip take the last one.
    fn take_rtt_sample_linux(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        let once = !progress.acked_resent;
        let first = progress.first_acked_at.filter(|_| once).or(progress.first_sacked_at);
        let last = progress.last_sacked_at.or(progress.last_acked_at.filter(|_| once));
        let (first, last) = match (first, last) {
            (Some(first), Some(last)) => (Some(now.since(first)), Some(now.since(last))),
            _ => {
                let echoed = self.echoed_rtt(now, segment, progress);
                (echoed, echoed)
            }
        };
        self.latest_sample = last;
        if let (Some(first), Some(last)) = (first, last) {
            self.detector.measured(now, last);
            self.rtt.note_min(last);
            self.sample_rtt(first);
        }
    }

    /// Karn's rule leaves no sample; the echo tells which transmission was answered, in milliseconds.
    fn echoed_rtt(&self, now: Time, segment: &Segment, progress: &Progress) -> Option<Span> {
        let ticks = self.negotiated.echo_age(now, segment)?;
        (progress.acked > 0 && ticks < 1 << 31).then(|| Span::from_millis(u64::from(ticks.max(1))))
    }

    /// RFC 9293 section 3.10.7.4: the window of the newest segment counts. A segment with a new ACK is new, even if it
    /// repeats old data: without its window, the right edge would move by what it acknowledges.
    fn set_window(&mut self, segment: &Segment, left: u64, ack: u64, advances: bool) {
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.negotiated.peer_shift() };
        let window = u64::from(segment.window) << shift;
        let same = self.send.wl1 == left
            && match self.config.transfer.sending {
                // tcp_may_update_window: two ACKs that differ in nothing else may have been reordered. A window of zero is
                // believed from release 6.6 on.
                SendRule::Linux => window > self.send.wnd || window == 0,
                SendRule::Rfc | SendRule::FreeBsd => self.send.wl2 <= ack,
            };
        if advances || self.send.wl1 < left || same {
            self.send.wnd = window;
            self.send.max_wnd = self.send.max_wnd.max(self.send.wnd);
            (self.send.wl1, self.send.wl2) = (self.send.wl1.max(left), ack);
        }
    }

    /// The window has opened: waiting for it is over, and a probe that was not taken goes out again at once.
    fn reopen_window(&mut self, now: Time, window_before: u64) {
        if self.send.wnd > window_before && self.persist.window_opened() {
            self.restart_retransmit_timer(now);
        }
    }
}
