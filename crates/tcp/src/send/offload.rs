//! Segmentation offload: new data, and from 6.1 on what is sent again, is handed down in units of
//! several segments, and one that could become larger with the next ACK is put off.
//!
//! A unit leaves as segments of the MSS back to back at one time, as behind a network card that
//! cuts it. The unit changes only the times: it is decided as a whole, by the windows of that time,
//! and a part of it is not sent for which there is room. Its segments share one time of sending,
//! and pacing counts the unit. In the scoreboard each is an entry of its own, as everywhere; those
//! of a unit are joined until a SACK or a retransmission cuts it, which Linux does at the same
//! places.
//!
//! # Source
//! Linux 4.0.5, 6.1 and 6.18, `net/ipv4/tcp_output.c`: `tcp_write_xmit`, `tcp_cwnd_test`,
//! `tcp_tso_autosize`, `tcp_tso_should_defer`, `tcp_mss_split_point`, `tcp_nagle_check`,
//! `tcp_grow_skb` (6.18), `tcp_xmit_retransmit_queue`, `tcp_retransmit_skb`; `tcp_input.c`:
//! `tcp_update_pacing_rate`, `tcp_match_skb_to_sack`, `tcp_mark_head_lost`, `tcp_tso_acked`.
//!
//! # Departures
//! - A host takes no time: nothing waits in its queue or its card, so that `tcp_limit_output_bytes`
//!   (TCP small queues) never holds anything back.
//! - Socket buffers follow each other from the first byte on, each filled to the goal, where the
//!   send buffer does not say where they end ([`crate::SpaceRule::Linux`] does).
//! - BBR's own least unit (`bbr_min_tso_segs`) is that of the host, and delivery rates have a
//!   sample for each segment, not for each buffer.
//! - Where a part of a unit is acknowledged, RACK takes that part for what arrived, not the unit
//!   (`tcp_clean_rtx_queue` passes on the end of the buffer).
//! - A segment with data and the FIN counts against the congestion window as any other, which
//!   `tcp_cwnd_test` lets go until 6.9.
//! - Writes are handed down as a whole: nothing is sent when one of its buffers is full, which
//!   `tcp_push_one` does without putting it off.
//! - Bare ACKs are no transmissions: they take no pacing, and what was sent last is data
//!   (`__tcp_transmit_skb` moves `tcp_wstamp_ns` for each).
//! - A loss probe that repeats the end of a unit leaves it joined, and a small end stays out of a
//!   unit where it would wait by itself, at a probe too (`tcp_send_loss_probe`,
//!   `tcp_mss_split_point`).
//! - With Accurate ECN nothing bounds units by the ACE field (`tcp_accecn_gso_limit`).

use ackclock_units::{Span, Time};

use super::segmentation::MAX_SIZE;
use crate::loss::scoreboard::Sent;
use crate::send::Sender;
use crate::{CaState, OffloadRule, SpaceRule};

/// The units that a sender is in the middle of, or has put off.
#[derive(Debug, Default)]
pub(crate) struct Units {
    /// When the last one was begun.
    at: Time,
    /// One past its last byte.
    pub(super) end: u64,
    /// The next part of the last unit that is sent again, and one past its last unit.
    again: u64,
    again_end: u64,
    /// One past the socket buffer that new data is taken from.
    buffer_end: u64,
    /// The jiffy in which something was put off first, since the last unit (`tso_deferred`).
    deferred: Option<u64>,
    /// The value of [`crate::Stats::sent_packets`] with the last segment that continued a unit.
    continued: u64,
    /// The rate from which their size follows, bytes a second, as of the last ACK.
    pub(super) rate: Option<u64>,
}

impl Units {
    /// Returns `true` if the last of `sent` segments is of the same unit as the one before it.
    pub(crate) fn continues(&self, sent: u64) -> bool {
        self.continued > 0 && self.continued == sent
    }

