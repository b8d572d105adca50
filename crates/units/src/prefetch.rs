//! Memory that is fetched into the cache before it is used. It changes no value.

use std::ops::Range;

const LINE: usize = 64;

/// Starts to fetch the cache lines in which these bytes of `value` lie. Does nothing where the
/// processor is neither x86-64 nor AArch64.
#[inline(always)]
pub fn prefetch_part<T: ?Sized>(value: &T, bytes: Range<usize>) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    let mut at = bytes.start;
    while at < bytes.end {
        prefetch_line(start.wrapping_add(at));
        at += LINE;
    }
    // The bytes need not begin with a line.
    if !(align_of_val(value).is_multiple_of(LINE) && bytes.start.is_multiple_of(LINE)) && bytes.end > bytes.start {
        prefetch_line(start.wrapping_add(bytes.end - 1));
    }
}

/// Starts to fetch the cache lines of `value`, as [`prefetch_part`] does.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_part(value, 0..size_of_val(value));
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction has no safe form yet")]
#[inline(always)]
fn prefetch_line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: a prefetch accesses no memory as far as a program can tell, at any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "the instruction has no safe form yet")]
#[inline(always)]
fn prefetch_line(at: *const u8) {
    // SAFETY: a prefetch accesses no memory as far as a program can tell, at any address.
    unsafe { std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn prefetch_line(_: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_is_left_as_it_is() {
        let values = [7_u64; 100];
        prefetch(&values);
        prefetch(&values[..0]);
        prefetch("");
        prefetch_part(&values, 100..100);
        prefetch_part(&values, 3..700);
        // Beyond the end as well.
        prefetch_part(&values, 0..1 << 20);
        assert_eq!(values, [7; 100]);
    }
}
