//! Measurements on the subflows of a flow.

use ackclock_mptcp::{Connection, Subflow};
use ackclock_tcp::{Acknowledgment, LimitClock};
use ackclock_trace::{Histogram, Limited, MultipathSummary, Progress, SentPackets, SubflowSummary};
use ackclock_units::{Span, Time};

use super::counts::EndCounts;
use super::counts::{bits_per_second, limited};
use super::names::KERNEL;
use super::throughput::Throughput;
use super::{Flow, FlowCount};
use crate::host::Host;
use crate::index::{DirectionId, FlowId};
use crate::record::SenderId;
use crate::spec::{FlowGroup, HostSpec, PathChange};
use crate::truth::Truth;
use crate::watch::WatchCounts;
use judged::PathTruth;

mod judged;

pub(crate) use judged::of_all;

/// The measures of each subflow, by its path.
#[derive(Debug)]
pub(crate) struct Subflows {
    all: Vec<PathMeasures>,
    scheduler: &'static str,
    /// Changes of the sender's paths, the next one last.
    changes: Vec<PathChange>,
    /// Time by the factor that limits the connection.
    held: LimitClock,
    /// One past the highest byte of the connection sent so far.
    data_end: u64,
    /// Segments with data sent by the sender, and all segments sent by the receiver.
    sent: [u64; 2],
}

#[derive(Debug)]
struct PathMeasures {
    rtt: Histogram,
    cwnd: Histogram,
    throughput: Throughput,
    judged: PathTruth,
    /// Time by the factor that limits the subflow.
    held: LimitClock,
    /// Transmissions of a sender outside.
    seen: PacketCounts,
}

/// Data packets, and of these retransmissions.
#[derive(Clone, Copy, Debug, Default)]
struct PacketCounts {
    sent: u64,
    retransmitted: u64,
}

impl PathMeasures {
    fn new(source: SenderId, start: Time) -> PathMeasures {
        PathMeasures {
            rtt: Histogram::new(),
            cwnd: Histogram::new(),
            throughput: Throughput::new(start),
            judged: PathTruth::new(source),
            held: LimitClock::default(),
            seen: PacketCounts::default(),
        }
    }
}

impl Subflows {
    pub(crate) fn new(flow: FlowId, group: &FlowGroup, start: Time) -> Option<Box<Subflows>> {
        let mptcp = group.mptcp.as_ref()?;
        let new = |path| PathMeasures::new(SenderId { flow, subflow: number(path) }, start);
        Some(Box::new(Subflows {
            all: (0..=mptcp.others.len()).map(new).collect(),
            scheduler: match group.sender {
                HostSpec::Outside => KERNEL,
                _ => mptcp.scheduler.name(),
            },
            changes: mptcp.changes.iter().rev().copied().collect(),
            held: LimitClock::default(),
            data_end: 0,
            sent: [0; 2],
        }))
    }

    /// Time of the sender's next path change.
    pub(crate) fn changes_at(&self) -> Time {
        self.changes.last().map_or(Time::NEVER, |change| change.at)
    }

    /// Changes of paths that are due.
    pub(crate) fn change(&mut self, now: Time, sender: &mut Host) {
        while let Some(PathChange { path, up, .. }) = self.changes.pop_if(|change| change.at <= now) {
            if let Host::Mptcp(connection) = sender {
                if up { connection.restore_path(now, path) } else { connection.remove_path(now, path) }
            }
        }
    }

    /// An ACK arrived over a path at the sender.
    fn measure_ack(&mut self, path: usize, arrival: &Acknowledgment, sender: &Host) {
        let Some(measures) = self.all.get_mut(path).filter(|_| arrival.is_ack) else { return };
        arrival.rtt.into_iter().for_each(|rtt| measures.rtt.add(rtt.as_nanos()));
        if let Some(subflow) = at(sender, path) {
            measures.cwnd.add(subflow.endpoint().sender().cwnd());
        }
    }

    /// A sender outside has sent a packet over a path, by which its counts are no longer `before`.
    pub(crate) fn note_sent(&mut self, path: usize, before: &WatchCounts, counts: &WatchCounts) {
        if let Some(PathMeasures { seen, .. }) = self.all.get_mut(path) {
            seen.sent += counts.sent_packets - before.sent_packets;
            seen.retransmitted += counts.retransmitted_packets - before.retransmitted_packets;
        }
    }

    /// A packet of `bytes` bytes arrived over a path at the receiver.
    fn measure_packet(&mut self, now: Time, path: usize, bytes: u32) {
        if let Some(measures) = self.all.get_mut(path) {
            measures.throughput.add(now, bytes);
        }
    }

