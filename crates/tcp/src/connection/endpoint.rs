//! The connection: its state, its deadlines and its end.

use std::mem::offset_of;
use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_packet::Flags;
use ackclock_units::{Span, Time, prefetch, prefetch_part};

use crate::connection::answers::{Answers, Reset};
use crate::connection::fast_open::Opening;
use crate::connection::icmp::soft::SoftErrors;
use crate::connection::liveness::{Liveness, Silence};
use crate::connection::ports::Ports;
use crate::connection::remembered::Metrics;
use crate::connection::socket::Socket;
use crate::connection::state::State;
use crate::connection::syn::Handshake;
use crate::connection::timers::Timers;
use crate::loss::Loss;
use crate::loss::scoreboard::Scoreboard;
use crate::receiver::Receiver;
use crate::send::Sender;
use crate::send::retransmission_timer::{Pending, RetransmissionTimer};
use crate::{AckRule, Config, Error, GiveUp, MtuProbing, WindowRule};

/// The data that a segment acknowledged, for the application and for measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgment {
    /// Bytes of our stream that it newly acknowledged.
    pub acked: u64,
    /// The RTT of data that it measured: from the transmission of a segment sent once to its first
    /// acknowledgment.
    pub rtt: Option<Span>,
    /// The segment was an acceptable acknowledgment.
    pub is_ack: bool,
}

/// One end of one connection. The fields that most segments touch lie together.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    // Every visit.
    pub(super) state: State,
    pub(super) ports: Ports,
    pub(super) error: Option<Error>,
    pub(super) answers: Answers,
    /// When the first of the timers expires that seldom run.
    pub(super) rare_deadline: Time,
    pub(super) timers: Timers,
    pub(super) liveness: Liveness,
    pub(super) handshake: Handshake,

    pub(super) receiver: Receiver,
    pub(super) sender: Sender,

    /// Shared by the endpoints of one kind of host; a socket option gives this one its own.
    pub(super) config: Arc<Config>,
    pub(super) socket: Socket,

    // Parts that few connections have.
    pub(super) opening: Opening,
    /// Metrics remembered of the destination, until the connection is established.
    pub(super) recalled: Option<Box<Metrics>>,
    pub(super) soft_errors: SoftErrors,
}

impl Endpoint {
    /// An endpoint in CLOSED. `isn` is its initial sequence number and `ts_offset` the start of its
    /// timestamp clock, both best drawn at random. Endpoints with the same settings may share them:
    /// `config` is a [`Config`] or an [`Arc`] of one.
    pub fn new(
        config: impl Into<Arc<Config>>,
        cc: Box<dyn CongestionControl>,
        ports: Ports,
        isn: u32,
        ts_offset: u32,
    ) -> Endpoint {
        let config = config.into();
        let receiver = Receiver::new(config.receive_buffer.max(1), config.delayed_ack).with_rules(&config.transfer);
        Endpoint {
            state: State::Closed,
            ports,
            answers: Answers::default(),
            rare_deadline: Time::NEVER,
            timers: Timers::new(),
            liveness: Liveness::default(),
            handshake: Handshake::default(),
            receiver,
            sender: Sender::new(Arc::clone(&config), cc, isn, ts_offset),
            config,
            socket: Socket::default(),
            opening: Opening::default(),
            recalled: None,
            soft_errors: SoftErrors::default(),
            error: None,
        }
    }

    /// Opens the connection passively: waits for a SYN. Does nothing unless CLOSED and unused.
    pub fn listen(&mut self) {
        if self.state == State::Closed && self.error.is_none() && self.sender.sequence.nxt() == 0 {
            self.state = State::Listen;
            self.socket.listen();
        }
    }

    /// The application reads up to `most` bytes; returns how many it got. They were checked on
    /// arrival ([`Receiver::integrity_error`]).
    #[inline]
    pub fn read(&mut self, most: u64) -> u64 {
        self.sender.burst.interrupt();
        self.receiver.read(most)
    }

