//! Whole runs: endpoints, links, queues and the loop. The throughput is in data packets.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::Summary;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

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

criterion_group!(benches, transfer);
criterion_main!(benches);