    /// Bytes that leave with the segment from `seq` to `end`, where `sent` segments have left
    /// before it and new data begins at `nxt`: those of its unit if it is the first, none if they
    /// have left with the one before it.
    pub(super) fn departing(&self, now: Time, (seq, end): (u64, u64), nxt: u64, sent: u64) -> Option<u64> {
        if self.at != now {
            return Some(end - seq);
        }
        if self.continued == sent + 1 {
            return None;
        }
        let unit_end = match () {
            _ if seq == nxt => self.end,
            _ if self.again == end => self.again_end,
            _ => end,
        };
        Some(unit_end.max(end) - seq)
    }
}

/// `tcp_tso_win_divisor`.
const WINDOW_DIVISOR: u64 = 3;
/// A jiffy of `HZ` = 250, and how many of them something waits (4.0).
const JIFFY: u64 = 4_000_000;
const MOST_JIFFIES: u64 = 1;
/// A millisecond: the last write was recent (6.1), the next ACK is near (6.18).
const RECENT: Span = Span::from_millis(1);

/// The facts that decide whether a unit is put off.
#[derive(Clone, Copy, Debug)]
struct Sight {
    state: CaState,
    mss: u64,
    /// Segments of a unit at most.
    most: u64,
    /// Bytes that the peer's window and the congestion window have room for.
    send_win: u64,
    cong_win: u64,
    /// The two windows.
    windows: [u64; 2],
    /// Bytes of the first unsent socket buffer, whether it is the last one, and whether it ends the
    /// stream or a record.
    len: u64,
    is_tail: bool,
    fin: bool,
    ends: bool,
    /// The time since which something is put off, and now, in jiffies (4.0).
    deferred: Option<u64>,
    jiffy: u64,
    /// Time since something was sent.
    idle: Span,
    /// Time since the first segment in flight was sent, if there is one; and the round trip.
    age: Option<Span>,
    srtt: Span,
}

/// The decision about a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The unit is sent.
    Send,
    /// The unit waits, for the congestion window, the peer's, or more data.
    ForCwnd,
    ForPeer,
    ForMore,
}

impl OffloadRule {
    /// Segments of a unit at most, at `rate` bytes a second (`tcp_tso_autosize`).
    fn most_segments(&self, rate: u64, min_rtt: Option<Span>, mss: u64, least: u64) -> u64 {
        if !self.on {
            return 1;
        }
        // tcp_tso_rtt_log 9, in microseconds; minmax is all ones before a sample.
        let by_rtt = match min_rtt {
            Some(min) if self.larger_on_short_paths => MAX_SIZE >> (min.as_micros() >> 9).min(31),
            _ => 0,
        };
        let bytes = (rate >> 10).saturating_add(by_rtt).min(MAX_SIZE);
        (bytes / mss).max(least).max(1)
    }

    /// `tcp_tso_should_defer`, of a unit of several segments for which the windows have room for
    /// one at least.
    fn choose(&self, sight: &Sight) -> Choice {
        let Sight { mss, most, send_win, cong_win, windows, len, .. } = *sight;
        let now = if self.waits_by_clock {
            let waited = sight.deferred.is_some_and(|since| sight.jiffy.saturating_sub(since) > MOST_JIFFIES);
            sight.fin || sight.state != CaState::Open || waited
        } else {
            sight.state >= CaState::Recovery || sight.idle > RECENT
        };
        let limit = send_win.min(cong_win);
        let chunk = windows[0].min(windows[1]) / WINDOW_DIVISOR;
        if now || limit >= most * mss || !sight.is_tail && limit >= len || limit >= chunk {
            return Choice::Send;
        }
        if self.waits_by_clock {
            return if cong_win < send_win && cong_win < len { Choice::ForCwnd } else { Choice::ForMore };
        }
        let Some(age) = sight.age else { return Choice::Send };
        // 6.18, and 6.1 by its later stable releases (6.1.192); 6.1.0 compares with half alone.
        if sight.srtt - age > (sight.srtt / 2).min(RECENT) {
            return Choice::Send;
        }
        match (cong_win < send_win, limit <= len) {
            (true, true) => Choice::ForCwnd,
            (false, true) => Choice::ForPeer,
            _ if sight.fin || sight.ends => Choice::Send,
            _ => Choice::ForMore,
        }
    }
}

