//! The data gathered between two decisions: a few additions for each event.

use ackclock_units::{Span, Time};

use crate::{Arrival, Flight, RateSample};

/// Groups of successive RTT samples that are kept of an interval.
const GROUPS: usize = 64;
const NANOS: f64 = 1e9;

/// Sums of successive RTT samples, so that the two halves of an interval can be compared: exact
/// while each group is of one sample, and to the size of a group otherwise.
#[derive(Clone, Debug)]
struct Halves {
    sums: [f64; GROUPS],
    /// Samples in each full group.
    size: u32,
    /// Samples so far.
    count: u32,
}

impl Halves {
    fn new() -> Halves {
        Halves { sums: [0.0; GROUPS], size: 1, count: 0 }
    }

    fn add(&mut self, sample: f64) {
        if self.count == self.size * GROUPS as u32 {
            for pair in 0..GROUPS / 2 {
                self.sums[pair] = self.sums[2 * pair] + self.sums[2 * pair + 1];
            }
            self.sums[GROUPS / 2..].fill(0.0);
            self.size *= 2;
        }
        let group = (self.count / self.size) as usize;
        self.sums[group] = if self.count.is_multiple_of(self.size) { sample } else { self.sums[group] + sample };
        self.count += 1;
    }

    /// The mean of the later half less that of the earlier half; zero with fewer than two samples.
    fn increase(&self) -> f64 {
        let groups = self.count / self.size;
        let half = groups / 2 * self.size;
        if half == 0 {
            return 0.0;
        }
        let filled = self.count.div_ceil(self.size) as usize;
        let (early, late) = self.sums[..filled].split_at((half / self.size) as usize);
        late.iter().sum::<f64>() / f64::from(self.count - half) - early.iter().sum::<f64>() / f64::from(half)
    }

    fn clear(&mut self) {
        (self.size, self.count) = (1, 0);
    }
}

/// The events since the last decision, and the memory of earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    opened: Time,
    began: Time,
    sent: u64,
    delivered: u64,
    lost: u64,
    marked: u64,
    acks: u64,
    timeouts: u64,
    samples: u32,
    rtt_sum: f64,
    rtt_min: f64,
    rtt_max: f64,
    halves: Halves,
    in_recovery: bool,
    // State of the connection.
    rtt_last: f64,
    rtt_smoothed: f64,
    rtt_deviation: f64,
    least_mean_rtt: f64,
    throughput: f64,
    max_throughput: f64,
    delivery_rate: f64,
}

/// An interval in plain numbers: seconds, bytes, bit/s.
#[derive(Clone, Debug, Default)]
pub(super) struct MonitorInterval {
    pub(super) interval: f64,
    pub(super) age: f64,
    pub(super) segment: f64,
    pub(super) delivered: f64,
    pub(super) lost: f64,
    pub(super) marked: f64,
    pub(super) acks: f64,
    pub(super) samples: f64,
    pub(super) timeouts: f64,
    pub(super) throughput: f64,
    pub(super) throughput_before: f64,
    pub(super) max_throughput: f64,
    pub(super) max_throughput_before: f64,
    pub(super) send_rate: f64,
    pub(super) lost_rate: f64,
    pub(super) delivery_rate: f64,
    pub(super) rtt: f64,
    pub(super) rtt_min: f64,
    pub(super) rtt_max: f64,
    pub(super) rtt_last: f64,
    pub(super) rtt_increase: f64,
    pub(super) rtt_deviation: f64,
    pub(super) least_mean_rtt: f64,
    pub(super) srtt: f64,
    pub(super) min_rtt: f64,
    pub(super) cwnd: f64,
    pub(super) in_flight: f64,
    pub(super) pacing_rate: f64,
    pub(super) recovery: f64,
    pub(super) app_limited: f64,
    pub(super) action: [f64; 2],
}

fn seconds(span: Option<Span>) -> f64 {
    span.map_or(0.0, |span| span.as_nanos() as f64 / NANOS)
}

impl Monitor {
    pub(super) fn new(now: Time) -> Monitor {
        Monitor {
            opened: now,
            began: now,
            sent: 0,
            delivered: 0,
            lost: 0,
            marked: 0,
            acks: 0,
            timeouts: 0,
            samples: 0,
            rtt_sum: 0.0,
            rtt_min: 0.0,
            rtt_max: 0.0,
            halves: Halves::new(),
            in_recovery: false,
            rtt_last: 0.0,
            rtt_smoothed: 0.0,
            rtt_deviation: 0.0,
            least_mean_rtt: 0.0,
            throughput: 0.0,
            max_throughput: 0.0,
            delivery_rate: 0.0,
        }
    }

    /// The highest throughput of any interval so far, bit/s.
    pub(super) fn max_throughput(&self) -> f64 {
        self.max_throughput
    }

    pub(super) fn sent(&mut self, bytes: u32) {
        self.sent += u64::from(bytes);
    }

    pub(super) fn lost(&mut self, bytes: u32) {
        self.lost += u64::from(bytes);
    }

    pub(super) fn timed_out(&mut self) {
        self.timeouts += 1;
    }

