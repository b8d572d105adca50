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

use ackclock_packet::FastOpen;
use ackclock_tcp::{
    FastOpenAttempt, FastOpenCache, FastOpenServer, FastOpenStack, State, WriteFlags, fast_open_cookie,
};
use ackclock_units::Time;

use crate::calls::{Done, Op, Step, Waiting};
use crate::errno::Errno;
use crate::host::System;
use crate::sockets::{Kernel, Kind, SocketId};

/// `MSG_FASTOPEN`; another flag, which nobody uses, in FreeBSD.
pub(crate) const MSG_FASTOPEN: i64 = 0x2000_0000;
const MSG_MORE: i64 = 0x8000;

// Bits of net.ipv4.tcp_fastopen.
const CLIENT_ENABLE: u64 = 0x1;
const SERVER_ENABLE: u64 = 0x2;
const CLIENT_NO_COOKIE: u64 = 0x4;
const SERVER_COOKIE_NOT_REQD: u64 = 0x200;
const SERVER_WO_SOCKOPT1: u64 = 0x400;

/// Bytes of a key.
const KEY_LEN: usize = 16;

/// A key, and one that still counts (`struct tcp_fastopen_context`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    primary: [u8; KEY_LEN],
    backup: Option<[u8; KEY_LEN]>,
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
    fn addresses(&self, ipv6: bool) -> (Vec<u8>, Vec<u8>) {
        let [local, remote] = self.ends(ipv6).map(|address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        });
        (remote, local)
    }
}

impl Kernel {
    /// Takes over what connections have found out.
    pub(crate) fn learn_fast_open(&mut self, now: Time) {
        for socket in &mut self.sockets {
            if let Kind::Open(endpoint) = &mut socket.kind
                && let Some(news) = endpoint.opening_mut().take_news()
            {
                self.host.fast_open.cache.learn(now, news);
            }
        }
    }

    /// Returns `true` if the host may ask for Fast Open.
    pub(crate) fn fast_open_client(&self) -> bool {
        match self.host.system {
            System::Linux => self.host.fast_open.flags & CLIENT_ENABLE != 0,
            System::FreeBsd => self.host.fast_open.client,
        }
    }

    fn fast_open_attempt(&mut self, now: Time, id: SocketId) -> Option<FastOpenAttempt> {
        self.learn_fast_open(now);
        let cookie_less =
            self.host.fast_open.flags & CLIENT_NO_COOKIE != 0 || self.sockets[id].options.fast_open_no_cookie;
        self.host.fast_open.cache.attempt(now, cookie_less)
    }

    /// A listening socket's treatment of SYNs with the option, or with data.
    pub(crate) fn fast_open_server(&self, id: SocketId) -> Option<FastOpenServer> {
        let (host, options) = (&self.host.fast_open, &self.sockets[id].options);
        let (remote, local) = host.addresses(self.host.ipv6);
        let keys = options.fast_open_keys.unwrap_or(host.keys);
        match self.host.system {
            System::Linux => {
                let limit = options.fast_open_queue.unwrap_or(0);
                if host.flags & SERVER_ENABLE == 0 || limit == 0 {
                    return None;
                }
                let addresses = [remote, local].concat();
                Some(FastOpenServer {
                    cookies: [Some(keys.primary), keys.backup].map(|key| Some(fast_open_cookie(&key?, &addresses))),
                    cookie_less: host.flags & SERVER_COOKIE_NOT_REQD != 0 || options.fast_open_no_cookie,
                    ..FastOpenServer::with_cookie(FastOpen::REQUEST, limit)
                })
            }
            System::FreeBsd => (host.server && options.fast_open_queue.is_some()).then(|| FastOpenServer {
                always_tells: true,
                penalty: None,
                // syncache_add: half of the queue, compared before this one is counted.
                ..FastOpenServer::with_cookie(
                    fast_open_cookie(&keys.primary, &remote),
                    self.sockets[id].backlog / 2 + 1,
                )
            }),
        }
    }

