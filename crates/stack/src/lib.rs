#![doc = include_str!("../README.md")]
//!
//! # The contract
//!
//! ```text
//!             input(now, packet) --->  +-------+  ---> output(now, buffer)
//!             on_deadline(now)   --->  | Stack |  ---> next_deadline()
//!                                      +-------+
//! ```
//!
//! A run calls [`Stack::input`] for each packet that reaches the stack's host, and
//! [`Stack::on_deadline`] when its deadline has come; after either it calls [`Stack::output`] until
//! there is nothing to send, and then asks for the next deadline. Packets are complete IP packets.
//! `now` never decreases. A stack that reads no clock and draws only from the stream that it is
//! given makes runs that repeat to the byte.
//!
//! Applications are part of the stack, or of what builds it ([`OwnStack`]): parameters of a
//! scenario, such as the number of bytes to send, are arguments of the builder.

mod own;
mod recovery;
mod udp;

use ackclock_units::Time;
use ackclock_units::outside::Failure;

pub use own::{Lack, Neighbour, OwnStack, OwnStackConfig, OwnText, StackHost};
pub use recovery::{LostPacket, RecoveryEvent, RecoveryMetrics, SentPacket, TcpSample};
pub use udp::{Datagram, Transport, UdpHost, read_udp, write_udp};

/// A network stack with its applications: packets in, packets out, time as an argument.
pub trait Stack: Send {
    /// An IP packet has reached the host.
    fn input(&mut self, now: Time, packet: &[u8]);

    /// Writes the next IP packet to send at `now` to the beginning of `buffer`, and returns its
    /// length; `None` if there is nothing to send now. The buffer is as long as the host's MTU.
    fn output(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize>;

    /// Nothing else happens in the run before `until`, unless this stack sends something. Called
    /// before [`Stack::output`]. A stack that lives in another process may then go ahead by itself,
    /// up to its first packet, where asking for each step would cost more than the step. Default:
    /// nothing.
    fn quiet_until(&mut self, until: Time) {
        let _ = until;
    }

    /// The time at which [`Stack::on_deadline`] is to be called; [`Time::NEVER`] without a timer. A
    /// time that has passed means now.
    fn next_deadline(&self) -> Time;

    /// The deadline has come: timers expire and applications act.
    fn on_deadline(&mut self, now: Time);

    /// The reason why the stack cannot go on; the run then fails. Asked after each call.
    fn failure(&self) -> Option<&Failure> {
        None
    }

    /// Calls `see` for each result of the stack at the end of the run, by name: these are the keys
    /// of `live.hosts.NAME.results` in the summary. Default: none.
    fn results(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let _ = (now, see);
    }

    /// From now on the stack keeps its [`RecoveryEvent`]s. Called before anything else, if the run
    /// records them; only of a stack that declares it ([`OwnStack::observable`]). Default: nothing.
    fn observe(&mut self) {}

    /// Calls `see` for each event since the last call, in order of time. Called after the stack has
    /// sent. Default: none.
    fn observed(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        let _ = see;
    }
}
