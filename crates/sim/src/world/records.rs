//! The records of a run, and the times at which they are written.

use std::ops::ControlFlow;

use ackclock_packet::Packet;
use ackclock_trace::{AckRecord, CaptureSink, ErttSink, QueueSink, SeriesRecord, SiftrSink};
use ackclock_units::Time;

use super::World;
use crate::capture::{CaptureRecording, CapturedContent};
use crate::error::RunError;
use crate::host::Host;
use crate::index::{DirectionId, FlowId, HostId, RouteId};
use crate::log::HostLog;
use crate::record::{
    CaptureRecorder, QlogRecorder, QueueRecorder, QueueRecording, Recorders, ReorderingRecorder, SenderId,
    SeriesRecorder, TcpFact, TcpRecording,
};
use crate::reordering::Reorderings;
use crate::series::Series;
use crate::truth::RECEIVER;

/// Records that have not been written yet; none by default.
#[derive(Debug, Default)]
pub(super) struct RunRecords {
    /// Decisions of recorded queues.
    pub(super) queues: Option<Box<QueueRecording>>,
    /// Events of flows.
    pub(super) tcp: Option<Box<TcpRecording>>,
    /// Logs of hosts.
    pub(super) log: Option<Box<HostLog>>,
    /// Flows and links over time.
    pub(super) series: Option<Box<Series>>,
    /// The same, passed on as each interval ends.
    pub(super) watched: Option<Box<Series>>,
    /// Packets as bytes.
    pub(super) captures: Option<Box<CaptureRecording>>,
    /// Reordering by place.
    pub(super) reordering: Option<Box<Reorderings>>,
    /// Decisions of queues are needed.
    pub(super) notes: bool,
    /// True if anything is recorded in this run.
    is_recording: bool,
}

impl RunRecords {
    /// The series of the records, and that of those who watch.
    pub(super) fn all_series(&mut self) -> impl Iterator<Item = &mut Box<Series>> {
        self.series.iter_mut().chain(&mut self.watched)
    }

    /// Returns true if the buffered rows of a series should be written.
    pub(super) fn has_full_series(&self) -> bool {
        self.series.iter().chain(&self.watched).any(|series| series.is_full())
    }

    /// Returns true if there is a series.
    pub(super) fn has_series(&self) -> bool {
        self.series.is_some() || self.watched.is_some()
    }
}

impl World {
    /// Begins to record: before the first step.
    ///
    /// # Panics
    /// If there is no such direction as is to be recorded, or its packets were not recorded from
    /// the first one on.
    pub fn start(&mut self, recorders: &Recorders<'_>) {
        if let Some(QueueRecorder { directions, .. }) = &recorders.queues {
            directions.iter().for_each(|&direction| self.directions[direction].recorded().record());
            self.records.queues = Some(Box::new(QueueRecording::new(directions)));
        }
        if let Some(CaptureRecorder { points, snaplen, .. }) = &recorders.captures {
            let captures = CaptureRecording::new(points, *snaplen);
            captures.directions().for_each(|direction| self.directions[direction].recorded().record());
            self.records.captures = Some(Box::new(captures));
        }
        self.records.notes = recorders.queues.is_some() || recorders.captures.is_some();
        let is_recording = recorders.queues.is_some()
            || recorders.captures.is_some()
            || recorders.tcp.is_some()
            || recorders.qlog.is_some()
            || recorders.siftr.is_some()
            || recorders.ertt.is_some();
        if is_recording {
            // What is recorded names its flow later.
            self.keep_places();
        }
        if recorders.flows.is_some() {
            self.record_flows();
        }
        self.records.log =
            HostLog::new(recorders.siftr.is_some(), recorders.ertt.is_some().then_some(self.flows.len()));
        if let Some(SeriesRecorder { config, .. }) = &recorders.series {
            let series = Series::new(*config, self.windows.listed(), self.windows.listed_directions());
            self.next_edge = self.next_edge.min(series.next_edge());
            self.records.series = Some(Box::new(series));
        }
        if let Some(sink) = &recorders.watch {
            let series = Series::watched(sink.every(), self.windows.listed(), self.windows.listed_directions());
            self.next_edge = self.next_edge.min(series.next_edge());
            self.records.watched = Some(Box::new(series));
        }
        if let (Some(recorder), Some(reordering)) = (&recorders.reordering, &mut self.records.reordering) {
            reordering.record(recorder.every);
        }
        if let (Some(_), Some(reordering)) = (&recorders.displacement, &mut self.records.reordering) {
            reordering.record_each();
        }
        let has_reordering = recorders.reordering.is_some() || recorders.displacement.is_some();
        let has_series = recorders.series.is_some() || recorders.watch.is_some();
        self.records.is_recording = is_recording || has_reordering || recorders.flows.is_some() || has_series;
        if recorders.tcp.is_some() || recorders.qlog.is_some() {
            let points = recorders.qlog.as_ref().map_or(&[][..], |recorder| recorder.points);
            self.records.tcp = Some(Box::new(TcpRecording::new(points)));
        }
        self.is_plain = self.visits_are_plain();
    }

