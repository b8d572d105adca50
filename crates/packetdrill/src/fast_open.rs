//! TCP Fast Open as the host has it: its sysctls, its keys, what it remembers of the server, and
//! the calls that send data with a SYN.
//!
//! # Source
//! Linux `net/ipv4/tcp.c` (`tcp_sendmsg_fastopen`, `do_tcp_setsockopt`), `net/ipv4/af_inet.c`
//! (`__inet_stream_connect`, `inet_listen`), `net/ipv4/tcp_fastopen.c`; FreeBSD
//! `sys/netinet/tcp_usrreq.c` and `tcp_fastopen.c`.
//!
//! # Departures
//! There is one server, so that one entry is remembered. Keys that nobody has set are zeros, not
//! random.

use std::net::IpAddr;

use ackclock_tcp::{FastOpenCache, FastOpenStack};

use crate::system::System;

// Bits of net.ipv4.tcp_fastopen.
pub(crate) const CLIENT_ENABLE: u64 = 0x1;
pub(crate) const SERVER_ENABLE: u64 = 0x2;
pub(crate) const CLIENT_NO_COOKIE: u64 = 0x4;
pub(crate) const SERVER_COOKIE_NOT_REQD: u64 = 0x200;
pub(crate) const SERVER_WO_SOCKOPT1: u64 = 0x400;

/// Bytes of a key.
pub(crate) const KEY_LEN: usize = 16;

/// A key, and one that still counts (`struct tcp_fastopen_context`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) primary: [u8; KEY_LEN],
    pub(crate) backup: Option<[u8; KEY_LEN]>,
}

impl Keys {
    /// One key or two, as `TCP_FASTOPEN_KEY` takes them.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Keys> {
        let (keys, rest) = bytes.as_chunks::<KEY_LEN>();
        match (keys, rest) {
            (&[primary], []) => Some(Keys { primary, backup: None }),
            (&[primary, backup], []) => Some(Keys { primary, backup: Some(backup) }),
            _ => None,
        }
    }

    /// The sysctl's form: four words of eight hexadecimal digits, and perhaps a second key after a
    /// comma.
    pub(crate) fn from_sysctl(text: &str) -> Option<Keys> {
        let mut bytes = Vec::new();
        for key in text.split(',') {
            let words: Vec<u32> =
                key.trim().split('-').map(|word| u32::from_str_radix(word, 16).ok()).collect::<Option<_>>()?;
            if words.len() != 4 {
                return None;
            }
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        Keys::from_bytes(&bytes)
    }
}

/// The host's part.
#[derive(Clone, Debug)]
pub(crate) struct HostFastOpen {
    /// `net.ipv4.tcp_fastopen`.
    pub(crate) flags: u64,
    pub(crate) keys: Keys,
    /// `net.inet.tcp.fastopen.client_enable` and `server_enable`.
    pub(crate) client: bool,
    pub(crate) server: bool,
    pub(crate) cache: FastOpenCache,
    /// `--local_ip`, `--remote_ip`.
    pub(crate) local: Option<IpAddr>,
    pub(crate) remote: Option<IpAddr>,
}

impl HostFastOpen {
    pub(crate) fn new(system: System) -> HostFastOpen {
        let stack = match system {
            System::Linux => FastOpenStack::Linux,
            System::FreeBsd => FastOpenStack::FreeBsd,
        };
        HostFastOpen {
            flags: CLIENT_ENABLE,
            keys: Keys::default(),
            client: true,
            server: false,
            cache: FastOpenCache::new(stack),
            local: None,
            remote: None,
        }
    }

    /// `net.inet.tcp.fastopen.client_enable`; switched off, the cache is emptied.
    pub(crate) fn enable_client(&mut self, on: bool) {
        self.client = on;
        if !on {
            self.cache.flush();
        }
    }

    /// The local address and the remote one; packetdrill's defaults unless the script has its own.
    pub(crate) fn ends(&self, ipv6: bool) -> [IpAddr; 2] {
        let of_version = |address: Option<IpAddr>, v4: [u8; 4], v6: [u16; 8]| {
            let default = if ipv6 { IpAddr::from(v6) } else { IpAddr::from(v4) };
            address.filter(|address| address.is_ipv6() == ipv6).unwrap_or(default)
        };
        let local = of_version(self.local, [192, 168, 0, 1], [0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1]);
        [local, of_version(self.remote, [192, 0, 2, 1], [0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1])]
    }

    /// The bytes of the remote address, and of the local one.
    pub(crate) fn addresses(&self, ipv6: bool) -> (Vec<u8>, Vec<u8>) {
        let [local, remote] = self.ends(ipv6).map(|address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        });
        (remote, local)
    }
}

/// The bytes of a string in which `\xNN` stands for one.
pub(crate) fn string_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(hex) = rest.strip_prefix("\\x") {
            bytes.push(u8::from_str_radix(hex.get(..2)?, 16).ok()?);
            rest = &hex[2..];
        } else {
            bytes.push(u8::try_from(u32::from(first)).ok()?);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_both_forms() {
        // From google/packetdrill's sockopt-fastopen-key.pkt and simple1.pkt: the same key as bytes
        // and as words.
        let bytes =
            string_bytes("\\xf7\\x63\\xbf\\xa0\\x81\\x3d\\x80\\xed\\x30\\x1d\\x64\\xcd\\x90\\x4a\\xbc\\xce").unwrap();
        let keys = Keys::from_bytes(&bytes).unwrap();
        assert_eq!(Keys::from_sysctl("a0bf63f7-ed803d81-cd641d30-cebc4a90"), Some(keys));
        assert_eq!(Keys::from_sysctl("1-2-3-4,5-6-7-8").map(|keys| keys.backup.is_some()), Some(true));
        for bad in ["", "1-2-3", "1-2-3-4-5", "1-2-3-4,", "g-2-3-4"] {
            assert_eq!(Keys::from_sysctl(bad), None, "{bad}");
        }
        assert_eq!((Keys::from_bytes(&bytes[..3]), Keys::from_bytes(&[])), (None, None));
    }

    #[test]
    fn bytes_of_strings() {
        assert_eq!(string_bytes("a\\x00b"), Some(vec![b'a', 0, b'b']));
        for bad in ["\\x0", "\\xg0", "\u{100}", "\\x\u{e9}"] {
            assert_eq!(string_bytes(bad), None, "{bad}");
        }
    }
}
