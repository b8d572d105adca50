//! A TCP endpoint without input or output of its own: segments in, segments out, time as an argument.
//!
//! [`Endpoint`] is one end of one connection: open and close (RFC 9293), options and PAWS (RFC 7323), SACK (RFC 2018, RFC
//! 2883), loss recovery (RFC 6675, RFC 6582, RFC 3042, RFC 9937), timeouts (RFC 6298), delayed acknowledgments and the
//! window (RFC 5681, RFC 9293), ECN (RFC 3168). How much may be in flight is up to a controller of `ackclock-cc`. The
//! settings of real stacks are in [`profile`].
//!
//! A driver calls [`Endpoint::input`] for every segment that arrives and [`Endpoint::on_deadline`] when
//! [`Endpoint::next_deadline`] has come, and after each of them, and after calls of the application, asks
//! [`Endpoint::transmit`] until it gives nothing more.

mod config;
mod endpoint;
mod input;
mod output;
pub mod profile;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod seq;
mod timers;

pub use config::{Config, DelayedAck, InitialWindow, LossDetector, MinRto, Prr};
pub use endpoint::{Arrival, Endpoint, Error, Ports, State, Stats};
pub use recovery::CaState;
