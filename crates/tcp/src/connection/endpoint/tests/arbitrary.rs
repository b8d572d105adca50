//! Any calls, with any segments, at any times: nothing panics, nothing runs for ever, and both
//! windows are respected.

use ackclock_cc::{
    CongestionControl, CubicConfig, HystartConfig, HystartPlusPlusConfig, NewRenoConfig, SlowStartRules,
};
use ackclock_packet::{AccEcn, AccEcnOrder, FastOpen};
use ackclock_units::Random;
use proptest::prelude::*;

use super::prediction::everything;
use super::*;
use crate::seq::lower;
use crate::stack::profile::Profile;
use crate::{
    AccEcnOption, AccEcnRule, AccEcnRules, AdaptiveRules, BerkeleyRules, CONTROLLERS, CaState, ChallengeLimit,
    Controller, CwndValidation, DetectorRules, GiveUp, IcmpError, KeepAlive, LossDetector, MtuProbing, NcrVariant,
    OffloadRule, Pacing, PacingWhen, PathRules, QuickAcks, Received, RrRules, Sending, SynFin, Ticks, TransferRules,
    WindowProbe, WindowRule,
};

mod watched;

/// The next event.
#[derive(Clone, Debug)]
enum Call {
    Write(u64),
    Read(u64),
    Close,
    Shutdown(Shutdown),
    Abort,
    /// SO_LINGER, TCP_USER_TIMEOUT and SO_KEEPALIVE, in seconds.
    Options([Option<u64>; 3]),
    /// TCP_CONGESTION.
    TakeOver(Any),
    /// SO_MAX_PACING_RATE.
    MaxPacingRate(Option<u64>),
    /// recv, send, SO_ERROR and poll.
    Look(u64),
    /// A segment of any content.
    Noise(Box<Segment>, Ecn),
    /// A segment that a peer could send.
    Plausible(Shape),
    /// An ICMP error, and where in what is outstanding the segment begins that it quotes.
    Icmp(IcmpError, prop::sample::Index),
    /// The route has another MTU.
    Route(u32),
    /// Time passes, with all deadlines on the way.
    Wait(u64),
    /// Time passes, and the driver comes late.
    Late(u64),
}

/// A segment in terms of the endpoint's state: offsets from what it expects, and shares of what is
/// outstanding.
#[derive(Clone, Debug)]
struct Shape {
    flags: Flags,
    /// Data from the next byte expected.
    seq: i64,
    len: u32,
    /// All that was sent if `None`.
    ack: Option<prop::sample::Index>,
    /// A number beyond SND.NXT.
    ack_beyond: u64,
    window: u16,
    blocks: Vec<(prop::sample::Index, prop::sample::Index)>,
    timestamps: Option<i32>,
    mss: Option<u16>,
    ecn: Ecn,
    acc_ecn: Option<AccEcn>,
}

fn any_ecn() -> impl Strategy<Value = Ecn> {
    (0u8..4).prop_map(Ecn::from_bits)
}

/// Small counters mostly, so that they move by what was sent.
fn any_acc_ecn() -> impl Strategy<Value = Option<AccEcn>> {
    let counter = || prop_oneof![2 => Just(1u32), 4 => 0u32..10_000, 1 => any::<u32>()];
    let option = ([counter(), counter(), counter()], any::<bool>(), 0usize..=3);
    let option = option.prop_map(|([e1, ce, e0], zero, fields)| {
        let order = if zero { AccEcnOrder::Zero } else { AccEcnOrder::One };
        let counters = |codepoint| match codepoint {
            Ecn::Ect1 => e1,
            Ecn::Ce => ce,
            _ => e0,
        };
        AccEcn::new(order, counters).shortened(fields)
    });
    prop::option::of(option)
}

