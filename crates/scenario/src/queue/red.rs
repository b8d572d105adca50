//! RED, BLUE and SFB: disciplines with a probability that follows the queue.

use ackclock_aqm::{
    BlueConfig, BlueThreshold, BlueUpdates, Limit, RedAdaptive, RedBottom, RedConfig, RedFloyd, RedWeight, SfbConfig,
};

use super::MAX;
use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Bytes, Flag, Kind, Number, OneOf, OrOff, PlainRate, Problem, SizeOf, Time, Whole};
use crate::report::Diagnostic;

const PROBABILITY: Number = Number(0.0, 1.0);

pub(super) fn red(fields: &mut Fields<'_>) -> RedConfig {
    let tc = RedConfig::default();
    let config = RedConfig {
        limit: fields.or("limit", tc.limit, Bytes(1, MAX)),
        min: fields.maybe("min", Bytes(1, MAX)),
        max: fields.maybe("max", Bytes(1, MAX)),
        avpkt: fields.or("avpkt", tc.avpkt.into(), Bytes(1, 1 << 20)) as u32,
        burst: fields.maybe("burst", Whole(1, MAX)).map(|packets| packets as u32),
        probability: fields.or("probability", tc.probability, PROBABILITY),
        bandwidth: fields.or("bandwidth", tc.bandwidth, PlainRate),
        ecn: fields.or("ecn", tc.ecn, Flag),
        harddrop: fields.or("harddrop", tc.harddrop, Flag),
        nodrop: fields.or("nodrop", tc.nodrop, Flag),
        adaptive: fields.switch("adaptive", tc.adaptive, RedAdaptive::default(), adaptive),
        floyd: fields.switch("floyd", tc.floyd, RedFloyd::default(), floyd),
    };
    refuse(fields, "red", config.problem());
    config
}

fn adaptive(fields: &mut Fields<'_>, paper: RedAdaptive) -> RedAdaptive {
    RedAdaptive {
        alpha: fields.or("alpha", paper.alpha, PROBABILITY),
        beta: fields.or("beta", paper.beta, PROBABILITY),
        interval: fields.or("interval", paper.interval, Time::Positive),
        top: fields.or("top", paper.top, PROBABILITY),
        bottom: fields.or("bottom", paper.bottom, Bottom),
    }
}

fn floyd(fields: &mut Fields<'_>, ns2: RedFloyd) -> RedFloyd {
    RedFloyd {
        gentle: fields.or("gentle", ns2.gentle, Flag),
        wait: fields.or("wait", ns2.wait, Flag),
        bytemode: fields.or("bytemode", ns2.bytemode, Flag),
        mark_p: fields.or("mark_p", ns2.mark_p, OrOff(PROBABILITY)),
        weight: fields.or("weight", ns2.weight, Weight),
        target_delay: fields.or("target_delay", ns2.target_delay, OrOff(Time::Positive)),
    }
}

/// The lowest probability of Adaptive RED.
struct Bottom;

impl Kind for Bottom {
    type Held = RedBottom;

    fn read(&self, node: &Node) -> Result<RedBottom, Problem> {
        if node.str() == Some("automatic") {
            return Ok(RedBottom::Automatic);
        }
        let read = PROBABILITY.read(node).map(RedBottom::Fixed);
        read.map_err(|problem| Problem { expected: format!("\"automatic\", or {}", problem.expected), ..problem })
    }

    fn show(&self, held: &RedBottom) -> Value {
        match held {
            RedBottom::Fixed(bottom) => PROBABILITY.show(bottom),
            RedBottom::Automatic => "automatic".into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Name(vec!["automatic"]), PROBABILITY.domain()])
    }
}

/// The weight of a packet in RED's average.
struct Weight;

impl Kind for Weight {
    type Held = RedWeight;

    fn read(&self, node: &Node) -> Result<RedWeight, Problem> {
        let expected = "\"burst\", \"automatic\", or a number above 0 and up to 1";
        match &node.value {
            Value::String(name) if name == "burst" => Ok(RedWeight::Burst),
            Value::String(name) if name == "automatic" => Ok(RedWeight::Automatic),
            Value::Float(weight) if *weight > 0.0 && *weight <= 1.0 => Ok(RedWeight::Fixed(*weight)),
            _ => Err(Problem::new("not a weight", expected)),
        }
    }

    fn show(&self, held: &RedWeight) -> Value {
        match held {
            RedWeight::Burst => "burst".into(),
            RedWeight::Automatic => "automatic".into(),
            RedWeight::Fixed(weight) => (*weight).into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Name(vec!["burst", "automatic"]), Domain::Number(f64::MIN_POSITIVE, 1.0)])
    }
}

