//! The connection: its state, and the calls of the application.

use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Span, Time};

use crate::connection::answers::Answers;
use crate::connection::fast_open::Opening;
use crate::connection::icmp::SoftErrors;
use crate::connection::liveness::Liveness;
use crate::connection::remembered::Metrics;
use crate::connection::socket::Socket;
use crate::connection::syn::Handshake;
use crate::connection::timers::Timers;
use crate::receiver::Receiver;
use crate::send::Sender;
use crate::{Config, Error};

/// The states of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent, waiting for the other one.
    SynSent,
    /// Both SYNs seen, ours not acknowledged.
    SynReceived,
    /// Open.
    Established,
    /// Closed by us, the FIN not acknowledged.
    FinWait1,
    /// Closed by us, the FIN acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both at once, our FIN not acknowledged.
    Closing,
    /// Closed by the peer, then by us, our FIN not acknowledged.
    LastAck,
    /// Closed; old segments are waited out.
    TimeWait,
}

impl State {
    /// Returns `true` if all written data and the FIN are acknowledged or given up; a lingering
    /// close waits for this.
    pub fn is_close_complete(self) -> bool {
        matches!(self, State::Closed | State::FinWait2 | State::TimeWait)
    }

    /// Returns `true` before the handshake is over, and once the connection is closed.
    pub(crate) fn is_unopened(self) -> bool {
        matches!(self, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// Returns `true` while a SYN of ours is to be acknowledged.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived)
    }
}

/// The two port numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

impl Ports {
    /// A segment between them with these flags; everything else is zero.
    pub(crate) fn segment(self, flags: Flags) -> Segment {
        Segment { source_port: self.local, destination_port: self.remote, flags, ..Segment::default() }
    }
}

/// The data that a segment acknowledged, for the application and for measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgment {
    /// Bytes of our stream that it newly acknowledged.
    pub acked: u64,
    /// The RTT of data that it measured: from the transmission of a segment sent once to its first
    /// acknowledgment.
    pub rtt: Option<Span>,
    /// The segment was an acceptable acknowledgment.
    pub is_ack: bool,
}

/// Declares the totals, each with what joins those of two endpoints.
macro_rules! totals {
    ($($(#[$about:meta])* $key:ident: $type:ty, $join:ident;)*) => {
        /// Totals of one endpoint.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$about])* pub $key: $type,)*
        }

        impl std::ops::Add for Stats {
            type Output = Stats;

            /// The totals of two endpoints.
            fn add(self, other: Stats) -> Stats {
                Stats { $($key: self.$key.$join(other.$key),)* }
            }
        }
    };
}

totals! {
    /// Segments with data (or a FIN) sent, retransmissions included.
    sent_packets: u64, saturating_add;
    /// Packets of these that were sent again.
    retransmitted_packets: u64, saturating_add;
    /// FINs without data among those sent.
    bare_fins: u32, saturating_add;
    /// FINs without data among those sent again.
    retransmitted_fins: u32, saturating_add;
    /// SYNs sent again, on hosts that count them among their retransmissions
    /// ([`crate::StateRules::counts_syns`]).
    resent_syns: u32, saturating_add;
    /// Expiries of the retransmission timer.
    timeouts: u64, saturating_add;
    /// Entries into fast recovery.
    fast_recoveries: u64, saturating_add;
    /// Tail loss probes sent.
    loss_probes: u32, saturating_add;
    /// Window reductions taken back.
    undos: u64, saturating_add;
    /// ACKs that carried the ECN echo.
    ece_acks: u64, saturating_add;
    /// The farthest that a segment sent once was reported after a later one, in segments.
    reordering_max: u64, max;
    /// Blocks with which the receiver reported duplicates (RFC 2883).
    dsacks: u64, saturating_add;
}

impl Stats {
    /// Segments with data sent, retransmissions included.
    pub fn data_packets(&self) -> u64 {
        self.sent_packets - u64::from(self.bare_fins)
    }

    /// Segments with data sent again.
    pub fn retransmitted_data(&self) -> u64 {
        self.retransmitted_packets - u64::from(self.retransmitted_fins)
    }

    /// A segment with this payload is sent again.
    pub(crate) fn resent(&mut self, payload: u32) {
        self.retransmitted_packets += 1;
        self.retransmitted_fins += u32::from(payload == 0);
    }
}

/// One end of one connection. The fields that most segments touch lie together.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    // Every visit.
    pub(super) state: State,
    pub(super) ports: Ports,
    pub(super) error: Option<Error>,
    pub(super) answers: Answers,
    /// When the first of the timers expires that seldom run.
    pub(super) rare_deadline: Time,
    pub(super) timers: Timers,
    pub(super) liveness: Liveness,
    pub(super) handshake: Handshake,

    pub(super) receiver: Receiver,
    pub(super) sender: Sender,

    /// Shared by the endpoints of one kind of host; a socket option gives this one its own.
    pub(super) config: Arc<Config>,
    pub(super) socket: Socket,

    // Parts that few connections have.
    pub(super) opening: Opening,
    /// Metrics remembered of the destination, until the connection is established.
    pub(super) recalled: Option<Box<Metrics>>,
    pub(super) soft_errors: SoftErrors,
}

