//! Linux from 2.4 to 7.3.

use ackclock_cc::{
    CubicConfig, CubicRules, DctcpRules, EcnFeedback, HystartConfig, HystartRules, NewRenoConfig, SlowStartRules,
};
use ackclock_units::Span;

use super::{NewSocket, Profile};
use crate::{
    AccEcnRules, AckRule, AdaptiveRules, BufferTuning, Config, CwndValidation, DelayedAck, GiveUp, InitialWindow,
    LossDetector, LossRules, MinRto, OffloadRule, PathRules, PeerWindow, Prr, QuickAcks, ReportRule, RttRule,
    SackCompression, SpaceRule, StateRules, Ticks, TimerRules, TransferRules, Tuning, TuningRules, WindowRule,
};

mod rows;

impl Profile {
    /// Linux 2.4 with its defaults: NewReno with SACK, FACK and undo, and a window that comes down
    /// by half a segment per ACK.
    pub fn linux_2_4() -> Profile {
        let newreno = NewRenoConfig {
            abc: false,
            abc_l_var: 0,
            limit_burst: false,
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true, // tcp_cwnd_restart
            idle_keeps_credit: true,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let rules = AdaptiveRules { early_retransmit: false, ..before_3_12() };
        let common = linux(Prr::RateHalving, QuickAcks::linux_2_4(), 4 * 1460);
        Profile {
            name: "linux-2.4",
            endpoint: Config {
                initial_window: InitialWindow::Rfc3390, // tcp_init_cwnd: 3 segments of an Ethernet
                initial_rto: Span::from_secs(3),        // TCP_TIMEOUT_INIT
                send_buffer: 131_072,                   // tcp_wmem
                // tcp_rmem is 87,380: three quarters of it, less a segment (tcp_init_buffer_space).
                receive_buffer: 2 * (65_535 - 1448),
                loss_detector: LossDetector::Linux(rules),
                undo: true,
                states: StateRules {
                    syn_retries: 5,           // TCP_SYN_RETRIES
                    orphan_retries: Some(7),  // TCP_ORPHAN_RETRIES
                    give_up: GiveUp::Retries, // tcp_write_timeout
                    ..before_fallback()
                },
                transfer: TransferRules {
                    timer: TimerRules::linux_2_4(),
                    loss: LossRules::linux_2_4(),
                    push_writes: true,
                    push_when_written: false,
                    coalesces: false,
                    ..common.transfer
                },
                ..common
            },
            cc: "newreno",
            newreno,
            cubic: CubicConfig { reno: newreno, ..CubicConfig::default() },
            dctcp: DctcpRules::Linux,
            ..Profile::rfc()
        }
    }

    /// Linux 2.6.32 with its defaults: CUBIC 2.3 with HyStart, SACK, FACK, undo and F-RTO, and a
    /// window that comes down by half a segment per ACK. The machine has much memory, and `HZ` is
    /// 250.
    pub fn linux_2_6_32() -> Profile {
        let newreno = NewRenoConfig {
            abc: false, // tcp_abc = 0
            abc_l_var: 0,
            limit_burst: false,
            past_ssthresh: true, // tcp_slow_start up to and at the threshold
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true, // tcp_cwnd_restart
            idle_keeps_credit: true,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let rules = AdaptiveRules { early_retransmit: false, ..before_3_12() };
        let common = linux(Prr::RateHalving, QuickAcks { push: false, ..QuickAcks::linux_2_4() }, 4 * 1460);
        Profile {
            name: "linux-2.6.32",
            endpoint: Config {
                initial_window: InitialWindow::Rfc3390, // tcp_init_cwnd: 3 segments of an Ethernet
                initial_rto: Span::from_secs(3),        // TCP_TIMEOUT_INIT
                receive_buffer: 4_194_304 / 2 * 3,      // tcp_rmem, of which tcp_adv_win_scale = 2 leaves the more
                loss_detector: LossDetector::Linux(rules),
                undo: true,
                frto: true, // tcp_frto = 2
                // TCP_SYN_RETRIES; TCP_PAWS_WINDOW, a tick of 4 ms.
                states: StateRules { syn_retries: 5, paws_slack: 4, ..before_fallback() },
                transfer: TransferRules { loss: LossRules::linux_2_6_32(), coalesces: false, ..common.transfer },
                ..common
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux26, HystartRules::Linux26, newreno),
            dctcp: DctcpRules::Linux,
            tuning: tuning(TuningRules::LINUX_2_6_32, 87_380, 4 << 20),
            ..Profile::rfc()
        }
    }

    /// Linux 3.9 with the settings of the CAIA report (the defaults of openSUSE 12.3).
    pub fn linux_3_9() -> Profile {
        // 3.9 removed the sysctl of ABC and counted ACKs: tcp_slow_start and tcp_cong_avoid_ai take
        // no byte count.
        let newreno = NewRenoConfig {
            abc: false,
            abc_l_var: 0,
            limit_burst: false, // tcp_end_cwnd_reduction: to the threshold
            past_ssthresh: true,
            halve_flight: false,
            timeout_flight: false,
            remember_idle: true, // tcp_current_ssthresh
            idle_keeps_credit: true,
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        Profile {
            name: "linux-3.9",
            endpoint: Config {
                loss_detector: LossDetector::Linux(before_3_12()), // tcp_fack = 1, tcp_early_retrans = 2: delayed
                undo: true,
                frto: true, // tcp_frto = 2
                states: before_fallback(),
                // TCP_DEFAULT_INIT_RCVWND; probes came with 3.10
                ..linux(Prr::Ssrb, QuickAcks::linux_3_7(), 10 * 1460)
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux39, HystartRules::Linux39, newreno),
            dctcp: DctcpRules::Linux,
            tuning: tuning(TuningRules::LINUX_3_9, 87_380, 6 << 20),
            ..Profile::rfc()
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
            idle_keeps_credit: true, // tcp_cwnd_restart
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
                states: before_fallback(),
                ..linux(Prr::Ssrb, QuickAcks::linux_3_7(), 10 * 1460)
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux61, HystartRules::Linux39, newreno),
            dctcp: DctcpRules::Linux,
            offload: Some(OffloadRule::LINUX_4_0),
            tuning: tuning(TuningRules::LINUX_4_0, 87_380, 6 << 20),
            ..Profile::rfc()
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
            idle_keeps_credit: true, // tcp_cwnd_restart
            beta_ecn: None,
            slow_start: SlowStartRules::Standard,
        };
        let common = linux(Prr::Rfc9937, QuickAcks::linux_4_19(), 65_535); // tcp_select_initial_window
        Profile {
            name: "linux-6.1",
            // tcp_cwnd_reduction has the conservative bound, and slow start only on ACKs that make
            // progress without a lost retransmission: RFC 9937 rather than RFC 6937.
            endpoint: Config {
                loss_detector: LossDetector::Rack, // tcp_recovery = 1
                undo: true,
                frto: true, // tcp_frto = 2
                tlp: true,  // tcp_early_retrans = 3
                // tcp_ack_update_rtt: the timeout goes by the first segment that an ACK covers,
                // controllers by the last.
                transfer: TransferRules {
                    rtt: RttRule::Linux,
                    ticks: Ticks::WHEEL_250, // CONFIG_HZ of Debian's kernel
                    sack_compression: Some(SackCompression::default()),
                    ..common.transfer.clone()
                },
                ..common
            },
            cc: "cubic",
            newreno,
            cubic: linux_cubic(CubicRules::Linux61, HystartRules::Linux61, newreno),
            dctcp: DctcpRules::Linux,
            late_ack_events: true, // 6.1.192
            offload: Some(OffloadRule::LINUX_6_1),
            tuning: tuning(TuningRules::LINUX_6_1, 131_072, 6 << 20),
            socket: Some(NewSocket {
                transfer: TransferRules::linux(6_291_456), // tcp_rmem
                send_buffer: 16_384,                       // tcp_wmem; 87,040 once the connection is open
                receive_buffer: 131_072,                   // tcp_rmem
            }),
            ..Profile::rfc()
        }
    }

    /// Linux 6.18 with its defaults: Linux 6.1 but for what changed in between, which is
    /// [`StateRules::linux_6_18`] and the parts that DSACK reports. A 6.18.44 kernel was asked. Its
    /// sysctls do not let Accurate ECN on; `ecn` does, as the RFC has it.
    pub fn linux_6_18() -> Profile {
        let before = Profile::linux_6_1();
        let peer_window = PeerWindow::LargerOrClosed;
        let transfer = TransferRules { exact_duplicates: true, peer_window, ..before.endpoint.transfer.clone() };
        let endpoint = Config { states: StateRules::linux_6_18(), transfer, ..before.endpoint.clone() };
        let transfer = TransferRules::linux_6_18(33_554_432);
        Profile {
            name: "linux-6.18",
            endpoint,
            offload: Some(OffloadRule::LINUX_6_18),
            tuning: tuning(TuningRules::LINUX_6_18, 131_072, 32 << 20),
            always_rack: true,
            socket: Some(NewSocket { transfer, send_buffer: 16_384, receive_buffer: 131_072 }),
            ..before
        }
    }

    /// Linux 7.3 with its defaults: Linux 6.18 with Accurate ECN, which it asks for, with its
    /// option and ECT on all packets.
    pub fn linux_7_3() -> Profile {
        let before = Profile::linux_6_18();
        let transfer =
            TransferRules { capable_control: true, acc_ecn: AccEcnRules::linux(), ..before.endpoint.transfer.clone() };
        let endpoint = Config { ecn: EcnFeedback::Accurate, transfer, ..before.endpoint.clone() };
        Profile { name: "linux-7.3", endpoint, ..before }
    }
}

/// `tcp_rmem`, whose second and third numbers these are, and `tcp_wmem`.
fn tuning(law: TuningRules, default: u64, most: u64) -> Option<Tuning> {
    Some(Tuning {
        receive: BufferTuning { law, default, most },
        send: BufferTuning { law, default: 16_384, most: 4 << 20 },
    })
}

/// `bic_scale` 41: Linux multiplies by 41 * 10 / 1024.
const LINUX_C: f64 = 410.0 / 1024.0;

/// `tcp_cubic.c` with its module's parameters, which releases did not change; what they do with
/// them, they did.
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
        tick: Span::from_millis(4), // HZ = 250
        reno: NewRenoConfig { slow_start: SlowStartRules::Hystart(hystart), ..newreno },
    }
}

