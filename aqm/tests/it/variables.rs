//! The variables of laws with several queues.

use std::collections::BTreeMap;

use ackclock_aqm::{
    Drops, DualPi2, DualPi2Config, FqCodel, FqCodelConfig, FqPie, FqPieConfig, QueueDisc, Sfb, SfbConfig, Variable,
};
use ackclock_testkit::{Ask, StubPacket};
use ackclock_units::{Ecn, Random, Time};

fn random() -> Random {
    Random::for_component(1, 0, "variables")
}

fn offer(queue: &mut dyn QueueDisc<StubPacket>, flow: u64, packets: u32, ecn: Ecn) {
    for id in 0..packets {
        queue.enqueue(Time::ZERO, StubPacket { flow, id, wire_len: 1000, ecn }, &mut Drops::new());
    }
}

fn variables(queue: &dyn QueueDisc<StubPacket>) -> BTreeMap<&'static str, Variable> {
    let mut variables = BTreeMap::new();
    queue.variables(&mut |name, value| {
        variables.insert(name, value);
    });
    variables
}

/// Three flows start; the first sends a packet, and with another one of a quantum of 300 bytes it
/// has had its turn.
#[test]
fn flows_in_the_lists_are_counted() {
    let queues: [Box<dyn QueueDisc<StubPacket>>; 2] = [
        Box::new(FqCodel::new(FqCodelConfig { quantum: 300, ..FqCodelConfig::default() }, random())),
        Box::new(FqPie::new(FqPieConfig { quantum: 300, ..FqPieConfig::default() }, random())),
    ];
    for mut queue in queues {
        let lists = |queue: &dyn QueueDisc<StubPacket>| {
            let variables = variables(queue);
            ["new_flows", "old_flows", "flow_backlog", "memory"].map(|name| variables[name])
        };
        (1..4).for_each(|flow| offer(&mut *queue, flow, 2, Ecn::NotEct));
        let (count, bytes) = (Variable::Count, Variable::Bytes);
        assert_eq!(lists(&*queue), [count(3), count(0), bytes(2000.0), bytes(6.0 * 1576.0)]);
        let third = variables(&*queue)["flow"];
        queue.ask(Time::ZERO, &mut Drops::new());
        assert_eq!(lists(&*queue), [count(3), count(0), bytes(1000.0), bytes(5.0 * 1576.0)]);
        assert_ne!(variables(&*queue)["flow"], third, "the first flow sends, the third came last");
        // 700 bytes over its quantum, the first is moved behind, and the second sends.
        queue.ask(Time::ZERO, &mut Drops::new());
        assert_eq!(lists(&*queue), [count(2), count(1), bytes(1000.0), bytes(4.0 * 1576.0)]);
        while queue.ask(Time::ZERO, &mut Drops::new()).is_some() {}
        assert_eq!(lists(&*queue)[..2], [count(0), count(0)]);
    }
}

/// RFC 9332 appendix A: p_L = k p', p_C = p'^2, whichever queue the last packet was of.
#[test]
fn both_queues_of_dualpi2_have_a_probability() {
    let config = DualPi2Config { coupling_factor: 3, ..DualPi2Config::default() };
    let mut queue = DualPi2::new(config, random());
    offer(&mut queue, 1, 30, Ecn::NotEct);
    offer(&mut queue, 2, 20, Ecn::Ect1);
    let number = |variables: &BTreeMap<&'static str, Variable>, name| match variables[name] {
        Variable::Probability(p) => p,
        other => panic!("{name}: {other:?}"),
    };
    for (millis, l4s) in [(100, true), (120, true)] {
        queue.ask(Time::from_millis(millis), &mut Drops::new());
        let all = variables(&queue);
        let base = number(&all, "base_probability");
        assert!(base > 0.1 && base < 1.0, "{base}");
        assert_eq!(number(&all, "classic_probability"), base * base);
        assert_eq!(number(&all, "l4s_probability"), (3.0 * base).min(1.0));
        assert_eq!(all["l4s"], Variable::Flag(l4s));
    }
    let all = variables(&queue);
    assert_eq!(all["classic_packets"], Variable::Count(30));
    let Variable::Count(left) = all["l4s_packets"] else { panic!("{all:?}") };
    assert_eq!(left, queue.backlog().packets - 30);
}

/// The bins of one flow of 30 packets: each has them all, and the rest have none.
#[test]
fn sfb_shows_its_fullest_bin() {
    let mut queue = Sfb::new(SfbConfig { target: Some(40), ..SfbConfig::default() }, random());
    offer(&mut queue, 7, 30, Ecn::NotEct);
    let all = variables(&queue);
    assert_eq!((all["set"], all["maxqlen"]), (Variable::Count(0), Variable::Count(30)));
    assert_eq!((all["maxprob"], all["avgprob"]), (Variable::Probability(0.0), Variable::Probability(0.0)));
}
