//! Reordering at receivers and behind links.
//!
//! Packets are numbered in the order of sending; at each measured place, each flow has a
//! [`ReorderMeter`] from its first packet there on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ackclock_trace::{
    DISPLACEMENT_THRESHOLD, DisplacementSink, PacketReordering, ReorderInterval, ReorderMeter, ReorderingRecord,
    ReorderingSink,
};
use ackclock_units::{Span, Time};

use crate::index::{DirectionId, FlowId, HostId, Identifier};
use crate::spec::{ReorderTap, ReorderingSpec};
use crate::truth::Truth;
use sequence::{DisplacementRecording, Firsts, Ranks};

mod sequence;

/// The name of the receivers as a place.
const RECEIVER: &str = "receiver";

/// Name of the place at receivers where packets are in the order of TCP's sequence numbers.
const SEQUENCE: &str = "sequence";

/// Name of the place at receivers where each segment counts when it first arrives.
const FIRST_ARRIVAL: &str = "first_arrival";

/// The most rows that are buffered.
const BATCH: usize = 1024;

/// The places of a run, and what is measured there.
#[derive(Debug)]
pub(crate) struct Reorderings {
    taps: Vec<Tap>,
    receiver: Option<usize>,
    /// Receivers, by the order of sequence numbers.
    sequence: Option<Sequence>,
    /// Receivers, by the first arrival of each segment.
    first_arrival: Option<FirstArrival>,
    /// The measured directions, in order, each with the index of its place.
    directions: Vec<(DirectionId, usize)>,
    /// The length of the intervals; `None` unless they are recorded.
    every: Option<Span>,
    /// Hosts of flows that are listed: only these have results.
    hosts: usize,
    rows: Vec<ReorderingRow>,
}

/// The receivers as a place where packets are in the order of TCP's sequence numbers.
#[derive(Debug)]
struct Sequence {
    tap: usize,
    /// Ranks by the number of the flow.
    ranks: Vec<Ranks>,
    /// The displacement of each packet, if it is recorded.
    each: Option<DisplacementRecording>,
}

/// The receivers as a place where segments are in the order of TCP's sequence numbers, and count
/// when they arrive for the first time.
#[derive(Debug)]
struct FirstArrival {
    tap: usize,
    /// First arrivals by the number of the flow.
    firsts: Vec<Firsts>,
}

/// A place.
#[derive(Debug)]
struct Tap {
    place: ReorderTap,
    /// Meters by the host that sent the packets.
    meters: Vec<Option<Box<ReorderMeter>>>,
}

#[derive(Debug)]
struct ReorderingRow {
    flow: FlowId,
    place: ReorderTap,
    interval: ReorderInterval,
}

/// A packet that arrives at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    /// The host that sent it.
    pub(crate) from: HostId,
    /// Position in the order of sending, from 0.
    pub(crate) number: u64,
    pub(crate) bytes: u32,
}

impl Reorderings {
    /// The places of a run with this many listed flows.
    pub(crate) fn new(spec: &ReorderingSpec, flows: usize) -> Reorderings {
        let numbered = || spec.taps.iter().zip(0..);
        let mut directions: Vec<(DirectionId, usize)> = numbered()
            .filter_map(|(tap, number)| match tap {
                ReorderTap::Direction(direction) => Some((*direction, number)),
                ReorderTap::Receiver | ReorderTap::Sequence | ReorderTap::FirstArrival => None,
            })
            .collect();
        directions.sort_unstable();
        let number_of = |place: ReorderTap| numbered().find(|(tap, _)| **tap == place).map(|(_, number)| number);
        Reorderings {
            taps: spec.taps.iter().map(|&place| Tap { place, meters: Vec::new() }).collect(),
            receiver: number_of(ReorderTap::Receiver),
            sequence: number_of(ReorderTap::Sequence).map(|tap| Sequence { tap, ranks: Vec::new(), each: None }),
            first_arrival: number_of(ReorderTap::FirstArrival).map(|tap| FirstArrival { tap, firsts: Vec::new() }),
            directions,
            every: None,
            hosts: 2 * flows,
            rows: Vec::new(),
        }
    }

