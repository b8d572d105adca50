//! Queue disciplines: the table of their names, and their parameters, named and with defaults as in
//! `tc`.

mod red;

use ackclock_aqm::{
    CobaltConfig, CodelConfig, ControlLaw, DqRateEstimator, DualPi2Config, FifoConfig, FqCodelConfig, FqPieConfig,
    Limit, PieConfig, StepThreshold,
};
use ackclock_sim::spec::QueueSpec;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Bytes, Flag, Kind, Number, OneOf, OrOff, Packets, Problem, Time, Whole};

pub(crate) const KINDS: OneOf = OneOf {
    what: "queue discipline",
    names: &["pfifo", "bfifo", "red", "blue", "sfb", "codel", "fq_codel", "cobalt", "pie", "fq_pie", "dualpi2"],
};

/// tc's default of `bfifo`: the default of `pfifo` times an Ethernet frame.
const BFIFO_LIMIT: u64 = 1000 * 1514;

/// The largest limits, as in the kernel.
const MAX: u64 = u32::MAX as u64;

/// The largest IP packet with any framing.
const MAX_MTU: u64 = 131_072;

/// The queue of a link that does not name one.
pub(crate) fn default() -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig::default())
}

/// Reads the key `queue`.
pub(crate) fn read(fields: &mut Fields<'_>) -> QueueSpec {
    fields.choose("queue", "pfifo", &KINDS, |kind, fields| match kind {
        "bfifo" => QueueSpec::Bfifo(FifoConfig { limit: Limit::Bytes(fields.or("limit", BFIFO_LIMIT, Bytes(1, MAX))) }),
        "codel" => QueueSpec::Codel(codel(fields)),
        "pie" => QueueSpec::Pie(pie(fields)),
        "fq_codel" => QueueSpec::FqCodel(fq_codel(fields)),
        "red" => QueueSpec::Red(red::red(fields)),
        "blue" => QueueSpec::Blue(red::blue(fields)),
        "sfb" => QueueSpec::Sfb(red::sfb(fields)),
        "cobalt" => QueueSpec::Cobalt(cobalt(fields)),
        "fq_pie" => QueueSpec::FqPie(fq_pie(fields)),
        "dualpi2" => QueueSpec::DualPi2(dualpi2(fields)),
        _ => QueueSpec::Pfifo(pfifo(fields)),
    })
}

fn pfifo(fields: &mut Fields<'_>) -> FifoConfig {
    let default = match FifoConfig::default().limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(_) => unreachable!("the default drop-tail queue counts packets"),
    };
    FifoConfig { limit: Limit::Packets(fields.or("limit", default, Packets(1, MAX))) }
}

fn codel(fields: &mut Fields<'_>) -> CodelConfig {
    let tc = CodelConfig::default();
    CodelConfig {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        target: fields.or("target", tc.target, Time::Positive),
        interval: fields.or("interval", tc.interval, Time::Positive),
        ecn: fields.or("ecn", tc.ecn, Flag),
        ce_threshold: fields.or("ce_threshold", tc.ce_threshold, OrOff(Time::Any)),
        mtu: mtu(fields, tc.mtu),
        control_law: control_law(fields),
    }
}

/// What the other parameters of `pie` are unless they are given.
const PIE_PRESETS: OneOf = OneOf { what: "preset", names: &["tc", "teacup"] };

fn pie(fields: &mut Fields<'_>) -> PieConfig {
    let tc = match fields.or("preset", "tc", PIE_PRESETS) {
        "teacup" => PieConfig::teacup(),
        _ => PieConfig::default(),
    };
    PieConfig {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        target: fields.or("target", tc.target, Time::Positive),
        tupdate: fields.or("tupdate", tc.tupdate, Time::Positive),
        alpha: fields.or("alpha", tc.alpha.into(), Whole(0, 32)) as u32,
        beta: fields.or("beta", tc.beta.into(), Whole(0, 32)) as u32,
        ecn: fields.or("ecn", tc.ecn, Flag),
        bytemode: fields.or("bytemode", tc.bytemode, Flag),
        dq_rate_estimator: fields.or("dq_rate_estimator", tc.dq_rate_estimator, Estimator),
        derandomize: fields.or("derandomize", tc.derandomize, Flag),
        mtu: mtu(fields, tc.mtu),
    }
}

