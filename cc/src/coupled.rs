//! The state that the controllers of the subflows of one connection share (Multipath TCP).

use ackclock_units::Span;

/// No connection has more subflows than this: a bound for the arrays of who lists them.
pub const MAX_SUBFLOWS: usize = 16;

/// A controller that knows of the other subflows of its connection.
pub trait Coupled {
    /// The state that the siblings' controllers may read.
    fn shared(&self) -> Shared {
        Shared::default()
    }
    /// The subflows in use of its connection, at most [`MAX_SUBFLOWS`], itself at `own`: before
    /// each ACK and each signal that it is told of. Only with
    /// [`Needs::siblings`](crate::Needs::siblings), and never on a connection of plain TCP. With
    /// one subflow, or if `own` is none of them, it is on its own.
    fn couple(&mut self, own: usize, subflows: &[Subflow]);
}

/// One subflow of a connection, as the controllers of its siblings see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Subflow {
    /// Its congestion window, bytes. During fast recovery the threshold, which the window of its
    /// controller is then: not what recovery adds to it or lets in flight beyond it.
    pub cwnd: u64,
    /// Its slow start threshold, bytes; [`Window::INFINITE`](crate::Window::INFINITE) before the
    /// first congestion.
    pub ssthresh: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Its smoothed RTT; without one it does not count.
    pub srtt: Option<Span>,
    /// Its smallest RTT sample.
    pub min_rtt: Option<Span>,
    /// The state that its controller shares.
    pub shared: Shared,
}

/// The state that a coupled controller shares with its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shared {
    /// OLIA: bytes acknowledged between the last two losses (`l1`).
    pub between_losses: u64,
    /// OLIA: bytes acknowledged since the last loss (`l2`).
    pub since_loss: u64,
    /// wVegas: segments per second when its quota was last set; zero while it has not been.
    pub rate: f64,
}

impl Subflow {
    /// The smoothed RTT in seconds, above zero.
    pub(crate) fn rtt(&self) -> Option<f64> {
        self.srtt.filter(|&srtt| srtt > Span::ZERO).map(Span::as_secs_f64)
    }

    /// Its rate, bytes per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rtt().map(|rtt| self.cwnd as f64 / rtt)
    }
}

#[cfg(test)]
pub(crate) mod network;
