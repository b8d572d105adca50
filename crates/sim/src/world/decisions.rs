//! Decisions of controllers that learn, or have learned.
//!
//! A decision is made at a point in time at which a run without it would go on just so: by the
//! clock, when everything before that time has been done, or by an ACK, when it has been taken in
//! and nothing was sent yet. A policy decides by itself. For a learner whose actions come from
//! outside the world waits after a call of [`World::wait_for_actions`]; otherwise
//! its windows stay as they are.

use ackclock_cc::Learner;
use ackclock_cc::learned::Decides;
use ackclock_packet::Packet;
use ackclock_tcp::State;
use ackclock_units::{Span, Time};

use super::World;
use crate::host::Host;
use crate::index::{FlowId, HostId, RouteId};
use crate::spec::{CcSpec, FlowSpec, HostSpec, RunSpec};

/// The flows whose senders learn.
#[derive(Debug)]
pub(super) struct Decisions {
    /// Deciders in the order of their flows.
    all: Vec<Decider>,
    /// Time of the next decision by the clock.
    pub(super) next_at: Time,
    /// Some decide by ACKs.
    pub(super) by_acks: bool,
    /// Flows that decide now.
    due: Vec<FlowId>,
    now: Time,
    waits_for_actions: bool,
    is_waiting: bool,
}

#[derive(Debug)]
struct Decider {
    flow: FlowId,
    /// Actions come from outside, now or later.
    is_external: bool,
    /// Time of its next decision by the clock.
    at: Time,
    /// Interval of the checks before the connection is open; `None` for decisions by ACKs.
    tick: Option<Span>,
    by_acks: bool,
}

/// The interval of checks before a flow decides, and two flags: it decides by ACKs; its actions
/// come from outside. `None` without a learner.
fn rhythm(flow: &FlowSpec) -> Option<(Option<Span>, bool, bool)> {
    let HostSpec::Endpoint(sender) = &flow.sender else { return None };
    if flow.mptcp.is_some() {
        return None;
    }
    let later = flow.schedule.iter().map(|change| &change.cc);
    let all = || [&sender.cc].into_iter().chain(later.clone());
    let decides = || all().filter_map(|cc| Some(cc.agent()?.decides));
    let is_external = all().any(|cc| matches!(cc, CcSpec::External(..)));
    decides().next()?;
    let tick = decides().filter_map(|decides| match decides {
        Decides::Every(span) | Decides::RoundTripTimes(_, span) => Some(span.max(Span::from_nanos(1))),
        Decides::Round | Decides::Ack => None,
    });
    let by_acks = decides().any(|decides| matches!(decides, Decides::Round | Decides::Ack));
    Some((tick.min(), by_acks, is_external))
}

impl Decisions {
    /// `None` if no sender learns.
    pub(super) fn new(spec: &RunSpec) -> Option<Box<Decisions>> {
        let decider = |(number, flow): (usize, &FlowSpec)| {
            let (tick, by_acks, is_external) = rhythm(flow)?;
            let at = tick.map_or(Time::NEVER, |tick| Time::ZERO + tick);
            Some(Decider { flow: FlowId::new(number), is_external, at, tick, by_acks })
        };
        let all: Vec<Decider> = spec.flows.iter().enumerate().filter_map(decider).collect();
        (!all.is_empty()).then(|| {
            Box::new(Decisions {
                next_at: all.iter().map(|decider| decider.at).min().unwrap_or(Time::NEVER),
                by_acks: all.iter().any(|decider| decider.by_acks),
                due: Vec::with_capacity(all.len()),
                all,
                now: Time::ZERO,
                waits_for_actions: false,
                is_waiting: false,
            })
        })
    }

    fn decides_by_acks(&self, host: HostId) -> bool {
        host.is_sender() && self.all.iter().any(|decider| decider.by_acks && decider.flow == host.flow())
    }
}

impl World {
    /// Makes the world wait at each decision of a learner whose actions come from outside:
    /// [`World::step`] does nothing until [`World::go_on_after_actions`].
    pub fn wait_for_actions(&mut self) {
        if let Some(decisions) = &mut self.decisions {
            decisions.waits_for_actions = true;
        }
    }

    /// The flows that wait for actions: those at whose decisions the world stands.
    pub fn waiting(&self) -> &[FlowId] {
        match &self.decisions {
            Some(decisions) if decisions.is_waiting => &decisions.due,
            _ => &[],
        }
    }

    /// The flows whose senders learn, or have learned, now or later in the run.
    pub fn learning(&self) -> impl Iterator<Item = FlowId> {
        self.decisions.iter().flat_map(|decisions| decisions.all.iter().map(|decider| decider.flow))
    }

    /// Returns true if actions for a flow come from outside, now or later in the run.
    pub fn has_external(&self, flow: FlowId) -> bool {
        let all = self.decisions.iter().flat_map(|decisions| &decisions.all);
        all.clone().any(|decider| decider.flow == flow && decider.is_external)
    }

    /// The learner that controls the sender of a flow, if there is one.
    pub fn learner(&mut self, flow: FlowId) -> Option<&mut Learner> {
        let now = self.decisions.as_ref()?.now;
        match self.hosts.get_mut(flow.sender())? {
            Host::Endpoint(endpoint) => Some(endpoint.sender_mut().learner(now)?.0),
            _ => None,
        }
    }

    /// Returns true if the traffic of a flow has ended.
    pub fn is_over(&self, flow: FlowId) -> bool {
        let is_closed = || match &self.hosts[flow.sender()] {
            Host::Endpoint(endpoint) => endpoint.state() == State::Closed,
            _ => true,
        };
        self.flows[flow].is_finished() || self.flows[flow].has_started() && is_closed()
    }

