//! TCP Fast Open (RFC 7413): data with the SYN, and answers before the handshake has ended.
//!
//! The client asks for a cookie once, keeps it in a [`FastOpenCache`], and sends its first data
//! with the SYN of later connections. The server ([`FastOpenServer`]) takes data in with a SYN that
//! shows the right cookie; its child is readable and writable before the last ACK of the handshake
//! has come.
//!
//! # Source
//! RFC 7413. Linux `net/ipv4/tcp_fastopen.c`, `tcp_metrics.c`, `tcp_send_syn_data` and
//! `tcp_syn_options` of `tcp_output.c`, `tcp_rcv_fastopen_synack`, `tcp_rcv_synrecv_state_fastopen`
//! and `tcp_conn_request` of `tcp_input.c`, `tcp_check_req` of `tcp_minisocks.c`,
//! `reqsk_fastopen_remove` of `net/core/request_sock.c`, `tcp_fastopen_synack_timer` of
//! `tcp_timer.c`. FreeBSD `sys/netinet/tcp_fastopen.c`, `tcp_syncache.c`, `tcp_input.c`,
//! `tcp_output.c`.
//!
//! # Departures
//! - The state of a child whose application has closed before the last ACK stays SYN-RECEIVED until
//!   that ACK; in stacks it is FIN-WAIT-1.
//! - FreeBSD lets the congestion window grow by the data that a SYN/ACK acknowledges; here it does
//!   not, as in Linux.
//! - FreeBSD's preshared keys are not here, nor its rotation of keys and the limits of its cache.

use ackclock_packet::{FastOpen, Payload, Segment};
use ackclock_units::Time;

use crate::loss::scoreboard::Progress;
use crate::{CaState, Endpoint, Error, SendRule, State};

mod cache;
mod opening;
mod server;

pub use cache::{FastOpenAttempt, FastOpenCache, FastOpenNews, FastOpenStack};
pub(crate) use opening::Opening;
pub(crate) use server::{EarlyConnections, Judged};
pub use server::{FastOpenServer, fast_open_cookie};

/// The cookie of ends that need none: both know it.
const KNOWN_COOKIE: [u8; 8] = *b"ackclock";

impl Endpoint {
    /// [`crate::StateRules::fast_open`].
    #[cold]
    pub(crate) fn try_fast_open(&mut self) {
        self.open_with(&FastOpenAttempt::with_cookie(FastOpen::new(&KNOWN_COOKIE)));
    }

    /// The SYN has the option that `attempt` says.
    pub(crate) fn open_with(&mut self, attempt: &FastOpenAttempt) {
        self.opening = Some(Box::new(Opening::of_client(attempt)));
    }

    /// The passive end of that.
    #[cold]
    pub(crate) fn take_fast_open(&mut self, now: Time, syn: &Segment) {
        let server = FastOpenServer::with_cookie(FastOpen::new(&KNOWN_COOKIE), 1);
        let alone = EarlyConnections::default();
        match server.judge(now, syn, &alone) {
            Judged::Early(reply) => self.open_early(now, syn, reply, &alone),
            Judged::Ordinary(reply) => self.reply_to_fast_open(reply),
        }
    }

    /// The bytes that the SYN has room for: none without Fast Open, or when it has been sent.
    pub fn fast_open_room(&self, now: Time) -> u64 {
        match &self.opening {
            Some(opening) if opening.takes_data && self.sender.sequence.nxt() == 0 => {
                let mut syn = Segment { fast_open: opening.option, ..Segment::default() };
                self.put_syn_options(now, &mut syn);
                u64::from(opening.room(&self.config, &syn))
            }
            _ => 0,
        }
    }

    /// Lets a writer sleep until the connection is open, or not. The ACK of the handshake waits for
    /// its data, as in Linux.
    pub fn set_writer_waits(&mut self, waits: bool) {
        if let Some(opening) = &mut self.opening {
            opening.writer_waits = waits;
        }
    }

    /// The news for [`FastOpenCache::learn`], once: to be asked for when a segment has arrived or a
    /// timer expired.
    #[inline]
    pub fn take_fast_open_news(&mut self) -> Option<FastOpenNews> {
        let news = std::mem::take(&mut self.opening.as_mut()?.news);
        (news != FastOpenNews::default()).then_some(news)
    }

