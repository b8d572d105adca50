//! The calls of a socket: connect, send, receive, shut down, close, and what `poll` and `SO_ERROR`
//! report.

use ackclock_units::{Span, Time};

use super::socket::WriteFlags;
use crate::{Endpoint, Error, FastOpenAttempt, SpaceRule, State};

/// The half of the connection that [`Endpoint::shutdown`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Nothing more is read.
    Read,
    /// Nothing more is written: a FIN follows the last byte.
    Write,
    /// Both halves.
    Both,
}

/// The result of [`Endpoint::recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The number of bytes, at least one.
    Data(u64),
    /// Nothing yet: EAGAIN.
    WouldBlock,
    /// Nothing more will come: 0.
    EndOfFile,
    /// The connection failed.
    Failed(Error),
}

/// The result of [`Endpoint::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The number of bytes taken, at least one unless none were given.
    Taken(u64),
    /// The buffer is full, or the connection not open yet: EAGAIN.
    WouldBlock,
    /// The connection failed, or its writing side is shut.
    Failed(Error),
}

/// The events that `poll` reports, by Linux's rules (`tcp_poll`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// POLLIN: data, the end of it, or an error can be read.
    pub readable: bool,
    /// POLLOUT: a third of the buffer is free, or writing is over.
    pub writable: bool,
    /// POLLRDHUP: nothing more will be received.
    pub read_closed: bool,
    /// POLLHUP: both directions are over.
    pub hung_up: bool,
    /// POLLERR: an error waits to be taken.
    pub error: bool,
}

impl Endpoint {
    /// Opens the connection actively: a SYN waits to be transmitted. Does nothing unless CLOSED and
    /// unused.
    pub fn connect(&mut self) {
        if self.state == State::Closed && self.error().is_none() && self.sender.sequence.nxt() == 0 {
            self.state = State::SynSent;
            self.handshake.begin();
            if self.config.states.fast_open {
                self.try_fast_open();
            }
        }
    }

    /// Opens the connection actively, as [`Endpoint::connect`], with the option that `attempt`
    /// says. Data written before the SYN is sent goes with it as far as it fits, if `attempt` has
    /// data go along.
    pub fn connect_fast_open(&mut self, attempt: FastOpenAttempt) {
        self.connect();
        if self.state == State::SynSent && self.sender.sequence.nxt() == 0 {
            self.open_with(&attempt);
        }
    }

