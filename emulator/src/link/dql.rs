//! Byte queue limits: the fewest bytes in a device's ring that keep the device busy until the next
//! completion.
//!
//! The ring takes packets while it holds no more than the limit. If the device ran out of packets
//! although the limit had stopped the queue, the limit grows by what was lacking; bytes that were
//! never needed during the hold time are taken off it.
//!
//! # Source
//! Linux, since 3.3: `lib/dynamic_queue_limits.c` (`dql_completed`, `dql_init`),
//! `include/linux/dynamic_queue_limits.h` (`dql_queued`, `dql_avail`), `include/linux/netdevice.h`
//! (`netdev_tx_sent_queue` stops the queue at a negative `dql_avail`, `netdev_tx_completed_queue`
//! starts it again), `net/core/net-sysfs.c` (`byte_queue_limits`: `limit_min`, `limit_max`,
//! `hold_time`).
//!
//! # Departures
//! Time counts in nanoseconds instead of jiffies, so that the hold time does not depend on `HZ`.

use ackclock_units::{Span, Time};

/// The bounds of byte queue limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BqlConfig {
    /// The least limit in bytes; 0.
    pub limit_min: u32,
    /// The largest limit in bytes; `DQL_MAX_LIMIT`.
    pub limit_max: u32,
    /// The time over which the least slack is looked for; a second (`HZ` jiffies).
    pub hold_time: Span,
}

impl BqlConfig {
    /// `DQL_MAX_LIMIT`: (2^32 - 1) / 2 - (2^32 - 1) / 16.
    pub const MAX: u32 = u32::MAX / 2 - u32::MAX / 16;
}

impl Default for BqlConfig {
    fn default() -> BqlConfig {
        BqlConfig { limit_min: 0, limit_max: BqlConfig::MAX, hold_time: Span::from_secs(1) }
    }
}

/// The limit and what it follows from; names as in the kernel.
#[derive(Debug)]
pub(super) struct Dql {
    config: BqlConfig,
    limit: u64,
    num_queued: u64,
    adj_limit: u64,
    last_obj_cnt: u64,
    num_completed: u64,
    prev_ovlimit: u64,
    prev_num_queued: u64,
    prev_last_obj_cnt: u64,
    lowest_slack: u64,
    slack_start_time: Time,
}

impl Dql {
    pub(super) fn new(config: BqlConfig) -> Dql {
        Dql {
            config,
            limit: 0,
            num_queued: 0,
            adj_limit: 0,
            last_obj_cnt: 0,
            num_completed: 0,
            prev_ovlimit: 0,
            prev_num_queued: 0,
            prev_last_obj_cnt: 0,
            lowest_slack: u64::MAX,
            slack_start_time: Time::ZERO,
        }
    }

    /// The present limit.
    #[cfg(test)]
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns `true` unless the queue is stopped (`dql_avail` below zero).
    pub(super) fn has_room(&self) -> bool {
        self.num_queued <= self.adj_limit
    }

    /// The ring takes a packet.
    pub(super) fn queued(&mut self, bytes: u32) {
        self.last_obj_cnt = bytes.into();
        self.num_queued += self.last_obj_cnt;
    }