/// The decision about the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// The segment is sent, in one unit with the one before it or not.
    Goes { joins: bool },
    /// The segment does not fit into the peer's window.
    Window,
    /// The segment is small, and waits for more or for an ACK.
    Small,
    /// The congestion window is full, or it waits for others.
    Held,
}

/// The first unsent socket buffer.
#[derive(Clone, Copy, Debug)]
struct QueueHead {
    len: u64,
    is_tail: bool,
    fin: bool,
}

impl Sender {
    /// Returns `true` if a unit is begun that continues at `now`: nothing holds the rest of it
    /// back.
    #[inline]
    pub(crate) fn is_in_unit(&self, now: Time) -> bool {
        self.units
            .as_ref()
            .is_some_and(|units| units.at == now && (self.sequence.nxt() < units.end || units.again < units.again_end))
    }

    /// The units, made when first asked for.
    pub(super) fn units(&mut self) -> &mut Units {
        self.units.get_or_insert_default()
    }

    /// Decides about the next segment, of `available` unsent bytes and a window of `window`.
    #[inline(never)]
    pub(super) fn begin_unit(&mut self, now: Time, available: u64, window: u64) -> Unit {
        let nxt = self.sequence.nxt();
        let sent = self.stats.sent_packets;
        let units = self.units();
        if units.at == now && nxt < units.end {
            units.continued = sent + 1;
            return Unit::Goes { joins: true };
        }
        let OffloadRule { free_fin, over_buffers, .. } = self.config.transfer.offload;
        let mss = u64::from(self.full_payload());
        let most = self.most_segments();
        let unbounded = self.loss.recovery.probe().is_unbounded();
        let mut head = self.head(available);
        let lone_fin = head.fin && head.len == 0 && free_fin;
        let quota = match self.quota() {
            _ if lone_fin => 1,
            0 if unbounded => 1,
            0 => {
                // The peer's window may be closed as well.
                self.window_use.stop();
                return Unit::Held;
            }
            quota => quota,
        };
        let quota = quota.min(most);
        if over_buffers {
            head = self.grown(head, available, quota * mss);
        }
        // tcp_snd_wnd_test: the FIN does not count behind more than a segment.
        let fin = u64::from(head.fin && head.len <= mss);
        if head.len.min(mss) + fin > window {
            return Unit::Window;
        }
        let exempt = self.persist.has_expired() || unbounded;
        if head.len <= mss {
            if head.is_tail && !head.fin && !exempt && self.waits(head.len) {
                return Unit::Small;
            }
        } else if !exempt && self.puts_off(now, head, window, most) {
            return Unit::Held;
        }
        let split = match quota * mss {
            whole if head.len <= mss || whole <= window && !head.is_tail => whole,
            whole => {
                let needed = head.len.min(window);
                let partial = needed % mss;
                match needed {
                    _ if whole <= needed => whole,
                    needed if partial > 0 && self.waits(partial) => needed - partial,
                    needed => needed,
                }
            }
        };
        let units = self.units();
        units.deferred = None;
        (units.at, units.end) = (now, nxt + split.min(head.len));
        Unit::Goes { joins: false }
    }

    /// The first unsent socket buffer, of `available` unsent bytes.
    fn head(&mut self, available: u64) -> QueueHead {
        let nxt = self.sequence.nxt();
        let mut len = self.queue.of_record(nxt, available);
        if self.config.transfer.send_space != SpaceRule::Linux {
            let goal = self.buffer_goal();
            let units = self.units();
            if units.buffer_end == 0 {
                units.buffer_end = nxt + goal;
            } else if units.buffer_end <= nxt {
                // A unit that has grown ends within a buffer.
                units.buffer_end += goal * ((nxt - units.buffer_end) / goal + 1);
            }
            len = len.min(units.buffer_end - nxt);
        }
        let is_tail = len == available;
        QueueHead { len, is_tail, fin: is_tail && self.sequence.is_closed() }
    }

