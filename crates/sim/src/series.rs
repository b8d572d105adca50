//! Flows and link directions over time.
//!
//! As with windows, nothing is measured twice: what has been counted is noted at the end of each
//! interval, and subtracted from what has been counted at the end of the next. A run without a
//! series pays nothing for it.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use ackclock_trace::{FlowPoint, SeriesOf, SeriesRecord};
use ackclock_units::{Span, Time};

use crate::direction::{ClassCount, DirectionCount, LinkDirection};
use crate::flow::{Flow, FlowCount, subflow_number, variables, variables_of};
use crate::host::Host;
use crate::index::{DirectionId, FlowId, HostId, IndexVec};
use crate::record::SeriesConfig;

/// Rows that wait at most before more intervals end.
const BATCH: usize = 4096;

/// The same for a series whose intervals are passed on as they end.
const AT_ONCE: usize = 1;

/// The series of a run, and the rows that have not been written yet.
#[derive(Debug)]
pub(crate) struct Series {
    every: Span,
    /// Intervals of a sliding window.
    intervals: usize,
    /// Start of the current interval.
    from: Time,
    to: Time,
    flows: Vec<Past>,
    groups: Vec<(FlowCount, Sliding)>,
    directions: Vec<(DirectionCount, Sliding)>,
    /// Of each direction.
    classes: Vec<Vec<ClassPast>>,
    rows: Vec<SeriesRow>,
    /// The most rows that are buffered.
    room: usize,
}

/// The counts of a flow at the end of the last interval, and of each of its subflows if it has
/// several.
#[derive(Clone, Debug, Default)]
struct Past {
    count: FlowCount,
    sliding: Sliding,
    subflows: Vec<(FlowCount, Sliding)>,
}

/// The counts of a class at the end of the last interval.
#[derive(Clone, Debug)]
struct ClassPast {
    /// `bottleneck.forward.voice`
    id: String,
    count: ClassCount,
    sliding: Sliding,
}

/// The bytes in the last intervals.
#[derive(Clone, Debug, Default)]
struct Sliding {
    sum: u64,
    last: VecDeque<u64>,
}

/// The counts until now of flows that are not listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupCount {
    /// The flow whose connections they are; its own count has those that are over.
    pub(crate) client: Option<FlowId>,
    pub(crate) count: FlowCount,
}

#[derive(Clone, Copy, Debug)]
struct SeriesRow {
    from: Time,
    to: Time,
    whose: Whose,
    bytes: u64,
    window: Option<(u64, Span)>,
    packets: u64,
    of: SeriesOf,
}

#[derive(Clone, Copy, Debug)]
enum Whose {
    Flow(FlowId),
    /// A subflow of the flow, whose number is in the row.
    Subflow(FlowId),
    Group(usize),
    Direction(DirectionId),
    /// A class of the direction, by its place among those that there were.
    Class(usize, usize),
}

impl Series {
    /// The series of a run with this many listed flows and link directions.
    pub(crate) fn new(config: SeriesConfig, flows: usize, directions: usize) -> Series {
        // An interval without length would never end.
        let every = config.every.max(Span::from_nanos(1));
        let intervals = config.window.as_nanos().div_ceil(every.as_nanos()).max(1);
        Series {
            every,
            intervals: usize::try_from(intervals).unwrap_or(usize::MAX),
            from: Time::ZERO,
            to: Time::ZERO + every,
            flows: vec![Default::default(); flows],
            groups: Vec::new(),
            directions: vec![Default::default(); directions],
            classes: vec![Vec::new(); directions],
            rows: Vec::new(),
            room: BATCH,
        }
    }

    /// The same in intervals of this length, for those who watch.
    pub(crate) fn watched(every: Span, flows: usize, directions: usize) -> Series {
        let config = SeriesConfig { every, window: every };
        Series { room: AT_ONCE, ..Series::new(config, flows, directions) }
    }

    /// Sets the length of the intervals after the current one.
    pub(crate) fn set_every(&mut self, every: Span) {
        self.every = every.max(Span::from_nanos(1));
    }

    /// End of the last interval.
    pub(crate) fn passed(&self) -> Time {
        self.from
    }

    /// End of the current interval.
    pub(crate) fn next_edge(&self) -> Time {
        self.to
    }