    /// Starts recording intervals of this length.
    pub(crate) fn record(&mut self, every: Span) {
        self.every = Some(every);
    }

    /// Starts recording the displacement of each packet.
    pub(crate) fn record_each(&mut self) {
        if let Some(sequence) = &mut self.sequence {
            sequence.each = Some(DisplacementRecording::default());
        }
    }

    /// Returns true if reordering is measured at receivers.
    pub(crate) fn has_receivers(&self) -> bool {
        self.receiver.is_some() || self.sequence.is_some() || self.first_arrival.is_some()
    }

    /// Notes a transmission of this flow that arrives at its receiver with this many bytes, or is
    /// lost (`None`): called before the flow learns of it.
    pub(crate) fn in_sequence(&mut self, at: Time, flow: FlowId, number: u64, truth: &Truth, bytes: Option<u32>) {
        if 2 * flow.index() < self.hosts {
            self.in_rank(at, flow, number, truth, bytes);
            self.for_the_first_time(at, flow, number, truth, bytes);
        }
    }

    fn in_rank(&mut self, at: Time, flow: FlowId, number: u64, truth: &Truth, bytes: Option<u32>) {
        let Some(Sequence { tap, ranks, each }) = &mut self.sequence else { return };
        if ranks.len() <= flow.index() {
            ranks.resize_with(flow.index() + 1, Ranks::default);
        }
        let Some(ranked) = ranks[flow.index()].take(number, truth) else { return };
        let (tap, from) = (*tap, flow.sender());
        if let Some(each) = each {
            match bytes {
                Some(_) => each.arrive(at, flow, ranked),
                None => each.lost(flow, ranked.rank),
            }
        }
        match bytes {
            Some(bytes) => self.arrive(tap, at, Passing { from, number: ranked.rank, bytes }),
            None => self.meter(tap, from).lost(ranked.rank),
        }
    }

    fn for_the_first_time(&mut self, at: Time, flow: FlowId, number: u64, truth: &Truth, bytes: Option<u32>) {
        let Some(FirstArrival { tap, firsts }) = &mut self.first_arrival else { return };
        if firsts.len() <= flow.index() {
            firsts.resize_with(flow.index() + 1, Firsts::default);
        }
        let firsts = &mut firsts[flow.index()];
        let Some(bytes) = bytes else { return firsts.lose(number, truth) };
        let (tap, from, rank) = (*tap, flow.sender(), firsts.arrive(number, truth));
        match rank {
            Some(number) => self.arrive(tap, at, Passing { from, number, bytes }),
            None => self.meter(tap, from).arrive_again(at),
        }
    }

    /// Returns true if reordering is measured at links.
    pub(crate) fn has_directions(&self) -> bool {
        !self.directions.is_empty()
    }

    /// A packet arrives at its receiver.
    pub(crate) fn at_receiver(&mut self, at: Time, passing: Passing) {
        if let Some(tap) = self.receiver.filter(|_| passing.from.is_sender()) {
            self.arrive(tap, at, passing);
        }
    }

    /// A packet leaves a link.
    pub(crate) fn behind(&mut self, at: Time, direction: DirectionId, passing: Passing) {
        if let Ok(found) = self.directions.binary_search_by_key(&direction, |direction| direction.0) {
            self.arrive(self.directions[found].1, at, passing);
        }
    }

    /// A packet of this host was lost: where its like passes, it may still be missing.
    pub(crate) fn lost(&mut self, from: HostId, number: u64) {
        // Sequence numbers have places of their own.
        let by_sending = |tap: &&mut Tap| !matches!(tap.place, ReorderTap::Sequence | ReorderTap::FirstArrival);
        for tap in self.taps.iter_mut().filter(by_sending) {
            if let Some(Some(meter)) = tap.meters.get_mut(from.index()) {
                meter.lost(number);
            }
        }
    }

