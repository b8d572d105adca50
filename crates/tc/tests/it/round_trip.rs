//! An imported export is the same, for every discipline that both sides have.

use std::sync::Arc;

use ackclock_aqm::{
    Class, EtsConfig, Filter, HfscClass, HfscConfig, HtbClass, HtbConfig, PrioConfig, PrioMap, QfqClass, QfqConfig,
    QueueSpec, RedAdaptive, ServiceCurve, SfqRed,
};
use ackclock_scenario::Scenario;
use ackclock_sim::spec::{LinkSpec, Overhead};
use ackclock_tc::export;
use ackclock_units::parameter::{Configurable, Domain, Parameter, Value, each};
use ackclock_units::{Rate, Size, Span};
use proptest::prelude::*;

use crate::{import, link};

/// Disciplines without others in them that the kernel has.
const PLAIN: &[&str] = &[
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "red",
    "choke",
    "sfb",
    "sfq",
    "fq",
    "codel",
    "fq_codel",
    "cake",
    "pie",
    "fq_pie",
    "dualpi2",
    "tbf",
];
/// Parameters that `tc` does not set.
const OURS: &[&str] = &["hash_seed", "mtu", "control_law", "preset", "derandomize"];

/// Choices, one after another; zeros when they run out.
struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    fn below(&mut self, end: u64) -> u64 {
        u64::from(self.0.next().unwrap_or(0)) % end.max(1)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below((most - least).saturating_add(1))
    }

    fn is(&mut self) -> bool {
        self.below(2) == 1
    }

    fn rate(&mut self) -> Rate {
        // Whole bytes per second.
        Rate::from_bps(8 * self.between(1, 500_000_000)).expect("above zero")
    }
}

/// A value that both sides write exactly.
fn value(choices: &mut Choices, of: &Parameter, domain: Domain) -> Option<Value> {
    Some(match domain {
        Domain::Flag => Value::Flag(choices.is()),
        Domain::Time { .. } => match of.name {
            "perturb" | "rehash" | "db" => Value::Time(Span::from_secs(choices.between(1, 4000))),
            _ => Value::Time(Span::from_micros(choices.between(1, 4_000_000_000))),
        },
        Domain::Rate => Value::Rate(choices.rate()),
        Domain::Bytes(least, most) | Domain::Packets(least, most) | Domain::Whole(least, most, _) => {
            // `tc` does not hand a zero of some on.
            Value::Whole(choices.between(least.max(1).min(most), most.min(u64::from(u32::MAX))))
        }
        Domain::Size(least, most) => Value::Size(Size::Packets(choices.between(least.max(1), most))),
        Domain::PowerOfTwo(most) => Value::Whole(1 << choices.below(u64::from(most.ilog2()) + 1)),
        Domain::Number(least, most, "bytes") => {
            Value::Number((least + choices.below((most - least) as u64) as f64).trunc())
        }
        Domain::Number(least, most, _) => Value::Number(least + (most - least) * choices.below(257) as f64 / 256.0),
        Domain::Name { names, .. } => Value::Name(names[choices.below(names.len() as u64) as usize]),
        Domain::OrOff(_) if choices.is() => Value::Off,
        Domain::OrName(name, _) if choices.is() => Value::Name(name),
        Domain::OrOff(domain) | Domain::OrName(_, domain) => value(choices, of, *domain)?,
        Domain::FlagOrName { .. } if choices.is() => Value::Off,
        // The estimator of RFC 8033 is not Linux's.
        Domain::FlagOrName { names, .. } if of.name == "dq_rate_estimator" => Value::Name(names[0]),
        Domain::FlagOrName { names, .. } => Value::Name(names[choices.below(names.len() as u64) as usize]),
        Domain::TimeOrPackets(..) if choices.is() => Value::Size(Size::Packets(choices.between(1, 1 << 30))),
        Domain::TimeOrPackets(..) => Value::Time(Span::from_micros(choices.between(1, 4_000_000_000))),
        Domain::FlagOr(_) | Domain::NameOrFraction { .. } | Domain::PartOfLimit { .. } => return None,
    })
}

