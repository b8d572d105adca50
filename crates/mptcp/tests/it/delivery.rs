//! Whatever the paths do, what is delivered is the stream, in order, and it is delivered whole
//! while one path works.

use crate::network::{Network, Strips, Wire};
use ackclock_mptcp::{Connection, SchedulerKind};
use ackclock_units::{Span, Time};
use proptest::prelude::*;

fn scheduler() -> impl Strategy<Value = SchedulerKind> {
    proptest::sample::select(SchedulerKind::ALL.to_vec())
}

fn strips() -> impl Strategy<Value = Strips> {
    prop_oneof![
        4 => Just(Strips::Nothing),
        1 => Just(Strips::Everything),
        1 => Just(Strips::Syns),
        1 => Just(Strips::Data),
        2 => (0..3000u64).prop_map(Strips::From),
    ]
}

prop_compose! {
    fn wire()(
        delay in 1..150u64,
        rate in 50_000..2_000_000u64,
        queue in 5..400u64,
        loss in prop_oneof![3 => Just(0), 2 => 20..500u64, 1 => 4..20u64],
        strips in strips(),
        mute in prop_oneof![3 => Just(0), 1 => 1..4usize],
        down in prop_oneof![2 => Just((0, 0)), 1 => (0..4000u64, 1..6000u64).prop_map(|(from, len)| (from, from + len))],
    ) -> Wire {
        Wire {
            delay: Span::from_millis(delay),
            rate,
            queue: Span::from_millis(queue),
            loses_one_of: loss,
            strips,
            down,
            mute,
            ..Wire::default()
        }
    }
}

/// Receive buffers, from a few segments to more than is ever on its way.
fn buffer() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 5_000..100_000u64, 1 => Just(1 << 20)]
}

fn network(wires: &[Wire], scheduler: SchedulerKind, seed: u64, buffer: u64) -> Network {
    Network::with(wires, seed, |config, tcp| {
        config.scheduler = scheduler;
        tcp.receive_buffer = buffer;
    })
}

/// The longest time that a connection may take, in seconds. An ACK of retransmitted data that had
/// already arrived echoes the time of the first arrival (RFC 7323 section 5.3, R2 before R3). The
/// RTT sample then covers all the time for which ACKs were lost: timeouts of a minute until it is
/// forgotten.
const PATIENCE: f64 = 6000.0;

fn is_sound(wire: &Wire) -> bool {
    wire.strips == Strips::Nothing && wire.down == (0, 0) && !(1..20).contains(&wire.loses_one_of)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The initial path is sound, the others are anything.
    #[test]
    fn everything_arrives_while_one_path_is_sound(
        first in wire().prop_filter("sound", is_sound),
        others in prop::collection::vec(wire(), 1..4),
        scheduler in scheduler(),
        bytes in 1..1_500_000u64,
        seed in any::<u64>(),
        buffer in buffer(),
        reads in prop_oneof![3 => Just(None), 1 => (0..5000u64, 50_000..500_000u64).prop_map(Some)],
    ) {
        let wires: Vec<Wire> = [first].into_iter().chain(others).collect();
        let mut network = network(&wires, scheduler, seed, buffer);
        network.reads = reads.map(|(after, rate)| (Span::from_millis(after), rate));
        prop_assert!(network.transfer(bytes, PATIENCE), "{}", network.describe());
    }

    /// Options are taken out anywhere at any time, and paths fail: a connection may end early, but
    /// never with a byte out of its place, and never by waiting for ever.
    #[test]
    fn nothing_is_out_of_place_whatever_happens(
        wires in prop::collection::vec(wire(), 1..4),
        scheduler in scheduler(),
        bytes in 1..600_000u64,
        seed in any::<u64>(),
        buffer in buffer(),
    ) {
        let mut network = network(&wires, scheduler, seed, buffer);
        let whole = network.transfer(bytes, PATIENCE);
        let ended = network.ends.iter().any(|end| end.is_over() || end.error().is_some());
        let goes_on = network.ends.iter().any(|end| end.next_deadline() < Time::NEVER);
        prop_assert!(whole || ended || goes_on, "{}", network.describe());
        prop_assert!(network.ends[1].delivered_bytes() <= bytes);
        prop_assert!(network.ends[0].acked_bytes() <= network.ends[1].delivered_bytes());
        prop_assert!(network.ends.iter().all(|end: &Connection| end.integrity_error().is_none()));
    }
}

#[test]
fn long_samples_do_not_last() {
    let wires = [
        Wire { delay: Span::from_millis(23), rate: 489_334, queue: Span::from_millis(13), ..Wire::default() },
        Wire {
            delay: Span::from_millis(95),
            rate: 51_656,
            queue: Span::from_millis(5),
            loses_one_of: 4,
            ..Wire::default()
        },
        Wire { delay: Span::from_millis(11), rate: 601_981, queue: Span::from_millis(8), ..Wire::default() },
    ];
    let mut network = network(&wires, SchedulerKind::Linux, 9507021397391826201, 5000);
    network.reads = Some((Span::from_millis(1385), 50_000));
    assert!(network.transfer(161_824, PATIENCE), "{}", network.describe());
}