const UPDATES: OneOf = OneOf { what: "way to update", names: &["shared", "separate"] };

pub(super) fn blue(fields: &mut Fields<'_>) -> BlueConfig {
    let thesis = BlueConfig::default();
    let limit = fields.or("limit", thesis.limit, SizeOf(1, MAX));
    let updates = match fields.or("updates", "shared", UPDATES) {
        "separate" => BlueUpdates::Separate,
        _ => BlueUpdates::Shared,
    };
    let config = BlueConfig {
        limit,
        freeze: fields.or("freeze", thesis.freeze, Time::Any),
        init: fields.or("init", thesis.init, PROBABILITY),
        inc: fields.or("inc", thesis.inc, PROBABILITY),
        dec: fields.or("dec", thesis.dec, PROBABILITY),
        max: fields.or("max", thesis.max, PROBABILITY),
        ecn: fields.or("ecn", thesis.ecn, Flag),
        updates,
        threshold: fields.or("threshold", thesis.threshold, Threshold(limit)),
    };
    refuse(fields, "blue", config.problem());
    config
}

/// BLUE's threshold L, in the unit of its limit.
struct Threshold(Limit);

impl Kind for Threshold {
    type Held = BlueThreshold;

    fn read(&self, node: &Node) -> Result<BlueThreshold, Problem> {
        match &node.value {
            Value::Boolean(false) => return Ok(BlueThreshold::Off),
            Value::String(text) if text == "half" => return Ok(BlueThreshold::HalfLimit),
            _ => {}
        }
        let expected = |problem: Problem| Problem {
            expected: format!("\"half\" (of the limit), `false`, or {}", problem.expected),
            ..problem
        };
        match (SizeOf(1, MAX).read(node).map_err(expected)?, self.0) {
            (Limit::Packets(at), Limit::Packets(_)) | (Limit::Bytes(at), Limit::Bytes(_)) => Ok(BlueThreshold::At(at)),
            _ => Err(Problem::new("not in the unit of `limit`", "packets if `limit` counts packets, else bytes")),
        }
    }

    fn show(&self, held: &BlueThreshold) -> Value {
        match (*held, self.0) {
            (BlueThreshold::HalfLimit, _) => "half".into(),
            (BlueThreshold::Off, _) => false.into(),
            (BlueThreshold::At(at), Limit::Packets(_)) => SizeOf(1, MAX).show(&Limit::Packets(at)),
            (BlueThreshold::At(at), Limit::Bytes(_)) => SizeOf(1, MAX).show(&Limit::Bytes(at)),
        }
    }

    fn domain(&self) -> Domain {
        let size = match self.0 {
            Limit::Packets(_) => Domain::Packets(1, MAX),
            Limit::Bytes(_) => Domain::Bytes(1, MAX),
        };
        Domain::Either(vec![Domain::Off, Domain::Name(vec!["half"]), size])
    }
}

pub(super) fn sfb(fields: &mut Fields<'_>) -> SfbConfig {
    let tc = SfbConfig::default();
    let packets = |size: Option<u64>| size.map(|packets| packets as u32);
    let config = SfbConfig {
        rehash: fields.or("rehash", tc.rehash, Time::Any),
        db: fields.or("db", tc.db, Time::Any),
        limit: fields.or("limit", tc.limit, crate::quantity::Packets(1, MAX)),
        max: packets(fields.maybe("max", crate::quantity::Packets(1, 65_535))),
        target: packets(fields.maybe("target", crate::quantity::Packets(1, 65_535))),
        increment: fields.or("increment", tc.increment, PROBABILITY),
        decrement: fields.or("decrement", tc.decrement, PROBABILITY),
        penalty_rate: fields.or("penalty_rate", tc.penalty_rate.into(), Whole(0, 1 << 20)) as u32,
        penalty_burst: fields.or("penalty_burst", tc.penalty_burst.into(), Whole(0, 1 << 20)) as u32,
        hash_seed: super::hash_seed(fields),
    };
    refuse(fields, "sfb", config.problem());
    config
}

/// Reports what is wrong with parameters that are right one by one.
fn refuse(fields: &Fields<'_>, kind: &str, problem: Option<impl ToString>) {
    if let Some(problem) = problem {
        let title = format!("{}: the parameters of `{kind}` do not fit together", fields.shown());
        fields.push(Diagnostic::new(title, fields.place(), problem.to_string()));
    }
}
