//! Files in each format, written for these tests: what comes over, and what does not.
//!
//! The formats are documented in tc(8), in OpenWrt's wiki (SQM details) and sqm-scripts'
//! `platform/openwrt/sqm-uci`, and in LibreQoS' `docs/v2.0/configuration-advanced.md`.

use ackclock_aqm::{CakeRtt, FqCodelConfig, QueueSpec};
use ackclock_emulator::{Loss, Reorder};
use ackclock_sim::spec::{LinkLayer, LinkSpec};
use ackclock_tc::{Imported, Options, Source};
use ackclock_units::{Rate, Span};

use crate::{import, left, link, spec};

/// Imports files by their names.
fn files(names: &[&str], options: &Options) -> Imported {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/");
    let read = |name: &&str| std::fs::read_to_string(format!("{folder}{name}")).expect("a fixture");
    let texts: Vec<String> = names.iter().map(read).collect();
    let sources: Vec<Source<'_>> = names.iter().zip(&texts).map(|(name, text)| Source { name, text }).collect();
    ackclock_tc::import(&sources, options).expect("a right file")
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).expect("above zero")
}

/// The settings of an HTB class: rate and ceiling, bit/s, and the name of its queue.
fn htb(queue: &QueueSpec, name: &str) -> (u64, u64, String) {
    let QueueSpec::Htb(htb) = queue else { panic!("{queue:?}") };
    let class = htb.classes.iter().find(|class| *class.name == *name).expect("a class");
    let settings = &class.settings;
    (settings.rate.as_bps(), settings.ceil.unwrap_or(settings.rate).as_bps(), class.queue.name().to_owned())
}

fn leaf<'q>(queue: &'q QueueSpec, name: &str) -> &'q QueueSpec {
    queue.classes().find(|(class, _)| *class == name).and_then(|(_, queue)| queue).expect("a leaf")
}

#[test]
fn a_script_becomes_a_link() {
    let imported = files(&["router.sh"], &Options::default());
    let LinkSpec { name, forward, reverse, .. } = link(&imported);
    assert_eq!(name, "eth1");
    // The rate is that of the classes: the device sends at once.
    assert_eq!((forward.rate, forward.overhead.bytes, forward.overhead.mpu), (None, 18, 64));
    assert_eq!(htb(&forward.queue, "c1"), (10_000_000, 10_000_000, "pfifo".to_owned()));
    // 600 kbps are 600,000 bytes per second; $((4200 + 0))kbit are 4.2 Mbit/s.
    assert_eq!(htb(&forward.queue, "c20"), (4_800_000, 10_000_000, "fq_codel".to_owned()));
    assert_eq!(htb(&forward.queue, "c30"), (4_200_000, 10_000_000, "sfq".to_owned()));
    let QueueSpec::Htb(config) = &forward.queue else { panic!() };
    // 15k are 15 * 1024 bytes. EF is codepoint 46: 0xb8 / 4.
    assert_eq!((config.r2q, config.default.as_deref()), (5, Some("c30")));
    assert_eq!(config.classes[0].settings.burst, Some(15 * 1024));
    assert_eq!(config.classes[1].filter.dscp, 1 << 46);
    assert_eq!(config.classes[2].filter.flows, ["forward-c20".into()]);
    let QueueSpec::FqCodel(FqCodelConfig { limit, ecn, target, .. }) = leaf(&forward.queue, "c20") else { panic!() };
    assert_eq!((*limit, *ecn, *target), (1001, false, Span::from_millis(7)));
    // netem: 20 ms with 5 ms to both sides are 15 ms and up to 10 ms more.
    assert_eq!((reverse.rate, reverse.delay), (Some(rate(50_000_000)), Span::from_millis(15)));
    let wire = &reverse.impairments;
    assert_eq!((wire.jitter, wire.jitter_correlation, wire.reorder), (Span::from_millis(10), 0.25, Reorder::ByJitter));
    assert_eq!(wire.loss, Loss::Iid(0.001));
    assert_eq!(reverse.queue.name(), "pie");
    // netem delays one way alone.
    assert_eq!(forward.delay, Span::ZERO);
    let left = left(&imported);
    let starts =
        ["10: `modprobe", "21: `filter u32 match ip dport 80", "22: `filter fw", "23: `iptables", "26: `limit 2000`"];
    assert_eq!(left.len(), starts.len(), "{left:#?}");
    for (line, start) in left.iter().zip(starts) {
        assert!(line.starts_with(&format!("router.sh:{start}")), "{line}");
    }
    let flows: Vec<String> = spec(&imported).flows.iter().map(|flow| flow.id.to_string()).collect();
    assert_eq!(flows, ["forward-c10.0", "forward-c20.0", "forward-c30.0", "reverse.0"]);
}

