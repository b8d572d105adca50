use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::Ecn;

fn random() -> Random {
    Random::for_component(1, 0, "fq_codel")
}

/// Defaults with the arithmetic of the RFC, by which times of drops are worked out here.
fn rfc() -> FqCodelConfig {
    FqCodelConfig { control_law: ControlLaw::Rfc8289, ..FqCodelConfig::default() }
}

struct Bed {
    queue: FqCodel<Stub>,
    drops: Drops<Stub>,
}

impl Bed {
    fn new(config: FqCodelConfig) -> Bed {
        Bed { queue: FqCodel::new(config, random()), drops: Drops::new() }
    }

    fn offer(&mut self, now_ms: u64, flow: u64, ids: std::ops::Range<u32>, bytes: u32) {
        for id in ids {
            self.queue.enqueue(Time::from_millis(now_ms), Stub { flow, ..stub(id, bytes) }, &mut self.drops);
        }
    }

    fn send(&mut self, now_ms: u64, packets: usize) -> Vec<u32> {
        let mut ids = Vec::new();
        while ids.len() < packets {
            let Some(entry) = self.queue.ask(Time::from_millis(now_ms), &mut self.drops) else { break };
            ids.push(entry.packet.id);
        }
        ids
    }

    fn dropped(&mut self) -> Vec<u32> {
        self.drops.drain(..).map(|drop| drop.packet.id).collect()
    }
}

/// Quantum 1514. Flow A (ids from 0, 1500 bytes) starts with a deficit of 1514 and sends two (14,
/// -1486), then turns old with 28. Flow B (ids from 100, 500 bytes) sends four (1014, 514, 14,
/// -486), then turns old with 1028. A sends one (-1472) and waits with 42; B sends three (-472) and
/// waits with 1042; A sends one (-1458); B three (-458).
#[test]
fn flows_take_turns_of_a_quantum() {
    let mut bed = Bed::new(FqCodelConfig::default());
    bed.offer(0, 1, 0..5, 1500);
    bed.offer(0, 2, 100..120, 500);
    let expected = [0, 1, 100, 101, 102, 103, 2, 104, 105, 106, 3, 107, 108, 109, 4];
    assert_eq!(bed.send(0, 15), expected);
}

#[test]
fn a_flow_that_starts_goes_first() {
    let mut bed = Bed::new(FqCodelConfig::default());
    bed.offer(0, 1, 0..10, 1514);
    assert_eq!(bed.send(0, 2), [0, 1]);
    bed.offer(0, 2, 100..101, 100);
    assert_eq!(bed.send(0, 2), [100, 2]);
}

/// Flow A sends four packets of 500 bytes and turns old; the fifth leaves it 528 bytes of its turn.
/// Flow B starts, goes first and runs empty, which puts it behind A in place of out of the rota:
/// what it has next waits until A's turn is over.
#[test]
fn a_new_flow_that_ran_empty_lets_the_old_ones_pass() {
    let mut bed = Bed::new(FqCodelConfig::default());
    bed.offer(0, 1, 0..20, 500);
    assert_eq!(bed.send(0, 5), [0, 1, 2, 3, 4]);
    bed.offer(0, 2, 100..101, 100);
    assert_eq!(bed.send(0, 2), [100, 5]);
    bed.offer(0, 2, 101..102, 100);
    assert_eq!(bed.send(0, 3), [6, 101, 7]);
    // Now it ran empty while old and left the rota: it is new again.
    bed.offer(0, 2, 102..103, 100);
    assert_eq!(bed.send(0, 2), [102, 8]);
}

