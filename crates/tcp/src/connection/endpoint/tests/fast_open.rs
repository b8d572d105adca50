//! TCP Fast Open (RFC 7413) where both ends know the cookie, as flows of a simulation have it.

use super::*;
use crate::{Config, Ports};
use ackclock_cc::{NewReno, NewRenoConfig};

/// A client and a server, with what crosses between them.
fn ends(client: Config, server: Config) -> [Endpoint; 2] {
    // Small segments wait for nothing.
    let [client, server] = [client, server].map(|config| Config { nagle: false, ..config });
    let cc = || Box::new(NewReno::new(NewRenoConfig::default()));
    let mut ends = [
        Endpoint::new(client, cc(), Ports { local: 1, remote: 2 }, 100, 0),
        Endpoint::new(server, cc(), Ports { local: 2, remote: 1 }, 900, 0),
    ];
    ends[0].connect();
    ends[1].listen();
    ends
}

/// All that one end sends, at the other's door.
fn cross(ends: &mut [Endpoint; 2], from: usize, now: Time) -> Vec<Segment> {
    let mut segment = Segment::default();
    let mut sent = Vec::new();
    while ends[from].transmit(now, &mut segment).is_some() {
        sent.push(segment);
    }
    for segment in &sent {
        ends[1 - from].input(now, segment, Ecn::NotEct);
    }
    sent
}

fn fast() -> Config {
    Config { states: StateRules { fast_open: true, ..StateRules::default() }, ..Config::default() }
}

#[test]
fn the_first_data_arrives_with_the_syn() {
    let mut ends = ends(fast(), fast());
    ends[0].write(5000);
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    let syn = cross(&mut ends, 0, at(0));
    // RFC 7413 section 4.2.1: the MSS less the options, which are 20 bytes and the 12 of a cookie
    // with its padding.
    assert_eq!((syn.len(), syn[0].payload), (1, Payload { offset: 0, len: 1460 - 32 }));
    assert_eq!((ends[1].state(), ends[1].read(u64::MAX)), (State::SynReceived, 1428));
    let answer = cross(&mut ends, 1, at(50));
    assert_eq!((answer.len(), answer[0].ack), (1, 101 + 1428));
    assert!(ends[0].opening().is_data_acknowledged());
    // The rest follows with the ACK of the SYN: 5000 - 1428 = 3572, with timestamps 1448 bytes at a
    // time.
    let rest: Vec<u32> = cross(&mut ends, 0, at(100)).iter().map(|segment| segment.payload.len).collect();
    assert_eq!(rest, [1448, 1448, 676]);
    assert_eq!(
        (ends[1].state(), ends[1].receiver().delivered(), ends[0].sender().stats().retransmitted_packets),
        (State::Established, 5000, 0)
    );
}

#[test]
fn a_server_that_does_not_know_it_gets_the_data_again() {
    let mut ends = ends(fast(), Config::default());
    ends[0].write(3000);
    cross(&mut ends, 0, Time::ZERO);
    assert_eq!(cross(&mut ends, 1, Time::ZERO)[0].ack, 101);
    // The data of the SYN, and the rest; RFC 7413 section 4.2.2.
    let again: Vec<(u64, u32)> =
        cross(&mut ends, 0, Time::ZERO).iter().map(|segment| (segment.payload.offset, segment.payload.len)).collect();
    assert_eq!(again, [(0, 1428), (1428, 1448), (2876, 124)]);
    assert_eq!((ends[1].receiver().delivered(), ends[1].receiver().integrity_error()), (3000, None));
    assert_eq!(ends[0].sender().stats().retransmitted_packets, 1);
}

#[test]
fn without_data_it_is_an_ordinary_handshake() {
    let mut ends = ends(fast(), fast());
    assert_eq!(cross(&mut ends, 0, Time::ZERO)[0].payload.len, 0);
    cross(&mut ends, 1, Time::ZERO);
    cross(&mut ends, 0, Time::ZERO);
    assert_eq!(ends.each_ref().map(Endpoint::state), [State::Established; 2]);
}

#[test]
fn the_answer_may_bring_data_before_the_handshake_is_over() {
    let mut ends = ends(fast(), fast());
    ends[0].write(100);
    cross(&mut ends, 0, Time::ZERO);
    ends[1].write(2000);
    let answer: Vec<u32> = cross(&mut ends, 1, Time::ZERO).iter().map(|segment| segment.payload.len).collect();
    assert_eq!(answer, [0, 1448, 552]);
    assert_eq!((ends[0].state(), ends[0].receiver().delivered()), (State::Established, 2000));
    cross(&mut ends, 0, Time::ZERO);
    assert_eq!((ends[1].state(), ends[1].sender().sequence().acked_bytes()), (State::Established, 2000));
}
