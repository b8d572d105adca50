//! setsockopt and getsockopt.
//!
//! # Source
//! Linux `net/core/sock.c` (`sk_setsockopt`), `net/ipv4/tcp.c` (`do_tcp_setsockopt`,
//! `do_tcp_getsockopt`), `net/ipv4/ip_sockglue.c`; FreeBSD `sys/netinet/tcp_usrreq.c` where it
//! differs.

use ackclock_tcp::{State, retries_within, time_of_retries};
use ackclock_units::{Span, Time};

use crate::args::{Args, CallError, bracketed, integer};
use crate::ast::Expr;
use crate::calls::Done;
use crate::errno::Errno;
use crate::fast_open::{Keys, string_bytes};
use crate::host::{System, controller};
use crate::socket;
use crate::sockets::{Kernel, Kind, SocketId};

/// Linux's least socket buffers (`SOCK_MIN_SNDBUF`, `SOCK_MIN_RCVBUF`): two packets' bookkeeping of
/// 2048 + 256 bytes, one.
const MIN_SEND_BUFFER: u64 = 4608;
const MIN_RECEIVE_BUFFER: u64 = 2304;

/// `TCP_TIMEOUT_INIT` and `TCP_RTO_MAX`, by which Linux counts `TCP_DEFER_ACCEPT`.
const SYN_ACK_TIMEOUT: Span = Span::from_secs(1);
const LONGEST_TIMEOUT: Span = Span::from_secs(120);

/// A value of an option: a number or a text.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(i64),
    Text(String),
    /// Any value will do: it is not modelled.
    Any,
}

impl Kernel {
    /// `setsockopt(fd, level, name, value, length)`
    pub(crate) fn set_option(&mut self, now: Time, id: SocketId, args: &Args<'_>) -> Result<Done, CallError> {
        let level = args.name(1)?;
        let name = args.name(2)?;
        let value = args.get(3)?;
        let result = match (level.as_str(), name.as_str()) {
            ("SOL_SOCKET", "SO_LINGER") => {
                let (on, seconds) = linger(value, args.system)?;
                let linger = on.then(|| Span::from_secs(seconds));
                self.sockets[id].options.linger = linger;
                if let Some(endpoint) = self.endpoint_mut(id) {
                    endpoint.set_linger(linger);
                }
                Ok(())
            }
            ("SOL_TCP" | "IPPROTO_TCP", "TCP_FASTOPEN_KEY") => {
                let Some(bytes) = text(value)?.and_then(|text| string_bytes(&text)) else {
                    return Err(CallError::script("TCP_FASTOPEN_KEY takes a string of bytes"));
                };
                let length = usize::try_from(args.integer(4)?).unwrap_or(0);
                let keys = bytes.get(..length).and_then(Keys::from_bytes);
                keys.map(|keys| self.sockets[id].options.fast_open_keys = Some(keys)).ok_or(Errno::EINVAL)
            }
            ("SOL_TCP" | "IPPROTO_TCP", "TCP_CONGESTION") => match text(value)? {
                Some(name) => self.set_congestion(now, id, &name),
                None => return Err(CallError::script("TCP_CONGESTION takes a string")),
            },
            _ => {
                if let Expr::Ellipsis | Expr::Integer(0) = value
                    && known(&level, &name)
                {
                    return Ok(Done::failed(Errno::EFAULT));
                }
                if !known(&level, &name) {
                    return Err(unsupported(&level, &name));
                }
                let number = integer(bracketed(value)?, args.system)?;
                self.set_number(now, id, &level, &name, number)?
            }
        };
        Ok(match result {
            Ok(()) => Done::value(0),
            Err(errno) => Done::failed(errno),
        })
    }

    fn set_congestion(&mut self, now: Time, id: SocketId, name: &str) -> Result<(), Errno> {
        let Some(kind) = controller(name.trim_end_matches('\0')) else { return Err(Errno::ENOENT) };
        if self.cc_of(id) != kind {
            let cc = self.host.congestion_control(kind);
            if let Some(endpoint) = self.endpoint_mut(id) {
                endpoint.set_congestion_control(now, cc);
            }
        }
        self.sockets[id].options.cc = Some(kind);
        Ok(())
    }