#[test]
fn the_json_of_tc_becomes_links() {
    let imported = files(&["qdisc.json", "class.json", "filter.json"], &Options::default());
    // Two devices: what wan sends, and what lan sends; lo has no queue.
    let LinkSpec { forward, reverse, .. } = link(&imported);
    // 2,500,000 bytes per second.
    let QueueSpec::Cake(cake) = &forward.queue else { panic!() };
    assert_eq!((cake.bandwidth, cake.overhead, cake.mpu), (Some(rate(20_000_000)), Some(22.0), Some(64)));
    assert_eq!(cake.rtt.span(), CakeRtt::Internet.span());
    assert!(cake.ack_filter.is_some());
    assert_eq!(htb(&reverse.queue, "c11"), (1_000_000, 16_666_000, "pfifo".to_owned()));
    let QueueSpec::Htb(tree) = &reverse.queue else { panic!() };
    // `default` is hexadecimal; 0xb80000 under 0xfc0000 at 0 is the TOS byte of EF.
    assert_eq!(tree.default.as_deref(), Some("c12"));
    assert_eq!((tree.classes[1].filter.dscp, tree.classes[1].settings.prio), (1 << 46, 1));
    assert_eq!(
        (tree.classes[2].settings.overhead.bytes, tree.classes[2].settings.overhead.layer),
        (34, LinkLayer::Atm)
    );
    let QueueSpec::FqCodel(fq_codel) = leaf(&reverse.queue, "c12") else { panic!() };
    assert_eq!((fq_codel.quantum, fq_codel.target), (300, Span::from_micros(4999)));
    let left = left(&imported);
    assert!(left.iter().any(|line| line.starts_with("qdisc.json:2: `nat`")), "{left:#?}");
    // The delay of one class is none of the link's.
    assert!(left.iter().any(|line| line.starts_with("qdisc.json:10: `netem limit 100 delay")), "{left:#?}");
    assert!(left.iter().all(|line| !line.contains("ack-filter") && !line.contains(" lo`")), "{left:#?}");
}

/// `tc -d` prints more than a script has, and less.
#[test]
fn the_json_of_tc_lacks_what_it_does_not_print() {
    let imported = import(
        "[{\"kind\":\"red\",\"handle\":\"1:\",\"dev\":\"a\",\"root\":true,\"options\":{\"limit\":400000,\"min\":30000,\"max\":90000,\
         \"ecn\":true,\"harddrop\":false,\"adaptive\":false,\"nodrop\":false,\"ewma\":5,\"probability\":0.1,\"Scell_log\":13}}]",
    );
    let QueueSpec::Red(red) = link(&imported).forward.queue else { panic!() };
    assert_eq!((red.limit, red.min, red.ecn, red.probability), (400_000, Some(30_000), true, 0.1));
    assert!(left(&imported).iter().any(|line| line.contains("`red avpkt, burst, bandwidth`")), "{:#?}", imported.left);
    // Lists of fq are no options of ackclock's; what follows them is.
    let imported = import(
        "[{\"kind\":\"fq\",\"handle\":\"1:\",\"dev\":\"a\",\"root\":true,\"options\":{\"limit\":500,\"buckets\":1024,\"bands\":3,\
         \"priomap \":[1,2,2,2,1,2,0,0,1,1,1,1,1,1,1,1],\"weights \":[589824,196608,65536],\"quantum\":3000,\"refill_delay\":40000}}]",
    );
    let QueueSpec::Fq(fq) = link(&imported).forward.queue else { panic!() };
    assert_eq!((fq.limit, fq.quantum, fq.refill_delay), (500, 3000, Span::from_millis(40)));
    assert!(left(&imported).iter().any(|line| line.contains("`fq bands`")), "{:#?}", imported.left);
    // HFSC is a class of its own; d is in microseconds, slopes in bytes per second.
    let imported = import(
        "[{\"kind\":\"hfsc\",\"handle\":\"1:\",\"dev\":\"a\",\"root\":true,\"options\":{\"default\":\"0x2\"}}]\n\
         [{\"class\":\"hfsc\",\"handle\":\"1:\",\"dev\":\"a\",\"root\":true,\"stats\":{}},\n\
         {\"class\":\"hfsc\",\"handle\":\"1:2\",\"dev\":\"a\",\"parent\":\"1:\",\"rt\":{\"m1\":25000,\"d\":8000,\"m2\":8000},\
         \"ls\":{\"m1\":0,\"d\":0,\"m2\":125000}}]",
    );
    let QueueSpec::Hfsc(hfsc) = link(&imported).forward.queue else { panic!() };
    let [class] = &hfsc.classes[..] else { panic!("{hfsc:?}") };
    assert_eq!(hfsc.default.as_deref(), Some("c2"));
    let rt = ackclock_aqm::ServiceCurve { m1: 200_000, d: Span::from_millis(8), m2: 64_000 };
    assert_eq!((class.settings.rt, class.settings.ls), (Some(rt), Some(ackclock_aqm::ServiceCurve::linear(1_000_000))));
}

