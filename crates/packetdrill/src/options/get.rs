//! The values that `getsockopt` reports.

use ackclock_tcp::{State, time_of_retries};
use ackclock_units::Span;

use super::{LONGEST_TIMEOUT, SYN_ACK_TIMEOUT, Value, accepted_without_meaning, unsupported};
use crate::args::CallError;
use crate::errno::Errno;
use crate::host::Host;
use crate::socket::SocketOptions;
use crate::sockets::{Kernel, Kind, SocketId};
use crate::system::System;

fn flag(on: bool) -> Value {
    Value::Number(i64::from(on))
}

/// A time in whole seconds.
fn seconds(span: Span) -> Value {
    Value::Number((span.as_millis() / 1000) as i64)
}

impl Kernel {
    pub(super) fn option_value(
        &mut self,
        id: SocketId,
        level: &str,
        name: &str,
    ) -> Result<Result<Value, Errno>, CallError> {
        let linux = self.host.system == System::Linux;
        if name == "SO_ERROR" {
            return Ok(Ok(self.take_error(id, linux)));
        }
        let options = &self.sockets[id].options;
        let value = self
            .socket_value(id, name)
            .or_else(|| timer_value(options, &self.host, name))
            .or_else(|| self.tcp_value(id, name))
            .or_else(|| ip_value(options, &self.host, name));
        match value {
            Some(value) => Ok(Ok(value)),
            None if matches!(name, "IP_MTU" | "IPV6_MTU") => Ok(self.mtu_value(id)),
            None if accepted_without_meaning(name) => Ok(Ok(Value::Any)),
            None => Err(unsupported(level, name)),
        }
    }

    /// `SO_ERROR`: reading it clears it.
    fn take_error(&mut self, id: SocketId, linux: bool) -> Value {
        let error = match self.multipath_mut(id) {
            Some(multipath) => multipath.take_error(),
            None => self.endpoint_mut(id).and_then(|endpoint| endpoint.take_error()),
        };
        let soft = error.is_none() && linux;
        let soft = self.endpoint_mut(id).filter(|_| soft).and_then(|endpoint| endpoint.take_soft_error());
        if error.is_some() {
            self.sockets[id].failed = true;
        }
        Value::Number(error.or(soft).map_or(0, |error| Errno::from(error).number()))
    }

    /// `SOL_SOCKET`.
    fn socket_value(&self, id: SocketId, name: &str) -> Option<Value> {
        let options = &self.sockets[id].options;
        let keepalive = || options.keep_alive.unwrap_or(self.host.config.states.keepalive.is_some());
        Some(match name {
            "SO_TYPE" => Value::Number(1),
            "SO_DOMAIN" => Value::Number(if self.host.ipv6 { 10 } else { 2 }),
            "SO_PROTOCOL" => Value::Number(if self.sockets[id].mptcp { 262 } else { 6 }),
            "SO_ACCEPTCONN" => flag(matches!(self.sockets[id].kind, Kind::Listening(_) | Kind::MultipathListening(_))),
            "SO_REUSEADDR" | "SO_REUSEPORT" => flag(options.reuse_address),
            "SO_KEEPALIVE" => flag(keepalive()),
            "SO_LINGER" => options.linger.map_or(Value::Number(-1), seconds),
            "SO_RCVLOWAT" => Value::Number(options.receive_low_water.unwrap_or(1) as i64),
            "SO_SNDBUF" => Value::Number(options.send_buffer.unwrap_or(self.host.config.send_buffer) as i64),
            "SO_RCVBUF" => Value::Number(match (self.endpoint(id), options.receive_buffer) {
                (Some(endpoint), None) => endpoint.receiver().buffer(),
                (_, Some(bytes)) => bytes,
                (None, None) => self.host.receive_buffer(),
            } as i64),
            "SO_MAX_PACING_RATE" => {
                Value::Number(options.max_pacing_rate.map_or(i64::from(u32::MAX), |rate| rate as i64))
            }
            _ => return None,
        })
    }

