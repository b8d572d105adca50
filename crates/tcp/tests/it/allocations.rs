//! Sampling delivery rates, telling losses and pacing cost no allocation once their memory is
//! there.

use std::collections::VecDeque;

use ackclock_cc::{Ack, CongestionControl, Flight, Lost, Needs, Signal, Verdict, Window};
use ackclock_packet::Segment;
use ackclock_tcp::{Config, Endpoint, Ports};
use ackclock_testkit::{CountingAllocator, allocations};
use ackclock_units::{Ecn, Rate, Span, Time};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A window of 60 segments, paced at 3 MB/s, with everything that can be asked for.
#[derive(Debug, Default)]
struct Asking {
    rates: u64,
    losses: u64,
}

impl CongestionControl for Asking {
    fn name(&self) -> &'static str {
        "asking"
    }

    fn window(&self) -> Window {
        Window { cwnd: 60 * 1448, ssthresh: Window::INFINITE }
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, delivery_rate: true, whole_control: true, ..Needs::default() }
    }

    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        Rate::from_bps(24_000_000)
    }

    fn on_established(&mut self, _f: &Flight) {}

    fn take_over(&mut self, _window: Window) {}

    fn on_ack(&mut self, _f: &Flight, ack: &Ack) -> Verdict {
        self.rates += u64::from(ack.rate.is_some());
        Verdict::Continue
    }

    fn on_signal(&mut self, _f: &Flight, _signal: Signal) {}

    fn on_lost(&mut self, _f: &Flight, _lost: &Lost) {
        self.losses += 1;
    }
}

/// Two endpoints 10 ms apart; every 50th segment with data is lost.
struct Pair {
    ends: [Endpoint; 2],
    /// The segments on their way to each of them.
    wires: [VecDeque<(Time, Segment)>; 2],
    now: Time,
    data: u64,
}

impl Pair {
    fn new() -> Pair {
        let end = |local, remote| {
            Endpoint::new(Config::default(), Box::new(Asking::default()), Ports { local, remote }, 1, 1)
        };
        let mut ends = [end(1, 2), end(2, 1)];
        ends[0].connect();
        ends[1].listen();
        let wires = [VecDeque::with_capacity(1000), VecDeque::with_capacity(1000)];
        Pair { ends, wires, now: Time::ZERO, data: 0 }
    }

    fn run(&mut self, end: Time) {
        while self.now < end {
            self.ends[0].write(u64::MAX);
            self.ends[1].read(u64::MAX);
            for from in [0, 1] {
                let mut segment = Segment::default();
                while self.ends[from].transmit(self.now, &mut segment).is_some() {
                    self.data += u64::from(segment.payload.len > 0);
                    if segment.payload.len == 0 || !self.data.is_multiple_of(50) {
                        self.wires[1 - from].push_back((self.now + Span::from_millis(10), segment));
                    }
                }
            }
            let arrival = |wire: &VecDeque<(Time, Segment)>| wire.front().map_or(Time::NEVER, |&(at, _)| at);
            let arrivals = self.wires.each_ref().map(arrival);
            let deadlines = self.ends.each_ref().map(|end| end.next_deadline());
            self.now = arrivals.into_iter().chain(deadlines).fold(end, Time::min).max(self.now);
            for to in [0, 1] {
                if deadlines[to] <= self.now {
                    self.ends[to].on_deadline(self.now);
                }
                while arrival(&self.wires[to]) <= self.now
                    && let Some((_, segment)) = self.wires[to].pop_front()
                {
                    self.ends[to].input(self.now, &segment, Ecn::NotEct);
                }
            }
        }
    }
}

#[test]
fn samples_losses_and_pacing_allocate_nothing_after_warm_up() {
    let mut pair = Pair::new();
    let warm_up = allocations(|| pair.run(Time::from_secs(5)));
    assert!(warm_up.count > 0, "the allocator counts");
    let before = *pair.ends[0].sender().stats();
    let steady = allocations(|| pair.run(Time::from_secs(20)));
    let stats = pair.ends[0].sender().stats();
    assert!(stats.sent_packets - before.sent_packets > 10_000, "{stats:?}");
    assert!(stats.retransmitted_packets - before.retransmitted_packets > 200, "{stats:?}");
    let told = format!("{:?}", pair.ends[0].sender().congestion_control());
    assert!(!told.contains("rates: 0,") && !told.contains("losses: 0 "), "{told}");
    assert_eq!(steady.count, 0, "{steady:?} after {warm_up:?}");
}
