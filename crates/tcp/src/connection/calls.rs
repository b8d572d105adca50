//! The calls of a socket: connect, send, receive, shut down, close, and what `poll` and `SO_ERROR`
//! report.

use ackclock_cc::CongestionControl;
use ackclock_packet::Segment;
use ackclock_units::{Span, Time};

use super::fast_open::{Opening, known_cookie};
use super::socket::WriteFlags;
use crate::{AccEcnOption, AckRule, Endpoint, Error, FastOpenAttempt, KeepAlive, Metrics, SpaceRule, State};

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

/// An option that an application may set on its socket while the connection runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// TCP_NODELAY: small segments do not wait for acknowledgments. A waiting segment is sent.
    NoDelay(bool),
    /// TCP_CORK (TCP_NOPUSH): small segments wait until it is taken off, or until the probe timer
    /// has expired.
    Cork(bool),
    /// TCP_QUICKACK: acknowledge at once for now, or as in an interactive connection. Hosts that
    /// follow Linux have this option.
    QuickAck(bool),
    /// TCP_MAXSEG, before the connection is opened: the largest segment to send and to ask for,
    /// bytes.
    MaxSegment(u16),
    /// TCP_NOTSENT_LOWAT: writing waits while so many bytes are unsent; `None` for no bound.
    NotSentLowat(Option<u32>),
    /// SO_SNDBUF, bytes: Linux doubles it for its overhead.
    SendBuffer(u64),
    /// SO_RCVBUF, bytes: Linux doubles it for its overhead. An offered window stays offered.
    ReceiveBuffer(u64),
    /// SO_MAX_PACING_RATE, bytes a second; `None` for no bound. Setting one turns pacing on.
    MaxPacingRate(Option<u64>),
    /// SO_LINGER: `None` for off; zero makes [`Endpoint::close`] a reset; with more the caller may
    /// wait for [`State::is_close_complete`], that long.
    Linger(Option<Span>),
    /// TCP_SYNCNT.
    SynRetries(u32),
    /// TCP_USER_TIMEOUT.
    UserTimeout(Option<Span>),
    /// TCP_LINGER2: the wait in FIN-WAIT-2 once the application has closed.
    FinWait2Timeout(Option<Span>),
    /// IP_RECVERR: errors of an open connection are reported at once, and not only when it is given
    /// up.
    ReportErrors(bool),
    /// IP_MTU_DISCOVER: whether messages that a packet was too big are believed
    /// ([`crate::PathRules::discovery`]).
    PathDiscovery(bool),
    /// [`crate::PathRules::may_reset`], which is a setting of the host and may change while a
    /// connection is there.
    IcmpMayReset(bool),
    /// When the AccECN option is sent, with [`crate::AccEcnRules::beacon`].
    AccEcnOption(AccEcnOption, u32),
}

impl Endpoint {
    /// Opens the connection actively: a SYN waits to be transmitted. Does nothing unless CLOSED and
    /// unused.
    pub fn connect(&mut self) {
        if self.state == State::Closed && self.error().is_none() && self.sender.sequence.nxt() == 0 {
            self.state = State::SynSent;
            self.handshake.begin();
            if self.config.states.fast_open {
                self.opening = Opening::of_client(&FastOpenAttempt::with_cookie(known_cookie()));
            }
        }
    }

    /// Opens the connection actively, as [`Endpoint::connect`], with the option that `attempt`
    /// says. Data written before the SYN is sent goes with it as far as it fits, if `attempt` has
    /// data go along.
    pub fn connect_fast_open(&mut self, attempt: FastOpenAttempt) {
        self.connect();
        if self.state == State::SynSent && self.sender.sequence.nxt() == 0 {
            self.opening = Opening::of_client(&attempt);
        }
    }

    /// The bytes that the SYN has room for: none without Fast Open, or when it has been sent.
    pub fn fast_open_room(&self, now: Time) -> u64 {
        if self.sender.sequence.nxt() > 0 {
            return 0;
        }
        let mut syn = Segment::default();
        self.put_syn_options(now, &mut syn);
        self.opening.room(&self.config, &mut syn).into()
    }

    /// Once it is established, the connection starts with what is remembered of its destination. To
    /// be called before [`Endpoint::connect`].
    pub fn recall(&mut self, metrics: Metrics) {
        self.recalled = Some(Box::new(metrics));
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
        let space = match self.config.transfer.send_space {
            SpaceRule::Bytes => self.sender.send_space_in_bytes(),
            SpaceRule::Segments => self.sender.send_space(),
            SpaceRule::Linux => return self.sender.fill_buffers(bytes, flags),
            SpaceRule::Tuned => {
                let taken = self.sender.fill_tuned(bytes);
                self.note_write(taken);
                return taken;
            }
        };
        if !self.sender.writing.is_below_lowat(self.sender.sequence.unsent()) {
            return 0;
        }
        let taken = bytes.min(space);
        self.sender.sequence.write(taken);
        self.note_write(taken);
        taken
    }

