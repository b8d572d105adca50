use super::*;
use crate::stub::{Stub, stub};
use crate::tree::Filter;
use crate::{Class, FifoConfig, Limit, Qfq, QfqConfig, QueueSpec};

/// The packets of class `n` are those of flow `n`.
fn class(number: usize, weight: u32, maxpkt: u32) -> Class<QfqClass> {
    let name: Arc<str> = format!("{number}").into();
    let filter = Filter { flows: vec![Arc::clone(&name)], hashes: vec![number as u64], ..Filter::default() };
    let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(100_000) });
    Class { name, parent: None, filter, queue, settings: QfqClass { weight, maxpkt } }
}

fn qfq(settings: &[(u32, u32)]) -> Qfq<Stub> {
    let classes = settings.iter().enumerate().map(|(number, &(weight, maxpkt))| class(number, weight, maxpkt));
    let config = QfqConfig { classes: classes.collect(), ..QfqConfig::default() };
    Qfq::new(config, Random::for_component(1, 0, "qfq"))
}

fn offer(queue: &mut Qfq<Stub>, flow: usize, bytes: u32, id: u32) {
    let mut drops = Drops::new();
    queue.enqueue(Time::ZERO, Stub { flow: flow as u64, ..stub(id, bytes) }, &mut drops);
    assert!(drops.is_empty());
}

fn serve(queue: &mut Qfq<Stub>) -> Option<Stub> {
    queue.dequeue(Time::ZERO, &mut Drops::new()).packet().map(|entry| entry.packet)
}

/// Random numbers, the same as those of the kernel's run below.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(most)) as u32
    }
}

/// The order in which `sch_qfq.c` of Linux 6.1 sends the 194,469 packets of 400,000 steps, compiled
/// with a drop-tail queue in each of 40 classes: busy, balanced and idle times, packets longer than
/// `maxpkt`, and classes that get other settings. A hash (FNV-1a) of the numbers of the packets.
#[test]
fn the_order_is_that_of_linux() {
    const WEIGHTS: [u32; 5] = [1, 3, 10, 100, 1000];
    const LENGTHS: [u32; 4] = [512, 1514, 1514, 9000];
    let mut draw = Draw(7);
    let settings = |draw: &mut Draw| {
        let weight = WEIGHTS[draw.below(5) as usize];
        (weight, LENGTHS[draw.below(4) as usize])
    };
    let classes: Vec<(u32, u32)> = (0..40).map(|_| settings(&mut draw)).collect();
    let mut queue = qfq(&classes);
    let (mut hash, mut sent, mut offered) = (0xcbf2_9ce4_8422_2325_u64, 0, 0);
    for step in 0..400_000 {
        let arrivals = [70, 50, 30, 45][step / 5000 % 4];
        if draw.below(100) < arrivals {
            let class = draw.below(40) as usize;
            let most = if draw.below(20) == 0 { 9000 } else { 1450 };
            offer(&mut queue, class, 64 + draw.below(most), offered);
            offered += 1;
        } else if draw.below(200) == 0 {
            let class = draw.below(40) as usize;
            let (weight, maxpkt) = settings(&mut draw);
            queue.change_class(class, QfqClass { weight, maxpkt });
        } else if let Some(packet) = serve(&mut queue) {
            hash = (hash ^ u64::from(packet.id)).wrapping_mul(0x100_0000_01b3);
            sent += 1;
        }
    }
    assert_eq!((hash, sent, offered), (0x5e47_8513_279d_8a47, 194_469, 194_469));
}

/// Bytes that each class sends while all have packets of their own length.
fn sent(queue: &mut Qfq<Stub>, lengths: &[u32], packets: u32) -> Vec<u64> {
    let mut sent = vec![0; lengths.len()];
    for (class, &length) in lengths.iter().enumerate() {
        (0..30).for_each(|_| offer(queue, class, length, 0));
    }
    for _ in 0..packets {
        let packet = serve(queue).expect("packets wait");
        sent[packet.flow as usize] += u64::from(packet.bytes);
        offer(queue, packet.flow as usize, packet.bytes, 0);
    }
    sent
}

/// Weights of 1, 2, 5 and 12 of 20 are 5, 10, 25 and 60 % of the bytes, whatever the lengths.
#[test]
fn classes_share_by_their_weights() {
    let lengths = [1514, 300, 1000, 64];
    let mut queue = qfq(&[(1, 1514), (2, 1514), (5, 1514), (12, 1514)]);
    let sent = sent(&mut queue, &lengths, 200_000);
    let all: u64 = sent.iter().sum();
    for (sent, parts) in sent.iter().zip([1, 2, 5, 12]) {
        // Both ends of the time are within the bound of the test below, some ten packets.
        assert!(sent.abs_diff(all * parts / 20) < 15_140, "{sent} of {all}");
    }
}