    /// Returns true if the buffered rows should be written before another interval ends.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= self.room
    }

    /// The interval ends. All that happened before has been measured, and nothing else.
    pub(crate) fn pass(
        &mut self,
        flows: &IndexVec<FlowId, Flow>,
        hosts: &IndexVec<HostId, Host>,
        groups: &[GroupCount],
        directions: &IndexVec<DirectionId, LinkDirection>,
    ) {
        self.close(self.to, flows, hosts, groups, directions);
        self.from = self.to;
        self.to += self.every;
    }

    /// The run has ended, and with it the interval.
    pub(crate) fn end(
        &mut self,
        end: Time,
        flows: &IndexVec<FlowId, Flow>,
        hosts: &IndexVec<HostId, Host>,
        groups: &[GroupCount],
        directions: &IndexVec<DirectionId, LinkDirection>,
    ) {
        if end > self.from {
            self.close(end, flows, hosts, groups, directions);
        }
        (self.from, self.to) = (end, Time::NEVER);
    }

    fn close(
        &mut self,
        to: Time,
        flows: &IndexVec<FlowId, Flow>,
        hosts: &IndexVec<HostId, Host>,
        groups: &[GroupCount],
        directions: &IndexVec<DirectionId, LinkDirection>,
    ) {
        let Series { from, intervals, every, .. } = *self;
        let length = to.since(from);
        let is_whole = length == every;
        let mut row = |whose, sliding: &mut Sliding, bytes, packets, of| {
            let window = sliding.add(bytes, intervals).filter(|_| is_whole);
            let window = window.map(|bytes| (bytes, every * intervals as u64));
            self.rows.push(SeriesRow { from, to, whose, bytes, window, packets, of });
        };
        let ends = flows.ids().zip(flows.iter()).zip(hosts.pairs());
        for (((id, flow), (sender, receiver)), past) in ends.zip(&mut self.flows) {
            let mut now = flow.count(sender, receiver);
            groups.iter().filter(|group| group.client == Some(id)).for_each(|group| now.add(&group.count));
            // A client that has come to its end may open another connection.
            if flow.is_idle_since(from) && now == past.count {
                continue;
            }
            let response_bytes = flow.has_client().then(|| now.responses_since(&past.count));
            let at_end = FlowPoint { response_bytes, ..variables_of(sender, receiver) };
            let (bytes, packets, point) = now.since(&past.count, at_end);
            row(Whose::Flow(id), &mut past.sliding, bytes, packets, SeriesOf::Flow(point));
            past.count = now;
            let counts = flow.subflows.iter().flat_map(|subflows| subflows.counts([sender, receiver]));
            for (number, (now, subflow)) in counts.enumerate() {
                if past.subflows.len() == number {
                    past.subflows.push(Default::default());
                }
                let (then, sliding) = &mut past.subflows[number];
                let open = subflow.filter(|subflow| subflow.is_open());
                let at_end = open.map(|subflow| variables(subflow.endpoint())).unwrap_or_default();
                let (bytes, packets, point) = now.since(then, at_end);
                row(Whose::Subflow(id), sliding, bytes, packets, SeriesOf::Subflow(subflow_number(number), point));
                *then = now;
            }
        }
        self.groups.resize(groups.len(), Default::default());
        for ((number, GroupCount { client, count }), (then, sliding)) in groups.iter().enumerate().zip(&mut self.groups)
        {
            if client.is_none() && *count != FlowCount::default() {
                let (bytes, packets, point) = count.since(then, FlowPoint::default());
                row(Whose::Group(number), sliding, bytes, packets, SeriesOf::Group(point));
                *then = *count;
            }
        }
        let pasts = self.directions.iter_mut().zip(&mut self.classes);
        for (((id, direction), ((then, sliding), classes)), number) in
            directions.ids().zip(directions.iter()).zip(pasts).zip(0..)
        {
            let now = direction.count(to);
            let (bytes, packets, point) = direction.point(&now, then, length);
            row(Whose::Direction(id), sliding, bytes, packets, SeriesOf::Link(point));
            *then = now;
            let mut next = 0;
            direction.link().queue().classes(&mut |class| {
                // A tree in the place of another may have other classes, or some of its names.
                let is_it = |past: &ClassPast| past.id[direction.id.len() + 1..] == *class.name;
                let known =
                    classes.get(next).is_some_and(is_it).then_some(next).or_else(|| classes.iter().position(is_it));
                let place = known.unwrap_or(classes.len());
                if known.is_none() {
                    let id = format!("{}.{}", direction.id, class.name);
                    classes.push(ClassPast { id, count: ClassCount::default(), sliding: Sliding::default() });
                }
                next = place + 1;
                let past = &mut classes[place];
                let (bytes, packets, point) = past.count.pass(&class, length);
                row(Whose::Class(number, place), &mut past.sliding, bytes, packets, SeriesOf::Class(point));
            });
        }
    }

    /// Hands all rows on; `group` names a group.
    pub(crate) fn hand_on<'a>(
        &mut self,
        flows: &'a IndexVec<FlowId, Flow>,
        group: impl Fn(usize) -> &'a str,
        directions: &'a IndexVec<DirectionId, LinkDirection>,
        mut sink: impl FnMut(&SeriesRecord<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let classes = &self.classes;
        self.rows.drain(..).try_for_each(|row| {
            let SeriesRow { from, to, whose, bytes, window, packets, of } = row;
            let id = match whose {
                Whose::Flow(flow) | Whose::Subflow(flow) => &*flows[flow].id,
                Whose::Group(number) => group(number),
                Whose::Direction(direction) => &directions[direction].id,
                Whose::Class(direction, place) => &classes[direction][place].id,
            };
            sink(&SeriesRecord { from, to, id, bytes, window, packets, of })
        })
    }
}

impl Sliding {
    /// Adds an interval; returns the sum of the last `most` ones once there are that many.
    fn add(&mut self, bytes: u64, most: usize) -> Option<u64> {
        self.sum += bytes;
        self.last.push_back(bytes);
        if self.last.len() > most {
            self.sum -= self.last.pop_front().unwrap_or(0);
        }
        (self.last.len() == most).then_some(self.sum)
    }
}
