//! The AccECN option on a connection: when it is in use, and how segments get it.

use ackclock_packet::{Segment, fit_acc_ecn};
use ackclock_units::{Span, Time};

use super::EcnState;
use super::bytes::{ByteCounters, BytesTold};
use crate::loss::scoreboard::Progress;
use crate::receiver::Receiver;
use crate::{AccEcnOption, AccEcnRule, Config, State};

/// Bytes of an option with all counters and its padding.
const WHOLE: u32 = 12;

impl EcnState {
    /// Both ends have agreed on Accurate ECN, the peer by `segment`; `due` options follow that.
    #[cold]
    pub(super) fn begin_counting(&mut self, config: &Config, due: u8) {
        let rules = config.transfer.acc_ecn;
        // Linux reads what it does not send.
        if rules.rule == AccEcnRule::Linux || rules.option != AccEcnOption::Off {
            let mut counters = ByteCounters::new();
            counters.due = due;
            self.bytes = Some(Box::new(counters));
        }
    }

    /// Returns `true` if a segment sent at `now` has the option, if there is room.
    pub(crate) fn is_option_due(&self, config: &Config, now: Time, srtt: Option<Span>) -> bool {
        self.bytes.as_deref().is_some_and(|counters| counters.is_sent(&config.transfer.acc_ecn, now, srtt))
    }

    /// The payload of a full segment of `mss` bytes beside the option, where it is in use.
    #[cold]
    pub(crate) fn payload_beside_option(&self, config: &Config, now: Time, srtt: Option<Span>, mss: u32) -> u32 {
        if self.is_option_due(config, now, srtt) && mss > WHOLE { mss - WHOLE } else { mss }
    }

    /// All of a segment that begins at `left` is known already. If it is the third time, and the
    /// ACK that reported the second had the option, ACKs with it do not get through (RFC 9768
    /// section 3.2.3.2.2).
    #[cold]
    pub(crate) fn note_spurious(&mut self, left: u64) {
        if let Some(counters) = &mut self.bytes {
            counters.stopped |= counters.with_duplicate == Some(left);
        }
    }

    /// Takes the byte counts that an ACK reports.
    #[inline]
    pub(super) fn take_bytes(&mut self, segment: &Segment, progress: &Progress, sent: u64) -> BytesTold {
        match &mut self.bytes {
            Some(counters) => counters.take(segment.acc_ecn, progress.delivered as u32, sent),
            None => BytesTold::default(),
        }
    }

    /// Adds the option to a segment that is ready otherwise, and has room for `most` bytes of options
    /// and payload; none is `due` if it is not to be sent now.
    #[cold]
    pub(crate) fn report_bytes(&mut self, now: Time, out: &mut Segment, due: bool, most: u32, receiver: &Receiver) {
        let Some(mut counters) = self.bytes.take() else { return };
        let bare = *out;
        let fits = due
            && fit_acc_ecn(out, counters.report(), usize::from(counters.needed))
            // Options that data does not always carry are part of the MSS.
            && (out.payload.len == 0 || out.header_len() + out.payload.len <= most);
        if fits {
            counters.needed = 0;
            counters.sent_at = now;
            counters.due = counters.due.saturating_sub(1);
            counters.with_duplicate = receiver.reported_duplicate(out);
        } else {
            *out = bare;
            counters.with_duplicate = None;
        }
        self.bytes = Some(counters);
    }

    /// The answer to a SYN says that the option is understood, but not when it is sent `again` (RFC
    /// 9768 section 3.2.3.2.2).
    #[cold]
    pub(crate) fn offer_option(&self, config: &Config, state: State, again: bool, out: &mut Segment) {
        let off = config.transfer.acc_ecn.option == AccEcnOption::Off;
        if state == State::SynReceived && self.bytes.is_some() && !off && !again {
            fit_acc_ecn(out, ByteCounters::new().report(), 0);
        }
    }
}
