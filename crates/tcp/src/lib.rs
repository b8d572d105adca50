//! A TCP endpoint without input or output of its own: segments in, segments out, time as an argument.
//!
//! [`Endpoint`] is one end of one connection: every state's answers (RFC 9293, RFC 5961), options and PAWS (RFC 7323),
//! SACK (RFC 2018, RFC 2883), loss recovery (RFC 6675, RFC 6582, RFC 3042, RFC 9937), timeouts (RFC 6298), delayed
//! acknowledgments and the window (RFC 5681, RFC 9293), ECN (RFC 3168, RFC 8257, RFC 9768). How much may be in flight is up to a controller of
//! `ackclock-cc`. The settings of real stacks are in [`profile`].
//!
//! [`Listener`] is a listening socket, whose children are endpoints; [`reset_for`] answers segments that are nobody's. The
//! calls of sockets ([`Endpoint::connect`], [`Endpoint::send`], [`Endpoint::recv`], [`Endpoint::shutdown`],
//! [`Endpoint::close`]) and what they tell ([`Endpoint::readiness`], [`Endpoint::take_error`]) have the meanings of Linux.
//!
//! A driver calls [`Endpoint::input`] for every segment that arrives and [`Endpoint::on_deadline`] when
//! [`Endpoint::next_deadline`] has come, and after each of them, and after calls of the application, asks
//! [`Endpoint::transmit`] until it gives nothing more.

mod connection;
mod ecn;
mod listener;
mod loss;
mod receiver;
mod report;
mod send;
mod seq;
mod stack;

pub use ackclock_cc::EcnFeedback;
pub use connection::answers::reset_for;
pub use connection::defer::{retries_within, time_of_retries};
pub use connection::endpoint::{Arrival, Endpoint, Error, Ports, State, Stats};
pub use connection::fast_open::{
    FastOpenAttempt, FastOpenCache, FastOpenNews, FastOpenServer, FastOpenStack, fast_open_cookie,
};
pub use connection::icmp::IcmpError;
pub use connection::socket::{Readiness, Received, Sending, Shutdown};
pub use ecn::{AccEcnOption, AccEcnRule, AccEcnRules};
pub use listener::{Listener, Numbers};
pub use loss::CaState;
pub use loss::detector::LossCounts;
pub use report::tcp_info::{
    INFINITE_SSTHRESH, TCPI_OPT_ECN, TCPI_OPT_ECN_SEEN, TCPI_OPT_SACK, TCPI_OPT_SYN_DATA, TCPI_OPT_TIMESTAMPS,
    TCPI_OPT_WSCALE, TcpInfo,
};
pub use report::variables::{ControlBlock, LossDeclaration, SentAs, Snapshot, Stamp};
pub use send::limited::LimitedTime;
pub use send::pacing::{Pacing, PacingWhen};
pub use send::validation::CwndValidation;
pub use stack::config::{
    AdaptiveRules, Config, DelayedAck, InitialWindow, LossDetector, MinRto, NcrVariant, Prr, RrRules,
};
pub use stack::controllers::{CONTROLLERS, Controller};
pub use stack::path::{IcmpRule, MtuProbing, PathRules};
pub use stack::profile;
pub use stack::rules::{
    AcceptOverflow, ChallengeLimit, GiveUp, KeepAlive, StateRules, SynFin, TimeWaitAnswers, WindowProbe,
};
pub use stack::sockopt::WriteFlags;
pub use stack::transfer::{
    AckRule, ReportRule, RttRule, SackCompression, SendRule, SpaceRule, TransferRules, WindowRule,
};
