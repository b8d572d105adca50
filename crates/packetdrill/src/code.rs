//! The variables that code in a script sees: Linux's `struct tcp_info` of the connection under
//! test.

use ackclock_tcp::TcpInfo;
use ackclock_units::Time;

use crate::expr::Value;
use crate::sockets::{Kernel, Kind, SocketId};

const CLOSED: u8 = 7;
const LISTENING: u8 = 10;

/// The result of `getsockopt(TCP_INFO)` for a socket; `None` if the application has closed it.
pub(crate) fn info(kernel: &Kernel, id: SocketId, now: Time) -> Option<TcpInfo> {
    let socket = kernel.sockets.get(id)?;
    socket.fd?;
    Some(match &socket.kind {
        Kind::Open(endpoint) => TcpInfo::of(endpoint, now),
        Kind::New => TcpInfo { state: CLOSED, ..TcpInfo::default() },
        // Linux tells that of the first subflow.
        Kind::Multipath(_) => TcpInfo::of(kernel.endpoint(id)?, now),
        Kind::Listening(_) | Kind::MultipathListening(_) => TcpInfo { state: LISTENING, ..TcpInfo::default() },
    })
}

macro_rules! fields {
    ($info:expr, $name:expr, $($field:ident)*) => {
        match $name {
            $(concat!("tcpi_", stringify!($field)) => Some(i128::from($info.$field)),)*
            _ => None,
        }
    };
}

/// The value of a name such as `tcpi_snd_cwnd`.
pub(crate) fn lookup(info: &TcpInfo, name: &str) -> Option<Value> {
    let number = fields!(info, name,
        state ca_state retransmits probes backoff options snd_wscale rcv_wscale rto ato snd_mss rcv_mss unacked sacked
        lost retrans fackets last_data_sent last_ack_sent last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar
        snd_ssthresh snd_cwnd advmss reordering rcv_rtt rcv_space total_retrans pacing_rate bytes_acked bytes_received
        segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out delivery_rate
        delivery_rate_app_limited busy_time rwnd_limited sndbuf_limited delivered delivered_ce bytes_sent bytes_retrans dsack_dups reord_seen rcv_ooopack snd_wnd
        received_ce delivered_e1_bytes delivered_e0_bytes delivered_ce_bytes received_e1_bytes received_e0_bytes
        received_ce_bytes ecn_mode accecn_opt_seen accecn_fail_mode);
    number.map(Value::Int)
}
