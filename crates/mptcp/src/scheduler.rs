//! Schedulers, which select the subflow for new data.
//!
//! # Source
//! Smallest RTT, round robin and redundant: multipath-tcp.org v0.95, `net/mptcp/mptcp_sched.c`,
//! `mptcp_rr.c` and `mptcp_redundant.c`. Linux: 6.1, `mptcp_subflow_get_send`
//! (`net/mptcp/protocol.c`). BLEST: Ferlin, Alay, Mehani, Boreli, "BLEST: Blocking estimation-based
//! MPTCP scheduler for heterogeneous networks", IFIP Networking 2016, and `mptcp_blest.c` of
//! multipath-tcp.org.
//!
//! # Departures
//! - Round robin gives one segment at a time (`num_segments` 1), and skips subflows whose
//!   congestion window is full (`cwnd_limited` 1).
//! - Linux's memory of a socket is counted in bytes of payload; its limit, which grows with the
//!   congestion window (`tcp_sndbuf_expand`), is two windows.
//! - BLEST's correction factor is raised if the window was blocked and lowered otherwise, once per
//!   smoothed RTT of the slower subflow, by 0.1 within 1 and 2 (v0.95: from 1.2 within 1 and 1.3,
//!   by 0.04 and 0.01). The ratio of the RTTs is not rounded (v0.95: up), and the window of the
//!   fastest subflow grows by a segment per RTT (v0.95: in slow start to twice).

use ackclock_units::{Span, Time};

use crate::config::SchedulerKind;

/// `MPTCP_SEND_BURST_SIZE`: 64 KiB, less the headers of TCP, IPv6 and a fragment.
const BURST: u64 = (1 << 16) - 20 - 40 - 40 - 8;

/// The state of a subflow that a scheduler considers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// The index of the subflow.
    pub(crate) subflow: usize,
    pub(crate) srtt: Option<Span>,
    pub(crate) mss: u64,
    pub(crate) cwnd: u64,
    /// Bytes of the congestion window beyond the queued ones.
    pub(crate) room: u64,
    /// Bytes that are queued, sent or not, and not acknowledged.
    pub(crate) queued: u64,
    /// The congestion window divided by the RTT, in bytes per second.
    pub(crate) rate: Option<u64>,
}

impl Candidate {
    fn has_room(&self) -> bool {
        self.room >= self.mss
    }

    fn srtt(&self) -> Span {
        self.srtt.unwrap_or(Span::ZERO)
    }
}

/// The window that all subflows share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedWindow {
    /// Bytes that the peer accepts from the first unacknowledged one on.
    pub(crate) size: u64,
    /// Bytes of the window that were not sent.
    pub(crate) left: u64,
}

/// A scheduler and its state.
#[derive(Debug)]
pub(crate) struct Scheduler {
    kind: SchedulerKind,
    /// The subflow that was chosen last.
    last: usize,
    /// Remaining bytes of its burst.
    burst: u64,
    /// `avg_pacing_rate` of each subflow.
    rates: Vec<u64>,
    /// BLEST's correction factor, and the time of its last change.
    lambda: f64,
    reviewed_at: Time,
    blocked: bool,
}

impl Scheduler {
    pub(crate) fn new(kind: SchedulerKind) -> Scheduler {
        Scheduler { kind, last: 0, burst: 0, rates: Vec::new(), lambda: 1.0, reviewed_at: Time::ZERO, blocked: false }
    }

    /// Records that the shared window was full while a subflow had room.
    pub(crate) fn note_blocked(&mut self) {
        self.blocked = true;
    }

    /// Records that the subflow chosen last was given `bytes`.
    pub(crate) fn note_given(&mut self, bytes: u64) {
        self.burst = self.burst.saturating_sub(bytes);
    }

    /// Resets the state of a subflow that is replaced by another.
    pub(crate) fn forget(&mut self, subflow: usize) {
        if let Some(rate) = self.rates.get_mut(subflow) {
            *rate = 0;
        }
        if self.last == subflow {
            self.burst = 0;
        }
    }

    /// Selects a candidate for the next segment; `None` if none is suitable now.
    pub(crate) fn choose(&mut self, now: Time, candidates: &[Candidate], window: SharedWindow) -> Option<usize> {
        let chosen = match self.kind {
            SchedulerKind::MinRtt | SchedulerKind::Redundant => fastest(candidates.iter().filter(|one| one.has_room())),
            SchedulerKind::RoundRobin => self.next_in_turn(candidates),
            SchedulerKind::Linux => self.first_to_flush(candidates, window),
            SchedulerKind::Blest => self.unblocked(now, candidates, window),
        }?;
        self.last = chosen.subflow;
        Some(chosen.subflow)
    }