fn any_noise() -> impl Strategy<Value = Segment> {
    let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..5);
    let numbers = (any::<[u32; 2]>(), any::<u16>(), any::<u16>(), any::<u64>(), 0u32..65_000);
    let options = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), any::<Option<[u32; 2]>>(), blocks);
    (numbers, options, any_acc_ecn()).prop_map(|(numbers, options, acc_ecn)| {
        let ([seq, ack], flags, window, offset, len) = numbers;
        let (mss, window_scale, sack_permitted, timestamps, blocks) = options;
        let mut sack = SackBlocks::default();
        blocks.iter().for_each(|&(left, right)| assert!(sack.push(left, right)));
        Segment {
            payload: Payload { offset, len },
            seq,
            ack,
            flags: Flags::from_bits(flags),
            window,
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|[value, echo]| Timestamps { value, echo }),
            sack,
            acc_ecn,
            ..Segment::default()
        }
    })
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let flags = prop_oneof![
        30 => Just(Flags::ACK),
        6 => Just(Flags::ACK | Flags::ECE),
        6 => (0u8..8).prop_map(|counter| Flags::ACK | Flags::from_ace(counter)),
        3 => Just(Flags::ACK | Flags::CWR),
        3 => Just(Flags::ACK | Flags::FIN),
        2 => Just(Flags::SYN),
        2 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::RST),
        1 => Just(Flags::NONE),
    ];
    let seq = prop_oneof![12 => Just(0i64), 4 => 0i64..5000, 2 => -3000i64..0, 1 => -100_000i64..100_000];
    let len = prop_oneof![6 => Just(0u32), 4 => 1u32..1500, 1 => 0u32..60_000];
    let window = prop_oneof![3 => Just(65_535u16), 2 => Just(0u16), 2 => 0u16..5000, 1 => any::<u16>()];
    let index = any::<prop::sample::Index>;
    let blocks = prop::collection::vec((index(), index()), 0..5);
    let ack = prop::option::weighted(0.7, index());
    let timestamps = prop_oneof![8 => Just(Some(0)), 1 => (-100_000i32..1000).prop_map(Some), 1 => Just(None)];
    let beyond = prop_oneof![20 => Just(0u64), 1 => 0u64..5000];
    ((flags, seq, len, ack, beyond), (window, blocks, timestamps, any::<Option<u16>>(), any_ecn(), any_acc_ecn()))
        .prop_map(|((flags, seq, len, ack, ack_beyond), (window, blocks, timestamps, mss, ecn, acc_ecn))| Shape {
            flags,
            seq,
            len,
            ack,
            ack_beyond,
            window,
            blocks,
            timestamps,
            mss,
            ecn,
            acc_ecn,
        })
}

/// A congestion controller: any, as the hosts have it, with any slow start.
#[derive(Clone, Debug)]
pub(super) struct Any {
    controller: &'static str,
    linux: bool,
    slow_start: SlowStartRules,
}

impl Any {
    /// The one of this name as FreeBSD has it.
    pub(super) fn named(controller: &'static str) -> Any {
        Any { controller, linux: false, slow_start: SlowStartRules::Standard }
    }

    pub(super) fn build(&self) -> Box<dyn CongestionControl> {
        let mut host = Profile::by_name(if self.linux { "linux-6.1" } else { "freebsd-14" }).expect("it is there");
        host.newreno = NewRenoConfig { slow_start: self.slow_start, ..host.newreno };
        host.cubic =
            CubicConfig { reno: NewRenoConfig { slow_start: self.slow_start, ..host.cubic.reno }, ..host.cubic };
        Controller::by_name(self.controller).expect("it is there").build(&host, Random::for_component(1, 0, "any"))
    }
}

pub(super) fn any_controller() -> impl Strategy<Value = Any> {
    let slow_start = prop_oneof![
        Just(SlowStartRules::Standard),
        Just(SlowStartRules::Hystart(HystartConfig::default())),
        Just(SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default())),
    ];
    let names = CONTROLLERS.iter().map(|controller| controller.name).collect::<Vec<_>>();
    (prop::sample::select(names), any::<bool>(), slow_start).prop_map(|(controller, linux, slow_start)| Any {
        controller,
        linux,
        slow_start,
    })
}

