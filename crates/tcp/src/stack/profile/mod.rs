//! The settings of real stacks: every knob of a host at once, by the name of the system.
//!
//! A profile is a host out of the box, on a path of MTU 1500. Each buffer here is the size up to
//! which the stack tunes it by itself; a scenario that fixes socket buffers sets them, and one that
//! wants them tuned asks for it ([`crate::Tuning`]). [`Profile::socket`] is the behaviour of a
//! socket on the wire from its first segment on, with the buffers that it has at that time.
//!
//! # Source
//! The appendices of CAIA technical report 140516A list the sysctls of its FreeBSD 9.2, Linux 3.9.8
//! and Windows 7 hosts. Where they are silent, and for FreeBSD 14 (`tcp_subr.c`, `tcp_input.c`,
//! `tcp_output.c`, `tcp_timer.h`): FreeBSD
//! `sys/netinet/{tcp_timer.h,cc/cc_newreno.c,cc/cc_cubic.h}` of releng/9.3, Linux
//! `include/net/tcp.h` and `net/ipv4/{tcp_cong.c,tcp_input.c,tcp_cubic.c}` of 3.9, 6.1 and 6.18,
//! the same with `tcp.c`, `tcp_output.c` and `tcp_timer.c` of 2.6.32 (2.6.32.2), and for Windows
//! what each field's comment names.
//!
//! # Departures
//! - Loss detection is RFC 6675 except in Linux. FreeBSD 9 recovers by rules of its own, which
//!   [`crate::LossDetector::FreeBsd9`] has. Its profile does not use them: fewer of the results that
//!   were published of FreeBSD 9.2 hosts are met with them (15 of 29 in TEACUP's report, 21 without),
//!   and why is not known for all. Not modelled: F-RTO (RFC 4138) of Windows.
//! - FreeBSD 14 begins recovery as RFC 6675 does with more than two segments' worth of reported bytes
//!   (`newsack`), but also at the third ACK with a new report; then it sends whatever is missing below
//!   the highest report, and finds lost retransmissions (`TF_LRD`).
//! - FreeBSD 9 takes RTT samples of every ACK from its timestamps, in ticks and one more; here they
//!   are exact. Its receiver remembers six ranges (`MAX_SACK_BLKS`); here it remembers all. ABC
//!   bounds an ACK to two segments in congestion avoidance as well (`t_bytes_acked`).
//! - F-RTO of Linux 3.9 is that of 3.10 and later (RFC 5682), which takes the reduction back. Its
//!   own (RFC 4138 Appendix B, `tcp_process_frto`) waits for a second ACK, has the window come down
//!   to the threshold all the same (`tcp_frto_response` = 0), and leaves the threshold of
//!   duplicates where the timeout was needless. What is first in line for longer than the timeout
//!   is not lost by that alone (`tcp_head_timedout`, from 2.4.16 on).
//! - The timeout of Linux's endpoints before 6.1 follows RFC 6298 with a bound on the variance.
//! - Linux 2.4 decides on PSH when data is written, and by the end of a write that the application
//!   makes; here it is decided when a segment is sent, by multiples of the size of a write and the
//!   largest window until then. A probe of the window has PSH there. Its segments are no larger
//!   than half of that window (`tcp_sync_mss`).
//! - Linux 2.4 also ends quick ACKs where less than half of the receive buffer is free, and begins
//!   with two of them, not 16. An interactive connection there does not acknowledge a write when
//!   all is read (`pingpong`).
//! - Linux 2.6.32: the timestamps on the wire tick every millisecond; where a late original is told
//!   from a retransmission by them, every 4 ms, and what is up to 4 ms too old passes PAWS. Rate
//!   halving of Westwood ends at the threshold (`tcp_westwood_bw_rttmin`), and what it has counted
//!   is lost to CUBIC's and Westwood's counter of ACKs. The window is not reduced while the
//!   application sends less (`tcp_cwnd_application_limited`). With segmentation offload its socket
//!   buffers hold several segments; here each holds one. `HZ` is 250.
//! - Linux 3.9 bounds the window to three segments more than are in flight whenever an ACK is not
//!   ordinary progress (`tcp_moderate_cwnd`); here it does not, but in 2.4 and 2.6.32.
//! - What Linux remembers of a destination is not part of a profile: a scenario asks for it.
//! - The send buffer of a Linux host is that of one without segmentation offload
//!   ([`crate::SpaceRule::Segments`]): its size is the payload that fits, and it is filled again
//!   when a third is free.
//! - Linux from 6.6 on learns what share of its buffer data takes (`scaling_ratio`), and offers
//!   more of it; 6.18 offers half here, as 6.1, unless the buffer is tuned.
//! - How connections open and end follows FreeBSD 14 and Linux 6.1 in the older releases too, and
//!   the RFCs for Windows.
//! - FreeBSD's CUBIC has a fast convergence factor of its own (0.9 for a beta of 0.8, which (1 +
//!   beta) / 2 equals) and an older Reno-friendly estimate, by time instead of by ACKs; here it is
//!   RFC 9438 with FreeBSD's beta.

