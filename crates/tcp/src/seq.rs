//! Sequence numbers: 32 bits on the wire, 64 inside.
//!
//! Inside the endpoint a sequence number is its distance from the initial one: the SYN is unit 0,
//! byte `i` of the stream is unit `i + 1`, a FIN after `n` bytes is unit `n + 1`. Comparisons are
//! then plain, and nothing wraps.

/// Lifts a wire number to the distance from `isn` that lies nearest to `near`; `None` if that is
/// before the SYN.
pub(crate) fn lift(wire: u32, isn: u32, near: u64) -> Option<u64> {
    let ahead = wire.wrapping_sub(isn).wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(ahead))
}

/// The wire number of a distance from `isn`.
pub(crate) fn lower(distance: u64, isn: u32) -> u32 {
    isn.wrapping_add(distance as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_before_the_syn_are_none() {
        assert_eq!(lift(99, 100, 0), None);
        assert_eq!(lift(100, 100, 0), Some(0));
    }

    proptest! {
        #[test]
        fn lifting_undoes_lowering_within_half_the_space(isn: u32, near in 0u64..1 << 60, ahead in -(1i64 << 31)..1i64 << 31) {
            if let Some(distance) = near.checked_add_signed(ahead) {
                prop_assert_eq!(lift(lower(distance, isn), isn, near), Some(distance));
            }
        }
    }
}
