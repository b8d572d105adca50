//! When Linux acknowledges.
//!
//! # Source
//! Linux 6.1, `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_measure_rcv_mss`, `tcp_incr_quickack`,
//! `__tcp_ack_snd_check`), `tcp_output.c` (`tcp_send_delayed_ack`, `tcp_event_data_sent`, `tcp_event_ack_sent`), `tcp_timer.c`
//! (`tcp_delack_timer_handler`), `tcp.c` (`tcp_cleanup_rbuf`).

use ackclock_units::{Span, Time};

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const LEAST: Span = Span::from_millis(40);
/// `TCP_DELACK_MAX`.
pub(super) const MOST: Span = Span::from_millis(200);
/// The bound of a connection that neither answers data with data nor ends its writes with PSH: half a second.
const MOST_UNPUSHED: Span = Span::from_millis(500);
/// `TCP_MSS_DEFAULT`.
const DEFAULT_SEGMENT: u32 = 536;
/// `TCP_MIN_MSS`.
const LEAST_SEGMENT: u32 = 88;

/// What the endpoint knows beside the segment that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// The segment has PSH set.
    pub(crate) pushed: bool,
    /// The segment has FIN set.
    pub(crate) last: bool,
    pub(crate) srtt: Option<Span>,
    pub(crate) rto: Span,
    /// The MSS that was announced less the options that data carries (`advmss`).
    pub(crate) segment: u32,
}

impl Default for Context {
    fn default() -> Context {
        Context { pushed: false, last: false, srtt: None, rto: Span::from_secs(1), segment: 1460 }
    }
}

/// `icsk_ack`.
#[derive(Debug)]
pub(super) struct Acks {
    /// ACKs to be sent at once.
    pub(super) quick: u32,
    /// At most so many are (`TCP_MAX_QUICKACKS`).
    pub(super) most: u32,
    /// Data is answered with data: ACKs ride on it.
    pub(super) interactive: bool,
    /// The delay, zero before the first data.
    pub(super) timeout: Span,
    last_arrival: Time,
    /// The estimate of the peer's segment size.
    pub(super) segment: u32,
    last_segment: u32,
    /// An ACK is owed.
    pub(super) owed: bool,
    /// It is owed for a small segment, for two of them.
    pub(super) pushed: u8,
}

impl Acks {
    pub(super) fn new(most: u32) -> Acks {
        Acks {
            most,
            quick: 0,
            interactive: false,
            timeout: Span::ZERO,
            last_arrival: Time::ZERO,
            segment: DEFAULT_SEGMENT,
            last_segment: 0,
            owed: false,
            pushed: 0,
        }
    }

    /// The handshake is over: the first guess of the segment size.
    pub(super) fn begin(&mut self, segment: u32, window: u64) {
        let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
        self.segment = segment.min(half).clamp(LEAST_SEGMENT, DEFAULT_SEGMENT);
    }

    /// Data arrived in order, `payload` bytes; `window` was announced last.
    pub(super) fn arrived(&mut self, now: Time, payload: u32, context: &Context, window: u64) {
        self.measure(payload, context);
        let gap = now.since(self.last_arrival);
        if self.timeout == Span::ZERO {
            self.add_quick(self.most, window);
            self.timeout = LEAST;
        } else if gap <= LEAST / 2 {
            self.timeout = self.timeout / 2 + LEAST / 2;
        } else if gap < self.timeout {
            self.timeout = (self.timeout / 2 + gap).min(context.rto);
        } else if gap > context.rto {
            // The sender restarts its window: it waits for these ACKs.
            self.add_quick(self.most, window);
        }
        self.last_arrival = now;
    }

    fn measure(&mut self, payload: u32, context: &Context) {
        let last = std::mem::take(&mut self.last_segment);
        if payload >= self.segment {
            self.segment = payload.min(context.segment);
            // The end of a write is not waited for (6.1.57 on).
            if context.pushed {
                self.pushed = self.pushed.max(1);
            }
            return;
        }
        // A smaller size counts once it has come twice, if it is no small one or does not end a write.
        if payload >= DEFAULT_SEGMENT || payload >= LEAST_SEGMENT && !(context.pushed || context.last) {
            self.last_segment = payload;
            if payload == last {
                self.segment = payload;
                return;
            }
        }
        self.pushed = (self.pushed + 1).min(2);
    }

    fn add_quick(&mut self, most: u32, window: u64) {
        let fill = match window / (2 * u64::from(self.segment)) {
            0 => 2,
            fill => u32::try_from(fill).unwrap_or(u32::MAX),
        };
        self.quick = self.quick.max(fill.min(most));
    }

    /// The ACK of the handshake is saved, and whatever is sent now answers it.
    pub(super) fn await_writer(&mut self, now: Time, window: u64) {
        self.owed = true;
        self.last_arrival = now;
        self.hurry(self.most, window);
    }

    /// The peer has sent everything: the ACK may wait for our end (`tcp_fin`).
    pub(super) fn expect_answer(&mut self) {
        self.interactive = true;
    }

    /// Trouble: the next ACKs are sent at once (`tcp_enter_quickack_mode`).
    pub(super) fn hurry(&mut self, most: u32, window: u64) {
        self.add_quick(most, window);
        self.interactive = false;
        self.timeout = LEAST;
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// When the ACK that is owed has to leave, if one that is armed is due at `armed`; `now` for at once.
    pub(super) fn due(&self, now: Time, armed: Time, context: &Context) -> Time {
        let mut wait = self.timeout.max(Span::from_nanos(1));
        if wait > LEAST {
            let mut most = if self.interactive || self.pushed > 0 { MOST } else { MOST_UNPUSHED };
            if let Some(srtt) = context.srtt {
                most = most.min(srtt.max(LEAST));
            }
            wait = wait.min(most);
        }
        wait = wait.min(MOST);
        if armed != Time::NEVER && armed <= now + wait / 4 {
            return now;
        }
        armed.min(now + wait)
    }

    /// The delay is over without an ACK.
    pub(super) fn timed_out(&mut self, rto: Span) {
        if self.interactive {
            self.interactive = false;
            self.timeout = LEAST;
        } else {
            self.timeout = (self.timeout * 2).min(rto);
        }
    }

    /// A segment with data leaves.
    pub(super) fn data_sent(&mut self, now: Time) {
        if now.since(self.last_arrival) < self.timeout {
            self.interactive = true;
        }
    }

    /// An ACK leaves, alone or with data.
    pub(super) fn acknowledged(&mut self) {
        // Only ACKs of something new are counted (6.1.57 on).
        let owed = std::mem::take(&mut self.owed);
        self.pushed = 0;
        if self.quick > 0 && owed {
            self.quick -= 1;
            if self.quick == 0 {
                self.timeout = LEAST;
            }
        }
    }
}
