//! Assigning data to subflows: new data, data of failed subflows, and data that blocks the shared
//! window.
//!
//! # Source
//! RFC 8684 sections 3.3.4 to 3.3.6; multipath-tcp.org v0.95, `mptcp_write_xmit`,
//! `mptcp_rcv_buf_optimization` (`net/mptcp/mptcp_output.c`, `mptcp_sched.c`) and
//! `mptcp_sub_retransmit_timer`: a subflow whose timer expires is potentially failed until
//! something on it is acknowledged, and its data is sent on others.

use std::ops::Range;

use ackclock_cc::Window;
use ackclock_tcp::{CaState, Error, Shutdown};
use ackclock_units::{Span, Time};

use crate::config::SchedulerKind;
use crate::connection::is_synchronized;
use crate::connection::{Connection, Mode};
use crate::scheduler::{Candidate, SharedWindow};
use crate::subflow::{Stage, Subflow};

/// The shortest time until data that the peer's connection has not acknowledged is sent on another
/// subflow, whatever the state of the subflows (Linux `TCP_RTO_MIN`).
const LEAST_WAIT: Span = Span::from_millis(200);
/// Bytes of data without a holding subflow that are retransmitted at a time: a page fragment, in
/// which Linux stores the stream (`__mptcp_retrans` sends one).
const DROPPED: u64 = 32 << 10;

impl Connection {
    /// Gives the subflows the data that they may send now.
    pub(crate) fn push(&mut self, now: Time) {
        match self.mode {
            Mode::Opening => {}
            Mode::Plain => self.push_plain(),
            Mode::Multipath { .. } if self.error.is_some() => {}
            Mode::Multipath { .. } => {
                self.reinject(now);
                match self.config.scheduler {
                    SchedulerKind::Redundant => self.push_everywhere(now),
                    _ => self.push_new(now),
                }
                self.finish(now);
            }
        }
    }

    fn push_plain(&mut self) {
        let (sending, subflow) = (&mut self.sending, &mut self.subflows[0]);
        if sending.next < sending.written {
            let taken = subflow.endpoint.write(sending.written - sending.next);
            sending.next += taken;
            subflow.carried.scheduled += taken;
        }
        if sending.closed && sending.next == sending.written {
            subflow.endpoint.shutdown(Shutdown::Write);
        }
    }

    /// Lists the subflows that may be given data: backups only without others, failed ones only if
    /// all have failed.
    pub(crate) fn list_candidates(&mut self) {
        self.candidates.clear();
        for allowed in [(false, false), (true, false), (false, true), (true, true)] {
            let (backup, failed) = allowed;
            for (number, subflow) in self.subflows.iter().enumerate() {
                if subflow.takes_data() && subflow.backup == backup && subflow.failed == failed {
                    self.candidates.push(subflow.candidate(number));
                }
            }
            if !self.candidates.is_empty() {
                return;
            }
        }
    }

    /// Updates a candidate that was given data.
    fn review_candidate(&mut self, number: usize) {
        let known = self.candidates.iter_mut().find(|candidate| candidate.subflow == number);
        if let Some(known) = known {
            *known = self.subflows[number].candidate(number);
        }
    }

    fn push_new(&mut self, now: Time) {
        if self.sending.next == self.sending.written {
            return;
        }
        self.list_candidates();
        loop {
            let sending = &self.sending;
            let available = sending.written - sending.next;
            let left = sending.window_end.saturating_sub(sending.next);
            if available == 0 {
                return;
            }
            let window = SharedWindow { size: sending.window_end.saturating_sub(sending.una), left };
            if left == 0 {
                if sending.timer == Time::NEVER {
                    // Nothing is in flight: the window is probed.
                    self.start_timer(now);
                }
                return self.unblock(now);
            }
            let Some(number) = self.scheduler.choose(now, &self.candidates, window) else { return };
            let mss = u64::from(self.subflows[number].endpoint.sender().full_payload());
            let len = mss.min(available).min(left);
            if len < mss && len == available && self.waits_for_more() {
                return;
            }
            if len < mss && len < available && self.is_silly(left) {
                return self.unblock(now);
            }
            let next = sending.next;
            let taken = self.subflows[number].give(next, len);
            if taken == 0 {
                // Its send buffer is full: others may have room.
                self.candidates.retain(|candidate| candidate.subflow != number);
                continue;
            }
            self.scheduler.note_given(taken);
            self.sending.next += taken;
            self.review_candidate(number);
            if next == self.sending.una {
                self.start_timer(now);
            }
        }
    }

    /// Returns `true` if a small segment waits for more data or an acknowledgment (Nagle's
    /// algorithm, RFC 9293 section 3.7.4).
    fn waits_for_more(&self) -> bool {
        self.tcp.nagle && !self.sending.closed && self.sending.una < self.sending.next
    }

    /// Returns `true` if the rest of the window is too small for a segment (RFC 9293 section
    /// 3.8.6.2.1).
    fn is_silly(&self, left: u64) -> bool {
        left < self.sending.max_window.div_ceil(2) && self.sending.una < self.sending.next
    }

