//! A listening socket: half-open connections, and complete ones that wait to be accepted, or that
//! were opened by their SYN.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::connection::fast_open::{EarlyConnections, JudgedCookie, Opening};
use crate::{
    AccEcnOption, AcceptOverflow, Config, Endpoint, FastOpenServer, IcmpError, Ports, SocketOption, State, reset_for,
};

/// The random numbers of a new connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Initial sequence number.
    pub isn: u32,
    /// Start of the timestamp clock.
    pub ts_offset: u32,
}

/// A listening socket.
///
/// Every SYN makes a child, which is an [`Endpoint`] in SYN-RECEIVED with the settings that the
/// listener has then. It is driven as an endpoint is: [`Listener::input`] takes the segments to its
/// port that belong to no accepted connection, [`Listener::transmit`] and the deadlines serve all
/// its children. A complete child waits until [`Listener::accept`] gives it away; from then on its
/// segments are the caller's.
pub struct Listener {
    config: Arc<Config>,
    make_cc: Box<dyn FnMut() -> Box<dyn CongestionControl> + Send>,
    numbers: Box<dyn FnMut() -> Numbers + Send>,
    port: u16,
    backlog: usize,
    /// SYN-RECEIVED, in the order of the SYNs.
    half_open: Vec<Endpoint>,
    /// Complete, or opened by their SYN, in that order.
    ready: VecDeque<Endpoint>,
    replies: VecDeque<Segment>,
    fast_open: Option<FastOpenServer>,
    early: EarlyConnections,
    open: bool,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("port", &self.port)
            .field("backlog", &self.backlog)
            .field("half_open", &self.half_open)
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// Listens on `port`. `backlog` is that of listen(2); `make_cc` makes a child's controller,
    /// `numbers` what it draws.
    pub fn new(
        config: impl Into<Arc<Config>>,
        make_cc: Box<dyn FnMut() -> Box<dyn CongestionControl> + Send>,
        port: u16,
        backlog: usize,
        numbers: Box<dyn FnMut() -> Numbers + Send>,
    ) -> Listener {
        Listener {
            config: config.into(),
            make_cc,
            numbers,
            port,
            backlog,
            half_open: Vec::new(),
            ready: VecDeque::new(),
            replies: VecDeque::new(),
            fast_open: None,
            early: EarlyConnections::default(),
            open: true,
        }
    }

    /// The settings that children inherit from now on.
    pub fn config_mut(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }

    /// Changes when the AccECN option is sent, for all children that were not accepted yet too.
    pub fn set_acc_ecn_option(&mut self, option: AccEcnOption, beacon: u32) {
        let rules = &mut self.config_mut().transfer.acc_ecn;
        (rules.option, rules.beacon) = (option, beacon);
        for child in self.half_open.iter_mut().chain(&mut self.ready) {
            child.set_option(SocketOption::AccEcnOption(option, beacon));
        }
    }

    /// Another backlog, as a second listen(2) sets it.
    pub fn set_backlog(&mut self, backlog: usize) {
        self.backlog = backlog;
    }

    /// TCP Fast Open (RFC 7413): data that comes with a SYN is taken in from now on, or no longer.
    pub fn set_fast_open(&mut self, server: Option<FastOpenServer>) {
        let penalty = server.as_ref().and_then(|server| server.penalty);
        self.early.set_penalty(penalty);
        self.fast_open = server;
    }

    /// The oldest complete connection, or one that was opened by its SYN.
    pub fn accept(&mut self) -> Option<Endpoint> {
        let mut child = self.ready.pop_front()?;
        child.opening_mut().accept();
        Some(child)
    }

    /// POLLIN of a listening socket: whether there is a connection to accept.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Half-open connections.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Connections that wait to be accepted.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns `true` if the segment is for a child: it belongs to no other connection.
    pub fn has_child(&self, segment: &Segment) -> bool {
        let port = segment.source_port;
        self.half_open.iter().chain(&self.ready).any(|child| child.is_at(port))
    }

