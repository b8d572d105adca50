//! The loop over a run's components; the crate's page has the picture and the invariants.
//!
//! [`World::step`] takes the earliest wakeup:
//!
//! ```text
//! direction: serve_direction -> LinkDirection::deliver -> forward -> offer  (next direction)
//!                                                              \--> arrive (host)
//! host:      serve_host -> timers and application -> pump -> send -> offer (first direction)
//! every link call:           settle: drops, losses and duplicates free or retain slots
//! before a wakeup's time:    pass_edges: windows, intervals of series, decisions by the clock
//! ```
//!
//! A link works lazily: it dequeues when it is called, and reports events in `events`. `settle`
//! handles them before anything else happens, so that `events` is empty between calls. Statistics
//! at a time first catch up all links to it (`catch_up`).
//!
//! Submodules: `visits` (packets and timers at hosts), `routes` (paths and splits), `outside`
//! (hosts behind devices or captures), `turnover` and `workload` (flows that come and go),
//! `browsers` and `netperf` (clients that open connections), `decisions` (learners), `medium`
//! (shared media), `corruption`, `reordering`, `metrics` (caches of destinations), `records`,
//! `look`, `steer`, `summary`, and `ahead` (prefetching). `about` and `contents` are what they share.

use std::ops::ControlFlow;

use ackclock_emulator::{LinkEvent, LinkEventKind};
use ackclock_events::Wakeups;
use ackclock_packet::{Packet, Pool};
use ackclock_tcp::Metrics;
use ackclock_units::{Random, Time};

use crate::build::{self, Streams};
use crate::capture::CapturedContent;
use crate::direction::LinkDirection;
use crate::error::RunError;
use crate::flow::Flow;
use crate::host::Host;
use crate::index::{DirectionId, FlowId, HostId, Identifier, IndexVec, RouteId};
use crate::record::Recorders;
use crate::reordering::Reorderings;
use crate::spec::{LinkSpec, RunSpec, Ties};
use crate::truth::{Culprit, LOST_ON_LINK, Reason};
use crate::window::Windows;
use about::About;
use ahead::MANY;
use autorate::Autorates;
use contents::{Contents, lose_at_places, lose_datagram};
use decisions::Decisions;
pub use look::Lookout;
use medium::Media;
use outside::OutsideHosts;
pub use outside::{Inbound, Outbound};
use records::RunRecords;
use routes::RouteTable;
pub use steer::Helm;
use turnover::Turnover;

mod about;
mod ahead;
mod autorate;
mod browsers;
mod contents;
mod corruption;
mod datagrams;
mod decisions;
mod headers;
mod look;
mod medium;
mod metrics;
mod netperf;
mod outside;
mod records;
mod reordering;
mod routes;
mod steer;
mod summary;
mod turnover;
mod visits;
mod workload;

/// Wakeups between two calls of the progress hook.
const PROGRESS_INTERVAL: u64 = 1 << 16;
/// Hosts whose data is checked at each call of the hook.
const CHECKED_AT_ONCE: usize = 1 << 10;

