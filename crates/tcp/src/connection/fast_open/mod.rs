//! TCP Fast Open (RFC 7413): data with the SYN, and answers before the handshake has ended.
//!
//! The client asks for a cookie once, keeps it in a [`FastOpenCache`], and sends its first data
//! with the SYN of later connections. The server ([`FastOpenServer`]) takes data in with a SYN that
//! shows the right cookie; its child is readable and writable before the last ACK of the handshake
//! has come.
//!
//! # Source
//! RFC 7413. Linux `net/ipv4/tcp_fastopen.c`, `tcp_metrics.c`, `tcp_send_syn_data` and
//! `tcp_syn_options` of `tcp_output.c`, `tcp_rcv_fastopen_synack`, `tcp_rcv_synrecv_state_fastopen`
//! and `tcp_conn_request` of `tcp_input.c`, `tcp_check_req` of `tcp_minisocks.c`,
//! `reqsk_fastopen_remove` of `net/core/request_sock.c`, `tcp_fastopen_synack_timer` of
//! `tcp_timer.c`. FreeBSD `sys/netinet/tcp_fastopen.c`, `tcp_syncache.c`, `tcp_input.c`,
//! `tcp_output.c`.
//!
//! # Departures
//! - The state of a child whose application has closed before the last ACK stays SYN-RECEIVED until
//!   that ACK; in stacks it is FIN-WAIT-1.
//! - FreeBSD lets the congestion window grow by the data that a SYN/ACK acknowledges; here it does
//!   not, as in Linux.
//! - FreeBSD's preshared keys are not here, nor its rotation of keys and the limits of its cache.

use ackclock_packet::FastOpen;

mod cache;
mod opening;
mod server;

pub use cache::{FastOpenAttempt, FastOpenCache, FastOpenNews, FastOpenStack};
pub use opening::Opening;
pub(crate) use server::{EarlyConnections, JudgedCookie};
pub use server::{FastOpenServer, fast_open_cookie};

/// The cookie of ends that need none ([`crate::StateRules::fast_open`]): both know it.
pub(crate) fn known_cookie() -> FastOpen {
    FastOpen::new(b"ackclock")
}