    /// Takes in a segment to the listener's port that belongs to no connection that was accepted.
    pub fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        let port = segment.source_port;
        if let Some(at) = self.half_open.iter().position(|child| child.is_at(port)) {
            self.input_half_open(now, at, segment, ecn);
        } else if let Some(child) = self.ready.iter_mut().find(|child| child.is_at(port)) {
            child.input(now, segment, ecn);
        } else {
            self.input_new(now, segment, ecn);
        }
    }

    fn input_half_open(&mut self, now: Time, at: usize, segment: &Segment, ecn: Ecn) {
        if self.config.states.defer_accept > 0 && self.half_open[at].defers(now, segment) {
            return;
        }
        if self.is_full() && self.half_open[at].completes(segment) {
            match self.config.states.accept_overflow {
                AcceptOverflow::Drop => return,
                AcceptOverflow::Reset => {
                    self.replies.extend(reset_for(segment));
                    self.half_open.remove(at);
                    return;
                }
            }
        }
        self.half_open[at].input(now, segment, ecn);
        match self.half_open[at].state() {
            State::SynReceived => {}
            State::Closed => {
                self.half_open.remove(at);
            }
            _ => {
                let child = self.half_open.remove(at);
                self.ready.push_back(child);
            }
        }
    }

    /// Takes in an ICMP error that quotes a segment to `remote` from the listener's port, of a
    /// connection that was not accepted. Call [`Listener::transmit`] afterwards.
    pub fn icmp(&mut self, now: Time, remote: u16, error: &IcmpError) {
        for child in self.half_open.iter_mut().chain(&mut self.ready).filter(|child| child.is_at(remote)) {
            child.icmp(now, error);
        }
        self.half_open.retain(|child| child.state() != State::Closed);
    }

    fn input_new(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if !self.open {
            self.replies.extend(reset_for(segment));
            return;
        }
        let flags = segment.flags;
        if flags.contains(Flags::RST) {
            return;
        }
        if flags.contains(Flags::ACK) {
            // RFC 9293 section 3.10.7.2, second check.
            if !(flags.contains(Flags::SYN) && self.config.states.listen_drops_syn_ack) {
                self.replies.extend(reset_for(segment));
            }
            return;
        }
        let drops = self.is_full() && self.config.states.accept_overflow == AcceptOverflow::Drop;
        if flags.contains(Flags::SYN) && !drops && self.half_open.len() < self.config.states.syn_queue {
            let numbers = (self.numbers)();
            self.open_child(now, segment, ecn, numbers);
        }
    }

    /// Takes in a SYN that takes the place of a connection in TIME-WAIT, with the least initial
    /// sequence number that [`Endpoint::yields_to`] gave: the new number lies within 2^16 above it.
    pub fn input_reopening(&mut self, now: Time, segment: &Segment, ecn: Ecn, least: u32) {
        if !self.open || self.is_full() || self.half_open.len() >= self.config.states.syn_queue {
            return;
        }
        let numbers = (self.numbers)();
        let isn = least.wrapping_add(numbers.isn & 0xffff);
        self.open_child(now, segment, ecn, Numbers { isn, ..numbers });
    }

    fn open_child(&mut self, now: Time, segment: &Segment, ecn: Ecn, numbers: Numbers) {
        let ports = Ports { local: self.port, remote: segment.source_port };
        let mut child =
            Endpoint::new(Arc::clone(&self.config), (self.make_cc)(), ports, numbers.isn, numbers.ts_offset);
        child.listen();
        child.input(now, segment, ecn);
        if child.state() != State::SynReceived {
            return;
        }
        match self.judge(now, segment) {
            JudgedCookie::Early(reply) => {
                child.open_early(now, segment, reply, &self.early);
                self.ready.push_back(child);
            }
            JudgedCookie::Ordinary(reply) => {
                *child.opening_mut() = Opening::of_server(reply);
                self.half_open.push(child);
            }
        }
    }

    fn judge(&self, now: Time, segment: &Segment) -> JudgedCookie {
        match &self.fast_open {
            // Its child would find no place (FreeBSD `sonewconn`).
            Some(_) if self.is_full() => JudgedCookie::Ordinary(None),
            Some(server) => server.judge(now, segment, &self.early),
            None => JudgedCookie::Ordinary(None),
        }
    }

    /// Linux lets one more in than the backlog says (`sk_acceptq_is_full`), FreeBSD half as many
    /// (`sonewconn`).
    fn is_full(&self) -> bool {
        match self.config.states.accept_overflow {
            AcceptOverflow::Drop => self.ready.len() > self.backlog,
            AcceptOverflow::Reset => self.ready.len() > self.backlog + self.backlog / 2,
        }
    }

    /// The next segment to be sent, as [`Endpoint::transmit`].
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        if let Some(reply) = self.replies.pop_front() {
            *out = reply;
            return Some(Ecn::NotEct);
        }
        self.half_open.iter_mut().chain(&mut self.ready).find_map(|child| child.transmit(now, out))
    }

    /// When to call [`Listener::on_deadline`] next; [`Time::NEVER`] if nothing is pending.
    pub fn next_deadline(&self) -> Time {
        self.half_open.iter().chain(&self.ready).map(Endpoint::next_deadline).min().unwrap_or(Time::NEVER)
    }

    /// Does what is due at `now`; call [`Listener::transmit`] afterwards.
    pub fn on_deadline(&mut self, now: Time) {
        for child in self.half_open.iter_mut().chain(&mut self.ready) {
            if child.next_deadline() <= now {
                child.on_deadline(now);
            }
        }
        self.half_open.retain(|child| child.state() != State::Closed);
    }

    /// close(2): half-open connections are forgotten, complete ones reset; nothing is taken in any
    /// more.
    pub fn close(&mut self, now: Time) {
        self.open = false;
        self.early.set_penalty(None);
        self.half_open.clear();
        let mut reset = Segment::default();
        for mut child in self.ready.drain(..) {
            child.abort();
            if child.transmit(now, &mut reset).is_some() {
                self.replies.push_back(reset);
            }
        }
    }
}

#[cfg(test)]
mod tests;