    /// `TCPI_OPT_SYN_DATA`: data of a SYN was acknowledged, or taken in, by the SYN/ACK.
    pub fn syn_data_acknowledged(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.acked)
    }

    // The client.

    /// Writes what the first SYN has besides its usual options.
    pub(crate) fn put_fast_open(&mut self, now: Time, out: &mut Segment) {
        let Some(mut opening) = self.opening.take() else { return };
        if self.state == State::SynReceived {
            out.fast_open = opening.option.take();
            if let Some(early) = &mut opening.early {
                early.answered = true;
            }
        } else {
            out.fast_open = opening.option;
            opening.asked = opening.option.is_some();
            let written = u32::try_from(self.sender.sequence.written()).unwrap_or(u32::MAX);
            opening.sent = if opening.takes_data { written.min(opening.room(&self.config, out)) } else { 0 };
            if opening.sent > 0 {
                self.sender.send_with_syn(now, opening.sent);
                out.payload = Payload { offset: 0, len: opening.sent };
            }
        }
        self.opening = Some(opening);
    }

    /// A SYN/ACK that acknowledges up to `ack` has opened the connection. Returns `true` if data
    /// that came with it may be taken in.
    #[cold]
    pub(crate) fn answer_to_fast_open(&mut self, now: Time, segment: &Segment, ack: u64) -> bool {
        let Some(mut opening) = self.opening.take() else { return false };
        let linux = self.config.transfer.sending == SendRule::Linux;
        if opening.sent > 0 {
            self.sender.loss.board.acknowledge(ack, &mut Progress::new(now));
            self.sender.sequence.acknowledge(ack);
            opening.acked = self.sender.loss.board.is_empty();
        }
        let unacknowledged = !self.sender.loss.board.is_empty();
        opening.learn(segment, unacknowledged, self.sender.syn_lost);
        if unacknowledged {
            self.sender.resend_syn_data(now, linux);
        } else if linux && opening.writer_waits {
            // tcp_rcv_synsent_state_process: one ACK saved.
            self.receiver.wait_for_writer(now);
        }
        if unacknowledged || self.sender.unsent() > 0 || opening.writer_waits {
            self.handshake.acknowledge_alone(false);
        }
        // tcp_fastopen_add_skb.
        let takes = !unacknowledged && opening.was_tried();
        self.opening = Some(opening);
        takes
    }

    /// The retransmission timer has expired: Linux `tcp_fastopen_active_detect_blackhole`.
    #[cold]
    pub(crate) fn detect_blackhole(&mut self, gives_up: bool) {
        let timeouts = self.sender.rtt.timeouts();
        if let Some(opening) = &mut self.opening
            && opening.was_tried()
            && (timeouts == 2 || timeouts < 2 && gives_up)
        {
            opening.news.blackhole = true;
        }
    }

    /// A reset out of its place: Linux `tcp_validate_incoming` suspects a firewall that does not
    /// know the connection.
    #[cold]
    pub(crate) fn suspect_reset(&mut self) {
        let no_data = self.state == State::Established && self.sender.counters.data_segments_in == 0;
        if let Some(opening) = self.opening.as_mut().filter(|opening| opening.asked && no_data) {
            opening.news.blackhole = true;
        }
    }

    // The server.

    /// The next SYN/ACK carries `reply`.
    pub(crate) fn reply_to_fast_open(&mut self, reply: Option<FastOpen>) {
        if let Some(reply) = reply {
            self.opening = Some(Box::new(Opening::of_server(reply)));
        }
    }

    /// Opens a child in SYN-RECEIVED by its SYN, data and all (`tcp_fastopen_create_child`,
    /// `syncache_tfo_expand`).
    pub(crate) fn open_early(&mut self, now: Time, syn: &Segment, reply: Option<FastOpen>, others: &EarlyConnections) {
        let len = u64::from(syn.payload.len).min(self.receiver.acceptable());
        self.opening = Some(Box::new(Opening::early(reply, len > 0, others)));
        self.sender.sequence.acknowledge(1);
        self.sender.sequence.end_at(1);
        self.sender.begin_sending(now, self.socket.is_passive(), self.recalled.take());
        if len > 0 {
            self.receiver.check(1, syn.payload);
            self.receiver.take_with_syn(len);
        }
    }

    /// The application has the child.
    pub(crate) fn accepted_early(&mut self) {
        if let Some(early) = self.opening.as_mut().and_then(|opening| opening.early.as_mut()) {
            early.accepted = true;
        }
    }

    /// The last ACK of the handshake has come (`tcp_rcv_synrecv_state_fastopen`).
    #[cold]
    pub(crate) fn complete_early(&mut self, now: Time) {
        if let Some(opening) = &mut self.opening {
            opening.end_early();
        }
        self.state = if self.sender.sequence.is_fin_sent() { State::FinWait1 } else { State::Established };
        self.finish_handshake(now);
        self.sender.cc.on_ecn(self.sender.ecn.usable_feedback());
        self.sender.review_prediction();
        if self.sender.loss.recovery.state() == CaState::Loss && self.sender.loss.board.is_empty() {
            // tcp_try_undo_recovery: nothing was in flight when the SYN/ACK was given up for lost.
            self.sender.undo_at_end(&Progress::new(now));
        }
        self.sender.restart_retransmit_timer(now);
    }

    /// A reset has come for a child that was opened by its SYN: any within the window counts
    /// (`tcp_check_req`). Linux keeps counting one that the application has, for a while, as a
    /// defence.
    #[cold]
    pub(crate) fn reset_early(&mut self, now: Time) {
        let early = self.opening.as_mut().and_then(|opening| opening.end_early());
        if let Some(early) = early.filter(|early| early.accepted) {
            early.others.punish(now);
        }
    }

    /// The SYN/ACK of a child that was opened by its SYN is due again
    /// (`tcp_fastopen_synack_timer`), or given up.
    #[cold]
    pub(crate) fn early_answer_due(&mut self, now: Time) {
        self.timers.handshake_over();
        let linux = self.config.transfer.sending == SendRule::Linux || self.sender.loss.linux_episodes();
        let retries = if linux { self.config.states.synack_retries + 1 } else { self.config.max_retries };
        if self.sender.rtt.timeouts() >= retries {
            self.close_now(Some(Error::TimedOut));
            return;
        }
        self.repeat_syn();
        if linux && self.sender.loss.linux_episodes() && self.sender.rtt.timeouts() == 1 {
            self.sender.on_timeout(now);
        } else {
            self.sender.rtt.back_off();
            self.sender.stats.timeouts += 1;
        }
    }
}
