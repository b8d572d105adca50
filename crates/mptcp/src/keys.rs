//! Values derived from the keys of a connection: tokens, initial data sequence numbers, and the
//! authentication of subflows and addresses.
//!
//! # Source
//! RFC 8684 sections 3.1 (token, initial data sequence number), 3.2 (MP_JOIN) and 3.4.1 (ADD_ADDR),
//! all with SHA-256.

use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

fn hash(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}

/// The token of a connection at the end that has drawn `key`: the most significant 32 bits of its
/// hash.
pub fn token(key: u64) -> u32 {
    u32::from_be_bytes(first(&hash(key)))
}

/// The initial data sequence number of the end that has drawn `key`: the least significant 64 bits
/// of its hash.
pub fn initial_sequence(key: u64) -> u64 {
    u64::from_be_bytes(first(&hash(key)[24..]))
}

fn hmac(keys: [u64; 2], message: &[&[u8]]) -> [u8; 32] {
    let [own, peer] = keys.map(u64::to_be_bytes);
    let key: [u8; 16] = std::array::from_fn(|i| if i < 8 { own[i] } else { peer[i - 8] });
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any key will do");
    message.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The HMAC of MP_JOIN, which proves that its sender has both keys. The sender's key and nonce come
/// first.
pub fn join_hmac(keys: [u64; 2], nonces: [u32; 2]) -> [u8; 20] {
    let [own, peer] = nonces.map(u32::to_be_bytes);
    first(&hmac(keys, &[&own, &peer]))
}

/// The truncated [`join_hmac`] of a SYN/ACK.
pub fn short_join_hmac(keys: [u64; 2], nonces: [u32; 2]) -> u64 {
    u64::from_be_bytes(first(&join_hmac(keys, nonces)))
}

/// The HMAC of ADD_ADDR, which proves that its sender, whose key comes first, has both keys. No
/// port counts as 0.
pub fn address_hmac(keys: [u64; 2], id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let port = port.unwrap_or(0).to_be_bytes();
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    u64::from_be_bytes(first(&hmac(keys, &[&[id], &octets, &port])[24..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of eight zero bytes is af5570f5...37851a (FIPS 180-4; sha256sum).
    #[test]
    fn token_and_sequence_number_are_the_ends_of_the_hash() {
        assert_eq!(hash(0)[..4], [0xaf, 0x55, 0x70, 0xf5]);
        assert_eq!(token(0), 0xaf55_70f5);
        let hash = hash(0);
        assert_eq!(initial_sequence(0).to_be_bytes(), hash[24..]);
    }

    #[test]
    fn both_ends_compute_the_same_proofs_and_nobody_else() {
        let (a, b) = ([1, 2], [3, 4]);
        assert_eq!(join_hmac(a, b), join_hmac(a, b));
        assert_ne!(join_hmac(a, b), join_hmac([2, 1], b));
        assert_ne!(join_hmac(a, b), join_hmac(a, [4, 3]));
        assert_eq!(short_join_hmac(a, b).to_be_bytes(), join_hmac(a, b)[..8]);
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(address_hmac(a, 1, address, None), address_hmac(a, 1, address, Some(0)));
        assert_ne!(address_hmac(a, 1, address, None), address_hmac(a, 2, address, None));
    }
}