use ackclock_cc::{CdgConfig, CubicConfig, DctcpConfig, DctcpRules, HystartConfig, NewRenoConfig, SlowStartRules};

use crate::{Config, OffloadRule, TransferRules, Tuning};

mod freebsd;
mod linux;
mod windows;

/// A host as it comes out of the box.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The knobs of its endpoint.
    pub endpoint: Config,
    /// The congestion control that it uses unless told otherwise: the name of an algorithm in
    /// scenarios.
    pub cc: &'static str,
    /// Its NewReno.
    pub newreno: NewRenoConfig,
    /// Its CUBIC.
    pub cubic: CubicConfig,
    /// The differences of the host's DCTCP.
    pub dctcp: DctcpRules,
    /// Slow start with HyStart on, if the host's CUBIC does not say.
    pub hystart: SlowStartRules,
    /// Its segmentation offload, if that is modelled: off unless asked for.
    pub offload: Option<OffloadRule>,
    /// The host's tuning of buffers on a machine with much memory, if that is modelled: not unless
    /// asked for.
    pub tuning: Option<Tuning>,
    /// RACK cannot be turned off (`tcp_recovery`, from 6.17 on).
    pub always_rack: bool,
    /// [`ackclock_cc::Stack::late_ack_events`].
    pub late_ack_events: bool,
    /// The state of a newly opened socket, if that is modelled.
    pub socket: Option<NewSocket>,
}

/// A socket that was just opened: its buffers are not tuned yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSocket {
    /// Windows, acknowledgments, segments and options.
    pub transfer: TransferRules,
    /// Its send buffer, bytes.
    pub send_buffer: u64,
    /// Its receive buffer, bytes.
    pub receive_buffer: u64,
}

impl Profile {
    /// Every profile.
    pub fn all() -> [Profile; 11] {
        [
            Profile::rfc(),
            Profile::freebsd_9_2(),
            Profile::freebsd_14(),
            Profile::linux_2_4(),
            Profile::linux_2_6_32(),
            Profile::linux_3_9(),
            Profile::linux_4_0(),
            Profile::linux_6_1(),
            Profile::linux_6_18(),
            Profile::linux_7_3(),
            Profile::windows_7(),
        ]
    }

    /// Returns `true` if the host is a Linux.
    pub fn is_linux(&self) -> bool {
        self.name.starts_with("linux")
    }

    /// FreeBSD's CDG, with what releases differ in as this host has it in NewReno, from which CDG
    /// takes it.
    pub fn freebsd_cdg(&self) -> CdgConfig {
        let NewRenoConfig { timeout_flight, remember_idle, .. } = self.newreno;
        match self.is_linux() {
            true => CdgConfig::default(),
            false => CdgConfig { timeout_flight, remember_idle, ..CdgConfig::default() },
        }
    }

    /// Its DCTCP: what stacks differ in as this one has it, the rest as its NewReno.
    pub fn dctcp(&self) -> DctcpConfig {
        DctcpConfig { rules: self.dctcp, reno: self.newreno, ..DctcpConfig::default() }
    }

    /// Slow start on this host with HyStart on: that of its CUBIC, else that of its kernel.
    pub fn hystart(&self) -> SlowStartRules {
        match self.cubic.reno.slow_start {
            SlowStartRules::Standard => self.hystart,
            rules => rules,
        }
    }

    /// The endpoint behind a socket that was just opened; [`Profile::endpoint`] where that is not
    /// modelled.
    pub fn socket(&self) -> Config {
        let endpoint = self.endpoint.clone();
        let Some(NewSocket { transfer, send_buffer, receive_buffer }) = self.socket.clone() else { return endpoint };
        let TransferRules { capable_control, acc_ecn, .. } = endpoint.transfer;
        Config {
            transfer: TransferRules { capable_control, acc_ecn, ..transfer },
            send_buffer,
            receive_buffer,
            ..endpoint
        }
    }

    /// The profile called `name`.
    pub fn by_name(name: &str) -> Option<Profile> {
        Profile::all().into_iter().find(|profile| profile.name == name)
    }

    /// The RFCs' recommendations, with CUBIC (RFC 9438) without HyStart.
    pub fn rfc() -> Profile {
        Profile {
            name: "rfc",
            endpoint: Config::default(),
            cc: "cubic",
            newreno: NewRenoConfig::default(),
            cubic: CubicConfig::default(),
            dctcp: DctcpRules::Rfc8257,
            hystart: SlowStartRules::Hystart(HystartConfig::default()),
            offload: None,
            tuning: None,
            always_rack: false,
            late_ack_events: false,
            socket: None,
        }
    }
}

#[cfg(test)]
mod tests;
