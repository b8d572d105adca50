//! Options that an application may set on its socket while the connection runs.

use ackclock_cc::CongestionControl;
use ackclock_units::Time;

use crate::{AccEcnOption, Endpoint, SpaceRule, State, WindowRule};

/// The smallest receive buffer (Linux `SOCK_MIN_RCVBUF`).
const MIN_RECEIVE_BUFFER: u64 = 2304;
/// The smallest send buffer (Linux `SOCK_MIN_SNDBUF`).
const MIN_SEND_BUFFER: u64 = 4608;

impl Endpoint {
    /// TCP_NODELAY: small segments do not wait for acknowledgments. A waiting segment is sent.
    pub fn set_nodelay(&mut self, on: bool) {
        self.configure(|config| config.nagle = !on);
        if on {
            self.sender.writing.push();
        }
    }

    /// TCP_CORK (TCP_NOPUSH): small segments wait until it is taken off, or until the probe timer
    /// has expired.
    pub fn set_cork(&mut self, on: bool) {
        self.sender.writing.set_cork(on);
        // tcp_sock_set_cork: taking it off sends what Nagle's rule lets through, all of it with
        // TCP_NODELAY.
        if !on && !self.config.nagle {
            self.sender.writing.push();
        }
    }

    /// TCP_SYNCNT, from now on.
    pub fn set_syn_retries(&mut self, retries: u32) {
        self.configure(|config| config.states.syn_retries = retries);
    }

    /// TCP_QUICKACK: acknowledge at once for now, or as in an interactive connection. Hosts that
    /// follow Linux have this option.
    pub fn set_quick_ack(&mut self, on: bool) {
        self.sender.burst.end();
        self.receiver.set_quick_ack(on);
    }

    /// TCP_MAXSEG, before the connection is opened: the largest segment to send and to ask for,
    /// bytes.
    pub fn set_max_segment(&mut self, mss: u16) {
        let mss = mss.max(1);
        self.sender.writing.set_max_segment(mss);
        if self.sender.sequence.nxt() == 0 {
            let mss = self.config.mss.min(mss);
            self.configure(|config| config.mss = mss);
            self.sender.negotiated.set_mss(self.sender.negotiated.mss().min(u32::from(mss)));
        }
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
        let opening = matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        if !opening || self.is_open_early() {
            let flight = self.sender.flight(now);
            cc.on_established(&flight);
            cc.take_over(self.sender.cc.window());
            cc.on_ecn(self.sender.ecn.usable_feedback());
        }
        self.sender.cc = cc;
        self.sender.adopt_needs();
        self.sender.decide_pacing(now);
    }

    /// TCP_NOTSENT_LOWAT: writing waits while so many bytes are unsent; `None` for no bound.
    pub fn set_notsent_lowat(&mut self, bytes: Option<u32>) {
        self.sender.writing.set_notsent_lowat(bytes);
    }

    /// SO_SNDBUF: Linux doubles it for its overhead.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.queue.locked = true;
        self.sender.queue.buffer = match self.config.transfer.send_space {
            SpaceRule::Bytes | SpaceRule::Segments | SpaceRule::Tuned => bytes,
            SpaceRule::Linux => (2 * bytes).max(MIN_SEND_BUFFER),
        };
    }

    /// SO_RCVBUF: Linux doubles it for its overhead. An offered window stays offered.
    pub fn set_receive_buffer(&mut self, bytes: u64) {
        self.sender.burst.end();
        let bytes = match self.config.transfer.window {
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => bytes.max(1),
            WindowRule::Linux { .. } => (2 * bytes).max(MIN_RECEIVE_BUFFER),
        };
        self.receiver.set_buffer(bytes);
    }

    /// Changes when the option is sent, on an open connection too.
    pub fn set_acc_ecn_option(&mut self, option: AccEcnOption, beacon: u32) {
        self.sender.burst.end();
        self.configure(|config| {
            let rules = &mut config.transfer.acc_ecn;
            (rules.option, rules.beacon) = (option, beacon);
        });
    }
}
