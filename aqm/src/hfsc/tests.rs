use super::*;
use crate::stub::{Stub, stub};
use crate::tree::Filter;
use crate::{Class, Hfsc, HfscConfig, QueueSpec};

/// The packets of class `n` are those of flow `n`.
fn class(number: u64, parent: Option<&str>, settings: HfscClass) -> Class<HfscClass> {
    let name: Arc<str> = format!("{number}").into();
    let filter = Filter { flows: vec![Arc::clone(&name)], hashes: vec![number], ..Filter::default() };
    Class { name, parent: parent.map(Arc::from), filter, queue: QueueSpec::by_name("pfifo").unwrap(), settings }
}

fn above(number: u64, parent: Option<&str>, settings: HfscClass) -> Class<HfscClass> {
    Class { filter: Filter::default(), ..class(number, parent, settings) }
}

fn ls(rate: u64) -> HfscClass {
    HfscClass { ls: Some(ServiceCurve::linear(rate)), ..HfscClass::default() }
}

fn hfsc(classes: &[Class<HfscClass>]) -> Hfsc<Stub> {
    let config = HfscConfig { classes: classes.to_vec(), ..HfscConfig::default() };
    Hfsc::new(config, Random::for_component(1, 0, "hfsc"))
}

fn of_flow(flow: u64, id: u32, bytes: u32) -> Stub {
    Stub { flow, ..stub(id, bytes) }
}

/// The bytes that each of these flows sends while packets of 1000 bytes of all of them wait, on a
/// link of 8 Mbit/s, on which a byte takes a microsecond.
fn sent(queue: &mut Hfsc<Stub>, flows: &[u64], seconds: u64) -> Vec<u64> {
    let (mut now, mut drops, mut sent) = (Time::ZERO, Drops::new(), vec![0; flows.len()]);
    for &flow in flows {
        (0..2).for_each(|_| queue.enqueue(now, of_flow(flow, 0, 1000), &mut drops));
    }
    while now < Time::from_secs(seconds) {
        match queue.dequeue(now, &mut drops) {
            Dequeue::Packet(entry) => {
                queue.enqueue(now, entry.packet, &mut drops);
                let place = flows.iter().position(|&flow| flow == entry.packet.flow).unwrap();
                sent[place] += u64::from(entry.packet.bytes);
                now += Span::from_micros(entry.packet.bytes.into());
            }
            Dequeue::NotBefore(later) => {
                assert!(later > now);
                now = later;
            }
            Dequeue::Empty => unreachable!("packets wait"),
        }
    }
    sent
}

/// Within three packets, those of a class, of its sibling and of the class above.
fn assert_near(bytes: &[u64], expected: &[u64]) {
    let near = |(&bytes, &expected): (&u64, &u64)| bytes.abs_diff(expected) <= 3000;
    assert!(bytes.iter().zip(expected).all(near), "{bytes:?}, {expected:?}");
}

/// SIGCOMM'97, section 2, link sharing: of 8 Mbit/s one agency has 5 and the other 3; in the first,
/// video and data have 3 and 2. In 10 s that is 3.75, 2.5 and 3.75 MB.
#[test]
fn classes_share_by_their_curves_from_the_top() {
    let classes = [
        above(1, None, ls(5_000_000)),
        class(10, Some("1"), ls(3_000_000)),
        class(11, Some("1"), ls(2_000_000)),
        class(2, None, ls(3_000_000)),
    ];
    assert_near(&sent(&mut hfsc(&classes), &[10, 11, 2], 10), &[3_750_000, 2_500_000, 3_750_000]);
    // The rest of a class goes to its siblings first: data is idle, and video has all of the agency's.
    assert_near(&sent(&mut hfsc(&classes), &[10, 2], 10), &[6_250_000, 3_750_000]);
    // Without the agency, the other one has the link.
    assert_near(&sent(&mut hfsc(&classes), &[2], 10), &[10_000_000]);
}

/// A real-time curve of 6 Mbit/s beside equal shares: 2 Mbit/s are left for the other, which is all
/// that the link-share criterion has, and by it the class has had its part.
#[test]
fn a_real_time_curve_comes_before_shares() {
    let rt = HfscClass { rt: Some(ServiceCurve::linear(6_000_000)), ..ls(4_000_000) };
    let classes = [class(1, None, rt), class(2, None, ls(4_000_000))];
    assert_near(&sent(&mut hfsc(&classes), &[1, 2], 10), &[7_500_000, 2_500_000]);
}

/// An upper limit of 2 Mbit/s leaves the link idle if nobody else sends: 2.5 MB in 10 s. With
/// another class that has the rest.
#[test]
fn no_class_exceeds_its_upper_limit() {
    let limited = HfscClass { ul: Some(ServiceCurve::linear(2_000_000)), ..ls(4_000_000) };
    let classes = [class(1, None, limited), class(2, None, ls(4_000_000))];
    assert_near(&sent(&mut hfsc(&classes), &[1], 10), &[2_500_000]);
    assert_near(&sent(&mut hfsc(&classes), &[1, 2], 10), &[2_500_000, 7_500_000]);
}