    fn note_write(&mut self, taken: u64) {
        if taken > 0 && self.config.transfer.marks_writes() {
            self.sender.note_write(taken);
        }
    }

    /// write(2) without blocking: takes up to `bytes` bytes.
    pub fn send(&mut self, bytes: u64) -> Sending {
        if self.sender.sequence.is_closed() || matches!(self.state, State::Closed | State::Listen) {
            return Sending::Failed(self.take_error().unwrap_or(Error::BrokenPipe));
        }
        if self.state.is_opening() && !self.opening.is_early() {
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
        let open =
            !matches!(self.state, State::Listen | State::SynSent | State::SynReceived) || self.opening.is_early();
        Readiness {
            readable: open && (self.receiver().unread() > 0) || read_closed,
            writable: open && (write_closed || self.sender.has_room_to_tell()),
            read_closed,
            hung_up: closed || read_closed && write_closed,
            error: self.socket.has_error(),
        }
    }

    /// setsockopt(2): the option applies from now on.
    pub fn set_option(&mut self, option: SocketOption) {
        self.sender.burst.end();
        match option {
            SocketOption::NoDelay(on) => {
                self.configure(|config| config.nagle = !on);
                if on {
                    self.sender.writing.push();
                }
            }
            SocketOption::Cork(on) => self.sender.writing.set_cork(on, self.config.nagle),
            SocketOption::QuickAck(on) => self.receiver.set_quick_ack(on),
            SocketOption::MaxSegment(mss) => {
                let mss = mss.max(1);
                self.sender.writing.set_max_segment(mss);
                if self.sender.sequence.nxt() == 0 {
                    let mss = self.config.mss.min(mss);
                    self.configure(|config| config.mss = mss);
                    self.sender.negotiated.set_mss(self.sender.negotiated.mss().min(u32::from(mss)));
                }
            }
            SocketOption::NotSentLowat(bytes) => self.sender.writing.set_notsent_lowat(bytes),
            SocketOption::SendBuffer(bytes) => self.sender.queue.set_buffer(bytes, self.config.transfer.send_space),
            SocketOption::ReceiveBuffer(bytes) => self.receiver.set_buffer(bytes),
            SocketOption::MaxPacingRate(rate) => self.sender.bound_pacing_rate(rate),
            SocketOption::Linger(linger) => self.socket.set_linger(linger),
            SocketOption::SynRetries(retries) => self.configure(|config| config.states.syn_retries = retries),
            SocketOption::UserTimeout(timeout) => self.configure(|config| config.states.user_timeout = timeout),
            SocketOption::FinWait2Timeout(timeout) => {
                self.configure(|config| config.states.fin_wait_2_timeout = timeout);
            }
            SocketOption::ReportErrors(on) => self.soft_errors.set_at_once(on),
            SocketOption::PathDiscovery(on) => self.configure(|config| config.path.discovery = on),
            SocketOption::IcmpMayReset(on) => self.configure(|config| config.path.may_reset = on),
            SocketOption::AccEcnOption(option, beacon) => self.configure(|config| {
                let rules = &mut config.transfer.acc_ecn;
                (rules.option, rules.beacon) = (option, beacon);
            }),
        }
    }

    /// SO_KEEPALIVE with its times, from now on.
    pub fn set_keepalive(&mut self, now: Time, keepalive: Option<KeepAlive>) {
        let was_off = self.config.states.keepalive.is_none() && self.config.transfer.acks == AckRule::Linux;
        self.configure(|config| config.states.keepalive = keepalive);
        let open = !self.state.is_unopened() && self.state != State::TimeWait;
        self.liveness.arm(now, keepalive, open, was_off);
        self.review_deadlines();
    }

    /// TCP_CONGESTION: another congestion controller from now on. On an open connection it takes
    /// the window and the threshold over, and a reduction that runs is finished (Linux
    /// `tcp_reinit_congestion_control`).
    pub fn set_congestion_control(&mut self, now: Time, mut cc: Box<dyn CongestionControl>) {
        // A failure is kept, so that the run learns of it.
        if self.sender.cc.inspect().failure.is_some() {
            return;
        }
        self.sender.burst.end();
        let opening = self.state.is_unopened();
        if !opening || self.opening.is_early() {
            let flight = self.sender.flight(now);
            cc.on_established(&flight);
            cc.take_over(self.sender.cc.window());
            cc.on_ecn(self.sender.ecn.usable_feedback());
        }
        self.sender.cc = cc;
        self.sender.adopt_needs();
        self.sender.decide_pacing(now);
    }

    /// An ACK goes out at once, whatever it has to say.
    pub fn acknowledge_now(&mut self) {
        self.sender.burst.end();
        self.receiver.acknowledge_now();
    }
}