    pub(super) fn rate(&mut self, sample: &RateSample) {
        if let Some(interval) = sample.interval.filter(|interval| *interval > Span::ZERO) {
            self.delivery_rate = sample.delivered as f64 * 8.0 * NANOS / interval.as_nanos() as f64;
        }
    }

    pub(super) fn arrival(&mut self, arrival: &Arrival) {
        self.acks += 1;
        self.delivered += arrival.delivered;
        self.marked += arrival.ce;
        self.in_recovery = arrival.in_recovery;
    }

    pub(super) fn rtt(&mut self, sample: Span) {
        let rtt = sample.as_nanos() as f64 / NANOS;
        if self.samples == 0 {
            (self.rtt_min, self.rtt_max) = (rtt, rtt);
        }
        self.samples += 1;
        self.rtt_sum += rtt;
        self.rtt_min = self.rtt_min.min(rtt);
        self.rtt_max = self.rtt_max.max(rtt);
        self.halves.add(rtt);
        if self.rtt_last == 0.0 {
            (self.rtt_smoothed, self.rtt_deviation) = (rtt, rtt / 2.0);
        } else {
            // RFC 6298 rule 2.3.
            self.rtt_deviation = 0.75 * self.rtt_deviation + 0.25 * (self.rtt_smoothed - rtt).abs();
            self.rtt_smoothed = 0.875 * self.rtt_smoothed + 0.125 * rtt;
        }
        self.rtt_last = rtt;
    }

    /// Ends the interval, and begins the next one.
    pub(super) fn end(&mut self, f: &Flight, cwnd: u64, pacing_rate: Option<f64>, action: [f64; 2]) -> MonitorInterval {
        let interval = f.now.since(self.began).as_nanos() as f64 / NANOS;
        let rate = |bytes: u64| if interval > 0.0 { bytes as f64 * 8.0 / interval } else { 0.0 };
        let throughput = rate(self.delivered);
        let samples = f64::from(self.samples);
        let or_last = |value: f64| if self.samples > 0 { value } else { self.rtt_last };
        let rtt = or_last(self.rtt_sum / samples.max(1.0));
        if self.samples > 0 && (self.least_mean_rtt == 0.0 || rtt < self.least_mean_rtt) {
            self.least_mean_rtt = rtt;
        }
        let max_throughput_before = self.max_throughput;
        self.max_throughput = max_throughput_before.max(throughput);
        let srtt = seconds(f.srtt);
        let by_window = if srtt > 0.0 { cwnd as f64 * 8.0 / srtt } else { 0.0 };
        let seen = MonitorInterval {
            interval,
            age: f.now.since(self.opened).as_nanos() as f64 / NANOS,
            segment: f.segment() as f64,
            delivered: self.delivered as f64,
            lost: self.lost as f64,
            marked: self.marked as f64,
            acks: self.acks as f64,
            samples,
            timeouts: self.timeouts as f64,
            throughput,
            throughput_before: self.throughput,
            max_throughput: self.max_throughput,
            max_throughput_before,
            send_rate: rate(self.sent),
            lost_rate: rate(self.lost),
            delivery_rate: self.delivery_rate,
            rtt,
            rtt_min: or_last(self.rtt_min),
            rtt_max: or_last(self.rtt_max),
            rtt_last: self.rtt_last,
            rtt_increase: self.halves.increase(),
            rtt_deviation: self.rtt_deviation,
            least_mean_rtt: self.least_mean_rtt,
            srtt,
            min_rtt: seconds(f.min_rtt),
            cwnd: cwnd as f64,
            in_flight: f.in_flight as f64,
            pacing_rate: pacing_rate.unwrap_or(by_window),
            recovery: f64::from(u8::from(self.in_recovery || f.after_timeout)),
            app_limited: f64::from(u8::from(f.app_limited)),
            action,
        };
        self.throughput = throughput;
        self.began = f.now;
        (self.sent, self.delivered, self.lost, self.marked, self.acks, self.timeouts) = (0, 0, 0, 0, 0, 0);
        (self.samples, self.rtt_sum) = (0, 0.0);
        self.halves.clear();
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halves_of_an_interval_are_compared() {
        let increase = |samples: &[f64]| {
            let mut halves = Halves::new();
            samples.iter().for_each(|&sample| halves.add(sample));
            halves.increase()
        };
        assert_eq!(increase(&[]), 0.0);
        assert_eq!(increase(&[5.0]), 0.0);
        assert_eq!(increase(&[1.0, 4.0]), 3.0);
        // The later half of an odd number has one more.
        assert_eq!(increase(&[1.0, 4.0, 6.0]), 4.0);
        let ramp: Vec<f64> = (0..64).map(f64::from).collect();
        assert_eq!(increase(&ramp), 32.0);
        // Groups of two.
        let ramp: Vec<f64> = (0..128).map(f64::from).collect();
        assert_eq!(increase(&ramp), 64.0);
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!((increase(&ramp) - 500.0).abs() <= 16.0, "{}", increase(&ramp));
    }
}
