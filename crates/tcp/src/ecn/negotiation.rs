//! The handshake's agreement about ECN: the flags and the codepoints of SYNs and their answers.

use ackclock_cc::{EcnFeedback, EcnUse};
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use super::accurate::{has_capable_control, is_linux, reflected, reflection};
use super::{EcnState, ace};
use crate::{Config, State};

impl EcnState {
    /// A SYN without ACK arrived with codepoint `ecn`: what it asks for, and what it gets (RFC 3168
    /// section 6.1.1, RFC 9768 table 2).
    #[cold]
    pub(crate) fn agree(&mut self, config: &Config, syn: &Segment, ecn: Ecn) {
        let mode = match (config.ecn.max(config.transfer.accept_ecn), syn.flags.ace()) {
            (EcnFeedback::None, _) | (_, ace::NONE) => EcnFeedback::None,
            (EcnFeedback::Accurate, ace::CLASSIC_SYN) => EcnFeedback::Classic,
            // Other requests are those of later versions (RFC 9768 section 3.1.3).
            (EcnFeedback::Accurate, _) => EcnFeedback::Accurate,
            (accepted, ace::CLASSIC_SYN | ace::ACCURATE_SYN) => accepted,
            _ => EcnFeedback::None,
        };
        let on = mode != EcnFeedback::None;
        self.agreed.mode = mode;
        self.agreed.syn_arrived = ecn;
        self.allow(config, on, on);
        if mode == EcnFeedback::Accurate {
            self.echo.last = ecn;
            self.begin_counting(config, 1);
        }
    }

    /// Another SYN before the connection is open.
    #[cold]
    pub(crate) fn agree_again(&mut self, config: &Config, syn: &Segment, ecn: Ecn) {
        if self.agreed.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: the mode stays, but a SYN that does not ask for it may have
            // been needed to pass.
            self.agreed.syn_arrived = ecn;
            self.allow(config, self.agreed.sends && syn.flags.ace() != ace::NONE, true);
        } else if !syn.flags.contains(Flags::ECE | Flags::CWR) {
            // RFC 3168 section 6.1.1: no ECN after a SYN that does not ask for it.
            self.agreed.mode = EcnFeedback::None;
            self.allow(config, false, false);
        }
    }

    /// The answer to our SYN arrived with codepoint `ecn`.
    #[cold]
    pub(crate) fn take_answer(&mut self, config: &Config, answer: &Segment, ecn: Ecn, timeouts: u32) {
        let field = answer.flags.ace();
        let mode = match config.ecn {
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
        self.agreed.mode = mode;
        let on = mode != EcnFeedback::None;
        // None is sent if a SYN did not ask for it.
        let mut usable = on && asks_for_ecn(config, timeouts);
        if mode == EcnFeedback::Accurate {
            let linux = is_linux(config);
            let valid = self.may_have_become(config, reflected(field).unwrap_or(self.agreed.syn_sent));
            // tcp_ecn_rcv_synack looks at what became of the SYN only where its answer was marked.
            usable = (usable || linux) && (valid || linux && ecn != Ecn::Ce);
            (self.agreed.syn_arrived, self.echo.reflects) = (ecn, true);
            self.echo.received += u32::from(ecn == Ecn::Ce && (valid || !linux));
            // The SYN counts as delivered.
            self.heard.average(1);
            self.begin_counting(config, 0);
            self.look_at_option(answer, 2);
        }
        self.allow(config, usable, on);
    }

    /// Sets the permission for our packets to be ECN-capable, and for the peer's.
    pub(super) fn allow(&mut self, config: &Config, enabled: bool, echoes: bool) {
        (self.agreed.sends, self.agreed.echoes) = (enabled, echoes);
        self.choose_codepoints(config);
    }

    /// Another controller, or one that wants its packets to be ECN-capable in another way.
    #[cold]
    pub(crate) fn serve(&mut self, config: &Config, wants: EcnUse) {
        self.wants = wants;
        self.choose_codepoints(config);
    }

    /// The codepoints that the controller wants, as far as they are agreed on.
    #[cold]
    fn choose_codepoints(&mut self, config: &Config) {
        let accurate = self.agreed.mode == EcnFeedback::Accurate;
        (self.agreed.data, self.agreed.control) = match self.wants {
            _ if !self.agreed.sends => (Ecn::NotEct, Ecn::NotEct),
            EcnUse::All => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Scalable if accurate => (Ecn::Ect1, Ecn::Ect1),
            EcnUse::Data if accurate && has_capable_control(config) => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Data | EcnUse::Scalable => (Ecn::Ect0, Ecn::NotEct),
        };
    }

    /// The flags and the codepoint of our SYN, or of its answer in SYN-RECEIVED.
    #[cold]
    pub(crate) fn put_syn(&mut self, config: &Config, state: State, timeouts: u32) -> (Flags, Ecn) {
        let first = timeouts == 0;
        // RFC 9768 section 3.2.3.2.2: an answer that has been lost twice may have been dropped for
        // its flags. The mode stays, but nothing is ECT once an answer without them was sent
        // (section 3.1.5).
        let plain = self.agreed.mode == EcnFeedback::Accurate && timeouts > 1;
        if plain && state == State::SynReceived {
            self.allow(config, false, self.agreed.echoes);
        }
        let (field, codepoint) = if state == State::SynReceived {
            let field = match self.agreed.mode {
                EcnFeedback::None => ace::NONE,
                EcnFeedback::Accurate if plain => ace::NONE,
                EcnFeedback::Accurate => reflection(self.agreed.syn_arrived),
                EcnFeedback::Classic | EcnFeedback::Dctcp => ace::CLASSIC_ANSWER,
            };
            let wanted = self.wants != EcnUse::Data;
            (field, if wanted { self.agreed.control } else { Ecn::NotEct })
        } else {
            let asks = asks_for_ecn(config, timeouts);
            match (config.ecn, self.wants) {
                _ if !asks => (ace::NONE, Ecn::NotEct),
                (EcnFeedback::Accurate, EcnUse::Scalable) => (ace::ACCURATE_SYN, Ecn::Ect1),
                (EcnFeedback::Accurate, EcnUse::All) => (ace::ACCURATE_SYN, Ecn::Ect0),
                (EcnFeedback::Accurate, EcnUse::Data) => (ace::ACCURATE_SYN, Ecn::NotEct),
                (_, EcnUse::All) => (ace::CLASSIC_SYN, Ecn::Ect0),
                _ => (ace::CLASSIC_SYN, Ecn::NotEct),
            }
        };
        let codepoint = if first { codepoint } else { Ecn::NotEct };
        self.agreed.syn_sent = codepoint;
        (Flags::from_ace(field), codepoint)
    }
}

/// Returns `true` if a SYN sent now asks for ECN: once it has been sent again a middlebox may
/// have dropped it for the flags (RFC 3168 section 6.1.1.1). Accurate ECN is asked for once
/// more (RFC 9768 section 3.1.4.1).
fn asks_for_ecn(config: &Config, timeouts: u32) -> bool {
    let retries = match config.ecn {
        EcnFeedback::None => return false,
        EcnFeedback::Accurate => config.states.ecn_syn_retries.max(1),
        EcnFeedback::Classic | EcnFeedback::Dctcp => config.states.ecn_syn_retries,
    };
    timeouts <= retries
}
