//! A TCP endpoint without input or output of its own (sans-IO): segments in, segments out, time as
//! an argument.
//!
//! [`Endpoint`] is one end of one connection: the state machine (RFC 9293, RFC 5961), options and
//! PAWS (RFC 7323), SACK (RFC 2018, RFC 2883), loss recovery (RFC 6675, RFC 6582, RFC 3042, RFC
//! 9937), timeouts (RFC 6298), delayed acknowledgments and flow control (RFC 5681, RFC 9293), ECN
//! (RFC 3168, RFC 8257, RFC 9768). A congestion controller of `ackclock-cc` decides how much may be
//! in flight. The settings of real stacks are in [`profile`].
//!
//! [`Listener`] is a listening socket whose children are endpoints; [`reset_for`] answers segments
//! that belong to no connection. The socket calls ([`Endpoint::connect`], [`Endpoint::send`],
//! [`Endpoint::recv`], [`Endpoint::shutdown`], [`Endpoint::close`], [`Endpoint::set_option`]) and
//! what they report ([`Endpoint::readiness`], [`Endpoint::take_error`]) behave as on Linux.
//!
//! A driver calls [`Endpoint::input`] for every segment that arrives, and [`Endpoint::on_deadline`]
//! when [`Endpoint::next_deadline`] has come. After each of these, and after every call of the
//! application, it calls [`Endpoint::transmit`] until that returns `None`.
//!
//! # Rooms
//!
//! An endpoint has rooms. Each owns a part of its state with the behaviour that belongs to it, and
//! knows nothing of the rooms around it:
//!
//! ```text
//!   segments in, socket calls, deadlines              segments out
//!                     |                                     ^
//!  +------------------v-------------------------------------|-----------------+
//!  | Endpoint (connection/): the states of RFC 9293, acceptability, resets,   |
//!  | closing, ICMP; how a segment is written                                  |
//!  |                                                                          |
//!  |  +- Handshake, Opening -+   +- Receiver (receiver/) -------------------+ |
//!  |  | what the SYN waits   |   | sequence, reassembly, SACK blocks, when  | |
//!  |  | for; Fast Open       |   | to acknowledge, window, buffer           | |
//!  |  +- Answers, Liveness --+   |                                          | |
//!  |  | challenges, resets;  |   |                                          | |
//!  |  | keep-alive           |   |                                          | |
//!  |  +----------------------+   +------------------------------------------+ |
//!  |  +- Sender (send/) -----------------------------------------------------+|
//!  |  | send sequence, queue, segmentation, bursts, pacing, window probes,   ||
//!  |  | retransmission timer, RTT, path MTU, ECN (ecn/), the congestion      ||
//!  |  | controller and what it is told; the engines of recovery (loss/)      ||
//!  |  |  +- Loss (loss/) --------------------------------------------------+ ||
//!  |  |  | scoreboard, detector, congestion state, undo, what is in flight | ||
//!  |  |  +-----------------------------------------------------------------+ ||
//!  |  +----------------------------------------------------------------------+|
//!  +--------------------------------------------------------------------------+
//! ```
//!
//! Calls go inwards alone. `Endpoint` tells a room what it needs to know beside its own state, such
//! as the state of the connection or whether an acknowledgment is owed, and acts on the result:
//! `Sender` says that the peer is to be given up, that the SYN goes again, or which part of the
//! stream leaves next, and `Endpoint` closes, begins the handshake anew or writes the segment.
//! `Loss` is told what was agreed on and where the sequence stands. An ACK passes through the steps
//! of `connection::input`: `Endpoint` validates it, `Sender` takes it in, and `Endpoint` draws the
//! consequences for the state.
//!
//! Callers ask a room itself what it knows: [`Endpoint::sender`] about the stream, its windows and
//! its losses, [`Endpoint::receiver`] about what has arrived. [`TcpInfo`], [`ControlBlock`] and
//! [`Snapshot`] put such answers together.
//!
//! The settings are shared. Each room that needs them has a reference of its own, renewed when a
//! socket option changes them.
//!
//! # Example
//!
//! Two endpoints and a perfect network of 10 ms each way. The handshake takes one round trip;
//! 100,000 bytes take three more, because the initial window of ten segments doubles in each:
//!
//! ```
//! use ackclock_cc::{NewReno, NewRenoConfig};
//! use ackclock_packet::Segment;
//! use ackclock_tcp::{Config, Endpoint, Ports, Sending, State};
//! use ackclock_units::{Ecn, Span, Time};
//!
//! fn endpoint(local: u16, remote: u16) -> Endpoint {
//!     let cc = NewReno::new(NewRenoConfig::default());
//!     Endpoint::new(Config::default(), Box::new(cc), Ports { local, remote }, 1000, 0)
//! }
//!
//! /// Everything that an endpoint has to send now.
//! fn transmit(endpoint: &mut Endpoint, now: Time) -> Vec<(Segment, Ecn)> {
//!     let mut segment = Segment::default();
//!     std::iter::from_fn(|| endpoint.transmit(now, &mut segment).map(|ecn| (segment, ecn))).collect()
//! }
//!
//! /// Segments arrive at an endpoint one by one; returns what it sends in response.
//! fn arrive(endpoint: &mut Endpoint, now: Time, flight: &[(Segment, Ecn)]) -> Vec<(Segment, Ecn)> {
//!     let mut responses = Vec::new();
//!     for (segment, ecn) in flight {
//!         endpoint.input(now, segment, *ecn);
//!         responses.extend(transmit(endpoint, now));
//!     }
//!     responses
//! }
//!
//! let (mut client, mut server) = (endpoint(49_152, 80), endpoint(80, 49_152));
//! let (mut now, one_way) = (Time::ZERO, Span::from_millis(10));
//! server.listen();
//! client.connect();
//!
//! let syn = transmit(&mut client, now);
//! let syn_ack = arrive(&mut server, now + one_way, &syn);
//! now = now + one_way + one_way;
//! let ack = arrive(&mut client, now, &syn_ack);
//! assert_eq!(client.state(), State::Established);
//! arrive(&mut server, now + one_way, &ack);
//! assert_eq!(server.state(), State::Established);
//!
//! // Payload is a range of a stream, so that only its length is given.
//! assert_eq!(client.send(100_000), Sending::Taken(100_000));
//! client.close(now);
//! let mut flight = transmit(&mut client, now);
//! let mut segments = Vec::new();
//! while !flight.is_empty() {
//!     segments.push(flight.len());
//!     let acks = arrive(&mut server, now + one_way, &flight);
//!     now = now + one_way + one_way;
//!     flight = arrive(&mut client, now, &acks);
//! }
//! // 100,000 bytes in segments of 1448 bytes: 69 full ones and 88 bytes, with the FIN.
//! assert_eq!(segments, [10, 20, 40]);
//! assert_eq!(server.receiver().delivered(), 100_000);
//! assert!(server.receiver().is_finished());
//! ```

