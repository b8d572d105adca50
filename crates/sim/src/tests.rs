use super::*;
use crate::spec::*;
use ackclock_aqm::{FifoConfig, Limit};
use ackclock_cc::NewRenoConfig;
use ackclock_emulator::Impairments;
use ackclock_units::{Rate, Span};

fn endpoint() -> EndpointSpec {
    let profile = ackclock_tcp::profile::Profile::by_name("linux-6.1").unwrap();
    EndpointSpec { profile: profile.name.to_owned(), config: profile.endpoint, cc: CcSpec::NewReno(NewRenoConfig::default()) }
}

fn direction(queue: QueueSpec) -> DirectionSpec {
    DirectionSpec {
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        overhead: 0,
        queue,
        impairments: Impairments::default(),
    }
}

fn two_flows(queue: QueueSpec) -> RunSpec {
    let one = direction(queue);
    RunSpec {
        title: "two".into(),
        duration: Span::from_secs(90),
        seed: 1,
        run: 0,
        links: vec![LinkSpec { name: "bottleneck".into(), forward: one.clone(), reverse: one }],
        flows: (0..2)
            .map(|i| FlowSpec {
                id: format!("reno.{i}"),
                path: vec![0],
                reverse: false,
                sender: HostSpec::Endpoint(endpoint()),
                receiver: HostSpec::Endpoint(endpoint()),
                bytes: None,
                start: Time::ZERO,
                stop: None,
            })
            .collect(),
    }
}

#[test]
fn smoke() {
    for queue in [QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(180) }), QueueSpec::Pie(ackclock_aqm::PieConfig{limit:180, target: Span::from_millis(20), tupdate: Span::from_millis(30), ..Default::default()}), QueueSpec::FqCodel(Default::default())] {
        let summary = run(&two_flows(queue), &mut |_| ControlFlow::Continue(())).unwrap();
        for f in &summary.flows { println!("{} good {:.3} rtt {:?} cwnd {:?} retx {} spur {} to {} fr {} reord {}", f.id, f.goodput_bps/1e6, f.rtt_ms.p50, f.cwnd_bytes.p50, f.retransmitted_packets, f.spurious_retransmits, f.timeouts, f.fast_recoveries, f.reordering_max); }
        for l in &summary.links { println!("{} {:?} util {:.4} soj {:?} backlog {:?}", l.id, l.dropped, l.utilization, l.sojourn_ms.p50, l.backlog_packets.p50); }
    }
}