/// tc-hfsc(7), "real time criterion", and section 6 of the paper: a packet leaves at the latest one
/// packet of the link after its deadline. `umax` of 200 bytes and `dmax` of 5 ms at 64 kbit/s: a
/// deadline of 5 ms, and 1000 us of a packet of another class; by its rate alone it would be 25 ms.
#[test]
fn a_packet_leaves_by_its_deadline() {
    let rt = Some(ServiceCurve::of_delay(200, Span::from_millis(5), 64_000));
    assert_eq!(rt, Some(ServiceCurve { m1: 320_000, d: Span::from_millis(5), m2: 64_000 }));
    let voice = HfscClass { rt, ..ls(64_000) };
    let classes = [class(1, None, voice), class(2, None, ls(7_936_000))];
    let mut queue = hfsc(&classes);
    let (mut now, mut drops, mut worst) = (Time::ZERO, Drops::new(), Span::ZERO);
    let (mut next, mut count) = (Time::from_millis(3), 0);
    (0..2).for_each(|_| queue.enqueue(now, of_flow(2, 0, 1000), &mut drops));
    // A packet each 25 ms, which is 64 kbit/s.
    while count < 400 {
        if next <= now {
            queue.enqueue(next, of_flow(1, 1, 200), &mut drops);
            next += Span::from_millis(25);
        }
        let entry = queue.dequeue(now, &mut drops).packet().expect("the other class waits");
        now += Span::from_micros(entry.packet.bytes.into());
        if entry.packet.flow == 1 {
            worst = worst.max(now.since(entry.enqueued_at));
            count += 1;
        } else {
            queue.enqueue(now, entry.packet, &mut drops);
        }
    }
    assert!(worst <= Span::from_millis(5) + Span::from_micros(1000), "{worst:?}");
    // 200 bytes take 25 ms at the rate, and may take 50: the curve begins 25 ms later.
    assert_eq!(
        ServiceCurve::of_delay(200, Span::from_millis(50), 64_000),
        ServiceCurve { m1: 0, d: Span::from_millis(25), m2: 64_000 }
    );
}

/// `rtsc_min`: a class that was idle begins its curve anew where it is; one that was ahead of its
/// curve keeps it. A first slope of 8 Mbit/s for 1 ms, then 0.8: 1000 bytes, then 100 each ms.
#[test]
fn a_curve_begins_anew_after_idle_time() {
    let curve = ServiceCurve { m1: 8_000_000, d: Span::from_millis(1), m2: 800_000 };
    let mut runtime = Runtime::new(curve, 0, 0);
    assert_eq!([0, 500_000, 1_000_000, 2_000_000].map(|at| runtime.bytes(at)), [0, 500, 1000, 1100]);
    assert_eq!([500, 1000, 1100].map(|bytes| runtime.time(bytes)), [500_000, 1_000_000, 2_000_000]);
    // 1000 bytes were sent by 1 ms; at 11 ms the old curve has 2000, the new one begins at 1000.
    let mut idle = runtime;
    idle.lower(curve, 11_000_000, 1000);
    assert_eq!((idle.bytes(11_500_000), idle.time(2000)), (1500, 12_000_000));
    // With as much sent at 2 ms they meet: the new one has gained 100 at 7.2 Mbit/s after 111,112 ns.
    runtime.lower(curve, 2_000_000, 1000);
    assert_eq!((runtime.dx, runtime.dy), (111_112, 111));
    assert_eq!(runtime.bytes(12_000_000), 1000 + 111 + 988);
}

/// `hfsc_change_class`: a curve that is another begins now. Shares of 4 and 4 Mbit/s become 6 and 2:
/// 5 MB each in 10 s, then 7.5 and 2.5 MB in other 10 s.
#[test]
fn curves_change_at_run_time() {
    let tree = |rates: [u64; 2]| [class(1, None, ls(rates[0])), class(2, None, ls(rates[1]))];
    let config = |classes: &[Class<HfscClass>]| HfscConfig { classes: classes.to_vec(), ..HfscConfig::default() };
    let mut queue = hfsc(&tree([4_000_000, 4_000_000]));
    let mut drops = Drops::new();
    for flow in [1, 2] {
        (0..2).for_each(|_| queue.enqueue(Time::ZERO, of_flow(flow, 0, 1000), &mut drops));
    }
    let mut sent = [[0; 2]; 2];
    for packet in 0..20_000 {
        let now = Time::from_millis(packet);
        if packet == 10_000 {
            assert_eq!(queue.change(now, &config(&tree([6_000_000, 2_000_000])), &mut Drops::new()), Ok(()));
        }
        let entry = queue.dequeue(now, &mut drops).packet().expect("both wait");
        sent[(packet / 10_000) as usize][(entry.packet.flow - 1) as usize] += 1000;
        queue.enqueue(now, entry.packet, &mut drops);
    }
    assert_near(&sent[0], &[5_000_000, 5_000_000]);
    assert_near(&sent[1], &[7_500_000, 2_500_000]);
    // An upper limit may come, and is then there.
    let mut limited = tree([6_000_000, 2_000_000]);
    limited[0].settings.ul = Some(ServiceCurve::linear(1_000_000));
    let now = Time::from_secs(20);
    assert_eq!(queue.change(now, &config(&limited), &mut Drops::new()), Ok(()));
    let fixed = Err(ChangeError::Fixed("the kinds of a class's curves"));
    assert_eq!(queue.change(now, &config(&tree([6_000_000, 2_000_000])), &mut Drops::new()), fixed);
}

#[test]
fn trees_that_are_none_are_refused() {
    let tree = |settings: HfscClass| HfscConfig { classes: vec![class(1, None, settings)], ..HfscConfig::default() };
    let curve = Some(ServiceCurve::linear(1));
    assert_eq!(tree(ls(1)).problem(), None);
    for config in [
        tree(HfscClass::default()),
        tree(HfscClass { rt: Some(ServiceCurve::default()), ..HfscClass::default() }),
        tree(HfscClass { rt: curve, ul: curve, ls: None }),
        HfscConfig { direct_qlen: 0, ..HfscConfig::default() },
    ] {
        assert!(config.problem().is_some());
    }
}
