//! The handshake's agreement about ECN: the flags and the codepoints of SYNs and their answers.

use ackclock_cc::{EcnFeedback, EcnUse};
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use super::accurate::{reflected, reflection};
use super::{AccEcnRule, ace};
use crate::State;
use crate::send::Sender;

impl Sender {
    /// The best feedback that is agreed to.
    fn accepted_ecn(&self) -> EcnFeedback {
        self.config.ecn.max(self.config.transfer.accept_ecn)
    }

    /// A SYN without ACK arrived with codepoint `ecn`: what it asks for, and what it gets (RFC 3168
    /// section 6.1.1, RFC 9768 table 2).
    #[cold]
    pub(crate) fn agree_to_ecn(&mut self, syn: &Segment, ecn: Ecn) {
        let mode = match (self.accepted_ecn(), syn.flags.ace()) {
            (EcnFeedback::None, _) | (_, ace::NONE) => EcnFeedback::None,
            (EcnFeedback::Accurate, ace::CLASSIC_SYN) => EcnFeedback::Classic,
            // Other requests are those of later versions (RFC 9768 section 3.1.3).
            (EcnFeedback::Accurate, _) => EcnFeedback::Accurate,
            (accepted, ace::CLASSIC_SYN | ace::ACCURATE_SYN) => accepted,
            _ => EcnFeedback::None,
        };
        let on = mode != EcnFeedback::None;
        self.ecn.agreed.mode = mode;
        self.ecn.agreed.syn_arrived = ecn;
        self.set_ecn(on, on);
        if mode == EcnFeedback::Accurate {
            self.ecn.echo.last = ecn;
            self.begin_counting(1);
        }
    }

