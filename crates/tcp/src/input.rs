//! What an arriving segment does (RFC 9293 section 3.10.7).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::receiver::Arrived;
use crate::scoreboard::Progress;
use crate::seq::lift;
use crate::{Arrival, CaState, Endpoint, Error, State};

/// The peer's MSS if its SYN does not tell (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// A TS.Recent older than this is not compared any more (RFC 7323 section 5.5).
const PAWS_IDLE: Span = Span::from_secs(24 * 24 * 3600);

impl Endpoint {
    /// Takes in a segment that arrived with codepoint `ecn`. Then [`Endpoint::transmit`] is to be asked.
    pub fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        match self.state {
            State::Closed => {
                self.refuse(segment);
                Arrival::default()
            }
            State::Listen => {
                self.input_listen(now, segment);
                Arrival::default()
            }
            State::SynSent => self.input_syn_sent(now, segment),
            _ => self.input_synchronized(now, segment, ecn),
        }
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.5.2, group 1).
    fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.reply = Some(if segment.flags.contains(Flags::ACK) {
            (segment.ack, 0, Flags::RST)
        } else {
            (0, segment.seq.wrapping_add(segment.sequence_len()), Flags::RST | Flags::ACK)
        });
    }

    fn input_listen(&mut self, now: Time, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.refuse(segment);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.take_syn(now, segment);
            self.ecn_enabled = self.config.ecn && segment.flags.contains(Flags::ECE | Flags::CWR);
            self.ecn_echoes = self.ecn_enabled;
            self.state = State::SynReceived;
            self.send.syn_pending = true;
        }
    }

    fn input_syn_sent(&mut self, now: Time, segment: &Segment) -> Arrival {
        let ack = segment.flags.contains(Flags::ACK).then(|| lift(segment.ack, self.send.isn, self.send.nxt));
        // Only our SYN can be acknowledged.
        let acceptable = ack == Some(Some(1)) && self.send.nxt > 0;
        if ack.is_some() && !acceptable {
            self.refuse(segment);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) {
            if acceptable {
                self.close_now(Some(Error::Refused));
            }
            return Arrival::default();
        }
        if !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        self.take_syn(now, segment);
        if acceptable {
            // The answer carries ECE alone (RFC 3168 section 6.1.1); a reflected ECE+CWR is not an agreement.
            let agreed = segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
            self.ecn_echoes = self.config.ecn && agreed;
            self.ecn_enabled = self.ecn_echoes && !self.send.syn_resent;
            self.send.wnd = u64::from(segment.window);
            self.send.max_wnd = self.send.wnd;
            self.establish(now);
            self.receiver.ack_now = true;
            Arrival { acked: 0, rtt: None, is_ack: true }
        } else {
            // Simultaneous open.
            self.state = State::SynReceived;
            self.send.syn_pending = true;
            Arrival::default()
        }
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
        let peer_mss = segment.mss.unwrap_or(DEFAULT_MSS);
        // Our packets are no larger than those that we ask for, and a segment carries something beside its options.
        let mss = u32::from(self.config.mss.min(peer_mss));
        self.mss = mss.saturating_sub(self.options_len()).max(1);
        self.send.wnd = u64::from(segment.window);
        self.send.max_wnd = self.send.wnd;
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.send.una = 1;
        self.timers.retransmit_at = Time::NEVER;
        if let Some(sent_at) = self.send.syn_sent_at {
            self.rtt.sample(now.since(sent_at));
        }
        self.rtt.established(self.send.syn_resent);
        let flight = self.flight(now);
        self.cc.on_established(&flight);
    }

    fn input_synchronized(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        let near = self.receiver.next;
        let is_syn = segment.flags.contains(Flags::SYN);
        let left = match lift(segment.seq, self.receiver.irs, near) {
            Some(left) if left > 0 || is_syn => left,
            // Unit 0 is the peer's SYN and nothing else; what lies before it was never part of the stream.
            _ => {
                self.receiver.ack_now |= !segment.flags.contains(Flags::RST);
                return Arrival::default();
            }
        };
        let right = left + u64::from(segment.sequence_len());

        if self.timestamps_enabled
            && segment.timestamps.is_none()
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN)
        {
            // A connection that agreed on timestamps silently drops segments without (RFC 7323 section 3.2). A SYN of
            // another connection is left to be challenged.
            return Arrival::default();
        }
        if !self.passes_paws(now, segment, left) {
            // RFC 7323 section 5.3 R1.
            self.receiver.ack_now = true;
            return Arrival::default();
        }
        if !self.is_in_window(left, right) {
            if segment.flags.contains(Flags::RST) {
                return Arrival::default();
            }
            return self.note_duplicate(now, segment, left, right);
        }
        if segment.flags.contains(Flags::RST) {
            self.input_reset(left);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::SYN) {
            // RFC 5961 section 4: a SYN on a synchronized connection is challenged.
            self.receiver.ack_now = true;
            return Arrival::default();
        }
        if !segment.flags.contains(Flags::ACK) {
            return Arrival::default();
        }
        self.update_ts_recent(now, segment, left);
        let Some(arrival) = self.input_ack(now, segment, left) else {
            return Arrival::default();
        };
        if right > left {
            self.input_data(now, segment, left, right, ecn);
        }
        arrival
    }

    /// RFC 7323 section 5: whether the timestamp is not older than the last one.
    fn passes_paws(&self, now: Time, segment: &Segment, left: u64) -> bool {
        if !self.timestamps_enabled || segment.flags.contains(Flags::RST) {
            return true;
        }
        // An old duplicate of the SYN is for the state machine to answer.
        left == 0 || segment.timestamps.is_none_or(|timestamps| self.is_current(now, timestamps.value))
    }

    /// Whether a TSval is not older than TS.Recent, or TS.Recent is too old itself to tell (RFC 7323 section 5.5).
    fn is_current(&self, now: Time, value: u32) -> bool {
        (value.wrapping_sub(self.ts_recent) as i32) >= 0 || now.since(self.ts_recent_at) > PAWS_IDLE
    }

    /// RFC 7323 section 4.3: the echo is that of the segment that last advanced the left edge.
    fn update_ts_recent(&mut self, now: Time, segment: &Segment, left: u64) {
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps_enabled)
            && left <= self.receiver.last_ack_sent
            && self.is_current(now, timestamps.value)
        {
            (self.ts_recent, self.ts_recent_at) = (timestamps.value, now);
        }
    }

    /// RFC 9293 section 3.10.7.4, first check. Data that overlaps the window is let in and cut.
    fn is_in_window(&self, left: u64, right: u64) -> bool {
        let next = self.receiver.next;
        // A sender may still send up to the right edge that was announced last.
        let window = self.receiver.acceptable();
        if right == left {
            // The right edge itself is where the ACKs of a peer that has filled the window stand. Were they unacceptable,
            // two such ends would answer each other's ACKs for ever.
            return left >= next && left <= next + window;
        }
        window > 0 && right > next && left < next + window
    }

    /// An unacceptable segment is answered with an ACK; what it repeats is reported (RFC 2883).
    fn note_duplicate(&mut self, now: Time, segment: &Segment, left: u64, right: u64) -> Arrival {
        self.receiver.ack_now = true;
        if segment.flags.contains(Flags::SYN) {
            if self.state != State::SynReceived || left != 0 {
                return Arrival::default();
            }
            if segment.flags.contains(Flags::ACK) {
                // Simultaneous open: the other side's SYN with ACK (RFC 9293 figure 8).
                return self.input_ack(now, segment, left).unwrap_or_default();
            }
            // The peer did not get our SYN with ACK: it is sent again.
            (self.send.syn_pending, self.send.syn_resent) = (true, true);
            if !segment.flags.contains(Flags::ECE | Flags::CWR) {
                // RFC 3168 section 6.1.1: no ECN after a SYN that does not ask for it.
                (self.ecn_enabled, self.ecn_echoes) = (false, false);
            }
            return Arrival::default();
        }
        if right > left && right <= self.receiver.next {
            self.receiver.receive(now, left, right, segment.payload.len);
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.timers.time_wait_at = now + self.config.time_wait;
        }
        // An old data segment may carry a newer acknowledgment.
        if segment.flags.contains(Flags::ACK) && left <= self.receiver.next {
            return self.input_ack(now, segment, left).unwrap_or_default();
        }
        Arrival::default()
    }

    /// RFC 5961 section 3: only the exact next number resets; another one within the window is challenged.
    fn input_reset(&mut self, left: u64) {
        if left != self.receiver.next {
            self.receiver.ack_now = true;
            return;
        }
        let error = match self.state {
            State::SynReceived => Some(Error::Refused),
            // Both sides have closed; what matters is whether our data arrived.
            State::TimeWait | State::LastAck | State::Closing if self.acked_bytes() == self.send.written => None,
            _ => Some(Error::Reset),
        };
        self.close_now(error);
    }

    /// The acknowledgment field, window and SACK option. `None` if the segment is to be dropped.
    fn input_ack(&mut self, now: Time, segment: &Segment, left: u64) -> Option<Arrival> {
        let ack = lift(segment.ack, self.send.isn, self.send.una);
        if self.state == State::SynReceived {
            if ack != Some(1) {
                self.refuse(segment);
                return None;
            }
            self.establish(now);
            self.set_window(segment, left, 1, true);
            return Some(Arrival { acked: 0, rtt: None, is_ack: true });
        }
        let una = self.send.una;
        // RFC 5961 section 5: an ACK for what was never sent, or older than the largest window, is answered and dropped.
        let ack = match ack {
            Some(ack) if ack <= self.send.nxt && ack + self.send.max_wnd >= una => ack,
            _ => {
                self.receiver.ack_now = true;
                return None;
            }
        };

        let mut progress = Progress::default();
        let window_before = self.send.wnd;
        if ack > una {
            self.board.acknowledge(ack, &mut progress);
            self.send.una = ack;
            self.rtt.progress();
            self.timers.persist_backoff = 0;
            self.send.probing = false;
        }
        if self.sack_enabled && !segment.sack.is_empty() {
            self.take_sack(segment, ack, &mut progress);
        }
        if ack >= una {
            self.set_window(segment, left, ack, ack > una);
        }
        self.take_rtt_sample(now, segment, &progress);
        let ece = self.ecn_enabled && segment.flags.contains(Flags::ECE);
        self.stats.ece_acks += u64::from(ece);
        self.stats.reordering_max = self.stats.reordering_max.max(progress.reordering);

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
        if progress.acked > 0 {
            // RFC 6298 rules 5.2 and 5.3.
            self.restart_retransmit_timer(now);
            self.on_fin_acknowledged(now);
        }
        self.reopen_window(now, window_before);
        Some(Arrival { acked: progress.acked, rtt: self.latest_sample, is_ack: true })
    }

    /// SACK blocks that make sense, and duplicates reported in the first (RFC 2883 section 4).
    fn take_sack(&mut self, segment: &Segment, ack: u64, progress: &mut Progress) {
        let mut blocks = [(0u64, 0u64); 4];
        let mut len = 0;
        let lifted = |wire| lift(wire, self.send.isn, self.send.una).unwrap_or(0);
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
                continue;
            }
            if right > ack {
                blocks[len] = (left.max(ack), right);
                len += 1;
            }
        }
        self.board.sack(&blocks[..len], progress);
    }

    fn take_rtt_sample(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        // A segment that is acknowledged along with a retransmission may have waited for it at the receiver.
        let sent_at = progress.newest_sent_at.filter(|_| !progress.covers_resent);
        self.latest_sample = sent_at.map(|sent_at| now.since(sent_at));
        if let Some(rtt) = self.latest_sample {
            self.rtt.sample(rtt);
        } else if progress.acked > 0
            && let Some(timestamps) = segment.timestamps.filter(|ts| self.timestamps_enabled && ts.echo != 0)
        {
            // Karn's rule leaves no sample; the echo tells which transmission was answered, in milliseconds.
            let ticks = self.timestamp(now).wrapping_sub(timestamps.echo);
            if ticks < 1 << 31 {
                self.rtt.sample(Span::from_millis(u64::from(ticks.max(1))));
            }
        }
    }

    /// RFC 9293 section 3.10.7.4: the window of the newest segment counts. A segment with a new ACK is new, even if it
    /// repeats old data: without its window, the right edge would move by what it acknowledges.
    fn set_window(&mut self, segment: &Segment, left: u64, ack: u64, advances: bool) {
        if advances || self.send.wl1 < left || (self.send.wl1 == left && self.send.wl2 <= ack) {
            // The window of a SYN is never scaled (RFC 7323 section 2.2).
            let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send.shift };
            self.send.wnd = u64::from(segment.window) << shift;
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
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.close_now(None),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.timers.retransmit_at = Time::NEVER;
        self.timers.persist_at = Time::NEVER;
        self.timers.time_wait_at = now + self.config.time_wait;
    }

    /// Payload and FIN.
    fn input_data(&mut self, now: Time, segment: &Segment, left: u64, right: u64, ecn: Ecn) {
        if self.ecn_echoes {
            // RFC 3168 section 6.1.3: the echo goes on until the sender confirms.
            if segment.flags.contains(Flags::CWR) {
                self.echo_ce = false;
                self.receiver.window_was_reduced();
            }
            if ecn == Ecn::Ce {
                if !self.echo_ce {
                    self.receiver.congestion_began();
                }
                self.echo_ce = true;
            }
        }
        if segment.payload.len > 0 && segment.payload.offset != left - 1 && self.integrity_error.is_none() {
            self.integrity_error = Some(left - 1);
        }
        if segment.flags.contains(Flags::FIN) {
            self.peer_fin.get_or_insert(right - 1);
        }
        let edge = self.receiver.next + self.receiver.acceptable();
        // Nothing follows a FIN.
        let edge = edge.min(self.peer_fin.map_or(u64::MAX, |fin| fin + 1));
        let right = right.min(edge);
        if right <= left {
            self.receiver.ack_now = true;
            return;
        }
        let arrived = self.receiver.receive(now, left, right, segment.payload.len);
        if arrived == Arrived::InOrder && self.peer_finished() {
            self.on_peer_fin(now);
        }
    }

    fn on_peer_fin(&mut self, now: Time) {
        self.receiver.ack_now = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }
}
