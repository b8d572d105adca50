use super::*;
use crate::cobalt_law::{HeadDecision, RECIPROCAL_ROOTS, newton};
use crate::stub::{Ask, Stub, stub};
use ackclock_units::Ecn;

struct CobaltBed {
    queue: Cobalt<Stub>,
    drops: Drops<Stub>,
}

impl CobaltBed {
    fn new(config: CobaltConfig) -> CobaltBed {
        CobaltBed { queue: Cobalt::new(config, Random::for_component(1, 0, "cobalt")), drops: Drops::new() }
    }

    fn offer(&mut self, ms: u64, packets: u32, ecn: Ecn) {
        for _ in 0..packets {
            self.queue.enqueue(Time::from_millis(ms), Stub { ecn, ..stub(0, 1000) }, &mut self.drops);
        }
    }

    fn send(&mut self, ms: u64) -> Option<Entry<Stub>> {
        self.queue.ask(Time::from_millis(ms), &mut self.drops)
    }

    /// Waiting, dropped and marked packets.
    fn tally(&self) -> (u64, usize, u64) {
        (self.queue.backlog().packets, self.drops.len(), self.queue.counters().marked.packets)
    }
}

#[test]
fn the_exact_roots_are_exact() {
    for (count, &root) in RECIPROCAL_ROOTS.iter().enumerate().skip(2) {
        let exact = 4_294_967_296.0 / (count as f64).sqrt();
        assert!((f64::from(root) - exact).abs() <= 1.0, "count {count}: {root}");
    }
}

/// From 16 on one Newton step per signal keeps within 0.2 % of the root, up and down.
#[test]
fn newton_follows_the_root() {
    let mut root = RECIPROCAL_ROOTS[15];
    for count in (16..5000).chain((16..5000).rev()) {
        root = newton(root, count);
        let exact = 4_294_967_296.0 / f64::from(count).sqrt();
        assert!((f64::from(root) / exact - 1.0).abs() < 0.002, "count {count}: {root} for {exact}");
    }
    // Far off it stays a number.
    assert_eq!(newton(u32::MAX, 4), 0);
}

/// Heads above the target: the schedule is set an interval ahead, then `100 ms / sqrt(count)` for
/// counts from 2 on.
#[test]
fn signals_close_up_with_the_square_root_of_their_count() {
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.offer(0, 1, Ecn::NotEct);
    bed.send(0);
    bed.offer(0, 400, Ecn::NotEct);
    let mut times = Vec::new();
    for ms in 1..380 {
        let before = bed.drops.len();
        bed.send(ms);
        times.extend((before..bed.drops.len()).map(|_| ms));
    }
    // Above the target from 6 ms on. 106, + 70.7 = 176.7, + 57.7 = 234.4, + 50 = 284.4, + 44.7 =
    // 329.2, + 40.8 = 370.0 (each is 1e-8 short of that, since 1 is not to be had in 2^-32).
    assert_eq!(times, [106, 177, 235, 285, 330, 370]);
}

/// Below the target the count is taken back at the pace at which it grew.
#[test]
fn good_times_take_the_count_back() {
    let law = CobaltConfig::default().law();
    let mut random = Random::for_component(1, 0, "cobalt");
    let mut state = CobaltState { count: 4, drop_next: Time::from_millis(100), dropping: true, ..CobaltState::new() };
    let head = |state: &mut CobaltState, ms, random: &mut Random| {
        state.head(&law, Time::from_millis(ms), (Time::from_millis(ms), false), SMALL_QUEUE, random)
    };
    // Not due yet.
    head(&mut state, 99, &mut random);
    assert_eq!((state.count, state.dropping), (4, false));
    // 100: count 3, next at 157.7; that: count 2, next at 228.4.
    head(&mut state, 200, &mut random);
    assert_eq!((state.count, state.drop_next.as_nanos() / 1_000_000), (2, 228));
    // 228.4: count 1, next at 328.4; that: count 0, and the schedule tells how long that is
    // remembered.
    head(&mut state, 1000, &mut random);
    assert_eq!((state.count, state.drop_next), (0, Time::from_millis(1100)));
}