/// Ten classes alike are two aggregates, of eight and of two: each class has a tenth.
#[test]
fn an_aggregate_has_the_weight_of_its_classes() {
    let mut queue = qfq(&[(3, 1514); 10]);
    let mut sizes: Vec<usize> = queue.aggregates.iter().map(|of| of.classes).filter(|&classes| classes > 0).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [2, 8]);
    let sent = sent(&mut queue, &[1514; 10], 100_000);
    for sent in sent {
        // Budgets of eight packets, as above.
        assert!(sent.abs_diff(10_000 * 1514) < 8 * 15_140, "{sent}");
    }
}

/// ToN 2013, the theorem of the bit guarantee: a class that always has packets is never behind its
/// part of the link's bytes by more than B-WFI = 3 p s + 2 p L, with p the part, s the slots of its
/// group in bytes of the link and L the longest packet of all. In bytes of the class, p s is the
/// weight times the slot over `ONE`: the power of two from `maxpkt` on, up to the next one.
#[test]
fn no_class_is_behind_by_more_than_the_bound() {
    let settings = [(1, 1514), (2, 600), (7, 1514), (30, 9000), (100, 512)];
    let weights: u64 = settings.iter().map(|&(weight, _)| u64::from(weight)).sum();
    let mut queue = qfq(&settings);
    let mut draw = Draw(3);
    // The first two always have packets, the others come and go.
    let mut waiting = [0; 5];
    let mut served = [0u64; 5];
    let mut least = [0i64; 2];
    let mut most_behind = [0i64; 2];
    for _ in 0..100_000 {
        for class in 0..5 {
            let is_due = if class < 2 { waiting[class] < 3 } else { draw.below(3 + waiting[class]) == 0 };
            if is_due {
                offer(&mut queue, class, settings[class].1, 0);
                waiting[class] += 1;
            }
        }
        let packet = serve(&mut queue).expect("packets wait");
        waiting[packet.flow as usize] -= 1;
        served[packet.flow as usize] += u64::from(packet.bytes);
        let all: u64 = served.iter().sum();
        for class in 0..2 {
            // Times the sum of the weights.
            let behind = (all * u64::from(settings[class].0)) as i64 - (served[class] * weights) as i64;
            most_behind[class] = most_behind[class].max(behind - least[class]);
            least[class] = least[class].min(behind);
        }
    }
    // Slots of 2048 and of 1024 bytes, for the weights of 1 and 2; 9000 is the longest packet.
    let bounds = [(1, 2048), (2, 1024)].map(|(weight, slot)| (3 * slot * weights + 2 * weight * 9000) as i64);
    for (behind, bound) in most_behind.into_iter().zip(bounds) {
        assert!(behind <= bound, "{behind} of {bound}");
        // A class has to wait for a packet of another one.
        assert!(behind > 9000, "{behind}");
    }
}

/// `qfq_calc_index`: the power of two at or above budget times inverse weight, over slots of 2^25.
#[test]
fn a_group_is_a_ratio_of_budget_and_weight() {
    // 1514 x 2^30 is below 2^41, 512 x 2^20 is 2^29, 65,536 x 2^30 is 2^46.
    let group = |weight: u32, maxpkt: u32| group_of(ONE / weight, maxpkt);
    assert_eq!([group(1, 1514), group(1024, 512), group(1, 65_536)], [16, 4, 21]);
    // Eight classes of the longest packets, the rounding of 1/(8 x 1023) and the last group.
    assert!(group_of(ONE / 8, 8 * 65_536) < GROUPS && group_of(ONE / (8 * 1023), 8 * 512) < GROUPS);
}

/// `qfq_enqueue`: a longer packet raises `maxpkt` up to 65,536 bytes; what is longer is dropped.
#[test]
fn a_longer_packet_raises_maxpkt() {
    let mut queue = qfq(&[(1, 1514), (1, 1514)]);
    offer(&mut queue, 0, 2000, 0);
    let lmax = |queue: &Qfq<Stub>, class: usize| queue.aggregates[queue.members[class].aggregate].lmax;
    assert_eq!([lmax(&queue, 0), lmax(&queue, 1)], [2000, 1514]);
    let mut drops = Drops::new();
    queue.enqueue(Time::ZERO, Stub { flow: 1, ..stub(1, 65_537) }, &mut drops);
    assert_eq!((drops.len(), drops[0].reason), (1, DropReason::Limit));
    assert_eq!((serve(&mut queue).map(|packet| packet.bytes), serve(&mut queue)), (Some(2000), None));
}