    fn set_number(
        &mut self,
        now: Time,
        id: SocketId,
        level: &str,
        name: &str,
        number: i64,
    ) -> Result<Result<(), Errno>, CallError> {
        let on = number != 0;
        let linux = self.host.system == System::Linux;
        let seconds = |least: i64, most: i64| {
            if (least..=most).contains(&number) {
                Ok(Span::from_secs(number.unsigned_abs()))
            } else {
                Err(Errno::EINVAL)
            }
        };
        let raw = number.clamp(0, i64::from(i32::MAX / 2)) as u64;
        if let "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" | "TCP_FASTOPEN_NO_COOKIE" = name {
            return Ok(self.set_fast_open(id, name, number));
        }
        let options = &mut self.sockets[id].options;
        let mut changed = Changed::Nothing;
        let result = match name {
            "SO_REUSEADDR" | "SO_REUSEPORT" => {
                options.reuse_address |= on;
                if !on && name == "SO_REUSEADDR" {
                    options.reuse_address = false;
                }
                Ok(())
            }
            "SO_KEEPALIVE" => {
                options.keep_alive = Some(on);
                changed = Changed::KeepAlive;
                Ok(())
            }
            "TCP_KEEPIDLE" => {
                changed = Changed::KeepAlive;
                seconds(1, 32_767).map(|span| options.keep_idle = Some(span))
            }
            "TCP_KEEPINTVL" => {
                changed = Changed::KeepAlive;
                seconds(1, 32_767).map(|span| options.keep_interval = Some(span))
            }
            "TCP_KEEPCNT" if (1..=127).contains(&number) => {
                changed = Changed::KeepAlive;
                options.keep_count = Some(number as u32);
                Ok(())
            }
            "TCP_KEEPINIT" if number > 0 => {
                options.keep_init = Some(Span::from_secs(number as u64));
                Ok(())
            }
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
                let bytes = buffer(number, linux, MIN_SEND_BUFFER);
                options.send_buffer = Some(bytes);
                changed = Changed::SendBuffer(raw);
                Ok(())
            }
            "SO_RCVBUF" | "SO_RCVBUFFORCE" => {
                let bytes = buffer(number, linux, MIN_RECEIVE_BUFFER);
                options.receive_buffer = Some(bytes);
                changed = Changed::ReceiveBuffer(raw);
                Ok(())
            }
            "SO_RCVLOWAT" => {
                options.receive_low_water = Some(number.max(1) as u64);
                Ok(())
            }
            "TCP_NODELAY" => {
                options.no_delay = on;
                changed = Changed::NoDelay;
                Ok(())
            }
            "TCP_CORK" | "TCP_NOPUSH" => {
                options.cork = on;
                changed = Changed::Cork;
                Ok(())
            }
            // TCP_MIN_MSS is 88, MAX_TCP_WINDOW 32767.
            "TCP_MAXSEG" if linux && number != 0 && !(88..=32_767).contains(&number) => Err(Errno::EINVAL),
            "TCP_MAXSEG" if !linux && !(1..=i64::from(self.host.endpoint_config().mss)).contains(&number) => {
                Err(Errno::EINVAL)
            }
            "TCP_MAXSEG" => {
                options.max_segment = (number > 0).then_some(number as u16);
                changed = Changed::MaxSegment;
                Ok(())
            }
            "TCP_USER_TIMEOUT" if number >= 0 => {
                options.user_timeout = on.then(|| Span::from_millis(number as u64));
                changed = Changed::UserTimeout;
                Ok(())
            }
            "TCP_NOTSENT_LOWAT" => {
                // 0 is the host's.
                options.notsent_lowat = on.then_some(number as u32);
                changed = Changed::NotSent;
                Ok(())
            }
            "SO_MAX_PACING_RATE" => {
                // ~0U is no bound; bytes a second.
                options.max_pacing_rate = Some(number as u32).filter(|&rate| rate != u32::MAX).map(u64::from);
                changed = Changed::PacingRate;
                Ok(())
            }
            "TCP_INQ" if (0..=1).contains(&number) => {
                options.inq = on;
                Ok(())
            }
            "TCP_QUICKACK" => {
                options.quick_ack = Some(on);
                changed = Changed::QuickAck(on);
                Ok(())
            }
            "TCP_SYNCNT" if (1..=127).contains(&number) => {
                options.syn_retries = Some(number as u32);
                changed = Changed::SynRetries(number as u32);
                Ok(())
            }
            "TCP_LINGER2" => {
                // Above TCP_FIN_TIMEOUT_MAX, two minutes, it is that.
                options.fin_wait_2 = match number {
                    ..0 => Some(Span::ZERO),
                    0 => None,
                    _ => Some(Span::from_secs(number.unsigned_abs().min(120))),
                };
                changed = Changed::FinWait2;
                Ok(())
            }
            "TCP_NOOPT" => {
                options.no_options = on;
                Ok(())
            }
            "IP_RECVERR" | "IPV6_RECVERR" => {
                options.report_errors = on;
                changed = Changed::ReportErrors;
                Ok(())
            }
            "IP_MTU_DISCOVER" | "IPV6_MTU_DISCOVER" if linux && (0..=5).contains(&number) => {
                options.mtu_discover = Some(number);
                changed = Changed::MtuDiscover;
                Ok(())
            }
            "TCP_DEFER_ACCEPT" if linux => {
                let time = Span::from_secs(u64::try_from(number).unwrap_or(0));
                options.defer_accept = retries_within(time, SYN_ACK_TIMEOUT, LONGEST_TIMEOUT);
                changed = Changed::Deferring;
                Ok(())
            }
            "IP_TOS" | "IPV6_TCLASS" => {
                // INET_ECN_MASK: the codepoint of a TCP socket is not the application's.
                options.tos = (number as u8) & !0b11;
                Ok(())
            }
            "IP_TTL" | "IPV6_UNICAST_HOPS" if number == -1 || (1..=255).contains(&number) => {
                options.ttl = u8::try_from(number).ok();
                Ok(())
            }
            _ if accepted_without_meaning(level, name) => Ok(()),
            _ if known(level, name) => Err(Errno::EINVAL),
            _ => return Err(unsupported(level, name)),
        };
        if result.is_ok() {
            self.option_changed(now, id, changed);
        }
        Ok(result)
    }

    /// Takes a changed option over to what is there already.
    fn option_changed(&mut self, now: Time, id: SocketId, changed: Changed) {
        let options = self.sockets[id].options.clone();
        let config = options.config(&self.host);
        match &mut self.sockets[id].kind {
            Kind::New => {}
            Kind::Listening(listener) => *listener.config_mut() = config,
            Kind::Open(endpoint) => match changed {
                Changed::Nothing | Changed::Deferring => {}
                Changed::ReportErrors => endpoint.set_report_errors(options.report_errors),
                Changed::MtuDiscover => endpoint.set_path_discovery(config.path.discovery),
                Changed::KeepAlive => socket::set_keepalive(endpoint, now, &options, &self.host),
                Changed::SendBuffer(bytes) => endpoint.set_send_buffer(bytes),
                Changed::ReceiveBuffer(bytes) => endpoint.set_receive_buffer(bytes),
                Changed::NoDelay => endpoint.set_nodelay(options.no_delay),
                Changed::Cork => endpoint.set_cork(options.cork),
                Changed::MaxSegment => endpoint.set_max_segment(options.max_segment.unwrap_or(u16::MAX)),
                Changed::UserTimeout => endpoint.set_user_timeout(options.user_timeout),
                Changed::NotSent => endpoint.set_notsent_lowat(options.notsent_lowat.or(self.host.notsent_lowat)),
                Changed::PacingRate => endpoint.set_max_pacing_rate(options.max_pacing_rate),
                Changed::SynRetries(retries) => endpoint.set_syn_retries(retries),
                Changed::QuickAck(on) => endpoint.set_quick_ack(on),
                Changed::FinWait2 => endpoint.set_fin_wait_2_timeout(config.states.fin_wait_2_timeout),
            },
        }
    }

    /// `getsockopt(fd, level, name, value, [length])`, compared with what the script expects.
    pub(crate) fn get_option(&mut self, id: SocketId, args: &Args<'_>) -> Result<Done, CallError> {
        let level = args.name(1)?;
        let name = args.name(2)?;
        let actual = self.option_value(id, &level, &name)?;
        let actual = match actual {
            Ok(actual) => actual,
            Err(errno) => return Ok(Done::failed(errno)),
        };
        let expected = args.get(3)?;
        let complaint = match (&actual, expected) {
            (Value::Any, _) | (_, Expr::Ellipsis) => None,
            (Value::Number(actual), Expr::Array(_)) => {
                let part = bracketed(expected)?;
                if *part == Expr::Ellipsis {
                    None
                } else {
                    let expected = integer(part, args.system)?;
                    (expected != *actual)
                        .then(|| format!("{name}: expected {expected}, got {}", self.shown(&name, *actual)))
                }
            }
            (Value::Number(actual), Expr::Struct(_)) if name == "SO_LINGER" => {
                let (on, seconds) = linger(expected, args.system)?;
                let expected = if on { seconds as i64 } else { -1 };
                (expected != *actual).then(|| format!("SO_LINGER: expected {expected}, got {actual}"))
            }
            (Value::Text(actual), other) => {
                let expected = text(other)?.unwrap_or_default();
                // The kernel fills a field of 16 bytes with zeros (TCP_CA_NAME_MAX).
                let (expected, actual) = (expected.trim_end_matches('\0'), actual.as_str());
                (expected != actual).then(|| format!("{name}: expected \"{expected}\", got \"{actual}\""))
            }
            _ => return Err(CallError::Unsupported(format!("this kind of value for {name}"))),
        };
        let mut done = Done::value(0);
        done.complaint = complaint;
        Ok(done)
    }

    /// A value as reports show it.
    fn shown(&self, name: &str, value: i64) -> String {
        match (name, Errno::by_number(value)) {
            ("SO_ERROR", Some(errno)) => format!("{value}, {errno}"),
            _ => value.to_string(),
        }
    }

    fn option_value(&mut self, id: SocketId, level: &str, name: &str) -> Result<Result<Value, Errno>, CallError> {
        let linux = self.host.system == System::Linux;
        let mss = i64::from(self.host.endpoint_config().mss);
        let options = self.sockets[id].options.clone();
        let flag = |on: bool| Value::Number(i64::from(on));
        let seconds =
            |span: Option<Span>, default: Span| Value::Number((span.unwrap_or(default).as_millis() / 1000) as i64);
        let value = match name {
            "SO_ERROR" => {
                let error = self.endpoint_mut(id).and_then(|endpoint| endpoint.take_error());
                let soft = error.is_none() && linux;
                let soft = self.endpoint_mut(id).filter(|_| soft).and_then(|endpoint| endpoint.take_soft_error());
                if error.is_some() {
                    self.sockets[id].failed = true;
                }
                Value::Number(error.or(soft).map_or(0, |error| Errno::from(error).number()))
            }
            "SO_TYPE" => Value::Number(1),
            "SO_DOMAIN" => Value::Number(if self.host.ipv6 { 10 } else { 2 }),
            "SO_PROTOCOL" => Value::Number(6),
            "SO_ACCEPTCONN" => flag(matches!(self.sockets[id].kind, Kind::Listening(_))),
            "SO_REUSEADDR" | "SO_REUSEPORT" => flag(options.reuse_address),
            "SO_KEEPALIVE" => flag(options.keep_alive.unwrap_or(self.host.config.states.keepalive.is_some())),
            "SO_LINGER" => Value::Number(options.linger.map_or(-1, |span| (span.as_millis() / 1000) as i64)),
            "SO_RCVLOWAT" => Value::Number(options.receive_low_water.unwrap_or(1) as i64),
            "SO_SNDBUF" => Value::Number(options.send_buffer.unwrap_or(self.host.config.send_buffer) as i64),
            "SO_RCVBUF" => Value::Number(match (self.endpoint(id), options.receive_buffer) {
                (Some(endpoint), None) => endpoint.receive_buffer(),
                (_, Some(bytes)) => bytes,
                (None, None) => self.host.receive_buffer(),
            } as i64),
            "TCP_NODELAY" => flag(options.no_delay),
            "TCP_CORK" | "TCP_NOPUSH" => flag(options.cork),
            "TCP_KEEPIDLE" => seconds(options.keep_idle, self.host.keepalive.idle),
            "TCP_KEEPINTVL" => seconds(options.keep_interval, self.host.keepalive.interval),
            "TCP_KEEPCNT" => Value::Number(i64::from(options.keep_count.unwrap_or(self.host.keepalive.count))),
            "TCP_KEEPINIT" => {
                seconds(options.keep_init.or(self.host.config.states.handshake_timeout), Span::from_secs(75))
            }
            "TCP_USER_TIMEOUT" => Value::Number(options.user_timeout.map_or(0, |span| span.as_millis() as i64)),
            "TCP_NOTSENT_LOWAT" => Value::Number(i64::from(options.notsent_lowat.unwrap_or(0))),
            "SO_MAX_PACING_RATE" => {
                Value::Number(options.max_pacing_rate.map_or(i64::from(u32::MAX), |rate| rate as i64))
            }
            "TCP_INQ" => flag(options.inq),
            "TCP_QUICKACK" => flag(options.quick_ack.unwrap_or(true)),
            "TCP_SYNCNT" => {
                Value::Number(i64::from(options.syn_retries.unwrap_or(self.host.config.states.syn_retries)))
            }
            "TCP_FASTOPEN" => Value::Number(options.fast_open_queue.unwrap_or(0) as i64),
            "TCP_FASTOPEN_CONNECT" => flag(options.fast_open_connect),
            "TCP_FASTOPEN_NO_COOKIE" => flag(options.fast_open_no_cookie),
            "TCP_LINGER2" => seconds(options.fin_wait_2, Span::from_secs(60)),
            "TCP_NOOPT" => flag(options.no_options),
            "IP_RECVERR" | "IPV6_RECVERR" => flag(options.report_errors),
            "IP_MTU_DISCOVER" | "IPV6_MTU_DISCOVER" if linux => {
                Value::Number(options.mtu_discover.unwrap_or(i64::from(self.host.config.path.discovery)))
            }
            "TCP_DEFER_ACCEPT" if linux => {
                let time = time_of_retries(options.defer_accept, SYN_ACK_TIMEOUT, LONGEST_TIMEOUT);
                Value::Number((time.as_millis() / 1000) as i64)
            }
            "TCP_CONGESTION" => Value::Text(self.host.name_of(self.cc_of(id)).to_owned()),
            "TCP_MAXSEG" => {
                let connected = self.endpoint(id).filter(|endpoint| {
                    !matches!(endpoint.state(), State::Closed | State::SynSent | State::SynReceived | State::Listen)
                });
                match (connected, options.max_segment) {
                    (Some(endpoint), _) => Value::Number(i64::from(endpoint.max_segment())),
                    (None, Some(set)) => Value::Number(i64::from(set)),
                    // TCP_MSS_DEFAULT; V_tcp_mssdflt.
                    (None, None) if linux => Value::Number(536),
                    (None, None) => Value::Number(mss.min(536)),
                }
            }
            "IP_TOS" | "IPV6_TCLASS" => Value::Number(i64::from(options.tos)),
            "IP_TTL" | "IPV6_UNICAST_HOPS" => Value::Number(i64::from(options.ttl.unwrap_or(64))),
            "IP_MTU" | "IPV6_MTU" => match self.endpoint(id) {
                Some(endpoint) if endpoint.state() != State::Closed => Value::Number(i64::from(endpoint.path_mtu())),
                _ if linux => return Ok(Err(Errno::ENOTCONN)),
                _ => Value::Number(i64::from(self.host.mtu)),
            },
            _ if accepted_without_meaning(level, name) => Value::Any,
            _ => return Err(unsupported(level, name)),
        };
        Ok(Ok(value))
    }
}

