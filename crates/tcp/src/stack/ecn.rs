//! The knobs of Accurate ECN.

use ackclock_units::named;
use ackclock_units::parameter::{Choice, Configurable, Domain, Visitor};

defaults! {
/// A host's use of Accurate ECN (RFC 9768), once both ends have agreed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcnRules {
    /// Where the RFC and Linux differ. Default: the RFC.
    pub rule: AccEcnRule = AccEcnRule::Rfc9768;
    /// When byte counters are sent along. Default never: what an ACK reports is known by the packet
    /// counter alone.
    pub option: AccEcnOption = AccEcnOption::Off;
    /// Options that are sent in a round trip at least, on a connection that sends anything (RFC
    /// 9768 section 3.2.3.3); 0 for none but those that something has changed for. Default 3 (Linux
    /// `tcp_ecn_option_beacon`).
    pub beacon: u32 = 3;
}
}

impl AccEcnRules {
    /// Linux from 7.0 on with its sysctls' defaults, where Accurate ECN is in use at all.
    pub fn linux() -> AccEcnRules {
        // tcp_ecn_option = 2, tcp_ecn_option_beacon = 3
        AccEcnRules { rule: AccEcnRule::Linux, option: AccEcnOption::Full, beacon: 3 }
    }
}

/// The treatment of packets and feedback where the RFC leaves a choice, or Linux does something
/// else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccEcnRule {
    /// New data alone is ECN-capable, unless the controller asks for more. ACKs are forced by new
    /// marks on data and by two or three marks (section 3.2.2.5.1). Nothing is ECN-capable after a
    /// SYN that did not ask for ECN (section 3.1.5), and a counter that somebody has zeroed is not
    /// believed (section 3.2.2.1).
    #[default]
    Rfc9768,
    /// All packets of the connection but the handshake's are ECN-capable. Any change of the
    /// codepoint that arrives forces an ACK if one is owed, and so do six marks. A SYN that did not
    /// ask, or a zeroed counter, changes nothing in what is read.
    Linux,
}

named! { AccEcnRule: Rfc9768 = "rfc9768", Linux = "linux" }

impl Choice for AccEcnRules {
    type Kind = AccEcnOption;
    const WHAT: &'static str = "AccECN option";

    fn kind(&self) -> AccEcnOption {
        self.option
    }

    fn of_kind(&self, option: AccEcnOption) -> AccEcnRules {
        AccEcnRules { option, ..*self }
    }
}

/// The parameters of the option's kind.
impl Configurable for AccEcnRules {
    fn parameters(&mut self, v: &mut impl Visitor) {
        if self.option == AccEcnOption::Minimum {
            let source = "tcp_ecn_option_beacon";
            v.setting(
                "beacon",
                "least number of options per round trip",
                Domain::Whole(0, 65_535, ""),
                source,
                &mut self.beacon,
            );
        }
    }
}

/// When the AccECN option is sent, besides the answer to a SYN (Linux `tcp_ecn_option`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccEcnOption {
    /// Never, nor with the SYN's answer.
    #[default]
    Off,
    /// After changes of the codepoint that arrives, marks, every 4 MiB that a counter has moved,
    /// and as beacons.
    Minimum,
    /// On every segment that has room for what has changed.
    Full,
    /// The option is sent as by `Full`, even after it seems that ACKs with it get lost.
    Persist,
}

impl AccEcnOption {
    /// Every choice, in the order of Linux's numbers from 0 on.
    pub const ALL: [AccEcnOption; 4] =
        [AccEcnOption::Off, AccEcnOption::Minimum, AccEcnOption::Full, AccEcnOption::Persist];
}

named! { AccEcnOption: Off = "off", Minimum = "minimum", Full = "full", Persist = "persist" }
