//! What is measured on the subflows of a flow.

use ackclock_mptcp::{Connection, Subflow};
use ackclock_tcp::Acknowledgment;
use ackclock_trace::{Histogram, MultipathSummary, SubflowSummary};
use ackclock_units::{Span, Time};

use super::Flow;
use super::names::KERNEL;
use super::throughput::Throughput;
use crate::host::Host;
use crate::spec::{FlowGroup, HostSpec, PathChange};
use crate::watch::WatchCounts;

/// The measures of each subflow, by its path.
#[derive(Debug)]
pub(crate) struct Subflows {
    all: Vec<Measures>,
    scheduler: &'static str,
    /// What the sender does with its paths, the next change last.
    changes: Vec<PathChange>,
}

#[derive(Debug)]
struct Measures {
    rtt: Histogram,
    cwnd: Histogram,
    throughput: Throughput,
    /// What a sender outside was seen to send.
    seen: Seen,
}

/// Data packets, and of these retransmissions.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sent: u64,
    retransmitted: u64,
}

impl Subflows {
    pub(crate) fn new(group: &FlowGroup, start: Time) -> Option<Box<Subflows>> {
        let mptcp = group.mptcp.as_ref()?;
        let new = |_| Measures {
            rtt: Histogram::new(),
            cwnd: Histogram::new(),
            throughput: Throughput::new(start),
            seen: Seen::default(),
        };
        Some(Box::new(Subflows {
            all: (0..=mptcp.others.len()).map(new).collect(),
            scheduler: match group.sender {
                HostSpec::Outside => KERNEL,
                _ => mptcp.scheduler.name(),
            },
            changes: mptcp.changes.iter().rev().copied().collect(),
        }))
    }

    /// When the sender changes its paths next.
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
        if let Some(subflow) = of(sender, path) {
            measures.cwnd.add(subflow.endpoint().cwnd());
        }
    }

    /// A sender outside has sent a packet over a path, by which its counts are no longer `before`.
    pub(crate) fn note_sent(&mut self, path: usize, before: &WatchCounts, counts: &WatchCounts) {
        if let Some(Measures { seen, .. }) = self.all.get_mut(path) {
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
    pub(crate) fn summary(
        &mut self,
        end: Time,
        active: Span,
        sender: &Host,
        receiver: &Host,
    ) -> Option<MultipathSummary> {
        let (_, most_reordered) = connection(receiver).map(Connection::reordered_bytes).unwrap_or_default();
        let ours = || [sender, receiver].into_iter().filter_map(connection);
        ours().next()?;
        let summary = |(path, measures): (usize, &mut Measures)| {
            let (sends, receives) = (of(sender, path), of(receiver, path));
            let totals = sends.map(Subflow::totals).unwrap_or_default();
            let carried = sends.map(Subflow::carried).unwrap_or_default();
            // What a kernel got is what it has acknowledged.
            let acknowledged = sends.map_or(0, |subflow| subflow.endpoint().acked_bytes());
            let received = receives.map_or(acknowledged, |subflow| subflow.carried().received);
            SubflowSummary {
                path: path as u64 + 1,
                goodput_bps: if active > Span::ZERO { received as f64 * 8.0 / active.as_secs_f64() } else { 0.0 },
                throughput_bps: measures.throughput.summary(end),
                rtt_ms: measures.rtt.distribution(1e-6),
                cwnd_bytes: measures.cwnd.quantiles(1.0),
                sent_packets: totals.sent_packets + measures.seen.sent,
                retransmitted_packets: totals.retransmitted_packets + measures.seen.retransmitted,
                timeouts: totals.timeouts,
                fast_recoveries: totals.fast_recoveries,
                scheduled_bytes: carried.scheduled,
                reinjected_bytes: carried.reinjected,
                received_bytes: received,
                penalties: carried.penalties,
            }
        };
        Some(MultipathSummary {
            scheduler: self.scheduler,
            plain: ours().any(Connection::is_plain),
            reordered_bytes_max: most_reordered,
            subflows: self.all.iter_mut().enumerate().map(summary).collect(),
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

    /// A packet of `bytes` bytes arrived over a path at the receiver, which may have several.
    #[inline]
    pub(crate) fn measure_packet_of(&mut self, now: Time, path: usize, bytes: u32) {
        self.measure_packet(now, bytes);
        if let Some(subflows) = &mut self.subflows {
            subflows.measure_packet(now, path, bytes);
        }
    }
}

/// The connection of a host that is ours.
fn connection(host: &Host) -> Option<&Connection> {
    if let Host::Mptcp(connection) = host { Some(connection) } else { None }
}

fn of(host: &Host, path: usize) -> Option<&Subflow> {
    connection(host)?.subflows().iter().find(|subflow| subflow.path() == path)
}