/// A discipline with other parameters, if they fit together.
fn plain(choices: &mut Choices, name: &str) -> Option<QueueSpec> {
    let mut queue = QueueSpec::by_name(name)?;
    match &mut queue {
        QueueSpec::Sfq(sfq) if choices.is() => sfq.flow_red = Some(SfqRed::default()),
        QueueSpec::Red(red) if choices.is() => red.adaptive = Some(RedAdaptive::default()),
        _ => {}
    }
    // `harddrop` of CHOKe is an option of the kernel that `tc` does not have; the table of `adaptive` is none.
    let ours = |of: &Parameter| {
        (OURS.contains(&of.name) && name != "tbf")
            || (name == "choke" && of.name == "harddrop")
            || (name == "red" && ["alpha", "beta", "interval", "top", "bottom"].contains(&of.name))
    };
    each(&mut queue, &mut |of, _| {
        if ours(of) || !choices.is() { None } else { value(choices, of, of.domain) }
    });
    if let QueueSpec::Tbf(tbf) = &mut queue {
        // `tc` wants one of the two, and a bucket for the second rate.
        match tbf.limit {
            Some(_) => tbf.latency = None,
            None => tbf.latency = Some(Span::from_millis(50)),
        }
        tbf.peakrate = None;
        tbf.mtu = None;
        if tbf.overhead.layer == ackclock_sim::spec::LinkLayer::Ptm {
            tbf.overhead = Overhead::default();
        }
    }
    if let QueueSpec::FqCodel(config) = &mut queue
        && config.ce_threshold_selector == 0
        && config.ce_threshold_mask == 0
    {
        return Configurable::problem(&queue).is_none().then_some(queue);
    }
    Configurable::problem(&queue).is_none().then_some(queue)
}

/// A link whose forward direction has this queue.
fn with(queue: QueueSpec, rate: Option<Rate>) -> LinkSpec {
    let text = "schema = 1\n[run]\nduration = \"1s\"\n[links.x]\nrate = \"unlimited\"\ndelay = \"5ms\"\n[[flows]]\nid = \"x\"\npath = [\"x\"]\n";
    let mut link = Scenario::parse("", text.as_bytes(), &[]).expect("a scenario").spec(0).links[0].clone();
    link.forward.queue = queue;
    link.forward.rate = rate;
    link.reverse.rate = Rate::from_bps(1_000_000);
    link
}

/// The commands of a script.
fn commands(script: &str) -> Vec<&str> {
    script.lines().filter(|line| line.starts_with("tc ")).collect()
}

