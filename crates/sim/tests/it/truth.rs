//! What a run says about retransmissions and losses is what its queue's records say, whatever the
//! network does.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_cc::{CdgConfig, ChdConfig, CubicConfig, NewRenoConfig, VegasConfig};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_sim::spec::{
    Application, CcSpec, DirectionSpec, EndpointSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec, Overhead, QueueSpec,
    RunSpec, SplitRule, SplitSpec, WayBack,
};
use ackclock_sim::{DirectionId, QueueRecorder, Recorders, run_recorded};
use ackclock_tcp::Config;
use ackclock_trace::{FlowSummary, LossVerdict, QueueAction, QueueRecord, QueueSink, TcpEvent, TcpRecord, TcpSink};
use ackclock_units::{Rate, Span, Time};
use proptest::prelude::*;

const MSS: u16 = 1000;
const BYTES: u64 = 300_000;

/// Headers without options: IP and TCP.
const HEADERS: u32 = 40;

/// A packet of data that the queue was offered.
#[derive(Clone, Copy, Debug)]
struct Offered {
    at: Time,
    packet: u64,
    from: u64,
    to: u64,
    arrives: bool,
}

#[derive(Debug, Default)]
struct Queue {
    offered: Vec<Offered>,
    /// Packets transmitted, and those of them that the wire loses.
    transmitted: u64,
    lost: BTreeSet<u64>,
}

impl QueueSink for Queue {
    fn record(&mut self, record: &QueueRecord<'_>) -> ControlFlow<()> {
        let arrives = match record.action {
            QueueAction::Enqueue | QueueAction::Mark => return ControlFlow::Continue(()),
            QueueAction::Drop(_) => false,
            QueueAction::Dequeue => {
                self.transmitted += 1;
                !self.lost.contains(&self.transmitted)
            }
        };
        if let Some(from) = record.seq {
            let to = from + u64::from(record.size - HEADERS);
            let at = Time::from_nanos(record.at.as_nanos() - record.sojourn.map_or(0, Span::as_nanos));
            self.offered.push(Offered { at, packet: record.packet, from, to, arrives });
        }
        ControlFlow::Continue(())
    }
}

/// A row that was judged: its range, when it was sent or declared, and who lost it.
#[derive(Clone, Debug)]
struct Row {
    from: u64,
    since: Time,
    lost_by: Option<String>,
    late: Option<i64>,
}

#[derive(Debug, Default)]
struct Rows {
    last: Time,
    acks: u64,
    retransmissions: Vec<Row>,
    declarations: Vec<Row>,
}

impl TcpSink for Rows {
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()> {
        assert!(record.at >= self.last, "rows are in order of time");
        self.last = record.at;
        let (list, judged) = match &record.event {
            TcpEvent::Ack(_) => {
                self.acks += 1;
                return ControlFlow::Continue(());
            }
            TcpEvent::Retransmission(judged) => (&mut self.retransmissions, judged),
            TcpEvent::Declaration(judged) => (&mut self.declarations, judged),
        };
        let lost_by = match judged.verdict {
            LossVerdict::Lost { link, .. } => Some(link.to_owned()),
            LossVerdict::Reordered | LossVerdict::Delayed => None,
        };
        assert!(judged.since <= record.at, "nothing is judged before it happens");
        list.push(Row { from: judged.seq, since: judged.since, lost_by, late: judged.late });
        ControlFlow::Continue(())
    }
}

