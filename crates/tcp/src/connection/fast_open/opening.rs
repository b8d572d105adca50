//! One connection's part in Fast Open.

use ackclock_packet::{FastOpen, Payload, Segment};
use ackclock_units::Time;

use super::cache::{Answer, FastOpenAttempt, FastOpenNews};
use super::server::EarlyConnections;
use crate::{Config, SendRule};

/// Room that Linux leaves for options in a SYN with data (`MAX_TCP_OPTION_SPACE`).
const OPTION_SPACE: u32 = 40;

/// A connection's part in Fast Open, if it has one.
#[derive(Debug, Default)]
pub struct Opening(Option<Box<OpeningPart>>);

/// The part that it has.
#[derive(Debug, Default)]
struct OpeningPart {
    /// The option of the first SYN, or of the first SYN/ACK.
    option: Option<FastOpen>,
    /// The first SYN takes data.
    takes_data: bool,
    /// The segment size that the peer announced last time.
    cached_mss: Option<u16>,
    /// An option was sent with the SYN (`syn_fastopen`).
    asked: bool,
    /// Bytes sent with the SYN (`syn_data`).
    sent: u32,
    /// All data of a SYN was acknowledged by the SYN/ACK (`syn_data_acked`).
    acked: bool,
    /// The application sleeps with more to write.
    writer_waits: bool,
    /// Fast Open had been given up and is tried again (`syn_fastopen_ch`).
    probes: bool,
    news: FastOpenNews,
    /// The server's side: the last ACK of the handshake has not come (`fastopen_rsk`).
    early: Option<Early>,
}

/// A child that was opened by its SYN.
#[derive(Debug)]
struct Early {
    /// The SYN/ACK has been sent.
    answered: bool,
    /// The application has it.
    accepted: bool,
    others: EarlyConnections,
}

impl Opening {
    // The client.

    /// The client's side: the SYN has the option that `attempt` says.
    pub(crate) fn of_client(attempt: &FastOpenAttempt) -> Opening {
        Opening(Some(Box::new(OpeningPart {
            option: attempt.option,
            takes_data: attempt.with_data,
            cached_mss: attempt.mss,
            probes: attempt.probes,
            ..OpeningPart::default()
        })))
    }

    /// The bytes of data for which the first SYN has room; it gets its option.
    pub(crate) fn room(&self, config: &Config, syn: &mut Segment) -> u32 {
        let Some(part) = self.0.as_deref().filter(|part| part.takes_data) else { return 0 };
        syn.fast_open = part.option;
        part.room(config, syn)
    }

    /// Returns `true` if the connection has a part in Fast Open.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Lets a writer sleep until the connection is open, or not. The ACK of the handshake waits for
    /// its data, as in Linux.
    pub fn set_writer_waits(&mut self, waits: bool) {
        if let Some(part) = &mut self.0 {
            part.writer_waits = waits;
        }
    }