    /// Another SYN before the connection is open.
    #[cold]
    pub(crate) fn agree_to_ecn_again(&mut self, syn: &Segment, ecn: Ecn) {
        if self.ecn.agreed.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: the mode stays, but a SYN that does not ask for it may have
            // been needed to pass.
            self.ecn.agreed.syn_arrived = ecn;
            self.set_ecn(self.ecn.agreed.sends && syn.flags.ace() != ace::NONE, true);
        } else if !syn.flags.contains(Flags::ECE | Flags::CWR) {
            // RFC 3168 section 6.1.1: no ECN after a SYN that does not ask for it.
            self.ecn.agreed.mode = EcnFeedback::None;
            self.set_ecn(false, false);
        }
    }

    /// The answer to our SYN arrived with codepoint `ecn`.
    #[cold]
    pub(crate) fn agreed_on_ecn(&mut self, answer: &Segment, ecn: Ecn) {
        let field = answer.flags.ace();
        let mode = match self.config.ecn {
            EcnFeedback::None => EcnFeedback::None,
            EcnFeedback::Accurate => match field {
                ace::NONE | ace::ACCURATE_SYN => EcnFeedback::None,
                ace::CLASSIC_ANSWER => EcnFeedback::Classic,
                _ => EcnFeedback::Accurate,
            },
            // ECE alone (RFC 3168 section 6.1.1); a reflected ECE+CWR is not an agreement.
            classic if matches!(field, ace::CLASSIC_ANSWER | ace::RESERVED_ANSWER) => classic,
            _ => EcnFeedback::None,
        };
        self.ecn.agreed.mode = mode;
        let on = mode != EcnFeedback::None;
        // None is sent if a SYN did not ask for it.
        let mut usable = on && self.asks_for_ecn();
        if mode == EcnFeedback::Accurate {
            let linux = self.acc_ecn_rule() == AccEcnRule::Linux;
            let valid = self.may_have_become(reflected(field).unwrap_or(self.ecn.agreed.syn_sent));
            // tcp_ecn_rcv_synack looks at what became of the SYN only where its answer was marked.
            usable = (usable || linux) && (valid || linux && ecn != Ecn::Ce);
            (self.ecn.agreed.syn_arrived, self.ecn.echo.reflects) = (ecn, true);
            self.ecn.echo.received += u32::from(ecn == Ecn::Ce && (valid || !linux));
            // The SYN counts as delivered.
            self.ecn.heard.average(1);
            self.begin_counting(0);
            self.look_at_option(answer, 2);
        }
        self.set_ecn(usable, on);
    }

    /// Sets the permission for our packets to be ECN-capable, and for the peer's.
    pub(super) fn set_ecn(&mut self, enabled: bool, echoes: bool) {
        (self.ecn.agreed.sends, self.ecn.agreed.echoes) = (enabled, echoes);
        self.choose_codepoints();
    }

    /// The codepoints that the controller wants, as far as they are agreed on.
    #[cold]
    pub(crate) fn choose_codepoints(&mut self) {
        let accurate = self.ecn.agreed.mode == EcnFeedback::Accurate;
        (self.ecn.agreed.data, self.ecn.agreed.control) = match self.observer.needs.ecn {
            _ if !self.ecn.agreed.sends => (Ecn::NotEct, Ecn::NotEct),
            EcnUse::All => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Scalable if accurate => (Ecn::Ect1, Ecn::Ect1),
            EcnUse::Data if accurate && self.has_capable_control() => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Data | EcnUse::Scalable => (Ecn::Ect0, Ecn::NotEct),
        };
    }

    /// Returns `true` if a SYN sent now asks for ECN: once it has been sent again a middlebox may
    /// have dropped it for the flags (RFC 3168 section 6.1.1.1). Accurate ECN is asked for once
    /// more (RFC 9768 section 3.1.4.1).
    fn asks_for_ecn(&self) -> bool {
        let retries = match self.config.ecn {
            EcnFeedback::None => return false,
            EcnFeedback::Accurate => self.config.states.ecn_syn_retries.max(1),
            EcnFeedback::Classic | EcnFeedback::Dctcp => self.config.states.ecn_syn_retries,
        };
        self.rtt.timeouts() <= retries
    }

    /// The flags and the codepoint of our SYN, or of its answer in SYN-RECEIVED.
    #[cold]
    pub(crate) fn syn_ecn(&mut self, state: State) -> (Flags, Ecn) {
        let first = self.rtt.timeouts() == 0;
        // RFC 9768 section 3.2.3.2.2: an answer that has been lost twice may have been dropped for
        // its flags. The mode stays, but nothing is ECT once an answer without them was sent
        // (section 3.1.5).
        let plain = self.ecn.agreed.mode == EcnFeedback::Accurate && self.rtt.timeouts() > 1;
        if plain && state == State::SynReceived {
            self.set_ecn(false, self.ecn.agreed.echoes);
        }
        let (field, codepoint) = if state == State::SynReceived {
            let field = match self.ecn.agreed.mode {
                EcnFeedback::None => ace::NONE,
                EcnFeedback::Accurate if plain => ace::NONE,
                EcnFeedback::Accurate => reflection(self.ecn.agreed.syn_arrived),
                EcnFeedback::Classic | EcnFeedback::Dctcp => ace::CLASSIC_ANSWER,
            };
            let wanted = self.observer.needs.ecn != EcnUse::Data;
            (field, if wanted { self.ecn.agreed.control } else { Ecn::NotEct })
        } else {
            let asks = self.asks_for_ecn();
            match (self.config.ecn, self.observer.needs.ecn) {
                _ if !asks => (ace::NONE, Ecn::NotEct),
                (EcnFeedback::Accurate, EcnUse::Scalable) => (ace::ACCURATE_SYN, Ecn::Ect1),
                (EcnFeedback::Accurate, EcnUse::All) => (ace::ACCURATE_SYN, Ecn::Ect0),
                (EcnFeedback::Accurate, EcnUse::Data) => (ace::ACCURATE_SYN, Ecn::NotEct),
                (_, EcnUse::All) => (ace::CLASSIC_SYN, Ecn::Ect0),
                _ => (ace::CLASSIC_SYN, Ecn::NotEct),
            }
        };
        let codepoint = if first { codepoint } else { Ecn::NotEct };
        self.ecn.agreed.syn_sent = codepoint;
        (Flags::from_ace(field), codepoint)
    }
}