/// tc-qfq has no manual page; the options of `tc/q_qfq.c` may be cut short, and a class has a weight
/// of 1 and packets of an Ethernet frame. A token bucket around it is the link's.
#[test]
fn classes_of_qfq_in_a_bucket() {
    let imported = import(
        "tc qdisc add dev a root handle 1: tbf rate 8mbit burst 10000 limit 30000\n\
         tc qdisc add dev a parent 1:1 handle 2: qfq\n\
         tc class add dev a parent 2: classid 2:1 qfq weight 10 maxpkt 600\n\
         tc class add dev a parent 2: classid 2:2 qfq\n\
         tc qdisc add dev a parent 2:2 fq_codel\n\
         tc filter add dev a parent 2: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 2:1\n\
         tc filter add dev a parent 2: prio 3 matchall classid 2:2\n",
    );
    let forward = link(&imported).forward;
    assert_eq!((forward.rate.map(|rate| rate.as_bps()), forward.burst), (Some(8_000_000), Some(10_000)));
    let QueueSpec::Qfq(qfq) = forward.queue else { panic!() };
    let settings: Vec<_> = qfq.classes.iter().map(|class| (class.settings.weight, class.settings.maxpkt)).collect();
    assert_eq!((settings, qfq.default.as_deref()), (vec![(10, 600), (1, 1514)], Some("c2")));
    assert_eq!((qfq.classes[0].filter.dscp, qfq.classes[1].queue.name()), (1 << 46, "fq_codel"));
    let imported = import(
        "[{\"kind\":\"qfq\",\"handle\":\"1:\",\"dev\":\"a\",\"root\":true,\"options\":{}}]\n\
         [{\"class\":\"qfq\",\"handle\":\"1:2\",\"dev\":\"a\",\"root\":true,\"weight\":7,\"maxpkt\":9000}]",
    );
    let QueueSpec::Qfq(qfq) = link(&imported).forward.queue else { panic!() };
    assert_eq!(qfq.classes[0].settings, ackclock_aqm::QfqClass { weight: 7, maxpkt: 9000 });
}

