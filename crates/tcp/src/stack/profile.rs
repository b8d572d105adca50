//! The settings of real stacks: every knob of a host at once, by the name of the system.
//!
//! A profile is a host out of the box, on a path of MTU 1500. Endpoints do not tune their buffers while they run, so that
//! each buffer here is the size up to which the stack tunes it by itself; a scenario that fixes socket buffers sets them.
//! What a socket of the host does on the wire from its first segment on, with the buffers that it has at that time, is
//! [`Profile::socket`].
//!
//! # Source
//! The appendices of CAIA technical report 140516A list the sysctls of its FreeBSD 9.2, Linux 3.9.8 and Windows 7 hosts.
//! Where they are silent, and for FreeBSD 14 (`tcp_subr.c`, `tcp_input.c`, `tcp_output.c`, `tcp_timer.h`): FreeBSD `sys/netinet/{tcp_timer.h,cc/cc_newreno.c,cc/cc_cubic.h}` of releng/9.3, Linux
//! `include/net/tcp.h` and `net/ipv4/{tcp_cong.c,tcp_input.c,tcp_cubic.c}` of 3.9, 6.1 and 6.18, and for Windows what each
//! field's comment names.
//!
//! # Departures
//! - Loss detection is RFC 6675 except in Linux. Not modelled: F-RTO (RFC 4138) of Windows.
//! - F-RTO of Linux 3.9 is that of 3.10 and later (RFC 5682), which takes the reduction back. Its own (RFC 4138 Appendix B,
//!   `tcp_process_frto`) waits for a second ACK, and has the window come down to the threshold all the same
//!   (`tcp_frto_response` = 0). What is first in line for longer than the timeout is not lost by that alone
//!   (`tcp_head_timedout`).
//! - The timeout of Linux's endpoints before 6.1 follows RFC 6298 with a bound on the variance.
//! - A Linux receiver adapts its delayed ACK timeout to the data, from 40 ms up; here it is always 40 ms (but for sockets). It acknowledges
//!   every segment while its window grows (`tcp_grow_window`), which is modelled; the window that it announces meanwhile is
//!   the whole buffer.
//! - The send buffer of a Linux host is that of one without segmentation offload ([`SpaceRule::Segments`]): its size is the
//!   payload that fits, and it is filled again when a third is free.
//! - Linux from 6.6 on learns what share of its buffer data takes (`scaling_ratio`), and offers more of it; 6.18 offers half here, as 6.1.
//! - How connections open and end follows FreeBSD 14 and Linux 6.1 in the older releases too, and the RFCs for Windows.
//! - FreeBSD's CUBIC has a fast convergence factor of its own (0.9 for a beta of 0.8, which (1 + beta) / 2 equals) and an
//!   older Reno-friendly estimate, by time instead of by ACKs; here it is RFC 9438 with FreeBSD's beta.

use ackclock_cc::{
    CdgConfig, CubicConfig, CubicRules, DctcpConfig, DctcpRules, EcnFeedback, HystartConfig, HystartPlusPlusConfig,
    HystartRules, NewRenoConfig, SlowStartRules,
};
use ackclock_packet::OptionLayout;
use ackclock_units::Span;

use crate::{
    AccEcnRules, AdaptiveRules, Config, CwndValidation, DelayedAck, InitialWindow, LossDetector, MinRto, Pacing,
    PathRules, Prr, ReportRule, RttRule, SackCompression, SpaceRule, StateRules, TransferRules,
};

/// A host as it comes out of the box.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The knobs of its endpoint.
    pub endpoint: Config,
    /// The congestion control that it uses unless told otherwise: the name of an algorithm in scenarios.
    pub cc: &'static str,
    /// Its NewReno.
    pub newreno: NewRenoConfig,
    /// Its CUBIC.
    pub cubic: CubicConfig,
}

impl Profile {
    /// Every profile.
    pub fn all() -> [Profile; 9] {
        [
            Profile::rfc(),
            Profile::freebsd_9_2(),
            Profile::freebsd_14(),
            Profile::linux_2_4(),
            Profile::linux_3_9(),
            Profile::linux_4_0(),
            Profile::linux_6_1(),
            Profile::linux_6_18(),
            Profile::windows_7(),
        ]
    }