    /// The time of the last decision.
    pub fn decided_at(&self) -> Time {
        self.decisions.as_ref().map_or(Time::ZERO, |decisions| decisions.now)
    }

    /// An action for a flow that waits for one, a number for each law of its agent; others are left
    /// as they are.
    pub fn act(&mut self, flow: FlowId, action: &[f32]) {
        let Some(decisions) = self.decisions.as_ref().filter(|decisions| decisions.due.contains(&flow)) else { return };
        let now = decisions.now;
        if let Some(Host::Endpoint(endpoint)) = self.hosts.get_mut(flow.sender())
            && let Some((learner, flight)) = endpoint.sender_mut().learner(now)
            && learner.is_external()
        {
            learner.act(&flight, action);
        }
    }

    /// The interval of each learner that is open ends here, without a decision: before the end of
    /// the run, which is the same with it and without.
    pub fn end_intervals(&mut self, now: Time) {
        let World { decisions: Some(decisions), hosts, .. } = self else { return };
        decisions.now = now;
        for decider in &decisions.all {
            if let Some(Host::Endpoint(endpoint)) = hosts.get_mut(decider.flow.sender())
                && let Some((learner, flight)) = endpoint.sender_mut().learner(now)
                && learner.is_open()
            {
                learner.end_interval(&flight);
            }
        }
    }

    /// The actions have been given: those who have decided send, and the run may go on.
    pub fn go_on_after_actions(&mut self) {
        let Some(decisions) = &mut self.decisions else { return };
        if std::mem::take(&mut decisions.is_waiting) {
            self.send_decided();
            self.find_next_edge();
        }
    }

    /// Nothing is handled before `end` unless a decision leads to it: the next one by the clock.
    #[cold]
    pub(super) fn decide_before(&mut self, end: Time) -> Option<Time> {
        let at = self.decisions.as_ref()?.next_at;
        if at >= end {
            return None;
        }
        self.pass_edges(at);
        Some(at)
    }

    /// Ends the decisions: the run is over.
    pub(super) fn end_decisions(&mut self) {
        if let Some(decisions) = &mut self.decisions {
            (decisions.next_at, decisions.is_waiting) = (Time::NEVER, false);
            self.find_next_edge();
        }
    }

    /// Makes the decisions that are due, in the order of their flows.
    #[cold]
    pub(super) fn decide_by_clock(&mut self, now: Time) {
        let World { decisions: Some(decisions), hosts, flows, .. } = self else { return };
        decisions.now = now;
        decisions.due.clear();
        for decider in decisions.all.iter_mut().filter(|decider| decider.at <= now) {
            let Some(tick) = decider.tick else { continue };
            decider.at = if flows[decider.flow].is_finished() { Time::NEVER } else { now + tick };
            let Host::Endpoint(endpoint) = &mut hosts[decider.flow.sender()] else { continue };
            if endpoint.state() == State::Closed {
                continue;
            }
            let Some((learner, flight)) = endpoint.sender_mut().learner(now) else { continue };
            let Some(pause) = learner.agent().decides.pause(flight.srtt) else { continue };
            if learner.is_open() && decider.at < Time::NEVER {
                decider.at = now + pause;
                learner.end_interval(&flight);
                decisions.due.push(decider.flow);
            }
        }
        decisions.next_at = decisions.all.iter().map(|decider| decider.at).min().unwrap_or(Time::NEVER);
        self.decide();
    }

    /// Policies decide. The world waits if there are others, and lets all send otherwise.
    fn decide(&mut self) {
        let World { decisions: Some(decisions), hosts, .. } = self else { return };
        for flow in &decisions.due {
            let Host::Endpoint(endpoint) = &mut hosts[flow.sender()] else { continue };
            let Some((learner, flight)) = endpoint.sender_mut().learner(decisions.now) else { continue };
            if !learner.act_by_policy(&flight) {
                decisions.is_waiting |= decisions.waits_for_actions;
            }
        }
        if decisions.is_waiting {
            // The next step ends there.
            self.next_edge = self.next_edge.min(decisions.now);
        } else {
            self.send_decided();
        }
    }

    /// All who have decided send what they may.
    fn send_decided(&mut self) {
        let Some(decisions) = &mut self.decisions else { return };
        let (due, now) = (std::mem::take(&mut decisions.due), decisions.now);
        for flow in &due {
            self.pump(now, flow.sender(), false);
            if self.turnover.is_some() {
                self.turn_over(now, *flow);
            }
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.due = due;
            decisions.due.clear();
        }
    }

    /// Returns true while the world waits at a decision.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.decisions.as_ref().is_some_and(|decisions| decisions.is_waiting)
    }

    /// A packet stands behind `packet.hop` links of its route. It may bring a decision to its host.
    pub(super) fn forward_to_decision(&mut self, now: Time, packet: Packet) {
        let to = self.routes.behind(RouteId::of_packet(packet.route), packet.hop);
        match (to, &self.decisions) {
            (Err(host), Some(decisions)) if decisions.decides_by_acks(host) => self.arrive_to_decide(now, host, packet),
            _ => self.forward(now, packet),
        }
    }

    fn arrive_to_decide(&mut self, now: Time, host: HostId, packet: Packet) {
        if !self.take_in(now, host, packet) {
            return;
        }
        let is_over = self.flows[host.flow()].is_finished();
        let World { decisions: Some(decisions), hosts, .. } = self else { return };
        let Host::Endpoint(endpoint) = &mut hosts[host] else { return };
        decisions.now = now;
        decisions.due.clear();
        decisions.due.push(host.flow());
        match endpoint.sender_mut().learner(now) {
            Some((learner, flight)) if learner.is_due() && !is_over => {
                learner.end_interval(&flight);
                self.decide();
            }
            _ => self.send_decided(),
        }
    }
}
