//! Whole runs: endpoints, links, queues and the loop. The throughput is in data packets.

use std::ops::ControlFlow;

use ackclock_benches::topology::overshoot;
use ackclock_scenario::Scenario;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::Summary;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Two bulk flows through PIE at 10 Mbit/s and 20 ms, 10 s.
const BULK: &str = r#"
schema = 1
run    = { duration = "10s" }

[links.bottleneck]
rate  = "10mbit"
delay = "10ms"
queue = { kind = "pie", limit = "180p", target = "20ms", tupdate = "30ms" }

[[flows]]
id    = "reno"
count = 2
path  = ["bottleneck"]
host  = "freebsd-9.2"
"#;

/// 10 MB over a drop-tail queue at 100 Mbit/s and 20 ms, from SYN to the last FIN.
const FIXED: &str = r#"
schema = 1
run    = { duration = "60s" }

[links.bottleneck]
rate  = "100mbit"
delay = "10ms"
queue = { kind = "pfifo", limit = "170p" }

[[flows]]
id    = "file"
path  = ["bottleneck"]
bytes = "10MB"
"#;

fn spec(text: &str) -> RunSpec {
    Scenario::parse("bench", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{}", error.render(false))).spec(0)
}

fn run(spec: &RunSpec) -> Summary<()> {
    ackclock_sim::run(spec, &mut |_| ControlFlow::Continue(())).expect("the run ends well")
}

fn transfer(c: &mut Criterion) {
    let mut group = c.benchmark_group("transfer");
    for (name, text) in [("2 newreno, pie, 10 s", BULK), ("10 MB, pfifo", FIXED)] {
        let spec = spec(text);
        group.throughput(Throughput::Elements(run(&spec).packets));
        group.bench_function(name, |b| b.iter(|| run(&spec)));
    }
    group.finish();
}

/// Loss recovery by each kind of detector. Its time for a packet is not to grow with the window.
fn recovery(c: &mut Criterion) {
    let mut group = c.benchmark_group("recovery");
    group.sample_size(10);
    for host in ["rfc", "freebsd-14", "windows-7", "linux-4.0", "linux-6.1"] {
        for segments in [1_000, 10_000, 100_000] {
            let spec = spec(&overshoot(host, segments, "1200ms"));
            let summary = run(&spec);
            let lost = summary.flows[0].sent.retransmitted_packets;
            assert!(lost > segments / 4, "{host}: {lost} packets sent again at a window of {segments}");
            group.throughput(Throughput::Elements(summary.packets));
            group.bench_function(BenchmarkId::new(host, segments), |b| b.iter(|| run(&spec)));
        }
    }
    group.finish();
}

criterion_group!(benches, transfer, recovery);
criterion_main!(benches);