/// simple.qos: of the rate a third for what is urgent and a sixth for the others, and 16 kbit/s
/// less than the whole as their ceiling.
#[test]
fn sqm_with_three_tiers() {
    let imported = files(&["sqm-simple"], &Options::default());
    let LinkSpec { name, forward, reverse, .. } = link(&imported);
    assert_eq!(name, "pppoe-wan");
    assert_eq!(htb(&forward.queue, "c11"), (32_000, 16_666_000, "fq_codel".to_owned()));
    assert_eq!(htb(&forward.queue, "c12"), (8_333_000, 49_984_000, "fq_codel".to_owned()));
    assert_eq!(htb(&reverse.queue, "c11"), (128_000, 3_333_000, "fq_codel".to_owned()));
    assert_eq!(htb(&reverse.queue, "c13"), (1_666_000, 9_984_000, "fq_codel".to_owned()));
    // A millisecond of 50 Mbit/s is 6250 bytes. At 10 Mbit/s 1250 bytes are less than a packet in cells:
    // 1548 bytes are 33 of 48, 1749 bytes on the wire.
    let QueueSpec::Htb(down) = &forward.queue else { panic!() };
    let QueueSpec::Htb(up) = &reverse.queue else { panic!() };
    assert_eq!((down.classes[0].settings.burst, down.classes[0].settings.quantum), (Some(6250), Some(6250)));
    assert_eq!((up.classes[0].settings.burst, up.classes[0].settings.quantum), (Some(1749), Some(1749)));
    // 0x10, 0x90, 0xb8, 0xc0 and 0xe0 are codepoints 4, 36, 46, 48 and 56; 0x20 is 8.
    assert_eq!(down.classes[1].filter.dscp, 1 << 4 | 1 << 36 | 1 << 46 | 1 << 48 | 1 << 56);
    assert_eq!(down.classes[3].filter.dscp, 1 << 8);
    // Both directions on ATM, by a size table.
    assert_eq!((forward.overhead.bytes, forward.overhead.layer), (44, LinkLayer::Atm));
    assert_eq!(reverse.overhead, forward.overhead);
    let QueueSpec::FqCodel(in_down) = leaf(&forward.queue, "c12") else { panic!() };
    let QueueSpec::FqCodel(in_up) = leaf(&reverse.queue, "c12") else { panic!() };
    // 13,992,000 us of 33 cells at 1 kbit/s are 280 us at 50 Mbit/s: the least, 5 ms.
    assert_eq!((in_down.target, in_down.interval), (Span::from_millis(5), Span::from_millis(100)));
    assert_eq!((in_down.quantum, in_down.limit, in_down.ecn), (1500, 1001, true));
    assert_eq!((in_up.target, in_up.quantum, in_up.ecn), (Span::from_millis(15), 300, false));
}

#[test]
fn sqm_with_cake() {
    let imported = files(&["sqm-layer-cake"], &Options::default());
    let LinkSpec { forward, reverse, .. } = link(&imported);
    let (QueueSpec::Cake(down), QueueSpec::Cake(up)) = (&forward.queue, &reverse.queue) else { panic!() };
    assert_eq!((down.bandwidth, up.bandwidth), (Some(rate(85_000_000)), Some(rate(10_000_000))));
    assert_eq!((down.overhead, down.mpu, up.overhead), (Some(34.0), Some(64), Some(34.0)));
    assert!(down.ingress && !up.ingress && up.ack_filter.is_some() && !down.wash);
    let left = left(&imported);
    assert_eq!(left.iter().filter(|line| line.contains("`nat`")).count(), 2, "{left:#?}");
    assert!(left.iter().any(|line| line.starts_with("sqm-layer-cake:16: `config`")), "{left:#?}");
    // piece_of_cake.qos has one tin, and clears codepoints by default.
    let LinkSpec { forward, .. } = link(&files(&["sqm-piece-of-cake"], &Options::default()));
    let QueueSpec::Cake(down) = &forward.queue else { panic!() };
    assert!(down.wash);
    assert_eq!(format!("{:?}", down.diffserv), "Besteffort");
}

/// simplest.qos on a slow uplink: 33 cells of 53 bytes take 13,992,000 us / 640 = 21,862 us.
#[test]
fn sqm_with_one_class() {
    let LinkSpec { forward, reverse, .. } = link(&files(&["sqm-simplest"], &Options::default()));
    assert_eq!(htb(&forward.queue, "c10"), (8_000_000, 8_000_000, "fq_codel".to_owned()));
    let QueueSpec::FqCodel(up) = leaf(&reverse.queue, "c10") else { panic!() };
    assert_eq!((up.target, up.interval), (Span::from_micros(21_862), Span::from_micros(116_862)));
}

