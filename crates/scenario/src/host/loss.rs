//! How a host detects losses and repairs them.

use ackclock_tcp::{AdaptiveRules, BerkeleyRules, Config, DetectorRules, LossDetector, NcrVariant, Prr, RrRules};

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Flag, Kind, Number, OneOf, Packets, Problem, Whole};
use crate::report::Diagnostic;

pub(crate) const DETECTORS: OneOf = OneOf {
    what: "loss detector",
    names: &["rfc6675", "freebsd-9", "tahoe", "reno", "linux", "ncr", "ncr-aggressive", "rr-tcp", "rack"],
};

pub(super) fn knobs(fields: &mut Fields<'_>, config: &mut Config) {
    config.prr = fields.or(("prr", "proportional rate reduction (RFC 6937, RFC 9937)"), config.prr, Prrs);
    let detector = config.loss_detector;
    config.loss_detector = fields.choose(
        ("loss_detector", "how losses are detected from ACKs"),
        detector.name(),
        &DETECTORS,
        |kind, fields| loss_detector(kind, fields, detector),
    );
    config.undo = fields.or(("undo", "undo spurious window reductions (DSACK, Eifel)"), config.undo, Flag);
    config.frto = fields.or(("frto", "forward RTO recovery (RFC 5682)"), config.frto, Flag);
    config.tlp = fields.or(("tlp", "tail loss probes (RFC 8985)"), config.tlp, Flag);
    let berkeley = matches!(config.loss_detector, LossDetector::Tahoe(_) | LossDetector::Reno(_));
    config.sack = fields.or(("sack", "selective acknowledgments (RFC 2018)"), config.sack && !berkeley, Flag);
    if berkeley || config.loss_detector == LossDetector::FreeBsd9 {
        let others = [
            ("prr", config.prr != Prr::Off),
            ("undo", config.undo),
            ("frto", config.frto),
            ("tlp", config.tlp),
            ("sack", berkeley && config.sack),
        ];
        let why = format!("does not go with `loss_detector = \"{}\"`", config.loss_detector.name());
        for (key, _) in others.into_iter().filter(|&(_, on)| on) {
            refuse(fields, key, &why, "`false`");
        }
    }
}

/// `key` has a value that the other settings of the host do not allow.
pub(super) fn refuse(fields: &mut Fields<'_>, key: &'static str, why: &str, instead: &str) {
    let place =
        [key, "loss_detector"].into_iter().find_map(|key| fields.get(key)).map(|entry| entry.node.place.clone());
    let title = format!("{}: `{key}` {why}", fields.shown());
    let label = format!("expected {instead}, or another `loss_detector`");
    fields.push(Diagnostic::new(title, &place.unwrap_or(fields.place().clone()), label));
}

/// The detector called `kind`, with the profile's parameters where the file has none.
fn loss_detector(kind: &str, fields: &mut Fields<'_>, profile: LossDetector) -> LossDetector {
    match kind {
        "linux" => {
            let mut rules = match profile {
                LossDetector::Linux(rules) => rules,
                // A kernel that has RACK has neither any more: `tcp_recovery` = 0.
                LossDetector::Rack => AdaptiveRules::rack_off(),
                _ => AdaptiveRules::default(),
            };
            rules.max_reordering = fields.or(
                ("max_reordering", "largest duplicate threshold, in segments"),
                rules.max_reordering.into(),
                Packets(3, 1000),
            ) as u32;
            rules.fack = fields.or(("fack", "forward acknowledgment until reordering is seen"), rules.fack, Flag);
            rules.early_retransmit = fields.or(
                ("early_retransmit", "early retransmit (RFC 5827) until reordering is seen"),
                rules.early_retransmit,
                Flag,
            );
            rules.high_reordering = fields.or(
                (
                    "high_reordering",
                    "above a threshold of 3, SACKs grow the window, and a timeout may keep the threshold; \
                     ACKs with ECE grow a window above ssthresh too",
                ),
                rules.high_reordering,
                Flag,
            );
            if rules.fack || rules.early_retransmit {
                rules.order = DetectorRules::LINUX_4_0;
            }
            LossDetector::Linux(rules)
        }
        "ncr" => LossDetector::Ncr(NcrVariant::Careful),
        "ncr-aggressive" => LossDetector::Ncr(NcrVariant::Aggressive),
        "rr-tcp" => {
            let rules = RrRules::default();
            LossDetector::RrTcp(RrRules {
                history: fields.or(
                    ("history", "reordering lengths that RR-TCP remembers"),
                    rules.history.into(),
                    Whole(1, 10_000),
                ) as u16,
                initial_ratio: fields.or(
                    ("initial_ratio", "share of reordering without false retransmits at the start"),
                    rules.initial_ratio,
                    Number(0.0, 1.0),
                ),
                step: fields.or(
                    ("step", "what a false fast retransmit adds to that share"),
                    rules.step,
                    Number(0.0, 1.0),
                ),
            })
        }
        "rack" => LossDetector::Rack,
        "freebsd-9" => LossDetector::FreeBsd9,
        "tahoe" => LossDetector::Tahoe(berkeley(fields)),
        "reno" => LossDetector::Reno(berkeley(fields)),
        _ => LossDetector::Rfc6675,
    }
}

fn berkeley(fields: &mut Fields<'_>) -> BerkeleyRules {
    BerkeleyRules {
        bugfix: fields.or(
            ("bugfix", "no fast retransmit for data sent before the last retransmission or timeout"),
            BerkeleyRules::default().bugfix,
            Flag,
        ),
    }
}

/// `false` or the document that defines the reduction.
struct Prrs;

impl Kind for Prrs {
    type Held = Prr;

    fn read(&self, node: &Node) -> Result<Prr, Problem> {
        let names = OneOf { what: "rate reduction", names: &["rate-halving", "rfc6937", "ssrb", "rfc9937"] };
        match (&node.value, names.read(node)) {
            (Value::Boolean(false), _) => Ok(Prr::Off),
            (_, Ok("rate-halving")) => Ok(Prr::RateHalving),
            (_, Ok("rfc6937")) => Ok(Prr::Rfc6937),
            (_, Ok("ssrb")) => Ok(Prr::Ssrb),
            (_, Ok(_)) => Ok(Prr::Rfc9937),
            (_, Err(problem)) => Err(Problem { expected: format!("`false` or {}", problem.expected), ..problem }),
        }
    }

    fn show(&self, held: &Prr) -> Value {
        match held {
            Prr::Off => false.into(),
            Prr::RateHalving => "rate-halving".into(),
            Prr::Rfc6937 => "rfc6937".into(),
            Prr::Ssrb => "ssrb".into(),
            Prr::Rfc9937 => "rfc9937".into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Off, Domain::Name(vec!["rate-halving", "rfc6937", "ssrb", "rfc9937"])])
    }
}
