use super::*;
use crate::stub::{Stub, stub};
use crate::tree::Filter;
use crate::{Class, Htb, HtbConfig, LinkLayer, QueueSpec};

/// Flows by number: the packets of class `n` are those of flow `n`.
fn class(number: u64, parent: Option<&str>, settings: HtbClass) -> Class<HtbClass> {
    let name: Arc<str> = format!("{number}").into();
    let filter = Filter { flows: vec![Arc::clone(&name)], hashes: vec![number], ..Filter::default() };
    Class { name, parent: parent.map(Arc::from), filter, queue: QueueSpec::by_name("pfifo").unwrap(), settings }
}

fn above(number: u64, parent: Option<&str>, settings: HtbClass) -> Class<HtbClass> {
    Class { filter: Filter::default(), ..class(number, parent, settings) }
}

/// So many kB/s, up to the 100 of the link.
fn kbps(rate: u64) -> HtbClass {
    HtbClass { ceil: Rate::from_bps(800_000), ..HtbClass::new(Rate::from_bps(8000 * rate).unwrap()) }
}

/// The example of the HTB user guide (Devera 2002), section 2: 100 kB/s, 30 for the web and 10 for
/// mail of one customer, 60 for the other.
fn guide() -> [Class<HtbClass>; 4] {
    [
        above(1, None, kbps(100)),
        class(10, Some("1"), kbps(30)),
        class(11, Some("1"), kbps(10)),
        class(12, Some("1"), kbps(60)),
    ]
}

fn htb(classes: &[Class<HtbClass>]) -> Htb<Stub> {
    let config = HtbConfig { classes: classes.to_vec(), ..HtbConfig::default() };
    Htb::new(config, Random::for_component(1, 0, "htb"))
}

fn of_flow(flow: u64, bytes: u32) -> Stub {
    Stub { flow, ..stub(0, bytes) }
}

/// The bytes that each of these flows sends in so many seconds while packets of 1000 bytes of all
/// of them wait, asking as a link does that takes no time.
fn sent(queue: &mut Htb<Stub>, flows: &[u64], seconds: u64) -> Vec<u64> {
    let (mut now, mut drops, mut sent) = (Time::ZERO, Drops::new(), vec![0; flows.len()]);
    for &flow in flows {
        (0..2).for_each(|_| queue.enqueue(now, of_flow(flow, 1000), &mut drops));
    }
    while now < Time::from_secs(seconds) {
        match queue.dequeue(now, &mut drops) {
            Dequeue::Packet(entry) => {
                queue.enqueue(now, entry.packet, &mut drops);
                let place = flows.iter().position(|&flow| flow == entry.packet.flow).unwrap();
                sent[place] += u64::from(entry.packet.bytes);
            }
            Dequeue::NotBefore(later) => {
                assert!(later > now);
                now = later;
            }
            Dequeue::Empty => unreachable!("packets wait"),
        }
    }
    assert!(drops.is_empty());
    sent
}

/// Each of `bytes` is within a bucket, a turn and two packets of what it is to be.
fn assert_near(bytes: &[u64], expected: &[u64]) {
    let near = |(&bytes, &expected): (&u64, &u64)| bytes.abs_diff(expected) <= 1600 + 6000 + 2000;
    assert!(bytes.iter().zip(expected).all(near), "{bytes:?}, {expected:?}");
}

/// All have their rates while all send; in 100 s that is 3, 1 and 6 MB.
#[test]
fn each_class_has_its_rate() {
    let mut queue = htb(&guide());
    assert_near(&sent(&mut queue, &[10, 11, 12], 100), &[3_000_000, 1_000_000, 6_000_000]);
}

/// User guide: the rest is given in proportion to the rates. Of the 60 kB/s that the other customer
/// leaves, quanta of 3000 and 1000 bytes (30 and 10 kB/s / r2q) make 45 and 15: 75 and 25 together.
/// The root lends what the two borrow: 45 and 15 of 75 and 25 packets, 3 of 5.
#[test]
fn what_one_leaves_the_others_borrow_by_their_quanta() {
    let mut queue = htb(&guide());
    let bytes = sent(&mut queue, &[10, 11], 100);
    assert_near(&bytes, &[7_500_000, 2_500_000]);
    let [root, web, mail, other] = [0, 1, 2, 3].map(|class| (queue.nodes[class].lends, queue.nodes[class].borrows));
    assert_eq!(root, (web.1 + mail.1, 0));
    assert_eq!((web.0 + web.1, mail.0 + mail.1), (bytes[0] / 1000, bytes[1] / 1000));
    assert_near(&[1000 * web.1, 1000 * mail.1], &[4_500_000, 1_500_000]);
    assert_eq!(other, (0, 0));
    // The root has the sums of both.
    let (mut names, mut sent) = (Vec::new(), Vec::new());
    QueueDisc::<Stub>::classes(&queue, &mut |class| {
        names.push(class.name.to_owned());
        sent.push((class.counters.dequeued.bytes, class.backlog.packets));
    });
    assert_eq!(names, ["1", "10", "11", "12"]);
    assert_eq!(sent, [(bytes[0] + bytes[1], 4), (bytes[0], 2), (bytes[1], 2), (0, 0)]);
}

