//! Segments to bytes and back: a pure ACK and a full data segment.

use ackclock_packet::codec::{Addresses, emit, parse};
use ackclock_packet::{Flags, Payload, SackBlocks, Segment, Timestamps, pattern};
use ackclock_units::Ecn;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const ADDRESSES: Addresses = Addresses { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };

fn acknowledgment() -> Segment {
    let mut sack = SackBlocks::default();
    for left in [3000, 9000, 20_000] {
        sack.push(left, left + 1448);
    }
    Segment {
        source_port: 5000,
        destination_port: 49_152,
        seq: 1,
        ack: 1449,
        flags: Flags::ACK,
        window: 502,
        timestamps: Some(Timestamps { value: 1000, echo: 900 }),
        sack,
        ..Segment::default()
    }
}

fn data() -> Segment {
    Segment { payload: Payload { offset: 1448 * 1001, len: 1448 }, sack: SackBlocks::default(), ..acknowledgment() }
}

fn codec(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    let mut buffer = vec![0; 1500];
    for (name, segment) in [("ack_3_sack", acknowledgment()), ("data_1448", data())] {
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("emit/{name}"), |b| {
            b.iter(|| emit(black_box(&segment), ADDRESSES, Ecn::Ect0, &mut buffer));
        });
        let len = emit(&segment, ADDRESSES, Ecn::Ect0, &mut buffer).expect("the buffer is long enough");
        let bytes = buffer[..len].to_vec();
        group.bench_function(format!("parse/{name}"), |b| b.iter(|| parse(black_box(&bytes)).is_ok()));
    }
    let mut payload = vec![0; 1448];
    group.throughput(Throughput::Bytes(1448));
    group.bench_function("pattern/fill_1448", |b| b.iter(|| pattern::fill(black_box(1_449_448), &mut payload)));
    pattern::fill(1_449_448, &mut payload);
    group.bench_function("pattern/check_1448", |b| {
        b.iter(|| pattern::first_mismatch(black_box(1_449_448), black_box(&payload)));
    });
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
