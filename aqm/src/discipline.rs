//! What the configurations of disciplines have in common.

use ackclock_units::Span;
use ackclock_units::parameter::{Configurable, Domain};

/// The largest limits, as in the kernel.
pub(crate) const MAX: u64 = u32::MAX as u64;

/// More bytes than any packet has with its framing, also as counted by `memory_limit`.
pub(crate) const LARGEST_PACKET: u64 = 1 << 20;

/// A probability.
pub(crate) const PROBABILITY: Domain = Domain::Number(0.0, 1.0, "");

/// The salt of the hash of flows.
pub(crate) const HASH_SEED: Domain = Domain::OrOff(&Domain::Whole(0, MAX, ""));

/// The source of a salt, for documentation.
pub(crate) const OWN_SALT: &str = "own; `false` draws it from the run's seed";
/// The largest packet: any IP packet with any framing.
pub(crate) const MTU: Domain = Domain::Bytes(1, 131_072);

/// A time above zero.
pub(crate) const POSITIVE: Domain = Domain::Time { positive: true };

/// A time above which packets are marked, if there is one.
pub(crate) const MAYBE_TIME: Domain = Domain::OrOff(&Domain::Time { positive: false });

/// What the configuration of a discipline tells beside its parameters.
pub(crate) trait Discipline: Configurable {
    /// [`QueueSpec::marks`].
    fn marks(&self) -> bool {
        false
    }

    /// [`QueueSpec::target`].
    fn target(&self) -> Option<Span> {
        None
    }
}