fn fq_codel(fields: &mut Fields<'_>) -> FqCodelConfig {
    let tc = FqCodelConfig::default();
    FqCodelConfig {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        flows: fields.or("flows", tc.flows.into(), Whole(1, 65_536)) as u32,
        quantum: fields.or("quantum", tc.quantum.into(), Bytes(256, 1 << 20)) as u32,
        target: fields.or("target", tc.target, Time::Positive),
        interval: fields.or("interval", tc.interval, Time::Positive),
        ce_threshold: fields.or("ce_threshold", tc.ce_threshold, OrOff(Time::Any)),
        memory_limit: fields.or("memory_limit", tc.memory_limit, Bytes(1, MAX)),
        drop_batch: fields.or("drop_batch", tc.drop_batch.into(), Whole(1, 65_536)) as u32,
        ecn: fields.or("ecn", tc.ecn, Flag),
        mtu: mtu(fields, tc.mtu),
        control_law: control_law(fields),
        hash_seed: hash_seed(fields),
    }
}

fn fq_pie(fields: &mut Fields<'_>) -> FqPieConfig {
    let tc = FqPieConfig::default();
    FqPieConfig {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        flows: fields.or("flows", tc.flows.into(), Whole(1, 65_536)) as u32,
        target: fields.or("target", tc.target, Time::Positive),
        tupdate: fields.or("tupdate", tc.tupdate, Time::Positive),
        alpha: fields.or("alpha", tc.alpha.into(), Whole(0, 32)) as u32,
        beta: fields.or("beta", tc.beta.into(), Whole(0, 32)) as u32,
        quantum: fields.or("quantum", tc.quantum.into(), Bytes(256, 1 << 20)) as u32,
        memory_limit: fields.or("memory_limit", tc.memory_limit, Bytes(1, MAX)),
        ecn_prob: fields.or("ecn_prob", tc.ecn_prob.into(), Whole(0, 100)) as u32,
        ecn: fields.or("ecn", tc.ecn, Flag),
        bytemode: fields.or("bytemode", tc.bytemode, Flag),
        dq_rate_estimator: fields.or("dq_rate_estimator", tc.dq_rate_estimator, Estimator),
        mtu: mtu(fields, tc.mtu),
        hash_seed: hash_seed(fields),
    }
}

fn cobalt(fields: &mut Fields<'_>) -> CobaltConfig {
    let cake = CobaltConfig::default();
    CobaltConfig {
        limit: fields.or("limit", cake.limit, Packets(1, MAX)),
        memlimit: fields.or("memlimit", cake.memlimit, Bytes(1, MAX)),
        target: fields.or("target", cake.target, Time::Positive),
        interval: fields.or("interval", cake.interval, Time::Positive),
        mtu_time: fields.or("mtu_time", cake.mtu_time, Time::Any),
        p_inc: fields.or("p_inc", cake.p_inc.into(), Whole(0, MAX)) as u32,
        p_dec: fields.or("p_dec", cake.p_dec.into(), Whole(0, MAX)) as u32,
        ecn: fields.or("ecn", cake.ecn, Flag),
        ce_threshold: fields.or("ce_threshold", cake.ce_threshold, OrOff(Time::Any)),
        blue_threshold: fields.or("blue_threshold", cake.blue_threshold, OrOff(Time::Any)),
    }
}

