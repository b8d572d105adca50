//! How a SYN, or its answer, is written.

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::{Endpoint, State};

impl Endpoint {
    #[cold]
    pub(crate) fn write_syn(&mut self, now: Time, out: &mut Segment) -> Ecn {
        // A second SYN gives no RTT sample, whether the first was lost or, in a simultaneous open,
        // was not.
        let again = !self.is_first_syn();
        if self.state == State::SynReceived {
            self.write_common(now, out, Flags::SYN);
        } else {
            *out = self.blank(Flags::SYN);
            out.window = self.receiver.syn_window(self.config.mss.into()) as u16;
        }
        self.put_syn_options(now, out);
        let (flags, codepoint) = self.syn_ecn();
        out.flags |= flags;
        out.seq = self.sender.sequence.isn();
        if self.opening.is_some() && !again {
            self.put_fast_open(now, out);
        }
        self.offer_option(again, out);
        self.sender.sequence.end_at(self.sender.sequence.nxt().max(1));
        self.handshake.sent(now, again, self.sender.negotiated.clock(now));
        self.sender.stats.resent_syns +=
            u64::from(again && self.state == State::SynSent && self.config.states.counts_syns);
        self.arm_syn_timers(now, again);
        codepoint
    }
}
