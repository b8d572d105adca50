//! Measures the punctuality of a run, and reports it at the end.

use std::fs;

use ackclock_trace::{Histogram, Lateness, LiveHost};
use ackclock_units::{Span, Time};

use super::delays::RecentDelays;
use crate::LONGEST_STALL;

/// The punctuality of a run.
#[derive(Debug, Default)]
pub(super) struct Punctuality {
    /// Time from a packet's due time until its device has taken it, in nanoseconds.
    lateness: Histogram,
    /// The longest time that each packet may have waited in its device before it was read, in
    /// nanoseconds.
    unread: Histogram,
    /// The time since when the loop has been behind.
    since: Option<Time>,
    behind: Span,
    stall: Span,
    /// The recent measurements, if the run is watched.
    recent: Option<Box<RecentDelays>>,
}

impl Punctuality {
    /// Records that work was due at `due`. The loop is behind until [`Punctuality::caught_up`].
    #[inline]
    pub(super) fn is_due(&mut self, due: Time) {
        self.since = Some(self.since.map_or(due, |since| since.min(due)));
    }

    /// Records that all work is done at `now`.
    #[inline]
    pub(super) fn caught_up(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.behind += now.since(since);
        }
    }

    /// Records packets, the first of which was due at `due`, that their device took at `now`.
    #[inline]
    pub(super) fn handed_over(&mut self, due: Time, now: Time, packets: u32) {
        let late = now.since(due).as_nanos();
        self.lateness.add_repeated(late, packets.into());
        if let Some(recent) = &mut self.recent {
            recent.lateness.add_repeated(late, packets);
        }
    }

    /// Records that a packet was read that may have `waited` in its device.
    #[inline]
    pub(super) fn read(&mut self, waited: Span) {
        self.unread.add(waited.as_nanos());
        if let Some(recent) = &mut self.recent {
            recent.unread.add(waited.as_nanos());
        }
    }

    /// Keeps recent measurements from now on.
    pub(super) fn be_watched(&mut self) {
        self.recent = Some(Box::default());
    }

    /// The recent measurements, if the run is watched.
    pub(super) fn recent(&mut self) -> Option<&mut RecentDelays> {
        self.recent.as_deref_mut()
    }

    /// Records the duration of a round of the loop, or the delay of a wakeup.
    #[inline]
    pub(super) fn stood_still(&mut self, time: Span) {
        self.stall = self.stall.max(time);
    }

    /// The longest round of the loop or delay of a wakeup.
    pub(super) fn longest_stall(&self) -> Span {
        self.stall
    }

    /// The time during which due work was outstanding: the union of the intervals that begin when
    /// something was due, or with a batch of reads that did not empty its device, and end when
    /// everything due has been done and written and the devices are empty.
    pub(super) fn behind(&self) -> Span {
        self.behind
    }

    /// The lateness of packets.
    pub(super) fn lateness(&self) -> Lateness {
        of(&self.lateness)
    }

    /// The longest times that packets may have waited in their device before they were read: since
    /// the loop had last read it, or was to wake.
    pub(super) fn unread(&self) -> Lateness {
        of(&self.unread)
    }

    /// The reasons why the run is not valid, with `advice` against lateness; empty if it is within
    /// `limit` and no packet was lost.
    pub(super) fn faults(&self, limit: Option<Span>, advice: &str, hosts: &[LiveHost]) -> Vec<String> {
        let mut faults = Vec::new();
        let lateness = self.lateness();
        if let (Some(limit), Some(p99)) = (limit, self.lateness.quantile(0.99))
            && p99 > limit.as_nanos() as f64
        {
            let of = |value: Option<f64>| value.unwrap_or_default();
            faults.push(format!(
                "1 packet in 100 was handed over {} ms or more after its time, and no more than {} ms are allowed (median {} ms, \
                 worst {} ms); {advice}, or allow more (run.lateness_limit)",
                to_ms(p99),
                limit.as_millis_f64(),
                of(lateness.p50),
                of(lateness.max),
            ));
        }
        if limit.is_some() && self.stall > LONGEST_STALL {
            faults.push(format!(
                "the loop stood still for {} ms at a time: what hosts sent meanwhile entered the path too late",
                to_ms(self.stall.as_nanos() as f64)
            ));
        }
        // Packets that arrive during a stall enter the path late, however punctually they leave it.
        if let (Some(limit), Some(p99)) = (limit, self.unread.quantile(0.99))
            && p99 > limit.as_nanos() as f64
        {
            faults.push(format!(
                "1 packet in 100 was read up to {} ms or more after its host had sent it, and no more than {} ms are allowed: \
                 the loop was stopped, or kept from looking, for as long; {advice}, or allow more (run.lateness_limit)",
                to_ms(p99),
                limit.as_millis_f64(),
            ));
        }
        for host in hosts {
            let LiveHost { id, tun, device_dropped, truncated, refused, .. } = host;
            if *device_dropped > 0 {
                faults.push(format!(
                    "{} from host {id} never came to the path: they were not read from {tun} before its queue was full; leave \
                     this machine more idle processors, or have less traffic",
                    packets(*device_dropped)
                ));
            }
            if *truncated > 0 {
                faults.push(format!(
                    "{} from host {id} were longer than the MTU of every host, and did not get further: {tun} is not as it was \
                     made",
                    packets(*truncated)
                ));
            }
            if *refused > 0 {
                faults.push(format!("{} were not taken by {tun}, and did not reach host {id}", packets(*refused)));
            }
        }
        faults
    }
}