mod connection;
mod ecn;
mod listener;
mod loss;
mod receiver;
mod send;
mod seq;
mod stack;

pub use ackclock_cc::EcnFeedback;
pub use connection::answers::reset_for;
pub use connection::calls::{Readiness, Received, Sending, Shutdown, SocketOption};
pub use connection::control_block::{ControlBlock, Snapshot};
pub use connection::endpoint::{Acknowledgment, Endpoint};
pub use connection::error::Error;
pub use connection::fast_open::{
    FastOpenAttempt, FastOpenCache, FastOpenNews, FastOpenServer, FastOpenStack, Opening, fast_open_cookie,
};
pub use connection::handshake::{retries_within, time_of_retries};
pub use connection::icmp::IcmpError;
pub use connection::ports::Ports;
pub use connection::remembered::Metrics;
pub use connection::socket::WriteFlags;
pub use connection::state::State;
pub use connection::tcp_info::{
    INFINITE_SSTHRESH, TCPI_OPT_ECN, TCPI_OPT_ECN_SEEN, TCPI_OPT_SACK, TCPI_OPT_SYN_DATA, TCPI_OPT_TIMESTAMPS,
    TCPI_OPT_WSCALE, TcpInfo,
};
pub use listener::{Listener, Numbers};
pub use loss::detector::LossCounts;
pub use loss::scoreboard::{LossDeclaration, Scoreboard, Stamp};
pub use loss::{CaState, CaStateTime, Loss};
pub use receiver::Receiver;
pub use send::Sender;
pub use send::counters::{SentAs, Stats};
pub use send::limited::{Limit, LimitClock, LimitedTime};
pub use send::rtt::RttEstimator;
pub use send::sequence::SendSequence;
pub use stack::config::{
    AdaptiveRules, BerkeleyRules, Config, DelayedAck, DetectorKind, InitialWindow, LossDetector, MAX_BUFFER, MIN_MSS,
    MinRto, NcrVariant, Prr, QuickAcks, RrRules,
};
pub use stack::controllers::{CONTROLLERS, Controller};
pub use stack::ecn::{AccEcnOption, AccEcnRule, AccEcnRules};
pub use stack::loss::{DetectorRules, LossRules, MaxBurst, TimerRules};
pub use stack::offload::OffloadRule;
pub use stack::path::{IcmpRule, MtuProbing, PathRules};
pub use stack::profile;
pub use stack::rules::{
    AcceptOverflow, ChallengeLimit, GiveUp, KeepAlive, PersistRules, StateRules, SynFin, TimeWaitAnswers, WindowProbe,
};
pub use stack::ticks::Ticks;
pub use stack::transfer::{
    AckRule, NeedlessTimeout, PeerWindow, ReportRule, RttRule, SackCompression, SendRule, SpaceRule, TransferRules,
    WindowRule,
};
pub use stack::tuning::{BufferGrowth, BufferTuning, Tuning, TuningRules};
pub use stack::window::{CwndValidation, Pacing, PacingWhen};
