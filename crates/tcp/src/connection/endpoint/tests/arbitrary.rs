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
    Controller, CwndValidation, GiveUp, IcmpError, KeepAlive, LossDetector, MtuProbing, NcrVariant, OffloadRule,
    Pacing, PacingWhen, PathRules, QuickAcks, Received, RrRules, Sending, SynFin, Ticks, TransferRules, WindowProbe,
    WindowRule,
};

/// What happens next.
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
    /// From the next byte expected.
    seq: i64,
    len: u32,
    /// All that was sent if `None`.
    ack: Option<prop::sample::Index>,
    /// Beyond SND.NXT.
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
    let rules = (0u32..400, any::<[bool; 3]>());
    let linux = rules.prop_map(|(max_reordering, [fack, early_retransmit, high_reordering])| {
        LossDetector::Linux(AdaptiveRules { max_reordering, fack, early_retransmit, high_reordering })
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
        3 => Just(OffloadRule::Off),
        1 => Just(OffloadRule::Linux40),
        1 => Just(OffloadRule::Linux61),
        1 => Just(OffloadRule::Linux618)
    ];
    let write_size = prop_oneof![3 => Just(0u32), 1 => 1u32..10_000, 1 => Just(u32::MAX)];
    let ticks = (any::<bool>(), prop_oneof![3 => Just(0u64), 1 => 1u64..1_000_000_000]).prop_map(|(wheel, length)| {
        let ticks = if wheel { Ticks::WHEEL } else { Ticks::default() };
        ticks.of_length(Span::from_nanos(length)).unwrap()
    });
    let transfer =
        (transfer, acc_ecn, offload, write_size, ticks).prop_map(|(transfer, acc_ecn, offload, write_size, ticks)| {
            TransferRules { acc_ecn, offload, write_size, ticks, ..transfer }
        });
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

/// How the connection begins.
#[derive(Clone, Copy, Debug)]
enum Start {
    Connect,
    Listen,
    Opened,
    Accepted,
}

/// The endpoint with what has to hold of it.
struct Watched {
    endpoint: Endpoint,
    now: Time,
    isn: u32,
    peer_isn: u32,
    /// The farthest right edge that the peer has announced.
    edge: u64,
    /// One past the last byte that was sent.
    sent: u64,
    /// The farthest right edge that the endpoint has announced.
    own_edge: u64,
}

impl Watched {
    fn plausible(&self, shape: &Shape) -> Segment {
        let (una, nxt) = self.endpoint.sequence();
        let receiver = &self.endpoint.receiver;
        let irs =
            if self.endpoint.state() == State::Listen || receiver.next() == 0 { self.peer_isn } else { receiver.irs() };
        let is_syn = shape.flags.contains(Flags::SYN);
        let seq = if is_syn { 0 } else { receiver.next().saturating_add_signed(shape.seq) };
        let outstanding = (nxt - una) as usize;
        let ack = shape.ack.map_or(nxt, |ack| una + ack.index(outstanding + 1) as u64) + shape.ack_beyond;
        let mut sack = SackBlocks::default();
        for (a, b) in &shape.blocks {
            let edge = |index: &prop::sample::Index| lower(una + index.index(outstanding + 1) as u64, self.isn);
            sack.push(edge(a), edge(b));
        }
        let has_cookie = is_syn && shape.window.is_multiple_of(3);
        let millis = (self.now.as_nanos() / 1_000_000) as u32;
        Segment {
            payload: Payload { offset: seq.saturating_sub(1), len: if is_syn && !has_cookie { 0 } else { shape.len } },
            seq: lower(seq, irs),
            ack: lower(ack, self.isn),
            flags: shape.flags,
            window: shape.window,
            mss: shape.mss,
            window_scale: is_syn.then_some((shape.window % 16) as u8),
            sack_permitted: is_syn,
            timestamps: shape.timestamps.map(|late| Timestamps {
                value: millis.wrapping_add_signed(late),
                echo: millis.wrapping_sub(self.endpoint.negotiated.clock_offset()),
            }),
            sack,
            acc_ecn: shape.acc_ecn,
            fast_open: has_cookie.then(|| FastOpen::new(b"ackclock")),
            ..Segment::default()
        }
    }

    fn input(&mut self, segment: &Segment, ecn: Ecn) {
        self.endpoint.input(self.now, segment, ecn);
        let send = &self.endpoint.send;
        self.edge = self.edge.max(send.una() + send.window());
        assert!(send.una() <= send.nxt());
        self.endpoint.board.check();
    }

    fn transmit(&mut self) {
        let mut segment = Segment::default();
        // Segments may have a single byte of payload, and H-TCP opens the window by thousands of
        // them after a long time without congestion.
        let (una, _) = self.endpoint.sequence();
        let most = 10_000 + 2 * (self.endpoint.send.written() + 2).saturating_sub(una);
        let mut unit_cwnd = 0;
        for _ in 0..most {
            let cwnd = self.endpoint.cwnd();
            let (pipe, nxt, mss) = (self.in_flight(), self.endpoint.send.nxt(), self.endpoint.negotiated.mss());
            let mut exempt = self.endpoint.recovery.forces_retransmission()
                || self.endpoint.recovery.probe().is_due()
                || self.endpoint.persist.has_expired()
                || self.endpoint.persist.rules();
            if self.endpoint.transmit(self.now, &mut segment).is_none() {
                self.assert_alive();
                return;
            }
            // A probe of the path's MTU counts as two segments, whatever its size.
            exempt |= segment.payload.len > mss;
            // Nobody knows a window before the first SYN/ACK (RFC 7413).
            let with_syn = segment.flags.contains(Flags::SYN);
            exempt |= with_syn;
            let is_data = segment.payload.len > 0 || segment.flags.contains(Flags::FIN);
            if segment.payload.len > 0 && segment.acc_ecn.is_some() && !exempt {
                let options = segment.header_len() - 20 - self.endpoint.negotiated.options_len();
                assert!(segment.payload.len + options <= self.endpoint.negotiated.mss(), "more than the MSS");
            }
            if !self.endpoint.continues_unit() {
                unit_cwnd = cwnd;
            }
            // Linux 4.0 restarts the window after an idle time once the first unit is gone, which
            // may be several segments that the window of before has room for.
            let first_unit = if self.endpoint.config.transfer.offload == OffloadRule::Linux40 { unit_cwnd } else { 0 };
            // One unit for a FIN, which occupies no window in the network.
            let allowed = self.endpoint.cwnd().max(first_unit).max(pipe) + self.limited_transmit() + 1;
            let in_flight = self.in_flight();
            assert!(
                !is_data || exempt || in_flight <= allowed,
                "more than the congestion window: {in_flight} of {allowed}, {pipe} before, {:?}, {segment:?}",
                self.endpoint.recovery.state()
            );
            let new = self.endpoint.send.nxt().max(1) - nxt.max(1);
            assert!(
                self.endpoint.send.nxt() <= self.edge.max(self.sent).max(1) || with_syn || (exempt && new == 1),
                "beyond the window"
            );
            self.sent = self.sent.max(self.endpoint.send.nxt());
            self.watch_own_window(&segment);
        }
        panic!("transmits for ever");
    }

    /// What counts against the window. RFC 6675's pipe counts a segment twice that is sent again
    /// without being declared lost, as a window probe is that may go as a whole now. The BSDs count
    /// bytes of the stream, and in recovery with SACK those that are sent again alone.
    fn in_flight(&self) -> u64 {
        let (endpoint, pipe) = (&self.endpoint, self.endpoint.pipe());
        if !endpoint.bsd_episodes() {
            return pipe;
        }
        let sack = endpoint.negotiated.sack() && endpoint.recovery.state() == CaState::Recovery;
        pipe.min(if sack { endpoint.board.resent() } else { endpoint.board.outstanding() })
    }

    /// What may go beyond the window for the first two duplicate ACKs (RFC 3042 section 2) by the
    /// BSDs' rules; by others they count as segments that have left.
    fn limited_transmit(&self) -> u64 {
        let endpoint = &self.endpoint;
        let applies = endpoint.config.limited_transmit
            && endpoint.bsd_episodes()
            && matches!(endpoint.recovery.state(), CaState::Disorder | CaState::Cwr);
        if applies { 2 * u64::from(endpoint.negotiated.mss()) } else { 0 }
    }

    /// What is outstanding or waits has a timer that sees to it, even if the peer never says
    /// another word.
    fn assert_alive(&self) {
        let (endpoint, send) = (&self.endpoint, &self.endpoint.send);
        let open = !matches!(endpoint.state(), State::Closed | State::Listen | State::TimeWait | State::FinWait2);
        let opening = matches!(endpoint.state(), State::SynSent | State::SynReceived);
        let waits = !send.is_fin_sent() && (send.written() + 1 > send.nxt() || send.is_closed());
        if open && (opening || waits || !endpoint.board.is_empty()) {
            let timers = &endpoint.timers;
            let least = timers
                .retransmission()
                .min(endpoint.persist.deadline())
                .min(endpoint.pacer.deadline())
                .min(timers.handshake());
            assert!(least < Time::NEVER, "stuck");
        }
    }

    /// The right edge never moves left, but for what the scale, and a SYN at all, cannot express
    /// (RFC 7323 section 2.4).
    fn watch_own_window(&mut self, segment: &Segment) {
        if !segment.flags.contains(Flags::ACK)
            || segment.flags.contains(Flags::RST)
            || segment.flags.contains(Flags::SYN)
        {
            return;
        }
        let shift = if self.endpoint.negotiated.scaling() { self.endpoint.own_shift() } else { 0 };
        // An ACK of before the segment that came last may go out first (RFC 8257 section 3.2).
        let next = self.endpoint.receiver.next();
        let ack = next - u64::from(self.endpoint.receiver.ack_number().wrapping_sub(segment.ack));
        let edge = ack + (u64::from(segment.window) << shift);
        assert!(edge + (1 << shift) > self.own_edge, "the right edge moved left");
        self.own_edge = self.own_edge.max(edge);
        if self.endpoint.config.transfer.window == WindowRule::Rfc {
            // FreeBSD rounds the buffer up to whole segments, Linux the window to what the scale
            // can express.
            let buffer = self.endpoint.config.receive_buffer.max(1);
            assert!(edge <= self.endpoint.receiver.units_read() + buffer, "more than the buffer holds");
        }
    }

    fn on_deadline(&mut self) {
        self.endpoint.on_deadline(self.now);
        self.transmit();
        assert!(self.endpoint.next_deadline() > self.now, "a deadline in the past");
    }

    fn call(&mut self, call: &Call) {
        match call {
            &Call::Write(bytes) => {
                assert!(self.endpoint.write(bytes) <= bytes);
            }
            &Call::Read(bytes) => {
                assert!(self.endpoint.read(bytes) <= bytes);
            }
            Call::Close => self.endpoint.close(self.now),
            &Call::Shutdown(how) => self.endpoint.shutdown(how),
            Call::Abort => self.endpoint.abort(),
            &Call::Options([linger, user_timeout, keepalive]) => {
                let span = |seconds: Option<u64>| seconds.map(Span::from_secs);
                self.endpoint.set_linger(span(linger));
                self.endpoint.set_user_timeout(span(user_timeout));
                let times =
                    span(keepalive).map(|idle| KeepAlive { idle, interval: idle + Span::from_secs(1), count: 3 });
                self.endpoint.set_keepalive(self.now, times);
            }
            Call::TakeOver(controller) => self.endpoint.set_congestion_control(self.now, controller.build()),
            &Call::MaxPacingRate(rate) => self.endpoint.set_max_pacing_rate(rate),
            &Call::Look(bytes) => self.look(bytes),
            Call::Noise(segment, ecn) => self.input(segment, *ecn),
            Call::Icmp(error, index) => {
                let (una, nxt) = self.endpoint.sequence();
                let sequence = match error.sequence % 8 {
                    0 => error.sequence,
                    _ => lower(una + index.index((nxt - una) as usize + 1) as u64, self.isn),
                };
                self.endpoint.icmp(self.now, &IcmpError { sequence, ..*error });
                self.endpoint.board.check();
            }
            &Call::Route(mtu) => self.endpoint.set_path_mtu(mtu),
            Call::Plausible(shape) => {
                let segment = self.plausible(shape);
                self.input(&segment, shape.ecn);
            }
            &Call::Wait(millis) => {
                let end = self.now + Span::from_millis(millis);
                let mut times = 0;
                while self.endpoint.next_deadline() <= end {
                    self.now = self.endpoint.next_deadline();
                    self.on_deadline();
                    times += 1;
                    assert!(times < 10_000, "deadlines for ever");
                }
                self.now = end;
            }
            &Call::Late(millis) => {
                self.now += Span::from_millis(millis);
                if self.endpoint.next_deadline() <= self.now {
                    self.on_deadline();
                }
            }
        }
        self.transmit();
    }

    /// What the calls of a socket tell agrees.
    fn look(&mut self, bytes: u64) {
        let endpoint = &mut self.endpoint;
        let ready = endpoint.readiness();
        assert_eq!(ready.error, endpoint.take_error().is_some());
        assert!(endpoint.unsent() <= endpoint.unacknowledged());
        let unread = endpoint.unread();
        match endpoint.recv(bytes) {
            Received::Data(read) => assert!(read <= unread && ready.readable),
            Received::EndOfFile => assert!(unread == 0 && ready.read_closed),
            Received::WouldBlock | Received::Failed(_) => assert!(unread == 0),
        }
        match endpoint.send(bytes) {
            Sending::Taken(taken) => assert!(taken <= bytes),
            Sending::WouldBlock => assert!(!ready.hung_up),
            Sending::Failed(_) => {
                assert!(endpoint.send.is_closed() || matches!(endpoint.state(), State::Closed | State::Listen));
            }
        }
    }

    /// The handshake with a peer that agrees to everything.
    fn start(&mut self, start: Start) {
        match start {
            Start::Connect => self.endpoint.connect(),
            Start::Listen => self.endpoint.listen(),
            Start::Opened => {
                self.endpoint.connect();
                self.transmit();
                self.input_plain(Flags::SYN | Flags::ACK | Flags::ECE);
            }
            Start::Accepted => {
                self.endpoint.listen();
                self.input_plain(Flags::SYN | Flags::ECE | Flags::CWR);
                self.transmit();
                self.input_plain(Flags::ACK);
            }
        }
        self.transmit();
    }

    fn input_plain(&mut self, flags: Flags) {
        let shape = Shape {
            flags,
            seq: 0,
            len: 0,
            ack: None,
            ack_beyond: 0,
            window: 65_535,
            blocks: Vec::new(),
            timestamps: Some(0),
            mss: Some(1460),
            ecn: Ecn::NotEct,
            acc_ecn: None,
        };
        let segment = self.plausible(&shape);
        self.input(&segment, Ecn::NotEct);
    }
}

fn any_start() -> impl Strategy<Value = Start> {
    prop_oneof![1 => Just(Start::Connect), 1 => Just(Start::Listen), 4 => Just(Start::Opened), 4 => Just(Start::Accepted)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_breaks_an_endpoint(
        config in any_config(),
        controller in any_controller(),
        isn: u32,
        peer_isn: u32,
        start in any_start(),
        calls in prop::collection::vec(any_call(), 1..120),
    ) {
        // Whether segments may take the short way makes no difference.
        let [with, without] = [true, false].map(|header_prediction| {
            let config = Config { header_prediction, ..config.clone() };
            let endpoint = Endpoint::new(config, controller.build(), Ports { local: 1, remote: 2 }, isn, 77);
            let mut watched = Watched { endpoint, now: Time::ZERO, isn, peer_isn, edge: 0, sent: 0, own_edge: 0 };
            watched.start(start);
            for call in &calls {
                watched.call(call);
            }
            everything(&mut watched.endpoint)
        });
        prop_assert_eq!(with, without);
    }
}