fn transfer(config: Config, cc: CcSpec, forward: DirectionSpec, reverse: DirectionSpec) -> RunSpec {
    let host = || {
        let (config, cc) = (config.clone(), cc.clone());
        HostSpec::Endpoint(EndpointSpec { profile: "any".into(), config, cc })
    };
    RunSpec {
        title: String::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: None,
        duration: Span::from_secs(100_000),
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::Fixed,
        links: vec![LinkSpec { name: "link".into(), forward, reverse, medium: None, is_interface: false }],
        flows: vec![FlowSpec {
            id: "flow.0".into(),
            group: FlowGroup {
                metrics: None,
                hosts: None,
                path: vec![0],
                split: None,
                mptcp: None,
                reverse: false,
                sender: host(),
                receiver: host(),
                bytes: Some(BYTES),
                application: Application::Bulk,
                write_size: FlowSpec::WRITE_SIZE,
                dscp: 0,
                abort: None,
                schedule: Vec::new(),
            }
            .into(),
            start: Time::ZERO,
            stop: None,
            ends: None,
            via: None,
        }],
    }
}

fn any_wire(loss: impl Strategy<Value = Loss>) -> impl Strategy<Value = Impairments> {
    let hold = (0.0..0.3, 0u32..40, 0u64..100_000).prop_map(|(probability, extent, timeout)| {
        Reorder::HoldBack(HoldBack { probability, extent, timeout: Span::from_micros(timeout) })
    });
    let reorder = prop_oneof![Just(Reorder::Never), Just(Reorder::ByJitter), hold];
    let duplicate = prop_oneof![Just(0.0), 0.0..0.2];
    (loss, duplicate, prop_oneof![Just(0u64), 0u64..60_000], reorder).prop_map(|(loss, duplicate, jitter, reorder)| {
        Impairments { loss, duplicate, jitter: Span::from_micros(jitter), reorder, ..Impairments::default() }
    })
}

fn any_direction(loss: impl Strategy<Value = Loss>) -> impl Strategy<Value = DirectionSpec> {
    (200_000u64..50_000_000, 0u64..100, 1u64..60, any_wire(loss)).prop_map(|(rate, delay, limit, impairments)| {
        let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) });
        DirectionSpec {
            rate: Rate::from_bps(rate),
            delay: Span::from_millis(delay),
            overhead: Overhead::default(),
            burst: None,
            device: None,
            queue,
            impairments,
            course: Default::default(),
        }
    })
}

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        prop::collection::btree_set(1u64..400, 0..40).prop_map(|numbers| Loss::List(numbers.into_iter().collect())),
    ]
}

/// Without timestamps, so that a receiver has no reason to refuse anything.
fn any_config() -> impl Strategy<Value = Config> {
    (any::<[bool; 3]>()).prop_map(|[sack, dsack, limited_transmit]| Config {
        mss: MSS,
        sack,
        dsack,
        limited_transmit,
        timestamps: false,
        ..Config::default()
    })
}

fn any_cc() -> impl Strategy<Value = CcSpec> {
    prop_oneof![
        Just(CcSpec::NewReno(NewRenoConfig::default())),
        Just(CcSpec::Cubic(CubicConfig::default())),
        Just(CcSpec::Cdg(CdgConfig::default())),
        Just(CcSpec::Chd(ChdConfig::default())),
        Just(CcSpec::Vegas(VegasConfig::default()))
    ]
}

fn run(spec: &RunSpec, queue: &mut Queue, rows: &mut Rows) -> FlowSummary {
    let queues = Some(QueueRecorder { directions: &[DirectionId::forward(0)], sink: queue });
    let recorders = Recorders { queues, tcp: Some(rows), ..Recorders::default() };
    let summary = run_recorded(spec, recorders, &mut |_| ControlFlow::Continue(())).expect("the data is intact");
    summary.flows.into_iter().next().expect("a flow")
}

