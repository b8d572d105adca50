//! `setsockopt` with a number: what is stored, and what reaches a socket that is open already.

use ackclock_tcp::{SocketOption, retries_within};
use ackclock_units::{Span, Time};

use super::{LONGEST_TIMEOUT, SYN_ACK_TIMEOUT, accepted_without_meaning, known, unsupported};
use crate::args::CallError;
use crate::errno::Errno;
use crate::socket::{self, SocketOptions};
use crate::sockets::{Kernel, Kind, SocketId};
use crate::system::System;

/// Linux's least socket buffers (`SOCK_MIN_SNDBUF`, `SOCK_MIN_RCVBUF`): two packets' bookkeeping of
/// 2048 + 256 bytes, one.
const MIN_SEND_BUFFER: u64 = 4608;
const MIN_RECEIVE_BUFFER: u64 = 2304;

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

impl Changed {
    /// Returns `true` if an MPTCP socket heeds the change: subflows have the knobs of the time at
    /// which their connection begins.
    fn applies_to_subflows(self, is_open: bool) -> bool {
        match self {
            Changed::Nothing => true,
            Changed::KeepAlive
            | Changed::SendBuffer(_)
            | Changed::ReceiveBuffer(_)
            | Changed::NoDelay
            | Changed::MaxSegment
            | Changed::UserTimeout
            | Changed::SynRetries(_)
            | Changed::FinWait2
            | Changed::MtuDiscover => !is_open,
            Changed::Cork
            | Changed::NotSent
            | Changed::PacingRate
            | Changed::QuickAck(_)
            | Changed::ReportErrors
            | Changed::Deferring => false,
        }
    }
}

/// The change by a number, or the error that refuses it. `None` if the group has no such option, or
/// none that takes this number.
type Stored = Option<Result<Changed, Errno>>;

impl Kernel {
    pub(super) fn set_number(
        &mut self,
        now: Time,
        id: SocketId,
        level: &str,
        name: &str,
        number: i64,
    ) -> Result<Result<(), Errno>, CallError> {
        if let "TCP_FASTOPEN" | "TCP_FASTOPEN_CONNECT" | "TCP_FASTOPEN_NO_COOKIE" = name {
            if self.sockets[id].mptcp {
                return Err(CallError::Unsupported(format!("{name} of an MPTCP socket")));
            }
            return Ok(self.set_fast_open(id, name, number));
        }
        let linux = self.host.system == System::Linux;
        let mss = self.host.endpoint_config().mss;
        let options = &mut self.sockets[id].options;
        let stored = store_socket_option(options, linux, name, number)
            .or_else(|| store_timer(options, linux, name, number))
            .or_else(|| store_tcp_option(options, linux, mss, name, number))
            .or_else(|| store_ip_option(options, linux, name, number));
        if let Some(Ok(changed)) = stored
            && self.sockets[id].mptcp
            && !changed.applies_to_subflows(self.multipath(id).is_some())
        {
            return Err(CallError::Unsupported(format!("{name} of an MPTCP socket in this state")));
        }
        let result = match stored {
            Some(result) => result,
            None if accepted_without_meaning(name) => Ok(Changed::Nothing),
            None if known(name) => Err(Errno::EINVAL),
            None => return Err(unsupported(level, name)),
        };
        Ok(result.map(|changed| self.option_changed(now, id, changed)))
    }