    /// `inet_listen`: a socket may take Fast Open without having asked for it.
    pub(crate) fn listens(&mut self, id: SocketId, backlog: usize) {
        let without_option = SERVER_ENABLE | SERVER_WO_SOCKOPT1;
        let linux = self.host.system == System::Linux && self.host.fast_open.flags & without_option == without_option;
        let socket = &mut self.sockets[id];
        socket.backlog = backlog;
        if linux && socket.options.fast_open_queue.unwrap_or(0) == 0 {
            socket.options.fast_open_queue = Some(backlog);
        }
    }

    /// connect() with `TCP_FASTOPEN_CONNECT` (`tcp_fastopen_defer_connect`): whether the SYN waits
    /// for the first data.
    pub(crate) fn connect_or_defer(&mut self, now: Time, id: SocketId) -> bool {
        if !self.sockets[id].options.fast_open_connect {
            self.connect(id, None);
            return false;
        }
        let attempt = self.fast_open_attempt(now, id);
        let defers = attempt.is_some_and(|attempt| attempt.with_data);
        if defers {
            self.sockets[id].deferred = true;
        } else {
            self.connect(id, attempt);
        }
        defers
    }

    /// A call that writes `total` bytes, if it opens the connection too; `unspecified`: its address
    /// has no family.
    pub(crate) fn send_fast_open(
        &mut self,
        now: Time,
        id: SocketId,
        (total, null): (u64, bool),
        flags: i64,
        (addressed, unspecified): (bool, bool),
    ) -> Option<Step> {
        match self.host.system {
            System::Linux if flags & MSG_FASTOPEN != 0 || self.sockets[id].deferred => {
                if !self.fast_open_client() || unspecified {
                    return Some(Step::Done(Done::failed(Errno::EOPNOTSUPP)));
                }
                self.send_fast_open_linux(now, id, (total, null), flags)
            }
            System::FreeBsd if addressed && matches!(self.sockets[id].kind, Kind::New) && !null => {
                Some(self.send_implied(now, id, total))
            }
            _ => None,
        }
    }

    /// `tcp_sendmsg_fastopen` and `__inet_stream_connect`; `None`: the connection is open, and the
    /// data is sent as always.
    fn send_fast_open_linux(
        &mut self,
        now: Time,
        id: SocketId,
        (total, null): (u64, bool),
        flags: i64,
    ) -> Option<Step> {
        let nonblocking = self.sockets[id].nonblocking || flags & crate::calls::DONTWAIT != 0;
        let op = |sent| Op::FastOpen { socket: id, total, sent, flags };
        let waits = |sent| Step::Blocked(Waiting { op: op(sent), until: Time::NEVER, what: "the handshake" });
        match &self.sockets[id].kind {
            Kind::New => {}
            Kind::Multipath(_) | Kind::MultipathListening(_) => return None,
            Kind::Listening(_) => return Some(Step::Done(Done::failed(Errno::EISCONN))),
            Kind::Open(endpoint) => match endpoint.state() {
                State::SynSent | State::SynReceived if nonblocking => {
                    return Some(Step::Done(Done::failed(Errno::EALREADY)));
                }
                State::SynSent | State::SynReceived => return Some(waits(0)),
                State::Closed => return self.connected(id).map(Step::Done),
                _ if self.sockets[id].told_open => return Some(Step::Done(Done::failed(Errno::EISCONN))),
                _ => {
                    self.sockets[id].told_open = true;
                    return None;
                }
            },
        }
        self.sockets[id].deferred = false;
        let mut attempt = self.fast_open_attempt(now, id);
        if null && total > 0 {
            // tcp_send_syn_data: nothing could be copied, so that it falls back to asking for a
            // cookie.
            attempt = attempt.map(FastOpenAttempt::asking_again);
        }
        self.connect(id, attempt);
        let endpoint = self.endpoint_mut(id)?;
        let most = total.min(endpoint.fast_open_room(now));
        let sent = endpoint.write_with(most, WriteFlags { more: flags & MSG_MORE != 0, eor: false });
        endpoint.opening_mut().set_writer_waits(!nonblocking && sent < total);
        self.flush(now);
        Some(match (nonblocking, sent) {
            (true, 0) => Step::Done(Done::failed(Errno::EINPROGRESS)),
            (true, sent) => Step::Done(Done::value(sent as i64)),
            (false, sent) => waits(sent),
        })
    }