    /// The device reports that these bytes have been sent since its last report.
    pub(super) fn completed(&mut self, now: Time, count: u64) {
        let completed = self.num_completed + count;
        let in_flight = self.num_queued - self.num_completed;
        let mut limit = self.limit;
        let mut ovlimit = in_flight.saturating_sub(limit);
        let in_progress = self.num_queued - completed;
        let was_in_progress = self.prev_num_queued - self.num_completed;
        let since = completed.saturating_sub(self.prev_num_queued);
        if (ovlimit > 0 && in_progress == 0) || (self.prev_ovlimit > 0 && since > 0) {
            // Starved: what was taken and sent within the interval could have been there before.
            limit += since + self.prev_ovlimit;
            (self.slack_start_time, self.lowest_slack) = (now, u64::MAX);
        } else if in_progress > 0 && was_in_progress > 0 && since == 0 {
            // Busy throughout: twice the bytes of an interval bound what is needed, and so does the
            // part of the last packet that was within the limit.
            let slack = (limit + self.prev_ovlimit).saturating_sub(2 * count);
            let of_last =
                if self.prev_ovlimit > 0 { self.prev_last_obj_cnt.saturating_sub(self.prev_ovlimit) } else { 0 };
            self.lowest_slack = self.lowest_slack.min(slack.max(of_last));
            if now > self.slack_start_time + self.config.hold_time {
                limit = limit.saturating_sub(self.lowest_slack);
                (self.slack_start_time, self.lowest_slack) = (now, u64::MAX);
            }
        }
        // `clamp` of the kernel, with the least above the most where they are set so.
        limit = limit.max(self.config.limit_min.into()).min(self.config.limit_max.into());
        if limit != self.limit {
            self.limit = limit;
            ovlimit = 0;
        }
        self.adj_limit = limit + completed;
        self.prev_ovlimit = ovlimit;
        self.prev_last_obj_cnt = self.last_obj_cnt;
        self.num_completed = completed;
        self.prev_num_queued = self.num_queued;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1500;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Takes packets while there is room, and says how many.
    fn fill(dql: &mut Dql) -> usize {
        std::iter::from_fn(|| dql.has_room().then(|| dql.queued(PACKET))).count()
    }

    /// One completion for each packet, the worked example: `adj_limit` and `num_queued` are 0 at
    /// the start, so that one packet enters and stops the queue. Its completion leaves nothing
    /// (`ovlimit` 1500, `inprogress` 0): the limit becomes 0 + (1500 - 0) + 0 = 1500. From then on
    /// two packets are in the ring, 3000 > 1500: over limit by 1500, but never empty, and the slack
    /// is max((1500 + 1500) - 2 * 1500, 1500 - 1500) = 0.
    #[test]
    fn a_completion_for_each_packet_needs_two_packets() {
        let mut dql = Dql::new(BqlConfig::default());
        assert_eq!(fill(&mut dql), 1);
        dql.completed(ms(1), PACKET.into());
        assert_eq!((dql.limit(), fill(&mut dql)), (1500, 2));
        for n in 2..3000 {
            dql.completed(ms(n), PACKET.into());
            assert_eq!((dql.limit(), dql.num_queued - dql.num_completed, fill(&mut dql)), (1500, 1500, 1), "{n}");
        }
    }

    /// Ten packets of 1500 bytes may be sent between two completions. The ring is found empty each
    /// time and the limit grows by what was sent: 1 packet: 0 + 1500; 2 packets: 1500 + 3000 - 0 =
    /// 4500, since `prev_num_queued` is what had been completed; 4 packets (0, 1500, 3000 and 4500
    /// are no more than the limit): 4500 + 6000 = 10500; 8 packets: 10500 + 12000 = 22500, which 16
    /// packets exceed.
    #[test]
    fn a_starved_device_gets_a_larger_limit() {
        let mut dql = Dql::new(BqlConfig::default());
        for (n, (packets, limit)) in [(1, 1500), (2, 4500), (4, 10_500), (8, 22_500)].into_iter().enumerate() {
            assert_eq!(fill(&mut dql), packets);
            dql.completed(ms(n as u64), packets as u64 * 1500);
            assert_eq!(dql.limit(), limit);
        }
        assert_eq!(fill(&mut dql), 16);
    }

    /// Goes on from there with ten packets each. The 16 in the ring leave six, fewer than the next
    /// ten: starved, 22500 + (52500 - 46500) + 1500 = 30000. Now 21 are there; over limit by 1500,
    /// the slack is 30000 + 1500 - 2 * 15000 = 1500, which comes off once a second is over. With
    /// 28500 the ring holds 20 packets, and the slack is 28500 - 30000, which is none. With five
    /// each it is 28500 + 1500 - 2 * 7500 = 15000.
    #[test]
    fn slack_is_taken_off_after_the_hold_time() {
        let mut dql = Dql::new(BqlConfig::default());
        for packets in [1, 2, 4, 8] {
            fill(&mut dql);
            dql.completed(ms(0), packets * 1500);
        }
        let mut steps = |from: u64, packets: u64, until: u64| {
            for n in from..until {
                fill(&mut dql);
                dql.completed(ms(n), packets * 1500);
            }
            dql.limit()
        };
        // Starved at 2 ms; a second is over by 1003 ms.
        assert_eq!([steps(1, 10, 1003), steps(1003, 10, 2000)], [30_000, 28_500]);
        // The next second ends at 2004 ms, the first one with five packets only at 3005 ms.
        assert_eq!([steps(2000, 5, 3005), steps(3005, 5, 3006)], [28_500, 13_500]);
    }

    #[test]
    fn the_limit_stays_within_its_bounds() {
        let config = BqlConfig { limit_min: 4000, limit_max: 5000, ..BqlConfig::default() };
        let mut dql = Dql::new(config);
        fill(&mut dql);
        dql.completed(ms(1), 1500);
        assert_eq!((dql.limit(), fill(&mut dql)), (4000, 3));
        dql.completed(ms(2), 4500);
        assert_eq!((dql.limit(), fill(&mut dql)), (5000, 4));
    }
}