/// A run in progress.
///
/// Components are numbered: link directions, two for each link, forward and reverse; and hosts, two
/// for each flow, sender and receiver. Wakeups of directions come before those of hosts due at the
/// same time, and each kind in the order of [`Ties`].
///
/// [`World::run`] runs to the end. Otherwise call [`World::start`], then [`World::step`] until it
/// returns `None`, with [`World::keep_up`] after each step for records, then [`World::complete`]
/// and [`World::into_summary`].
#[derive(Debug)]
pub struct World {
    about: About,
    end: Time,
    /// Wakeups of directions, which at equal times go before those of hosts, then those of hosts.
    direction_wakeups: Wakeups,
    host_wakeups: Wakeups,
    handled: u64,
    directions: IndexVec<DirectionId, LinkDirection>,
    hosts: IndexVec<HostId, Host>,
    routes: RouteTable,
    flows: IndexVec<FlowId, Flow>,
    pool: Pool<Contents>,
    /// Unhandled events of the link last called; empty between calls.
    events: Vec<LinkEvent>,
    /// The slot of the next packet that is sent.
    spare: u32,
    records: RunRecords,
    windows: Windows,
    /// Time of the next edge: a window starts or ends, an interval of a series ends, or a sender
    /// decides.
    next_edge: Time,
    /// Hosts outside; `None` without any.
    outside: Option<Box<OutsideHosts>>,
    /// Flows that come and go; `None` if all stay.
    turnover: Option<Box<Turnover>>,
    /// Memories of destinations that hosts keep.
    metrics: Vec<Metrics>,
    /// Media that the directions of links share; `None` if there are none.
    media: Option<Box<Media>>,
    /// Shapers whose rate follows probes; `None` if there are none.
    autorates: Option<Box<Autorates>>,
    /// Senders that learn, or have learned; `None` if there are none.
    decisions: Option<Box<Decisions>>,
    /// Visits to endpoints take the fast path.
    is_plain: bool,
    /// Packets that leave links are examined, or the links share media.
    attends_links: bool,
    /// Links corrupt packets.
    corrupts: bool,
    /// The state of the next packets' endpoints is prefetched.
    looks_ahead: bool,
    /// The books of queue disciplines from outside are checked at the end.
    audits: bool,
    /// The host last checked.
    checked: usize,
}

impl World {
    /// A world at time 0.
    pub fn new(spec: &RunSpec) -> World {
        let directions: IndexVec<DirectionId, LinkDirection> =
            spec.links.iter().flat_map(|link| build::directions(spec, link)).collect();
        let mut settings = build::SharedConfigs::default();
        let hosts_of = |flow| build::hosts(Streams::of(spec), flow, &mut settings);
        let hosts: IndexVec<HostId, Host> = spec.flows.iter().flat_map(hosts_of).collect();
        let mut routes = RouteTable::new(spec);
        let flows = build::flows(spec);
        let outside = OutsideHosts::new(spec, &hosts, &mut routes);
        let listed = 2 * spec.links.iter().filter(|link| !link.is_interface).count();
        let windows = Windows::new(&spec.windows, spec.flows.len(), listed);
        let mut pool = Pool::new();
        let ties = match spec.ties {
            Ties::Random => Random::for_component(spec.seed, spec.run, "ties").bits() | 1,
            Ties::Fixed => 0,
        };
        let mut world = World {
            about: About::new(spec),
            end: Time::ZERO + spec.duration,
            direction_wakeups: Wakeups::with_slots(directions.len()).with_ties(ties),
            host_wakeups: Wakeups::with_slots(hosts.len()).with_ties(ties),
            handled: 0,
            directions,
            hosts,
            routes,
            flows,
            spare: pool.insert(Contents::default()),
            pool,
            events: Vec::new(),
            records: RunRecords::default(),
            next_edge: windows.next_edge(),
            windows,
            outside,
            turnover: Turnover::new(spec),
            metrics: build::memories(spec),
            media: Media::new(spec),
            autorates: Autorates::new(spec),
            decisions: Decisions::new(spec),
            is_plain: false,
            attends_links: false,
            corrupts: spec.corrupts(),
            audits: spec.links.iter().any(LinkSpec::has_own_queue),
            looks_ahead: spec.flows.len() >= MANY,
            checked: (2 * spec.flows.len()).saturating_sub(1),
        };
        world.flows.ids().for_each(|flow| world.prepare(Time::ZERO, flow));
        world.begin_turnover();
        let reordering = spec.reordering.as_ref();
        world.records.reordering = reordering.map(|places| Reorderings::new(places, spec.flows.len()).into());
        world.is_plain = world.visits_are_plain();
        world.attends_links = world.has_to_attend_links();
        world.find_next_edge();
        world
    }

