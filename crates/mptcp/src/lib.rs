//! A Multipath TCP connection without input or output of its own (sans-IO): packets of several
//! paths in, packets out, time as an argument.
//!
//! [`Connection`] is one end of one connection. Each of its subflows is an endpoint of
//! `ackclock-tcp` with loss detection, timers and a congestion controller of its own; the
//! connection decides which subflow gets which data, adds the options that say so, and puts
//! together what arrives. Options are those of the wire ([`ackclock_packet::MptcpOption`]).
//!
//! # Source
//! RFC 8684. Where it leaves a choice: Linux 6.1, `net/mptcp` (data acknowledgments of 32 bits and
//! data sequence numbers of 64, no checksums, the server announces its addresses and the client
//! opens subflows to them, one address of each end per subflow), and multipath-tcp.org v0.95 for
//! what Linux does not have (opportunistic retransmission, penalization, reinjection at the first
//! timeout of a subflow).
//!
//! # Departures
//! - No checksums: a peer that requires them is answered as one that does not speak MPTCP.
//! - A connection falls back to plain TCP as long as it has had a single subflow; later, a subflow
//!   on which options do not get through is reset (MP_TCPRST), also if it is the last one. MP_FAIL
//!   and infinite mappings are neither sent nor expected.
//! - IPv4 addresses without ports are announced. An announcement is repeated after a second, then
//!   two (Linux: two minutes).
//! - MP_FASTCLOSE is sent with resets (option R of section 3.5), and understood in both forms.
//! - The client opens subflows; one that the server opens is accepted by neither.
//! - The send buffer of the connection has a fixed size, that of a subflow is the endpoint's.

mod addresses;
mod config;
mod connection;
mod input;
mod joining;
pub mod keys;
mod mapping;
mod output;
mod push;
mod ranges;
mod scheduler;
mod subflow;

pub use config::{MAX_SUBFLOWS, MptcpConfig, Path, SchedulerKind};
pub use connection::{Connection, MakeController};
pub use subflow::{Carried, Subflow};