fn any_call() -> impl Strategy<Value = Call> {
    let time = || prop_oneof![6 => 0u64..300, 2 => 0u64..5000, 1 => 0u64..10_000_000];
    prop_oneof![
        6 => (0u64..40_000).prop_map(Call::Write),
        4 => (0u64..5000).prop_map(Call::Read),
        1 => prop_oneof![Just(Shutdown::Read), Just(Shutdown::Write), Just(Shutdown::Both)].prop_map(Call::Shutdown),
        1 => (0u8..4).prop_map(|dice| if dice == 0 { Call::Close } else { Call::Look(u64::from(dice)) }),
        1 => prop::array::uniform3(prop::option::of(1u64..100)).prop_map(Call::Options),
        1 => any_controller().prop_map(Call::TakeOver),
        1 => prop::option::of(prop_oneof![1u64..100, 100u64..10_000_000, Just(u64::MAX)]).prop_map(Call::MaxPacingRate),
        1 => (0u8..8).prop_map(|dice| if dice == 0 { Call::Abort } else { Call::Wait(1) }),
        1 => (any_noise(), any_ecn()).prop_map(|(segment, ecn)| Call::Noise(Box::new(segment), ecn)),
        30 => any_shape().prop_map(Call::Plausible),
        3 => any_icmp(),
        1 => prop_oneof![1u32..2000, any::<u32>()].prop_map(Call::Route),
        8 => time().prop_map(Call::Wait),
        2 => time().prop_map(Call::Late),
    ]
}

fn any_icmp() -> impl Strategy<Value = Call> {
    let mtu = prop_oneof![1 => Just(0u32), 6 => 1u32..2000, 1 => any::<u32>()];
    let kind =
        prop_oneof![2 => Just((3u8, 4u8)), 2 => Just((3u8, 1u8)), 2 => (0u8..20, 0u8..18), 1 => any::<(u8, u8)>()];
    let quoted = (any::<prop::sample::Index>(), any::<u32>(), prop_oneof![0u32..2000, any::<u32>()]);
    (any::<bool>(), kind, mtu, quoted).prop_map(|(v6, (kind, code), mtu, (index, sequence, length))| {
        Call::Icmp(IcmpError { v6, kind, code, mtu, sequence, length }, index)
    })
}

fn any_path() -> impl Strategy<Value = PathRules> {
    let of_a_stack = prop_oneof![Just(PathRules::default()), Just(PathRules::linux()), Just(PathRules::freebsd())];
    let probing =
        prop_oneof![2 => Just(MtuProbing::Off), 1 => Just(MtuProbing::BlackHole), 2 => Just(MtuProbing::Always)];
    let sizes = (prop::option::of(68u32..9000), 48u32..3000, 68u32..2000, 0u32..50, 0u32..5);
    let timeout = prop::option::of((1u64..5000).prop_map(Span::from_millis));
    (of_a_stack, probing, sizes, timeout, any::<[bool; 3]>()).prop_map(|(stack, probing, sizes, timeout, switches)| {
        let (mtu, base_segment, least_mtu, probe_threshold, black_hole_retries) = sizes;
        PathRules {
            may_reset: switches[0],
            ip_header: if switches[1] { 40 } else { 20 },
            revert_backoff: switches[2],
            mtu,
            base_segment,
            least_mtu,
            probe_threshold,
            black_hole_retries,
            timeout,
            probing,
            probe_interval: Span::from_secs(1),
            ..stack
        }
    })
}

