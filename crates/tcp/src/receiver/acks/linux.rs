//! When Linux acknowledges.
//!
//! # Source
//! Linux 6.1, `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_measure_rcv_mss`,
//! `tcp_incr_quickack`, `__tcp_ack_snd_check`), `tcp_output.c` (`tcp_send_delayed_ack`,
//! `tcp_event_data_sent`, `tcp_event_ack_sent`), `tcp_timer.c` (`tcp_delack_timer_handler`),
//! `tcp.c` (`tcp_cleanup_rbuf`).

use ackclock_units::{Span, Time};

use crate::{DelayedAck, Ticks};

/// `TCP_DELACK_MAX`.
pub(in crate::receiver) const MOST: Span = Span::from_millis(200);
/// The bound of a connection that neither answers data with data nor ends its writes with PSH: half
/// a second.
const MOST_UNPUSHED: Span = Span::from_millis(500);
/// `TCP_MSS_DEFAULT`.
const DEFAULT_SEGMENT: u32 = 536;
/// `TCP_MIN_MSS`.
const LEAST_SEGMENT: u32 = 88;

/// The endpoint's knowledge apart from the arriving data.
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
pub(in crate::receiver) struct LinuxAcks {
    /// ACKs to be sent at once.
    quick: u32,
    /// Its own numbers: segments that may wait, the least delay, how many quick ACKs begin when.
    pub(in crate::receiver) policy: DelayedAck,
    /// Data is answered with data: ACKs ride on it.
    interactive: bool,
    /// The delay, zero before the first data.
    timeout: Span,
    last_arrival: Time,
    /// The estimate of the peer's segment size.
    segment: u32,
    last_segment: u32,
    /// An ACK is owed.
    owed: bool,
    /// An ACK is owed for a small segment (1), for two of them (2).
    pushed: u8,
}