/// LibreQoS: nodes with a Mbit/s less than they have at most, circuits below them.
#[test]
fn a_network_of_libreqos() {
    let imported = files(&["network.json", "ShapedDevices.csv"], &Options::default());
    let LinkSpec { forward, reverse, .. } = link(&imported);
    assert_eq!(htb(&forward.queue, "North"), (399_000_000, 400_000_000, "pfifo".to_owned()));
    assert_eq!(htb(&reverse.queue, "North-AP"), (39_000_000, 40_000_000, "pfifo".to_owned()));
    assert_eq!(htb(&forward.queue, "circuit-101"), (25_000_000, 100_000_000, "cake".to_owned()));
    // No more than its node has; at most 1 Mbit/s up, of which 10 kbit/s at least.
    assert_eq!(htb(&forward.queue, "circuit-103"), (10_000_000, 300_000_000, "cake".to_owned()));
    assert_eq!(htb(&reverse.queue, "circuit-102"), (10_000, 1_000_000, "cake".to_owned()));
    let QueueSpec::Htb(tree) = &forward.queue else { panic!() };
    let class = |name: &str| tree.classes.iter().find(|class| *class.name == *name).expect("a class");
    assert_eq!(class("circuit-101").parent.as_deref(), Some("North-AP"));
    assert_eq!(class("North-AP").parent.as_deref(), Some("North"));
    // 700 Mbit/s are 87.5 MB/s; the first r2q with at most 60,000 bytes is 1459: 59,972.
    assert_eq!(class("uplink").settings.quantum, Some(59_972));
    // A circuit is a flow each way, whose ACKs pass the same circuit's class.
    assert_eq!(class("circuit-101").filter.flows, ["forward-circuit-101".into(), "reverse-circuit-101".into()]);
    // `cake rtt 180` is 180 us for tc.
    let QueueSpec::Cake(cake) = leaf(&forward.queue, "circuit-102") else { panic!() };
    assert_eq!(cake.rtt.span(), Span::from_micros(180));
    let lines = left(&imported);
    assert!(lines.iter().any(|line| line.starts_with("ShapedDevices.csv:5: `Parent Node `")), "{lines:#?}");
    let with = Options { rate: Some(rate(1_000_000_000)), ..Options::default() };
    let LinkSpec { forward, .. } = link(&files(&["network.json", "ShapedDevices.csv"], &with));
    assert_eq!(htb(&forward.queue, "uplink").0, 1_000_000_000);
}

/// The commands that LibreQoS generates: a tree for each queue of the device.
#[test]
fn a_batch_of_libreqos() {
    let imported = files(&["libreqos.txt"], &Options::default());
    let LinkSpec { forward, .. } = link(&imported);
    // A class without the number of its qdisc has that of its parent.
    assert_eq!(htb(&forward.queue, "c1-3"), (50_000_000, 100_000_000, "cake".to_owned()));
    let QueueSpec::Htb(tree) = &forward.queue else { panic!() };
    assert_eq!(tree.default.as_deref(), Some("c1-2"));
    let left = left(&imported);
    assert!(left.iter().any(|line| line.starts_with("libreqos.txt:1: `mq of 2 queues`")), "{left:#?}");
    assert!(left.iter().any(|line| line.starts_with("libreqos.txt:4: `cake`: a class above others")), "{left:#?}");
}

/// `change` and `replace` leave what they do not name where the kernel does; `del` removes what is
/// inside.
#[test]
fn commands_change_what_is_there() {
    let queue = |text: &str| link(&import(text)).forward.queue;
    let QueueSpec::Codel(codel) = queue(
        "tc qdisc add dev a root handle 1: codel limit 50 target 8ms\ntc qdisc change dev a root codel target 9ms ecn\n",
    ) else {
        panic!()
    };
    assert_eq!((codel.limit, codel.target, codel.ecn), (50, Span::from_millis(9), true));
    // A structure of all options: the limit is the default again.
    let text = "tc qdisc add dev a root netem limit 7\ntc qdisc replace dev a root netem delay 1ms\n";
    assert!(matches!(queue(text), QueueSpec::Pfifo(fifo) if fifo.limit == ackclock_aqm::Limit::Packets(1000)));
    let text = "tc qdisc add dev a root handle 1: htb default 1\n\
                tc class add dev a parent 1: classid 1:1 htb rate 1mbit\n\
                tc qdisc del dev a root\n\
                tc qdisc add dev a root pfifo limit 3\n";
    assert!(matches!(queue(text), QueueSpec::Pfifo(_)));
}

/// HTB with one class is a link with a bucket, as TEACUP and others set it up.
#[test]
fn a_single_class_is_the_rate() {
    let text = "tc qdisc add dev a root handle 1: htb default 1\n\
                tc class add dev a parent 1: classid 1:1 htb rate 10mbit ceil 10mbit\n\
                tc qdisc add dev a parent 1:1 handle 11: pfifo limit 180\n";
    let LinkSpec { forward, .. } = link(&import(text));
    // rate / HZ + 1600 bytes.
    assert_eq!((forward.rate, forward.burst), (Some(rate(10_000_000)), Some(1600)));
    assert_eq!(forward.queue.name(), "pfifo");
    let text = "tc qdisc add dev a root handle 1: tbf rate 2mbit burst 4kb latency 50ms\n\
                tc qdisc add dev a parent 1:1 fq_codel\n";
    let LinkSpec { forward, .. } = link(&import(text));
    assert_eq!((forward.rate, forward.burst), (Some(rate(2_000_000)), Some(4096)));
    assert_eq!(forward.queue.name(), "fq_codel");
}