fn any_rules() -> impl Strategy<Value = StateRules> {
    let of_a_stack = prop_oneof![Just(StateRules::default()), Just(StateRules::linux()), Just(StateRules::freebsd())];
    let retries = prop::array::uniform3(0u32..6);
    let syn_fin = prop_oneof![Just(SynFin::Accept), Just(SynFin::DropInListen), Just(SynFin::Drop)];
    let times = prop::array::uniform3(prop::option::of((0u64..200_000).prop_map(Span::from_millis)));
    (of_a_stack, any::<[bool; 10]>(), retries, syn_fin, times).prop_map(|(stack, switches, retries, syn_fin, times)| {
        let [
            insecure_rst,
            insecure_syn,
            syn_data,
            fin_on_acks,
            reset_unread,
            discard_unread,
            empty,
            model,
            ecn_fallback,
            fast_open,
        ] = switches;
        let [user_timeout, fin_wait_2_timeout, handshake_timeout] = times;
        StateRules {
            syn_retries: retries[0],
            ecn_syn_retries: if ecn_fallback { 0 } else { u32::MAX },
            synack_retries: retries[1],
            drop_options_after: Some(retries[2]),
            handshake_timeout,
            give_up: if model { GiveUp::ModelTime(Span::from_millis(200)) } else { GiveUp::Retries },
            window_probe: if empty { WindowProbe::Empty } else { WindowProbe::Data },
            user_timeout,
            fin_wait_2_timeout,
            reset_unread,
            discard_unread,
            insecure_rst,
            insecure_syn,
            syn_fin,
            syn_data,
            fast_open,
            fin_on_acks,
            challenge_limit: Some(ChallengeLimit { count: retries[2], interval: Span::from_secs(1) }),
            ..stack
        }
    })
}

fn any_detector() -> impl Strategy<Value = LossDetector> {
    let rules = (0u32..400, any::<[bool; 4]>());
    let linux = rules.prop_map(|(max_reordering, [fack, early_retransmit, high_reordering, before])| {
        let order =
            if before || fack || early_retransmit { DetectorRules::LINUX_4_0 } else { AdaptiveRules::rack_off().order };
        LossDetector::Linux(AdaptiveRules { max_reordering, fack, early_retransmit, high_reordering, order })
    });
    let ncr = prop_oneof![Just(NcrVariant::Careful), Just(NcrVariant::Aggressive)].prop_map(LossDetector::Ncr);
    let rr_tcp = Just(LossDetector::RrTcp(RrRules::default()));
    prop_oneof![
        2 => Just(LossDetector::Rfc6675),
        3 => Just(LossDetector::FreeBsd9),
        2 => any::<bool>().prop_map(|bugfix| LossDetector::Tahoe(BerkeleyRules { bugfix })),
        2 => any::<bool>().prop_map(|bugfix| LossDetector::Reno(BerkeleyRules { bugfix })),
        2 => linux,
        3 => Just(LossDetector::Rack),
        1 => ncr,
        1 => rr_tcp,
    ]
}