#[test]
fn an_empty_queue_takes_one_back() {
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.queue.state = CobaltState { count: 2, dropping: true, p_drop: (1 << 20) + 1, ..CobaltState::new() };
    bed.send(5);
    // Not more than `target` since BLUE moved.
    assert_eq!((bed.queue.state.count, bed.queue.state.p_drop), (1, (1 << 20) + 1));
    assert!(!bed.queue.state.dropping);
    bed.queue.state.drop_next = Time::from_millis(100);
    bed.send(6);
    assert_eq!((bed.queue.state.count, bed.queue.state.p_drop), (1, 1));
    bed.send(12);
    assert_eq!(bed.queue.state.p_drop, 0);
}

#[test]
fn overflow_drops_the_head_and_raises_blue_once_per_target() {
    let mut bed = CobaltBed::new(CobaltConfig { limit: 3, ..CobaltConfig::default() });
    for (id, ms) in [(0, 10), (1, 10), (2, 10), (3, 10), (4, 10), (5, 15), (6, 16)] {
        bed.queue.enqueue(Time::from_millis(ms), stub(id, 1000), &mut bed.drops);
    }
    let dropped: Vec<_> = bed.drops.drain(..).map(|drop| (drop.packet.id, drop.reason)).collect();
    assert_eq!(dropped, [0, 1, 2, 3].map(|id| (id, DropReason::Limit)));
    assert_eq!(bed.queue.state.p_drop, 2 << 24);
    assert_eq!((bed.queue.state.count, bed.queue.state.drop_next), (1, Time::from_millis(16)));
    // A packet of 1000 bytes takes 1576 of memory.
    let mut bed = CobaltBed::new(CobaltConfig { memlimit: 3151, ..CobaltConfig::default() });
    bed.offer(0, 2, Ecn::NotEct);
    assert_eq!((bed.drops[0].reason, bed.queue.memory), (DropReason::Memory, 1576));
    bed.send(0);
    assert_eq!(bed.queue.memory, 0);
    // Two of them fit exactly.
    let mut bed = CobaltBed::new(CobaltConfig { memlimit: 3152, ..CobaltConfig::default() });
    bed.offer(0, 2, Ecn::NotEct);
    assert_eq!(bed.tally(), (2, 0, 0));
}

/// An empty queue moves BLUE's clock only when it lowers the probability: with nothing to lower, an
/// overflow 2 ms later counts.
#[test]
fn an_empty_queue_without_a_probability_does_not_hold_blue_back() {
    let mut bed = CobaltBed::new(CobaltConfig { limit: 0, ..CobaltConfig::default() });
    bed.send(10);
    bed.offer(12, 1, Ecn::NotEct);
    assert_eq!(bed.queue.state.p_drop, 1 << 24);
}

/// sch_cake.c, `cobalt_should_drop`: a schedule that lies behind (`schedule > 0`) is brought up to
/// now by a head that is not dropped; one that is for now is set an interval ahead by the first
/// head above the target.
#[test]
fn a_schedule_does_not_run_behind() {
    let law = CobaltConfig::default().law();
    let mut random = Random::for_component(1, 0, "cobalt");
    for (due, next) in [(49, 50), (50, 150)] {
        let mut state = CobaltState { drop_next: Time::from_millis(due), ..CobaltState::new() };
        let verdict = state.head(&law, Time::from_millis(50), (Time::ZERO, false), SMALL_QUEUE, &mut random);
        assert_eq!(verdict, HeadDecision { mark: false, drop: None });
        // 2^32 - 1 of 2^32 parts of an interval.
        let short = Time::from_millis(next).since(state.drop_next);
        assert!(short <= Span::from_nanos(100) && state.drop_next <= Time::from_millis(next), "{:?}", state.drop_next);
    }
    // BLUE at rest draws nothing, and what CoDel drops is no affair of BLUE's.
    assert_eq!(random, Random::for_component(1, 0, "cobalt"));
    let mut state = CobaltState { count: 1, dropping: true, p_drop: u32::MAX, ..CobaltState::new() };
    let verdict = state.head(&law, Time::from_millis(50), (Time::ZERO, false), SMALL_QUEUE, &mut random);
    assert_eq!(verdict, HeadDecision { mark: false, drop: Some(DropReason::Delay) });
    assert_eq!(random, Random::for_component(1, 0, "cobalt"));
}