fn dualpi2(fields: &mut Fields<'_>) -> DualPi2Config {
    let tc = DualPi2Config::default();
    DualPi2Config {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        memlimit: fields.or("memlimit", tc.memlimit, Bytes(1, MAX)),
        target: fields.or("target", tc.target, Time::Positive),
        tupdate: fields.or("tupdate", tc.tupdate, Time::Positive),
        alpha: fields.or("alpha", tc.alpha, Number(0.0, 256.0)),
        beta: fields.or("beta", tc.beta, Number(0.0, 256.0)),
        coupling_factor: fields.or("coupling_factor", tc.coupling_factor.into(), Whole(1, 255)) as u32,
        step_thresh: fields.or("step_thresh", tc.step_thresh, Step),
        min_qlen_step: fields.or("min_qlen_step", tc.min_qlen_step, Packets(0, MAX)),
        drop_on_overload: fields.or("drop_on_overload", tc.drop_on_overload, Flag),
        drop_enqueue: fields.or("drop_enqueue", tc.drop_enqueue, Flag),
        classic_protection: fields.or("classic_protection", tc.classic_protection.into(), Whole(0, 100)) as u32,
        any_ect: fields.or("any_ect", tc.any_ect, Flag),
        mtu: mtu(fields, tc.mtu),
    }
}

/// A step in time or in packets.
struct Step;

impl Kind for Step {
    type Held = StepThreshold;

    fn read(&self, node: &Node) -> Result<StepThreshold, Problem> {
        if node.str().is_some_and(|text| text.trim_end().ends_with('p')) {
            return Packets(0, MAX).read(node).map(StepThreshold::Packets);
        }
        let read = Time::Any.read(node).map(StepThreshold::Time);
        read.map_err(|problem| Problem {
            expected: format!("{}, or packets, such as \"5p\"", problem.expected),
            ..problem
        })
    }

    fn show(&self, held: &StepThreshold) -> Value {
        match held {
            StepThreshold::Time(span) => Time::Any.show(span),
            StepThreshold::Packets(packets) => Packets(0, MAX).show(packets),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Time { positive: false }, Domain::Packets(0, MAX)])
    }
}

/// How PIE measures the departure rate, if it does: `true` is as Linux, which has no other way.
struct Estimator;

impl Kind for Estimator {
    type Held = Option<DqRateEstimator>;

    fn read(&self, node: &Node) -> Result<Option<DqRateEstimator>, Problem> {
        match &node.value {
            Value::Boolean(on) => Ok(on.then_some(DqRateEstimator::Linux)),
            Value::String(name) if name == "linux" => Ok(Some(DqRateEstimator::Linux)),
            Value::String(name) if name == "rfc8033" => Ok(Some(DqRateEstimator::Rfc8033)),
            _ => Err(Problem::new("not an estimator", "`true` or \"linux\", \"rfc8033\", or `false`")),
        }
    }

    fn show(&self, held: &Option<DqRateEstimator>) -> Value {
        match held {
            None => false.into(),
            Some(DqRateEstimator::Linux) => "linux".into(),
            Some(DqRateEstimator::Rfc8033) => "rfc8033".into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Flag, Domain::Name(vec!["linux", "rfc8033"])])
    }
}

/// The arithmetic of CoDel's law.
fn control_law(fields: &mut Fields<'_>) -> ControlLaw {
    let laws = OneOf { what: "control law", names: &["linux", "rfc8289"] };
    match fields.or("control_law", "linux", laws) {
        "rfc8289" => ControlLaw::Rfc8289,
        _ => ControlLaw::Linux,
    }
}

/// What the hash of flows is salted with; `false` is another salt in each run, from its seed.
fn hash_seed(fields: &mut Fields<'_>) -> Option<u64> {
    fields.or("hash_seed", None, OrOff(Whole(0, MAX)))
}

fn mtu(fields: &mut Fields<'_>, default: u32) -> u32 {
    fields.or("mtu", default.into(), Bytes(1, MAX_MTU)) as u32
}