#[test]
fn filters_are_asked_by_priority() {
    let text = "tc qdisc add dev a root handle 1: htb default 30\n\
                tc class add dev a parent 1: classid 1:10 htb rate 1mbit\n\
                tc class add dev a parent 1: classid 1:20 htb rate 1mbit\n\
                tc class add dev a parent 1: classid 1:30 htb rate 1mbit\n\
                tc filter add dev a parent 1: prio 5 u32 match ip tos 0xa0 0xe0 flowid 1:10\n\
                tc filter add dev a parent 1: prio 1 flower ip_tos 0xb8/0xfc classid 1:20\n\
                tc filter add dev a parent 1: prio 9 matchall classid 1:20\n\
                tc filter add dev a parent 1: prio 10 u32 match u32 0 0 flowid 1:30\n";
    let QueueSpec::Htb(tree) = link(&import(text)).forward.queue else { panic!() };
    // EF (46) is asked for before the precedence 5 (40 to 47).
    assert_eq!(tree.classes[1].filter.dscp, 1 << 46);
    assert_eq!(tree.classes[0].filter.dscp, 0xff << 40 & !(1 << 46));
    assert_eq!(tree.default.as_deref(), Some("c20"));
    // The filter of the Wonder Shaper for ACKs.
    let acks = "tc filter add dev a parent 1: prio 1 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 \
                match u16 0x0000 0xffc0 at 2 match u8 0x10 0xff at 33 flowid 1:10\n";
    let head = text.lines().take(4).collect::<Vec<_>>().join("\n");
    let QueueSpec::Htb(tree) = link(&import(&format!("{head}\n{acks}"))).forward.queue else { panic!() };
    assert_eq!((tree.classes[0].filter.acks, tree.classes[0].filter.length), (Some(true), None));
}

/// CAKE's keywords add up, as in `tc`: Ethernet's 38 bytes and a VLAN's 4.
#[test]
fn keywords_of_cake_add_up() {
    let cake = |words: &str| {
        let QueueSpec::Cake(cake) =
            link(&import(&format!("tc qdisc add dev a root cake bandwidth 1mbit {words}"))).forward.queue
        else {
            panic!()
        };
        (cake.framing.is_some(), cake.overhead, cake.mpu, cake.atm.map(|atm| format!("{atm:?}")))
    };
    assert_eq!(cake("ethernet ether-vlan"), (false, Some(42.0), Some(84), None));
    assert_eq!(cake("docsis"), (true, None, None, None));
    assert_eq!(cake("docsis overhead 20"), (true, Some(20.0), None, None));
    assert_eq!(cake("pppoe-ptm ether-vlan"), (false, Some(34.0), None, Some("Ptm".to_owned())));
    assert_eq!(cake("overhead 10 docsis"), (false, Some(28.0), Some(64), Some("Noatm".to_owned())));
    assert_eq!(cake("docsis raw"), (false, None, None, Some("Noatm".to_owned())));
}

/// A value that a scenario would refuse is left over, and the default holds.
#[test]
fn refused_values_are_left_over() {
    let imported = import("tc qdisc add dev a root fq_codel quantum 100 flows 70000 limit 5\n");
    let QueueSpec::FqCodel(queue) = link(&imported).forward.queue else { panic!() };
    assert_eq!((queue.limit, queue.quantum), (5, FqCodelConfig::default().quantum));
    let left = left(&imported);
    assert!(left.iter().any(|line| line.starts_with("in:1: `fq_codel quantum 100B`: ")), "{left:#?}");
    assert!(left.iter().any(|line| line.starts_with("in:1: `fq_codel flows 70000`: ")), "{left:#?}");
}

