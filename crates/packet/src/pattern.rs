//! The contents of every stream: byte `i` is a function of `i`, so that a receiver can check data
//! that nobody copied.
//!
//! Eight bytes come from one mixed 64-bit word; the pattern has no short period, so that a range
//! shifted by any number of bytes, a segment's length or a power of two above all, does not match
//! itself.

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

/// The number of bytes, of the first `len` from `offset` on, that precede the first whole word.
fn head_len(offset: u64, len: usize) -> usize {
    (offset.wrapping_neg() % 8).min(len as u64) as usize
}

/// Writes the bytes from `offset` on into `buffer`.
pub fn fill(offset: u64, buffer: &mut [u8]) {
    let (head, body) = buffer.split_at_mut(head_len(offset, buffer.len()));
    for (i, out) in head.iter_mut().enumerate() {
        *out = byte(offset + i as u64);
    }
    // The first whole word; what comes before it fits below 2^64, so this cannot overflow either.
    let mut index = offset.div_ceil(8);
    let (words, tail) = body.as_chunks_mut::<8>();
    for out in words {
        *out = word(index);
        index += 1;
    }
    tail.copy_from_slice(&word(index)[..tail.len()]);
}

/// The offset of the first byte of `data` that is not the stream's, when `data` starts at `offset`.
pub fn first_mismatch(offset: u64, data: &[u8]) -> Option<u64> {
    let differs = |position: usize| byte(offset + position as u64) != data[position];
    let head = head_len(offset, data.len());
    if let Some(position) = (0..head).find(|&position| differs(position)) {
        return Some(offset + position as u64);
    }
    let first = offset.div_ceil(8);
    let (words, _) = data[head..].as_chunks::<8>();
    let equal = words.iter().zip(first..).take_while(|&(found, index)| *found == word(index)).count();
    // The word that differs or else the tail, byte by byte.
    (head + 8 * equal..data.len()).find(|&position| differs(position)).map(|position| offset + position as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn words_and_bytes_agree(offset in prop_oneof![0..1000u64, u64::MAX - 2000..u64::MAX - 1000], len in 0..100usize, at: prop::sample::Index) {
            let mut data = vec![0; len];
            fill(offset, &mut data);
            for (i, &found) in data.iter().enumerate() {
                prop_assert_eq!(found, byte(offset + i as u64));
            }
            prop_assert_eq!(first_mismatch(offset, &data), None);
            if len > 0 {
                let at = at.index(len);
                data[at] ^= 0x10;
                prop_assert_eq!(first_mismatch(offset, &data), Some(offset + at as u64));
            }
        }
    }
}