    /// Hands records on once there are many: after every step, the last of which was at `now`.
    ///
    /// # Errors
    /// An interruption by a recorder.
    #[inline]
    pub fn keep_up(&mut self, now: Time, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        if self.records.is_recording { self.hand_on_some(now, recorders) } else { Ok(()) }
    }

    #[inline(never)]
    fn hand_on_some(&mut self, now: Time, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        if self.records.has_full_series() {
            self.hand_on_series(recorders)?;
        }
        if self.records.tcp.as_ref().is_some_and(|recording| recording.is_full()) {
            self.hand_on_tcp(now, now, recorders)?;
        }
        if let Some(QueueRecorder { sink, .. }) = &mut recorders.queues
            && self.records.queues.as_ref().is_some_and(|recording| recording.is_full())
        {
            self.hand_on(now, now, *sink)?;
        }
        if let Some(CaptureRecorder { sink, .. }) = &mut recorders.captures
            && self.records.captures.as_ref().is_some_and(|captures| captures.is_full())
        {
            self.hand_on_captures(*sink)?;
        }
        if let Some(sink) = &mut recorders.flows
            && self.has_many_rows()
        {
            self.hand_on_flows(*sink)?;
        }
        if self.records.reordering.as_ref().is_some_and(|reordering| reordering.is_full()) {
            self.hand_on_reordering(recorders)?;
        }
        if self.records.log.as_ref().is_some_and(|log| log.is_full()) {
            self.hand_on_log(recorders.siftr.as_deref_mut(), recorders.ertt.as_deref_mut())?;
        }
        Ok(())
    }

    /// Hands the last records on: after the last step.
    ///
    /// # Errors
    /// Corrupted data, or an interruption by a recorder.
    pub fn complete(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.end_decisions();
        // What is measured before the end is, before links catch up with the end.
        while self.next_edge <= self.end {
            self.pass_edges(self.end);
            self.hand_on_series(recorders)?;
        }
        self.hand_on_log(recorders.siftr.as_deref_mut(), recorders.ertt.as_deref_mut())?;
        if let Some(QueueRecorder { sink, .. }) = &mut recorders.queues {
            self.hand_on(self.end, Time::NEVER, *sink)?;
        }
        if recorders.series.is_some() || recorders.watch.is_some() {
            self.hand_on_last_series(recorders)?;
        }
        if self.records.tcp.is_some() {
            self.finish();
            self.hand_on_tcp(self.end, Time::NEVER, recorders)?;
        }
        if let Some(sink) = &mut recorders.flows {
            self.hand_on_last_flows(*sink)?;
        }
        if let Some(CaptureRecorder { sink, .. }) = &mut recorders.captures {
            self.catch_up(self.end);
            self.hand_on_captures(*sink)?;
        }
        if recorders.reordering.is_some() || recorders.displacement.is_some() {
            self.finish_reordering();
            self.hand_on_reordering(recorders)?;
        }
        self.check_data()
    }

    /// The variables of a sender outside, for `tcp.csv`.
    pub fn sampled(&mut self, at: Time, flow: FlowId, variables: AckRecord) {
        if let Some(recording) = &mut self.records.tcp {
            recording.add(at, SenderId::of(flow), TcpFact::Ack(variables));
        }
    }

    /// A packet arrives at a host, or leaves it.
    #[inline]
    pub(super) fn capture(&mut self, now: Time, host: HostId, inbound: bool, packet: Packet) {
        if let Some(captures) = &mut self.records.captures {
            let is_datagram = matches!(self.hosts[host], Host::Datagrams(_));
            let from = if inbound { host.peer() } else { host };
            let segment = &self.pool.get(packet.slot).segment;
            captures.at_host(now, host, inbound, CapturedContent::new(from, segment, &packet, is_datagram));
        }
    }