    /// `SOL_TCP`, without its times.
    fn tcp_value(&self, id: SocketId, name: &str) -> Option<Value> {
        let options = &self.sockets[id].options;
        Some(match name {
            "TCP_NODELAY" => flag(options.no_delay),
            "TCP_CORK" | "TCP_NOPUSH" => flag(options.cork),
            "TCP_NOTSENT_LOWAT" => Value::Number(i64::from(options.notsent_lowat.unwrap_or(0))),
            "TCP_INQ" => flag(options.inq),
            "TCP_QUICKACK" => flag(options.quick_ack.unwrap_or(true)),
            "TCP_FASTOPEN" => Value::Number(options.fast_open_queue.unwrap_or(0) as i64),
            "TCP_FASTOPEN_CONNECT" => flag(options.fast_open_connect),
            "TCP_FASTOPEN_NO_COOKIE" => flag(options.fast_open_no_cookie),
            "TCP_IS_MPTCP" => flag(self.is_mptcp(id)),
            "TCP_NOOPT" => flag(options.no_options),
            "TCP_CONGESTION" => Value::Text(self.host.name_of(self.cc_of(id)).to_owned()),
            "TCP_MAXSEG" => Value::Number(self.max_segment(id)),
            _ => return None,
        })
    }

    /// `TCP_IS_MPTCP`: such a socket that has not fallen back.
    fn is_mptcp(&self, id: SocketId) -> bool {
        self.sockets[id].mptcp && self.multipath(id).is_none_or(|multipath| !multipath.connection.is_plain())
    }

    fn max_segment(&self, id: SocketId) -> i64 {
        let connected = self.endpoint(id).filter(|endpoint| {
            !matches!(endpoint.state(), State::Closed | State::SynSent | State::SynReceived | State::Listen)
        });
        match (connected, self.sockets[id].options.max_segment) {
            (Some(endpoint), _) => i64::from(endpoint.sender().mss()),
            (None, Some(set)) => i64::from(set),
            // TCP_MSS_DEFAULT; V_tcp_mssdflt.
            (None, None) if self.host.system == System::Linux => 536,
            (None, None) => i64::from(self.host.endpoint_config().mss).min(536),
        }
    }

    /// `IP_MTU`: on Linux only a socket that is connected has one.
    fn mtu_value(&self, id: SocketId) -> Result<Value, Errno> {
        match self.endpoint(id) {
            Some(endpoint) if endpoint.state() != State::Closed => {
                Ok(Value::Number(i64::from(endpoint.sender().path_mtu())))
            }
            _ if self.host.system == System::Linux => Err(Errno::ENOTCONN),
            _ => Ok(Value::Number(i64::from(self.host.mtu))),
        }
    }
}

/// `SOL_TCP`: times and numbers of attempts.
fn timer_value(options: &SocketOptions, host: &Host, name: &str) -> Option<Value> {
    let states = &host.config.states;
    Some(match name {
        "TCP_KEEPIDLE" => seconds(options.keep_idle.unwrap_or(host.keepalive.idle)),
        "TCP_KEEPINTVL" => seconds(options.keep_interval.unwrap_or(host.keepalive.interval)),
        "TCP_KEEPCNT" => Value::Number(i64::from(options.keep_count.unwrap_or(host.keepalive.count))),
        "TCP_KEEPINIT" => seconds(options.keep_init.or(states.handshake_timeout).unwrap_or(Span::from_secs(75))),
        "TCP_USER_TIMEOUT" => Value::Number(options.user_timeout.map_or(0, |span| span.as_millis() as i64)),
        "TCP_SYNCNT" => Value::Number(i64::from(options.syn_retries.unwrap_or(states.syn_retries))),
        "TCP_LINGER2" => seconds(options.fin_wait_2.unwrap_or(Span::from_secs(60))),
        "TCP_DEFER_ACCEPT" if host.system == System::Linux => {
            seconds(time_of_retries(options.defer_accept, SYN_ACK_TIMEOUT, LONGEST_TIMEOUT))
        }
        _ => return None,
    })
}

/// `SOL_IP` and `SOL_IPV6`, without the MTU.
fn ip_value(options: &SocketOptions, host: &Host, name: &str) -> Option<Value> {
    Some(match name {
        "IP_RECVERR" | "IPV6_RECVERR" => flag(options.report_errors),
        "IP_MTU_DISCOVER" | "IPV6_MTU_DISCOVER" if host.system == System::Linux => {
            Value::Number(options.mtu_discover.unwrap_or(i64::from(host.config.path.discovery)))
        }
        "IP_TOS" | "IPV6_TCLASS" => Value::Number(i64::from(options.tos)),
        "IP_TTL" | "IPV6_UNICAST_HOPS" => Value::Number(i64::from(options.ttl.unwrap_or(64))),
        _ => return None,
    })
}