    /// Takes a changed option over to what is there already.
    fn option_changed(&mut self, now: Time, id: SocketId, changed: Changed) {
        let options = self.sockets[id].options.clone();
        let config = options.config(&self.host);
        match &mut self.sockets[id].kind {
            // Listening sockets give their options to children.
            Kind::New | Kind::MultipathListening(_) | Kind::Multipath(_) => {}
            Kind::Listening(listener) => *listener.config_mut() = config,
            Kind::Open(endpoint) => endpoint.set_option(match changed {
                Changed::Nothing | Changed::Deferring => return,
                Changed::KeepAlive => return socket::set_keepalive(endpoint, now, &options, &self.host),
                Changed::ReportErrors => SocketOption::ReportErrors(options.report_errors),
                Changed::MtuDiscover => SocketOption::PathDiscovery(config.path.discovery),
                Changed::SendBuffer(bytes) => SocketOption::SendBuffer(bytes),
                Changed::ReceiveBuffer(bytes) => SocketOption::ReceiveBuffer(bytes),
                Changed::NoDelay => SocketOption::NoDelay(options.no_delay),
                Changed::Cork => SocketOption::Cork(options.cork),
                Changed::MaxSegment => SocketOption::MaxSegment(options.max_segment.unwrap_or(u16::MAX)),
                Changed::UserTimeout => SocketOption::UserTimeout(options.user_timeout),
                Changed::NotSent => SocketOption::NotSentLowat(options.notsent_lowat.or(self.host.notsent_lowat)),
                Changed::PacingRate => SocketOption::MaxPacingRate(options.max_pacing_rate),
                Changed::SynRetries(retries) => SocketOption::SynRetries(retries),
                Changed::QuickAck(on) => SocketOption::QuickAck(on),
                Changed::FinWait2 => SocketOption::FinWait2Timeout(config.states.fin_wait_2_timeout),
            }),
        }
    }
}

/// `SOL_SOCKET`.
fn store_socket_option(options: &mut SocketOptions, linux: bool, name: &str, number: i64) -> Stored {
    let on = number != 0;
    let raw = number.clamp(0, i64::from(i32::MAX / 2)) as u64;
    let changed = match name {
        "SO_REUSEADDR" => {
            options.reuse_address = on;
            Changed::Nothing
        }
        "SO_REUSEPORT" => {
            options.reuse_address |= on;
            Changed::Nothing
        }
        "SO_KEEPALIVE" => {
            options.keep_alive = Some(on);
            Changed::KeepAlive
        }
        "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
            options.send_buffer = Some(buffer(number, linux, MIN_SEND_BUFFER));
            Changed::SendBuffer(raw)
        }
        "SO_RCVBUF" | "SO_RCVBUFFORCE" => {
            options.receive_buffer = Some(buffer(number, linux, MIN_RECEIVE_BUFFER));
            Changed::ReceiveBuffer(raw)
        }
        "SO_RCVLOWAT" => {
            options.receive_low_water = Some(number.max(1) as u64);
            Changed::Nothing
        }
        "SO_MAX_PACING_RATE" => {
            // ~0U is no bound; bytes a second.
            options.max_pacing_rate = Some(number as u32).filter(|&rate| rate != u32::MAX).map(u64::from);
            Changed::PacingRate
        }
        _ => return None,
    };
    Some(Ok(changed))
}

/// `SOL_TCP`: times and numbers of attempts.
fn store_timer(options: &mut SocketOptions, linux: bool, name: &str, number: i64) -> Stored {
    let changed = match name {
        "TCP_KEEPIDLE" | "TCP_KEEPINTVL" => {
            if !(1..=32_767).contains(&number) {
                return Some(Err(Errno::EINVAL));
            }
            let time = Some(Span::from_secs(number.unsigned_abs()));
            *(if name == "TCP_KEEPIDLE" { &mut options.keep_idle } else { &mut options.keep_interval }) = time;
            Changed::KeepAlive
        }
        "TCP_KEEPCNT" if (1..=127).contains(&number) => {
            options.keep_count = Some(number as u32);
            Changed::KeepAlive
        }
        "TCP_KEEPINIT" if number > 0 => {
            options.keep_init = Some(Span::from_secs(number as u64));
            Changed::Nothing
        }
        "TCP_USER_TIMEOUT" if number >= 0 => {
            options.user_timeout = (number != 0).then(|| Span::from_millis(number as u64));
            Changed::UserTimeout
        }
        "TCP_SYNCNT" if (1..=127).contains(&number) => {
            options.syn_retries = Some(number as u32);
            Changed::SynRetries(number as u32)
        }
        "TCP_LINGER2" => {
            // Above TCP_FIN_TIMEOUT_MAX, two minutes, it is that.
            options.fin_wait_2 = match number {
                ..0 => Some(Span::ZERO),
                0 => None,
                _ => Some(Span::from_secs(number.unsigned_abs().min(120))),
            };
            Changed::FinWait2
        }
        "TCP_DEFER_ACCEPT" if linux => {
            let time = Span::from_secs(u64::try_from(number).unwrap_or(0));
            options.defer_accept = retries_within(time, SYN_ACK_TIMEOUT, LONGEST_TIMEOUT);
            Changed::Deferring
        }
        _ => return None,
    };
    Some(Ok(changed))
}

