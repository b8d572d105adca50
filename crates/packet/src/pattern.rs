//! The contents of every stream: byte `i` is a function of `i`, so that a receiver can check data that nobody copied.
//!
//! Eight bytes come from one mixed 64-bit word; the pattern has no short period, so that a range shifted by any number
//! of bytes, a segment's length or a power of two above all, does not match itself.

/// The eight bytes from offset `8 * word`.
fn word(word: u64) -> [u8; 8] {
    let mut z = word.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (z ^ (z >> 32)).to_le_bytes()
}

/// Byte `offset` of a stream.
pub fn byte(offset: u64) -> u8 {
    word(offset / 8)[(offset % 8) as usize]
}

/// Writes the bytes from `offset` on into `buffer`.
pub fn fill(offset: u64, buffer: &mut [u8]) {
    for (i, byte_out) in (offset..).zip(buffer) {
        *byte_out = byte(i);
    }
}

/// The offset of the first byte of `data` that is not the stream's, when `data` starts at `offset`.
pub fn first_mismatch(offset: u64, data: &[u8]) -> Option<u64> {
    (offset..).zip(data).find(|&(i, &found)| byte(i) != found).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_range_does_not_match() {
        let mut data = [0; 64];
        fill(1448, &mut data);
        assert_eq!(first_mismatch(1448, &data), None);
        for shift in [1, 2, 4, 8, 16, 256, 1448, 1460, 4096, 65_536] {
            assert!(first_mismatch(1448 + shift, &data).is_some(), "{shift}");
        }
        data[5] ^= 1;
        assert_eq!(first_mismatch(1448, &data), Some(1453));
    }
}
