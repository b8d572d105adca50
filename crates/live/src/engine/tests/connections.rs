//! Assignment of packets to flows.

use ackclock_packet::FlowKey;
use ackclock_sim::FlowId;

use super::*;
use crate::router::protocol;

/// Segments of two connections between kernels, and what a flow has of them.
#[test]
fn a_flow_between_kernels_has_every_connection_to_its_port() {
    let mut spec = spec([true, true], Impairments::default());
    let between = |name: &str| FlowSpec { id: name.into(), ..flow(HostSpec::Outside, HostSpec::Outside, [0, 1], None) };
    spec.flows = vec![between("a"), between("b")];
    let live = spec.live.as_deref().expect("it is live");
    let mut connections = Connections::new(&spec, live);
    let key = |source: [u8; 4], destination: [u8; 4], ports: (u16, u16)| FlowKey {
        source: Ipv4Addr::from(source).into(),
        destination: Ipv4Addr::from(destination).into(),
        protocol: protocol::TCP,
        source_port: ports.0,
        destination_port: ports.1,
    };
    let mut open =
        |port: u16| connections.open([0, 1], &key(LEFT, RIGHT, (port, PORT)), Flags::SYN, || Some(Segment::default()));
    // In turn.
    let flows =
        [open(4000), open(4001), open(4002)].map(|end| end.map(|end| (end.0.flow().index(), end.0.is_sender())));
    assert_eq!(flows, [Some((0, true)), Some((1, true)), Some((0, true))]);
    assert_eq!(connections.find(&key(RIGHT, LEFT, (PORT, 4001))).0, Some((FlowId::new(1).receiver(), 0)));
    assert_eq!(connections.find(&key(LEFT, RIGHT, (4002, PORT))).0, Some((FlowId::new(0).sender(), 0)));
    // Another port is nobody's, and the other way round it is that of a client.
    assert_eq!(connections.open([0, 1], &key(LEFT, RIGHT, (4000, 80)), Flags::SYN, || Some(Segment::default())), None);
    assert_eq!(
        connections.open([1, 0], &key(RIGHT, LEFT, (4000, PORT)), Flags::SYN, || Some(Segment::default())),
        None
    );
    // More connections than are known at a time: those that opened first are forgotten.
    let many = connections::MOST_CONNECTIONS as u16;
    for port in 5000..5000 + 2 * many {
        assert!(
            connections
                .open([0, 1], &key(LEFT, RIGHT, (port, PORT)), Flags::SYN, || Some(Segment::default()))
                .is_some()
        );
    }
    assert_eq!(connections.find(&key(LEFT, RIGHT, (4002, PORT))).0, None);
    assert!((5000..5000 + 2 * many).all(|port| connections.find(&key(RIGHT, LEFT, (PORT, port))).0.is_some()));
    for port in 30_000..30_002 {
        assert!(connections.open([0, 1], &key(LEFT, RIGHT, (port, PORT)), Flags::SYN, || None).is_some());
    }
    assert_eq!(connections.find(&key(RIGHT, LEFT, (PORT, 5000))).0, None);
    assert_eq!(connections.find(&key(LEFT, RIGHT, (5001, PORT))).0, None);
}

#[test]
fn the_hash_of_a_packet_is_that_of_its_key() {
    let mut spec = spec([true, true], Impairments::default());
    spec.seed = 7;
    let mut connections = Connections::new(&spec, spec.live.as_deref().expect("it is live"));
    let key = |protocol: u8, source: [u8; 4], ports: [u16; 2]| FlowKey {
        source: Ipv4Addr::from(source).into(),
        destination: Ipv4Addr::from(RIGHT).into(),
        protocol,
        source_port: ports[0],
        destination_port: ports[1],
    };
    // Again and again, in another order each time, and many that differ in one field.
    for round in 1..5 {
        for number in 0..500 {
            let number = number * round % 499;
            let ports = [number % 7, number % 31];
            for key in
                [key(protocol::TCP, LEFT, ports), key(protocol::UDP, LEFT, ports), key(protocol::TCP, RIGHT, ports)]
            {
                assert_eq!(connections.find(&key), (None, key.hash(7)));
                assert_eq!(connections.find(&key), (None, key.hash(7)));
            }
        }
    }
}

#[test]
fn source_ports_are_unique_and_vary_with_the_seed() {
    let ports = |seed| {
        let mut spec = spec([false, true], Impairments::default());
        spec.seed = seed;
        let host = || HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
        spec.flows = (0..100).map(|_| flow(host(), HostSpec::Outside, [0, 1], None)).collect();
        let connections = Connections::new(&spec, spec.live.as_deref().expect("it is live"));
        (0..100)
            .map(FlowId::new)
            .filter_map(|flow| connections.ours(flow))
            .map(|ours| ours.first_port())
            .collect::<Vec<_>>()
    };
    let (one, two) = (ports(1), ports(2));
    assert!(one.iter().all(|port| (32_768..61_000).contains(port)));
    assert_eq!(one.iter().collect::<std::collections::BTreeSet<_>>().len(), 100);
    assert_ne!(one, two);
}