/// Quantiles of a histogram in nanoseconds.
fn of(times: &Histogram) -> Lateness {
    let at = |q| times.quantile(q).map(to_ms);
    let whole = times.distribution(1e-6);
    Lateness {
        p50: at(0.5),
        p99: at(0.99),
        p99_9: at(0.999),
        max: whole.max.map(|ms| to_ms(ms * 1e6)),
        samples: whole.samples,
    }
}

/// The calling thread's use of processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processor {
    /// Time for which it ran.
    pub(super) used: Span,
    /// Time for which it was ready to run, and waited.
    pub(super) waited: Span,
}

impl Processor {
    /// The use since the thread began; `None` where the kernel does not report it.
    pub(super) fn of_this_thread() -> Option<Processor> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        // The third number counts time slices.
        let mut numbers = text.split_whitespace().map(|number| number.parse().ok().map(Span::from_nanos));
        Some(Processor { used: numbers.next()??, waited: numbers.next()?? })
    }

    /// The use since `before`.
    pub(super) fn since(self, before: Processor) -> Processor {
        Processor { used: self.used - before.used, waited: self.waited - before.waited }
    }
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}

/// Converts nanoseconds to milliseconds, rounded to microseconds.
fn to_ms(nanos: f64) -> f64 {
    (nanos / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "less would be more";

    #[test]
    fn lateness_is_from_due_to_done() {
        let mut measures = Punctuality::default();
        for late in 1..=1000 {
            measures.handed_over(Time::from_millis(7), Time::from_millis(7) + Span::from_micros(late), 1);
        }
        let lateness = measures.lateness();
        assert_eq!(lateness.samples, 1000);
        assert_eq!(lateness.max, Some(1.0));
        // A histogram's quantiles are within 0.1 %.
        for (found, expected) in [(lateness.p50, 0.5), (lateness.p99, 0.99), (lateness.p99_9, 0.999)] {
            let found = found.unwrap();
            assert!((found - expected).abs() <= 0.001, "{found} for {expected}");
        }
    }

    #[test]
    fn a_loop_that_stood_still_is_not_valid_though_nothing_was_due() {
        let mut measures = Punctuality::default();
        for ms in [3, 100, 20] {
            measures.stood_still(Span::from_millis(ms));
        }
        let limit = Some(Span::from_millis(1));
        assert!(measures.faults(limit, HELP, &[]).is_empty());
        measures.stood_still(Span::from_micros(1_200_250));
        measures.stood_still(Span::ZERO);
        assert_eq!(measures.longest_stall(), Span::from_micros(1_200_250));
        let faults = measures.faults(limit, HELP, &[]);
        assert!(faults.len() == 1 && faults[0].contains("1200.25 ms"), "{faults:?}");
        assert!(measures.faults(None, HELP, &[]).is_empty());
    }

    #[test]
    fn packets_that_may_have_waited_unread_make_a_run_invalid() {
        let mut measures = Punctuality::default();
        (0..98).for_each(|_| measures.read(Span::from_micros(30)));
        measures.read(Span::from_millis(60));
        // Just 1 in 99: the 99th percentile is between the two.
        let limit = Some(Span::from_millis(60));
        assert!(measures.faults(limit, HELP, &[]).is_empty());
        (0..9).for_each(|_| measures.read(Span::from_millis(60)));
        let faults = measures.faults(Some(Span::from_millis(1)), HELP, &[]);
        assert!(faults.len() == 1 && faults[0].contains("read up to"), "{faults:?}");
        assert_eq!(measures.unread().max, Some(60.0));
        assert!(measures.faults(None, HELP, &[]).is_empty());
    }

    #[test]
    fn what_a_thread_had_of_processors_only_adds_up() {
        let Some(before) = Processor::of_this_thread() else { return };
        // The kernel brings its numbers up to date at its ticks, and when a thread sleeps.
        let had = || Processor::of_this_thread().expect("as before").since(before);
        assert!((0..1_000_000).any(|_| had().used > Span::ZERO), "{:?}", had());
    }

    #[test]
    fn without_packets_there_is_no_lateness() {
        let measures = Punctuality::default();
        assert_eq!(measures.lateness(), Lateness::default());
        assert!(measures.faults(Some(Span::ZERO), HELP, &[]).is_empty());
    }

    #[test]
    fn behind_is_the_time_with_something_due() {
        let mut measures = Punctuality::default();
        let at = Time::from_micros;
        measures.is_due(at(100));
        // Further work that is taken up meanwhile does not begin anew.
        measures.is_due(at(120));
        measures.caught_up(at(130));
        // Nothing was due.
        measures.caught_up(at(500));
        measures.is_due(at(700));
        measures.caught_up(at(705));
        assert_eq!(measures.behind(), Span::from_micros(35));
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        let mut measures = Punctuality::default();
        for late in [20, 2310] {
            measures.handed_over(Time::ZERO, Time::from_micros(late), 1);
        }
        assert!(measures.faults(None, HELP, &[]).is_empty());
        // Nanoseconds say nothing.
        for late in [20_000, 2_310_023] {
            measures.handed_over(Time::ZERO, Time::from_nanos(late), 1);
        }
        // Buckets are 0.1 % wide.
        assert!(measures.faults(Some(Span::from_micros(2313)), HELP, &[]).is_empty());
        let host = LiveHost {
            id: "left".into(),
            tun: "ack0".into(),
            device_dropped: 12,
            truncated: 1,
            refused: 3,
            ..LiveHost::default()
        };
        let faults = measures.faults(Some(Span::from_millis(1)), HELP, &[LiveHost::default(), host]);
        assert_eq!(faults.len(), 4, "{faults:?}");
        // From 2^21 ns on buckets are 4096 ns wide; the middle of that from 2^21 + 51 * 4096 on
        // is 2308096.
        assert!(faults[0].contains("2.308 ms or more after its time, and no more than 1 ms"), "{}", faults[0]);
        assert!(faults[0].contains("median 0.02 ms, worst 2.31 ms); less would be more, or"), "{}", faults[0]);
        assert!(faults[1].starts_with("12 packets from host left never came"), "{}", faults[1]);
        assert!(faults[2].starts_with("1 packet from host left were longer"), "{}", faults[2]);
        assert!(faults[3].starts_with("3 packets were not taken by ack0"), "{}", faults[3]);
    }
}
