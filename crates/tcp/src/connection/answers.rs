//! Answers that no data and no acknowledgment rides on: resets, challenges (RFC 5961) and probes
//! without data, with the limits of Linux and FreeBSD on how many are given.

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use crate::stack::rules::StateRules;

/// A reset that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reset {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: Flags,
    /// The reset ends this very connection, and carries its timestamps.
    pub(crate) stamped: bool,
    /// Its window field.
    pub(crate) window: u16,
}

/// The pending answer, and the answers sent lately.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// A challenge waits to be sent.
    challenge: bool,
    /// A probe without data waits to be sent: a keep-alive, or one of a closed window.
    probe: bool,
    /// A reset or an ACK from before waits in `rare`.
    waits: bool,
    /// From the first time that there was any of it.
    rare: Option<Box<Rare>>,
}

/// Answers that most connections never send.
#[derive(Debug, Default)]
struct Rare {
    reset: Option<Reset>,
    /// An ACK from before the segment in hand: of what came before a mark began or ended (RFC 8257
    /// section 3.2), or one that was compressed.
    before: Option<Segment>,
    /// When the last out-of-window segment without data was answered.
    invalid_at: Option<Time>,
    /// Challenges since `challenges_since`.
    challenges: u32,
    challenges_since: Time,
}

impl Answers {
    /// Returns `true` if an answer waits to be sent.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.challenge | self.probe | self.waits
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// A reset goes out.
    pub(crate) fn reset(&mut self, reset: Reset) {
        self.waits = true;
        self.rare().reset = Some(reset);
    }

    pub(crate) fn take_reset(&mut self) -> Option<Reset> {
        let rare = self.rare.as_mut()?;
        self.waits = rare.before.is_some();
        rare.reset.take()
    }

    /// An ACK goes out that was written before the segment in hand is taken in.
    pub(crate) fn send_before(&mut self, ack: Segment) {
        self.waits = true;
        self.rare().before = Some(ack);
    }

    pub(crate) fn has_before(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.before.is_some())
    }

    pub(crate) fn take_before(&mut self) -> Option<Segment> {
        let rare = self.rare.as_mut()?;
        self.waits = rare.reset.is_some();
        rare.before.take()
    }

    /// A probe without data goes out.
    pub(crate) fn probe(&mut self) {
        self.probe = true;
    }

    #[inline]
    pub(crate) fn has_probe(&self) -> bool {
        self.probe
    }

    pub(crate) fn has_challenge(&self) -> bool {
        self.challenge
    }

    /// The ACK that is written now is the challenge if one is due, and else the probe. Returns
    /// `true` if it is the challenge.
    pub(crate) fn take_ack(&mut self) -> bool {
        let challenge = std::mem::take(&mut self.challenge);
        self.probe &= challenge;
        challenge
    }

    /// The connection is over: only a reset still goes out.
    pub(crate) fn close(&mut self) {
        (self.challenge, self.probe) = (false, false);
    }

    /// Linux `__tcp_oow_rate_limited`.
    pub(crate) fn may_answer(&mut self, now: Time, rules: &StateRules) -> bool {
        let rare = self.rare();
        if rare.invalid_at.is_some_and(|at| now.since(at) < rules.invalid_interval) {
            return false;
        }
        rare.invalid_at = Some(now);
        true
    }

    /// RFC 5961 section 7.
    fn may_challenge(&mut self, now: Time, rules: &StateRules) -> bool {
        let Some(limit) = rules.challenge_limit else { return true };
        let rare = self.rare();
        if rare.challenges == 0 || now.since(rare.challenges_since) >= limit.interval {
            (rare.challenges, rare.challenges_since) = (0, now);
        }
        if rare.challenges >= limit.count {
            return false;
        }
        rare.challenges += 1;
        true
    }

    /// Answers a segment that belongs to no connection with a reset (RFC 9293 section 3.5.2, group
    /// 1).
    #[cold]
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        if let Some(reset) = reset_for(segment) {
            self.reset(Reset { seq: reset.seq, ack: reset.ack, flags: reset.flags, stamped: false, window: 0 });
        }
    }

    /// An ACK that asks a peer who lost its state, and not an attacker who guesses, for the exact
    /// number (RFC 5961).
    pub(crate) fn challenge(&mut self, now: Time, rules: &StateRules) {
        if self.may_answer(now, rules) && self.may_challenge(now, rules) {
            self.challenge = true;
        }
    }
}

/// The reset that answers a segment to a port where nobody listens and no connection is (RFC 9293
/// section 3.10.7.1); `None` for a reset, which is never answered.
pub fn reset_for(segment: &Segment) -> Option<Segment> {
    if segment.flags.contains(Flags::RST) {
        return None;
    }
    let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
        (segment.ack, 0, Flags::RST)
    } else {
        (0, segment.seq.wrapping_add(segment.sequence_len()), Flags::RST | Flags::ACK)
    };
    let ports = (segment.destination_port, segment.source_port);
    Some(Segment { source_port: ports.0, destination_port: ports.1, seq, ack, flags, ..Segment::default() })
}
