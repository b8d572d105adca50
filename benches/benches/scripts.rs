//! The packetdrill scripts of the endpoint, all of them: read, and run.

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_packetdrill::{Settings, parse, run};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

fn scripts(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tcp/tests/scripts");
    let texts: Vec<String> = below(&folder)
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .map(|path| fs::read_to_string(path).expect("a script"))
        .collect();
    let parsed: Vec<_> = texts.iter().map(|text| parse(text).expect("a script")).collect();
    let settings = Settings::new();
    let mut group = criterion.benchmark_group("scripts");
    group.throughput(Throughput::Elements(texts.len() as u64));
    group.bench_function("parse", |b| {
        b.iter(|| texts.iter().map(|text| parse(black_box(text)).expect("a script").events.len()).sum::<usize>());
    });
    group.bench_function("run", |b| {
        b.iter(|| parsed.iter().map(|script| run(black_box(script), &settings).trace.len()).sum::<usize>());
    });
    group.finish();
}

criterion_group!(benches, scripts);
criterion_main!(benches);