    /// Arms the wakeups of a new flow, whose ends wait for its start.
    fn prepare(&mut self, now: Time, flow: FlowId) {
        let [sender, receiver] = [flow.sender(), flow.receiver()];
        self.hosts[receiver].listen();
        match &mut self.hosts[sender] {
            Host::Endpoint(endpoint) => endpoint.sender_mut().scoreboard_mut().observe_losses(),
            Host::Mptcp(connection) => connection.observe_losses(),
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => {}
        }
        let due = self.hosts[sender].next_deadline(now).min(self.flows[flow].acts_at());
        self.host_wakeups.arm(sender.slot(), due);
        self.host_wakeups.arm(receiver.slot(), self.hosts[receiver].next_deadline(now));
    }

    /// Runs to the end of the scenario.
    ///
    /// # Errors
    /// Corrupted data, a failure of an algorithm from outside, too many flows at a time, or an
    /// interruption by `progress` or a recorder.
    ///
    /// # Panics
    /// A direction to record does not exist, or its packets were not recorded from the first one
    /// on.
    pub fn run(
        &mut self,
        mut recorders: Recorders<'_>,
        progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        self.start(&recorders);
        while let Some(now) = self.step(self.end) {
            self.keep_up(now, &mut recorders)?;
            if self.handled.is_multiple_of(PROGRESS_INTERVAL) {
                self.check_some_data()?;
                if progress(now).is_break() {
                    return Err(RunError::Interrupted);
                }
            }
        }
        self.complete(&mut recorders)
    }

    /// Catches up the sending side of every link to `now`.
    fn catch_up(&mut self, now: Time) {
        self.directions.ids().for_each(|direction| self.catch_up_direction(now, direction));
    }

    /// Catches up the sending side of a link direction to `now`.
    fn catch_up_direction(&mut self, now: Time, direction: DirectionId) {
        if self.media.is_some() {
            self.share_medium(now, direction);
        }
        self.directions[direction].catch_up(now, &mut self.events);
        self.settle(direction);
    }

    /// Ends the run: completes the transmissions that ended since the last arrival, and judges
    /// every transmission. Packets due at the end or later have not arrived.
    fn finish(&mut self) {
        self.catch_up(self.end);
        for flow in self.flows.iter_mut() {
            flow.finish_truth(self.end, self.records.tcp.as_deref_mut());
        }
    }

    /// Handles the next wakeup if it is due before `end`, and returns its time.
    #[inline(always)]
    pub fn step(&mut self, end: Time) -> Option<Time> {
        let (of_directions, of_hosts) = (self.direction_wakeups.next_at(), self.host_wakeups.next_at());
        let now = of_directions.min(of_hosts);
        if now >= end {
            return self.decide_before(end);
        }
        if now >= self.next_edge {
            self.pass_edges(now);
            if self.next_edge <= now {
                return Some(self.next_edge);
            }
        }
        self.handled += 1;
        // The wakeup stays armed until it is rearmed.
        if of_directions <= of_hosts {
            self.serve_direction(now, DirectionId::of_slot(self.direction_wakeups.next_slot()));
        } else {
            let slot = match &self.turnover {
                None => self.host_wakeups.next_slot(),
                Some(turnover) => self.host_wakeups.next_slot_by(|slot| turnover.rank(slot)),
            };
            self.serve_host(now, HostId::of_slot(slot));
        }
        Some(now)
    }