#[test]
fn the_probe_shows_the_last_head() {
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.offer(0, 2, Ecn::NotEct);
    for (ms, dropping) in [(5, false), (7, true)] {
        bed.send(ms);
        let probe = bed.queue.probe();
        assert_eq!((probe.delay, probe.dropping), (Some(Span::from_millis(ms)), Some(dropping)));
    }
}

#[test]
fn blue_drops_what_could_be_marked_but_not_the_last() {
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.queue.state.p_drop = u32::MAX;
    bed.offer(0, 3, Ecn::Ect0);
    assert!(bed.send(0).is_some());
    assert_eq!(bed.tally(), (0, 2, 0));
    assert!(bed.drops.iter().all(|drop| drop.reason == DropReason::Early && drop.packet.ecn == Ecn::Ect0));
}

/// sch_cake.c, `cobalt_should_drop`: BLUE draws for heads that CoDel has marked as for others
/// ("lack of ECN is deliberate"). The first head is due for a mark and is dropped; the schedule
/// moves on (70.7 ms), so that the second is only the last.
#[test]
fn blue_drops_what_codel_would_mark() {
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.queue.state = CobaltState { count: 1, dropping: true, p_drop: u32::MAX, ..CobaltState::new() };
    bed.offer(0, 2, Ecn::Ect0);
    assert!(bed.send(50).is_some());
    assert_eq!(bed.tally(), (0, 1, 0));
    assert_eq!((bed.drops[0].reason, bed.drops[0].packet.ecn), (DropReason::Early, Ecn::Ect0));
    // Without BLUE it is marked, and so is the last one once it is due.
    let mut bed = CobaltBed::new(CobaltConfig::default());
    bed.queue.state = CobaltState { count: 1, dropping: true, ..CobaltState::new() };
    bed.offer(0, 1, Ecn::Ect0);
    bed.send(50);
    assert_eq!(bed.tally(), (0, 0, 1));
}

#[test]
fn four_packets_are_no_queue() {
    let law = CobaltConfig { mtu_time: Span::from_millis(10), ..CobaltConfig::default() }.law();
    let mut random = Random::for_component(1, 0, "cobalt");
    for (waited, dropping) in [(39, false), (40, false), (41, true)] {
        let mut state = CobaltState::new();
        state.head(&law, Time::from_millis(waited), (Time::ZERO, false), SMALL_QUEUE, &mut random);
        assert_eq!(state.dropping, dropping, "{waited} ms");
    }
}

/// At 1 Mbit/s a packet takes 12.112 ms: target 18.168 ms, interval 113.168 ms, the least memory.
/// At 10 Gbit/s it takes 1.211 us, and the memory is at the most.
#[test]
fn the_rate_of_the_link_sets_the_target() {
    let slow = CobaltConfig::for_rate(Rate::from_bps(1_000_000).expect("a rate"));
    assert_eq!(slow.mtu_time, Span::from_micros(12_112));
    assert_eq!((slow.target, slow.interval), (Span::from_micros(18_168), Span::from_micros(113_168)));
    assert_eq!(slow.memlimit, 4 << 20);
    // At 100 kbit/s 121.12 ms, 181.68 ms, and for the interval twice that: 176.68 ms above 100 are
    // less.
    let slower = CobaltConfig::for_rate(Rate::from_bps(100_000).expect("a rate"));
    assert_eq!((slower.target, slower.interval), (Span::from_micros(181_680), Span::from_micros(363_360)));
    let fast = CobaltConfig::for_rate(Rate::from_bps(10_000_000_000).expect("a rate"));
    assert_eq!(fast, CobaltConfig { mtu_time: Span::from_nanos(1211), ..CobaltConfig::default() });
    // 200 Mbit/s: 25 MB/s for 0.1 s, four times.
    assert_eq!(CobaltConfig::for_rate(Rate::from_bps(200_000_000).expect("a rate")).memlimit, 10_000_000);
}

