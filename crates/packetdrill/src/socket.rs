//! The narrow side of `ackclock_tcp` that the calls of a script need: settings of a socket applied
//! to an endpoint.

use ackclock_tcp::{Config, Controller, Endpoint, KeepAlive, Received, Sending, SocketOption, WriteFlags};
use ackclock_units::{Span, Time};

use crate::fast_open::Keys;
use crate::host::Host;

/// Options set by `setsockopt`. A `None` leaves the host's value.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketOptions {
    pub(crate) reuse_address: bool,
    pub(crate) keep_alive: Option<bool>,
    pub(crate) keep_idle: Option<Span>,
    pub(crate) keep_interval: Option<Span>,
    pub(crate) keep_count: Option<u32>,
    pub(crate) keep_init: Option<Span>,
    pub(crate) no_delay: bool,
    pub(crate) cork: bool,
    /// `SO_LINGER`: switched on, and for how long.
    pub(crate) linger: Option<Span>,
    pub(crate) fin_wait_2: Option<Span>,
    pub(crate) user_timeout: Option<Span>,
    /// `SO_SNDBUF` and `SO_RCVBUF` as `getsockopt` tells them.
    pub(crate) send_buffer: Option<u64>,
    pub(crate) receive_buffer: Option<u64>,
    pub(crate) receive_low_water: Option<u64>,
    pub(crate) max_segment: Option<u16>,
    pub(crate) notsent_lowat: Option<u32>,
    /// `SO_MAX_PACING_RATE`, bytes a second.
    pub(crate) max_pacing_rate: Option<u64>,
    pub(crate) syn_retries: Option<u32>,
    pub(crate) quick_ack: Option<bool>,
    /// `TCP_INQ`: recvmsg tells how much is left.
    pub(crate) inq: bool,
    pub(crate) cc: Option<&'static Controller>,
    pub(crate) tos: u8,
    pub(crate) ttl: Option<u8>,
    /// `TCP_FASTOPEN`: how many connections may be open early; of FreeBSD, that it is switched on.
    pub(crate) fast_open_queue: Option<usize>,
    pub(crate) fast_open_connect: bool,
    pub(crate) fast_open_no_cookie: bool,
    pub(crate) fast_open_keys: Option<Keys>,
    /// `TCP_NOOPT`: no options at all.
    pub(crate) no_options: bool,
    /// `IP_MTU_DISCOVER`, as Linux numbers it, if it was set.
    pub(crate) mtu_discover: Option<i64>,
    /// `IP_RECVERR`: ICMP errors are told at once.
    pub(crate) report_errors: bool,
    /// `TCP_DEFER_ACCEPT`, in timeouts of the SYN/ACK.
    pub(crate) defer_accept: u32,
}

impl SocketOptions {
    fn keepalive(&self, host: &Host) -> Option<KeepAlive> {
        let on = self.keep_alive.unwrap_or(host.config.states.keepalive.is_some());
        on.then(|| KeepAlive {
            idle: self.keep_idle.unwrap_or(host.keepalive.idle),
            interval: self.keep_interval.unwrap_or(host.keepalive.interval),
            count: self.keep_count.unwrap_or(host.keepalive.count),
        })
    }

    /// The knobs of an endpoint with these options.
    pub(crate) fn config(&self, host: &Host) -> Config {
        let mut config = host.endpoint_config();
        if let Some(mss) = self.max_segment {
            config.mss = config.mss.min(mss);
            let headers = u32::from(config.path.ip_header) + 20;
            config.path.mtu = config.path.mtu.map(|mtu| mtu.min(u32::from(mss) + headers));
        }
        config.states.defer_accept = self.defer_accept;
        config.path.discovery &= self.believes_path();
        if let Some(bytes) = self.receive_buffer {
            config.receive_buffer = host.receive_config(bytes);
            config.transfer.window = config.transfer.window.with_fixed_buffer();
        }
        if let Some(bytes) = self.send_buffer {
            config.send_buffer = bytes;
        }
        if self.no_delay {
            config.nagle = false;
        }
        if self.no_options {
            (config.sack, config.timestamps, config.window_scaling) = (false, false, false);
            config.transfer.mss_option = false;
        }
        config.states.keepalive = self.keepalive(host);
        if let Some(timeout) = self.user_timeout {
            config.states.user_timeout = Some(timeout);
        }
        if let Some(retries) = self.syn_retries {
            config.states.syn_retries = retries;
        }
        if let Some(timeout) = self.keep_init {
            config.states.handshake_timeout = Some(timeout);
        }
        if let Some(timeout) = self.fin_wait_2 {
            config.states.fin_wait_2_timeout = Some(timeout);
        }
        config
    }

    /// Returns `true` if messages that a packet was too big are believed: not without discovery,
    /// nor by IP_PMTUDISC_INTERFACE and IP_PMTUDISC_OMIT, which keep to the interface (Linux
    /// `tcp_v4_mtu_reduced`, `ip_sk_accept_pmtu`).
    pub(crate) fn believes_path(&self) -> bool {
        self.mtu_discover.is_none_or(|mode| (1..=3).contains(&mode))
    }

    /// Sets up an endpoint that was just made: what is no knob of its.
    pub(crate) fn set_up(&self, host: &Host, endpoint: &mut Endpoint) {
        endpoint.set_option(SocketOption::Linger(self.linger));
        endpoint.set_option(SocketOption::ReportErrors(self.report_errors));
        if self.cork {
            endpoint.set_option(SocketOption::Cork(true));
        }
        if let Some(bytes) = self.notsent_lowat.or(host.notsent_lowat) {
            endpoint.set_option(SocketOption::NotSentLowat(Some(bytes)));
        }
        if self.max_pacing_rate.is_some() {
            endpoint.set_option(SocketOption::MaxPacingRate(self.max_pacing_rate));
        }
        if let Some(on) = self.quick_ack {
            endpoint.set_option(SocketOption::QuickAck(on));
        }
    }
}

/// `SO_KEEPALIVE` and its times on an open connection.
pub(crate) fn set_keepalive(endpoint: &mut Endpoint, now: Time, options: &SocketOptions, host: &Host) {
    endpoint.set_keepalive(now, options.keepalive(host));
}

/// send(): `more` as `MSG_MORE`, `end` as `MSG_EOR`.
pub(crate) fn send(endpoint: &mut Endpoint, bytes: u64, more: bool, end: bool) -> Sending {
    // An empty write shows whether the socket can be written to at all.
    match endpoint.send(0) {
        Sending::Taken(_) => {}
        refused => return refused,
    }
    match endpoint.write_with(bytes, WriteFlags { more, eor: end }) {
        0 if bytes > 0 => Sending::WouldBlock,
        taken => Sending::Taken(taken),
    }
}

/// recv().
pub(crate) fn receive(endpoint: &mut Endpoint, now: Time, most: u64) -> Received {
    let _ = now;
    endpoint.recv(most)
}

/// SIOCOUTQ.
pub(crate) fn unacknowledged(endpoint: &Endpoint) -> u64 {
    endpoint.sender().sequence().unacknowledged()
}