    /// `tcp_usr_send` with an address: the connection is opened, and the data goes into the send
    /// buffer.
    fn send_implied(&mut self, now: Time, id: SocketId, total: u64) -> Step {
        let wants = self.fast_open_client() && self.sockets[id].options.fast_open_queue.is_some();
        let attempt = if wants { self.fast_open_attempt(now, id) } else { None };
        self.connect(id, attempt);
        let taken = self.endpoint_mut(id).map_or(0, |endpoint| endpoint.write(total));
        self.flush(now);
        if taken == total || self.sockets[id].nonblocking {
            return Step::Done(Done::value(taken as i64));
        }
        let op = Op::Send { socket: id, total, sent: taken, flags: 0, asleep: true };
        Step::Blocked(Waiting { op, until: Time::NEVER, what: "room in the send buffer" })
    }

    /// Goes on with a call that waits for the handshake to send the rest.
    pub(crate) fn attempt_fast_open(
        &mut self,
        now: Time,
        id: SocketId,
        total: u64,
        sent: u64,
        flags: i64,
    ) -> Result<Done, (Op, Done)> {
        match self.connected(id) {
            None => Err((Op::FastOpen { socket: id, total, sent, flags }, Done::failed(Errno::EINPROGRESS))),
            Some(done) if done.errno.is_some() => Ok(done),
            Some(_) if sent == total => Ok(Done::value(total as i64)),
            Some(_) => {
                if let Some(endpoint) = self.endpoint_mut(id) {
                    endpoint.opening_mut().set_writer_waits(false);
                }
                self.attempt_send(now, id, total, sent, flags)
            }
        }
    }

    /// `TCP_FASTOPEN`, `TCP_FASTOPEN_CONNECT`, `TCP_FASTOPEN_NO_COOKIE`.
    pub(crate) fn set_fast_open(&mut self, id: SocketId, name: &str, number: i64) -> Result<(), Errno> {
        let linux = self.host.system == System::Linux;
        let listening = matches!(self.sockets[id].kind, Kind::Listening(_));
        let fresh = match &self.sockets[id].kind {
            Kind::New => !self.sockets[id].deferred,
            Kind::Listening(_) => true,
            Kind::Multipath(_) | Kind::MultipathListening(_) => false,
            Kind::Open(endpoint) => endpoint.state() == State::Closed,
        };
        let (may_ask, may_take) = (self.fast_open_client(), self.host.fast_open.server);
        let options = &mut self.sockets[id].options;
        match name {
            "TCP_FASTOPEN" if linux => {
                if number < 0 || !fresh {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_queue = Some(number.unsigned_abs().min(4096) as usize);
            }
            "TCP_FASTOPEN" => {
                if !may_ask && !may_take || listening && number != 0 && !may_take {
                    return Err(Errno::EPERM);
                }
                if !fresh {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_queue = (number != 0).then_some(0);
            }
            "TCP_FASTOPEN_CONNECT" => {
                if !(0..=1).contains(&number) || may_ask && (!fresh || listening) {
                    return Err(Errno::EINVAL);
                }
                if !may_ask {
                    return Err(Errno::EOPNOTSUPP);
                }
                options.fast_open_connect = number != 0;
            }
            _ => {
                if !(0..=1).contains(&number) || !fresh {
                    return Err(Errno::EINVAL);
                }
                options.fast_open_no_cookie = number != 0;
            }
        }
        Ok(())
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
