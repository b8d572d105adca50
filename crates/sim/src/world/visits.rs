//! A visit to a host: a packet has reached it, or a timer of it is due.
//!
//! Nearly all visits are packets that reach ackclock endpoints and are not recorded. They have a
//! fast path of their own, which does the same as the general one without its checks.

use ackclock_emulator::LinkEvent;
use ackclock_events::Wakeups;
use ackclock_packet::{Class, Flags, Packet, Pool, flow_hash};
use ackclock_tcp::{Acknowledgment, Endpoint};
use ackclock_units::{Ecn, Time};

use super::routes::{RouteTable, RoutedPacket};
use super::{Contents, World};
use crate::direction::LinkDirection;
use crate::flow::Flow;
use crate::host::{Host, range_sent};
use crate::index::{DirectionId, HostId, Identifier, IndexVec, RouteId};
use crate::record::SenderId;

/// What the departure of a plain endpoint's segments takes.
struct Departures<'a> {
    pool: &'a mut Pool<Contents>,
    spare: &'a mut u32,
    routes: &'a RouteTable,
    directions: &'a mut IndexVec<DirectionId, LinkDirection>,
    wakeups: &'a mut Wakeups,
    events: &'a mut Vec<LinkEvent>,
    notes: bool,
}

/// These parts of the world, beside its hosts and flows.
macro_rules! departures {
    ($world:expr) => {
        Departures {
            pool: &mut $world.pool,
            spare: &mut $world.spare,
            routes: &$world.routes,
            directions: &mut $world.directions,
            wakeups: &mut $world.direction_wakeups,
            events: &mut $world.events,
            notes: $world.records.notes,
        }
    };
}

/// The pending segments that have departed.
enum Departed {
    /// All of them; the next deadline is then.
    All(Time),
    /// Some of them.
    Some(Rest),
}

/// What is to be done before others depart.
enum Rest {
    /// The events of a link.
    Events(DirectionId),
    /// A segment whose first link, if there is one, is shown its headers.
    Shown(Ecn),
    /// The end of the connection.
    Ended,
}

impl Departures<'_> {
    /// Sends the pending segments of an endpoint, a sender or a receiver.
    #[inline(always)]
    fn send_all<const SENDER: bool>(
        &mut self,
        now: Time,
        host: HostId,
        endpoint: &mut Endpoint,
        flow: &mut Flow,
    ) -> Departed {
        let mut contents = self.pool.get_mut(*self.spare);
        let mut next = endpoint.transmit(now, &mut contents.segment);
        if let Some(ecn) = next {
            let route = RouteId::of_host(host);
            let direction = match self.routes.behind(route, 0) {
                Ok(direction) if !self.directions[direction].looks() => direction,
                _ => return Departed::Some(Rest::Shown(ecn)),
            };
            let link = &mut self.directions[direction];
            while let Some(ecn) = next {
                let (segment, truth) = (&contents.segment, &mut flow.truth);
                contents.number = if !SENDER {
                    truth.receiver_sent()
                } else if let Some(range) = range_sent(endpoint, segment) {
                    truth.sent(
                        endpoint.sender().stamp(now),
                        range,
                        endpoint.sender().sent_as(),
                        segment.payload.len > 0,
                    )
                } else {
                    0
                };
                let mut packet = Packet {
                    flow_hash: flow.hashes[usize::from(!SENDER)],
                    slot: 0,
                    wire_len: segment.wire_len(),
                    route: route.number(),
                    hop: 1,
                    ecn,
                    class: Class::new(flow.dscp, segment.is_pure_ack()),
                };
                let (spare, free) = self.pool.claim_mut();
                (packet.slot, contents) = (std::mem::replace(self.spare, spare), free);
                link.offer(now, packet, self.events);
                if !self.events.is_empty() || self.notes {
                    self.wakeups.arm(direction.slot(), link.next_due());
                    return Departed::Some(Rest::Events(direction));
                }
                next = endpoint.transmit(now, &mut contents.segment);
            }
            // Mostly other packets arrive before.
            let due = link.next_due();
            if due != self.wakeups.armed_at(direction.slot()) {
                self.wakeups.arm(direction.slot(), due);
            }
        }
        if endpoint.is_finished() && !flow.is_finished() {
            return Departed::Some(Rest::Ended);
        }
        let due = endpoint.next_deadline();
        // As in `pump`.
        Departed::All(if SENDER { due.min(flow.acts_at()) } else { due })
    }
}

