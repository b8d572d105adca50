//! TBF, the token bucket filter: a drop-tail queue whose packets leave no faster than a rate, but
//! for bursts.
//!
//! Tokens accumulate with time, up to `burst` bytes' worth. A packet leaves when there are tokens
//! for all of it. With `peakrate` a second bucket of `mtu` bytes limits the rate within bursts. A
//! link's own token bucket (its key `burst`) replaces its transmitter and works with any queue;
//! this is a queue before a transmitter, as a host has it before its device.
//!
//! # Source
//! Linux `sch_tbf`, with the `bfifo` that it has by default; parameters as `tc-tbf(8)`, and what
//! follows from `latency` as iproute2 `tc/q_tbf.c`.
//!
//! # Departures
//! - Times are exact; Linux multiplies by a rounded reciprocal of the rate.
//! - A packet larger than `burst` (or than `mtu`, with `peakrate`) is refused; Linux cuts offloaded
//!   segments first.
//! - Parameters that change nothing leave the buckets as they are; Linux fills them.
//! - Another discipline inside is left out.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Rate, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Overhead, QueueDisc, Queued, Store, Variable};

const MANUAL: &str = "tc-tbf(8)";

const SIZES: Domain = Domain::Bytes(1, MAX);

configuration! { self:
/// Parameters of a token bucket filter.
#[derive(Clone, Debug, PartialEq)]
pub struct TbfConfig {
    /// The rate. Default: 0.5 Mbit/s, the example of tc-tbf(8) (tc requires it).
    pub rate: Rate = const { Rate::from_bps(500_000).unwrap() } => (Domain::Rate, MANUAL);
    /// The size of the bucket in bytes, at least the largest packet. Default: 5 KiB, the example's.
    pub burst: u64 = 5 << 10 => (SIZES, MANUAL);
    /// The most bytes that wait. Default: from `latency`.
    pub limit: Option<u64> = None => (SIZES, MANUAL, derived "what leaves within `latency`, and `burst`");
    /// The longest time that a packet waits. Default: 70 ms, the example's, unless there is
    /// `limit`.
    pub latency: Option<Span> = None => (Domain::Time { positive: false }, MANUAL, derived "70 ms, without `limit`");
    /// The rate within bursts, above `rate`. Default: none.
    pub peakrate: Option<Rate> = None => (Domain::OrOff(&Domain::Rate), MANUAL);
    /// With `peakrate`: the size of its bucket in bytes, at least the largest packet. Default:
    /// 1540, the example's.
    pub mtu: Option<u64> = None => (SIZES, MANUAL, derived "1540 bytes, with `peakrate`");
    /// The lengths that take tokens (`psched_l2t_ns`); `limit` counts bytes of the queue. Default:
    /// those in the queue.
    pub overhead: Overhead = Overhead::default() => (with |v| self.overhead.parameters(v, MANUAL));
} problem
}

impl Discipline for TbfConfig {}

impl TbfConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if self.burst == 0 || self.mtu == Some(0) {
            Some("burst and mtu must not be zero")
        } else if self.burst > MAX || self.mtu.is_some_and(|mtu| mtu > MAX) {
            Some("burst and mtu must be below 4 GiB")
        } else if self.peakrate.is_some_and(|peak| peak <= self.rate) {
            Some("peakrate must be above rate")
        } else if self.mtu.is_some() && self.peakrate.is_none() {
            Some("mtu needs peakrate")
        } else if self.limit.is_some() && self.latency.is_some() {
            Some("limit and latency exclude each other")
        } else {
            None
        }
    }

    /// The most bytes that wait, as given or derived (`q_tbf.c`): of the two buckets the smaller.
    pub fn bytes(&self) -> u64 {
        let latency = self.latency.unwrap_or(Span::from_millis(70));
        let within = |rate: Rate| (latency.as_secs_f64() * rate.as_bps() as f64 / 8.0) as u64;
        let of_rate = within(self.rate).saturating_add(self.burst);
        let of_peak = self.peakrate.map_or(u64::MAX, |peak| within(peak).saturating_add(self.peak_bytes()));
        self.limit.unwrap_or(of_rate.min(of_peak))
    }

    fn peak_bytes(&self) -> u64 {
        self.mtu.unwrap_or(1540)
    }

    /// The largest packet that ever leaves (`max_size`).
    fn largest(&self) -> u64 {
        if self.peakrate.is_some() { self.burst.min(self.peak_bytes()) } else { self.burst }
    }

    fn buckets(&self) -> (Bucket, Option<Bucket>) {
        // As long as a packet of this size takes (`tbf_change`).
        let bucket = |rate, bytes: u64| Bucket::new(rate, self.overhead.of(u32::try_from(bytes).unwrap_or(u32::MAX)));
        (bucket(self.rate, self.burst), self.peakrate.map(|peak| bucket(peak, self.peak_bytes())))
    }
}