/// An option whose new value is to reach what is there already.
#[derive(Clone, Copy, Debug)]
enum Changed {
    Nothing,
    KeepAlive,
    SendBuffer(u64),
    ReceiveBuffer(u64),
    NoDelay,
    Cork,
    MaxSegment,
    UserTimeout,
    NotSent,
    PacingRate,
    QuickAck(bool),
    SynRetries(u32),
    FinWait2,
    ReportErrors,
    MtuDiscover,
    Deferring,
}

/// The buffer that `setsockopt` makes of `number`: Linux doubles it. `net.core.wmem_max` and
/// `rmem_max` are taken to allow it.
fn buffer(number: i64, linux: bool, least: u64) -> u64 {
    let number = number.clamp(0, i64::from(i32::MAX / 2)) as u64;
    if linux { (2 * number).max(least) } else { number.max(1) }
}

fn unsupported(level: &str, name: &str) -> CallError {
    CallError::Unsupported(format!("the socket option {level} {name}"))
}

/// Options that exist here.
fn known(level: &str, name: &str) -> bool {
    matches!(
        name,
        "SO_REUSEADDR"
            | "SO_REUSEPORT"
            | "SO_KEEPALIVE"
            | "SO_SNDBUF"
            | "SO_SNDBUFFORCE"
            | "SO_RCVBUF"
            | "SO_RCVBUFFORCE"
            | "SO_RCVLOWAT"
            | "SO_LINGER"
            | "SO_MAX_PACING_RATE"
            | "TCP_KEEPIDLE"
            | "TCP_KEEPINTVL"
            | "TCP_KEEPCNT"
            | "TCP_KEEPINIT"
            | "TCP_NODELAY"
            | "TCP_CORK"
            | "TCP_NOPUSH"
            | "TCP_MAXSEG"
            | "TCP_USER_TIMEOUT"
            | "TCP_NOTSENT_LOWAT"
            | "TCP_INQ"
            | "TCP_QUICKACK"
            | "TCP_SYNCNT"
            | "TCP_FASTOPEN"
            | "TCP_FASTOPEN_CONNECT"
            | "TCP_FASTOPEN_NO_COOKIE"
            | "TCP_LINGER2"
            | "TCP_NOOPT"
            | "TCP_DEFER_ACCEPT"
            | "IP_RECVERR"
            | "IPV6_RECVERR"
            | "IP_MTU_DISCOVER"
            | "IPV6_MTU_DISCOVER"
            | "TCP_CONGESTION"
            | "IP_TOS"
            | "IP_TTL"
            | "IPV6_TCLASS"
            | "IPV6_UNICAST_HOPS"
    ) || accepted_without_meaning(level, name)
}