    /// The application reads everything that has arrived by `now`, in its turn: ACKs for which that
    /// is the reason are due by a timer at `now`, after whatever else arrives at that time.
    #[inline]
    pub fn read_arrived(&mut self, now: Time) {
        self.sender.burst.interrupt();
        self.receiver.read_arrived(now);
    }

    /// Settings of its own, changed by a socket option.
    #[cold]
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.config));
        self.sender.configured(&self.config);
    }

    /// Its ports.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Returns `true` if this is a living connection with this port of the peer.
    pub(crate) fn is_at(&self, remote: u16) -> bool {
        self.ports.remote == remote && self.state != State::Closed
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it did not end by both sides closing it.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// The sending half.
    #[inline]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The sending half, for a layer above and for what drives the connection.
    #[inline]
    pub fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// The receiving half.
    #[inline]
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Its part in Fast Open.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Its part in Fast Open, for what holds the socket.
    #[inline]
    pub fn opening_mut(&mut self) -> &mut Opening {
        &mut self.opening
    }

    /// Returns `true` if both sides have closed and everything is acknowledged; the state may still
    /// be TIME-WAIT.
    #[inline]
    pub fn is_finished(&self) -> bool {
        let all_acked = || {
            self.sender.sequence.is_fin_sent() && self.sender.sequence.acked_bytes() == self.sender.sequence.written()
        };
        self.state == State::TimeWait
            || (self.state == State::Closed && self.error.is_none() && all_acked() && self.receiver().is_finished())
    }

    // Deadlines: the one place that knows every timer.

    /// When [`Endpoint::on_deadline`] is to be called next; [`Time::NEVER`] if nothing is pending.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        debug_assert_eq!(self.rare_deadline, self.next_rare_deadline());
        let stream = self.sender.timer.retransmission().min(self.receiver.ack_deadline());
        stream.min(self.sender.pacer.deadline()).min(self.rare_deadline)
    }

    /// Does what is due at `now`; then [`Endpoint::transmit`] is to be asked.
    pub fn on_deadline(&mut self, now: Time) {
        self.sender.burst.end();
        self.serve_timers(now);
        self.review_deadlines();
    }

    fn serve_timers(&mut self, now: Time) {
        if self.receiver.ack_deadline() <= now {
            self.receiver.ack_timed_out();
        }
        if self.sender.loss.board.samples_rates()
            && self.sender.timer.retransmission().min(self.sender.persist.deadline()) <= now
        {
            self.sender.check_app_limited(now, self.sender.sequence.written());
        }
        if self.sender.pacer.deadline() <= now {
            self.sender.pacer.let_go();
        }
        if self.timers.is_over(now) {
            self.close_now(None);
        }
        if self.timers.is_handshake_due(now) {
            if self.opening.is_early() {
                self.early_answer_due(now);
            } else {
                self.give_up();
            }
        }
        if self.sender.path.deadline() <= now {
            self.sender.forget_path_mtu(self.state);
        }
        if self.sender.timer.retransmission() <= now {
            self.sender.timer.stop_retransmission();
            if now > self.sender.now {
                (self.sender.now, self.sender.order) = (now, 0);
            }
            self.sender.probe_stands = false;
            match self.sender.timer.pending() {
                // tcp_retransmit_timer: only the SYN/ACK is sent again, by a timer of its own.
                _ if self.state == State::SynReceived && self.opening.is_early() => {}
                Pending::Rto => self.retransmit_due(now),
                Pending::Probe => self.sender.on_probe_timer(now),
                Pending::Reorder => self.sender.on_detector_timer(now),
            }
        }
        if self.sender.persist.deadline() <= now {
            let gives_up = self.sender.persist.expire(
                now,
                &self.config,
                &self.sender.rtt,
                self.liveness.heard_at(),
                self.socket.is_orphan(),
            );
            if gives_up {
                self.give_up();
            }
        }
        if self.liveness.deadline() <= now {
            let busy = !self.sender.loss.board.is_empty() || self.sender.sequence.unsent() > 0;
            match self.liveness.expire(now, &self.config.states, busy) {
                Silence::Short => {}
                Silence::Probe => self.answers.probe(),
                Silence::Final => {
                    self.reset_peer();
                    self.close_now(Some(self.soft_errors.reason_to_give_up(self.liveness.heard_at())));
                }
            }
        }
    }

    pub(crate) fn retransmit_due(&mut self, now: Time) {
        let opening = self.state.is_opening();
        if self.config.path.probing != MtuProbing::Off && !opening {
            self.sender.suspect_black_hole(now);
        }
        let gives_up = self.is_given_up(now);
        self.opening.detect_blackhole(self.sender.rtt.timeouts(), gives_up);
        if gives_up {
            self.give_up();
            return;
        }
        if self.sender.rtt.timeouts() == 0 {
            let first_syn = self.handshake.sent_at().filter(|_| self.state == State::SynSent);
            self.sender.timer.begin_resending(first_syn.unwrap_or(now));
        }
        match self.state {
            State::SynSent | State::SynReceived => {
                // A SYN/ACK that was already answered is not repeated for now.
                let holds = self.state == State::SynReceived
                    && self.socket.is_deferred()
                    && self.sender.rtt.timeouts() + 1 < self.config.states.defer_accept;
                self.sender.rtt.back_off();
                if holds {
                    self.arm_syn_timers(now, true);
                    return;
                }
                self.sender.stats.timeouts += 1;
                self.repeat_syn();
            }
            _ if self.sender.loss.board.is_empty() => {}
            _ => self.sender.on_timeout(now),
        }
    }

    /// R2 of RFC 9293 section 3.8.3, or the user timeout.
    fn is_given_up(&self, now: Time) -> bool {
        let rules = &self.config.states;
        let timeouts = self.sender.rtt.timeouts();
        let resending = now.since(self.sender.timer.resending_since());
        if timeouts > 0 && rules.user_timeout.is_some_and(|timeout| resending >= timeout) {
            return true;
        }
        let limit = match self.state {
            State::SynReceived if self.socket.is_passive() => {
                return timeouts >= rules.synack_retries
                    && (!self.socket.is_deferred() || timeouts >= rules.defer_accept);
            }
            State::SynSent => {
                // tcp_write_timeout: by number, or as long as so many take that are doubled.
                let modelled = matches!(rules.give_up, GiveUp::ModelTime(_)) && rules.user_timeout.is_none();
                return timeouts >= rules.syn_retries.saturating_add(rules.linear_syn_timeouts)
                    || modelled
                        && timeouts > 0
                        && resending >= self.config.model_time(rules.syn_retries, self.config.initial_rto);
            }
            State::SynReceived => return timeouts >= rules.syn_retries,
            _ => self.config.retry_limit(self.socket.is_orphan(), self.sender.rto()),
        };
        match rules.give_up {
            GiveUp::Retries => timeouts >= limit,
            // Linux `retransmits_timed_out`, which a user timeout replaces.
            GiveUp::ModelTime(_) if rules.user_timeout.is_some() => false,
            GiveUp::ModelTime(least) => timeouts > 0 && resending >= self.config.model_time(limit, least),
        }
    }

    /// The timers that seldom run: those of a closed window, of a silent peer, of the path and of
    /// the beginning and the end of a connection.
    fn next_rare_deadline(&self) -> Time {
        let peer = self.sender.persist.deadline().min(self.liveness.deadline());
        self.timers.next_rare().min(peer).min(self.sender.path.deadline())
    }

    /// After whatever may have set one of the timers that seldom run. Full segments, plain
    /// acknowledgments and expected segments set none.
    #[inline]
    pub(crate) fn review_deadlines(&mut self) {
        self.rare_deadline = self.next_rare_deadline();
    }

    // Closing.

    pub(crate) fn on_fin_acknowledged(&mut self, now: Time) {
        if !self.sender.sequence.is_fin_sent() || self.sender.sequence.una() < self.sender.sequence.nxt() {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_fin_wait_2(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.close_now(None),
            _ => {}
        }
    }

    /// The application is gone and the peer has acknowledged our FIN: it has this long to send its
    /// own.
    pub(crate) fn arm_fin_wait_2(&mut self, now: Time) {
        if self.state == State::FinWait2
            && self.socket.is_orphan()
            && let Some(timeout) = self.config.states.fin_wait_2_timeout
        {
            // Linux `tcp_fin_time`: no less than three and a half retransmission timeouts.
            self.timers.bound_fin_wait_2(now + timeout.max(self.sender.rto() * 7 / 2));
        }
    }

    fn enter_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.stop_timers();
        self.timers.wait_out(now + self.config.time_wait);
    }

    pub(crate) fn on_peer_fin(&mut self, now: Time) {
        self.receiver.finished();
        if self.state == State::Established && self.config.transfer.acks == AckRule::Linux {
            // tcp_fin: its ACK may wait for an answer that ends our side too.
            self.receiver.expect_answer();
        } else {
            self.receiver.acknowledge_now();
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// A reset goes out that ends this connection.
    pub(crate) fn reset_peer(&mut self) {
        // tcp_send_active_reset goes the way of all segments.
        let linux = matches!(self.config.transfer.window, WindowRule::Linux { .. });
        self.answers.reset(Reset {
            seq: self.sender.sequence.lower(self.sender.sequence.nxt()),
            ack: self.receiver.ack_number(),
            flags: Flags::RST | Flags::ACK,
            stamped: self.sender.negotiated.timestamps(),
            window: if linux { self.receiver.window_field(self.sender.negotiated.scaling()) } else { 0 },
        });
    }

    /// The peer does not answer.
    pub(crate) fn give_up(&mut self) {
        if self.config.states.reset_on_timeout && !self.state.is_opening() {
            self.reset_peer();
        }
        self.close_now(Some(self.soft_errors.reason_to_give_up(self.liveness.heard_at())));
    }

    /// Nothing is due any more.
    fn stop_timers(&mut self) {
        self.timers = Timers::new();
        self.sender.timer = RetransmissionTimer::new();
        self.sender.persist.stop();
        self.liveness.stop();
        self.sender.path.keep_estimate_for_good();
    }

    pub(crate) fn close_now(&mut self, error: Option<Error>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        let lone_fin = self.receiver.has_fin() && !self.receiver.is_finished();
        self.opening.end(self.sender.counters.data_segments_in == 0, lone_fin);
        if let Some(error) = error {
            self.socket.report(error);
        }
        self.stop_timers();
        self.sender.pacer.let_go();
        self.answers.close();
        self.receiver.stop_acknowledging();
        self.handshake.give_up();
        self.sender.persist.satisfy();
    }

    // Prefetching of the state that the next segment will touch. With so many connections that their
    // state does not stay in the cache, a driver that knows which endpoint comes next can have it
    // fetched while it deals with another one.

    /// Starts to fetch what an arriving segment touches of the endpoint itself, of an end that
    /// sends data or of one that only receives.
    #[inline]
    pub fn prefetch(&self, sends: bool) {
        if sends { self.prefetch_all() } else { self.prefetch_receiver() }
    }

    // Apart, since the two have many lines in common, whose addresses would be computed first.
    #[inline(never)]
    fn prefetch_all(&self) {
        prefetch(self);
    }

    #[inline(never)]
    fn prefetch_receiver(&self) {
        const RECEIVER: usize = offset_of!(Endpoint, receiver);
        const SENDER: usize = offset_of!(Endpoint, sender);
        const BOARD: usize = SENDER + offset_of!(Sender, loss) + offset_of!(Loss, board);
        prefetch_part(self, 0..offset_of!(Endpoint, handshake));
        prefetch_part(self, SENDER..SENDER + offset_of!(Sender, loss));
        prefetch_part(self, RECEIVER..RECEIVER + size_of::<Receiver>());
        prefetch_part(self, BOARD..BOARD + size_of::<Scoreboard>() / 8);
        prefetch_part(self, SENDER + offset_of!(Sender, ecn)..offset_of!(Endpoint, opening));
    }

    /// Starts to fetch what lies behind it. Best called once [`Endpoint::prefetch`] has done its
    /// work.
    #[inline]
    pub fn prefetch_behind(&self, sends: bool) {
        if sends {
            prefetch(&*self.sender.cc);
            self.sender.loss.board.prefetch_behind();
        }
    }
}

#[cfg(test)]
mod tests;