/// tc-htb(8): the class of the lowest `prio` is offered the rest first.
#[test]
fn the_first_priority_borrows_first() {
    let mut classes = guide();
    classes[1].settings.prio = 1;
    // 30, and 10 + 60.
    assert_near(&sent(&mut htb(&classes), &[10, 11], 100), &[3_000_000, 7_000_000]);
}

#[test]
fn no_class_exceeds_its_ceiling() {
    let mut classes = guide();
    classes[1].settings.ceil = Rate::from_bps(400_000);
    // Of the 60, the web takes 20 up to its 50, and mail the other 40.
    assert_near(&sent(&mut htb(&classes), &[10, 11], 100), &[5_000_000, 5_000_000]);
    classes[0].settings.ceil = Some(classes[0].settings.rate);
    classes[2].settings.ceil = None;
    assert_near(&sent(&mut htb(&classes), &[10, 11], 100), &[5_000_000, 1_000_000]);
}

/// User guide, section 3: the customer's own class, 40 kB/s, lends before the link does, so that its
/// web has what its mail leaves.
#[test]
fn the_class_next_above_lends_first() {
    let classes = [
        above(1, None, kbps(100)),
        above(2, Some("1"), kbps(40)),
        class(10, Some("2"), kbps(30)),
        class(11, Some("2"), kbps(10)),
        class(12, Some("1"), kbps(60)),
    ];
    let mut queue = htb(&classes);
    assert_near(&sent(&mut queue, &[10, 12], 100), &[4_000_000, 6_000_000]);
    // 10 kB/s are lent by the customer's class, nothing by the link.
    assert_near(&[1000 * queue.nodes[1].lends], &[1_000_000]);
    assert_near(&sent(&mut htb(&classes), &[10], 100), &[10_000_000]);
    assert_near(&sent(&mut htb(&classes), &[10, 11, 12], 100), &[3_000_000, 1_000_000, 6_000_000]);
}

/// The times at which packets leave, in microseconds.
fn departures(queue: &mut Htb<Stub>) -> Vec<u64> {
    let (mut now, mut times) = (Time::ZERO, Vec::new());
    loop {
        match queue.dequeue(now, &mut Drops::new()) {
            Dequeue::Packet(_) => times.push(now.since(Time::ZERO).as_micros()),
            Dequeue::NotBefore(later) => now = later,
            Dequeue::Empty => return times,
        }
    }
}

fn offer(queue: &mut Htb<Stub>, flow: u64, packets: &[u32]) -> usize {
    let mut drops = Drops::new();
    packets.iter().for_each(|&bytes| queue.enqueue(Time::ZERO, of_flow(flow, bytes), &mut drops));
    drops.len()
}

/// A byte takes a microsecond.
fn fast() -> HtbClass {
    HtbClass::new(Rate::from_bps(8_000_000).unwrap())
}

/// `htb_class_mode`: a class sends while its tokens are not below zero, and so may owe a packet.
/// 3000 bytes let four packets pass; then a packet's debt takes 1000 us. The ceiling's bucket is
/// 1600 bytes by default (`htb_parse_class_opt`): two packets leave a debt of 400.
#[test]
fn a_bucket_passes_at_once_and_may_be_in_debt() {
    let burst = HtbClass { burst: Some(3000), cburst: Some(3000), ..fast() };
    for (settings, expected) in
        [(burst.clone(), [0, 0, 0, 0, 1000, 2000]), (HtbClass { cburst: None, ..burst }, [0, 0, 400, 1400, 2400, 3400])]
    {
        let mut queue = htb(&[class(1, None, settings)]);
        assert_eq!(offer(&mut queue, 1, &[1000; 6]), 0);
        assert_eq!(departures(&mut queue), expected);
    }
}

/// `htb_enqueue`: a packet without a class waits for nothing, but for others such.
#[test]
fn packets_without_a_class_go_first() {
    let mut queue = htb(&[class(1, None, fast())]);
    queue.config.direct_qlen = 2;
    assert_eq!(offer(&mut queue, 1, &[1000; 4]), 0);
    assert_eq!(offer(&mut queue, 7, &[500; 3]), 1);
    assert_eq!(queue.peek().map(|entry| entry.packet.flow), Some(7));
    // 1600 bytes of bucket, two packets, and a debt of 400.
    assert_eq!(departures(&mut queue), [0, 0, 0, 0, 400, 1400]);
    assert_eq!((queue.leaves.direct_packets(), queue.backlog().packets), (2, 0));
    let default = HtbConfig { default: Some("1".into()), ..queue.config.clone() };
    assert_eq!(queue.change(Time::ZERO, &default, &mut Drops::new()), Ok(()));
    assert_eq!(offer(&mut queue, 7, &[500; 3]), 0);
    assert_eq!(queue.leaves.direct_packets(), 2);
}

