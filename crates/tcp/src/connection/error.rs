//! Why a connection failed.

/// Why a connection ended other than by both sides closing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer reset an open connection.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// Retransmissions were not answered.
    TimedOut,
    /// The application aborted it.
    Aborted,
    /// Written after the writing side was shut.
    BrokenPipe,
    /// Read before there was a connection.
    NotConnected,
    /// An ICMP error: no route to the peer's network.
    NetUnreachable,
    /// An ICMP error: no route to the peer, or a time to live that was over.
    HostUnreachable,
    /// An ICMP error: the peer does not speak TCP.
    NoProtocol,
    /// An ICMP error: the packet was too big.
    MessageTooLong,
    /// An ICMP error: a source route failed.
    NotSupported,
    /// An ICMP error: the peer is not known.
    HostDown,
    /// An ICMP error: we are isolated.
    NoNetwork,
    /// An ICMP error: something is wrong with a header.
    Protocol,
    /// An ICMP error: a filter forbids it.
    Forbidden,
}

impl Error {
    /// The name of the error number that a socket gives.
    pub fn errno(self) -> &'static str {
        match self {
            Error::Reset => "ECONNRESET",
            Error::Refused => "ECONNREFUSED",
            Error::TimedOut => "ETIMEDOUT",
            Error::Aborted => "ECONNABORTED",
            Error::BrokenPipe => "EPIPE",
            Error::NotConnected => "ENOTCONN",
            Error::NetUnreachable => "ENETUNREACH",
            Error::HostUnreachable => "EHOSTUNREACH",
            Error::NoProtocol => "ENOPROTOOPT",
            Error::MessageTooLong => "EMSGSIZE",
            Error::NotSupported => "EOPNOTSUPP",
            Error::HostDown => "EHOSTDOWN",
            Error::NoNetwork => "ENONET",
            Error::Protocol => "EPROTO",
            Error::Forbidden => "EACCES",
        }
    }
}