    /// Hands the records from before `until` on. Late calls change nothing, so that early ones do
    /// not either: every recorded link first does what is due until `now`.
    #[cold]
    fn hand_on(&mut self, now: Time, until: Time, sink: &mut dyn QueueSink) -> Result<(), RunError> {
        let direction = |world: &World, n: usize| world.records.queues.as_ref()?.directions().get(n).copied();
        for n in 0.. {
            let Some(direction) = direction(self, n) else { break };
            self.catch_up_direction(now, direction);
        }
        let World { records, directions, flows, routes, .. } = self;
        let Some(recording) = &mut records.queues else { return Ok(()) };
        // What is of no flow goes to no host of one.
        let flow = |route: RouteId| flows.get(routes.to(route).flow()).map_or("", |flow| &*flow.id);
        match recording.hand_on(until, |direction| &directions[direction].id, flow, sink) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// The same for the records of flows. What became of a packet may be known on any link.
    #[cold]
    fn hand_on_tcp(&mut self, now: Time, until: Time, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.catch_up(now);
        let World { records, directions, flows, .. } = self;
        let Some(recording) = &mut records.tcp else { return Ok(()) };
        let link =
            |direction: Option<DirectionId>| direction.map_or(RECEIVER, |direction| directions[direction].id.as_str());
        let qlog = recorders.qlog.as_mut().map(|QlogRecorder { sink, .. }| &mut **sink);
        match recording.hand_on(until, link, |flow| &flows[flow].id, recorders.tcp.as_deref_mut(), qlog) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Hands on the rows of the intervals that have ended.
    #[cold]
    fn hand_on_series(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        if let (Some(sink), Some(mut series)) =
            (&mut recorders.watch, self.records.watched.take_if(|series| series.is_full()))
        {
            let record = |record: &SeriesRecord<'_>| {
                sink.record(record);
                ControlFlow::Continue(())
            };
            let _ = series.hand_on(&self.flows, |group| self.name_of_group(group), &self.directions, record);
            series.set_every(sink.passed(series.passed()));
            self.records.watched = Some(series);
        }
        let Some(SeriesRecorder { sink, .. }) = &mut recorders.series else { return Ok(()) };
        let Some(mut series) = self.records.series.take() else { return Ok(()) };
        let record = |record: &SeriesRecord<'_>| sink.record(record);
        let handed_on = series.hand_on(&self.flows, |group| self.name_of_group(group), &self.directions, record);
        self.records.series = Some(series);
        match handed_on {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// The same for all others, at the end of the run.
    fn hand_on_last_series(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.catch_up(self.end);
        let groups = self.passing_counts();
        let World { records, flows, hosts, directions, end, .. } = self;
        for series in records.all_series() {
            series.end(*end, flows, hosts, &groups, directions);
        }
        self.hand_on_series(recorders)
    }

    /// Hands on the packets that were captured.
    #[cold]
    fn hand_on_captures(&mut self, sink: &mut dyn CaptureSink) -> Result<(), RunError> {
        match self.records.captures.as_mut().map(|captures| captures.hand_on(sink)) {
            None | Some(ControlFlow::Continue(())) => Ok(()),
            Some(ControlFlow::Break(())) => Err(RunError::Interrupted),
        }
    }

    /// Hands on the intervals in which reordering was measured, and displacements.
    #[cold]
    fn hand_on_reordering(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        let World { records, flows, directions, .. } = self;
        let Some(reordering) = &mut records.reordering else { return Ok(()) };
        let id = |flow: FlowId| &*flows[flow].id;
        let mut handed_on = ControlFlow::Continue(());
        if let Some(ReorderingRecorder { sink, .. }) = &mut recorders.reordering {
            handed_on = reordering.hand_on(id, |direction| &directions[direction].id, *sink);
        }
        if let (Some(sink), ControlFlow::Continue(())) = (&mut recorders.displacement, handed_on) {
            handed_on = reordering.hand_on_each(id, *sink);
        }
        match handed_on {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }

    /// Hands on what hosts have logged.
    #[cold]
    fn hand_on_log<'a>(
        &mut self,
        siftr: Option<&mut (dyn SiftrSink + 'a)>,
        ertt: Option<&mut (dyn ErttSink + 'a)>,
    ) -> Result<(), RunError> {
        let World { records, flows, .. } = self;
        let Some(log) = &mut records.log else { return Ok(()) };
        match log.hand_on(|flow| &*flows[flow].id, siftr, ertt) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RunError::Interrupted),
        }
    }
}
