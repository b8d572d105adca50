//! Links that transmit in slots.

use super::*;
use crate::{Course, JitterTable, Slots};

fn slotted(config: LinkConfig, slots: Slots) -> Link {
    Link::with_course(config, pfifo(100_000), random("link"), Course { slots: Some(slots), ..Course::default() })
}

/// At once, after 1 ms.
fn unlimited() -> LinkConfig {
    LinkConfig { rate: None, ..config() }
}

/// Every 10 ms.
fn tens() -> Slots {
    Slots { delay: Span::from_millis(10), ..Slots::default() }
}

#[test]
fn a_slot_is_full_with_its_packets() {
    // The first slot begins at once; each of the others 10 ms after that before it was full.
    let mut link = slotted(unlimited(), Slots { packets: Some(3), ..tens() });
    let expected = (0..8).map(|n| (1000 + 10_000 * (n / 3), n as u32 + 1));
    assert!(burst(&mut link, 8).0.into_iter().eq(expected));
    // At 10 Mbit/s a packet takes 1 ms; the next slot counts from the last packet's start, 2 ms on.
    let mut link = slotted(config(), Slots { packets: Some(3), ..tens() });
    let arrivals: Vec<u64> = burst(&mut link, 7).0.iter().map(|arrival| arrival.0).collect();
    assert_eq!(arrivals, [2000, 3000, 4000, 14_000, 15_000, 16_000, 26_000]);
}

#[test]
fn a_slot_is_full_with_its_bytes() {
    // Packets of 1250 bytes: the third is the one that reaches 3000.
    let mut link = slotted(unlimited(), Slots { bytes: Some(3000), ..tens() });
    let arrivals: Vec<u64> = burst(&mut link, 7).0.iter().map(|arrival| arrival.0).collect();
    assert_eq!(arrivals, [1000, 1000, 1000, 11_000, 11_000, 11_000, 21_000]);
    // Whichever comes first.
    let mut link = slotted(unlimited(), Slots { bytes: Some(3000), packets: Some(2), ..tens() });
    let arrivals: Vec<u64> = burst(&mut link, 5).0.iter().map(|arrival| arrival.0).collect();
    assert_eq!(arrivals, [1000, 1000, 11_000, 11_000, 21_000]);
}

#[test]
fn a_packet_that_comes_after_a_slot_has_begun_waits_for_the_next() {
    let mut link = slotted(unlimited(), tens());
    let mut events = Vec::new();
    // Nothing of the slot at 0 is left at 5 ms: 15 ms. At 8 and 15 ms two others join it. At 16 ms:
    // 26 ms.
    let mut found = Vec::new();
    for (n, at) in [5, 8, 15, 16].into_iter().enumerate() {
        let now = us(1000 * at);
        while let Some((at, packet)) = link.deliver(now, &mut events) {
            found.push((at, packet.slot));
        }
        link.offer(now, packet(n as u32, 1250), &mut events);
    }
    while let Some((at, packet)) = link.deliver(us(100_000), &mut events) {
        found.push((at, packet.slot));
    }
    assert_eq!(found, [(us(16_000), 0), (us(16_000), 1), (us(16_000), 2), (us(27_000), 3)]);
    assert_eq!(link.next_due(), Time::NEVER);
}

#[test]
fn slots_come_at_random_by_their_distribution() {
    let times = |slots: Slots| -> Vec<f64> {
        let mut link = slotted(unlimited(), Slots { packets: Some(1), ..slots });
        let arrivals = burst(&mut link, 20_001).0;
        arrivals.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1000.0).collect()
    };
    let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / gaps.len() as f64;
    // Uniform from 10 to 14 ms: 12 ms, with a deviation of 4/sqrt(12) = 1.155.
    let gaps = times(Slots { jitter: Span::from_millis(4), ..tens() });
    assert!((mean(&gaps) - 12.0).abs() < 4.0 * 1.155 / f64::from(20_000).sqrt(), "{}", mean(&gaps));
    assert!(gaps.iter().all(|gap| (10.0..=14.0).contains(gap)));
    // A normal deviation of 1 ms.
    let jitter_distribution = crate::JitterDistribution::Normal;
    let gaps = times(Slots { jitter: Span::from_millis(1), jitter_distribution, ..tens() });
    let variance = gaps.iter().map(|gap| (gap - 10.0) * (gap - 10.0)).sum::<f64>() / gaps.len() as f64;
    assert!((mean(&gaps) - 10.0).abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{} {variance}", mean(&gaps));
    // A table: half of them 8 ms, half 12.
    let jitter_table = Some(JitterTable::parse("-16384 16384").unwrap());
    let gaps = times(Slots { jitter: Span::from_millis(1), jitter_table, ..tens() });
    let short = gaps.iter().filter(|gap| **gap == 8.0).count();
    assert!(gaps.iter().all(|gap| [8.0, 12.0].contains(gap)) && short.abs_diff(10_000) < 4 * 71, "{short}");
}

#[test]
fn a_queue_waits_for_slots_and_drops() {
    // Room for five; the first packet leaves at once.
    let config = unlimited();
    let slots = Slots { packets: Some(2), ..tens() };
    let course = Course { slots: Some(slots), ..Course::default() };
    let mut link = Link::with_course(config, pfifo(5), random("link"), course);
    let (arrivals, events) = burst(&mut link, 10);
    assert_eq!(arrivals.iter().map(|arrival| arrival.1).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(events.iter().filter(|event| matches!(event.kind, LinkEventKind::Dropped { .. })).count(), 3);
}
