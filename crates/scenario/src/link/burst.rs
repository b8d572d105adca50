//! The token bucket of a shaper: bytes, or what `tc` gives an HTB class that has no `burst`.
//!
//! # Source
//! iproute2 `tc/q_htb.c` (`htb_parse_class_opt`), `lib/utils.c` (`__get_hz`) and `tc/tc_core.c`
//! (`tc_calc_xmittime`), of 6.15; Linux `net/sched/sch_htb.c` (`PSCHED_TICKS2NS`).
//!
//! # Departures
//! - iproute2 before 6.15 truncates the time of the bucket to microseconds and then to ticks: 1496
//!   bytes at 1 Gbit/s, the same as here at 10 and 100 Mbit/s.
//! - On a kernel without high-resolution timers `get_hz()` is its `HZ`, and the bucket is larger.

use ackclock_units::Rate;

use crate::document::{Node, Value};
use crate::keys::Domain;
use crate::quantity::{Bytes, Kind, OneOf, Problem};

/// The most bytes of a token bucket: more would be no shaping.
const MAX_BURST: u64 = 1 << 30;

/// The name of the bucket of an HTB class without `burst`.
const NAMES: OneOf = OneOf { what: "token bucket", names: &["htb"] };
/// `mtu` of `htb_parse_class_opt`, bytes.
const MTU: u64 = 1600;
/// `get_hz()` with high-resolution timers: what /proc/net/psched has in its last field.
const HZ: u64 = 1_000_000_000;
/// A tick of the kernel's packet scheduler (`PSCHED_SHIFT` 6), ns.
const TICK: u128 = 64;

/// Bytes, `"htb"`, or `false` for none, on a link of this rate; `None` is unlimited.
pub(super) struct BurstSize(pub(super) Option<Rate>);

impl Kind for BurstSize {
    type Held = Option<u32>;

    fn read(&self, node: &Node) -> Result<Option<u32>, Problem> {
        match (&node.value, self.0) {
            (Value::Boolean(false), _) => Ok(None),
            _ if is_htb(node) => self.0.map(|rate| Some(htb(rate))).ok_or_else(|| {
                let expected = "a `rate`, from which it follows, or a size in bytes, or `false`";
                Problem::new("an unlimited rate has no default burst", expected)
            }),
            _ => Bytes(1, MAX_BURST).read(node).map(|bytes| Some(bytes as u32)).map_err(|problem| {
                let help = problem.help.or_else(|| NAMES.problem(node).help);
                Problem { expected: format!("{}, \"htb\", or `false`", problem.expected), help, ..problem }
            }),
        }
    }

    fn show(&self, held: &Option<u32>) -> Value {
        held.map_or(false.into(), |bytes| Bytes(1, MAX_BURST).show(&bytes.into()))
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Off, Domain::Name(NAMES.names.to_vec()), Domain::Bytes(1, MAX_BURST)])
    }
}

/// Returns `true` if the bucket is that of an HTB class without `burst`.
pub(super) fn is_htb(node: &Node) -> bool {
    node.str() == Some(NAMES.names[0])
}

/// The bytes of the bucket of an HTB class without `burst`: `rate / get_hz() + mtu`, as the kernel keeps them: the time in which
/// they are sent, in whole ticks, rounded up.
pub fn htb(rate: Rate) -> u32 {
    let bits = u128::from(rate.as_bps());
    let bytes = u128::from(rate.as_bps() / 8 / HZ + MTU);
    let ticks = (bytes * 8_000_000_000).div_ceil((bits * TICK).max(1)).min(u32::MAX.into());
    (ticks * TICK * bits / 8_000_000_000).clamp(1, MAX_BURST.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_is_what_tc_computes() {
        for (bps, bytes) in [
            // 1600 bytes take 1.28 ms, 128 us and 12.8 us: 20000, 2000 and 200 ticks of 64 ns.
            (10_000_000, 1600),
            (100_000_000, 1600),
            (1_000_000_000, 1600),
            // 4266.67 us are 66666.67 ticks: 66667 of 64 ns at 375 bytes per ms are 1600.008 bytes.
            (3_000_000, 1600),
            // 5.12 us are 80 ticks. At 1.25 * 10^9 bytes/s 1601 bytes take 1280.8 ns, which 21
            // ticks make 1344 ns and 1680 bytes.
            (2_500_000_000, 1600),
            (10_000_000_000, 1680),
            // 12.5 * 10^9 bytes/s: 1612 bytes take 128.96 ns, 3 ticks, 192 ns.
            (100_000_000_000, 2400),
            // The kernel's 32 bits of ticks are 274.88 s, in which 1 bit/s makes 34 bytes.
            (1, 34),
        ] {
            assert_eq!(htb(Rate::from_bps(bps).expect("not zero")), bytes, "{bps} bit/s");
        }
        // One tick.
        assert_eq!(htb(Rate::MAX), 8_000_000);
    }
}