/// Options that change nothing that a script against one host can see.
fn accepted_without_meaning(_level: &str, name: &str) -> bool {
    matches!(
        name,
        "SO_PRIORITY"
            | "SO_MARK"
            | "SO_DEBUG"
            | "SO_BROADCAST"
            | "SO_DONTROUTE"
            | "SO_OOBINLINE"
            | "IP_FREEBIND"
            | "IPV6_V6ONLY"
    )
}

/// `{onoff=1, linger=5}`, also by position.
fn linger(value: &Expr, system: System) -> Result<(bool, u64), CallError> {
    let Expr::Struct(parts) = value else { return Err(CallError::script("SO_LINGER takes {onoff=..., linger=...}")) };
    let part = |index: usize, names: &[&str]| -> Result<i64, CallError> {
        let named = parts.iter().find(|(name, _)| names.contains(&name.as_str()));
        let found = named.or_else(|| parts.get(index).filter(|(name, _)| name.is_empty()));
        match found {
            Some((_, value)) => integer(value, system),
            None => Err(CallError::script("SO_LINGER takes {onoff=..., linger=...}")),
        }
    };
    let on = part(0, &["onoff", "l_onoff"])? != 0;
    let seconds = part(1, &["linger", "l_linger"])?.clamp(0, i64::from(i32::MAX)) as u64;
    Ok((on, seconds))
}

/// A string, also in brackets.
fn text(value: &Expr) -> Result<Option<String>, CallError> {
    match value {
        Expr::Text(text) => Ok(Some(text.clone())),
        Expr::Function(name, parts) if name == "..." => parts.first().map_or(Ok(None), text),
        Expr::Array(_) => text(bracketed(value)?),
        _ => Ok(None),
    }
}
