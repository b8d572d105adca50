//! Flows that always have packets waiting share a link evenly in bytes, whatever the size of their
//! packets (Shreedhar, Varghese 1996, "Efficient Fair Queuing using Deficit Round Robin"; RFC 8290
//! section 4.2).
//!
//! What a flow has sent after k turns is k quanta less its deficit. The turns of two flows differ
//! by one at most, and a deficit after a turn by less than the largest packet: so what they have
//! sent differs by less than a quantum and the largest packet, always.

use ackclock_aqm::{Drops, FqCodel, FqCodelConfig, FqPie, FqPieConfig, QueueDisc};
use ackclock_testkit::{Ask, StubPacket};
use ackclock_units::{Ecn, Random, Rate, Serializer, Time};

const LARGEST: u32 = 1514;
/// Bytes of each flow's packets.
const FLOWS: [u32; 4] = [100, 700, LARGEST, LARGEST];

/// Ten seconds at 10 Mbit/s with at least 3 kB of each flow waiting; the law drops what it likes.
fn share(mut queue: Box<dyn QueueDisc<StubPacket>>, quantum: u32) {
    let mut line = Serializer::new(Rate::from_bps(10_000_000).unwrap());
    let mut drops = Drops::new();
    let (mut waiting, mut sent) = ([0u64; FLOWS.len()], [0u64; FLOWS.len()]);
    let mut discarded = 0;
    let mut now = Time::ZERO;
    while now < Time::from_secs(10) {
        for (flow, wire_len) in FLOWS.into_iter().enumerate() {
            // An arrival may be dropped; below two packets of the largest size none is.
            for _ in 0..100 {
                if waiting[flow] >= 20_000 {
                    break;
                }
                waiting[flow] += u64::from(wire_len);
                queue.enqueue(now, StubPacket { flow: flow as u64, id: 0, wire_len, ecn: Ecn::NotEct }, &mut drops);
            }
        }
        let entry = queue.ask(now, &mut drops).expect("packets wait");
        sent[entry.packet.flow as usize] += u64::from(entry.packet.wire_len);
        waiting[entry.packet.flow as usize] -= u64::from(entry.packet.wire_len);
        discarded += drops.len();
        for drop in drops.drain(..) {
            waiting[drop.packet.flow as usize] -= u64::from(drop.packet.wire_len);
        }
        assert!(waiting.iter().all(|&bytes| bytes > 0), "a flow has nothing to send: {waiting:?}");
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least < u64::from(quantum + LARGEST), "{sent:?} at {now:?}");
        now = line.transmit(now, entry.packet.wire_len);
    }
    // 12.5 MB, a quarter each.
    assert!(sent.iter().all(|bytes| bytes.abs_diff(3_125_000) < 10_000), "{sent:?}");
    assert!(discarded > 100, "{discarded} drops");
}

/// A salt that gives each of the flows a queue of its own.
const SALT: Option<u64> = Some(1);

#[test]
fn flows_share_evenly_in_bytes() {
    let random = || Random::for_component(1, 0, "fair");
    for quantum in [300, 1514, 6000] {
        share(
            Box::new(FqCodel::new(FqCodelConfig { quantum, hash_seed: SALT, ..FqCodelConfig::default() }, random())),
            quantum,
        );
        share(
            Box::new(FqPie::new(FqPieConfig { quantum, hash_seed: SALT, ..FqPieConfig::default() }, random())),
            quantum,
        );
    }
}