/// `psched_l2t_ns`: 1478 + 10 bytes are 31 cells of 53 bytes, 1643 us. The bucket is a time without
/// cells, 1478 us (`tc_calc_xmittime`): the first packet leaves a debt of 165, each other one 1643.
#[test]
fn tokens_are_for_lengths_on_the_link() {
    let overhead = Overhead { layer: LinkLayer::Atm, ..Overhead::bytes(10) };
    let settings = HtbClass { burst: Some(1478), cburst: Some(1478), overhead, ..fast() };
    let mut queue = htb(&[class(1, None, settings)]);
    assert_eq!(offer(&mut queue, 1, &[1478; 4]), 0);
    assert_eq!(departures(&mut queue), [0, 165, 165 + 1643, 165 + 2 * 1643]);
}

/// A class whose queue holds packets back leaves its turn to others; it is asked again in time.
#[test]
fn a_leaf_may_shape_as_well() {
    let tbf = crate::TbfConfig { rate: Rate::from_bps(800_000).unwrap(), burst: 1000, ..crate::TbfConfig::default() };
    let mut classes = [class(1, None, fast()), class(2, None, fast())];
    classes[0].queue = QueueSpec::Tbf(tbf);
    let mut queue = htb(&classes);
    assert_eq!(offer(&mut queue, 1, &[1000; 3]) + offer(&mut queue, 2, &[1000; 3]), 0);
    // 0, 10 and 20 ms from the bucket; 0, 0 and 400 us from the other class.
    assert_eq!(departures(&mut queue), [0, 0, 0, 400, 10_000, 20_000]);
}

/// A change keeps tokens and packets: in debt for 1000 bytes, twice the rate is half of the time.
#[test]
fn rates_change_and_trees_stay() {
    let settings = HtbClass { burst: Some(1000), cburst: Some(1000), ..fast() };
    let mut queue = htb(&[class(1, None, settings.clone())]);
    assert_eq!(offer(&mut queue, 1, &[1000; 5]), 0);
    for _ in 0..2 {
        assert!(queue.dequeue(Time::ZERO, &mut Drops::new()).packet().is_some());
    }
    let double = HtbClass { rate: Rate::from_bps(16_000_000).unwrap(), ..settings.clone() };
    let change = |class| HtbConfig { classes: vec![class], ..HtbConfig::default() };
    assert_eq!(queue.change(Time::ZERO, &change(class(1, None, double)), &mut Drops::new()), Ok(()));
    // The debt is a time: 1000 us. Then 500 us each.
    assert_eq!(departures(&mut queue), [1000, 1500, 2000]);
    let other = Err(ChangeError::Fixed("the tree of classes"));
    assert_eq!(queue.change(Time::ZERO, &change(class(2, None, settings.clone())), &mut Drops::new()), other);
    assert_eq!(queue.change(Time::ZERO, &HtbConfig::default(), &mut Drops::new()), other);
}

#[test]
fn trees_that_are_none_are_refused() {
    let tree = |classes: &[Class<HtbClass>]| HtbConfig { classes: classes.to_vec(), ..HtbConfig::default() };
    let deep = |levels: u64| {
        let name = |level: u64| (level > 0).then(|| (level - 1).to_string());
        let at = |level: u64| {
            let parent = name(level);
            if level < levels {
                above(level, parent.as_deref(), fast())
            } else {
                class(level, parent.as_deref(), fast())
            }
        };
        tree(&(0..=levels).map(at).collect::<Vec<_>>())
    };
    assert_eq!((deep(7).problem(), deep(8).problem().is_some()), (None, true));
    let with = |change: &dyn Fn(&mut HtbClass)| {
        let mut settings = fast();
        change(&mut settings);
        tree(&[class(1, None, settings)])
    };
    let mut inner = guide();
    inner[0].filter.dscp = 1;
    let mut nested = guide();
    nested[1].queue = QueueSpec::Htb(HtbConfig::default());
    for (number, config) in [
        tree(&[class(1, Some("2"), fast())]),
        tree(&[class(1, Some("1"), fast())]),
        tree(&[above(1, Some("2"), fast()), above(2, Some("1"), fast())]),
        tree(&[class(1, None, fast()), class(1, None, fast())]),
        tree(&inner),
        tree(&nested),
        HtbConfig { default: Some("9".into()), ..tree(&guide()) },
        HtbConfig { default: Some("1".into()), ..tree(&guide()) },
        HtbConfig { r2q: 0, ..HtbConfig::default() },
        with(&|class| class.prio = 8),
        with(&|class| class.quantum = Some(0)),
        with(&|class| class.ceil = Rate::from_bps(1000)),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(config.problem().is_some(), "{number}");
    }
}