/// Exports and imports; returns what came back, which exports as the same commands.
fn there_and_back(link: &LinkSpec) -> (String, LinkSpec) {
    let script = export(std::slice::from_ref(link));
    let imported = import(&script);
    let back = crate::link(&imported);
    let again = export(std::slice::from_ref(&back));
    assert_eq!(commands(&again), commands(&script), "{script}\n{}", imported.text);
    (script, back)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Each discipline comes back with every parameter.
    #[test]
    fn a_queue_comes_back(choices in prop::collection::vec(any::<u32>(), 64), which in 0..PLAIN.len()) {
        let mut choices = Choices(choices.into_iter());
        let rate = Some(choices.rate());
        let Some(queue) = plain(&mut choices, PLAIN[which]) else { return Ok(()) };
        let is_shaper = matches!(&queue, QueueSpec::Tbf(_)) || matches!(&queue, QueueSpec::Cake(cake) if cake.bandwidth.is_some());
        // A queue that does not shape is before a bucket.
        let rate = rate.filter(|_| !is_shaper);
        let (script, back) = there_and_back(&with(queue.clone(), rate));
        prop_assert!(!script.contains("# Not in the kernel"), "{}", script);
        prop_assert_eq!(back.forward.queue, queue, "{}", script);
        if let Some(rate) = rate {
            prop_assert_eq!(back.forward.rate, Some(rate));
        }
    }

    /// Trees of HTB come back with classes, filters and the queues in them.
    #[test]
    fn a_tree_of_htb_comes_back(choices in prop::collection::vec(any::<u32>(), 200), count in 2..7usize) {
        let mut choices = Choices(choices.into_iter());
        let classes = tree(&mut choices, count, |choices| {
            let rate = choices.rate();
            let ceil = choices.is().then(|| choices.rate()).filter(|ceil| *ceil > rate);
            let some = |choices: &mut Choices, most| choices.is().then(|| choices.between(1, most));
            HtbClass {
                ceil,
                burst: some(choices, 1 << 30),
                cburst: some(choices, 1 << 30),
                quantum: some(choices, 1 << 20).map(|quantum| quantum as u32),
                prio: choices.below(8) as u8,
                overhead: Overhead { mpu: choices.below(256) as u32, ..Overhead::bytes(choices.below(64) as i32) },
                ..HtbClass::new(rate)
            }
        });
        let default = leaves(&classes).first().cloned();
        let queue = QueueSpec::Htb(HtbConfig { r2q: choices.between(1, 100), default, classes, ..HtbConfig::default() });
        prop_assume!(Configurable::problem(&queue).is_none());
        let (script, mut back) = there_and_back(&with(queue.clone(), None));
        without_flows(&mut back.forward.queue);
        prop_assert_eq!(back.forward.queue, queue, "{}", script);
    }

    /// Trees of HFSC come back with their curves.
    #[test]
    fn a_tree_of_hfsc_comes_back(choices in prop::collection::vec(any::<u32>(), 200), count in 2..7usize) {
        let mut choices = Choices(choices.into_iter());
        let classes = tree(&mut choices, count, |choices| {
            let mut curve = |is_there: bool| {
                let m2 = choices.rate().as_bps();
                is_there.then(|| match choices.is() {
                    true => ServiceCurve { m1: choices.rate().as_bps(), d: Span::from_micros(choices.between(1, 1 << 20)), m2 },
                    false => ServiceCurve::linear(m2),
                })
            };
            HfscClass { rt: curve(true), ls: curve(true), ul: None }
        });
        let default = leaves(&classes).first().cloned();
        let queue = QueueSpec::Hfsc(HfscConfig { default, classes, ..HfscConfig::default() });
        prop_assume!(Configurable::problem(&queue).is_none());
        let (script, mut back) = there_and_back(&with(queue.clone(), None));
        without_flows(&mut back.forward.queue);
        prop_assert_eq!(back.forward.queue, queue, "{}", script);
    }

    /// Classes of QFQ come back with weights, filters and the queues in them.
    #[test]
    fn classes_of_qfq_come_back(choices in prop::collection::vec(any::<u32>(), 200), count in 1..7usize) {
        let mut choices = Choices(choices.into_iter());
        let mut classes = tree(&mut choices, count, |choices| QfqClass {
            weight: choices.between(1, 1024) as u32,
            maxpkt: choices.between(512, 65_536) as u32,
        });
        for class in &mut classes {
            class.parent = None;
        }
        let default = Some(Arc::clone(&classes[0].name));
        let queue = QueueSpec::Qfq(QfqConfig { default, classes, ..QfqConfig::default() });
        prop_assert!(Configurable::problem(&queue).is_none());
        let (script, mut back) = there_and_back(&with(queue.clone(), Some(choices.rate())));
        prop_assert!(!script.contains("# Not in the kernel"), "{}", script);
        without_flows(&mut back.forward.queue);
        prop_assert_eq!(back.forward.queue, queue, "{}", script);
    }

    /// Bands come back; each has its quantum in words then.
    #[test]
    fn bands_come_back(choices in prop::collection::vec(any::<u32>(), 32), which in 0..3usize) {
        let mut choices = Choices(choices.into_iter());
        let limit = if choices.is() { 1000 } else { choices.between(1, 5000) };
        let map = [PrioMap::Linux, PrioMap::Diffserv3, PrioMap::Diffserv4][if which == 2 { choices.below(3) as usize } else { 0 }];
        let quantum = choices.between(1, 1 << 20) as u32;
        let config = EtsConfig { limit, map, quantum, ..EtsConfig::default() };
        let queue = match which {
            0 => QueueSpec::Prio(PrioConfig { limit, map }),
            1 => QueueSpec::Ets(EtsConfig { strict: Some(choices.below(4) as u32), ..config }),
            _ => QueueSpec::Drr(config),
        };
        let (script, back) = there_and_back(&with(queue.clone(), Some(choices.rate())));
        prop_assert!(!script.contains("# Not in the kernel"), "{}", script);
        match (&queue, &back.forward.queue) {
            (QueueSpec::Prio(one), QueueSpec::Prio(other)) => prop_assert_eq!(one, other),
            (QueueSpec::Ets(one), QueueSpec::Ets(other)) | (QueueSpec::Drr(one), QueueSpec::Drr(other)) => {
                prop_assert_eq!((one.limit, one.map, one.strict), (other.limit, other.map, other.strict));
                let strict = one.strict.unwrap_or(0) as usize;
                prop_assert!(other.quanta[strict..one.map.bands()].iter().all(|of| *of == Some(quantum)), "{}", script);
            }
            (_, other) => prop_assert!(false, "{:?}", other),
        }
    }

    /// Delay, losses and framing come back.
    #[test]
    fn a_wire_comes_back(
        delay in 1u64..1_000_000_000,
        jitter in 0u64..1_000_000,
        loss in 0u32..1_000_001,
        corrupt in 0u32..1_000_001,
        chain in any::<bool>(),
        overhead in 0i32..100,
    ) {
        let mut link = with(QueueSpec::by_name("pfifo").expect("in the table"), Rate::from_bps(10_000_000));
        link.forward.delay = Span::from_nanos(delay);
        // netem has whole nanoseconds to both sides.
        link.forward.impairments.jitter = Span::from_nanos(2 * jitter);
        if jitter > 0 {
            link.forward.impairments.reorder = ackclock_emulator::Reorder::ByJitter;
        }
        let share = f64::from(loss) / 1e6;
        link.forward.impairments.loss = match (chain, loss) {
            (_, 0) => ackclock_emulator::Loss::None,
            (true, _) => ackclock_emulator::Loss::GilbertElliott(ackclock_emulator::GilbertElliott { p: share, r: 0.3, bad: 0.9, good: 0.001 }),
            (false, _) => ackclock_emulator::Loss::Iid(share),
        };
        link.forward.impairments.corrupt = f64::from(corrupt) / 1e6;
        link.forward.overhead = Overhead::bytes(overhead);
        let (script, back) = there_and_back(&link);
        prop_assert_eq!(&back.forward.impairments, &link.forward.impairments, "{}", script);
        prop_assert_eq!(back.forward.delay, link.forward.delay);
        prop_assert_eq!(back.forward.overhead, link.forward.overhead);
    }
}

