//! The view of a run for those who watch it: the last values of links and flows, their counts since
//! the beginning, and a bounded history.

use std::collections::VecDeque;

use ackclock_live::Moment;
use ackclock_sim::spec::{Clock, QueueSpec, RunSpec};
use ackclock_trace::{FlowPoint, LinkPoint, LiveHost, SeriesOf};
use ackclock_units::{Span, Time};

/// Intervals of a link that are remembered.
pub(crate) const LINK_HISTORY: usize = 600;

/// Intervals of a flow that are: there may be thousands of flows.
pub(crate) const FLOW_HISTORY: usize = 60;

/// The state of a run that is watched.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) title: String,
    pub(crate) clock: &'static str,
    pub(crate) duration: Span,
    pub(crate) lateness_limit: Option<Span>,
    /// The end of the last interval.
    pub(crate) now: Time,
    /// Number of intervals that have ended.
    pub(crate) ticks: u64,
    pub(crate) links: Vec<Link>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) live: Option<Live>,
    /// Records that there was no room for: counts lack them.
    pub(crate) lost: u64,
    places: Vec<Place>,
    controllers: Vec<(String, String)>,
}

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Flow,
    /// A subflow of it, by its number.
    Subflow(u16),
    Group,
    Link,
    /// A class of a link's queue.
    Class,
}

/// A name that rows have from now on, by its number.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) id: String,
}

/// A record whose name is a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: usize,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) of: SeriesOf,
}

/// Where the rows of a key go.
#[derive(Clone, Copy, Debug)]
enum Place {
    Link(usize),
    Flow(usize),
}

/// A link direction, or a class of its queue.
#[derive(Debug)]
pub(crate) struct Link {
    /// `bottleneck.forward`; with the class, `bottleneck.forward.voice`.
    pub(crate) id: String,
    /// `bottleneck`
    pub(crate) link: String,
    /// `forward`
    pub(crate) direction: String,
    /// `voice`; empty of a direction.
    pub(crate) class: String,
    pub(crate) queue: String,
    /// The last interval.
    pub(crate) point: LinkPoint,
    /// Bits per second that left its queue in it.
    pub(crate) rate_bps: f64,
    /// Drops, losses and marks in it.
    pub(crate) recent: Recent,
    pub(crate) totals: LinkTotals,
    pub(crate) rates: History,
    pub(crate) backlogs: History,
    /// Histories in ms.
    pub(crate) sojourns: History,
}

/// The fates of packets in the last second of the machine, about.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    last: VecDeque<[u64; 2]>,
}

/// The counts of a link direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkTotals {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) dropped: u64,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
}

/// A flow, a subflow or a group of flows.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Its controller, as the scenario has it; empty where that does not say.
    pub(crate) cc: String,
    /// Its last interval, which need not be the board's: idle flows have no rows.
    pub(crate) point: FlowPoint,
    pub(crate) goodput_bps: f64,
    tick: u64,
    pub(crate) totals: FlowTotals,
    pub(crate) goodputs: History,
    /// Histories in ms.
    pub(crate) rtts: History,
}

/// The counts of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowTotals {
    pub(crate) delivered_bytes: u64,
    pub(crate) received_bytes: u64,
    pub(crate) packets: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
}

/// The additional state of a run in real time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    pub(crate) moment: Moment,
    /// Hosts behind devices.
    pub(crate) hosts: Vec<LiveHost>,
    /// Lateness of the last intervals, 99th percentile in ms.
    pub(crate) lateness: History,
}

/// The last values of something, one for each interval.
#[derive(Clone, Debug)]
pub(crate) struct History {
    values: VecDeque<f32>,
    room: usize,
    /// Number of values so far.
    pushed: usize,
}

/// The value shown for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownValue {
    Mean,
    Largest,
}

impl History {
    pub(crate) fn new(room: usize) -> History {
        History { values: VecDeque::new(), room, pushed: 0 }
    }

    pub(crate) fn push(&mut self, value: f64) {
        if self.values.len() == self.room {
            self.values.pop_front();
        }
        self.values.push_back(value as f32);
        self.pushed += 1;
    }

    /// The last values in groups of `each`, at most `most` groups, the oldest first. A value stays
    /// with its neighbours.
    pub(crate) fn together(&self, most: usize, each: usize, shown: ShownValue) -> Vec<f64> {
        let first = self.pushed - self.values.len();
        let mut groups: Vec<(usize, f64, f64)> = Vec::new();
        for (number, value) in (first..).zip(self.last(self.room)) {
            match groups.last_mut() {
                Some((count, sum, largest)) if !number.is_multiple_of(each) => {
                    (*count, *sum, *largest) = (*count + 1, *sum + value, value.max(*largest));
                }
                _ => groups.push((1, value, value)),
            }
        }
        let value = |&(count, sum, largest): &(usize, f64, f64)| match shown {
            ShownValue::Mean => sum / count as f64,
            ShownValue::Largest => largest,
        };
        groups[groups.len().saturating_sub(most)..].iter().map(value).collect()
    }