/// A bucket, whose tokens are nanoseconds of transmission.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    size: i64,
    tokens: i64,
}

impl Bucket {
    /// A full one of this many bytes.
    fn new(rate: Rate, bytes: u32) -> Bucket {
        let size = time_of(rate, bytes.into());
        Bucket { rate, size, tokens: size }
    }

    /// The tokens that `passed` nanoseconds and a packet leave; below zero the packet has to wait
    /// for what is missing.
    fn after(&self, passed: i64, bytes: u32) -> i64 {
        self.tokens.saturating_add(passed).min(self.size) - time_of(self.rate, bytes.into())
    }
}

/// The transmission time of `bytes` in nanoseconds (`psched_l2t_ns`).
fn time_of(rate: Rate, bytes: u64) -> i64 {
    (u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps())).min(i64::MAX as u128 / 4) as i64
}

/// A token bucket filter.
#[derive(Debug)]
pub struct Tbf<P> {
    config: TbfConfig,
    bucket: Bucket,
    peak: Option<Bucket>,
    /// The time of the tokens (`t_c`).
    counted: Time,
    store: Store<P>,
}

impl<P: Queued> Tbf<P> {
    /// An empty queue with full buckets.
    ///
    /// # Panics
    /// If the parameters have a [`TbfConfig::problem`].
    pub fn new(config: TbfConfig) -> Tbf<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let (bucket, peak) = config.buckets();
        Tbf { config, bucket, peak, counted: Time::ZERO, store: Store::new() }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Tbf<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let bytes = u64::from(packet.wire_len());
        if bytes > self.config.largest() || self.store.backlog().bytes + bytes > self.config.bytes() {
            self.store.refuse(packet, DropReason::Limit, drops);
        } else {
            self.store.admit(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let Some(head) = self.store.front() else { return Dequeue::Empty };
        let bytes = head.packet.wire_len();
        let passed = i64::try_from(now.since(self.counted).as_nanos()).unwrap_or(i64::MAX).min(self.bucket.size);
        let on_link = self.config.overhead.of(bytes);
        let tokens = self.bucket.after(passed, on_link);
        let peak = self.peak.map(|peak| peak.after(passed, on_link));
        let missing = tokens.min(peak.unwrap_or(0));
        // A change may have left a packet that no bucket is large enough for.
        if missing < 0 && u64::from(bytes) <= self.config.largest() {
            return Dequeue::NotBefore(now + Span::from_nanos(missing.unsigned_abs()));
        }
        self.counted = now;
        self.bucket.tokens = tokens.max(0);
        if let (Some(bucket), Some(tokens)) = (&mut self.peak, peak) {
            bucket.tokens = tokens.max(0);
        }
        self.store.send()
    }

    /// Other parameters at run time. The buckets are full again, and packets stay, also beyond a
    /// new limit (`tbf_change`).
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<TbfConfig>(config)?.clone();
        valid(config.problem())?;
        if config != self.config {
            (self.bucket, self.peak) = config.buckets();
            self.config = config;
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The tokens that the last packet left, as bytes.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        let bytes = |bucket: &Bucket| Variable::Bytes(bucket.tokens as f64 * bucket.rate.as_bps() as f64 / 8e9);
        see("tokens", bytes(&self.bucket));
        if let Some(peak) = &self.peak {
            see("peak_tokens", bytes(peak));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Stub, stub};

    /// A byte takes a microsecond.
    fn config() -> TbfConfig {
        TbfConfig { rate: Rate::from_bps(8_000_000).unwrap(), burst: 3000, ..TbfConfig::default() }
    }

    fn tbf(config: TbfConfig, packets: u32) -> Tbf<Stub> {
        let mut queue = Tbf::new(config);
        let mut drops = Drops::new();
        (0..packets).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
        assert_eq!(drops, []);
        queue
    }

    /// The times at which packets leave, in microseconds, asking as a link does.
    fn departures(queue: &mut Tbf<Stub>) -> Vec<u64> {
        let (mut now, mut times) = (Time::ZERO, Vec::new());
        loop {
            match queue.dequeue(now, &mut Drops::new()) {
                Dequeue::Packet(_) => times.push(now.since(Time::ZERO).as_micros()),
                Dequeue::NotBefore(later) => {
                    assert!(later > now);
                    now = later;
                }
                Dequeue::Empty => return times,
            }
        }
    }

    /// sch_tbf.c: s_i + ... + s_k <= B + R (t_k - t_i). The bucket of 3000 bytes passes three
    /// packets at once, then there is one each 1000 us.
    #[test]
    fn a_full_bucket_passes_at_once() {
        assert_eq!(departures(&mut tbf(config(), 6)), [0, 0, 0, 1000, 2000, 3000]);
    }

    /// With a peak rate of twice the rate and a bucket of 1000 bytes, packets of the burst are 500
    /// us apart. At 2000 us there are 3000 + 2000 - 4 * 1000 bytes left in the large bucket for the
    /// fifth, which empties it; the sixth has the 500 that came since, and waits for as many more.
    #[test]
    fn the_peak_rate_holds_within_a_burst() {
        let peak = TbfConfig { peakrate: Rate::from_bps(16_000_000), mtu: Some(1000), ..config() };
        assert_eq!(departures(&mut tbf(peak, 7)), [0, 500, 1000, 1500, 2000, 3000, 4000]);
    }

    /// `q_tbf.c`: limit = rate * latency + burst, with `peakrate` no more than peakrate * latency +
    /// mtu. 0.5 Mbit/s * 70 ms = 4375 bytes; 1 Mbit/s * 70 ms = 8750.
    #[test]
    fn the_limit_follows_from_the_latency() {
        let of = TbfConfig::default();
        assert_eq!(of.bytes(), 4375 + 5120);
        let peak = TbfConfig { peakrate: Rate::from_bps(1_000_000), burst: 50_000, ..of.clone() };
        assert_eq!(peak.bytes(), 8750 + 1540);
        assert_eq!(TbfConfig { limit: Some(7), ..of }.bytes(), 7);
    }

    /// sch_tbf.c, `tbf_enqueue`: what no bucket has room for is refused, and what the `bfifo` has
    /// none for.
    #[test]
    fn packets_that_do_not_fit_are_refused() {
        let mut queue = tbf(TbfConfig { limit: Some(4000), ..config() }, 0);
        let mut drops = Drops::new();
        for (id, bytes) in [3001, 3000, 1001, 1000].into_iter().enumerate() {
            queue.enqueue(Time::ZERO, stub(id as u32, bytes), &mut drops);
        }
        assert_eq!(drops.iter().map(|drop| drop.packet.id).collect::<Vec<_>>(), [0, 2]);
        let problems = [
            TbfConfig { peakrate: Some(config().rate), ..config() },
            TbfConfig { mtu: Some(1500), ..config() },
            TbfConfig { burst: 0, ..config() },
            TbfConfig { limit: Some(1), latency: Some(Span::ZERO), ..config() },
        ];
        assert!(problems.iter().all(|config| config.problem().is_some()));
    }

    /// A change fills the buckets; a packet larger than the new one does not stay for ever.
    #[test]
    fn a_change_fills_the_buckets() {
        let mut queue = tbf(config(), 6);
        let mut drops = Drops::new();
        for _ in 0..3 {
            assert!(queue.dequeue(Time::ZERO, &mut drops).packet().is_some());
        }
        assert_eq!(queue.change(Time::ZERO, &config(), &mut Drops::new()), Ok(()));
        assert!(queue.dequeue(Time::ZERO, &mut drops).packet().is_none());
        assert_eq!(
            queue.change(Time::ZERO, &TbfConfig { latency: Some(Span::ZERO), ..config() }, &mut Drops::new()),
            Ok(())
        );
        assert!(queue.dequeue(Time::ZERO, &mut drops).packet().is_some());
        assert_eq!(queue.change(Time::ZERO, &TbfConfig { burst: 500, ..config() }, &mut Drops::new()), Ok(()));
        assert_eq!(departures(&mut queue), [0, 0]);
    }

    /// `psched_l2t_ns`: with 10 bytes of overhead a packet of 1478 takes 31 cells of 53 bytes on
    /// ATM, 1643 us at a byte per microsecond, and so does the bucket of one such packet.
    #[test]
    fn tokens_are_for_lengths_on_the_link() {
        let overhead = Overhead { layer: crate::LinkLayer::Atm, ..Overhead::bytes(10) };
        let mut queue = Tbf::new(TbfConfig { overhead, burst: 1478, limit: Some(9000), ..config() });
        (0..3).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1478), &mut Drops::new()));
        assert_eq!(departures(&mut queue), [0, 1643, 2 * 1643]);
    }
}