/// `SOL_TCP`: what is sent, and when. `mss` is the host's.
fn store_tcp_option(options: &mut SocketOptions, linux: bool, mss: u16, name: &str, number: i64) -> Stored {
    let on = number != 0;
    let changed = match name {
        "TCP_NODELAY" => {
            options.no_delay = on;
            Changed::NoDelay
        }
        "TCP_CORK" | "TCP_NOPUSH" => {
            options.cork = on;
            Changed::Cork
        }
        // TCP_MIN_MSS is 88, MAX_TCP_WINDOW 32767.
        "TCP_MAXSEG" if linux && on && !(88..=32_767).contains(&number) => return Some(Err(Errno::EINVAL)),
        "TCP_MAXSEG" if !linux && !(1..=i64::from(mss)).contains(&number) => return Some(Err(Errno::EINVAL)),
        "TCP_MAXSEG" => {
            options.max_segment = (number > 0).then_some(number as u16);
            Changed::MaxSegment
        }
        "TCP_NOTSENT_LOWAT" => {
            // 0 is the host's.
            options.notsent_lowat = on.then_some(number as u32);
            Changed::NotSent
        }
        "TCP_INQ" if (0..=1).contains(&number) => {
            options.inq = on;
            Changed::Nothing
        }
        "TCP_QUICKACK" => {
            options.quick_ack = Some(on);
            Changed::QuickAck(on)
        }
        "TCP_NOOPT" => {
            options.no_options = on;
            Changed::Nothing
        }
        _ => return None,
    };
    Some(Ok(changed))
}

/// `SOL_IP` and `SOL_IPV6`.
fn store_ip_option(options: &mut SocketOptions, linux: bool, name: &str, number: i64) -> Stored {
    let changed = match name {
        "IP_RECVERR" | "IPV6_RECVERR" => {
            options.report_errors = number != 0;
            Changed::ReportErrors
        }
        "IP_MTU_DISCOVER" | "IPV6_MTU_DISCOVER" if linux && (0..=5).contains(&number) => {
            options.mtu_discover = Some(number);
            Changed::MtuDiscover
        }
        "IP_TOS" | "IPV6_TCLASS" => {
            // INET_ECN_MASK: the codepoint of a TCP socket is not the application's.
            options.tos = (number as u8) & !0b11;
            Changed::Nothing
        }
        "IP_TTL" | "IPV6_UNICAST_HOPS" if number == -1 || (1..=255).contains(&number) => {
            options.ttl = u8::try_from(number).ok();
            Changed::Nothing
        }
        _ => return None,
    };
    Some(Ok(changed))
}

/// The buffer that `setsockopt` makes of `number`: Linux doubles it. `net.core.wmem_max` and
/// `rmem_max` are taken to allow it.
fn buffer(number: i64, linux: bool, least: u64) -> u64 {
    let number = number.clamp(0, i64::from(i32::MAX / 2)) as u64;
    if linux { (2 * number).max(least) } else { number.max(1) }
}
