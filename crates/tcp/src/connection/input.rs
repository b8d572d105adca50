//! What an arriving segment does (RFC 9293 section 3.10.7).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::connection::timers::Pending;
use crate::loss::linux::{Duplicates, Facts};
use crate::loss::scoreboard::Progress;
use crate::receiver::{Arrived, Context};
use crate::seq::lift;
use crate::{AckRule, Arrival, CaState, Endpoint, Error, RttRule, SendRule, State, SynFin, WindowRule, reset_for};

/// A TS.Recent older than this is not compared any more (RFC 7323 section 5.5).
const PAWS_IDLE: Span = Span::from_secs(24 * 24 * 3600);

impl Endpoint {
    /// Takes in a segment that arrived with codepoint `ecn`. Then [`Endpoint::transmit`] is to be asked.
    #[inline(always)]
    pub fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        self.counters.arrived(now, segment, ecn);
        self.wishes.more = false;
        if segment.flags.contains(Flags::SYN | Flags::FIN) && self.drops_syn_fin() {
            return Arrival::default();
        }
        match self.state {
            State::Closed => {
                self.refuse(segment);
                Arrival::default()
            }
            State::Listen => {
                self.input_listen(now, segment, ecn);
                Arrival::default()
            }
            State::SynSent => self.input_syn_sent(now, segment, ecn),
            State::TimeWait => self.input_time_wait(now, segment),
            _ => self.input_synchronized(now, segment, ecn),
        }
    }

    #[cold]
    fn drops_syn_fin(&self) -> bool {
        self.config.states.syn_fin == SynFin::Drop && self.state != State::Closed
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.5.2, group 1).
    #[cold]
    fn refuse(&mut self, segment: &Segment) {
        if let Some(reset) = reset_for(segment) {
            self.reply = Some((reset.seq, reset.ack, reset.flags));
            (self.reply_stamped, self.reply_window) = (false, 0);
        }
    }

    /// Whether this segment would end SYN-RECEIVED by opening the connection.
    pub(crate) fn completes(&self, segment: &Segment) -> bool {
        self.state == State::SynReceived
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && lift(segment.ack, self.send.isn, self.send.una) == Some(1)
    }

    #[cold]
    fn input_listen(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            if !(segment.flags.contains(Flags::SYN) && self.config.states.listen_drops_syn_ack) {
                self.refuse(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            if segment.flags.contains(Flags::FIN) && self.config.states.syn_fin == SynFin::DropInListen {
                return;
            }
            self.take_syn(now, segment);
            self.agree_to_ecn(segment, ecn);
            self.state = State::SynReceived;
            self.send.syn_pending = true;
            if self.config.states.fast_open {
                self.take_fast_open(now, segment);
            }
        }
    }

    #[cold]
    fn input_syn_sent(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        let ack = segment.flags.contains(Flags::ACK).then(|| lift(segment.ack, self.send.isn, self.send.nxt));
        // Our SYN, and what was sent with it.
        let acceptable = ack.flatten().filter(|ack| (1..=self.send.nxt).contains(ack));
        if let Some(ack) = acceptable {
            return self.input_answer(now, segment, ack, ecn);
        }
        if ack.is_some() {
            if let Some(wait) = self.config.states.syn_after_bad_ack.filter(|_| self.rtt.timeouts() == 0) {
                // Two ticks, of whatever length.
                self.set_timer(now, Pending::Rto, if self.two_ticks() > Span::ZERO { self.two_ticks() } else { wait });
            }
            self.refuse(segment);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) || !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        // Simultaneous open. Text waits until the connection is open.
        self.take_syn(now, segment);
        self.syn_payload = if self.config.states.syn_data { segment.payload.len } else { 0 };
        self.state = State::SynReceived;
        self.send.syn_pending = true;
        if self.config.transfer.sending == SendRule::FreeBsd {
            // tcp_ecn_input_parallel_syn: agreed to as by a listening socket.
            self.agree_to_ecn(segment, ecn);
        }
        Arrival::default()
    }

    /// A segment that acknowledges our SYN, and what was sent with it up to `ack`.
    fn input_answer(&mut self, now: Time, segment: &Segment, ack: u64, ecn: Ecn) -> Arrival {
        if self.config.states.check_syn_echo && self.echoes_another(now, segment) {
            self.refuse(segment);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) {
            self.close_now(Some(Error::Refused));
            return Arrival::default();
        }
        if !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        self.take_syn(now, segment);
        self.agreed_on_ecn(segment, ecn);
        self.send.wnd = u64::from(segment.window);
        self.send.max_wnd = self.send.wnd;
        self.establish(now);
        self.receiver.ack_now = true;
        self.send.bare_ack |= self.config.transfer.bare_handshake_ack;
        let takes_data = self.opening.is_some() && self.answer_to_fast_open(now, segment, ack);
        let right = u64::from(segment.sequence_len());
        if right > 1 && (self.config.states.syn_data || takes_data) {
            self.input_data(now, segment, 1, right, ecn);
            self.receiver.ack_now = true;
        }
        Arrival { acked: ack - 1, rtt: None, is_ack: true }
    }

    /// Whether the timestamp that a SYN/ACK echoes is none that was sent since the first SYN.
    fn echoes_another(&self, now: Time, segment: &Segment) -> bool {
        let first = self.send.syn_stamp;
        segment
            .timestamps
            .filter(|stamps| self.config.timestamps && stamps.echo != 0)
            .is_some_and(|stamps| stamps.echo.wrapping_sub(first) > self.timestamp(now).wrapping_sub(first))
    }

    /// What a SYN tells: sequence number, options.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receiver.synchronize(segment.seq);
        self.sack_enabled = self.config.sack && segment.sack_permitted;
        self.scaling_enabled = self.config.window_scaling && segment.window_scale.is_some();
        // RFC 7323 section 2.3: a larger shift is used as 14.
        self.send.shift = if self.scaling_enabled { segment.window_scale.unwrap_or(0).min(14) } else { 0 };
        self.timestamps_enabled = self.config.timestamps && segment.timestamps.is_some();
        if let Some(timestamps) = segment.timestamps {
            (self.ts_recent, self.ts_recent_at) = (timestamps.value, now);
        }
        // Our packets are no larger than those that we ask for or the path takes, and a segment carries something beside its
        // options. A peer may claim an MSS of 0.
        let mss = self.clamp_segment(segment.mss.unwrap_or(self.config.default_peer_mss));
        self.mss = mss.saturating_sub(self.options_len()).max(1);
        let shift = if self.scaling_enabled { self.own_shift() } else { 0 };
        let with_options = self.announced_segment();
        let opened = self.state == State::SynSent;
        let offered = self.receiver.syn_window(if opened { self.config.mss.into() } else { with_options });
        self.receiver.begin(shift, mss, with_options, offered);
        self.receiver.compress(self.config.transfer.sack_compression.filter(|_| self.sack_enabled));
        self.send.wnd = u64::from(segment.window);
        self.send.max_wnd = self.send.wnd;
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.send.una = 1;
        self.finish_handshake(now);
        self.begin_sending(now);
        let held = u64::from(std::mem::take(&mut self.syn_payload)).min(self.receiver.acceptable());
        if held > 0 {
            self.receiver.receive(now, 1, 1 + held, held as u32);
        }
    }

    /// Our SYN is acknowledged.
    pub(crate) fn finish_handshake(&mut self, now: Time) {
        self.timers.retransmit_at = Time::NEVER;
        if let Some(sent_at) = self.send.syn_sent_at {
            self.sample_rtt(now.since(sent_at));
            self.detector.measured(now, now.since(sent_at));
        }
        self.rtt.established(self.send.syn_resent);
        self.counters.delivered_segments += 1;
        self.counters.data_received_at = now;
        self.timers.handshake_at = Time::NEVER;
        self.limits.heard_at = now;
        self.arm_keepalive(now);
    }

    /// The window and all that follows from it are set up: data may be sent.
    pub(crate) fn begin_sending(&mut self, now: Time) {
        self.bound_segment();
        self.begin_probing(now);
        let flight = self.flight(now);
        self.cc.on_established(&flight);
        self.cc.on_ecn(self.usable_feedback());
        if self.cc.needs() != self.observer.needs {
            self.adopt_needs();
        }
        self.decide_pacing(now);
        self.begin_validation(now);
    }

    fn input_synchronized(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        let near = self.receiver.next;
        let is_syn = segment.flags.contains(Flags::SYN);
        let left = match lift(segment.seq, self.receiver.irs, near) {
            Some(left) if left > 0 || is_syn => left,
            // Unit 0 is the peer's SYN and nothing else; what lies before it was never part of the stream.
            _ => {
                if !segment.flags.contains(Flags::RST) {
                    self.answer_invalid(now, segment);
                }
                return Arrival::default();
            }
        };
        let right = left + u64::from(segment.sequence_len());
        if segment.flags.contains(Flags::RST) {
            self.input_reset(now, left);
            return Arrival::default();
        }

        if segment.timestamps.is_none()
            && self.timestamps_enabled
            && !self.config.transfer.lenient_timestamps
            && !self.config.states.accept_unstamped
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN)
        {
            // A connection that agreed on timestamps silently drops segments without (RFC 7323 section 3.2). A SYN of
            // another connection is left to be challenged.
            return Arrival::default();
        }
        if !self.passes_paws(now, segment, left) {
            // RFC 7323 section 5.3 R1.
            self.answer_invalid(now, segment);
            if self.config.transfer.report_refused && left < self.receiver.next && left < right {
                self.describe_arrival(segment);
                self.receiver.receive(now, left, right.min(self.receiver.next), segment.payload.len);
            }
            return Arrival::default();
        }
        if is_syn {
            return self.input_syn_again(now, segment, left, ecn);
        }
        if !self.is_in_window(segment, left, right) {
            return self.note_duplicate(now, segment, left, right);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Arrival::default();
        }
        self.heard(now);
        self.count_mark(segment, ecn);
        if self.is_unwanted(segment, right) {
            // RFC 9293 section 3.6.1: nobody will read it.
            self.refuse(segment);
            self.close_now(Some(Error::Reset));
            return Arrival::default();
        }
        let Some(acked) = self.input_ack(now, segment, left) else {
            return Arrival::default();
        };
        self.update_ts_recent(now, segment, left);
        if right > left {
            self.input_data(now, segment, left, right, ecn);
        }
        self.acknowledgment(acked)
    }

    /// What an acceptable ACK meant that acknowledged so many units.
    #[inline]
    fn acknowledgment(&self, acked: u64) -> Arrival {
        Arrival { acked, rtt: self.latest_sample, is_ack: true }
    }

    /// RFC 7323 section 5: whether the timestamp is not older than the last one.
    pub(crate) fn passes_paws(&self, now: Time, segment: &Segment, left: u64) -> bool {
        if !self.timestamps_enabled || segment.flags.contains(Flags::RST) {
            return true;
        }
        // An old duplicate of the SYN is for the state machine to answer.
        let slack = if self.state == State::TimeWait { 0 } else { self.config.states.paws_slack };
        left == 0 || segment.timestamps.is_none_or(|timestamps| self.is_current(now, timestamps.value, slack))
    }

    /// Whether a TSval is older than TS.Recent by no more than `slack` ticks, or TS.Recent is too old itself to tell (RFC 7323
    /// section 5.5).
    fn is_current(&self, now: Time, value: u32, slack: u32) -> bool {
        (value.wrapping_add(slack).wrapping_sub(self.ts_recent) as i32) >= 0 || now.since(self.ts_recent_at) > PAWS_IDLE
    }

    /// RFC 7323 section 4.3: the echo is that of the segment that last advanced the left edge.
    pub(crate) fn update_ts_recent(&mut self, now: Time, segment: &Segment, left: u64) {
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps_enabled)
            && left <= self.receiver.last_ack_sent
            && self.is_current(now, timestamps.value, 0)
        {
            (self.ts_recent, self.ts_recent_at) = (timestamps.value, now);
        }
    }

    /// RFC 9293 section 3.10.7.4, first check. Data that overlaps the window is let in and cut.
    fn is_in_window(&self, segment: &Segment, left: u64, right: u64) -> bool {
        let next = self.receiver.next;
        // A sender may still send up to the right edge that was announced last.
        let window = self.receiver.acceptable();
        if let WindowRule::Linux { .. } = self.config.transfer.window {
            // tcp_sequence: what ends where the last ACK stood has its ACK and timestamp read.
            let fits = right >= self.receiver.last_ack_sent && left <= next + window;
            return fits && (right <= next + window || !self.refuses_overlong(segment, right));
        }
        if right == left {
            // The right edge itself is where the ACKs of a peer that has filled the window stand. Were they unacceptable,
            // two such ends would answer each other's ACKs for ever.
            return left >= next && left <= next + window;
        }
        window > 0 && right > next && left < next + window
    }

    /// Whether a segment that ends at `right`, beyond the window, is too long. A FIN takes no room.
    #[cold]
    fn refuses_overlong(&self, segment: &Segment, right: u64) -> bool {
        let data = right - u64::from(segment.flags.contains(Flags::FIN));
        self.config.states.refuses_overlong
            && data > self.receiver.next + self.receiver.acceptable()
            && self.receiver.read < self.receiver.next
    }

    /// An unacceptable segment is answered with an ACK; what it repeats is reported (RFC 2883).
    fn note_duplicate(&mut self, now: Time, segment: &Segment, left: u64, right: u64) -> Arrival {
        self.answer_invalid(now, segment);
        if right > left && right <= self.receiver.next {
            self.note_spurious(left);
            self.describe_arrival(segment);
            self.receiver.receive(now, left, right, segment.payload.len);
        }
        // An old data segment may carry a newer acknowledgment.
        if segment.flags.contains(Flags::ACK) && left <= self.receiver.next {
            return self.input_ack(now, segment, left).map(|acked| self.acknowledgment(acked)).unwrap_or_default();
        }
        Arrival::default()
    }

    /// A SYN on a connection that has seen one.
    fn input_syn_again(&mut self, now: Time, segment: &Segment, left: u64, ecn: Ecn) -> Arrival {
        let flags = segment.flags;
        if self.state == State::SynReceived {
            if left == 0 && flags.contains(Flags::ACK) {
                // Simultaneous open: the other side's SYN with ACK (RFC 9293 figure 8).
                self.receiver.ack_now = true;
                return self.input_ack(now, segment, left).map(|acked| self.acknowledgment(acked)).unwrap_or_default();
            }
            if left == 0 {
                // The peer did not get our SYN with ACK: it is sent again.
                (self.send.syn_pending, self.send.syn_resent) = (true, true);
                self.agree_to_ecn_again(segment, ecn);
                return Arrival::default();
            }
            if self.is_open_early() {
                // tcp_check_req: a bad SYN is reset, and does not end the connection.
                self.refuse(segment);
                return Arrival::default();
            }
            if self.socket.passive && self.is_reset_in_window(left) {
                // RFC 9293 section 3.10.7.4, fourth check: back to LISTEN, which is the listener's part.
                self.close_now(None);
                return Arrival::default();
            }
        } else if self.config.states.insecure_syn && self.is_reset_in_window(left) {
            self.reset_peer();
            self.close_now(Some(Error::Reset));
            return Arrival::default();
        }
        // RFC 5961 section 4: challenged wherever it lies.
        self.challenge(now);
        self.reflect_again(segment, ecn);
        Arrival::default()
    }

    /// The window as RFC 9293 section 3.10.7.4 has it for resets and SYNs: the right edge lies outside. Before a listening
    /// socket's child is open, it is what was announced; a FIN takes no room.
    pub(crate) fn is_reset_in_window(&self, left: u64) -> bool {
        let next = self.receiver.next;
        let half_open = self.state == State::SynReceived && self.socket.passive;
        let window = if half_open { self.receiver.offered() } else { self.receiver.acceptable() };
        left == next || left > next && left < next + window + u64::from(self.peer_finished())
    }

    /// RFC 5961 section 3: only the exact next number resets; another one within the window is challenged.
    #[cold]
    fn input_reset(&mut self, now: Time, left: u64) {
        if self.state == State::SynReceived && self.is_open_early() && self.is_reset_in_window(left) {
            self.reset_early(now);
            self.reset_by_peer();
            return;
        }
        let exact = left == self.receiver.next || self.config.states.reset_before_fin && self.is_number_of_fin(left);
        if !exact {
            if self.is_reset_in_window(left) {
                if self.config.states.insecure_rst {
                    self.reset_by_peer();
                } else {
                    self.suspect_reset();
                    self.challenge(now);
                }
            }
            return;
        }
        self.reset_by_peer();
    }

    fn is_number_of_fin(&self, left: u64) -> bool {
        let closed = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        closed && left + 1 == self.receiver.next
    }

    fn reset_by_peer(&mut self) {
        let rules = &self.config.states;
        let error = match self.state {
            State::SynReceived if !rules.reset_in_syn_received => Some(Error::Refused),
            State::CloseWait if rules.broken_pipe_in_close_wait => Some(Error::BrokenPipe),
            // Both sides have closed; what matters is whether our data arrived.
            State::LastAck | State::Closing if self.acked_bytes() == self.send.written => {
                let report = rules.report_late_reset;
                self.close_now(None);
                if report {
                    self.report(Error::Reset);
                }
                return;
            }
            _ => Some(Error::Reset),
        };
        self.close_now(error);
    }

    /// Whether the segment brings data that nobody will read any more.
    fn is_unwanted(&self, segment: &Segment, right: u64) -> bool {
        let shut = self.socket.orphan || self.socket.read_shut && self.config.states.reset_after_shutdown;
        shut && matches!(self.state, State::FinWait1 | State::FinWait2)
            && segment.payload.len > 0
            && right - u64::from(segment.flags.contains(Flags::FIN)) > self.receiver.next
    }

    /// The acknowledgment field, window and SACK option: how many units it acknowledges, with [`Endpoint::latest_sample`].
    /// `None` if the segment is to be dropped.
    fn input_ack(&mut self, now: Time, segment: &Segment, left: u64) -> Option<u64> {
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
        if self.sack_enabled && !segment.sack.is_empty() {
            facts.duplicates = self.take_sack(segment, ack, &mut progress);
        }
        let reach = self.board.reported().map_or(0, |(_, end)| end);
        let reports = self.board.sacked_segments();
        if ack > una {
            self.board.acknowledge(ack, &mut progress);
            self.send.una = ack;
            self.rtt.progress();
            self.timers.persist_backoff = 0;
            self.send.probing = false;
            if self.path.probing.size > 0 {
                self.on_ack_of_mtu_probe();
            }
        }
        let (low, position) = progress.low_acked;
        if self.sack_enabled && progress.reported.is_some_and(|(highest, _)| low < highest) {
            // A hole has filled without retransmission.
            let high = self.board.highest_sacked().unwrap_or(ack);
            self.detector.reordered(low, high, reach.saturating_sub(position), reports, self.mss);
        }
        if progress.covers_resent && ack > una {
            self.detector.resent_acknowledged(una, ack, reports);
        }
        if ack >= una {
            facts.plain |=
                ack > una || self.send.wl1 < left || u64::from(segment.window) << self.send.shift > self.send.wnd;
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
            if (facts.outstanding_before || facts.duplicates.segments > 0) && !self.send.probing {
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
            && !self.send.probing
            && if self.sack_enabled {
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
            progress.echo = segment.timestamps.filter(|ts| self.timestamps_enabled && ts.echo != 0).and_then(|ts| {
                let ago = self.timestamp(now).wrapping_sub(ts.echo);
                (now.as_nanos() / 1_000_000).checked_sub(u64::from(ago))
            });
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
                self.detector.reordered(progress.low_sacked, high, segments, reports, self.mss);
            }
        }
        duplicates
    }

    /// `tcp_check_dsack`: segments reported twice, as far as our retransmissions explain them.
    fn take_dsack(&mut self, left: u64, right: u64, progress: &mut Progress) -> Duplicates {
        let mss = u64::from(self.mss);
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
        let timestamps = segment.timestamps.filter(|ts| self.timestamps_enabled && ts.echo != 0)?;
        let ticks = self.timestamp(now).wrapping_sub(timestamps.echo);
        (progress.acked > 0 && ticks < 1 << 31).then(|| Span::from_millis(u64::from(ticks.max(1))))
    }

    /// RFC 9293 section 3.10.7.4: the window of the newest segment counts. A segment with a new ACK is new, even if it
    /// repeats old data: without its window, the right edge would move by what it acknowledges.
    fn set_window(&mut self, segment: &Segment, left: u64, ack: u64, advances: bool) {
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send.shift };
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
        if self.send.wnd > window_before {
            self.timers.persist_at = Time::NEVER;
            if self.send.probing {
                self.send.resend_probe = true;
                self.restart_retransmit_timer(now);
            }
        }
    }

    fn on_fin_acknowledged(&mut self, now: Time) {
        if !self.send.fin_sent || self.send.una < self.send.nxt {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_fin_wait_2(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.close_now(None),
            _ => {}
        }
    }

    /// Payload and FIN.
    fn input_data(&mut self, now: Time, segment: &Segment, left: u64, right: u64, ecn: Ecn) {
        if self.ecn_echoes {
            self.note_mark(now, segment, ecn);
        }
        if segment.payload.len > 0 && segment.payload.offset != left - 1 && self.integrity_error.is_none() {
            self.integrity_error = Some(left - 1);
        }
        let mut edge = self.receiver.next + self.receiver.acceptable();
        if let WindowRule::Linux { .. } = self.config.transfer.window {
            if left >= edge || self.receiver.acceptable() == 0 && right > edge {
                if !self.lets_fin_in(segment, left) {
                    self.receiver.beyond_window();
                    return;
                }
                // There is no memory for it: ICSK_ACK_NOMEM.
                self.receiver.ack_now = true;
            }
            // All of a segment that begins within the window is taken, up to release 6.16.
            edge = u64::MAX;
        }
        if segment.flags.contains(Flags::FIN) {
            self.peer_fin.get_or_insert(right - 1);
        }
        // Nothing follows a FIN.
        let edge = edge.min(self.peer_fin.map_or(u64::MAX, |fin| fin + 1));
        let right = right.min(edge);
        if right <= left {
            self.receiver.ack_now = true;
            return;
        }
        if right <= self.receiver.next {
            self.note_spurious(left);
        }
        self.describe_arrival(segment);
        if left > self.receiver.next {
            self.note_gap(now, left, right);
        }
        let arrived = self.receiver.receive(now, left, right, segment.payload.len);
        if self.socket.discards {
            self.read(u64::MAX);
        }
        if arrived == Arrived::InOrder && self.peer_finished() {
            self.on_peer_fin(now);
        }
    }

    /// Whether this is the next number, and a FIN alone that is taken in although the window is closed.
    #[cold]
    fn lets_fin_in(&self, segment: &Segment, left: u64) -> bool {
        let bare_fin = segment.flags.contains(Flags::FIN) && segment.payload.len == 0;
        bare_fin && left == self.receiver.next && self.config.states.zero_window_fin
    }

    /// Data beyond a gap is about to be taken in.
    #[inline(never)]
    fn note_gap(&mut self, now: Time, left: u64, right: u64) {
        // All of it counts, also what is known.
        self.counters.out_of_order += 1;
        self.receiver.context.srtt = self.rtt.srtt();
        if self.receiver.tells_before(left, right) && self.feedback.ack_before.is_none() {
            let mut ack = Segment::default();
            self.write_ack(now, &mut ack);
            self.feedback.ack_before = Some(ack);
            self.receiver.told_before();
        }
    }

    /// What decides about the ACK beside the data.
    pub(crate) fn describe_arrival(&mut self, segment: &Segment) {
        if self.config.transfer.acks != AckRule::Linux {
            return;
        }
        self.receiver.context = Context {
            pushed: segment.flags.contains(Flags::PSH),
            last: segment.flags.contains(Flags::FIN),
            srtt: self.rtt.srtt(),
            rto: self.rto(),
            segment: self.announced_segment(),
        };
    }

    fn on_peer_fin(&mut self, now: Time) {
        self.receiver.finished();
        if self.state == State::Established && self.config.transfer.acks == AckRule::Linux {
            // tcp_fin: its ACK may wait for an answer that ends our side too.
            self.receiver.expect_answer();
        } else {
            self.receiver.ack_now = true;
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }
}