    /// Whether it is a Linux.
    pub fn is_linux(&self) -> bool {
        self.name.starts_with("linux")
    }

    /// FreeBSD's CDG, with what releases differ in as this host has it in NewReno, from which CDG takes it.
    pub fn freebsd_cdg(&self) -> CdgConfig {
        let NewRenoConfig { timeout_flight, remember_idle, .. } = self.newreno;
        match self.is_linux() {
            true => CdgConfig::default(),
            false => CdgConfig { timeout_flight, remember_idle, ..CdgConfig::default() },
        }
    }

    /// Its DCTCP: what stacks differ in as this one has it, the rest as its NewReno.
    pub fn dctcp(&self) -> DctcpConfig {
        let rules = match self.name {
            _ if self.is_linux() => DctcpRules::Linux,
            "freebsd-9.2" | "freebsd-14" => DctcpRules::FreeBsd,
            _ => DctcpRules::Rfc8257,
        };
        DctcpConfig { rules, reno: self.newreno, ..DctcpConfig::default() }
    }

    /// What slow start is on this host with HyStart on: what its CUBIC has, else what its kernel knows.
    pub fn hystart(&self) -> SlowStartRules {
        match (self.cubic.reno.slow_start, self.name) {
            // NewReno and CUBIC have it, but only the RACK stack lets them use it, and not by default:
            // net.inet.tcp.rack.features.hystartplusplus = 0.
            (SlowStartRules::Standard, "freebsd-14") => {
                SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default())
            }
            (SlowStartRules::Standard, _) => SlowStartRules::Hystart(HystartConfig::default()),
            (rules, _) => rules,
        }
    }

    /// The endpoint behind a socket that was just opened: its buffers are not tuned yet, and windows, acknowledgments,
    /// segments and options follow the stack where its rules are modelled, which is FreeBSD 14 and Linux 6.1 and 6.18. The others
    /// are as [`Profile::endpoint`].
    pub fn socket(&self) -> Config {
        let endpoint = self.endpoint.clone();
        match self.name {
            "freebsd-14" => Config {
                transfer: TransferRules::freebsd(2_097_152), // kern.ipc.maxsockbuf
                send_buffer: 32_768,                         // net.inet.tcp.sendspace
                receive_buffer: 65_536,                      // net.inet.tcp.recvspace
                ..endpoint
            },
            "linux-6.1" => Config {
                transfer: TransferRules::linux(6_291_456), // tcp_rmem
                send_buffer: 16_384,                       // tcp_wmem; 87,040 once the connection is open
                receive_buffer: 131_072,                   // tcp_rmem
                ..endpoint
            },
            "linux-6.18" => Config {
                transfer: TransferRules::linux_6_18(6_291_456),
                send_buffer: 16_384,
                receive_buffer: 131_072,
                ..endpoint
            },
            _ => endpoint,
        }
    }

    /// The profile called `name`.
    pub fn by_name(name: &str) -> Option<Profile> {
        Profile::all().into_iter().find(|profile| profile.name == name)
    }

    /// What the RFCs recommend, with CUBIC (RFC 9438) without HyStart.
    pub fn rfc() -> Profile {
        Profile {
            name: "rfc",
            endpoint: Config::default(),
            cc: "cubic",
            newreno: NewRenoConfig::default(),
            cubic: CubicConfig::default(),
        }
    }

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
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "freebsd-9.2",
            endpoint: Config {
                mss: 1460,
                default_peer_mss: 536,
                initial_window: InitialWindow::Rfc3390, // rfc3390 = 1, experimental.initcwnd10 = 0
                sack: true,                             // sack.enable = 1
                dsack: false,                           // reports none before release 13
                timestamps: true,                       // rfc1323 = 1, both of these
                window_scaling: true,
                ecn: EcnFeedback::None,    // ecn.enable = 0
                send_buffer: 2_097_152,    // sendbuf_max
                receive_buffer: 2_097_152, // recvbuf_max
                // delayed_ack = 1, delacktime = 100
                delayed_ack: DelayedAck { segments: 2, timeout: Span::from_millis(100), quick: 0, growth_from: 0 },
                // rexmit_min = 30 in TCP_REXMTVAL, to which TCPT_RANGESET adds rexmit_slop = 200.
                min_rto: MinRto::OfTotal(Span::from_millis(30)),
                rto_slop: Span::from_millis(200),
                max_rto: Span::from_secs(64),    // TCPTV_REXMTMAX
                initial_rto: Span::from_secs(3), // TCPTV_RTOBASE
                limited_transmit: true,          // rfc3042 = 1
                prr: Prr::Off,
                loss_detector: LossDetector::Rfc6675,
                undo: false,
                frto: false,
                tlp: false,
                nagle: true,
                slow_start_after_idle: true, // newreno_after_idle, always
                cwnd_validation: CwndValidation::Growth,
                pacing: Pacing::default(),
                time_wait: Span::from_secs(60), // twice msl = 30000
                max_retries: 12,                // TCP_MAXRXTSHIFT
                states: StateRules::freebsd(),
                transfer: TransferRules::default(),
                path: PathRules::freebsd(),
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig {
                beta: 0.8, // CUBIC_BETA
                c: 0.4,    // CUBIC_C_FACTOR
                fast_convergence: true,
                reno_friendly: true,
                rules: CubicRules::Rfc9438,
                reno: newreno,
            },
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
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "freebsd-14",
            endpoint: Config {
                mss: 1460,
                default_peer_mss: 536,
                initial_window: InitialWindow::Segments(10), // net.inet.tcp.initcwnd_segments
                sack: true,
                dsack: true,
                timestamps: true, // net.inet.tcp.rfc1323 = 1, both of these
                window_scaling: true,
                ecn: EcnFeedback::None,    // net.inet.tcp.ecn.enable = 2: accepts, see below
                send_buffer: 2_097_152,    // sendbuf_max
                receive_buffer: 2_097_152, // recvbuf_max
                // delayed_ack = 1, delacktime = 40
                delayed_ack: DelayedAck { segments: 2, timeout: Span::from_millis(40), quick: 0, growth_from: 0 },
                min_rto: MinRto::OfTotal(Span::from_millis(30)), // rexmit_min
                rto_slop: Span::from_millis(200),                // rexmit_slop
                max_rto: Span::from_secs(64),                    // TCPTV_REXMTMAX
                initial_rto: Span::from_secs(1),                 // rexmit_initial
                limited_transmit: true,                          // rfc3042 = 1
                prr: Prr::Ssrb,                                  // do_prr = 1, do_prr_conservative = 0
                loss_detector: LossDetector::Rfc6675,
                undo: false,
                frto: false,
                tlp: false,
                nagle: true,
                slow_start_after_idle: true, // cc_after_idle, always
                cwnd_validation: CwndValidation::Growth,
                pacing: Pacing::default(),
                time_wait: Span::from_secs(60), // twice msl = 30000
                max_retries: 12,                // TCP_MAXRXTSHIFT
                states: StateRules::freebsd(),
                transfer: TransferRules {
                    options: OptionLayout::FreeBsd,
                    reports: ReportRule::FreeBsd,
                    accept_ecn: EcnFeedback::Classic,
                    ..TransferRules::default()
                },
                path: PathRules::freebsd(),
            },
            cc: "cubic",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
        }
    }

    /// Linux 2.4 with its defaults: NewReno with SACK, FACK and undo, and a window that comes down by half a segment per ACK.
    pub fn linux_2_4() -> Profile {
        let newreno = NewRenoConfig {
            abc: false,
            abc_l_var: 0,
            limit_burst: false,
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true, // tcp_cwnd_restart
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let rules = AdaptiveRules { max_reordering: 127, fack: true, early_retransmit: false }; // TCP_MAX_REORDERING
        Profile {
            name: "linux-2.4",
            endpoint: Config {
                initial_window: InitialWindow::Rfc3390, // tcp_init_cwnd: 3 segments of an Ethernet
                initial_rto: Span::from_secs(3),        // TCP_TIMEOUT_INIT
                send_buffer: 131_072,                   // tcp_wmem
                receive_buffer: 174_760 / 2,            // tcp_rmem, of which tcp_adv_win_scale = 2 leaves the more
                loss_detector: LossDetector::Linux(rules),
                undo: true,
                ..linux(Prr::RateHalving, 4 * 1460)
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
        }
    }

    /// Linux 3.9 with the settings of the CAIA report (the defaults of openSUSE 12.3).
    pub fn linux_3_9() -> Profile {
        // 3.9 removed the sysctl of ABC and counted ACKs: tcp_slow_start and tcp_cong_avoid_ai take no byte count.
        let newreno = NewRenoConfig {
            abc: false,
            abc_l_var: 0,
            limit_burst: false, // tcp_end_cwnd_reduction: to the threshold
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true, // tcp_current_ssthresh
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let rules = AdaptiveRules { max_reordering: 127, fack: true, early_retransmit: true }; // TCP_MAX_REORDERING
        Profile {
            name: "linux-3.9",
            endpoint: Config {
                loss_detector: LossDetector::Linux(rules), // tcp_fack = 1, tcp_early_retrans = 2: delayed
                undo: true,
                frto: true,                    // tcp_frto = 2
                ..linux(Prr::Ssrb, 10 * 1460)  // TCP_DEFAULT_INIT_RCVWND; probes came with 3.10
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux39, HystartRules::Linux39, newreno),
        }
    }

    /// Linux 4.0 with its defaults.
    pub fn linux_4_0() -> Profile {
        // Since 3.19 slow start and congestion avoidance count segments acknowledged.
        let newreno = NewRenoConfig {
            abc: true,
            abc_l_var: 0,
            limit_burst: false,
            past_ssthresh: false, // tcp_slow_start stops at the threshold
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "linux-4.0",
            endpoint: Config {
                loss_detector: LossDetector::Linux(AdaptiveRules::default()), // tcp_max_reordering, tcp_fack
                undo: true,
                frto: true, // tcp_frto = 2
                tlp: true,  // tcp_early_retrans = 3
                ..linux(Prr::Ssrb, 10 * 1460)
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux61, HystartRules::Linux39, newreno),
        }
    }

    /// Linux 6.1 with its defaults: RACK, tail loss probes, F-RTO, undo.
    pub fn linux_6_1() -> Profile {
        let newreno = NewRenoConfig {
            abc: true,
            abc_l_var: 0, // tcp_slow_start adds all that was acknowledged
            limit_burst: false,
            past_ssthresh: false,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let common = linux(Prr::Rfc9937, 65_535); // tcp_select_initial_window
        Profile {
            name: "linux-6.1",
            // tcp_cwnd_reduction has the conservative bound, and slow start only on ACKs that make progress without a
            // lost retransmission: RFC 9937 rather than RFC 6937.
            endpoint: Config {
                loss_detector: LossDetector::Rack, // tcp_recovery = 1
                undo: true,
                frto: true, // tcp_frto = 2
                tlp: true,  // tcp_early_retrans = 3
                // tcp_ack_update_rtt: the timeout goes by the first segment that an ACK covers, controllers by the last.
                transfer: TransferRules {
                    rtt: RttRule::Linux,
                    sack_compression: Some(SackCompression::default()),
                    ..common.transfer.clone()
                },
                ..common
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux61, HystartRules::Linux61, newreno),
        }
    }

    /// Linux 6.18 with its defaults: Linux 6.1 but for what changed in between, which is [`StateRules::linux_6_18`], the parts that
    /// DSACK reports, and what Accurate ECN does where `ecn` asks for it: its option, and ECT on all packets.
    pub fn linux_6_18() -> Profile {
        let before = Profile::linux_6_1();
        let transfer = TransferRules {
            exact_duplicates: true,
            capable_control: true,
            acc_ecn: AccEcnRules::linux(),
            ..before.endpoint.transfer.clone()
        };
        let endpoint = Config { states: StateRules::linux_6_18(), transfer, ..before.endpoint.clone() };
        Profile { name: "linux-6.18", endpoint, ..before }
    }

    /// Windows 7 with the settings of the CAIA report: no add-on congestion provider, that is NewReno.
    pub fn windows_7() -> Profile {
        // RFCs 2582, 2883 and 3517 are among those that Microsoft lists for this stack (TechNet, "Next Generation TCP/IP
        // Protocols and Networking Components"); what it does not tell is as the RFCs recommend.
        let newreno = NewRenoConfig::default();
        Profile {
            name: "windows-7",
            endpoint: Config {
                mss: 1460,
                default_peer_mss: 536,
                // `netsh interface tcp show supplemental` (hotfix KB2472264): window 2, minimum RTO 300, delayed ACK 200.
                initial_window: InitialWindow::Segments(2),
                min_rto: MinRto::OfTotal(Span::from_millis(300)),
                delayed_ack: DelayedAck { segments: 2, timeout: Span::from_millis(200), quick: 0, growth_from: 0 },
                sack: true,
                dsack: true,            // RFC 2883
                timestamps: false,      // "RFC 1323 Timestamps : disabled"
                window_scaling: true,   // "Receive Window Auto-Tuning Level : normal"
                ecn: EcnFeedback::None, // "ECN Capability : disabled"
                // Level "normal" tunes the receive window up to 16 MiB, and the send backlog follows the window.
                send_buffer: 16 << 20,
                receive_buffer: 16 << 20,
                max_rto: Span::from_secs(60),
                initial_rto: Span::from_secs(3), // TcpInitialRtt
                rto_slop: Span::ZERO,
                limited_transmit: true,
                prr: Prr::Off,
                loss_detector: LossDetector::Rfc6675,
                undo: false,
                frto: false,
                tlp: false,
                nagle: true,
                slow_start_after_idle: false, // CwndRestart is off by default where Windows first shows it (Server 2012)
                cwnd_validation: CwndValidation::Growth,
                pacing: Pacing::default(),
                time_wait: Span::from_secs(120), // TcpTimedWaitDelay
                max_retries: 5,                  // TcpMaxDataRetransmissions
                states: StateRules::default(),
                transfer: TransferRules::default(),
                path: PathRules::default(),
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
        }
    }
}

/// `bic_scale` 41: Linux multiplies by 41 * 10 / 1024.
const LINUX_C: f64 = 410.0 / 1024.0;

/// `tcp_cubic.c` with its module's parameters, which releases did not change; what they do with them, they did.
fn linux_cubic(rules: CubicRules, hystart: HystartRules, newreno: NewRenoConfig) -> CubicConfig {
    let hystart = HystartConfig {
        ack_train: true, // hystart_detect = 3, both of these
        delay: true,
        low_window: 16,
        ack_delta: Span::from_millis(2),
        rules: hystart,
    };
    CubicConfig {
        beta: 717.0 / 1024.0,
        c: LINUX_C,
        fast_convergence: true,
        reno_friendly: true, // tcp_friendliness = 1
        rules,
        reno: NewRenoConfig { slow_start: SlowStartRules::Hystart(hystart), ..newreno },
    }
}

/// What the endpoints of Linux 3.9 and 6.1 have in common. `growth_from` is the window that they announce first.
fn linux(prr: Prr, growth_from: u64) -> Config {
    Config {
        mss: 1460,
        default_peer_mss: 536,
        initial_window: InitialWindow::Segments(10), // TCP_INIT_CWND
        sack: true,
        dsack: true,
        timestamps: true,
        window_scaling: true,
        ecn: EcnFeedback::None, // accepts but does not ask; the CAIA report and the oracle set 0
        send_buffer: 4_194_304, // tcp_wmem
        receive_buffer: 6_291_456 / 2, // tcp_rmem, of which tcp_adv_win_scale = 1 announces half
        // TCP_DELACK_MIN; TCP_MAX_QUICKACKS
        delayed_ack: DelayedAck { segments: 2, timeout: Span::from_millis(40), quick: 16, growth_from },
        min_rto: MinRto::OfVariance(Span::from_millis(200)), // TCP_RTO_MIN bounds rttvar
        max_rto: Span::from_secs(120),                       // TCP_RTO_MAX
        initial_rto: Span::from_secs(1),                     // TCP_TIMEOUT_INIT
        rto_slop: Span::ZERO,
        limited_transmit: true,
        prr,
        loss_detector: LossDetector::Rfc6675,
        undo: false,
        frto: false,
        tlp: false,
        nagle: true,
        slow_start_after_idle: true, // tcp_slow_start_after_idle = 1
        cwnd_validation: CwndValidation::Growth,
        pacing: Pacing::default(),
        time_wait: Span::from_secs(60), // TCP_TIMEWAIT_LEN
        max_retries: 15,                // tcp_retries2
        states: StateRules::linux(),
        transfer: TransferRules {
            minshall: true,
            send_space: SpaceRule::Segments,
            report_refused: true,
            whole_reports: true,
            ..TransferRules::default()
        },
        path: PathRules::linux(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_found_by_its_name() {
        for profile in Profile::all() {
            assert_eq!(Profile::by_name(profile.name).as_ref(), Some(&profile));
        }
        assert_eq!(Profile::by_name("linux"), None);
    }

    #[test]
    fn the_default_congestion_control_of_each_host() {
        let defaults = Profile::all().map(|profile| (profile.name, profile.cc));
        assert_eq!(
            defaults,
            [
                ("rfc", "cubic"),
                ("freebsd-9.2", "newreno"),
                ("freebsd-14", "cubic"),
                ("linux-2.4", "newreno"),
                ("linux-3.9", "cubic"),
                ("linux-4.0", "cubic"),
                ("linux-6.1", "cubic"),
                ("linux-6.18", "cubic"),
                ("windows-7", "newreno"),
            ]
        );
    }

    #[test]
    fn cubic_starts_slowly_as_its_host_does() {
        for profile in Profile::all() {
            // Linux's HyStart is part of its CUBIC.
            let reno = NewRenoConfig { slow_start: SlowStartRules::Standard, ..profile.cubic.reno };
            assert_eq!(reno, profile.newreno, "{}", profile.name);
            let hystart = profile.cubic.reno.slow_start != SlowStartRules::Standard;
            assert_eq!(
                hystart,
                ["linux-3.9", "linux-4.0", "linux-6.1", "linux-6.18"].contains(&profile.name),
                "{}",
                profile.name
            );
        }
    }

    #[test]
    fn linux_3_9_is_4_0_without_probes_and_with_an_older_bound() {
        // TCP_MAX_REORDERING; the probes and the value 3 of tcp_early_retrans came with 3.10.
        let [old, new] = [Profile::linux_3_9(), Profile::linux_4_0()].map(|profile| profile.endpoint);
        let rules = AdaptiveRules { max_reordering: 127, ..AdaptiveRules::default() };
        assert_eq!(old, Config { loss_detector: LossDetector::Linux(rules), tlp: false, ..new });
    }

    #[test]
    fn initial_windows_of_full_segments() {
        // RFC 3390: min(4 * 1460, max(2 * 1460, 4380)) = 4380.
        for (profile, bytes) in [
            (Profile::rfc(), 14_600),
            (Profile::freebsd_9_2(), 4_380),
            (Profile::freebsd_14(), 14_600),
            (Profile::linux_3_9(), 14_600),
            (Profile::linux_6_1(), 14_600),
            (Profile::linux_6_18(), 14_600),
            (Profile::windows_7(), 2_920),
        ] {
            assert_eq!(
                profile.endpoint.initial_window.bytes(u32::from(profile.endpoint.mss)),
                bytes,
                "{}",
                profile.name
            );
        }
    }
}
