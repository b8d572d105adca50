//! The connection: its state, and the calls of the application.

use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_units::outside::Failure;
use ackclock_units::{Span, Time};

use crate::connection::answers::Answers;
use crate::connection::fast_open::Opening;
use crate::connection::icmp::SoftErrors;
use crate::connection::liveness::Liveness;
use crate::connection::negotiated::Negotiated;
use crate::connection::remembered::Metrics;
use crate::connection::socket::Socket;
use crate::connection::syn::Handshake;
use crate::connection::timers::Timers;
use crate::ecn::EcnState;
use crate::loss::detector::Detector;
use crate::loss::scoreboard::Scoreboard;
use crate::loss::{Recovery, StateClock};
use crate::receiver::Receiver;
use crate::report::counters::Counters;
use crate::send::burst::Burst;
use crate::send::limited::LimitClock;
use crate::send::observer::Observer;
use crate::send::pacing::Pacer;
use crate::send::persist::Persist;
use crate::send::pmtu::Path;
use crate::send::rtt::RttEstimator;
use crate::send::segmentation::Queue;
use crate::send::sequence::SendSequence;
use crate::send::units::Units;
use crate::send::validation::Validation;
use crate::send::window_use::WindowUse;
use crate::send::writing::Writing;
use crate::stack::config::Episodes;
use crate::{Config, Error, SentAs};

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

/// The two port numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

/// What a segment that arrived acknowledged, for the application and for measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgment {
    /// Bytes of our stream that it newly acknowledged.
    pub acked: u64,
    /// The RTT of data that it measured: from the transmission of a segment sent once to its first
    /// acknowledgment.
    pub rtt: Option<Span>,
    /// It was an acceptable acknowledgment.
    pub is_ack: bool,
}

/// Totals of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments with data (or a FIN) sent, retransmissions included.
    pub sent_packets: u64,
    /// Of these, sent again.
    pub retransmitted_packets: u64,
    /// SYNs sent again, on hosts that count them among their retransmissions
    /// ([`crate::StateRules::counts_syns`]).
    pub resent_syns: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Tail loss probes sent.
    pub loss_probes: u64,
    /// Window reductions taken back.
    pub undos: u64,
    /// ACKs that carried the ECN echo.
    pub ece_acks: u64,
    /// The farthest that a segment sent once was reported after a later one, in segments.
    pub reordering_max: u64,
    /// Blocks with which the receiver reported duplicates (RFC 2883).
    pub dsacks: u64,
}

impl std::ops::Add for Stats {
    type Output = Stats;

    /// The totals of two endpoints.
    fn add(self, other: Stats) -> Stats {
        Stats {
            sent_packets: self.sent_packets + other.sent_packets,
            retransmitted_packets: self.retransmitted_packets + other.retransmitted_packets,
            resent_syns: self.resent_syns + other.resent_syns,
            timeouts: self.timeouts + other.timeouts,
            fast_recoveries: self.fast_recoveries + other.fast_recoveries,
            loss_probes: self.loss_probes + other.loss_probes,
            undos: self.undos + other.undos,
            ece_acks: self.ece_acks + other.ece_acks,
            reordering_max: self.reordering_max.max(other.reordering_max),
            dsacks: self.dsacks + other.dsacks,
        }
    }
}

