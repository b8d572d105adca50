//! The shortest round trip, ProbeRTT, and the restart from idle, which may replace it.

use ackclock_units::{Span, Time};

use super::probe_bw::AckPhase;
use super::{Bbr, Sample, State};

/// The shortest round trips of two windows.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// `min_rtt`: of the last 10 s; `None` is infinite.
    min_rtt: Option<Span>,
    /// `min_rtt_stamp`.
    stamp: Time,
    /// `probe_rtt_min_delay`: of the last 5 s.
    probe_delay: Option<Span>,
    /// `probe_rtt_min_stamp`.
    pub(super) probe_stamp: Time,
    /// `probe_rtt_expired`.
    probe_expired: bool,
}

impl MinRtt {
    pub(super) fn new(now: Time, srtt: Option<Span>) -> MinRtt {
        MinRtt { min_rtt: srtt, stamp: now, probe_delay: srtt, probe_stamp: now, probe_expired: false }
    }

    /// `min_rtt`.
    pub(super) fn get(&self) -> Option<Span> {
        self.min_rtt
    }
}

/// The state of ProbeRTT and restarts.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `probe_rtt_done_stamp`, once what is in flight has come down.
    done_at: Option<Time>,
    /// `probe_rtt_round_done`.
    round_done: bool,
    /// `idle_restart`.
    idle_restart: bool,
    /// `MarkConnectionAppLimited`: what was sent while the count of delivered bytes was within
    /// these.
    marked: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Returns `true` if a packet that was sent when `delivered` bytes had been delivered is marked
    /// as limited by the application.
    pub(super) fn marks(&self, delivered: u64) -> bool {
        self.marked.is_some_and(|(first, last)| (first..=last).contains(&delivered))
    }

    fn mark(&mut self, delivered: u64, in_flight: u64) {
        let first = match self.marked {
            Some((first, last)) if delivered <= last => first,
            _ => delivered,
        };
        self.marked = Some((first, delivered.saturating_add(in_flight)));
    }
}

impl Bbr {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample) {
        let shorter = |a: Option<Span>, b: Option<Span>| a.is_some_and(|a| b.is_none_or(|b| a < b));
        let m = &mut self.min_rtt;
        m.probe_expired = rs.now > m.probe_stamp + self.config.probe_rtt_interval;
        if rs.rtt.is_some() && (shorter(rs.rtt, m.probe_delay) || m.probe_expired) {
            m.probe_delay = rs.rtt;
            m.probe_stamp = rs.now;
        }
        let expired = rs.now > m.stamp + self.config.min_rtt_filter_len;
        if shorter(m.probe_delay, m.min_rtt) || expired {
            m.min_rtt = m.probe_delay;
            m.stamp = m.probe_stamp;
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.probe_expired && !self.probe_rtt.idle_restart {
            self.state = State::ProbeRtt;
            // After the state has changed (draft, Linux): a larger window that was saved before
            // stays saved.
            self.save_cwnd();
            self.probe_rtt.done_at = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.delivered > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, rs: &Sample) {
        self.probe_rtt.mark(self.delivered, rs.in_flight);
        if self.probe_rtt.done_at.is_none() && rs.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done_at = Some(rs.now + self.config.probe_rtt_duration);
            self.probe_rtt.round_done = false;
            self.start_round();
        } else if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.rounds.start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(rs.now);
            }
        }
    }

    /// `CheckProbeRTTDone`.
    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_at.is_some_and(|done| now > done) {
            self.min_rtt.probe_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// `ExitProbeRTT`. The queue is empty, so that there is nothing to bring down.
    fn exit_probe_rtt(&mut self, now: Time) {
        self.model.reset_short_term();
        if self.full_bw.reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// `HandleRestartFromIdle`, nothing being in flight and the application having had nothing to
    /// send.
    pub(super) fn handle_restart_from_idle(&mut self, now: Time) {
        self.probe_rtt.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
