//! Byte counters of Accurate ECN: what the AccECN option reports, when it is sent, and what it
//! tells the sender.
//!
//! # Source
//! RFC 9768 section 3.2.3 and appendix A; Linux 7.0: `tcp_accecn_process_option` and
//! `tcp_rcv_spurious_retrans` (`net/ipv4/tcp_input.c`), `tcp_established_options` and
//! `tcp_options_write` (`tcp_output.c`), `tcp_ecn_received_counters`, `tcp_accecn_option_init` and
//! `tcp_accecn_option_beacon_check` (`include/net/tcp_ecn.h`).
//!
//! # Departures
//! - A segment that was cut before the option was in use is sent again without it; Linux cuts it
//!   anew.
//! - Room for an option that is not on every segment is taken from new data by what is known at the
//!   last ACK or timer.
//! - Resets have no option.

use ackclock_packet::{Segment, fit_acc_ecn};
use ackclock_units::Time;

use super::bytes::{ByteCounters, BytesTold, Seen};
use super::{AccEcnOption, AccEcnRule};
use crate::State;
use crate::loss::scoreboard::Progress;
use crate::receiver::Receiver;
use crate::send::Sender;

/// Bytes of an option with all counters and its padding.
const WHOLE: u32 = 12;

impl Sender {
    /// Both ends have agreed on Accurate ECN, the peer by `segment`; `due` options follow that.
    #[cold]
    pub(super) fn begin_counting(&mut self, due: u8) {
        let rules = self.config.transfer.acc_ecn;
        // Linux reads what it does not send.
        if rules.rule == AccEcnRule::Linux || rules.option != AccEcnOption::Off {
            let mut counters = ByteCounters::new();
            counters.due = due;
            self.ecn.bytes = Some(Box::new(counters));
        }
    }

    /// Returns `true` if a segment sent at `now` has the option, if there is room.
    fn sends_option(&self, counters: &ByteCounters, now: Time) -> bool {
        let rules = &self.config.transfer.acc_ecn;
        let agreed = rules.option != AccEcnOption::Off && counters.seen != Seen::Nothing;
        let beacon = || {
            let rtt = self.rtt.srtt().map_or(0, |srtt| srtt.as_nanos());
            rules.beacon > 0 && now.since(counters.sent_at).as_nanos().saturating_mul(u64::from(rules.beacon)) >= rtt
        };
        agreed
            && (rules.option == AccEcnOption::Persist || !counters.stopped)
            && (rules.option >= AccEcnOption::Full || counters.due > 0 || beacon())
    }

    /// The payload of a full segment: the MSS, less what the option takes.
    #[inline]
    pub fn full_payload(&self) -> u32 {
        if self.ecn.bytes.is_none() { self.negotiated.mss() } else { self.payload_beside_option() }
    }

    #[cold]
    fn payload_beside_option(&self) -> u32 {
        let sends = self.ecn.bytes.as_deref().is_some_and(|counters| self.sends_option(counters, self.now));
        if sends && self.negotiated.mss() > WHOLE { self.negotiated.mss() - WHOLE } else { self.negotiated.mss() }
    }

    /// All of a segment that begins at `left` is known already. If it is the third time, and the
    /// ACK that reported the second had the option, ACKs with it do not get through (RFC 9768
    /// section 3.2.3.2.2).
    #[cold]
    pub(crate) fn note_spurious(&mut self, left: u64) {
        if let Some(counters) = &mut self.ecn.bytes {
            counters.stopped |= counters.with_duplicate == Some(left);
        }
    }

    /// Takes the byte counts that an ACK reports.
    #[inline]
    pub(super) fn take_bytes(&mut self, segment: &Segment, progress: &Progress) -> BytesTold {
        let sent = self.counters.bytes_sent;
        match &mut self.ecn.bytes {
            Some(counters) => counters.take(segment.acc_ecn, progress.delivered as u32, sent),
            None => BytesTold::default(),
        }
    }

    /// Adds the option to a segment that is ready otherwise.
    #[inline]
    pub(crate) fn add_option(&mut self, now: Time, out: &mut Segment, is_forgotten: bool, receiver: &Receiver) {
        if self.ecn.bytes.is_some() {
            self.report_bytes(now, out, is_forgotten, receiver);
        }
    }

    #[cold]
    fn report_bytes(&mut self, now: Time, out: &mut Segment, is_forgotten: bool, receiver: &Receiver) {
        let Some(mut counters) = self.ecn.bytes.take() else { return };
        let bare = *out;
        let fits = self.sends_option(&counters, now)
            && !is_forgotten
            && fit_acc_ecn(out, counters.report(), usize::from(counters.needed))
            // Options that data does not always carry are part of the MSS.
            && (out.payload.len == 0 || out.header_len() + out.payload.len <= 20 + self.options_len() + self.negotiated.mss());
        if fits {
            counters.needed = 0;
            counters.sent_at = now;
            counters.due = counters.due.saturating_sub(1);
            counters.with_duplicate = receiver.reported_duplicate(out);
        } else {
            *out = bare;
            counters.with_duplicate = None;
        }
        self.ecn.bytes = Some(counters);
    }

    /// The answer to a SYN says that the option is understood, but not when it is sent again (RFC
    /// 9768 section 3.2.3.2.2).
    #[cold]
    pub(crate) fn offer_option(&self, state: State, is_passive: bool, again: bool, out: &mut Segment) {
        let retries = if is_passive { again } else { self.rtt.timeouts() > 1 };
        let off = self.config.transfer.acc_ecn.option == AccEcnOption::Off;
        if state == State::SynReceived && self.ecn.bytes.is_some() && !off && !retries {
            fit_acc_ecn(out, ByteCounters::new().report(), 0);
        }
    }
}