    /// The results, of a flow that lasted until `end`.
    pub(crate) fn summary<'a>(
        &mut self,
        end: Time,
        active: Span,
        [sender, receiver]: [&Host; 2],
        link: impl Fn(DirectionId) -> &'a str,
    ) -> Option<MultipathSummary> {
        let (_, most_reordered) = connection(receiver).map(Connection::reordered_bytes).unwrap_or_default();
        let ours = || [sender, receiver].into_iter().filter_map(connection);
        ours().next()?;
        let summary = |(path, measures): (usize, &mut PathMeasures)| {
            let (sends, receives) = (at(sender, path), at(receiver, path));
            let totals = sends.map(Subflow::totals).unwrap_or_default();
            let carried = sends.map(Subflow::carried).unwrap_or_default();
            // What a kernel got is what it has acknowledged.
            let acknowledged = sends.map_or(0, |subflow| subflow.endpoint().sender().sequence().acked_bytes());
            let received = receives.map_or(acknowledged, |subflow| subflow.carried().received);
            let found = measures.judged.truth().counts();
            let retransmissions = found.retransmissions(&link);
            SubflowSummary {
                path: path as u64 + 1,
                goodput_bps: bits_per_second(received, active),
                throughput_bps: measures.throughput.summary(end),
                rtt_ms: measures.rtt.distribution(1e-6),
                cwnd_bytes: measures.cwnd.quantiles(1.0),
                sent: SentPackets {
                    sent_packets: totals.data_packets() + measures.seen.sent,
                    retransmitted_packets: totals.retransmitted_data() + measures.seen.retransmitted,
                },
                spurious_retransmits: retransmissions.spurious_reordering + retransmissions.spurious_delay,
                recoveries: EndCounts::default().with(&totals).recoveries,
                scheduled_bytes: carried.scheduled,
                reinjected_bytes: carried.reinjected,
                needless_bytes: measures.judged.needless_bytes(),
                received_bytes: received,
                penalties: carried.penalties,
                limited_s: limited(measures.held.read(end)),
                retransmissions,
                loss_declarations: found.declarations(),
            }
        };
        Some(MultipathSummary {
            scheduler: self.scheduler,
            plain: ours().any(Connection::is_plain),
            reordered_bytes_max: most_reordered,
            duplicate_bytes: connection(receiver).map_or(0, Connection::duplicate_bytes),
            subflows: self.all.iter_mut().enumerate().map(summary).collect(),
        })
    }

    /// The judged transmissions of all paths together.
    pub(crate) fn truth(&self, source: SenderId) -> Truth {
        let mut whole = Truth::new(source);
        self.all.iter().for_each(|measures| whole.absorb(measures.judged.truth()));
        whole
    }

    /// Time by the factor that limits the connection, until `end`.
    pub(crate) fn limited_s(&self, end: Time) -> Limited {
        limited(self.held.read(end))
    }

    /// The sender has stopped: what holds it back from now on.
    pub(crate) fn note_limits(&mut self, now: Time, connection: &Connection) {
        self.held.set(now, connection.limited_by());
        for subflow in connection.subflows() {
            if let Some(measures) = self.all.get_mut(subflow.path()) {
                measures.held.set(now, connection.limit_of(subflow));
            }
        }
    }

    /// The counts of each path until now, for a series, and its subflow at the sender.
    pub(crate) fn counts<'h>(
        &self,
        [sender, receiver]: [&'h Host; 2],
    ) -> impl Iterator<Item = (FlowCount, Option<&'h Subflow>)> {
        self.all.iter().enumerate().map(move |(path, measures)| {
            let (sends, receives) = (at(sender, path), at(receiver, path));
            // What a kernel got is what it has acknowledged.
            let acknowledged = sends.map_or(0, |subflow| subflow.endpoint().sender().sequence().acked_bytes());
            let counts = EndCounts {
                sent: SentPackets {
                    sent_packets: sends.map_or(measures.seen.sent, |subflow| subflow.totals().data_packets()),
                    retransmitted_packets: measures.seen.retransmitted,
                },
                progress: Progress {
                    delivered_bytes: receives.map_or(acknowledged, |subflow| subflow.carried().received),
                    acked_bytes: 0,
                },
                ..EndCounts::default()
            };
            let count = FlowCount {
                bytes: measures.throughput.total(),
                rtt_sum: measures.rtt.sum(),
                rtt_samples: measures.rtt.samples(),
                counts: sends.map_or(counts, |subflow| counts.with(&subflow.totals())),
            };
            (count, sends)
        })
    }
}

impl Flow {
    /// An ACK arrived over a path at the sender, which may have several.
    #[inline]
    pub(crate) fn measure_ack_of(&mut self, path: usize, arrival: &Acknowledgment, sender: &Host) {
        self.measure_ack(arrival, || sender.cwnd());
        if let Some(subflows) = &mut self.subflows {
            subflows.measure_ack(path, arrival, sender);
        }
    }

    /// A packet of `bytes` bytes arrives over a path at the receiver, which may have several, and
    /// has got so much new payload before it.
    #[inline]
    pub(crate) fn measure_packet_of(&mut self, now: Time, path: usize, bytes: u32, received: impl FnOnce() -> u64) {
        let counts = self.is_live || self.aborted;
        self.measure_packet(now, bytes, received);
        if let Some(subflows) = &mut self.subflows
            && counts
        {
            subflows.measure_packet(now, path, bytes);
        }
    }
}

/// The number of the subflow on a path, by which records and results call it.
pub(crate) fn number(path: usize) -> u16 {
    path as u16 + 1
}

/// The connection of an ackclock host.
fn connection(host: &Host) -> Option<&Connection> {
    if let Host::Mptcp(connection) = host { Some(connection) } else { None }
}

/// The subflow of a host on a path.
fn at(host: &Host, path: usize) -> Option<&Subflow> {
    of(connection(host)?, path)
}

/// The subflow on a path.
fn of(connection: &Connection, path: usize) -> Option<&Subflow> {
    connection.subflows().iter().find(|subflow| subflow.path() == path)
}