pub(super) fn any_config() -> impl Strategy<Value = Config> {
    let buffer = || prop_oneof![1u64..3000, 3000u64..100_000, Just(1u64 << 22), Just(1u64 << 33)];
    let prr =
        prop_oneof![Just(Prr::Off), Just(Prr::Rfc6937), Just(Prr::Ssrb), Just(Prr::Rfc9937), Just(Prr::RateHalving)];
    let transfer = prop_oneof![
        2 => Just(TransferRules::default()),
        1 => Just(TransferRules::linux(6 << 20)),
        1 => Just(TransferRules::freebsd(2 << 20)),
    ];
    let rule = prop_oneof![Just(AccEcnRule::Rfc9768), Just(AccEcnRule::Linux)];
    let acc_ecn = (rule, prop::sample::select(&AccEcnOption::ALL[..]), 0u32..4)
        .prop_map(|(rule, option, beacon)| AccEcnRules { rule, option, beacon });
    let offload = prop_oneof![
        3 => Just(OffloadRule::default()),
        1 => Just(OffloadRule::LINUX_4_0),
        1 => Just(OffloadRule::LINUX_6_1),
        1 => Just(OffloadRule::LINUX_6_18)
    ];
    let write_size = prop_oneof![3 => Just(0u32), 1 => 1u32..10_000, 1 => Just(u32::MAX)];
    let ticks = (any::<bool>(), prop_oneof![3 => Just(0u64), 1 => 1u64..1_000_000_000]).prop_map(|(wheel, length)| {
        let ticks = if wheel { Ticks::WHEEL } else { Ticks::default() };
        ticks.of_length(Span::from_nanos(length)).unwrap()
    });
    let transfer = (transfer, acc_ecn, offload, (write_size, any::<bool>()), ticks).prop_map(
        |(transfer, acc_ecn, offload, (write_size, push_when_written), ticks)| TransferRules {
            acc_ecn,
            offload,
            write_size,
            push_when_written,
            ticks,
            ..transfer
        },
    );
    let loss = (any_detector(), any::<[bool; 3]>(), transfer, any_path());
    let mss = prop_oneof![2 => Just(1000u16), 1 => 1u16..100, 1 => 100u16..9001, 1 => Just(u16::MAX)];
    let hurry = ((0u8..20, 0u8..20, 0u8..20, 0u8..20), any::<[bool; 3]>()).prop_map(
        |((gap, mark, not_ect, idle), [after_ect, cwr, push])| QuickAcks {
            gap,
            mark,
            not_ect,
            idle,
            after_ect,
            cwr,
            push,
        },
    );
    let delayed_ack = (0u32..4, 0u64..200, 0u32..5, hurry, prop_oneof![Just(0u64), 1u64..100_000]);
    let numbers = (mss, 1u32..40, buffer(), buffer(), delayed_ack, 0u32..6);
    let feedback = prop_oneof![
        2 => Just(EcnFeedback::None),
        1 => Just(EcnFeedback::Classic),
        1 => Just(EcnFeedback::Dctcp),
        2 => Just(EcnFeedback::Accurate)
    ];
    let when = prop_oneof![Just(PacingWhen::Auto), Just(PacingWhen::On), Just(PacingWhen::Off)];
    let ratio = || prop_oneof![Just(1u32), Just(1000u32), 1u32..300];
    let pacing = (when, ratio(), ratio()).prop_map(|(when, ss_ratio, ca_ratio)| Pacing { when, ss_ratio, ca_ratio });
    let validation = prop_oneof![
        Just(CwndValidation::Off),
        Just(CwndValidation::Peer),
        Just(CwndValidation::Growth),
        Just(CwndValidation::Rfc2861),
        Just(CwndValidation::Rfc7661)
    ];
    (any::<[bool; 7]>(), prr, numbers, any_rules(), loss, feedback, (pacing, validation)).prop_map(
        |(switches, prr, numbers, states, loss, ecn, (pacing, cwnd_validation))| {
            let (loss_detector, [undo, frto, tlp], transfer, path) = loss;
            let [sack, dsack, timestamps, window_scaling, limited_transmit, nagle, slow_start_after_idle] = switches;
            let (mss, segments, send_buffer, receive_buffer, (count, timeout, quick, hurry, growth_from), max_retries) =
                numbers;
            Config {
                mss,
                initial_window: InitialWindow::Segments(segments),
                sack,
                dsack,
                timestamps,
                window_scaling,
                ecn,
                send_buffer,
                receive_buffer,
                delayed_ack: DelayedAck {
                    segments: count,
                    timeout: Span::from_millis(timeout),
                    quick,
                    hurry,
                    growth_from,
                },
                limited_transmit,
                prr,
                loss_detector,
                undo,
                frto,
                tlp,
                nagle,
                slow_start_after_idle,
                pacing,
                cwnd_validation,
                max_retries,
                transfer,
                states,
                path,
                ..Config::default()
            }
        },
    )
}