/// A script in the manner of SQM's: rates from outside, sums by `expr`, options from functions.
#[test]
fn a_script_with_variables_from_outside() {
    let text = "egress() {\n\
                CEIL=${UPLINK}\n\
                THIRD=`expr $CEIL / 3`\n\
                Q=\"quantum `get_quantum $CEIL`\"\n\
                SILENT=1 $TC qdisc del dev $IFACE root\n\
                case $QDISC in cake*) cake_egress; return;; esac\n\
                $TC qdisc add dev $IFACE root handle 1: `get_stab` htb default 12\n\
                $TC class add dev $IFACE parent 1: classid 1:1 htb $Q rate ${CEIL}kbit ceil ${CEIL}kbit `get_burst`\n\
                $TC class add dev $IFACE parent 1:1 classid 1:12 htb $Q rate ${THIRD}kbit ceil $((CEIL - 16))kbit prio 2\n\
                $TC qdisc add dev $IFACE parent 1:12 handle 120: $QDISC `get_limit` ${OPTS:-ecn}\n\
                $TC class add dev $IFACE parent 1:1 classid 1:13 htb rate `get_rate` prio 3\n\
                }\n";
    let variables = [("UPLINK", "9000"), ("IFACE", "wan"), ("QDISC", "fq_codel")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let source = Source { name: "in", text };
    let imported = ackclock_tc::import(&[source], &Options { variables, ..Options::default() }).expect("a script");
    let LinkSpec { name, forward, .. } = link(&imported);
    assert_eq!(name, "wan");
    assert_eq!(htb(&forward.queue, "c1"), (9_000_000, 9_000_000, "pfifo".to_owned()));
    assert_eq!(htb(&forward.queue, "c12"), (3_000_000, 8_984_000, "fq_codel".to_owned()));
    let left = left(&imported);
    let has = |start: &str| left.iter().any(|line| line.starts_with(start));
    assert!(has("in:7: `get_stab`: its value is not known"), "{left:#?}");
    assert!(has("in:8: `$Q`: its value is not known") && has("in:8: `get_burst`"), "{left:#?}");
    // A value that is not known leaves the whole command out.
    assert!(has("in:11: `class add dev wan parent 1:1 classid 1:13 htb rate"), "{left:#?}");
}

/// Scripts are words: conditions are not evaluated where nothing is known, nothing is executed.
#[test]
fn scripts_are_not_executed() {
    let imported = import(
        "[ -z \"$RATE\" ] && RATE=3mbit\n\
         [ -z \"$RATE\" ] && RATE=9mbit\n\
         setup() {\n\
         \ttc qdisc add dev $1 root tbf rate $RATE burst 10k latency 50ms # $2\n\
         }\n\
         if [ -f /etc/x ]; then\n\
         \ttc qdisc add dev eth9 root pfifo limit $(cat /proc/x)\n\
         fi\n\
         rm -rf / || tc qdisc show\n",
    );
    let QueueSpec::Tbf(tbf) = link(&imported).forward.queue else { panic!() };
    assert_eq!(tbf.rate, rate(3_000_000));
    let left = left(&imported);
    assert!(left.iter().any(|line| line.contains("`$(cat /proc/x)` is not known before the script runs")), "{left:#?}");
    assert!(left.iter().any(|line| line.starts_with("in:9: `rm -rf /`: not a `tc` command")), "{left:#?}");
}

/// `tc.c`: `-n` and `-b` take a word. A namespace is listed once, a batch and an action that is not
/// read each time; those that only show something are none of these.
#[test]
fn options_and_actions_that_are_not_read_are_listed() {
    let imported = import(
        "tc -n ns1 qdisc add dev veth12 root fq_codel\n\
         tc -netns ns1 qdisc change dev veth12 root fq_codel target 7ms\n\
         tc -net ns2 -s qdisc add dev veth21 root pie\n\
         tc -force -batch more.tc\n\
         tc -b\n\
         tc qdisc flush dev veth12 root\n\
         tc -s qdisc show dev veth12\n\
         tc qdisc\n",
    );
    let left = left(&imported);
    let starts = [
        "in:1: `-n ns1`: ",
        "in:3: `-n ns2`: ",
        "in:4: `-force -batch more.tc`: ",
        "in:5: `-b`: ",
        "in:6: `qdisc flush dev",
    ];
    // Neither device has a rate or a delay.
    let left: Vec<String> = left.into_iter().filter(|line| !line.contains("placeholder")).collect();
    assert_eq!(left.len(), starts.len(), "{left:#?}");
    for (line, start) in left.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let QueueSpec::FqCodel(FqCodelConfig { target, .. }) = &link(&imported).forward.queue else { panic!() };
    assert_eq!(*target, Span::from_millis(7));
}