/// Drops the flows that stand for the packets of classes without filters.
fn without_flows(queue: &mut QueueSpec) {
    match queue {
        QueueSpec::Htb(htb) => htb.classes.iter_mut().for_each(|class| class.filter.flows.clear()),
        QueueSpec::Hfsc(hfsc) => hfsc.classes.iter_mut().for_each(|class| class.filter.flows.clear()),
        QueueSpec::Qfq(qfq) => qfq.classes.iter_mut().for_each(|class| class.filter.flows.clear()),
        _ => {}
    }
}

/// Classes, each below one before it or at the top, with filters by codepoint.
fn tree<S>(choices: &mut Choices, count: usize, settings: impl Fn(&mut Choices) -> S) -> Vec<Class<S>> {
    let names: Vec<Arc<str>> = (1..=count).map(|number| Arc::from(format!("c{number:x}"))).collect();
    let mut parents: Vec<Option<usize>> = vec![None];
    parents
        .extend((1..count).map(|number| Some(choices.below(number as u64) as usize).filter(|_| choices.below(8) > 0)));
    // Each codepoint leads to one class.
    let mut next = 1;
    (0..count)
        .map(|number| {
            let is_leaf = !parents.contains(&Some(number));
            let mut filter = Filter::default();
            if is_leaf && choices.is() {
                filter.dscp = 0b11 << next;
                next += 2;
            }
            let queue = match (is_leaf, PLAIN[choices.below(PLAIN.len() as u64) as usize]) {
                // A bucket's limit follows from its latency.
                (true, name) if name != "tbf" => plain(choices, name),
                _ => None,
            };
            Class {
                name: Arc::clone(&names[number]),
                parent: parents[number].map(|parent| Arc::clone(&names[parent])),
                filter,
                queue: queue.unwrap_or_else(|| QueueSpec::by_name("pfifo").expect("in the table")),
                settings: settings(choices),
            }
        })
        .collect()
}

fn leaves<S>(classes: &[Class<S>]) -> Vec<Arc<str>> {
    let is_leaf = |class: &&Class<S>| classes.iter().all(|other| other.parent.as_ref() != Some(&class.name));
    classes.iter().filter(is_leaf).map(|class| Arc::clone(&class.name)).collect()
}

/// Settings that the kernel does not have are named, and stand in no command.
#[test]
fn what_the_kernel_lacks_is_named() {
    for name in QueueSpec::NAMES {
        let queue = QueueSpec::by_name(name).expect("in the table");
        if queue.is_tree() {
            continue;
        }
        let script = export(&[with(queue, Rate::from_bps(8_000_000))]);
        let is_there = PLAIN.contains(name) || ["prio", "drr", "ets"].contains(name);
        assert_eq!(script.contains(&format!("# Not in the kernel: queue = \"{name}\"")), !is_there, "{script}");
    }
    // A parameter without an option, and one that tc cuts.
    let mut queue = QueueSpec::by_name("codel").expect("in the table");
    each(&mut queue, &mut |of, _| match of.name {
        "mtu" => Some(Value::Whole(300)),
        "target" => Some(Value::Time(Span::from_nanos(1_500_500))),
        _ => None,
    });
    let script = export(&[with(queue, None)]);
    assert!(script.contains("# Not in the kernel: mtu = 300: `codel` of the kernel has no such option"), "{script}");
    assert!(script.contains("# Not in the kernel: target: `tc` cuts"), "{script}");
    assert!(script.contains("codel target 1500us"), "{script}");
}

/// Scenarios of the repository come back, too.
#[test]
fn scenarios_come_back() {
    for text in [
        include_str!("../../../../scenarios/shapers/borrowing.toml"),
        include_str!("../../../../scenarios/shapers/delay.toml"),
        include_str!("../../../../scenarios/cake/acks.toml"),
    ] {
        let scenario = Scenario::parse("", text.as_bytes(), &[]).expect("a scenario");
        let script = export(&scenario.spec(0).links);
        let again = export(std::slice::from_ref(&link(&import(&script))));
        // Names of classes become numbers, flows filters to be written.
        assert_eq!(commands(&again), commands(&script), "{script}");
    }
}