    /// Adds intervals in which there was nothing.
    fn skip(&mut self, intervals: u64) {
        (0..intervals.min(self.room as u64)).for_each(|_| self.push(0.0));
    }

    /// The last so many, the oldest first.
    pub(crate) fn last(&self, most: usize) -> impl Iterator<Item = f64> {
        self.values.iter().skip(self.values.len().saturating_sub(most)).map(|&value| value.into())
    }
}

impl Default for History {
    fn default() -> History {
        History::new(LINK_HISTORY)
    }
}

impl Recent {
    /// Intervals that count.
    const INTERVALS: usize = 10;

    fn push(&mut self, dropped: u64, marked: u64) {
        if self.last.len() == Recent::INTERVALS {
            self.last.pop_front();
        }
        self.last.push_back([dropped, marked]);
    }

    /// Packets that were dropped or lost, and that were marked.
    pub(crate) fn counts(&self) -> [u64; 2] {
        self.last.iter().fold([0, 0], |[d, m], [dropped, marked]| [d + dropped, m + marked])
    }
}

impl Board {
    /// The board of a run that has not begun.
    pub(crate) fn new(spec: &RunSpec) -> Board {
        let directions = spec.links.iter().flat_map(|link| {
            let ways = [("forward", &link.forward), ("reverse", &link.reverse)];
            ways.map(|(direction, spec)| (&*link.name, direction, &spec.queue))
        });
        // Each direction is followed by the classes of its queue.
        let links = directions.flat_map(|(link, direction, queue)| {
            let new = |queue: Option<&QueueSpec>| {
                Link::new(link, direction, queue.map_or_else(String::new, |queue| queue.name().to_owned()))
            };
            let classes = queue.classes().map(move |(class, queue)| new(queue).of_class(class));
            std::iter::once(new(Some(queue))).chain(classes)
        });
        let cc = |group: &ackclock_sim::spec::FlowGroup| group.sender.cc().unwrap_or_default().to_owned();
        let flows = spec.flows.iter().map(|flow| (flow.id.to_string(), cc(&flow.group)));
        let sums = spec.sums.iter().map(|sum| (sum.id.clone(), cc(&sum.group)));
        let clock = match spec.live.as_ref().map(|live| &live.clock) {
            None | Some(Clock::Virtual) => "virtual",
            Some(Clock::Real) => "live",
            Some(Clock::Replay(_)) => "replay",
        };
        Board {
            title: spec.title.clone(),
            clock,
            duration: spec.duration,
            lateness_limit: spec.live.as_ref().and_then(|live| live.lateness_limit),
            now: Time::ZERO,
            ticks: 0,
            links: links.collect(),
            flows: Vec::new(),
            live: None,
            lost: 0,
            places: Vec::new(),
            controllers: flows.chain(sums).collect(),
        }
    }

    /// Rows have keys of these names from now on, in this order.
    pub(super) fn add(&mut self, keys: impl Iterator<Item = Key>) {
        for Key { kind, id } in keys {
            let place = match kind {
                Kind::Link => {
                    let known = self.links.iter().position(|link| link.id == id);
                    Place::Link(known.unwrap_or_else(|| {
                        let (link, direction) = id.rsplit_once('.').unwrap_or((&id, ""));
                        self.links.push(Link::new(link, direction, String::new()));
                        self.links.len() - 1
                    }))
                }
                Kind::Class => {
                    let known = self.links.iter().position(|link| link.id == id);
                    // A tree of classes may take another queue's place.
                    Place::Link(known.unwrap_or_else(|| {
                        let (of, class) = id.rsplit_once('.').unwrap_or(("", &id));
                        let (link, direction) = of.rsplit_once('.').unwrap_or((of, ""));
                        self.links.push(Link::new(link, direction, String::new()).of_class(class));
                        self.links.len() - 1
                    }))
                }
                Kind::Flow | Kind::Group | Kind::Subflow(_) => {
                    let known = self.controllers.iter().find(|(flow, _)| *flow == id);
                    let cc = known.map(|(_, cc)| cc.clone()).unwrap_or_default();
                    self.flows.push(Flow::new(kind, id, cc));
                    Place::Flow(self.flows.len() - 1)
                }
            };
            self.places.push(place);
        }
    }

