//! The calls that send data with a SYN.

use ackclock_packet::FastOpen;
use ackclock_tcp::{FastOpenAttempt, FastOpenServer, State, WriteFlags, fast_open_cookie};
use ackclock_units::Time;

use super::{Done, Op, Step, Waiting};
use crate::calls::data::MSG_FASTOPEN;
use crate::errno::Errno;
use crate::fast_open::{CLIENT_ENABLE, CLIENT_NO_COOKIE, SERVER_COOKIE_NOT_REQD, SERVER_ENABLE, SERVER_WO_SOCKOPT1};
use crate::sockets::{Kernel, Kind, SocketId};
use crate::system::System;

const MSG_MORE: i64 = 0x8000;

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
