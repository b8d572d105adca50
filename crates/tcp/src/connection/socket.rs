//! The state of a socket: how it came about, what the application has asked for, what has not
//! been reported to it yet.

use ackclock_units::Span;

use crate::Error;

/// Flags of one call of [`crate::Endpoint::write_with`], about its last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// MSG_MORE: more follows, so that a last partial segment may wait.
    pub more: bool,
    /// MSG_EOR: the last byte ends a record, and later ones are not put into one segment with it.
    pub eor: bool,
}

/// The application's settings of its socket, and the errors not yet reported to it.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    /// The connection began with [`crate::Endpoint::listen`].
    passive: bool,
    /// Nothing more is read.
    read_shut: bool,
    /// Arriving data is discarded.
    discards: bool,
    /// The handshake's last ACK was dropped, since no data came with it.
    deferred: bool,
    /// The application has closed: nobody will read, write or ask again.
    orphan: bool,
    /// SO_LINGER.
    linger: Option<Span>,
    /// SO_ERROR.
    pending: Option<Error>,
}

impl Socket {
    // The origin and the stage of the connection.

    /// The connection begins with a SYN of the peer.
    pub(crate) fn listen(&mut self) {
        self.passive = true;
    }

    /// Returns `true` if the connection began with a SYN of the peer.
    pub(crate) fn is_passive(&self) -> bool {
        self.passive
    }

    /// The handshake's last ACK is dropped, since no data came with it.
    pub(crate) fn defer(&mut self) {
        self.deferred = true;
    }

    /// Returns `true` if the handshake's last ACK was dropped for lack of data.
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred
    }

    /// The application has closed.
    pub(crate) fn abandon(&mut self) {
        self.orphan = true;
    }

    /// Returns `true` if the application has closed: nobody will read, write or ask again.
    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan
    }

    // Reading.

    /// Nothing more is read; what arrives is thrown away if `discards`.
    pub(crate) fn shut_reading(&mut self, discards: bool) {
        self.read_shut = true;
        self.discards |= discards;
    }

    pub(crate) fn is_read_shut(&self) -> bool {
        self.read_shut
    }

    /// Returns `true` if arriving data is discarded.
    #[inline]
    pub(crate) fn discards(&self) -> bool {
        self.discards
    }

    // Closing.

    pub(crate) fn set_linger(&mut self, linger: Option<Span>) {
        self.linger = linger;
    }

    pub(crate) fn linger(&self) -> Option<Span> {
        self.linger
    }

    /// An error is reported to the application, unless it has aborted the connection itself.
    pub(crate) fn report(&mut self, error: Error) {
        if error != Error::Aborted {
            self.pending = Some(error);
        }
    }

    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.pending.take()
    }

    pub(crate) fn has_error(&self) -> bool {
        self.pending.is_some()
    }
}
