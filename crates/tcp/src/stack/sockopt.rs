//! What an application may set on its socket while the connection runs.

use ackclock_cc::CongestionControl;
use ackclock_units::Time;

use crate::stack::transfer::{AckRule, SpaceRule, WindowRule};
use crate::{Endpoint, State};

/// How one call of [`Endpoint::write_with`] ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// MSG_MORE: more follows, so that a last partial segment may wait.
    pub more: bool,
    /// MSG_EOR: the last byte ends a record, and later ones are not put into one segment with it.
    pub eor: bool,
}

/// The smallest receive buffer (Linux `SOCK_MIN_RCVBUF`).
const MIN_RECEIVE_BUFFER: u64 = 2304;
/// The smallest send buffer (Linux `SOCK_MIN_SNDBUF`).
const MIN_SEND_BUFFER: u64 = 4608;

/// What the application has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) cork: bool,
    /// MSG_MORE of the last write, until a segment or an ACK has come.
    pub(crate) more: bool,
    /// A partial segment that waits goes out whatever the other rules (Linux `TCP_NAGLE_PUSH`).
    pub(crate) push: bool,
    pub(crate) notsent_lowat: Option<u32>,
    /// TCP_MAXSEG, 0 if it was not set.
    pub(crate) max_segment: u16,
}

impl Endpoint {
    /// TCP_NODELAY: small segments do not wait for acknowledgments. What waits goes out.
    pub fn set_nodelay(&mut self, on: bool) {
        self.config.nagle = !on;
        self.wishes.push |= on;
    }

    /// TCP_NODELAY.
    pub fn nodelay(&self) -> bool {
        !self.config.nagle
    }

    /// TCP_CORK (TCP_NOPUSH): small segments wait until it is taken off, or until the probe timer has expired.
    pub fn set_cork(&mut self, on: bool) {
        self.wishes.cork = on;
        // tcp_sock_set_cork: taking it off sends what Nagle's rule lets through, all of it with TCP_NODELAY.
        self.wishes.push |= !on && !self.config.nagle;
    }

    /// TCP_CORK.
    pub fn cork(&self) -> bool {
        self.wishes.cork
    }

    /// TCP_SYNCNT, from now on.
    pub fn set_syn_retries(&mut self, retries: u32) {
        self.config.states.syn_retries = retries;
    }

    /// TCP_QUICKACK: acknowledge at once for now, or as in an interactive connection. Of the hosts that follow Linux.
    pub fn set_quick_ack(&mut self, on: bool) {
        self.receiver.set_quick_ack(on);
    }

    /// TCP_QUICKACK.
    pub fn quick_ack(&self) -> bool {
        self.config.transfer.acks == AckRule::Linux && !self.receiver.is_interactive()
    }

    /// TCP_MAXSEG, before the connection is opened: the largest segment to send and to ask for, bytes.
    pub fn set_max_segment(&mut self, mss: u16) {
        self.wishes.max_segment = mss.max(1);
        if self.send.nxt == 0 {
            self.config.mss = self.config.mss.min(self.wishes.max_segment);
            self.negotiated.set_mss(self.negotiated.mss().min(u32::from(self.config.mss)));
        }
    }

    /// TCP_MAXSEG as it is read: the segment size in use, bytes.
    pub fn max_segment(&self) -> u32 {
        self.negotiated.mss()
    }

    /// TCP_CONGESTION: another congestion controller from now on. On an open connection it takes the window and the threshold
    /// over, and a reduction that runs is finished (Linux `tcp_reinit_congestion_control`).
    pub fn set_congestion_control(&mut self, now: Time, mut cc: Box<dyn CongestionControl>) {
        let opening = matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        if !opening || self.is_open_early() {
            let flight = self.flight(now);
            cc.on_established(&flight);
            cc.take_over(self.cc.window());
            cc.on_ecn(self.ecn.usable_feedback());
        }
        self.cc = cc;
        self.adopt_needs();
        self.decide_pacing(now);
    }

    /// TCP_NOTSENT_LOWAT: writing waits while so many bytes are unsent; `None` for no bound.
    pub fn set_notsent_lowat(&mut self, bytes: Option<u32>) {
        self.wishes.notsent_lowat = bytes;
    }

    /// TCP_NOTSENT_LOWAT.
    pub fn notsent_lowat(&self) -> Option<u32> {
        self.wishes.notsent_lowat
    }

    /// SO_SNDBUF: Linux doubles it for its overhead.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.queue.locked = true;
        self.config.send_buffer = match self.config.transfer.send_space {
            SpaceRule::Bytes | SpaceRule::Segments => bytes,
            SpaceRule::Linux => (2 * bytes).max(MIN_SEND_BUFFER),
        };
    }

    /// SO_SNDBUF as it is read.
    pub fn send_buffer(&self) -> u64 {
        self.config.send_buffer
    }

    /// SO_RCVBUF: Linux doubles it for its overhead. What was offered stays offered.
    pub fn set_receive_buffer(&mut self, bytes: u64) {
        self.config.receive_buffer = match self.config.transfer.window {
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => bytes.max(1),
            WindowRule::Linux { .. } => (2 * bytes).max(MIN_RECEIVE_BUFFER),
        };
        self.receiver.set_buffer(self.config.receive_buffer);
    }

    /// SO_RCVBUF as it is read.
    pub fn receive_buffer(&self) -> u64 {
        self.receiver.buffer()
    }

    /// [`Endpoint::write`] with flags; a record that is ended (MSG_EOR) keeps its segments to itself by Linux's rules alone.
    #[inline]
    pub fn write_with(&mut self, bytes: u64, flags: WriteFlags) -> u64 {
        if self.send.closed || self.state == State::Closed {
            return 0;
        }
        self.wishes.more = flags.more;
        if self.config.transfer.send_space == SpaceRule::Linux {
            return self.fill_buffers(bytes, flags);
        }
        if !self.is_below_lowat(self.unsent()) {
            return 0;
        }
        let taken = bytes.min(self.send_space());
        self.send.written += taken;
        taken
    }
}
