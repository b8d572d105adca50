//! Sums over the flows of a group.

use ackclock_trace::{GroupSummary, Histogram, Spread};
use ackclock_units::{Span, Time};

use super::counts::{EndCounts, bits_per_second};
use super::{FORWARD, Flow, FlowCount, REVERSE, SenderNames};
use crate::host::Host;

/// Sums over the flows of a group that have ended.
#[derive(Debug)]
pub(crate) struct Sums {
    started: u64,
    completed: u64,
    aborted: u64,
    alive: u64,
    counts: EndCounts,
    spurious: u64,
    first_start: Time,
    /// Completion times, ns.
    fct: Histogram,
    bytes: Histogram,
    /// Goodput of the completed flows, bit/s.
    goodput: Histogram,
    rtt: Histogram,
    /// Bytes of packets that arrived.
    arrived: u64,
}

impl Sums {
    pub(crate) fn new() -> Sums {
        Sums {
            started: 0,
            completed: 0,
            aborted: 0,
            alive: 0,
            counts: EndCounts::default(),
            spurious: 0,
            first_start: Time::NEVER,
            fct: Histogram::new(),
            bytes: Histogram::new(),
            goodput: Histogram::new(),
            rtt: Histogram::new(),
            arrived: 0,
        }
    }

    /// Adds a flow that has started; `alive` if the run ends before it.
    pub(crate) fn add(&mut self, flow: &Flow, [sender, receiver]: [&Host; 2], alive: bool) {
        let counts = EndCounts::of(sender, receiver);
        let judged = flow.truth.counts().retransmissions(|_| "");
        self.started += 1;
        self.aborted += u64::from(flow.aborted);
        self.alive += u64::from(alive);
        self.counts.add(&counts);
        self.spurious += judged.spurious_reordering + judged.spurious_delay;
        self.first_start = self.first_start.min(flow.start);
        self.bytes.add(counts.progress.delivered_bytes);
        self.rtt.absorb(&flow.rtt);
        self.arrived += flow.throughput.total();
        if let Some(completed) = flow.completed {
            let fct = completed.since(flow.start);
            self.completed += 1;
            self.fct.add(fct.as_nanos());
            if fct > Span::ZERO {
                self.goodput.add((counts.progress.delivered_bytes as f64 * 8.0 / fct.as_secs_f64()).round() as u64);
            }
        }
    }

    /// The counts of the flows, for a series.
    pub(crate) fn count(&self) -> FlowCount {
        FlowCount { bytes: self.arrived, rtt_sum: self.rtt.sum(), rtt_samples: self.rtt.samples(), counts: self.counts }
    }

    /// Data packets that the senders have put on the wire.
    pub(crate) fn sent_packets(&self) -> u64 {
        self.counts.sent.sent_packets
    }

    /// The summary of a run that ended at `end`, with at most `most_alive` flows at a time.
    pub(crate) fn summary(
        &self,
        id: &str,
        names: &SenderNames,
        reverse: bool,
        most_alive: u64,
        end: Time,
    ) -> GroupSummary {
        let active = end.since(self.first_start);
        let EndCounts { sent, recoveries, reactions, progress, .. } = self.counts;
        GroupSummary {
            id: id.to_owned(),
            direction: if reverse { REVERSE } else { FORWARD },
            cc: names.cc.clone(),
            host: names.host.clone(),
            loss_detector: names.loss_detector,
            started: self.started,
            completed: self.completed,
            aborted: self.aborted,
            alive: self.alive,
            most_alive,
            goodput_bps: bits_per_second(progress.delivered_bytes, active),
            sent,
            spurious_retransmits: self.spurious,
            recoveries,
            reactions,
            progress,
            fct_ms: Spread::of(&self.fct, 1e-6),
            flow_bytes: Spread::of(&self.bytes, 1.0),
            flow_goodput_bps: Spread::of(&self.goodput, 1.0),
            rtt_ms: Spread::of(&self.rtt, 1e-6),
        }
    }
}
