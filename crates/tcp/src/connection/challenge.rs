//! Answers to segments that do not belong, and how many of them are given: RFC 5961, and the limits of Linux and FreeBSD.

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::Endpoint;

/// What was answered lately, and when the peer was last heard.
#[derive(Debug)]
pub(crate) struct Limits {
    /// When the last out-of-window segment without data was answered.
    invalid_at: Option<Time>,
    /// Challenges since `challenges_since`.
    challenges: u32,
    challenges_since: Time,
    /// When the last acceptable segment arrived.
    pub(crate) heard_at: Time,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { invalid_at: None, challenges: 0, challenges_since: Time::ZERO, heard_at: Time::ZERO }
    }
}

impl Endpoint {
    /// An acceptable segment arrived: the peer is alive.
    pub(crate) fn heard(&mut self, now: Time) {
        self.limits.heard_at = now;
        self.timers.keepalive_probes = 0;
    }

    /// Answers a segment that the state machine does not take with an ACK (RFC 9293 section 3.10.7.4, first check). Those
    /// without data or FIN could go on for ever between two ends that disagree, and are limited by Linux.
    pub(crate) fn answer_invalid(&mut self, now: Time, segment: &Segment) {
        let carries_data = segment.sequence_len() > 0 && !segment.flags.contains(Flags::SYN);
        if carries_data || self.may_answer(now) {
            self.receiver.ack_now = true;
        }
    }

    /// An ACK that asks a peer who lost its state, and not an attacker who guesses, for the exact number (RFC 5961).
    pub(crate) fn challenge(&mut self, now: Time) {
        if self.may_answer(now) && self.may_challenge(now) {
            self.challenge_due = true;
        }
    }

    /// Linux `__tcp_oow_rate_limited`.
    fn may_answer(&mut self, now: Time) -> bool {
        let interval = self.config.states.invalid_interval;
        if self.limits.invalid_at.is_some_and(|at| now.since(at) < interval) {
            return false;
        }
        self.limits.invalid_at = Some(now);
        true
    }

    /// RFC 5961 section 7.
    fn may_challenge(&mut self, now: Time) -> bool {
        let Some(limit) = self.config.states.challenge_limit else { return true };
        if self.limits.challenges == 0 || now.since(self.limits.challenges_since) >= limit.interval {
            (self.limits.challenges, self.limits.challenges_since) = (0, now);
        }
        if self.limits.challenges >= limit.count {
            return false;
        }
        self.limits.challenges += 1;
        true
    }
}