    /// Gives every subflow everything that the peer's connection has not acknowledged.
    fn push_everywhere(&mut self, now: Time) {
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.takes_data()) {
            loop {
                let mss = u64::from(subflow.endpoint.sender().full_payload());
                let end = self.sending.written.min(self.sending.window_end);
                let from = subflow.redundant_to.max(self.sending.una);
                if from >= end || subflow.endpoint.sender().window_room() < mss.min(end - from) {
                    break;
                }
                let taken = subflow.give(from, mss.min(end - from));
                if taken == 0 {
                    break;
                }
                subflow.redundant_to = from + taken;
                subflow.carried.reinjected += (from + taken).min(self.sending.next).saturating_sub(from);
                self.sending.next = self.sending.next.max(from + taken);
            }
        }
        if self.sending.timer == Time::NEVER && self.sending.una < self.sending.next {
            self.start_timer(now);
        }
    }

    /// Gives the data of failed subflows to others.
    fn reinject(&mut self, now: Time) {
        self.sending.reinject.forget_below(self.sending.una);
        if self.sending.reinject.first().is_none() {
            return;
        }
        self.list_candidates();
        while let Some(range) = self.sending.reinject.first() {
            let free = |number: usize| !self.subflows[number].has_in_flight(range.start);
            let fitting = self.candidates.iter().filter(|one| one.room >= one.mss && free(one.subflow));
            let Some(number) = fitting.min_by_key(|one| one.srtt).map(|one| one.subflow) else { return };
            let Some(end) = self.give_again(number, range) else {
                self.candidates.retain(|candidate| candidate.subflow != number);
                continue;
            };
            self.sending.reinject.forget_below(end);
            self.review_candidate(number);
            if self.sending.timer == Time::NEVER {
                self.start_timer(now);
            }
        }
    }

    /// Gives a subflow a segment of another subflow's data; returns its end.
    fn give_again(&mut self, number: usize, range: Range<u64>) -> Option<u64> {
        let subflow = &mut self.subflows[number];
        let len = u64::from(subflow.endpoint.sender().full_payload()).min(range.end - range.start);
        let taken = subflow.give(range.start, len);
        subflow.carried.reinjected += taken;
        (taken > 0).then_some(range.start + taken)
    }

    /// Handles a full shared window: its first bytes are retransmitted on a subflow that has room
    /// and was not given them, and the subflow that holds them is penalized.
    fn unblock(&mut self, now: Time) {
        let una = self.sending.una;
        let holds = |subflow: &Subflow| subflow.takes_data() && !subflow.failed && subflow.has_in_flight(una);
        let Some(holder) = self.subflows.iter().position(holds) else { return };
        let slow = self.subflows[holder].endpoint.sender().rtt().srtt();
        let is_free = |one: &&Candidate| one.room >= one.mss && !self.subflows[one.subflow].has_in_flight(una);
        let others = self.candidates.iter().filter(is_free);
        let Some(fast) = others.min_by_key(|one| one.srtt).filter(|one| one.srtt < slow) else { return };
        let number = fast.subflow;
        // This pays where the holder has a small window or a fourfold RTT (multipath-tcp.org
        // v0.95).
        let held = &self.subflows[holder].endpoint;
        let few = held.sender().cwnd() <= 4 * u64::from(held.sender().full_payload());
        let is_far = fast.srtt.zip(slow).is_some_and(|(fast, slow)| fast * 4 < slow);
        self.scheduler.note_blocked();
        if self.config.penalization {
            self.penalize(now, number, holder);
        }
        if self.config.opportunistic_retransmission && self.sending.opportune <= una && (few || is_far) {
            let end = self.sending.next;
            if let Some(end) = self.give_again(number, una..end) {
                self.sending.opportune = end;
            }
        }
    }

    /// Halves the window of the subflow that holds the first bytes, at most once per RTT of the
    /// waiting subflow, and not during loss recovery.
    fn penalize(&mut self, now: Time, fast: usize, holder: usize) {
        let waiting = &mut self.subflows[fast];
        let srtt = waiting.endpoint.sender().rtt().srtt().unwrap_or_default();
        if waiting.penalized_at.is_some_and(|at| now.since(at) < srtt)
            || self.subflows[holder].endpoint.sender().loss().state() != CaState::Open
        {
            return;
        }
        self.subflows[fast].penalized_at = Some(now);
        let subflow = &mut self.subflows[holder];
        let mss = u64::from(subflow.endpoint.sender().full_payload());
        let halved = (subflow.endpoint.sender().congestion_control().window().cwnd / 2).max(mss);
        // The threshold is reduced as well (NSDI 2012, section 4.2); multipath-tcp.org stays in
        // slow start, where the window recovers within a round trip.
        subflow.endpoint.sender_mut().reduce_window(Window { cwnd: halved, ssthresh: halved.max(2 * mss) });
        subflow.carried.penalties += 1;
    }

    /// Handles a data acknowledgment up to `ack`, counted from the first byte; DATA_FIN counts as
    /// one byte.
    pub(crate) fn data_acknowledged(&mut self, now: Time, ack: u64) {
        let sending = &mut self.sending;
        let most = sending.next + u64::from(sending.closed && sending.next == sending.written);
        if ack > most || ack < sending.una {
            return;
        }
        let fin = ack > sending.next;
        let progress = ack.min(sending.next) > sending.una || fin && !sending.fin_acked;
        sending.una = sending.una.max(ack.min(sending.next));
        sending.fin_acked |= fin;
        if !progress {
            return;
        }
        let una = sending.una;
        sending.expiries = 0;
        self.subflows.iter_mut().for_each(|subflow| subflow.forget(una));
        self.start_timer(now);
    }

    /// Sends DATA_FIN once all data was given to a subflow.
    fn finish(&mut self, now: Time) {
        let sending = &mut self.sending;
        if sending.fin_acked {
            // This includes subflows that have opened since.
            return self.close_subflows();
        }
        if !sending.closed || sending.next < sending.written || sending.fin_sent {
            return;
        }
        sending.fin_sent = true;
        self.signal_fin();
        self.start_timer(now);
    }

    fn signal_fin(&mut self) {
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.is_open()) {
            subflow.endpoint.acknowledge_now();
        }
    }

    /// Restarts the timer of the connection, or stops it if everything is acknowledged.
    pub(crate) fn start_timer(&mut self, now: Time) {
        let sending = &self.sending;
        // Unacknowledged data, data that waits for the window, or DATA_FIN.
        let waits = sending.una < sending.written || sending.fin_sent && !sending.fin_acked;
        if !waits || !self.is_multipath() {
            self.sending.timer = Time::NEVER;
            return;
        }
        let open = self.subflows.iter().filter(|subflow| subflow.is_open());
        let rto = open.map(|subflow| subflow.endpoint.sender().rto()).max().unwrap_or(Span::from_secs(1));
        let wait = LEAST_WAIT.max(rto).as_nanos().saturating_mul(1 << sending.expiries.min(10));
        self.sending.timer = now + Span::from_nanos(wait);
    }

    /// Does everything that is due at `now`.
    pub fn on_deadline(&mut self, now: Time) {
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            if subflow.stage == Stage::Closed || subflow.endpoint.next_deadline() > now {
                continue;
            }
            self.couple(index);
            let subflow = &mut self.subflows[index];
            subflow.endpoint.on_deadline(now);
            let timeouts = subflow.endpoint.sender().stats().timeouts;
            if timeouts > subflow.timeouts && is_synchronized(subflow.endpoint.state()) && self.is_multipath() {
                self.subflows[index].failed = true;
                self.give_up_on(now, index);
            }
            self.subflows[index].timeouts = timeouts;
            self.note_end(now, index);
        }
        self.prove_again(now);
        self.announce_again(now);
        if self.sending.timer <= now {
            self.expire(now);
        }
        self.push(now);
    }

    /// Handles the expiry of the connection's timer: its first bytes are sent on another subflow, a
    /// closed window is probed, or DATA_FIN is retransmitted. The connection is given up after as
    /// many expiries as a subflow.
    fn expire(&mut self, now: Time) {
        self.sending.expiries = self.sending.expiries.saturating_add(1);
        if self.sending.expiries > self.tcp.max_retries {
            self.error = Some(Error::TimedOut);
            self.sending.timer = Time::NEVER;
            return self.subflows.iter_mut().for_each(|subflow| subflow.endpoint.abort());
        }
        let sending = &self.sending;
        let may_fall_back = !self.joined && !self.subflows[0].data_acked;
        if sending.una < sending.next && may_fall_back {
            // The stream of the only subflow must remain that of the connection.
        } else if sending.una < sending.next {
            // Without a holding subflow, the peer acknowledged the data there and dropped it, as
            // Linux does when its receive buffer is full.
            let holder = self.subflows.iter().find(|subflow| subflow.has_in_flight(sending.una));
            let len = holder.map_or(DROPPED, |subflow| u64::from(subflow.endpoint.sender().full_payload()));
            let range = sending.una..(sending.una + len).min(sending.next);
            self.sending.reinject.insert(range);
        } else if sending.una < sending.written {
            self.probe();
        } else {
            self.signal_fin();
        }
        self.start_timer(now);
    }

    /// Probes a closed window: retransmits the last acknowledged byte, as Linux does (RFC 9293
    /// section 3.8.6.1), which elicits an ACK with the window.
    fn probe(&mut self) {
        self.list_candidates();
        let Some(number) = self.candidates.first().map(|candidate| candidate.subflow) else { return };
        let next = self.sending.next;
        let taken = self.subflows[number].give(next.saturating_sub(1), 1);
        if next == 0 {
            self.sending.next = taken;
        }
    }
}