    fn arrive(&mut self, tap: usize, at: Time, Passing { from, number, bytes }: Passing) {
        if from.index() >= self.hosts {
            return;
        }
        let every = self.every;
        let place = self.taps[tap].place;
        let meter = self.meter(tap, from);
        meter.arrive(number, at, bytes);
        if every.is_some() {
            let flow = from.flow();
            let intervals: Vec<ReorderInterval> = meter.take_intervals().collect();
            self.rows.extend(intervals.into_iter().map(|interval| ReorderingRow { flow, place, interval }));
        }
    }

    fn meter(&mut self, tap: usize, from: HostId) -> &mut ReorderMeter {
        let meters = &mut self.taps[tap].meters;
        if meters.len() <= from.index() {
            meters.resize_with(from.index() + 1, || None);
        }
        let every = self.every;
        meters[from.index()].get_or_insert_with(|| ReorderMeter::new(DISPLACEMENT_THRESHOLD, every).into())
    }

    /// The run has ended.
    pub(crate) fn finish(&mut self) {
        if let Some(each) = self.sequence.as_mut().and_then(|sequence| sequence.each.as_mut()) {
            each.finish();
        }
        for Tap { place, meters } in &mut self.taps {
            let hosts = meters.iter_mut().enumerate().filter_map(|(host, meter)| Some((host, meter.as_deref_mut()?)));
            for (host, meter) in hosts {
                meter.finish();
                let (flow, place) = (HostId::new(host).flow(), *place);
                self.rows.extend(meter.take_intervals().map(|interval| ReorderingRow { flow, place, interval }));
            }
        }
    }

    /// Returns true if the buffered rows should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len().max(self.each().map_or(0, DisplacementRecording::waiting)) >= BATCH
    }

    fn each(&self) -> Option<&DisplacementRecording> {
        self.sequence.as_ref()?.each.as_ref()
    }

    /// Hands on the displacements of packets.
    pub(crate) fn hand_on_each<'a>(
        &mut self,
        flow: impl Fn(FlowId) -> &'a str,
        sink: &mut dyn DisplacementSink,
    ) -> ControlFlow<()> {
        let each = self.sequence.as_mut().and_then(|sequence| sequence.each.as_mut());
        each.map_or(ControlFlow::Continue(()), |each| each.hand_on(flow, sink))
    }

    /// Hands all rows on.
    pub(crate) fn hand_on<'a>(
        &mut self,
        flow: impl Fn(FlowId) -> &'a str,
        link: impl Fn(DirectionId) -> &'a str,
        sink: &mut dyn ReorderingSink,
    ) -> ControlFlow<()> {
        self.rows.drain(..).try_for_each(|row| {
            let tap = name(row.place, &link);
            sink.record(&ReorderingRecord { flow: flow(row.flow), tap, interval: &row.interval })
        })
    }

    /// The results of a flow: by place, those of its data, or where none passes, of its ACKs.
    pub(crate) fn summary<'a>(
        &self,
        flow: FlowId,
        link: impl Fn(DirectionId) -> &'a str,
    ) -> BTreeMap<String, PacketReordering> {
        let meter = |tap: &Tap| {
            let of = |host: HostId| tap.meters.get(host.index())?.as_deref().map(ReorderMeter::summary);
            Some((name(tap.place, &link).to_owned(), of(flow.sender()).or_else(|| of(flow.receiver()))?))
        };
        self.taps.iter().filter_map(meter).collect()
    }
}

fn name<'a>(place: ReorderTap, link: impl Fn(DirectionId) -> &'a str) -> &'a str {
    match place {
        ReorderTap::Receiver => RECEIVER,
        ReorderTap::Sequence => SEQUENCE,
        ReorderTap::FirstArrival => FIRST_ARRIVAL,
        ReorderTap::Direction(direction) => link(direction),
    }
}