/// Every retransmission and declaration is in the rows once, as the summary has it.
fn adds_up(flow: &FlowSummary, rows: &Rows) -> Result<(), TestCaseError> {
    let retransmissions = &flow.retransmissions;
    let spurious = retransmissions.spurious_reordering + retransmissions.spurious_delay;
    prop_assert_eq!(retransmissions.needed + spurious, flow.sent.retransmitted_packets);
    prop_assert_eq!(flow.spurious_retransmits, spurious);
    prop_assert_eq!(retransmissions.by_queue.values().flat_map(|by| by.values()).sum::<u64>(), retransmissions.needed);
    let lost = |rows: &[Row]| rows.iter().filter(|row| row.lost_by.is_some()).count() as u64;
    prop_assert_eq!(rows.retransmissions.len() as u64, flow.sent.retransmitted_packets);
    prop_assert_eq!(lost(&rows.retransmissions), retransmissions.needed);
    let declared = flow.loss_declarations;
    prop_assert_eq!(rows.declarations.len() as u64, declared.right + declared.wrong);
    prop_assert_eq!(lost(&rows.declarations), declared.right);
    let late = rows.declarations.iter().filter(|row| row.late.is_some_and(|late| late >= 0)).count() as u64;
    prop_assert_eq!((flow.loss_declared_late_ms.samples, declared.blind), (late, declared.right - late));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn verdicts_are_what_the_queue_recorded(
        config in any_config(),
        cc in any_cc(),
        forward in any_direction(any_loss()),
        reverse in any_direction(prop_oneof![Just(Loss::None), (0.0..0.2).prop_map(Loss::Iid)]),
    ) {
        let lost = match &forward.impairments.loss {
            Loss::List(numbers) => numbers.iter().copied().collect(),
            _ => BTreeSet::new(),
        };
        let (mut queue, mut rows) = (Queue { lost, ..Queue::default() }, Rows::default());
        let flow = run(&transfer(config, cc, forward, reverse), &mut queue, &mut rows);
        adds_up(&flow, &rows)?;
        queue.offered.sort_by_key(|offered| offered.packet);
        // A FIN alone is not seen in the queue's records.
        rows.retransmissions.retain(|row| row.from < BYTES);
        rows.retransmissions.sort_by_key(|row| row.since);
        let mut judged = rows.retransmissions.iter();
        let mut end = 0;
        for (n, offered) in queue.offered.iter().enumerate() {
            if offered.from < end {
                let before = |byte: u64| queue.offered[..n].iter().filter(move |earlier| (earlier.from..earlier.to).contains(&byte));
                let needed = (offered.from..offered.to).any(|byte| before(byte).all(|earlier| !earlier.arrives));
                let row = judged.next().expect("a row for each");
                prop_assert_eq!((row.from, row.since), (offered.from, offered.at));
                prop_assert_eq!(row.lost_by.as_deref(), needed.then_some("link.forward"), "{:?}", offered);
            }
            end = end.max(offered.to);
        }
        prop_assert!(judged.next().is_none());
    }

    #[test]
    fn two_paths_add_up_as_well(
        config in any_config(),
        timestamps in any::<bool>(),
        cc in any_cc(),
        ways in [any_direction(any_loss()), any_direction(any_loss())],
        back in any_direction(Just(Loss::None)),
        vector in any::<u64>(),
    ) {
        let [first, second] = ways;
        let mut spec = transfer(Config { timestamps, ..config }, cc, first, back.clone());
        spec.links.push(LinkSpec { name: "other".into(), forward: second, reverse: back, medium: None, is_interface: false });
        spec.flows[0].split = Some(SplitSpec {
            others: vec![vec![1]],
            along: SplitRule::Vector(vector),
            back: WayBack::Over(0),
            after_handshake: false,
            whole_units: false,
        });
        let mut rows = Rows::default();
        let flow = run(&spec, &mut Queue::default(), &mut rows);
        prop_assert_eq!(flow.progress.delivered_bytes, BYTES);
        adds_up(&flow, &rows)?;
        // Nor does it matter for the verdicts, or their times, that the queues are recorded.
        let mut alone = Rows::default();
        let recorders = Recorders { tcp: Some(&mut alone), ..Recorders::default() };
        let summary = run_recorded(&spec, recorders, &mut |_| ControlFlow::Continue(())).expect("the data is intact");
        prop_assert_eq!(&summary.flows[0], &flow);
        prop_assert_eq!(format!("{alone:?}"), format!("{rows:?}"));
        prop_assert_eq!(&ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(())).expect("intact"), &summary);
    }
}