    fn next_in_turn<'c>(&self, candidates: &'c [Candidate]) -> Option<&'c Candidate> {
        let behind = candidates.iter().filter(|one| one.subflow > self.last);
        behind.chain(candidates.iter().filter(|one| one.subflow <= self.last)).find(|one| one.has_room())
    }

    fn first_to_flush<'c>(&mut self, candidates: &'c [Candidate], window: SharedWindow) -> Option<&'c Candidate> {
        let has_memory = |one: &Candidate| one.queued < 2 * one.cwnd.max(10 * one.mss);
        if self.burst > 0
            && let Some(last) = candidates.iter().find(|one| one.subflow == self.last && has_memory(one))
        {
            return Some(last);
        }
        self.burst = 0;
        let most = candidates.iter().map(|one| one.subflow + 1).max()?;
        if self.rates.len() < most {
            self.rates.resize(most, 0);
        }
        for one in candidates {
            let rate = &mut self.rates[one.subflow];
            if *rate == 0 {
                *rate = one.rate.unwrap_or(u64::MAX);
            }
        }
        let linger = |one: &&Candidate| (u128::from(one.queued) << 32) / u128::from(self.rates[one.subflow].max(1));
        let chosen = candidates.iter().min_by_key(linger).filter(|one| has_memory(one))?;
        let (burst, queued) = (u128::from(BURST.min(window.left)), u128::from(chosen.queued));
        if burst > 0 {
            let rate = &mut self.rates[chosen.subflow];
            let now = u128::from(chosen.rate.unwrap_or(u64::MAX));
            let mean = (u128::from(*rate) * queued + now * burst) / (burst + queued);
            *rate = u64::try_from(mean).unwrap_or(u64::MAX);
        }
        self.burst = burst as u64;
        Some(chosen)
    }

    /// The fastest subflow, or a slower one only if the window has room for everything that the
    /// fastest can send during the RTT of the slower one.
    fn unblocked<'c>(&mut self, now: Time, candidates: &'c [Candidate], window: SharedWindow) -> Option<&'c Candidate> {
        let chosen = fastest(candidates.iter().filter(|one| one.has_room()))?;
        let best = fastest(candidates.iter())?;
        if best.subflow == chosen.subflow || best.srtt() == Span::ZERO {
            return Some(chosen);
        }
        if now.since(self.reviewed_at) >= chosen.srtt() {
            let step = if std::mem::take(&mut self.blocked) { 0.1 } else { -0.1 };
            self.lambda = (self.lambda + step).clamp(1.0, 2.0);
            self.reviewed_at = now;
        }
        // Bytes that the fastest sends in an RTT of the slower one, while its window grows by a
        // segment per RTT (section III).
        let rtts = chosen.srtt().as_nanos() as f64 / best.srtt().as_nanos() as f64;
        let segments = best.cwnd as f64 / best.mss as f64;
        let sends = best.mss as f64 * (segments + (rtts - 1.0) / 2.0) * rtts;
        // This excludes the bytes in flight on the slower subflow and the segment in question.
        let room = window.size.saturating_sub(chosen.queued + chosen.mss);
        (sends * self.lambda <= room as f64).then_some(chosen)
    }
}

fn fastest<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> Option<&'c Candidate> {
    candidates.min_by_key(|one| one.srtt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: SharedWindow = SharedWindow { size: 1 << 20, left: 1 << 20 };

    fn candidate(subflow: usize, rtt_ms: u64, room: u64) -> Candidate {
        let (srtt, mss, cwnd) = (Some(Span::from_millis(rtt_ms)), 1000, 10_000);
        Candidate { subflow, srtt, mss, cwnd, room, queued: cwnd - room.min(cwnd), rate: Some(cwnd * 1000 / rtt_ms) }
    }

    fn choices(kind: SchedulerKind, candidates: &[Candidate], window: SharedWindow) -> Vec<Option<usize>> {
        let mut scheduler = Scheduler::new(kind);
        (0..4).map(|_| scheduler.choose(Time::ZERO, candidates, window)).collect()
    }

    #[test]
    fn the_smallest_rtt_with_room_for_a_segment() {
        let both = [candidate(0, 100, 5000), candidate(1, 10, 5000)];
        assert_eq!(choices(SchedulerKind::MinRtt, &both, WINDOW), [Some(1); 4]);
        let full = [candidate(0, 100, 5000), candidate(1, 10, 999)];
        assert_eq!(choices(SchedulerKind::MinRtt, &full, WINDOW), [Some(0); 4]);
        assert_eq!(choices(SchedulerKind::MinRtt, &full[1..], WINDOW), [None; 4]);
    }

    #[test]
    fn each_in_turn() {
        let three = [candidate(0, 1, 5000), candidate(1, 1, 0), candidate(2, 1, 5000)];
        assert_eq!(choices(SchedulerKind::RoundRobin, &three, WINDOW), [Some(2), Some(0), Some(2), Some(0)]);
    }

    #[test]
    fn linux_fills_bursts_and_goes_by_the_time_to_flush() {
        let mut scheduler = Scheduler::new(SchedulerKind::Linux);
        // 5000 bytes at 100 kB/s linger for 50 ms, 9000 at 1 MB/s for 9 ms.
        let both = [candidate(0, 100, 5000), candidate(1, 10, 1000)];
        let burst = BURST.div_ceil(1000) as usize;
        for _ in 0..burst {
            assert_eq!(scheduler.choose(Time::ZERO, &both, WINDOW), Some(1));
            scheduler.note_given(1000);
        }
        let slow = [both[0], Candidate { queued: 19_999, rate: Some(100_000), ..both[1] }];
        assert_eq!(scheduler.choose(Time::ZERO, &slow, WINDOW), Some(1), "the rate is an average");
        let full = [both[0], Candidate { queued: 20_000, ..both[1] }];
        scheduler.burst = 0;
        assert_eq!(scheduler.choose(Time::ZERO, &full[1..], WINDOW), None);
    }

    /// cwnd 10, 10 RTTs: (10 + 9 / 2) * 10 = 145 segments use the fast path meanwhile.
    #[test]
    fn blest_leaves_the_slow_path_where_it_would_block_the_fast_one() {
        let both = [candidate(0, 100, 5000), candidate(1, 10, 0)];
        let window = |size| SharedWindow { size, left: size };
        assert_eq!(choices(SchedulerKind::Blest, &both, window(145_000 + 6000)), [Some(0); 4]);
        assert_eq!(choices(SchedulerKind::Blest, &both, window(145_000 + 5999)), [None; 4]);
        let mut scheduler = Scheduler::new(SchedulerKind::Blest);
        scheduler.note_blocked();
        let later = Time::ZERO + Span::from_millis(100);
        assert_eq!(scheduler.choose(later, &both, window(145_000 * 11 / 10 + 5999)), None);
    }
}