    /// Takes a row; those of an interval come together.
    pub(super) fn take(&mut self, row: &Row) {
        if row.to > self.now {
            self.now = row.to;
            self.ticks += 1;
        }
        let length = row.to.since(row.from).as_secs_f64();
        let per_second = |bytes: u64| if length > 0.0 { bytes as f64 * 8.0 / length } else { 0.0 };
        match (self.places.get(row.key), &row.of) {
            (Some(&Place::Link(link)), SeriesOf::Link(point) | SeriesOf::Class(point)) => {
                self.links[link].take(row, *point, per_second(row.bytes));
            }
            (
                Some(&Place::Flow(flow)),
                SeriesOf::Flow(point) | SeriesOf::Group(point) | SeriesOf::Subflow(_, point),
            ) => {
                self.flows[flow].take(row, *point, per_second(point.delivered_bytes), self.ticks);
            }
            // A key is of one kind.
            _ => {}
        }
    }

    /// Takes how punctual a run is.
    pub(super) fn take_live(&mut self, moment: Moment, hosts: &[LiveHost]) {
        let live = self.live.get_or_insert_default();
        live.lateness.push(moment.lateness.p99.unwrap_or_default().as_millis_f64());
        live.moment = moment;
        hosts.clone_into(&mut live.hosts);
    }

    /// Returns `true` if a run in real time is too late to be valid, as far as is known by now;
    /// `None` if it is not in real time, or has no limit.
    pub(crate) fn is_late(&self) -> Option<bool> {
        let (live, limit) = (self.live.as_ref()?, self.lateness_limit?);
        let Moment { lateness, unread, longest_stall, .. } = live.moment;
        let beyond = |late: Option<Span>| late.is_some_and(|late| late > limit);
        Some(beyond(lateness.run_p99) || beyond(unread.run_p99) || longest_stall > ackclock_live::LONGEST_STALL)
    }

    /// The part of the run that is over, from 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        let whole = self.duration.as_secs_f64();
        if whole > 0.0 { (self.now.as_secs_f64() / whole).min(1.0) } else { 1.0 }
    }
}

impl Link {
    fn new(link: &str, direction: &str, queue: String) -> Link {
        Link {
            id: format!("{link}.{direction}"),
            link: link.to_owned(),
            direction: direction.to_owned(),
            class: String::new(),
            queue,
            point: LinkPoint::default(),
            rate_bps: 0.0,
            recent: Recent::default(),
            totals: LinkTotals::default(),
            rates: History::new(LINK_HISTORY),
            backlogs: History::new(LINK_HISTORY),
            sojourns: History::new(LINK_HISTORY),
        }
    }

    /// A class of the queue of this direction.
    fn of_class(self, class: &str) -> Link {
        Link { id: format!("{}.{class}", self.id), class: class.to_owned(), ..self }
    }

    fn take(&mut self, row: &Row, point: LinkPoint, rate_bps: f64) {
        (self.point, self.rate_bps) = (point, rate_bps);
        self.totals.bytes += row.bytes;
        self.totals.packets += row.packets;
        self.totals.dropped += point.dropped_packets;
        self.totals.lost += point.lost_packets;
        self.totals.marked += point.marked_packets;
        self.recent.push(point.dropped_packets + point.lost_packets, point.marked_packets);
        self.rates.push(rate_bps);
        self.backlogs.push(point.backlog_packets as f64);
        self.sojourns.push(point.sojourn.unwrap_or_default().as_millis_f64());
    }
}

impl Flow {
    fn new(kind: Kind, id: String, cc: String) -> Flow {
        Flow {
            id,
            kind,
            cc,
            point: FlowPoint::default(),
            goodput_bps: 0.0,
            tick: 0,
            totals: FlowTotals::default(),
            goodputs: History::new(FLOW_HISTORY),
            rtts: History::new(FLOW_HISTORY),
        }
    }

    fn take(&mut self, row: &Row, point: FlowPoint, goodput_bps: f64, tick: u64) {
        let idle = tick.saturating_sub(self.tick + 1);
        self.tick = tick;
        (self.point, self.goodput_bps) = (point, goodput_bps);
        self.totals.delivered_bytes += point.delivered_bytes;
        self.totals.received_bytes += row.bytes;
        self.totals.packets += row.packets;
        self.totals.retransmitted += point.retransmitted_packets;
        self.totals.timeouts += point.timeouts;
        self.goodputs.skip(idle);
        self.goodputs.push(goodput_bps);
        self.rtts.skip(idle);
        self.rtts.push(point.rtt.or(point.srtt).unwrap_or_default().as_millis_f64());
    }

    /// Number of intervals for which it has been idle.
    pub(crate) fn idle(&self, board: &Board) -> u64 {
        board.ticks.saturating_sub(self.tick)
    }
}

#[cfg(test)]
mod tests;