    /// `tcp_grow_skb`: the buffer takes from the one behind it, up to `goal` bytes.
    fn grown(&self, head: QueueHead, available: u64, goal: u64) -> QueueHead {
        let nxt = self.sequence.nxt();
        if head.len >= goal || head.is_tail || self.queue.ends_record_within(self.sequence.nxt(), head.len) {
            return head;
        }
        let behind = self.queue.of_record(nxt + head.len, available - head.len);
        let next = match self.config.transfer.send_space {
            SpaceRule::Linux => behind,
            _ => behind.min(self.buffer_goal()),
        };
        let len = goal.min(head.len + next);
        let is_tail = len == available;
        debug_assert!(nxt + len <= self.sequence.written() + 1);
        QueueHead { len, is_tail, fin: is_tail && self.sequence.is_closed() }
    }

    /// Returns `true` if a unit waits that could become larger.
    fn puts_off(&mut self, now: Time, head: QueueHead, window: u64, most: u64) -> bool {
        let mss = u64::from(self.negotiated.mss());
        let jiffy = now.as_nanos() / JIFFY;
        let sight = Sight {
            state: self.loss.recovery.state(),
            mss,
            most,
            send_win: window,
            cong_win: self.room() * mss,
            windows: [self.sequence.window(), self.cwnd() / mss * mss],
            len: head.len,
            is_tail: head.is_tail,
            fin: head.fin,
            ends: self.queue.ends_record_within(self.sequence.nxt(), head.len),
            deferred: self.units().deferred,
            jiffy,
            idle: now.since(self.sequence.last_sent_at().max(self.pacer.released())),
            age: self.loss.board.front().map(|front| now.since(front.sent_at)),
            srtt: self.rtt.srtt().unwrap_or(Span::ZERO),
        };
        let choice = self.config.transfer.offload.choose(&sight);
        match choice {
            Choice::Send => return false,
            Choice::ForCwnd => self.window_use.stop(),
            Choice::ForPeer => self.counters.window_stopped = true,
            Choice::ForMore => {}
        }
        self.units().deferred.get_or_insert(jiffy);
        true
    }

    /// Segments that the congestion window has room for.
    fn room(&self) -> u64 {
        let mss = u64::from(self.negotiated.mss());
        (self.cwnd() / mss).max(1).saturating_sub(self.window_used().div_ceil(mss))
    }

    /// `tcp_cwnd_test`: no more than half the window in one unit.
    fn quota(&self) -> u64 {
        let half = (self.cwnd() / u64::from(self.negotiated.mss()) / 2).max(1);
        self.room().min(half)
    }

    /// Segments of a unit at most.
    fn most_segments(&self) -> u64 {
        let rule = &self.config.transfer.offload;
        let known = self.units.as_ref().and_then(|units| units.rate);
        let rate = known.or_else(|| self.rate_of_units()).unwrap_or(u64::MAX);
        let least = u64::from(self.config.transfer.least_burst);
        rule.most_segments(rate, self.rtt.min(), u64::from(self.negotiated.mss()), least)
    }

    /// A lost segment is sent again: with it, from 6.1 on, what is lost of its unit behind it, as
    /// far as the congestion window has room. Returns `true` if it ends with PSH for being the last of
    /// several (`__tcp_transmit_skb`).
    #[cold]
    pub(crate) fn note_unit_again(&mut self, now: Time, sent: &Sent) -> bool {
        let sent_packets = self.stats.sent_packets;
        let units = self.units();
        let joins = units.at == now && units.again == sent.seq && sent.seq < units.again_end;
        if joins {
            units.continued = sent_packets + 1;
        } else {
            let most = match self.config.transfer.offload.resends {
                true => self.room().min(self.most_segments()).max(1),
                false => 1,
            };
            let end = self.loss.board.take_unit(sent.seq, most);
            let units = self.units();
            (units.at, units.again_end) = (now, end);
        }
        let units = self.units();
        units.again = sent.end();
        let ends_several = joins && units.again == units.again_end;
        ends_several && !self.config.transfer.offload.ends_without_push
    }
}

#[cfg(test)]
mod tests;
