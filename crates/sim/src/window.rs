//! Parts of a run that are measured for themselves.
//!
//! Nothing is measured twice: what a flow and a link have counted is noted at the start of a
//! window, and taken from what they have counted at its end.

use ackclock_trace::{FlowWindow, LinkWindow, WindowSummary, fairness};
use ackclock_units::Time;

use crate::direction::{DirectionMark, LinkDirection};
use crate::flow::{Flow, FlowMark};
use crate::host::Host;
use crate::index::{DirectionId, FlowId, HostId, IndexVec};

type Flows = IndexVec<FlowId, Flow>;
type Hosts = IndexVec<HostId, Host>;
type Directions = IndexVec<DirectionId, LinkDirection>;

/// The windows of a run.
#[derive(Debug)]
pub(crate) struct Windows {
    spans: Vec<(Time, Time)>,
    /// Flows that are listed, ...
    listed: usize,
    /// ... and link directions.
    listed_directions: usize,
    /// Starts and ends in order of time, with the number of the window.
    edges: Vec<(Time, Edge, usize)>,
    /// Edges that have passed.
    passed: usize,
    /// Marks from the start of each open window.
    open: Vec<Option<WindowMark>>,
    done: Vec<WindowSummary>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Start,
    End,
}

#[derive(Debug)]
struct WindowMark {
    flows: Vec<FlowMark>,
    directions: Vec<DirectionMark>,
    /// Data packets of flows that are not listed.
    passing: u64,
}

impl Windows {
    pub(crate) fn new(spans: &[(Time, Time)], listed: usize, listed_directions: usize) -> Windows {
        let numbered = || spans.iter().enumerate();
        let mut edges: Vec<_> = numbered().map(|(number, span)| (span.0, Edge::Start, number)).collect();
        edges.extend(numbered().map(|(number, span)| (span.1, Edge::End, number)));
        edges.sort_unstable();
        let done = vec![WindowSummary::default(); spans.len()];
        let open = numbered().map(|_| None).collect();
        Windows { spans: spans.to_vec(), listed, listed_directions, edges, passed: 0, open, done }
    }

    /// The number of flows that are listed, the first ones.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// The number of link directions that are listed, the first ones.
    pub(crate) fn listed_directions(&self) -> usize {
        self.listed_directions
    }

    /// Time at which a window next starts or ends.
    pub(crate) fn next_edge(&self) -> Time {
        self.edges.get(self.passed).map_or(Time::NEVER, |edge| edge.0)
    }

    /// Passes the next edge. All that happened before it has been measured, and nothing else.
    /// `passing` are the data packets so far of flows that are not listed.
    pub(crate) fn pass(&mut self, flows: &Flows, hosts: &Hosts, directions: &Directions, passing: u64) {
        let Some(&(at, edge, number)) = self.edges.get(self.passed) else { return };
        self.passed += 1;
        match edge {
            Edge::Start => {
                let ends = flows.iter().zip(hosts.pairs()).take(self.listed);
                let flows = ends.map(|(flow, (sender, receiver))| flow.mark(at, sender, receiver)).collect();
                let directions =
                    directions.iter().take(self.listed_directions).map(|direction| direction.mark(at)).collect();
                self.open[number] = Some(WindowMark { flows, directions, passing });
            }
            Edge::End => self.close(number, at, flows, hosts, directions, passing),
        }
    }

    /// The run has been broken off at `end`: windows end there that have not yet, and those that
    /// have not begun are empty.
    pub(crate) fn break_off(&mut self, end: Time, flows: &Flows, hosts: &Hosts, directions: &Directions, passing: u64) {
        for &(_, edge, number) in &self.edges.split_off(self.passed) {
            match edge {
                Edge::Start => {
                    let (from, to) = self.spans[number];
                    let done = &mut self.done[number];
                    (done.from_s, done.to_s) = (from.as_secs_f64(), to.as_secs_f64());
                }
                Edge::End => self.close(number, end, flows, hosts, directions, passing),
            }
        }
    }

    /// A window ends at `to`, if it has begun.
    fn close(&mut self, number: usize, to: Time, flows: &Flows, hosts: &Hosts, directions: &Directions, passing: u64) {
        let Some(mark) = self.open[number].take() else { return };
        let from = self.spans[number].0;
        let length = to.since(from);
        let ways = flows;
        let flows: Vec<FlowWindow> = (flows.iter().zip(hosts.pairs()).zip(&mark.flows))
            .map(|((flow, (sender, receiver)), mark)| flow.since(mark, to, sender, receiver))
            .collect();
        let links: Vec<LinkWindow> = (directions.iter().zip(&mark.directions))
            .map(|(direction, mark)| direction.since(mark, length, to))
            .collect();
        let shares = |way: Option<bool>| {
            let all = flows.iter().zip(ways.iter().zip(hosts.pairs()));
            let alike = all.filter(move |(_, (flow, _))| way.is_none_or(|way| flow.reverse == way));
            fairness(alike.map(|(flow, (_, (sender, _)))| (flow.goodput_bps, !matches!(sender, Host::Datagrams(_)))))
        };
        self.done[number] = WindowSummary {
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
            packets: flows.iter().map(|flow| flow.sent.sent_packets).sum::<u64>() + passing - mark.passing,
            fairness_jain: shares(None),
            fairness_jain_forward: shares(Some(false)),
            fairness_jain_reverse: shares(Some(true)),
            flows,
            links,
        };
    }

    /// The measures of the windows, in their order, once every edge has passed.
    pub(crate) fn take(&mut self) -> Vec<WindowSummary> {
        std::mem::take(&mut self.done)
    }
}