/// Eleven packets of 1000 bytes: six of them are the first to make half of the bytes.
#[test]
fn the_fattest_flow_loses_half_of_its_bytes_at_its_head() {
    let mut bed = Bed::new(FqCodelConfig { limit: 10, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..11, 1000);
    assert_eq!(bed.dropped(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(bed.send(0, 10), [6, 7, 8, 9, 10]);
    let counters = *bed.queue.counters();
    assert_eq!((counters.enqueued.packets, counters.dropped_on_dequeue.packets), (11, 6));
    assert_eq!(counters.dropped[DropReason::Limit as usize], 6);
}

#[test]
fn the_fattest_flow_is_that_with_the_most_bytes_not_packets() {
    let mut bed = Bed::new(FqCodelConfig { limit: 10, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..2, 1000);
    bed.offer(0, 2, 100..109, 90);
    assert_eq!(bed.dropped(), [0]);
    // 1000 bytes of flow 1 against 900, still; then none against 990, of which six packets are the
    // first to make half.
    bed.offer(0, 2, 109..110, 90);
    assert_eq!(bed.dropped(), [1]);
    bed.offer(0, 2, 110..111, 90);
    assert_eq!(bed.dropped(), [100, 101, 102, 103, 104, 105]);
}

#[test]
fn a_batch_of_drops_is_bounded() {
    let mut bed = Bed::new(FqCodelConfig { limit: 300, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..301, 1000);
    assert_eq!(bed.dropped(), (0..64).collect::<Vec<_>>());
    let mut bed = Bed::new(FqCodelConfig { limit: 10, drop_batch: 0, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..11, 1000);
    assert_eq!(bed.dropped(), [0]);
}

/// Linux drops one batch for an arrival, and leaves the rest to the next: 577 of memory for each
/// small packet, 5000 of which hold 8. A packet of 3000 bytes makes 8 * 577 + 3576 = 8192; it is
/// the fattest flow, so it goes itself, and the others stay. With one packet a batch, what comes in
/// place of a small one stays too.
#[test]
fn a_batch_may_leave_more_than_the_memory_limit() {
    let config = FqCodelConfig { memory_limit: 5000, drop_batch: 1, ..FqCodelConfig::default() };
    let mut bed = Bed::new(config);
    bed.offer(0, 1, 0..8, 1);
    bed.offer(0, 2, 100..101, 3000);
    assert_eq!(bed.dropped(), [100]);
    bed.offer(0, 1, 8..9, 3000);
    assert_eq!((bed.dropped(), bed.queue.drr.memory()), (vec![0], 7 * 577 + 3576));
    bed.offer(0, 1, 9..10, 1);
    assert_eq!((bed.dropped(), bed.queue.drr.memory()), (vec![1], 7 * 577 + 3576));
    assert_eq!(bed.queue.counters().dropped[DropReason::Memory as usize], 3);
}

/// A packet of 1000 bytes takes 1576 of memory; the fourth makes 6304. Half of 4000 bytes is two
/// packets.
#[test]
fn memory_has_a_limit_of_its_own() {
    let mut bed = Bed::new(FqCodelConfig { memory_limit: 5000, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..4, 1000);
    assert_eq!(bed.queue.counters().dropped[DropReason::Memory as usize], 2);
    assert_eq!(bed.dropped(), [0, 1]);
    assert_eq!(bed.queue.drr.memory(), 2 * 1576);
    bed.send(0, 2);
    assert_eq!(bed.queue.drr.memory(), 0);
    // A packet that does not fit at all is itself the fattest.
    bed.offer(0, 1, 4..5, 5000);
    assert_eq!(bed.dropped(), [4]);
    assert_eq!(bed.send(0, 1), []);
}

/// Flow 1 stands, flow 2 sends a packet a millisecond, with the half of the link it is entitled to.
/// At 105 ms flow 1 is due. Two packets of 1000 bytes take 3152 of memory: as much as that is not
/// too much.
#[test]
fn memory_up_to_the_limit_is_taken() {
    for (memory_limit, dropped) in [(3152, 0), (3151, 1)] {
        let mut bed = Bed::new(FqCodelConfig { memory_limit, ..FqCodelConfig::default() });
        bed.offer(0, 1, 0..2, 1000);
        assert_eq!(bed.dropped().len(), dropped);
    }
}

#[test]
fn codel_acts_on_the_flow_that_stands() {
    let mut bed = Bed::new(rfc());
    bed.offer(0, 1, 0..300, 1514);
    let mut dropped = Vec::new();
    for now in 0..206 {
        bed.offer(now, 2, 1000 + now as u32..1001 + now as u32, 100);
        bed.send(now, 2);
        dropped.extend(bed.dropped().into_iter().map(|id| (now, id)));
    }
    assert_eq!(dropped.iter().map(|(now, _)| *now).collect::<Vec<_>>(), [105, 205]);
    assert!(dropped.iter().all(|(_, id)| *id < 1000));
}

/// CoDel may drop the last packet of a flow while others wait; the dequeue then goes on to the next
/// flow. Flow 1's delay is above the target from 5 ms on, flow 2's from 105 ms on, so that only
/// flow 1 is due at 105 ms.
#[test]
fn a_flow_emptied_by_codel_passes_its_turn() {
    let mut bed = Bed::new(rfc());
    bed.offer(0, 1, 0..2, 1514);
    bed.offer(0, 2, 100..103, 1514);
    assert_eq!(bed.send(5, 1), [0]);
    assert_eq!(bed.send(105, 2), [100, 101]);
    assert_eq!(bed.dropped(), [1]);
    assert_eq!(bed.queue.drr.inspect().filter(|(.., listed)| *listed).count(), 1);
    assert_eq!(bed.send(105, 2), [102]);
}

/// The first batch of drops comes before the flow was ever in CoDel's dropping state: the count
/// starts at 1, at 105 ms. The second, in this state, makes it 9: with the drop at 205 ms it is 10,
/// and the next follows 100 / sqrt(10) = 31.6 ms later.
#[test]
fn drops_at_the_limit_make_codel_signal_harder() {
    let mut bed = Bed::new(FqCodelConfig { limit: 300, drop_batch: 8, ..rfc() });
    bed.offer(0, 1, 0..301, 1514);
    assert_eq!(bed.dropped().len(), 8);
    let mut times = Vec::new();
    for now in 0..240 {
        bed.send(now, 1);
        times.extend(bed.dropped().into_iter().map(|_| now));
        if now == 150 {
            let waiting = bed.queue.backlog().packets as u32;
            bed.offer(now, 1, 1000..1301 - waiting, 1514);
            assert_eq!(bed.dropped().len(), 8);
        }
    }
    assert_eq!(times, [105, 205, 237]);
}

/// The same with Linux's root: after the batch the count goes from 1 to 10 at once, and one Newton
/// step from 1 is (3 - 10) / 2 = -3.5, of which 16 bits leave 0.5: 50 ms in place of 31.6.
#[test]
fn linux_signals_less_hard_after_a_batch() {
    let mut bed = Bed::new(FqCodelConfig { limit: 300, drop_batch: 8, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..301, 1514);
    bed.dropped();
    let mut times = Vec::new();
    for now in 0..260 {
        bed.send(now, 1);
        times.extend(bed.dropped().into_iter().map(|_| now));
        if now == 150 {
            let waiting = bed.queue.backlog().packets as u32;
            bed.offer(now, 1, 1000..1301 - waiting, 1514);
            assert_eq!(bed.dropped().len(), 8);
        }
    }
    assert_eq!(times, [105, 205, 256]);
}

#[test]
fn marks_replace_drops() {
    let mut bed = Bed::new(FqCodelConfig::default());
    for id in 0..200 {
        bed.queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect0, ..stub(id, 1514) }, &mut bed.drops);
    }
    for now in 0..110 {
        bed.send(now, 1);
    }
    assert_eq!((bed.queue.counters().marked.packets, bed.drops.len()), (1, 0));
}

#[test]
fn a_quantum_of_zero_does_not_hang() {
    let mut bed = Bed::new(FqCodelConfig { quantum: 0, ..FqCodelConfig::default() });
    bed.offer(0, 1, 0..2, 65_535);
    bed.offer(0, 2, 2..4, 65_535);
    assert_eq!(bed.send(0, 5), [0, 2, 1, 3]);
}

#[test]
fn hashes_spread_over_the_flows() {
    let queue: FqCodel<Stub> = FqCodel::new(FqCodelConfig::default(), random());
    for hashes in [|n: u64| n, |n: u64| n << 32, |n: u64| n << 54] {
        let mut flows: Vec<u32> = (0..100).map(|n| queue.drr.classify(hashes(n))).collect();
        flows.sort_unstable();
        flows.dedup();
        // 100 balls in 1024 bins leave 95 distinct on average.
        assert!(flows.len() > 80, "{} distinct flows", flows.len());
        assert!(flows.iter().all(|&flow| flow < 1024));
    }
}

/// 40 flows in 1024 queues: 40 * 39 / 2 / 1024 = 0.76 pairs of them share one, other ones in each
/// run.
#[test]
fn flows_share_queues_by_chance() {
    let queue = |run, hash_seed| -> Vec<u32> {
        let random = Random::for_component(1, run, "queue");
        let queue: FqCodel<Stub> = FqCodel::new(FqCodelConfig { hash_seed, ..FqCodelConfig::default() }, random);
        (0..40).map(|flow| queue.drr.classify(flow)).collect()
    };
    let pairs = |flows: &[u32]| {
        let after = |(n, flow): (usize, &u32)| flows[n + 1..].iter().filter(|other| *other == flow).count();
        flows.iter().enumerate().map(after).sum::<usize>()
    };
    let all: Vec<usize> = (0..1000).map(|run| pairs(&queue(run, None))).collect();
    // Standard deviation sqrt(762) = 28; five of them.
    let sum: usize = all.iter().sum();
    assert!(sum.abs_diff(762) < 140, "{sum}");
    assert!(all.contains(&0) && all.contains(&1) && all.contains(&2));
    assert_eq!(queue(0, Some(7)), queue(1, Some(7)));
    assert_ne!(queue(0, Some(7)), queue(0, Some(8)));
}

/// A packet that arrives is shown with the state of its own flow.
#[test]
fn the_probe_is_of_the_flow_at_hand() {
    let mut bed = Bed::new(FqCodelConfig::default());
    bed.offer(0, 1, 0..3, 1514);
    bed.send(7, 1);
    let delay = |bed: &Bed| bed.queue.probe().delay.map(|delay| delay.as_nanos() / 1_000_000);
    assert_eq!(delay(&bed), Some(6), "7 ms, in units of 1.024 us");
    bed.offer(7, 2, 100..101, 100);
    assert_eq!(delay(&bed), Some(0));
    bed.offer(7, 1, 3..4, 1514);
    assert_eq!(delay(&bed), Some(6));
    // The law's dropping state: flow 1 after an interval above the target, flow 2 not.
    bed.send(110, 2);
    assert_eq!(bed.queue.probe().dropping, Some(true));
    bed.offer(110, 3, 101..102, 100);
    assert_eq!(bed.queue.probe().dropping, Some(false));
}

#[test]
#[should_panic(expected = "flows must be within 1 to 65536")]
fn no_flows_are_refused() {
    let _: FqCodel<Stub> = FqCodel::new(FqCodelConfig { flows: 0, ..FqCodelConfig::default() }, random());
}

/// The expectations of ns-3, `fq-codel-queue-disc-test-suite.cc`.
mod ns3 {
    use super::*;

    /// "Test IP flows separation and packet limit": the second packet of the second flow is the
    /// fifth, and costs the fat flow two: 240 bytes are the first to reach half of its 360.
    #[test]
    fn the_fat_flow_loses_half() {
        let mut bed = Bed::new(FqCodelConfig { limit: 4, quantum: 1500, ..FqCodelConfig::default() });
        bed.offer(0, 1, 0..3, 120);
        bed.offer(0, 2, 100..101, 120);
        assert_eq!((bed.queue.backlog().packets, bed.dropped()), (4, vec![]));
        bed.offer(0, 2, 101..102, 120);
        assert_eq!((bed.queue.backlog().packets, bed.dropped()), (3, vec![0, 1]));
    }

    /// "Test credits and flows status", ten times as large: the least quantum here is 256.
    #[test]
    fn deficits_go_by_quanta() {
        let mut bed = Bed::new(FqCodelConfig { quantum: 900, ..FqCodelConfig::default() });
        let deficits = |bed: &mut Bed| {
            [1, 2].map(|flow| {
                let index = bed.queue.drr.classify(flow) as usize;
                bed.queue.drr.inspect().nth(index).map(|(_, _, deficit, listed)| (deficit, listed))
            })
        };
        bed.offer(0, 1, 0..1, 1200);
        bed.send(0, 1);
        assert_eq!(deficits(&mut bed), [Some((-300, true)), Some((0, false))]);
        bed.offer(0, 1, 1..3, 1200);
        bed.offer(0, 2, 100..102, 1200);
        for (sent, first, second) in [
            (vec![100], (600, true), (-300, true)),
            (vec![1], (-600, true), (600, true)),
            (vec![101], (300, true), (-600, true)),
            (vec![2], (-900, true), (300, true)),
            (vec![], (900, false), (300, false)),
        ] {
            assert_eq!(bed.send(0, 1), sent);
            assert_eq!(deficits(&mut bed), [Some(first), Some(second)]);
        }
    }
}

/// Linux `codel_impl.h`, `codel_dequeue`: with a mask, the threshold marks where the TOS byte has
/// the selector in its bits. Selector 1 and mask 3 are ECT(1).
#[test]
fn the_threshold_may_be_for_ect1_alone() {
    for (mask, marked) in [(0, [Ecn::Ce; 2]), (3, [Ecn::Ect0, Ecn::Ce])] {
        let mut queue = FqCodel::new(
            FqCodelConfig {
                ce_threshold: Some(Span::from_millis(1)),
                ce_threshold_selector: mask / 3,
                ce_threshold_mask: mask,
                ..FqCodelConfig::default()
            },
            random(),
        );
        let mut drops = Drops::new();
        for (id, ecn) in [Ecn::Ect0, Ecn::Ect1].into_iter().enumerate() {
            queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id as u32, 1000) }, &mut drops);
        }
        let left = [0; 2].map(|_| queue.ask(Time::from_millis(2), &mut drops).map(|entry| entry.packet.ecn));
        assert_eq!(left, marked.map(Some), "{mask}");
    }
    let alone = FqCodelConfig { ce_threshold_mask: 3, ..FqCodelConfig::default() };
    let beyond = FqCodelConfig { ce_threshold: Some(Span::ZERO), ce_threshold_selector: 1, ..FqCodelConfig::default() };
    assert!(alone.problem().is_some() && beyond.problem().is_some());
}
