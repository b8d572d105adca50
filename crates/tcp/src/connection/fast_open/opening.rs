//! One connection's part in Fast Open.

use ackclock_packet::{FastOpen, Segment};

use super::cache::{Answer, FastOpenAttempt, FastOpenNews};
use super::server::EarlyConnections;
use crate::{Config, Endpoint, SendRule};

/// Room that Linux leaves for options in a SYN with data (`MAX_TCP_OPTION_SPACE`).
const OPTION_SPACE: u32 = 40;

/// A connection's part in Fast Open.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// The option of the first SYN, or of the first SYN/ACK.
    pub(super) option: Option<FastOpen>,
    /// The first SYN takes data.
    pub(super) takes_data: bool,
    /// The segment size that the peer announced last time.
    pub(super) cached_mss: Option<u16>,
    /// An option was sent with the SYN (`syn_fastopen`).
    pub(super) asked: bool,
    /// Bytes sent with the SYN (`syn_data`).
    pub(super) sent: u32,
    /// All data of a SYN was acknowledged by the SYN/ACK (`syn_data_acked`).
    pub(super) acked: bool,
    /// The application sleeps with more to write.
    pub(super) writer_waits: bool,
    /// Fast Open had been given up and is tried again (`syn_fastopen_ch`).
    pub(super) probes: bool,
    pub(super) news: FastOpenNews,
    /// The server's side: the last ACK of the handshake has not come (`fastopen_rsk`).
    pub(super) early: Option<Early>,
}

/// A child that was opened by its SYN.
#[derive(Debug)]
pub(super) struct Early {
    /// The SYN/ACK has been sent.
    pub(super) answered: bool,
    /// The application has it.
    pub(super) accepted: bool,
    pub(super) others: EarlyConnections,
}

impl Opening {
    /// The client's side.
    pub(super) fn of_client(attempt: &FastOpenAttempt) -> Opening {
        Opening {
            option: attempt.option,
            takes_data: attempt.with_data,
            cached_mss: attempt.mss,
            probes: attempt.probes,
            ..Opening::default()
        }
    }

    /// A server's that answers with `reply`, in the usual way.
    pub(super) fn of_server(reply: FastOpen) -> Opening {
        Opening { option: Some(reply), ..Opening::default() }
    }

    /// A server's whose child is opened by its SYN, with data if `takes`; it counts among `others`.
    pub(super) fn early(reply: Option<FastOpen>, takes: bool, others: &EarlyConnections) -> Opening {
        others.enter();
        let early = Early { answered: false, accepted: false, others: others.clone() };
        Opening { option: reply, acked: takes, early: Some(early), ..Opening::default() }
    }

    /// Returns `true` if an option or data was sent with the SYN.
    pub(super) fn was_tried(&self) -> bool {
        self.asked || self.sent > 0
    }

    /// The last ACK of the handshake has come, or never will: the child that was opened by its SYN,
    /// if it is one, does not count any more.
    pub(super) fn end_early(&mut self) -> Option<Early> {
        let early = self.early.take()?;
        early.others.leave();
        Some(early)
    }

    /// Learns from the answer to our SYN.
    pub(super) fn learn(&mut self, answer: &Segment, unacknowledged: bool, resent: bool) {
        if self.was_tried() {
            self.news.answer = Some(Answer {
                mss: answer.mss,
                option: answer.fast_open,
                asked: self.asked,
                experimental: self.option.is_some_and(|option| option.experimental),
                sent_data: self.sent > 0,
                unacknowledged,
                resent,
            });
        }
    }

    /// The data that fits into `syn`. Linux leaves room for any options, which middleboxes may add,
    /// below the segment size that the peer announced the last time; RFC 7413 section 4.2.1 and
    /// FreeBSD for those that there are.
    pub(super) fn room(&self, config: &Config, syn: &Segment) -> u32 {
        let mss = u32::from(self.cached_mss.map_or(config.mss, |mss| mss.min(config.mss)));
        match config.transfer.sending {
            SendRule::Linux => mss.saturating_sub(OPTION_SPACE),
            SendRule::Rfc | SendRule::FreeBsd => mss.saturating_sub(syn.header_len() - 20),
        }
    }
}

impl Endpoint {
    /// Returns `true` if the connection was opened by its SYN, and the last ACK of the handshake
    /// has not come.
    pub fn is_open_early(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.early.is_some())
    }

    /// Returns `true` if the connection is open early and the application has it.
    pub(crate) fn is_accepted_early(&self) -> bool {
        let early = self.opening.as_ref().and_then(|opening| opening.early.as_ref());
        early.is_some_and(|early| early.accepted)
    }

    /// Returns `true` if no SYN of ours has been sent.
    pub(crate) fn is_first_syn(&self) -> bool {
        match self.opening.as_ref().and_then(|opening| opening.early.as_ref()) {
            Some(early) => !early.answered,
            None => self.sender.sequence.nxt() == 0,
        }
    }

    /// The connection is over: Linux `tcp_fastopen_active_disable_ofo_check`, and a child that was
    /// waited for is not any more.
    #[cold]
    pub(crate) fn end_fast_open(&mut self) {
        let no_data = self.sender.counters.data_segments_in == 0;
        let lone_fin = self.receiver.has_fin() && !self.receiver().is_finished();
        let Some(opening) = &mut self.opening else { return };
        if opening.asked {
            opening.news.blackhole |= no_data && lone_fin;
            opening.news.works |= !no_data && opening.probes;
        }
        opening.end_early();
    }
}