/// Weights of 1 and 1, then of 1 and 3: of 40,000 packets 10,000 and 30,000.
#[test]
fn weights_change_while_packets_wait() {
    let mut queue = qfq(&[(1, 1514), (1, 1514)]);
    let halves = sent(&mut queue, &[1514; 2], 1000);
    assert!(halves[0].abs_diff(halves[1]) <= 2 * 15_140, "{halves:?}");
    let mut config = queue.config.clone();
    config.classes[1].settings.weight = 3;
    assert_eq!(queue.change(Time::ZERO, &config, &mut Drops::new()), Ok(()));
    let sent = sent(&mut queue, &[1514; 2], 40_000);
    assert!(sent[0].abs_diff(10_000 * 1514) < 15_140, "{sent:?}");
    config.classes[1].parent = Some("0".into());
    assert_eq!(queue.change(Time::ZERO, &config, &mut Drops::new()), Err(ChangeError::Fixed("the tree of classes")));
}

/// Classes whose law discards what waits, on arrival (`choke`) and on departure (`codel`): every
/// packet leaves or is dropped, and no class keeps its turn without one.
#[test]
fn a_class_may_lose_its_packets() {
    let mut config = queue_of(["choke", "codel", "prio", "pfifo_head_drop"]);
    config.default = None;
    let mut queue = Qfq::<Stub>::new(config, Random::for_component(1, 0, "qfq"));
    let (mut draw, mut drops, mut now, mut sent) = (Draw(1), Drops::new(), Time::ZERO, 0);
    for step in 0..200_000u32 {
        now += ackclock_units::Span::from_micros(500);
        let arrivals = [80, 50, 20][step as usize / 3000 % 3];
        if draw.below(100) < arrivals {
            let flow = u64::from(draw.below(4));
            queue.enqueue(now, Stub { flow, ..stub(step, 64 + draw.below(1450)) }, &mut drops);
        } else if let Dequeue::Packet(_) = queue.dequeue(now, &mut drops) {
            sent += 1;
        } else {
            assert_eq!(queue.backlog().packets, 0);
            assert!(queue.serving.is_none() && queue.bitmaps == [0; 4]);
        }
        assert!(queue.members.iter().enumerate().all(|(class, of)| of.is_active == (queue.leaves.len(class) > 0)));
    }
    let counters = queue.counters();
    let dropped = counters.dropped_on_enqueue.packets + counters.dropped_on_dequeue.packets;
    assert!(counters.dropped[DropReason::Match as usize] > 0 && counters.dropped[DropReason::Delay as usize] > 0);
    assert_eq!((counters.offered.packets, dropped), (sent + dropped + queue.backlog().packets, drops.len() as u64));
}

/// Classes of different weights with these queues.
fn queue_of<const N: usize>(names: [&str; N]) -> QfqConfig {
    let of = |(number, name): (usize, &str)| {
        let queue = QueueSpec::by_name(name).expect("a row");
        Class { queue, ..class(number, 1 + number as u32, 1514) }
    };
    QfqConfig { classes: names.into_iter().enumerate().map(of).collect(), ..QfqConfig::default() }
}

#[test]
fn classes_that_do_not_fit_are_refused() {
    let with = |change: fn(&mut Class<QfqClass>)| {
        let mut config = queue_of(["pfifo"]);
        change(&mut config.classes[0]);
        config.problem()
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|class| class.settings.weight = 1025), Some("weight is from 1 to 1024"));
    assert_eq!(with(|class| class.settings.maxpkt = 511), Some("maxpkt is from 512 to 65536 bytes"));
    let settings = vec![(1024, 1514); 65];
    let classes = settings.iter().enumerate().map(|(number, &(weight, maxpkt))| class(number, weight, maxpkt));
    let config = QfqConfig { classes: classes.collect(), ..QfqConfig::default() };
    assert_eq!(config.problem(), Some("the weights of all classes are at most 65536 together"));
    let mut config = queue_of(["pfifo", "pfifo"]);
    config.classes[1].parent = Some("0".into());
    config.classes[0].filter = Filter::default();
    assert_eq!(config.problem(), Some("a class of qfq has no other above it"));
}
