//! TIME-WAIT: old segments are waited out, and a new connection may take the place (RFC 9293
//! section 3.6.1, RFC 1337, RFC 6191).

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::{AccEcnRule, Acknowledgment, Endpoint, State, SynFin, TimeWaitAnswers};

impl Endpoint {
    /// TIME-WAIT: everything but a bare ACK in its place and a reset is answered, and most of it
    /// starts the wait anew (RFC 9293 section 3.10.7.4; Linux `tcp_timewait_state_process`, FreeBSD
    /// `tcp_twcheck`).
    pub(crate) fn input_time_wait(&mut self, now: Time, segment: &Segment) -> Acknowledgment {
        let flags = segment.flags;
        let left = self.receiver.lift(segment.seq);
        let in_place = left == Some(self.receiver.next());
        let current = self.passes_paws(now, segment, left.unwrap_or(0));
        let answers = self.config.states.time_wait_answers;
        if flags.contains(Flags::RST) {
            if in_place && !self.config.states.protect_time_wait {
                self.close_now(None);
            } else if !in_place
                && answers == TimeWaitAnswers::Rfc5961
                && left.is_some_and(|left| self.is_reset_in_window(left))
            {
                self.answers.challenge(now, &self.config.states);
            }
            return Acknowledgment::default();
        }
        let bare = segment.sequence_len() == 0;
        if !flags.contains(Flags::ACK) && answers == TimeWaitAnswers::Linux {
            self.answer_without_ack(now, segment, current, bare && in_place);
            return Acknowledgment::default();
        }
        if !flags.contains(Flags::ACK) {
            // A SYN may be an old duplicate, or a new one with too low a number: it does not
            // prolong the wait.
            if flags.contains(Flags::SYN) && answers != TimeWaitAnswers::FreeBsd {
                self.answers.challenge(now, &self.config.states);
            }
            return Acknowledgment::default();
        }
        let ack = self.sender.sequence.lift(segment.ack);
        let is_ack = current && ack == Some(self.sender.sequence.nxt());
        let arrival = Acknowledgment { is_ack, ..Acknowledgment::default() };
        // An echo that was overtaken counts too, as in other states.
        let echoes =
            current && ack.is_some_and(|ack| ack <= self.sender.sequence.nxt()) && self.sender.hears_echo(segment);
        self.sender.stats.ece_acks += u64::from(echoes);
        if bare && in_place && is_ack {
            return arrival;
        }
        self.timers.wait_out(now + self.config.time_wait);
        // Linux's answers have no SACK blocks any more (tcp_timewait_state_process,
        // tcp_v4_timewait_ack).
        let reports = answers != TimeWaitAnswers::Linux && !bare && !flags.contains(Flags::SYN);
        if let Some(left) = left.filter(|&left| left > 0 && reports) {
            let right = left + u64::from(segment.sequence_len());
            if right <= self.receiver.next() {
                self.describe_arrival(now, segment);
                self.receiver.receive(now, left, right, segment.payload.len);
            }
        }
        self.answer_invalid(now, segment);
        arrival
    }

    /// Linux `tcp_timewait_state_process`: all but what is bare and in its place is answered, with
    /// ACK or without; the wait starts anew only for what is too old, or is no SYN and nothing but
    /// in its place.
    fn answer_without_ack(&mut self, now: Time, segment: &Segment, current: bool, bare_in_place: bool) {
        if !current || bare_in_place {
            self.timers.wait_out(now + self.config.time_wait);
        }
        if bare_in_place && current {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.answers.challenge(now, &self.config.states);
        } else {
            self.answer_invalid(now, segment);
        }
    }

    /// In TIME-WAIT: whether this SYN may open a new connection in place of this one, and the least
    /// initial sequence number that the new one may have (RFC 9293 section 3.6.1, RFC 6191 section
    /// 2).
    pub fn yields_to(&self, segment: &Segment) -> Option<u32> {
        let flags = segment.flags;
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !flags.contains(Flags::RST);
        let rules = &self.config.states;
        let dropped = flags.contains(Flags::FIN) && rules.syn_fin == SynFin::Drop;
        if self.state != State::TimeWait || !opens || dropped || !rules.reopen_time_wait {
            return None;
        }
        let newer = self.sender.negotiated.ahead_of_recent(segment).map(|ahead| (ahead > 0, ahead < 0));
        let above = self.receiver.lift(segment.seq).is_some_and(|left| left > self.receiver.next());
        let (later, earlier) = newer.unwrap_or((false, false));
        // The number that Linux gives: beyond the largest window without scale.
        (later || above && !earlier)
            .then(|| self.sender.sequence.lower(self.sender.sequence.nxt()).wrapping_add(65_537))
    }

    /// Linux's TIME-WAIT of a socket that nobody holds any more: it knows no counters
    /// (`tcp_v4_timewait_ack`).
    #[inline]
    pub(crate) fn is_forgotten(&self) -> bool {
        self.state == State::TimeWait
            && self.socket.is_orphan()
            && self.config.transfer.acc_ecn.rule == AccEcnRule::Linux
    }
}