impl Endpoint {
    /// An endpoint in CLOSED. `isn` is its initial sequence number and `ts_offset` the start of its
    /// timestamp clock, both best drawn at random. Endpoints with the same settings may share them:
    /// `config` is a [`Config`] or an [`Arc`] of one.
    pub fn new(
        config: impl Into<Arc<Config>>,
        cc: Box<dyn CongestionControl>,
        ports: Ports,
        isn: u32,
        ts_offset: u32,
    ) -> Endpoint {
        let config = config.into();
        let receiver = Receiver::new(config.receive_buffer.max(1), config.delayed_ack).with_rules(&config.transfer);
        Endpoint {
            state: State::Closed,
            ports,
            answers: Answers::default(),
            rare_deadline: Time::NEVER,
            timers: Timers::new(),
            liveness: Liveness::default(),
            handshake: Handshake::default(),
            receiver,
            sender: Sender::new(Arc::clone(&config), cc, isn, ts_offset),
            config,
            socket: Socket::default(),
            opening: Opening::default(),
            recalled: None,
            soft_errors: SoftErrors::default(),
            error: None,
        }
    }

    /// Opens the connection passively: waits for a SYN. Does nothing unless CLOSED and unused.
    pub fn listen(&mut self) {
        if self.state == State::Closed && self.error.is_none() && self.sender.sequence.nxt() == 0 {
            self.state = State::Listen;
            self.socket.listen();
        }
    }

    /// The application reads up to `most` bytes; returns how many it got. They were checked on
    /// arrival ([`Receiver::integrity_error`]).
    #[inline]
    pub fn read(&mut self, most: u64) -> u64 {
        self.sender.burst.interrupt();
        self.receiver.read(most)
    }

    /// Settings of its own, changed by a socket option.
    #[cold]
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.config));
        self.sender.configured(&self.config);
    }

    /// Its ports.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Returns `true` if this is a living connection with this port of the peer.
    pub(crate) fn is_at(&self, remote: u16) -> bool {
        self.ports.remote == remote && self.state != State::Closed
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it did not end by both sides closing it.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// The sending half.
    #[inline]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The sending half, for a layer above and for what drives the connection.
    #[inline]
    pub fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// The receiving half.
    #[inline]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Its part in Fast Open.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Its part in Fast Open, for what holds the socket.
    #[inline]
    pub fn opening_mut(&mut self) -> &mut Opening {
        &mut self.opening
    }

    /// Returns `true` if both sides have closed and everything is acknowledged; the state may still
    /// be TIME-WAIT.
    #[inline]
    pub fn is_finished(&self) -> bool {
        let all_acked =
            || self.sender.sequence.is_fin_sent() && self.sender.acked_bytes() == self.sender.sequence.written();
        self.state == State::TimeWait
            || (self.state == State::Closed && self.error.is_none() && all_acked() && self.receiver().is_finished())
    }
}

#[cfg(test)]
mod tests;
