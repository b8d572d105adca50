//! A Multipath TCP connection without input or output of its own (sans-IO): packets of several
//! paths in, packets out, time as an argument.
//!
//! ```text
//!   application        write, read, shutdown
//!        |
//!   Connection         data sequence numbers, shared window, DATA_FIN, its own timer
//!        |
//!    scheduler         selects the subflow for new data; `push` assigns it, `input` reassembles
//!    |       |
//!  Subflow  Subflow    a TCP endpoint each: loss recovery, timers, congestion controller
//!    |       |
//!  path 0  path 1      transmit -> segment for last_path(); input(path, segment)
//! ```
//!
//! [`Connection`] is one end of one connection. Each of its subflows is an unchanged endpoint of
//! `ackclock-tcp`. The connection selects the subflow for each piece of data, adds the MPTCP
//! options ([`ackclock_packet::MptcpOption`], as on the wire), and reassembles the data that
//! arrives.
//!
//! # Invariants
//! - Only the number of bytes exists: a payload is a range of the connection's stream. Every byte
//!   given to a subflow has a mapping there until subflow and connection have been acknowledged.
//! - Options count only on segments that the subflow's endpoint accepts.
//! - The right edge of the advertised window never moves left, whichever subflow carries it.
//! - After each call of [`Connection::input`], [`Connection::on_deadline`] or the application,
//!   [`Connection::transmit`] has to be called until it returns `None`.
//!
//! # Example
//! Two ends on one path without delay:
//!
//! ```
//! use ackclock_cc::{NewReno, NewRenoConfig};
//! use ackclock_mptcp::{Connection, MptcpConfig};
//! use ackclock_packet::Segment;
//! use ackclock_tcp::{Config, Ports};
//! use ackclock_units::{Random, Time};
//!
//! let end = |run, local, remote| {
//!     let reno = |_| Box::new(NewReno::new(NewRenoConfig::default())) as Box<_>;
//!     let random = Random::for_component(1, run, "example");
//!     let (mptcp, tcp) = (MptcpConfig::default(), Config::default());
//!     Connection::new(mptcp, tcp, Box::new(reno), Ports { local, remote }, random)
//! };
//! let (mut client, mut server) = (end(0, 5000, 80), end(1, 80, 5000));
//! let pass = |from: &mut Connection, to: &mut Connection| {
//!     let mut segment = Segment::default();
//!     while let Some(ecn) = from.transmit(Time::ZERO, &mut segment) {
//!         to.input(Time::ZERO, from.last_path(), &segment, ecn);
//!     }
//! };
//!
//! server.listen();
//! client.connect();
//! client.write(Time::ZERO, 10_000);
//! for _ in 0..10 {
//!     pass(&mut client, &mut server);
//!     pass(&mut server, &mut client);
//! }
//! assert!(client.is_multipath() && server.is_multipath());
//! assert_eq!(server.read(u64::MAX), 10_000);
//! ```
//!
//! # Source
//! RFC 8684; where it leaves a choice, Linux 6.1 (`net/mptcp`): data sequence numbers of 64 bits,
//! data acknowledgments of the same length as the peer's last data sequence number, no checksums,
//! addresses announced by the server and joined by the client, one address of each end per subflow.
//! Failures, opportunistic retransmission and penalization: multipath-tcp.org v0.95.
//!
//! # Departures
//! - No checksums: a peer that requires them is answered like one without MPTCP. MP_FAIL is neither
//!   sent nor expected; infinite mappings are understood, but not sent.
//! - A connection falls back to plain TCP until a data acknowledgment or a mapping has arrived on
//!   its only subflow; later, a subflow on which options are removed is reset (MP_TCPRST), even the
//!   last one. Data that arrives before its mapping is not held.
//! - A connection that loses its last subflow ends immediately (section 3.3.3 permits waiting).
//! - Failures are those of multipath-tcp.org with every scheduler, including `linux`: a subflow
//!   fails at its first timeout, its data is sent on others, and it is used again when something on
//!   it is acknowledged. Linux declares it stale after four timeouts. Failed subflows are used
//!   where there is no other one.
//! - The connection's timer is the largest retransmission timeout of its subflows, at least 200 ms,
//!   doubled at each expiry.
//! - Addresses are announced without ports, and an announced address with another port is not
//!   joined. REMOVE_ADDR resets subflows without probing them first, as in Linux.
//! - A subflow's priority (MP_PRIO, flag B) applies to both directions, as in Linux.
//! - MP_FASTCLOSE is sent with resets (option R of section 3.5), and understood in both forms.
//! - Only the client opens subflows, each from a port of its own. Once DATA_FIN is acknowledged,
//!   none is replaced.
//! - Subflows are closed when the peer has acknowledged our DATA_FIN (Linux: when both are
//!   acknowledged).
//! - The send buffer of the connection has a fixed size; that of a subflow is its endpoint's.

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