    /// Ends the intervals of series that end until `now`, without a wakeup until then. A caller
    /// that is idle for long calls it so that watchers see time pass.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        if now >= self.next_edge {
            self.pass_edges(now);
        }
    }

    /// Handles the edges until `now`: starts and ends of windows, ends of intervals, decisions by
    /// the clock. All earlier wakeups have been handled. Stops early once many rows of the series
    /// are buffered, or the world waits for an action.
    #[cold]
    fn pass_edges(&mut self, now: Time) {
        while self.next_edge <= now && !self.is_waiting() {
            let at = self.next_edge;
            if self.is_measured(at) {
                self.measure(at);
            }
            self.find_next_edge();
            if self.decisions.as_ref().is_some_and(|decisions| decisions.next_at <= at) {
                self.decide_by_clock(at);
                // The decision may have changed the next wakeup: restart the step.
                self.next_edge = at;
                break;
            }
            if self.records.has_full_series() {
                break;
            }
        }
    }

    /// Updates the time of the next edge.
    fn find_next_edge(&mut self) {
        let decisions = self.decisions.as_ref().map_or(Time::NEVER, |decisions| decisions.next_at);
        let others = self.windows.next_edge().min(decisions);
        self.next_edge = self.records.all_series().map(|series| series.next_edge()).fold(others, Time::min);
    }

    /// Returns true if a window starts or ends, or an interval of a series ends, by `at`.
    fn is_measured(&mut self, at: Time) -> bool {
        self.windows.next_edge() <= at || self.records.all_series().any(|series| series.next_edge() <= at)
    }

    /// Takes the measurements of windows that start or end, and of intervals that end, by `at`.
    fn measure(&mut self, at: Time) {
        self.catch_up(at);
        let passing = self.passing_packets();
        let groups = if self.records.has_series() { self.passing_counts() } else { Vec::new() };
        let World { windows, records, flows, hosts, directions, .. } = self;
        while windows.next_edge() <= at {
            windows.pass(flows, hosts, directions, passing);
        }
        for series in records.all_series() {
            if series.next_edge() <= at {
                series.pass(flows, hosts, &groups, directions);
            }
        }
    }

    /// Checks the data of the next few hosts in turn, so that the cost does not grow with their
    /// number, and that no algorithm from outside has failed.
    ///
    /// # Errors
    /// The first fault.
    #[cold]
    pub fn check_some_data(&mut self) -> Result<(), RunError> {
        match self.check_turnover() {
            // The run ends, and reports it then.
            Ok(()) | Err(RunError::TooMany { .. }) => {}
            failed => return failed,
        }
        self.check_queues()?;
        let hosts = self.hosts.len();
        for _ in 0..hosts.min(CHECKED_AT_ONCE) {
            self.checked = (self.checked + 1) % hosts;
            self.check_host(HostId::new(self.checked))?;
        }
        Ok(())
    }

    /// Checks that no queue discipline from outside has failed.
    fn check_queues(&self) -> Result<(), RunError> {
        self.directions.iter().try_for_each(LinkDirection::check)
    }

    fn check_data(&mut self) -> Result<(), RunError> {
        if self.audits {
            // As the summary does.
            self.catch_up(self.end);
            self.directions.iter_mut().for_each(|direction| direction.audit(self.end));
        }
        self.check_queues()?;
        self.check_turnover()?;
        self.hosts.ids().try_for_each(|host| self.check_host(host))
    }

    fn check_host(&self, host: HostId) -> Result<(), RunError> {
        self.hosts[host].check(&self.flows[host.flow()].id)
    }

    /// Handles the packets that have arrived at the far end of a link direction.
    fn serve_direction(&mut self, now: Time, direction: DirectionId) {
        if self.attends_links {
            return self.serve_attended(now, direction);
        }
        while let Some((at, packet)) = self.directions[direction].deliver(now, &mut self.events) {
            self.settle(direction);
            if self.looks_ahead {
                self.look_ahead(direction);
            }
            match self.routes.behind(RouteId::of_packet(packet.route), packet.hop) {
                Ok(_) => self.forward(at, packet),
                Err(host) => self.arrive(at, host, &packet),
            }
            let due = self.directions[direction].next_due();
            if due > now {
                self.direction_wakeups.arm(direction.slot(), due);
                return;
            }
        }
        self.settle(direction);
        self.rearm_direction(direction);
    }

    #[inline]
    fn rearm_direction(&mut self, direction: DirectionId) {
        let due = self.directions[direction].next_due();
        self.direction_wakeups.arm(direction.slot(), due);
    }

    /// Passes a packet behind `packet.hop` links of its route to the next one, or to its host.
    fn forward(&mut self, now: Time, mut packet: Packet) {
        match self.routes.behind(RouteId::of_packet(packet.route), packet.hop) {
            Ok(next) => {
                packet.hop += 1;
                self.offer(now, next, packet);
            }
            Err(host) => self.arrive(now, host, &packet),
        }
    }

    fn offer(&mut self, now: Time, direction: DirectionId, packet: Packet) {
        if self.directions[direction].looks() {
            self.show(direction, &packet);
        }
        if self.media.is_some() {
            return self.offer_on_medium(now, direction, packet);
        }
        let link = &mut self.directions[direction];
        link.offer(now, packet, &mut self.events);
        self.direction_wakeups.arm(direction.slot(), link.next_due());
        self.settle(direction);
    }

    /// Handles the events of a link: records them, and frees packets that will not arrive.
    #[inline]
    fn settle(&mut self, direction: DirectionId) {
        if !self.events.is_empty() || self.records.notes {
            self.settle_events(direction);
        }
    }

    #[cold]
    fn settle_events(&mut self, direction: DirectionId) {
        if self.records.notes {
            self.note(direction);
        }
        let World { events, pool, flows, hosts, routes, records, outside, turnover, .. } = self;
        for event in &*events {
            let (packet, reason, probability) = match event.kind {
                LinkEventKind::Offered | LinkEventKind::Sent { .. } | LinkEventKind::Corrupted { .. } => continue,
                LinkEventKind::Dropped { packet, reason, probability } => (packet, Reason::Queue(reason), probability),
                LinkEventKind::Lost { packet, probability } => (packet, Reason::Link, probability),
                LinkEventKind::Duplicated { packet } => {
                    if let Some(turnover) = turnover {
                        turnover.left(routes.to(RouteId::of_packet(packet.route)).flow());
                    }
                    pool.retain(packet.slot);
                    continue;
                }
            };
            let to = routes.to(RouteId::of_packet(packet.route));
            if let (LinkEventKind::Lost { .. }, Some(captures)) = (event.kind, &mut records.captures) {
                let is_datagram = matches!(hosts.get(to), Some(Host::Datagrams(_)));
                let content = CapturedContent::new(to.peer(), &pool.get(packet.slot).segment, &packet, is_datagram);
                captures.lost(event.at, direction, LOST_ON_LINK, content);
            }
            if let Some(turnover) = turnover {
                turnover.lost(to.flow());
            }
            let number = pool.get(packet.slot).number;
            // A doubled packet may still arrive.
            let last = pool.references(packet.slot) == 1;
            if let Some(outside) = outside {
                outside.free(pool, packet.slot);
            }
            if let Some(places) = records.reordering.as_mut().filter(|_| last) {
                lose_at_places(places, hosts, flows, (event.at, to), pool.get(packet.slot));
            }
            if let Some(Host::Datagrams(_)) = hosts.get(to) {
                if last {
                    lose_datagram(hosts, to, pool.get(packet.slot));
                }
                pool.release(packet.slot);
                continue;
            }
            if to.node(hosts).is_none() && !to.is_sender() && number > 0 && last {
                let culprit = Culprit::new(Some(direction), reason, probability);
                let path = routes.path_of(RouteId::of_packet(packet.route));
                flows[to.flow()].lost(event.at, (path, number), culprit, records.tcp.as_deref_mut());
            }
            pool.release(packet.slot);
        }
        events.clear();
    }

    /// Records the decisions of a link's queue while the packets' contents exist.
    #[cold]
    fn note(&mut self, direction: DirectionId) {
        let World { records, directions, pool, hosts, routes, .. } = self;
        for decision in directions[direction].recorded().decisions() {
            let segment = &pool.get(decision.packet.slot).segment;
            if let Some(recording) = &mut records.queues {
                recording.add(direction, decision, segment.payload);
            }
            if let Some(captures) = &mut records.captures {
                let to = routes.to(RouteId::of_packet(decision.packet.route));
                let is_datagram = matches!(hosts.get(to), Some(Host::Datagrams(_)));
                captures.decision(
                    direction,
                    &decision,
                    CapturedContent::new(to.peer(), segment, &decision.packet, is_datagram),
                );
            }
        }
    }
}