/// One end of one connection. What most segments touch lies together.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint {
    // Every visit.
    pub(crate) burst: Burst,
    pub(crate) state: State,
    /// Segments may take the short way of `prediction`.
    pub(crate) predicts: bool,
    /// [`Config::episodes`].
    pub(crate) episodes: Episodes,
    /// Why the last data segment was sent.
    pub(crate) sent_as: SentAs,
    pub(crate) ports: Ports,
    pub(crate) send: SendSequence,
    pub(crate) negotiated: Negotiated,
    pub(crate) answers: Answers,
    /// The time of the last ACK or timer.
    pub(crate) now: Time,
    /// How many ACKs came before at that time, or something was sent.
    pub(crate) order: u32,
    /// The RTT sample of the ACK in hand.
    pub(crate) latest_sample: Option<Span>,
    pub(crate) timers: Timers,
    /// When the first of the timers expires that seldom run.
    pub(super) rare_deadline: Time,
    pub(crate) persist: Persist,
    pub(crate) liveness: Liveness,
    pub(crate) recovery: Recovery,
    pub(crate) counters: Counters,
    pub(crate) handshake: Handshake,

    // What arrives.
    pub(crate) receiver: Receiver,

    // What is sent.
    /// Shared by the endpoints of one kind of host; a socket option gives this one its own.
    pub(crate) config: Arc<Config>,
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) observer: Observer,
    pub(crate) board: Scoreboard,
    pub(crate) window_use: WindowUse,
    pub(crate) rtt: RttEstimator,
    pub(crate) stats: Stats,
    pub(crate) queue: Queue,
    pub(crate) held: LimitClock,
    pub(crate) ecn: EcnState,
    pub(crate) pacer: Pacer,
    pub(crate) detector: Detector,
    pub(crate) validation: Validation,
    pub(crate) socket: Socket,
    pub(crate) writing: Writing,
    /// The SYN or its answer was presumably lost.
    pub(crate) syn_lost: bool,
    pub(crate) path: Path,

    // What few connections have.
    pub(crate) states: StateClock,
    /// Its units of segments, where it sends such.
    pub(crate) units: Option<Box<Units>>,
    /// Its part in Fast Open, if it has one.
    pub(crate) opening: Option<Box<Opening>>,
    /// What is remembered of its destination, until it is established.
    pub(super) recalled: Option<Box<Metrics>>,
    pub(crate) soft_errors: SoftErrors,
    pub(super) error: Option<Error>,
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
        let detector = Detector::new(config.loss_detector);
        let observer = Observer::new(&*cc);
        let needs = observer.needs;
        let mut board = Scoreboard::new(config.transfer.whole_reports);
        board.sample_rates(needs.delivery_rate);
        let path = Path::new(&config);
        Endpoint {
            episodes: config.episodes(),
            predicts: false,
            negotiated: Negotiated::new(u32::from(config.mss).max(1), ts_offset),
            observer,
            cc,
            state: State::Closed,
            ports,
            send: SendSequence::new(isn),
            board,
            recovery: Recovery::new(needs.whole_control),
            detector,
            now: Time::ZERO,
            order: 0,
            pacer: Pacer::default(),
            burst: Burst::default(),
            window_use: WindowUse::default(),
            validation: Validation::default(),
            rtt: RttEstimator::new(),
            receiver,
            timers: Timers::new(),
            rare_deadline: Time::NEVER,
            persist: Persist::default(),
            stats: Stats::default(),
            ecn: EcnState::new(),
            handshake: Handshake::default(),
            answers: Answers::default(),
            liveness: Liveness::default(),
            latest_sample: None,
            states: StateClock::default(),
            opening: None,
            recalled: None,
            socket: Socket::default(),
            writing: Writing::default(),
            syn_lost: false,
            queue: Queue::new(config.send_buffer),
            counters: Counters::new(),
            held: LimitClock::default(),
            path,
            units: None,
            config,
            soft_errors: SoftErrors::default(),
            sent_as: SentAs::New,
            error: None,
        }
    }

    /// Opens the connection passively: waits for a SYN. Does nothing unless CLOSED and unused.
    pub fn listen(&mut self) {
        if self.state == State::Closed && self.error.is_none() && self.send.nxt() == 0 {
            self.state = State::Listen;
            self.socket.listen();
        }
    }

    /// The application reads up to `most` bytes; returns how many it got. They were checked on
    /// arrival ([`Endpoint::integrity_error`]).
    #[inline]
    pub fn read(&mut self, most: u64) -> u64 {
        self.burst.interrupt();
        self.receiver.read(most)
    }

    /// SIOCINQ: bytes received in order and not read.
    pub fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// SIOCOUTQ: bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.send.written() - self.acked_bytes()
    }

    /// SIOCOUTQNSD: bytes written and not sent.
    pub fn unsent(&self) -> u64 {
        (self.send.written() + 1).saturating_sub(self.send.nxt().max(1))
    }

    /// Settings of its own, to be changed by a socket option.
    #[cold]
    pub(crate) fn config_mut(&mut self) -> &mut Config {
        Arc::make_mut(&mut self.config)
    }

    /// Bytes of the options that every data segment carries.
    #[inline]
    pub(crate) fn options_len(&self) -> u32 {
        self.negotiated.options_len() + u32::from(self.path.reserved)
    }

    /// Its ports.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Whether it is a living connection with this port of the peer.
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

    /// Whether both sides have closed and everything is acknowledged; the state may still be
    /// TIME-WAIT.
    #[inline]
    pub fn is_finished(&self) -> bool {
        let all_acked = || self.send.is_fin_sent() && self.acked_bytes() == self.send.written();
        self.state == State::TimeWait
            || (self.state == State::Closed && self.error.is_none() && all_acked() && self.peer_finished())
    }

    /// Whether the peer has closed and every byte before its FIN has arrived.
    #[inline]
    pub fn peer_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Bytes of our stream that the peer has acknowledged.
    #[inline]
    pub fn acked_bytes(&self) -> u64 {
        self.send.una().saturating_sub(1).min(self.send.written())
    }

    /// Bytes of the peer's stream that arrived in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Bytes of the peer's stream that arrived, what lies beyond gaps included.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received()
    }

    /// Data segments that brought nothing new.
    pub fn duplicate_segments(&self) -> u64 {
        self.receiver.duplicate_segments()
    }

    /// The first stream offset whose bytes were not those of the stream.
    pub fn integrity_error(&self) -> Option<u64> {
        self.receiver.integrity_error()
    }

    /// Why the congestion controller cannot go on, if it is one from outside that has failed.
    pub fn controller_failure(&self) -> Option<&Failure> {
        self.cc.failure()
    }

    /// Segments that arrived and were as expected ([`Config::header_prediction`]).
    pub fn predicted_segments(&self) -> u64 {
        self.counters.predicted
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The congestion controller.
    pub fn congestion_control(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// Smoothed RTT, once there was a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// The retransmission timeout, back-off included.
    #[inline]
    pub fn rto(&self) -> Span {
        self.rtt.rto(&self.config)
    }

    /// The peer's window in bytes.
    pub fn peer_window(&self) -> u64 {
        self.send.window()
    }

    /// The oldest unacknowledged byte and the next to be sent, as distances from the initial
    /// sequence number.
    pub fn sequence(&self) -> (u64, u64) {
        (self.send.una(), self.send.nxt())
    }
}

#[cfg(test)]
mod tests;
