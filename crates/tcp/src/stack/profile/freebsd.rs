//! FreeBSD 9.2 and 14.
//!
//! # Departures
//! - An idle sender begins anew once it has sent nothing for a timeout; 9.2 counts from the last
//!   segment that it received (`t_rcvtime`), so that a server that answers a request does not. The
//!   window is that of RFC 3390 then, whatever the initial one was.
//! - 9.2 takes a timeout back if an ACK comes within half of a smoothed round trip; its own engine
//!   does here, that of RFC 6675, which its profile has, does not.
//! - A timeout that is taken back does not put the end of the episode before it back
//!   (`snd_recover_prev`): a mark is heeded once all is acknowledged that had been sent then.

use ackclock_cc::{CubicConfig, DctcpRules, EcnFeedback, HystartPlusPlusConfig, NewRenoConfig, SlowStartRules};
use ackclock_packet::OptionLayout;
use ackclock_units::Span;

use super::{NewSocket, Profile};
use crate::{
    Config, CwndValidation, DelayedAck, InitialWindow, MinRto, NeedlessTimeout, PathRules, Prr, ReportRule, StateRules,
    TransferRules,
};

impl Profile {
    /// FreeBSD 9.2-RELEASE with the settings of the CAIA report (its defaults).
    pub fn freebsd_9_2() -> Profile {
        let newreno = NewRenoConfig {
            abc: true,    // net.inet.tcp.rfc3465 = 1
            abc_l_var: 2, // net.inet.tcp.abc_l_var = 2
            limit_burst: true,
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: false,
            idle_keeps_credit: false,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "freebsd-9.2",
            endpoint: Config {
                initial_window: InitialWindow::Rfc3390, // rfc3390 = 1, experimental.initcwnd10 = 0
                sack: true,                             // sack.enable = 1
                dsack: false,                           // reports none before release 13
                timestamps: true,                       // rfc1323 = 1, both of these
                window_scaling: true,
                ecn: EcnFeedback::None,    // ecn.enable = 0
                send_buffer: 2_097_152,    // sendbuf_max
                receive_buffer: 2_097_152, // recvbuf_max
                // delayed_ack = 1, delacktime = 100
                delayed_ack: DelayedAck { timeout: Span::from_millis(100), ..DelayedAck::default() },
                // rexmit_min = 30 in TCP_REXMTVAL, to which TCPT_RANGESET adds rexmit_slop = 200.
                min_rto: MinRto::OfTotal(Span::from_millis(30)),
                rto_slop: Span::from_millis(200),
                max_rto: Span::from_secs(64),    // TCPTV_REXMTMAX
                initial_rto: Span::from_secs(3), // TCPTV_RTOBASE
                limited_transmit: true,          // rfc3042 = 1
                prr: Prr::Off,
                slow_start_after_idle: true, // newreno_after_idle, always
                cwnd_validation: CwndValidation::Growth,
                time_wait: Span::from_secs(60), // twice msl = 30000
                max_retries: 12,                // TCP_MAXRXTSHIFT
                states: StateRules::freebsd_9(),
                path: PathRules::freebsd(),
                ..Config::default()
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig {
                beta: 0.8, // CUBIC_BETA
                c: 0.4,    // CUBIC_C_FACTOR
                fast_convergence: true,
                reno_friendly: true,
                reno: newreno,
                ..CubicConfig::default()
            },
            dctcp: DctcpRules::FreeBsd,
            ..Profile::rfc()
        }
    }

    /// FreeBSD 14 with its defaults, but without RACK, which is a stack of its own there.
    pub fn freebsd_14() -> Profile {
        let newreno = NewRenoConfig {
            abc: true,    // net.inet.tcp.rfc3465 = 1
            abc_l_var: 2, // net.inet.tcp.abc_l_var = 2
            limit_burst: true,
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: true, // newreno_cc_cong_signal, CC_RTO: min(snd_wnd, pipe) / 2
            remember_idle: true,  // newreno_cc_after_idle
            idle_keeps_credit: false,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "freebsd-14",
            endpoint: Config {
                initial_window: InitialWindow::Segments(10), // net.inet.tcp.initcwnd_segments
                sack: true,
                dsack: true,
                timestamps: true, // net.inet.tcp.rfc1323 = 1, both of these
                window_scaling: true,
                ecn: EcnFeedback::None,    // net.inet.tcp.ecn.enable = 2: accepts, see below
                send_buffer: 2_097_152,    // sendbuf_max
                receive_buffer: 2_097_152, // recvbuf_max
                // delayed_ack = 1, delacktime = 40
                delayed_ack: DelayedAck { timeout: Span::from_millis(40), ..DelayedAck::default() },
                min_rto: MinRto::OfTotal(Span::from_millis(30)), // rexmit_min
                rto_slop: Span::from_millis(200),                // rexmit_slop
                max_rto: Span::from_secs(64),                    // TCPTV_REXMTMAX
                initial_rto: Span::from_secs(1),                 // rexmit_initial
                limited_transmit: true,                          // rfc3042 = 1
                prr: Prr::Ssrb,                                  // do_prr = 1, do_prr_conservative = 0
                slow_start_after_idle: true,                     // cc_after_idle, always
                cwnd_validation: CwndValidation::Growth,
                time_wait: Span::from_secs(60), // twice msl = 30000
                max_retries: 12,                // TCP_MAXRXTSHIFT
                states: StateRules::freebsd(),
                transfer: TransferRules {
                    options: OptionLayout::FreeBsd,
                    reports: ReportRule::FreeBsd,
                    accept_ecn: EcnFeedback::Classic,
                    needless_timeout: NeedlessTimeout::Echo,
                    ..TransferRules::default()
                },
                path: PathRules::freebsd(),
                ..Config::default()
            },
            cc: "cubic",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
            dctcp: DctcpRules::FreeBsd,
            // NewReno and CUBIC have it, but only the RACK stack lets them use it, and not by
            // default: net.inet.tcp.rack.features.hystartplusplus = 0.
            hystart: SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default()),
            socket: Some(NewSocket {
                transfer: TransferRules::freebsd(2_097_152), // kern.ipc.maxsockbuf
                send_buffer: 32_768,                         // net.inet.tcp.sendspace
                receive_buffer: 65_536,                      // net.inet.tcp.recvspace
            }),
            ..Profile::rfc()
        }
    }
}