/// The expectations of ns-3, `cobalt-queue-disc-test-suite.cc`.
mod ns3 {
    use super::*;

    /// "Drop tests": room for 100, an arrival each 10 ms, 200 of them.
    #[test]
    fn overflow_makes_the_probability_rise() {
        let mut bed = CobaltBed::new(CobaltConfig { limit: 100, ecn: false, ..CobaltConfig::default() });
        for n in 1..=200 {
            bed.offer(10 * n, 1, Ecn::Ect0);
        }
        // ns-3 asks for some; one step of 1/256 for each overflow is what the law gives.
        assert_eq!(bed.drops.len(), 100);
        assert_eq!(bed.queue.probe().probability, Some(100.0 / 256.0));
    }

    /// "Basic mark operations": 20 packets at once, dequeues at 10 ms, twice at 210 ms, at 420 ms.
    #[test]
    fn marks_and_drops_come_at_their_times() {
        let states = |capable: u32, ecn| {
            let mut bed = CobaltBed::new(CobaltConfig { limit: 500, ecn, ..CobaltConfig::default() });
            bed.offer(0, capable, Ecn::Ect0);
            bed.offer(0, 20 - capable, Ecn::NotEct);
            [10, 210, 210, 420].map(|ms| {
                bed.send(ms);
                bed.tally()
            })
        };
        // Case 1: the second dequeue drops, with 19 waiting: what was due at 10, 80.7, 138.4 and
        // 188.4 ms.
        assert_eq!(states(0, false)[..2], [(19, 0, 0), (14, 4, 0)]);
        // Case 2: the second, third and fourth mark, the first again with 19 waiting.
        assert_eq!(states(20, true), [(19, 0, 0), (18, 0, 1), (17, 0, 2), (16, 0, 3)]);
        // Case 3: the fourth drops what was due, at 267.7, 317.7, 362.5 and 403.3 ms: as many as
        // the schedule moves.
        assert_eq!(states(3, true), [(19, 0, 0), (18, 0, 1), (17, 0, 2), (12, 4, 2)]);
    }

    /// "Test CE Threshold marking": arrivals each 1 ms, departures each 1.1 ms: the eleventh has
    /// waited 1.1 ms.
    #[test]
    fn a_threshold_of_its_own_marks() {
        let threshold = Some(Span::from_millis(1));
        let mut bed = CobaltBed::new(CobaltConfig { ce_threshold: threshold, ..CobaltConfig::default() });
        for n in 1..=11 {
            bed.offer(n, 1, Ecn::Ect0);
            if n > 1 {
                bed.queue.ask(Time::from_micros(1100 * (n - 1)), &mut bed.drops);
                assert_eq!(bed.tally().2, 0);
            }
        }
        bed.queue.ask(Time::from_micros(12_100), &mut bed.drops);
        assert_eq!(bed.tally().2, 1);
    }

    /// "Enhanced Blue": 200 packets at once and a dequeue each 10 ms, 100 of them. From the 41st on
    /// heads have waited more than 400 ms: 60 steps of 1/256.
    #[test]
    fn blue_rises_with_long_waits() {
        let blue_threshold = Some(Span::from_millis(400));
        let run = |blue_threshold, ecn| {
            let mut bed = CobaltBed::new(CobaltConfig { ecn, blue_threshold, ..CobaltConfig::default() });
            bed.offer(0, 200, Ecn::Ect0);
            for n in 1..=100 {
                assert!(bed.send(10 * n).is_some());
            }
            (bed.queue.probe().probability, bed.drops.len())
        };
        let (probability, drops) = run(blue_threshold, false);
        assert_eq!(probability, Some(0.234_375));
        // ns-3 sees 49 with its random numbers, of which CoDel's are the same for all.
        assert!((35..65).contains(&drops), "{drops} drops");
        assert_eq!(run(None, true), (Some(0.0), 0));
    }
}