/// The adaptive threshold of 2.4 to 3.11: `TCP_MAX_REORDERING`, and nothing apart for much
/// reordering.
fn before_3_12() -> AdaptiveRules {
    AdaptiveRules { max_reordering: 127, high_reordering: false, ..AdaptiveRules::default() }
}

/// A lost SYN asked for ECN again until 4.2 (`tcp_ecn_fallback`).
fn before_fallback() -> StateRules {
    StateRules { ecn_syn_retries: u32::MAX, ..StateRules::linux() }
}

/// The common settings of Linux's endpoints. `growth_from` is the window that they announce first.
fn linux(prr: Prr, hurry: QuickAcks, growth_from: u64) -> Config {
    Config {
        initial_window: InitialWindow::Segments(10), // TCP_INIT_CWND
        sack: true,
        dsack: true,
        timestamps: true,
        window_scaling: true,
        ecn: EcnFeedback::None, // accepts but does not ask; the CAIA report and the oracle set 0
        send_buffer: 4_194_304, // tcp_wmem
        receive_buffer: 6_291_456, // tcp_rmem
        delayed_ack: DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40), // TCP_DELACK_MIN
            quick: 16,                      // TCP_MAX_QUICKACKS
            hurry,
            growth_from,
        },
        min_rto: MinRto::OfVariance(Span::from_millis(200)), // TCP_RTO_MIN bounds rttvar
        max_rto: Span::from_secs(120),                       // TCP_RTO_MAX
        initial_rto: Span::from_secs(1),                     // TCP_TIMEOUT_INIT
        prr,
        slow_start_after_idle: true, // tcp_slow_start_after_idle = 1
        cwnd_validation: CwndValidation::Growth,
        time_wait: Span::from_secs(60), // TCP_TIMEWAIT_LEN
        max_retries: 15,                // tcp_retries2
        states: StateRules::linux(),
        transfer: TransferRules {
            window: WindowRule::Linux { most: 0 },
            peer_window: PeerWindow::Larger,
            acks: AckRule::Linux,
            reports: ReportRule::Linux,
            minshall: true,
            send_space: SpaceRule::Segments,
            report_refused: true,
            bare_handshake_ack: true,
            counts_segments: true,
            push_when_written: true,
            coalesces: true,
            ..TransferRules::default()
        },
        path: PathRules::linux(),
        ..Config::default()
    }
}
