//! Queue disciplines: the table of their names, and their parameters, named and with defaults as in `tc`.

use ackclock_aqm::{CodelConfig, FifoConfig, FqCodelConfig, Limit, PieConfig};
use ackclock_sim::spec::QueueSpec;

use crate::fields::Fields;
use crate::quantity::{Bytes, Flag, OneOf, OrOff, Packets, Time, Whole};

const KINDS: OneOf = OneOf { what: "queue discipline", names: &["pfifo", "bfifo", "codel", "pie", "fq_codel"] };

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
    }
}

fn pie(fields: &mut Fields<'_>) -> PieConfig {
    let tc = PieConfig::default();
    PieConfig {
        limit: fields.or("limit", tc.limit, Packets(1, MAX)),
        target: fields.or("target", tc.target, Time::Positive),
        tupdate: fields.or("tupdate", tc.tupdate, Time::Positive),
        alpha: fields.or("alpha", tc.alpha.into(), Whole(0, 32)) as u32,
        beta: fields.or("beta", tc.beta.into(), Whole(0, 32)) as u32,
        ecn: fields.or("ecn", tc.ecn, Flag),
        bytemode: fields.or("bytemode", tc.bytemode, Flag),
        dq_rate_estimator: fields.or("dq_rate_estimator", tc.dq_rate_estimator, Flag),
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
    }
}

fn mtu(fields: &mut Fields<'_>, default: u32) -> u32 {
    fields.or("mtu", default.into(), Bytes(1, MAX_MTU)) as u32
}