impl World {
    /// Returns true if visits to endpoints take the fast path: no flow is recorded, no host is
    /// outside, no host sends over two paths, no link corrupts packets or shares a medium, and all
    /// flows stay.
    pub(super) fn visits_are_plain(&self) -> bool {
        self.outside.is_none()
            && !self.corrupts
            && self.media.is_none()
            && self.turnover.is_none()
            && !self.routes.are_shared()
            && self.records.tcp.is_none()
            && self.records.log.is_none()
            && self.records.captures.as_ref().is_none_or(|captures| !captures.has_hosts())
            && self.records.reordering.as_ref().is_none_or(|places| !places.has_receivers())
    }

    /// A packet has reached its host.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now: Time, host: HostId, packet: &Packet) {
        if !self.is_plain {
            return self.arrive_observed(now, host, *packet);
        }
        if host.is_sender() {
            self.reach_sender(now, host, packet);
        } else {
            self.reach_receiver(now, host, packet);
        }
    }

    fn reach_sender(&mut self, now: Time, host: HostId, packet: &Packet) {
        let Host::Endpoint(endpoint) = &mut self.hosts[host] else {
            return self.arrive_observed(now, host, *packet);
        };
        let flow = &mut self.flows[host.flow()];
        let (arrival, number) = self
            .pool
            .take_in(packet.slot, |contents| (endpoint.input(now, &contents.segment, packet.ecn), contents.number));
        flow.measure_ack(&arrival, || Some(endpoint.sender().cwnd()));
        if endpoint.sender().loss().scoreboard().has_loss_declarations() {
            let truth = &mut flow.truth;
            endpoint
                .sender_mut()
                .scoreboard_mut()
                .loss_declarations()
                .for_each(|declared| truth.declared(now, declared, None));
        }
        if flow.truth.has_losses() {
            flow.truth.sender_received(
                now,
                number,
                endpoint.sender().sequence().acked_bytes(),
                endpoint.sender().rtt().srtt(),
                None,
            );
        }
        if !flow.fill(now, &mut **endpoint) {
            return self.drive_plain(now, host);
        }
        if flow.is_complete(endpoint.sender().sequence().acked_bytes()) {
            flow.complete(now, &self.hosts[host.peer()]);
            self.pump_plain(now, host);
            return;
        }
        match departures!(self).send_all::<true>(now, host, endpoint, flow) {
            Departed::All(due) => self.host_wakeups.arm_by(host.slot(), due),
            Departed::Some(rest) => {
                self.pump_rest(now, host, rest);
            }
        }
    }

    fn reach_receiver(&mut self, now: Time, host: HostId, packet: &Packet) {
        let Host::Endpoint(endpoint) = &mut self.hosts[host] else {
            return self.arrive_observed(now, host, *packet);
        };
        let flow = &mut self.flows[host.flow()];
        flow.measure_packet(now, packet.wire_len, || endpoint.receiver().received());
        let number = self.pool.take_in(packet.slot, |contents| {
            endpoint.input(now, &contents.segment, packet.ecn);
            contents.number
        });
        if number > 0 {
            flow.truth.arrived(now, number, |from, to| endpoint.receiver().holds(from, to), None);
        }
        endpoint.read_arrived(now);
        if flow.has_application() || endpoint.receiver().is_finished() {
            return self.act_on_data(now, host);
        }
        match departures!(self).send_all::<false>(now, host, endpoint, flow) {
            Departed::All(due) => self.host_wakeups.arm_by(host.slot(), due),
            Departed::Some(rest) => {
                self.pump_rest(now, host, rest);
            }
        }
    }

    /// What has reached a sender lets its application do more than fill the send buffer.
    #[inline(never)]
    fn drive_plain(&mut self, now: Time, host: HostId) {
        let (flow, state) = (&mut self.flows[host.flow()], &mut self.hosts[host]);
        flow.drive(now, state);
        if flow.is_complete(state.acked_bytes()) {
            flow.complete(now, &self.hosts[host.peer()]);
        }
        self.pump_plain(now, host);
    }

    /// What has reached a receiver is for an application, or is all that there is.
    #[inline(never)]
    fn act_on_data(&mut self, now: Time, host: HostId) {
        let (flow, state) = (&mut self.flows[host.flow()], &mut self.hosts[host]);
        let peer_finished = state.peer_finished();
        if flow.has_application() {
            flow.receive(now, state);
        }
        if peer_finished && !flow.is_answering() {
            state.close(now);
        }
        self.pump_plain(now, host);
    }

    /// Sends the pending segments of an ackclock endpoint, and notes the end of a transfer. Returns
    /// the time of its next deadline.
    #[inline(never)]
    fn pump_plain(&mut self, now: Time, host: HostId) -> Time {
        loop {
            let Host::Endpoint(endpoint) = &mut self.hosts[host] else { return Time::NEVER };
            let (mut departures, flow) = (departures!(self), &mut self.flows[host.flow()]);
            let departed = if host.is_sender() {
                departures.send_all::<true>(now, host, endpoint, flow)
            } else {
                departures.send_all::<false>(now, host, endpoint, flow)
            };
            match departed {
                Departed::All(due) => {
                    self.host_wakeups.arm_by(host.slot(), due);
                    return due;
                }
                Departed::Some(Rest::Events(direction)) => self.settle_events(direction),
                Departed::Some(rest) => return self.pump_rest(now, host, rest),
            }
        }
    }

    /// The same once some have left.
    #[inline(never)]
    fn pump_rest(&mut self, now: Time, host: HostId, rest: Rest) -> Time {
        match rest {
            Rest::Events(direction) => {
                self.settle_events(direction);
                self.pump_plain(now, host)
            }
            Rest::Shown(ecn) => {
                self.send(now, host, ecn, false);
                self.pump(now, host, false)
            }
            Rest::Ended => {
                self.ended(now, host);
                let due = self.hosts[host].next_deadline(now);
                let due = if host.is_sender() { due.min(self.flows[host.flow()].acts_at()) } else { due };
                self.host_wakeups.arm_by(host.slot(), due);
                due
            }
        }
    }

    /// A packet has reached its host, which may be any.
    #[inline(never)]
    fn arrive_observed(&mut self, now: Time, host: HostId, packet: Packet) {
        if !self.take_in(now, host, packet) {
            return;
        }
        self.pump(now, host, false);
        if self.turnover.is_some() {
            self.turn_over(now, host.flow());
        }
    }

    /// Passes a packet to its host, of any kind. Returns false if there is nothing to send in
    /// reply, because the host is no end of a connection or has discarded the packet.
    #[inline(always)]
    pub(super) fn take_in(&mut self, now: Time, host: HostId, packet: Packet) -> bool {
        if self.routes.are_shared() {
            self.catch_up_paths(now, host.peer());
        }
        if self.leaves(host) {
            self.leave(now, host, packet);
            return false;
        }
        self.capture(now, host, true, packet);
        if packet.class.is_corrupted() {
            self.discard_corrupted(now, host, packet);
            return false;
        }
        self.reaches_host(now, host, packet);
        if let Host::Datagrams(_) = self.hosts[host] {
            self.take_datagram(now, host, packet);
            return false;
        }
        let path = self.routes.path_of(RouteId::of_packet(packet.route));
        if let Some(log) = &mut self.records.log {
            log.segment(now, (host, &self.hosts[host]), (path, &self.pool.get(packet.slot).segment), true);
        }
        if let Some(turnover) = &mut self.turnover {
            turnover.reached(host.flow());
        }
        let Contents { segment, number } = self.pool.get(packet.slot);
        if !host.is_sender() {
            let receiver = &self.hosts[host];
            self.flows[host.flow()].measure_packet_of(now, path, packet.wire_len, || receiver.received_bytes());
        }
        let (arrival, number) = (self.hosts[host].input(now, path, segment, packet.ecn), *number);
        self.outside.iter_mut().for_each(|outside| outside.free(&self.pool, packet.slot));
        self.pool.release(packet.slot);
        if host.is_sender() {
            self.take_ack(now, host, (path, number), &arrival);
        } else {
            let (flow, state) = (&mut self.flows[host.flow()], &mut self.hosts[host]);
            if number > 0 {
                flow.arrived(now, (path, number), state, self.records.tcp.as_deref_mut());
            }
            state.read_all(now);
            if flow.has_application() {
                flow.receive(now, state);
            }
            if state.peer_finished() && !flow.is_answering() {
                // The sink has nothing to say: it closes when its peer has.
                state.close(now);
            }
        }
        self.attend(now, host.flow(), (!host.is_sender()).then_some(packet.wire_len));
        true
    }

    /// A packet has reached a sender over a path, which has taken it in.
    #[inline]
    fn take_ack(&mut self, now: Time, host: HostId, (path, number): (usize, u64), arrival: &Acknowledgment) {
        let (flow, state) = (&mut self.flows[host.flow()], &mut self.hosts[host]);
        let mut log = self.records.tcp.as_deref_mut();
        flow.measure_ack_of(path, arrival, state);
        match state {
            Host::Endpoint(endpoint) => {
                if let Some(log) = &mut self.records.log {
                    log.acknowledged(now, host.flow(), endpoint);
                }
                if let Some(log) = log.as_deref_mut().filter(|_| arrival.is_ack) {
                    log.acknowledged(now, SenderId::of(host.flow()), endpoint, arrival, 0);
                }
                for declared in endpoint.sender_mut().scoreboard_mut().loss_declarations() {
                    flow.truth.declared(now, declared, log.as_deref_mut());
                }
            }
            Host::Mptcp(connection) => {
                if let Some(log) = &mut self.records.log {
                    log.acknowledged_over(now, host.flow(), path, connection);
                }
                if let Some(subflows) = &mut flow.subflows {
                    subflows.take_ack(now, (path, number), arrival, connection, log.as_deref_mut());
                }
            }
            Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => {}
        }
        if flow.truth.has_losses() {
            flow.truth.sender_received(now, number, state.acked_bytes(), state.srtt(), log);
        }
        flow.drive(now, state);
        if flow.is_complete(state.acked_bytes()) {
            flow.complete(now, &self.hosts[host.peer()]);
        }
    }

    /// Catches up the links of all paths of a sender: the meaning of a packet that arrives over one
    /// path depends on earlier events on the others.
    #[cold]
    fn catch_up_paths(&mut self, now: Time, sender: HostId) {
        let Some(routes) = self.routes.several(sender) else { return };
        for route in routes.map(RouteId::new) {
            for hop in 0..self.routes.links(route).len() {
                let direction = self.routes.links(route)[hop];
                self.catch_up_direction(now, direction);
            }
        }
    }

    /// A timer of a host, or its application's, is due.
    #[inline(never)]
    pub(super) fn serve_host(&mut self, now: Time, host: HostId) {
        if !self.metrics.is_empty() {
            self.recall(host);
        }
        if self.is_plain && self.serve_plain(now, host) {
            return;
        }
        let state = &mut self.hosts[host];
        if let Host::Datagrams(_) = state {
            return self.serve_datagrams(now, host);
        }
        let by_timer = state.next_deadline(now) <= now;
        if by_timer {
            state.on_deadline(now);
        }
        if host.is_sender() {
            let flow = &mut self.flows[host.flow()];
            match (&mut *state, &mut flow.subflows) {
                (Host::Endpoint(endpoint), _) => {
                    for declared in endpoint.sender_mut().scoreboard_mut().loss_declarations() {
                        flow.truth.declared(now, declared, self.records.tcp.as_deref_mut());
                    }
                    if let (Some(log), true) = (&mut self.records.tcp, by_timer) {
                        log.expired(now, SenderId::of(host.flow()), endpoint);
                    }
                }
                (Host::Mptcp(connection), Some(subflows)) => {
                    subflows.take_declarations(now, connection, self.records.tcp.as_deref_mut());
                    if let (Some(log), true) = (&mut self.records.tcp, by_timer) {
                        subflows.expired(now, connection, log);
                    }
                }
                _ => {}
            }
            flow.drive(now, state);
        }
        self.attend(now, host.flow(), None);
        let due = self.pump(now, host, by_timer);
        self.host_wakeups.arm(host.slot(), due);
        if self.turnover.is_some() {
            self.turn_over(now, host.flow());
        }
    }

    /// The same for an ackclock endpoint whose visits take the fast path. Returns false, with
    /// nothing done, for any other host.
    #[inline(never)]
    fn serve_plain(&mut self, now: Time, host: HostId) -> bool {
        let Host::Endpoint(endpoint) = &mut self.hosts[host] else { return false };
        let flow = &mut self.flows[host.flow()];
        let due = endpoint.next_deadline();
        if due <= now {
            endpoint.on_deadline(now);
        } else if !host.is_sender() && !flow.has_application() {
            // A wakeup that came early: a receiver has nothing to say that it has not said.
            self.host_wakeups.arm(host.slot(), due);
            return true;
        }
        if host.is_sender() {
            let truth = &mut flow.truth;
            endpoint
                .sender_mut()
                .scoreboard_mut()
                .loss_declarations()
                .for_each(|declared| truth.declared(now, declared, None));
            flow.drive(now, &mut self.hosts[host]);
        }
        let due = self.pump_plain(now, host);
        self.host_wakeups.arm(host.slot(), due);
        true
    }

    /// Sends a host's pending packets, and notes the end of a transfer. `by_timer` is true if a
    /// timer was due. Returns the time of its next deadline.
    pub(super) fn pump(&mut self, now: Time, host: HostId, by_timer: bool) -> Time {
        while let Some(ecn) = self.hosts[host].transmit(now, &mut self.pool.get_mut(self.spare).segment) {
            self.send(now, host, ecn, by_timer);
        }
        let flow = host.flow();
        if !self.flows[flow].is_finished() && self.hosts[host].is_finished() {
            self.ended(now, host);
        }
        // Deadlines mostly move back; a wakeup that comes too early costs less than moving it each
        // time.
        let state = &self.hosts[host];
        if let (Host::Mptcp(connection), Some(subflows)) = (state, &mut self.flows[flow].subflows)
            && host.is_sender()
        {
            subflows.note_limits(now, connection);
        }
        let due = state.next_deadline(now);
        let due = if host.is_sender() { due.min(self.flows[flow].acts_at()) } else { due };
        self.host_wakeups.arm_by(host.slot(), due);
        due
    }

    fn send(&mut self, now: Time, host: HostId, ecn: Ecn, by_timer: bool) {
        let contents = self.pool.get_mut(self.spare);
        if let Some(log) = &mut self.records.log {
            // The path of what leaves, its host knows.
            log.segment(now, (host, &self.hosts[host]), (0, &contents.segment), false);
        }
        let flow = &mut self.flows[host.flow()];
        let state = &self.hosts[host];
        let ends = [state, &self.hosts[host.peer()]];
        contents.number = flow.sent(now, host.is_sender(), ends, &contents.segment, by_timer);
        let wire_len = contents.segment.wire_len();
        let class = Class::new(flow.dscp, contents.segment.is_pure_ack());
        let number = match &mut self.turnover {
            Some(turnover) => turnover.left(host.flow()),
            None => host.flow().index() as u64,
        };
        let flow_hash = flow_hash(number, !host.is_sender());
        let is_handshake = || contents.segment.flags.contains(Flags::SYN);
        let route = match state {
            Host::Mptcp(connection) => self.routes.of(host, connection.last_path()),
            _ => {
                let continues = state.continues_unit() && contents.segment.payload.len > 0;
                self.routes.next(host, RoutedPacket { now, flow_hash, continues, is_handshake })
            }
        };
        let packet = Packet {
            flow_hash,
            slot: std::mem::replace(&mut self.spare, self.pool.claim()),
            wire_len,
            route: route.number(),
            hop: 0,
            ecn,
            class,
        };
        self.capture(now, host, false, packet);
        match &self.outside {
            Some(outside) if wire_len > outside.mtu(host) => self.refuse(now, host, packet),
            _ => self.forward(now, packet),
        }
    }
}
