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

mod challenge;
mod config;
mod controllers;
mod defer;
mod detector;
mod ecn;
mod endpoint;
mod episode;
mod facts;
mod fast_open;
mod icmp;
mod info;
mod input;
mod keepalive;
mod limited;
mod listener;
mod observer;
mod output;
mod pacing;
mod path;
mod pmtu;
mod probe;
pub mod profile;
mod receiver;
mod recovery;
mod rtt;
mod rules;
mod scoreboard;
mod sending;
mod seq;
mod socket;
mod sockopt;
mod time_wait;
mod timers;
mod transfer;
mod undo;
mod validation;

pub use ackclock_cc::EcnFeedback;
pub use config::{AdaptiveRules, Config, DelayedAck, InitialWindow, LossDetector, MinRto, NcrVariant, Prr, RrRules};
pub use controllers::{CONTROLLERS, Controller};
pub use defer::{retries_within, time_of_retries};
pub use detector::LossCounts;
pub use ecn::{AccEcnOption, AccEcnRule, AccEcnRules};
pub use endpoint::{Arrival, Endpoint, Error, Ports, State, Stats};
pub use facts::{ControlBlock, LossDeclaration, SentAs, Snapshot, Stamp};
pub use fast_open::{FastOpenAttempt, FastOpenCache, FastOpenNews, FastOpenServer, FastOpenStack, fast_open_cookie};
pub use icmp::IcmpError;
pub use info::{
    INFINITE_SSTHRESH, TCPI_OPT_ECN, TCPI_OPT_ECN_SEEN, TCPI_OPT_SACK, TCPI_OPT_SYN_DATA, TCPI_OPT_TIMESTAMPS,
    TCPI_OPT_WSCALE, TcpInfo,
};
pub use limited::LimitedTime;
pub use listener::{Listener, Numbers, reset_for};
pub use pacing::{Pacing, PacingWhen};
pub use path::{IcmpRule, MtuProbing, PathRules};
pub use recovery::CaState;
pub use rules::{AcceptOverflow, ChallengeLimit, GiveUp, KeepAlive, StateRules, SynFin, TimeWaitAnswers, WindowProbe};
pub use socket::{Readiness, Received, Sending, Shutdown};
pub use sockopt::WriteFlags;
pub use transfer::{AckRule, ReportRule, RttRule, SackCompression, SendRule, SpaceRule, TransferRules, WindowRule};
pub use validation::CwndValidation;
