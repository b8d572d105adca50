//! Connections over several paths: handshakes, data, failures and the end.

use crate::network::{Network, Strips, Wire};
use ackclock_mptcp::SchedulerKind;
use ackclock_packet::{Flags, MptcpOption};
use ackclock_units::Span;

fn wire(delay_ms: u64) -> Wire {
    Wire { delay: Span::from_millis(delay_ms), ..Wire::default() }
}

fn between(wires: &[Wire], scheduler: SchedulerKind, seed: u64) -> Network {
    Network::with(wires, seed, |config, _| config.scheduler = scheduler)
}

#[test]
fn two_subflows_open_and_carry_data() {
    let mut network = between(&[wire(50), wire(5)], SchedulerKind::MinRtt, 1);
    network.log = Some(Vec::new());
    assert!(network.transfer(10_000_000, 60.0), "{}", network.describe());
    let seconds = network.now.as_secs_f64();
    assert!(seconds < 10.0, "{seconds} s for 8 s of both rates");
    assert!(network.carried.iter().all(|&bytes| bytes > 3_000_000), "{:?}", network.carried);
    assert!(network.ends.iter().all(|end| end.is_multipath() && end.subflows().len() == 2));
    let log = network.log.take().expect("it was kept");
    let joins = log.iter().filter(|(_, from, path, segment)| {
        let join = segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSyn { .. }));
        join && *from == 0 && *path == 1 && segment.flags.contains(Flags::SYN)
    });
    assert_eq!(joins.count(), 1);
}

#[test]
fn every_scheduler_delivers() {
    for scheduler in SchedulerKind::ALL {
        let mut network = between(&[wire(50), wire(5), wire(20)], scheduler, 7);
        assert!(network.transfer(3_000_000, 60.0), "{scheduler:?} {}", network.describe());
    }
}

#[test]
fn without_options_it_is_plain_tcp() {
    for strips in [Strips::Everything, Strips::Syns, Strips::Data] {
        let wires = [Wire { strips, ..wire(10) }, wire(10)];
        let mut network = between(&wires, SchedulerKind::MinRtt, 3);
        assert!(network.transfer(1_000_000, 60.0), "{strips:?} {}", network.describe());
        assert!(network.ends[1].is_plain() && network.ends[0].is_plain(), "{strips:?}");
        // All of it is the subflow's.
        let [sent, got] = [0, 1].map(|end: usize| network.ends[end].subflows()[0].carried());
        assert_eq!((sent.scheduled, got.received), (1_000_000, 1_000_000), "{strips:?}");
    }
}

#[test]
fn a_path_on_which_options_do_not_pass_is_left_out() {
    for strips in [Strips::Everything, Strips::Syns, Strips::Data, Strips::From(400)] {
        let wires = [wire(10), Wire { strips, ..wire(10) }];
        let mut network = between(&wires, SchedulerKind::RoundRobin, 3);
        assert!(network.transfer(2_000_000, 60.0), "{strips:?} {}", network.describe());
        assert!(network.ends[1].is_multipath(), "{strips:?}");
    }
}

#[test]
fn a_path_that_fails_and_returns_is_used_again() {
    let wires = [Wire { down: (1000, 4000), ..wire(10) }, wire(30)];
    let mut network = between(&wires, SchedulerKind::MinRtt, 3);
    assert!(network.transfer(10_000_000, 60.0), "{}", network.describe());
    let seconds = network.now.as_secs_f64();
    // One path for 3 s and until its timer finds that it is back, which backs off to 3.2 s; then
    // two.
    assert!(seconds < 13.0, "{seconds} s");
    assert!(network.carried[0] > 3_000_000, "{:?}", network.carried);
}

#[test]
fn what_the_peer_acknowledges_and_drops_is_sent_again() {
    let forgetful = Wire { forgotten: (6000, 6100), ..wire(10) };
    let mut network = Network::with(&[forgetful, wire(20)], 3, |config, _| config.foreign_peer = true);
    assert!(network.transfer(10_000_000, 60.0), "{}", network.describe());
    let seconds = network.now.as_secs_f64();
    // 60 kB are missing, of which 32 kB go out again whenever the timer expires.
    assert!((8.0..12.0).contains(&seconds), "{seconds} s for 8 s of both rates");
}

#[test]
fn an_abort_reaches_the_other_end() {
    let mut network = between(&[wire(10), wire(10)], SchedulerKind::MinRtt, 3);
    network.ends[0].write(network.now, 1_000_000);
    network.pump();
    let second = network.now + Span::from_secs(1);
    while network.step(second) {}
    network.ends[0].abort();
    network.pump();
    while network.step(second + Span::from_secs(1)) {}
    assert!(network.ends.iter().all(|end| end.is_over() && !end.is_finished()), "{}", network.describe());
}

/// The reader sleeps until the window has been closed for long, then reads slowly.
#[test]
fn a_slow_reader_is_waited_for() {
    for buffer in [20_000, 200_000] {
        let mut network = Network::with(&[wire(10), wire(30)], 5, |_, tcp| tcp.receive_buffer = buffer);
        network.reads = Some((Span::from_secs(5), 100_000));
        assert!(network.transfer(1_000_000, 60.0), "{buffer} {}", network.describe());
        let seconds = network.now.as_secs_f64();
        assert!((12.5..17.0).contains(&seconds), "{buffer}: {seconds} s for 5 s of sleep and 8 to 10 s of reading");
    }
}

#[test]
fn an_empty_stream_ends() {
    for wires in [vec![wire(10)], vec![wire(10), wire(10)]] {
        let mut network = between(&wires, SchedulerKind::MinRtt, 3);
        assert!(network.transfer(0, 20.0), "{}", network.describe());
    }
}

/// The fourth packet of MP_JOIN is lost: the third one comes again, and is answered again.
#[test]
fn a_lost_end_of_a_handshake_is_repeated() {
    let deaf = Wire { mute: 1, ..wire(10) };
    let mut network = between(&[wire(10), deaf], SchedulerKind::RoundRobin, 3);
    network.log = Some(Vec::new());
    assert!(network.transfer(3_000_000, 60.0), "{}", network.describe());
    let log = network.log.take().expect("it was kept");
    let proofs = log.iter().filter(|(_, from, _, segment)| {
        *from == 0 && segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinAck { .. }))
    });
    assert!(proofs.count() > 1, "nothing was lost");
    assert!(network.carried[1] > 1_000_000, "{:?}", network.carried);
}

/// Nobody answers any more: the connection ends by itself.
#[test]
fn a_connection_without_an_answer_is_given_up() {
    let wires = [Wire { down: (500, u64::MAX), ..wire(10) }, Wire { down: (500, u64::MAX), ..wire(10) }];
    let mut network = between(&wires, SchedulerKind::MinRtt, 3);
    assert!(!network.transfer(3_000_000, 10_000.0));
    assert!(network.ends[0].is_over() && network.ends[0].error().is_some(), "{}", network.describe());
    assert_eq!(network.ends[0].next_deadline(), ackclock_units::Time::NEVER, "{}", network.describe());
}