    /// The application writes up to `bytes` more bytes of its stream; returns how many the send
    /// buffer took. Nothing is taken after [`Endpoint::shutdown`].
    #[inline]
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.write_with(bytes, WriteFlags::default())
    }

    /// [`Endpoint::write`] with flags; a record that is ended (MSG_EOR) keeps its segments to
    /// itself by Linux's rules alone.
    #[inline]
    pub fn write_with(&mut self, bytes: u64, flags: WriteFlags) -> u64 {
        if self.sender.sequence.is_closed() || self.state == State::Closed {
            return 0;
        }
        self.sender.writing.set_more(flags.more);
        match self.config.transfer.send_space {
            SpaceRule::Bytes | SpaceRule::Segments => {}
            SpaceRule::Linux => return self.sender.fill_buffers(bytes, flags),
            SpaceRule::Tuned => return self.sender.fill_tuned(bytes),
        }
        if !self.sender.writing.is_below_lowat(self.sender.unsent()) {
            return 0;
        }
        let taken = bytes.min(self.sender.send_space());
        self.sender.sequence.write(taken);
        taken
    }

    /// write(2) without blocking: takes up to `bytes` bytes.
    pub fn send(&mut self, bytes: u64) -> Sending {
        if self.sender.sequence.is_closed() || matches!(self.state, State::Closed | State::Listen) {
            return Sending::Failed(self.take_error().unwrap_or(Error::BrokenPipe));
        }
        if matches!(self.state, State::SynSent | State::SynReceived) && !self.is_open_early() {
            return Sending::WouldBlock;
        }
        match self.write(bytes) {
            0 if bytes > 0 => Sending::WouldBlock,
            taken => Sending::Taken(taken),
        }
    }

    /// read(2) without blocking: takes up to `most` bytes.
    pub fn recv(&mut self, most: u64) -> Received {
        self.sender.burst.end();
        let taken = self.read(most);
        if taken > 0 || most == 0 {
            return Received::Data(taken);
        }
        if self.receiver().is_finished() {
            return Received::EndOfFile;
        }
        if let Some(error) = self.take_error() {
            return Received::Failed(error);
        }
        if self.socket.is_read_shut() {
            return Received::EndOfFile;
        }
        match self.state {
            // The error has been reported; what follows is the end of the file.
            State::Closed if self.sender.sequence.nxt() > 0 => Received::EndOfFile,
            State::Closed | State::Listen => Received::Failed(Error::NotConnected),
            _ => Received::WouldBlock,
        }
    }

    /// shutdown(2). Does nothing to a connection that is not open.
    pub fn shutdown(&mut self, how: Shutdown) {
        self.sender.burst.end();
        if how != Shutdown::Write {
            self.socket.shut_reading(self.config.states.discard_unread);
            if self.config.states.discard_unread {
                self.read(u64::MAX);
            }
        }
        if how == Shutdown::Read {
            return;
        }
        match self.state {
            State::Closed => {}
            State::Listen | State::SynSent => self.close_now(None),
            _ => self.sender.sequence.close(),
        }
        self.review_deadlines();
    }

    /// close(2): shuts both directions; nobody will ask for anything any more. With data unread, or
    /// a linger time of zero, the connection is reset.
    pub fn close(&mut self, now: Time) {
        self.sender.burst.end();
        let unread = self.receiver().unread() > 0 && self.config.states.reset_unread;
        self.socket.abandon();
        if unread || self.socket.linger() == Some(Span::ZERO) {
            self.abort();
        } else {
            self.shutdown(Shutdown::Both);
            self.arm_fin_wait_2(now);
        }
        self.review_deadlines();
    }

    /// Gives the connection up at once, with a reset to the peer if it is open (RFC 9293 section
    /// 3.10.5).
    pub fn abort(&mut self) {
        self.sender.burst.end();
        match self.state {
            State::Closed => return,
            State::Listen | State::SynSent | State::TimeWait => {}
            _ => self.reset_peer(),
        }
        self.close_now(Some(Error::Aborted));
        self.review_deadlines();
    }

    /// SO_LINGER: `None` for off; zero makes [`Endpoint::close`] a reset; with more the caller may
    /// wait for [`Endpoint::is_close_complete`], that long.
    pub fn set_linger(&mut self, linger: Option<Span>) {
        self.socket.set_linger(linger);
    }

    /// SO_LINGER.
    pub fn linger(&self) -> Option<Span> {
        self.socket.linger()
    }

    /// Returns `true` if all written data and the FIN are acknowledged or given up; a lingering
    /// close waits for this.
    pub fn is_close_complete(&self) -> bool {
        matches!(self.state, State::Closed | State::FinWait2 | State::TimeWait)
    }

    /// TCP_USER_TIMEOUT, from now on.
    pub fn set_user_timeout(&mut self, timeout: Option<Span>) {
        self.configure(|config| config.states.user_timeout = timeout);
    }

    /// TCP_LINGER2: how long it waits in FIN-WAIT-2 once it is closed, from now on.
    pub fn set_fin_wait_2_timeout(&mut self, timeout: Option<Span>) {
        self.configure(|config| config.states.fin_wait_2_timeout = timeout);
    }

    /// SO_ERROR: the error that ended the connection, once.
    pub fn take_error(&mut self) -> Option<Error> {
        self.socket.take_error()
    }

    /// The events that `poll` reports.
    pub fn readiness(&self) -> Readiness {
        let closed = self.state == State::Closed;
        let read_closed =
            self.socket.is_read_shut() || self.receiver().is_finished() || closed && self.sender.sequence.nxt() > 0;
        let write_closed = self.sender.sequence.is_closed() || closed;
        let open = !matches!(self.state, State::Listen | State::SynSent | State::SynReceived) || self.is_open_early();
        Readiness {
            readable: open && (self.receiver().unread() > 0) || read_closed,
            writable: open && (write_closed || self.sender.has_room_to_tell()),
            read_closed,
            hung_up: closed || read_closed && write_closed,
            error: self.socket.has_error(),
        }
    }
}