    /// Returns `true` if the application sleeps with more to write.
    pub(crate) fn writer_waits(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.writer_waits)
    }

    /// The news for [`FastOpenCache::learn`](super::FastOpenCache::learn), once: to be asked for when
    /// a segment has arrived or a timer expired.
    #[inline]
    pub fn take_news(&mut self) -> Option<FastOpenNews> {
        let news = std::mem::take(&mut self.0.as_mut()?.news);
        (news != FastOpenNews::default()).then_some(news)
    }

    /// `TCPI_OPT_SYN_DATA`: data of a SYN was acknowledged, or taken in, by the SYN/ACK.
    pub fn is_data_acknowledged(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.acked)
    }

    /// Writes what the first SYN has besides its usual options, of `written` bytes; returns how many
    /// bytes of data it takes.
    pub(crate) fn put_request(&mut self, config: &Config, written: u64, out: &mut Segment) -> u32 {
        let Some(part) = &mut self.0 else { return 0 };
        out.fast_open = part.option;
        part.asked = part.option.is_some();
        let written = u32::try_from(written).unwrap_or(u32::MAX);
        part.sent = if part.takes_data { written.min(part.room(config, out)) } else { 0 };
        if part.sent > 0 {
            out.payload = Payload { offset: 0, len: part.sent };
        }
        part.sent
    }

    /// Returns `true` if data was sent with the SYN.
    pub(crate) fn has_sent_data(&self) -> bool {
        self.0.as_ref().is_some_and(|part| part.sent > 0)
    }

    /// Learns from the answer to our SYN, which leaves data `unacknowledged` and was `resent`.
    /// Returns `true` if an option or data was sent with it.
    pub(crate) fn learn(&mut self, answer: &Segment, unacknowledged: bool, resent: bool) -> bool {
        let Some(part) = self.0.as_mut().filter(|part| part.was_tried()) else { return false };
        part.acked |= part.sent > 0 && !unacknowledged;
        part.news.answer = Some(Answer {
            mss: answer.mss,
            option: answer.fast_open,
            asked: part.asked,
            experimental: part.option.is_some_and(|option| option.experimental),
            sent_data: part.sent > 0,
            unacknowledged,
            resent,
        });
        true
    }

    /// The retransmission timer has expired: Linux `tcp_fastopen_active_detect_blackhole`.
    pub(crate) fn detect_blackhole(&mut self, timeouts: u32, gives_up: bool) {
        if let Some(part) = &mut self.0
            && part.was_tried()
            && (timeouts == 2 || timeouts < 2 && gives_up)
        {
            part.news.blackhole = true;
        }
    }

    /// A reset has come out of its place, and no data before: Linux `tcp_validate_incoming` suspects
    /// a firewall that does not know the connection.
    pub(crate) fn suspect_reset(&mut self) {
        if let Some(part) = self.0.as_mut().filter(|part| part.asked) {
            part.news.blackhole = true;
        }
    }

    /// The connection is over: Linux `tcp_fastopen_active_disable_ofo_check`, and a child that was
    /// waited for is not any more. `no_data` if none arrived, `lone_fin` if a FIN lies beyond a gap.
    pub(crate) fn end(&mut self, no_data: bool, lone_fin: bool) {
        let Some(part) = &mut self.0 else { return };
        if part.asked {
            part.news.blackhole |= no_data && lone_fin;
            part.news.works |= !no_data && part.probes;
        }
        self.end_early();
    }

    // The server.

    /// A server's that answers with `reply`, if with any, in the usual way.
    pub(crate) fn of_server(reply: Option<FastOpen>) -> Opening {
        Opening(reply.map(|reply| Box::new(OpeningPart { option: Some(reply), ..OpeningPart::default() })))
    }

    /// A server's whose child is opened by its SYN, with data if `takes`; it counts among `others`.
    pub(crate) fn early(reply: Option<FastOpen>, takes: bool, others: &EarlyConnections) -> Opening {
        others.enter();
        let early = Early { answered: false, accepted: false, others: others.clone() };
        Opening(Some(Box::new(OpeningPart {
            option: reply,
            acked: takes,
            early: Some(early),
            ..OpeningPart::default()
        })))
    }

    /// Writes the reply of the first SYN/ACK.
    pub(crate) fn put_reply(&mut self, out: &mut Segment) {
        if let Some(part) = &mut self.0 {
            out.fast_open = part.option.take();
            if let Some(early) = &mut part.early {
                early.answered = true;
            }
        }
    }

    fn child(&self) -> Option<&Early> {
        self.0.as_ref()?.early.as_ref()
    }

    /// Returns `true` if the connection was opened by its SYN, and the last ACK of the handshake has
    /// not come.
    pub fn is_early(&self) -> bool {
        self.child().is_some()
    }

    /// Returns whether the SYN/ACK of a connection that was opened by its SYN has been sent.
    pub(crate) fn is_answered(&self) -> Option<bool> {
        self.child().map(|early| early.answered)
    }

    /// Returns `true` if the connection is open early and the application has it.
    pub(crate) fn is_accepted(&self) -> bool {
        self.child().is_some_and(|early| early.accepted)
    }

    /// The application has the child.
    pub(crate) fn accept(&mut self) {
        if let Some(early) = self.0.as_mut().and_then(|part| part.early.as_mut()) {
            early.accepted = true;
        }
    }

    /// The last ACK of the handshake has come, or never will: the child that was opened by its SYN,
    /// if it is one, does not count any more.
    pub(crate) fn end_early(&mut self) {
        if let Some(early) = self.0.as_mut().and_then(|part| part.early.take()) {
            early.others.leave();
        }
    }

    /// A reset has come for a child that was opened by its SYN. Linux keeps counting one that the
    /// application has, for a while, as a defence (`tcp_check_req`).
    pub(crate) fn reset_early(&mut self, now: Time) {
        if let Some(early) = self.0.as_mut().and_then(|part| part.early.take()) {
            early.others.leave();
            if early.accepted {
                early.others.punish(now);
            }
        }
    }
}

impl OpeningPart {
    /// Returns `true` if an option or data was sent with the SYN.
    fn was_tried(&self) -> bool {
        self.asked || self.sent > 0
    }

    /// The data that fits into `syn`. Linux leaves room for any options, which middleboxes may add,
    /// below the segment size that the peer announced the last time; RFC 7413 section 4.2.1 and
    /// FreeBSD for those that there are.
    fn room(&self, config: &Config, syn: &Segment) -> u32 {
        let mss = u32::from(self.cached_mss.map_or(config.mss, |mss| mss.min(config.mss)));
        match config.transfer.sending {
            SendRule::Linux => mss.saturating_sub(OPTION_SPACE),
            SendRule::Rfc | SendRule::FreeBsd => mss.saturating_sub(syn.header_len() - 20),
        }
    }
}
