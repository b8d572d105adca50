//! CAKE with and without its shaper.

use super::*;
use ackclock_aqm::{Cake, CakeConfig, Diffserv, FlowMode, Framing};
use ackclock_units::Rate;

fn mbit(rate: u64) -> Option<Rate> {
    Rate::from_bps(rate * 1_000_000)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "cake",
            make: |random| Box::new(Cake::new(CakeConfig { memlimit: Some(100_000), ..CakeConfig::default() }, random)),
            // Each takes 577 bytes of memory and more.
            limit: Limit::Packets(100_000 / 577),
            // 63 * 1576 = 99,288.
            holds: Some(63),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Memory, DropReason::Delay, DropReason::Early],
        },
        Case {
            name: "cake, one queue",
            make: |random| {
                let config = CakeConfig { flowmode: FlowMode::Flowblind, ..CakeConfig::default() };
                Box::new(Cake::new(config, random))
            },
            limit: Limit::Packets(10_240 * 1514 / 577),
            // 15,503,360 / 1576 = 9837.2
            holds: Some(9837),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Delay],
        },
        Case {
            name: "cake, shaped, ingress, on ATM",
            make: |random| {
                let config = CakeConfig {
                    bandwidth: mbit(8),
                    diffserv: Diffserv::Diffserv8,
                    framing: Some(Framing::PppoeVcmux),
                    ingress: true,
                    memlimit: Some(100_000),
                    ..CakeConfig::default()
                };
                Box::new(Cake::new(config, random))
            },
            limit: Limit::Packets(100_000 / 577),
            holds: Some(63),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Memory, DropReason::Delay, DropReason::Early],
        },
    ]
}

/// A shaper of 8 Mbit/s lets no more bytes go in any time than it has at its rate, and one packet;
/// while packets wait, and it is asked when it says, it does not let fewer go either.
fn shapes(steps: &[QueueStep]) {
    let config = CakeConfig { bandwidth: mbit(8), ..CakeConfig::default() };
    let mut queue = Cake::new(config, Random::for_component(1, 0, "cake"));
    let mut drops = Drops::new();
    // The end of what was sent so far on a link of this rate: a microsecond for each byte.
    let (mut now, mut done) = (Time::from_millis(5), Time::ZERO);
    let mut send = |queue: &mut Cake<StubPacket>, until: Time, mut from: Time| {
        loop {
            match queue.dequeue(from, &mut Drops::new()) {
                Dequeue::Packet(entry) => {
                    let from_here = done.max(entry.enqueued_at);
                    assert!(from >= done, "{from:?} is before {done:?}");
                    assert!(from <= from_here, "{from:?} is after {from_here:?}");
                    done = from + Span::from_micros(entry.packet.wire_len.into());
                }
                Dequeue::NotBefore(next) if next <= until => from = next,
                Dequeue::NotBefore(_) | Dequeue::Empty => return,
            }
        }
    };
    for (id, step) in steps.iter().enumerate() {
        let before = now;
        now += step.gap;
        send(&mut queue, now, before);
        if let QueueAction::Offer { flow, wire_len, .. } = step.action {
            // CoDel marks it and does not drop it.
            let packet = StubPacket { flow, id: id as u32, wire_len, ecn: Ecn::Ect0 };
            queue.enqueue(now, packet, &mut drops);
        }
        send(&mut queue, now, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_shaper_keeps_its_rate(steps in queue_steps(400)) {
        shapes(&steps);
    }
}