impl LinuxAcks {
    pub(in crate::receiver) fn new(policy: DelayedAck) -> LinuxAcks {
        LinuxAcks {
            policy,
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

    /// The estimate of the peer's segment size.
    pub(in crate::receiver) fn segment(&self) -> u32 {
        self.segment
    }

    /// Delay of an ACK now.
    pub(in crate::receiver) fn timeout(&self) -> Span {
        self.timeout
    }

    /// TCP_QUICKACK off and on.
    pub(in crate::receiver) fn set_interactive(&mut self, on: bool) {
        self.interactive = on;
    }

    /// An ACK is owed.
    pub(in crate::receiver) fn owe(&mut self) {
        self.owed = true;
    }

    /// None is owed any more.
    pub(in crate::receiver) fn settle(&mut self) {
        self.owed = false;
    }

    /// Returns `true` if an ACK is owed.
    pub(in crate::receiver) fn owes(&self) -> bool {
        self.owed
    }

    /// Returns `true` if `unacknowledged` units are more than may wait: one segment's worth.
    pub(in crate::receiver) fn is_much(&self, unacknowledged: u64) -> bool {
        unacknowledged > u64::from(self.policy.segments.saturating_sub(1)) * u64::from(self.segment)
    }

    /// `tcp_cleanup_rbuf`: whether reading is a reason to send the ACK that is owed, with
    /// `unacknowledged` units since the last one; `all_read` if nothing is left to read.
    pub(in crate::receiver) fn owes_reader(&self, unacknowledged: u64, all_read: bool) -> bool {
        self.owed
            && (self.is_much(unacknowledged) || all_read && (self.pushed > 1 || self.pushed > 0 && !self.interactive))
    }

    /// No more ACKs at once: the reader's ACK opens the window with it.
    pub(in crate::receiver) fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// The window grows: at least one ACK at once (`tcp_grow_window`).
    pub(in crate::receiver) fn quick_once(&mut self) {
        self.quick |= 1;
    }

    /// The handshake is over: the first guess of the segment size.
    pub(in crate::receiver) fn begin(&mut self, segment: u32, window: u64) {
        let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
        self.segment = segment.min(half).clamp(LEAST_SEGMENT, DEFAULT_SEGMENT);
    }

    /// The time before `now` without data in order.
    pub(in crate::receiver) fn gap(&mut self, now: Time) -> Span {
        now.since(std::mem::replace(&mut self.last_arrival, now))
    }

    /// Data arrived in order, `payload` bytes; `window` was announced last.
    pub(in crate::receiver) fn arrived(&mut self, now: Time, payload: u32, context: &Context, window: u64) {
        self.measure(payload, context);
        let gap = self.gap(now);
        if self.timeout == Span::ZERO {
            self.add_quick(self.policy.quick, window);
            self.timeout = self.policy.timeout;
        } else if gap <= self.policy.timeout / 2 {
            self.timeout = self.timeout / 2 + self.policy.timeout / 2;
        } else if gap < self.timeout {
            self.timeout = (self.timeout / 2 + gap).min(context.rto);
        } else if gap > context.rto {
            // The sender restarts its window: it waits for these ACKs.
            self.add_quick(self.policy.hurry.idle.into(), window);
        }
    }

    fn measure(&mut self, payload: u32, context: &Context) {
        let last = std::mem::take(&mut self.last_segment);
        if payload >= self.segment {
            self.segment = payload.min(context.segment);
            // The end of a write is not waited for (6.1.57 on).
            if self.policy.hurry.push && context.pushed {
                self.pushed = self.pushed.max(1);
            }
            return;
        }
        // A smaller size counts once it has come twice, if it is no small one or does not end a
        // write.
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
    pub(in crate::receiver) fn await_writer(&mut self, now: Time, window: u64) {
        self.owed = true;
        self.last_arrival = now;
        self.hurry(window);
    }

    /// The peer has sent everything: the ACK may wait for our end (`tcp_fin`).
    pub(in crate::receiver) fn expect_answer(&mut self) {
        self.interactive = true;
    }

    /// Trouble: the next ACKs are sent at once (`tcp_enter_quickack_mode`).
    pub(in crate::receiver) fn hurry(&mut self, window: u64) {
        self.hurry_most(self.policy.quick, window);
    }

    /// Acknowledges at once as `hurry` does, for `most` ACKs at most.
    pub(in crate::receiver) fn hurry_most(&mut self, most: u32, window: u64) {
        self.add_quick(most, window);
        self.interactive = false;
        self.timeout = self.policy.timeout;
    }

    /// Returns true if ACKs are left to be sent at once, as long as data is not answered with data.
    pub(in crate::receiver) fn has_quick(&self) -> bool {
        self.quick > 0
    }

    pub(in crate::receiver) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// When the ACK that is owed has to leave, if one that is armed is due at `armed`; `now` for at
    /// once.
    pub(in crate::receiver) fn due(&self, now: Time, armed: Time, context: &Context, ticks: Ticks) -> Time {
        let mut wait = self.timeout.max(Span::from_nanos(1));
        if wait > self.policy.timeout {
            let mut most = if self.interactive || self.pushed > 0 { MOST } else { MOST_UNPUSHED };
            if let Some(srtt) = context.srtt {
                most = most.min(srtt.max(self.policy.timeout));
            }
            wait = wait.min(most);
        }
        wait = wait.min(MOST);
        if armed != Time::NEVER && armed <= now + wait / 4 {
            return now;
        }
        armed.min(ticks.expiry(now, wait))
    }

    /// The delay is over without an ACK.
    pub(in crate::receiver) fn timed_out(&mut self, rto: Span) {
        if self.interactive {
            self.interactive = false;
            self.timeout = self.policy.timeout;
        } else {
            self.timeout = (self.timeout * 2).min(rto);
        }
    }

    /// A segment with data leaves.
    pub(in crate::receiver) fn data_sent(&mut self, now: Time) {
        if now.since(self.last_arrival) < self.timeout {
            self.interactive = true;
        }
    }

    /// An ACK leaves, alone or with data.
    pub(in crate::receiver) fn acknowledged(&mut self) {
        // Only ACKs of something new are counted (6.1.57 on).
        let owed = std::mem::take(&mut self.owed);
        self.pushed = 0;
        if self.quick > 0 && owed {
            self.quick -= 1;
            if self.quick == 0 {
                self.timeout = self.policy.timeout;
            }
        }
    }
}
