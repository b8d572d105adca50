//! A Multipath TCP connection without input or output of its own (sans-IO): packets of several
//! paths in, packets out, time as an argument.
//!
//! [`Connection`] is one end of one connection. Each of its subflows is an endpoint of
//! `ackclock-tcp` with loss detection, timers and a congestion controller of its own; the
//! connection decides which subflow gets which data, adds the options that say so, and puts
//! together what arrives. Options are those of the wire ([`ackclock_packet::MptcpOption`]).
//!
//! # Source
//! RFC 8684. Where it leaves a choice: Linux 6.1, `net/mptcp` (data sequence numbers of 64 bits,
//! data acknowledgments of as many bits as the peer's last number of data had, no checksums, the
//! server announces its addresses and the client opens subflows to them, one address of each end
//! per subflow).
//! Failures, opportunistic retransmission and penalization: multipath-tcp.org v0.95.
//!
//! # Departures
//! - No checksums: a peer that requires them is answered as one that does not speak MPTCP. MP_FAIL
//!   is neither sent nor expected; an infinite mapping is understood, and none is sent.
//! - A connection falls back to plain TCP until a data acknowledgment or a mapping has come over
//!   its only subflow; later, a subflow on which options do not get through is reset (MP_TCPRST),
//!   also if it is the last one. What arrives without a mapping is not held for one.
//! - A connection that loses its last subflow ends at once (section 3.3.3 lets it wait for a
//!   while).
//! - Failures are those of multipath-tcp.org under every scheduler, `linux` as well: a subflow
//!   fails at its first timeout, is used again when something on it is acknowledged, and what it
//!   held goes out on others. Linux declares it stale after four. Failed subflows are used where
//!   there is no other one.
//! - The connection's timer is the largest retransmission timeout of its subflows, 200 ms at least,
//!   doubled at each expiry.
//! - Addresses without ports are announced, and one with a port of its own is not joined.
//!   REMOVE_ADDR resets subflows without probing them first, as in Linux.
//! - A subflow's priority (MP_PRIO, flag B) is one for both directions, as in Linux.
//! - MP_FASTCLOSE is sent with resets (option R of section 3.5), and understood in both forms.
//! - The client opens subflows, from a port of their own; one that the server opens is accepted by
//!   neither. There are none to replace others once DATA_FIN is acknowledged.
//! - Subflows are closed when the peer has acknowledged our DATA_FIN (Linux: when both are
//!   acknowledged).
//! - The send buffer of the connection has a fixed size, that of a subflow is the endpoint's.

mod addresses;
mod config;
mod connection;
mod fallback;
mod foreign;
mod handshake;
mod input;
mod joining;
pub mod keys;
mod mapping;
mod observe;
mod output;
mod push;
mod ranges;
mod scheduler;
mod subflow;

pub use config::{MAX_SUBFLOWS, MptcpConfig, Path, SchedulerKind};
pub use connection::{Connection, MakeController};
pub use subflow::{Carried, Subflow};
