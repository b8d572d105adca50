//! The states of a connection (RFC 9293 section 3.3.2).

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

impl State {
    /// Returns `true` if all written data and the FIN are acknowledged or given up; a lingering
    /// close waits for this.
    pub fn is_close_complete(self) -> bool {
        matches!(self, State::Closed | State::FinWait2 | State::TimeWait)
    }

    /// Returns `true` before the handshake is over, and once the connection is closed.
    pub(crate) fn is_unopened(self) -> bool {
        matches!(self, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// Returns `true` while a SYN of ours is to be acknowledged.
    pub(crate) fn is_opening(self) -> bool {
        matches!(self, State::SynSent | State::SynReceived)
    }
}
