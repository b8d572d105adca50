use std::collections::BTreeMap;

use ackclock_units::Random;
use proptest::prelude::*;

use super::*;

fn spec() -> SmoltcpSpec {
    SmoltcpSpec {
        cc: SmoltcpCc::Reno,
        mtu: 1500,
        send_buffer: 100_000,
        receive_buffer: 100_000,
        ack_delay: None,
        nagle: true,
        timestamps: true,
    }
}

/// The impairments of a path, the same both ways, until `calm_after` packets have passed it.
#[derive(Clone, Debug)]
struct Weather {
    delay: Span,
    /// Additional delay, uniform from 0 to this: reorders.
    jitter: Span,
    loss: f64,
    duplicate: f64,
    calm_after: u64,
}

const CALM: Weather =
    Weather { delay: Span::from_millis(10), jitter: Span::ZERO, loss: 0.0, duplicate: 0.0, calm_after: 0 };

/// Two stock sockets and the packets between them, with applications that send `bytes` from the
/// first to the second.
struct Pair {
    hosts: [Stock; 2],
    /// Destination and segment by time of arrival and number.
    packets: BTreeMap<(Time, u64), (usize, Segment)>,
    weather: Weather,
    random: Random,
    passed: u64,
    now: Time,
    left: [u64; 2],
    /// The number of one packet that is lost whatever the weather.
    drop_packet: Option<u64>,
}

impl Pair {
    fn new(specs: [&SmoltcpSpec; 2], weather: Weather, seed: u64, bytes: [u64; 2]) -> Pair {
        let mut hosts = [
            Stock::new(specs[0], ConnectionEnd::Sender, 49_152, 80, seed),
            Stock::new(specs[1], ConnectionEnd::Receiver, 80, 49_152, seed ^ 1),
        ];
        hosts[1].listen();
        hosts[0].connect(Time::ZERO);
        let random = Random::for_component(seed, 0, "pipe");
        Pair {
            hosts,
            packets: BTreeMap::new(),
            weather,
            random,
            passed: 0,
            now: Time::ZERO,
            left: bytes,
            drop_packet: None,
        }
    }

    fn launch(&mut self, to: usize, segment: Segment) {
        self.passed += 1;
        let stormy = self.passed <= self.weather.calm_after;
        let copies = if self.drop_packet == Some(self.passed) || stormy && self.random.chance(self.weather.loss) {
            0
        } else {
            1 + u64::from(stormy && self.random.chance(self.weather.duplicate))
        };
        for copy in 0..copies {
            let jitter = if stormy { self.random.below(self.weather.jitter.as_nanos() + 1) } else { 0 };
            let at = self.now + self.weather.delay + Span::from_nanos(jitter);
            self.packets.insert((at, self.passed * 2 + copy), (to, segment));
        }
    }

    /// Applications write, close behind the last byte, and read; then everything that can leave
    /// leaves.
    fn act(&mut self) {
        for side in 0..2 {
            let host = &mut self.hosts[side];
            self.left[side] -= host.write(self.now, self.left[side]);
            if self.left[side] == 0 && !host.closing {
                host.close(self.now);
            }
            host.read(self.now);
            let mut segment = Segment::default();
            let mut burst = 0;
            while self.hosts[side].transmit(self.now, &mut segment).is_some() {
                burst += 1;
                assert!(burst < 10_000, "sends without end: {:?}", self.hosts[side]);
                self.launch(1 - side, segment);
            }
            assert!(self.hosts[side].next_deadline(self.now) > self.now, "no progress: {:?}", self.hosts[side]);
        }
    }

    /// Runs until nothing more will happen.
    fn run(&mut self) {
        self.act();
        while self.step() {}
    }

    /// Advances to the next event, if there is one.
    fn step(&mut self) -> bool {
        let arrival = self.packets.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let deadline = self.hosts.iter().map(|host| host.next_deadline(self.now)).min().unwrap();
        let next = arrival.min(deadline);
        if next == Time::NEVER {
            return false;
        }
        assert!(next < Time::from_secs(1_000_000), "never ends: {:?}", self.hosts);
        self.now = next;
        while let Some(entry) = self.packets.first_entry().filter(|entry| entry.key().0 == next) {
            let (to, segment) = entry.remove();
            self.hosts[to].input(next, &segment, Ecn::NotEct);
        }
        for host in &mut self.hosts {
            if host.next_deadline(next) <= next {
                host.on_deadline(next);
            }
        }
        self.act();
        true
    }

    fn check(&self, bytes: [u64; 2]) {
        for (side, &sent) in bytes.iter().enumerate() {
            let (from, to) = (&self.hosts[side], &self.hosts[1 - side]);
            assert_eq!(from.integrity_error(), None);
            assert_eq!(to.delivered_bytes(), sent, "{:?}", self.hosts);
            assert!(to.peer_finished() && from.is_closed(), "{:?}", self.hosts);
        }
    }
}

#[test]
fn a_clean_path_carries_everything_once() {
    for cc in [SmoltcpCc::None, SmoltcpCc::Reno, SmoltcpCc::Cubic] {
        let spec = SmoltcpSpec { cc, ..spec() };
        let mut pair = Pair::new([&spec, &spec], CALM, 1, [1_000_000, 0]);
        pair.run();
        pair.check([1_000_000, 0]);
        assert_eq!(pair.hosts[0].acked_bytes(), 1_000_000);
        let stats = pair.hosts[0].stats();
        assert_eq!(stats.sent.retransmitted_packets, 0, "{cc:?}");
        // 1448 bytes a packet: MTU 1500 less headers and timestamps; whole ones but where the send
        // buffer ran dry.
        assert!(stats.sent.sent_packets >= 691 && stats.sent.sent_packets < 750, "{cc:?}: {stats:?}");
    }
}

/// A stock socket against hand-written packets. Stream offsets stand for sequence numbers, both
/// ways.
struct StockScript {
    stock: Stock,
    now: Time,
    stock_isn: u32,
}

/// The peer's initial sequence number.
const ISN: u32 = 0xffff_fff0;

impl StockScript {
    /// An established connection that the peer opened.
    fn receiving(spec: &SmoltcpSpec) -> StockScript {
        let mut stock = Stock::new(spec, ConnectionEnd::Receiver, 80, 49_152, 1);
        stock.listen();
        StockScript { stock, now: Time::ZERO, stock_isn: 0 }.handshake(Flags::SYN, 60_000)
    }

    /// An established connection that the stock socket opened to a peer with this window.
    fn sending(spec: &SmoltcpSpec, window: u16) -> StockScript {
        let mut stock = Stock::new(spec, ConnectionEnd::Sender, 49_152, 80, 1);
        stock.connect(Time::ZERO);
        StockScript { stock, now: Time::ZERO, stock_isn: 0 }.handshake(Flags::SYN | Flags::ACK, window)
    }

    fn handshake(mut self, flags: Flags, window: u16) -> StockScript {
        if let [syn] = self.take()[..] {
            self.stock_isn = syn.seq;
        }
        let mut syn = self.segment(0, 0, flags, window);
        syn.seq = ISN;
        syn = Segment { mss: Some(1460), window_scale: Some(0), sack_permitted: true, ..syn };
        self.stock.input(self.now, &syn, Ecn::NotEct);
        self.stock_isn = self.take()[0].seq.wrapping_sub(u32::from(flags.contains(Flags::ACK)));
        self.acknowledge(0, window);
        assert!(self.stock.is_established());
        self.take();
        self
    }

    fn segment(&self, offset: u64, len: u32, flags: Flags, window: u16) -> Segment {
        let (source_port, destination_port) = (self.stock.remote_port, self.stock.local_port);
        Segment {
            payload: Payload { offset, len },
            source_port,
            destination_port,
            seq: ISN.wrapping_add(1).wrapping_add(offset as u32),
            ack: self.stock_isn.wrapping_add(1),
            flags,
            window,
            ..Segment::default()
        }
    }

    /// The peer sends data.
    fn data(&mut self, offset: u64, len: u32, flags: Flags) {
        let segment = self.segment(offset, len, flags | Flags::ACK, 60_000);
        self.stock.input(self.now, &segment, Ecn::NotEct);
    }

    /// The peer acknowledges everything before `offset`; an offset one past the data stands for
    /// FIN.
    fn acknowledge(&mut self, offset: u32, window: u16) {
        let mut segment = self.segment(0, 0, Flags::ACK, window);
        segment.ack = segment.ack.wrapping_add(offset);
        self.stock.input(self.now, &segment, Ecn::NotEct);
    }

    /// All that the stock socket sends now.
    fn take(&mut self) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut segment = Segment::default();
        while self.stock.transmit(self.now, &mut segment).is_some() {
            segments.push(segment);
            assert!(segments.len() < 1000, "sends without end");
        }
        assert!(self.stock.next_deadline(self.now) > self.now);
        segments
    }

    /// Lets the next deadline pass.
    fn wait(&mut self) {
        self.now = self.stock.next_deadline(self.now);
        assert_ne!(self.now, Time::NEVER, "waits for ever: {:?}", self.stock);
        self.stock.on_deadline(self.now);
    }

    /// The ranges and flags of `segments`.
    fn ranges(segments: &[Segment]) -> Vec<(u64, u32, Flags)> {
        segments.iter().map(|segment| (segment.payload.offset, segment.payload.len, segment.flags)).collect()
    }
}

/// The capacity is set at build time, in `.cargo/config.toml`.
#[test]
fn the_build_holds_512_ranges_out_of_order() {
    let mut script = StockScript::receiving(&spec());
    for range in 0..512 {
        script.data(10 + 20 * range, 10, Flags::NONE);
    }
    assert_eq!(script.stock.read(script.now), 0);
    for hole in 0..512 {
        script.data(20 * hole, 10, Flags::NONE);
        assert_eq!(script.stock.read(script.now), 20, "hole {hole}");
    }
    assert_eq!(script.stock.integrity_error(), None);
}

#[test]
fn sequence_numbers_wrap() {
    let mut script = StockScript::receiving(&spec());
    let first = u64::from(ISN.wrapping_neg());
    script.data(0, first as u32 + 20, Flags::FIN);
    assert_eq!((script.stock.delivered_bytes(), script.stock.peer_finished()), (first + 20, true));
    for (low, near, offset) in [
        (5, 0, 5),
        (0xffff_ffff, 0x1_0000_0000, 0xffff_ffff),
        (0, 0xffff_ffff, 0x1_0000_0000),
        (7, 0x5_0000_0000, 0x5_0000_0007),
        (0xffff_ffff, 0, 0),
    ] {
        assert_eq!(lift(low, near), offset);
    }
}

#[test]
fn wrong_bytes_are_seen_when_they_are_read() {
    let mut script = StockScript::receiving(&spec());
    script.data(0, 100, Flags::NONE);
    let mut segment = script.segment(100, 50, Flags::ACK, 1000);
    segment.payload.offset = 101;
    script.stock.input(script.now, &segment, Ecn::NotEct);
    assert_eq!(script.stock.integrity_error(), Some(IntegrityError::Delivered(100)));
}

#[test]
fn a_fin_past_the_window_waits_for_its_data() {
    let mut script = StockScript::receiving(&SmoltcpSpec { receive_buffer: 100, ..spec() });
    script.data(0, 150, Flags::FIN);
    assert_eq!((script.stock.delivered_bytes(), script.stock.peer_finished()), (100, false));
    script.take();
    script.data(100, 50, Flags::FIN);
    assert_eq!((script.stock.delivered_bytes(), script.stock.peer_finished()), (150, true));
}

/// The same before the socket has acknowledged anything: the FIN comes right behind SYN, ACK.
#[test]
fn a_fin_past_the_buffer_waits_for_its_data() {
    let stock = Stock::new(&SmoltcpSpec { receive_buffer: 100, ..spec() }, ConnectionEnd::Sender, 1, 2, 3);
    let mut script = StockScript { stock, now: Time::ZERO, stock_isn: 0 };
    script.stock.connect(script.now);
    script.stock_isn = script.take()[0].seq;
    let syn = Segment { seq: ISN, ..script.segment(0, 0, Flags::SYN | Flags::ACK, 60_000) };
    script.stock.input(script.now, &syn, Ecn::NotEct);
    script.data(0, 150, Flags::FIN);
    // smoltcp counts this window from the SYN: one byte short.
    assert_eq!((script.stock.delivered_bytes(), script.stock.peer_finished()), (99, false));
}

#[test]
fn data_past_the_buffer_is_cut() {
    // The SYN says 65535 bytes; smoltcp believes that it said 65535 << 1.
    let mut script = StockScript::receiving(&SmoltcpSpec { receive_buffer: 70_000, ..spec() });
    script.data(69_990, 100, Flags::NONE);
    script.data(100_000, 100, Flags::FIN);
    for offset in (0..69_990).step_by(1000) {
        script.data(offset, 1000, Flags::NONE);
    }
    assert_eq!((script.stock.delivered_bytes(), script.stock.integrity_error()), (70_000, None));
}

#[test]
fn a_fin_alone_is_sent_again_in_spite_of_duplicate_acknowledgments() {
    let mut script = StockScript::sending(&spec(), 60_000);
    script.stock.write(script.now, 10);
    script.stock.close(script.now);
    assert_eq!(StockScript::ranges(&script.take()), [(0, 10, Flags::FIN | Flags::ACK)]);
    for _ in 0..5 {
        script.acknowledge(10, 60_000);
    }
    assert_eq!(script.take(), []);
    script.wait();
    assert_eq!(StockScript::ranges(&script.take()), [(0, 0, Flags::FIN | Flags::ACK)]);
    script.acknowledge(11, 60_000);
    assert_eq!(script.stock.acked_bytes(), 10);
}

#[test]
fn a_window_that_closes_behind_lost_data_is_probed() {
    for reopened in [false, true] {
        let mut script = StockScript::sending(&SmoltcpSpec { timestamps: false, nagle: false, ..spec() }, 2000);
        script.stock.write(script.now, 5000);
        let sent = script.take();
        assert_eq!(StockScript::ranges(&sent), [(0, 1460, Flags::ACK), (1460, 540, Flags::ACK)]);
        script.acknowledge(1460, 0);
        if reopened {
            script.acknowledge(1460, 500);
        }
        assert_eq!(script.take(), []);
        script.wait();
        let window = if reopened { 500 } else { 1 };
        assert_eq!(StockScript::ranges(&script.take()), [(1460, window, Flags::ACK)]);
        assert_eq!(script.stock.stats().sent.retransmitted_packets, 1);
    }
}

#[test]
fn fin_wait_2_behind_a_closed_window_lets_time_pass() {
    let mut script = StockScript::sending(&spec(), 0);
    script.stock.write(script.now, 1);
    script.stock.close(script.now);
    assert_eq!(script.take(), []);
    script.wait();
    assert_eq!(StockScript::ranges(&script.take()), [(0, 1, Flags::FIN | Flags::ACK)]);
    script.acknowledge(2, 0);
    script.take();
    for _ in 0..3 {
        script.wait();
        assert!(script.take().len() <= 1);
    }
    let mut fin = script.segment(0, 0, Flags::FIN | Flags::ACK, 0);
    fin.ack = fin.ack.wrapping_add(2);
    script.stock.input(script.now, &fin, Ecn::NotEct);
    assert!(script.stock.peer_finished() && script.stock.is_time_wait());
    script.take();
    script.wait();
    script.take();
    assert!(script.stock.is_closed());
}

#[test]
fn an_acknowledgment_after_a_timeout_carries_the_highest_sequence_number() {
    let mut script = StockScript::sending(&SmoltcpSpec { timestamps: false, nagle: false, ..spec() }, 60_000);
    script.stock.write(script.now, 10_000);
    let highest = script.take().last().map(|last| last.seq.wrapping_add(last.payload.len));
    script.wait();
    assert_eq!(StockScript::ranges(&script.take()), [(0, 1460, Flags::ACK)]);
    script.data(0, 10, Flags::NONE);
    let answer = script.take();
    assert_eq!((answer.len(), answer.first().map(|ack| ack.seq)), (1, highest));
}

#[test]
fn deadlines_are_met_to_the_microsecond() {
    let mut script = StockScript {
        stock: Stock::new(&spec(), ConnectionEnd::Sender, 1, 2, 3),
        now: Time::from_nanos(1500),
        stock_isn: 0,
    };
    script.stock.connect(script.now);
    assert_eq!(script.stock.next_deadline(script.now), script.now);
    let first = script.take();
    assert_eq!((first.len(), first[0].flags, first[0].mss), (1, Flags::SYN, Some(1460)));
    // The initial timeout of 1 s, counted from the microsecond in which the SYN left.
    let due = Time::from_micros(1_000_001);
    assert_eq!(script.stock.next_deadline(script.now), due);
    script.now = due - Span::from_nanos(1);
    assert_eq!(script.take(), []);
    script.now = due;
    let again = script.take();
    assert_eq!((again.len(), again[0].seq), (1, first[0].seq));
    assert_eq!(again[0].timestamps.map(|timestamps| timestamps.value), Some(1000));
}

#[test]
fn writes_and_close_wait_for_the_connection() {
    let mut stock = Stock::new(&SmoltcpSpec { send_buffer: 500, ..spec() }, ConnectionEnd::Sender, 1, 2, 3);
    stock.connect(Time::ZERO);
    assert_eq!(stock.write(Time::ZERO, 400), 400);
    assert_eq!(stock.write(Time::ZERO, 400), 100);
    stock.close(Time::ZERO);
    assert_eq!(stock.write(Time::ZERO, 1), 0);
    let mut script = StockScript { stock, now: Time::ZERO, stock_isn: 0 };
    script = script.handshake(Flags::SYN | Flags::ACK, 60_000);
    assert_eq!((script.stock.acked_bytes(), script.stock.stats().sent.sent_packets), (0, 1));
    script.acknowledge(501, 60_000);
    assert_eq!(script.stock.acked_bytes(), 500);
    assert!(!script.stock.is_closed());
}

#[test]
fn abort_resets_the_peer() {
    let mut pair = Pair::new([&spec(), &spec()], CALM, 1, [1_000_000, 0]);
    pair.act();
    for _ in 0..10 {
        pair.step();
    }
    assert!(pair.hosts[0].is_established() && pair.hosts[1].is_established());
    pair.hosts[0].abort(pair.now);
    assert!(!pair.hosts[0].is_closed());
    pair.run();
    assert!(pair.hosts[0].is_closed() && pair.hosts[1].is_closed());
    assert!(!pair.hosts[1].peer_finished());
}

#[test]
fn one_loss_is_one_retransmission() {
    let spec = SmoltcpSpec { cc: SmoltcpCc::None, ..spec() };
    let mut pair = Pair::new([&spec, &spec], CALM, 1, [50_000, 0]);
    pair.drop_packet = Some(9);
    pair.run();
    pair.check([50_000, 0]);
    assert_eq!(pair.hosts[0].stats().sent.retransmitted_packets, 1);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let weather = Weather { loss: 0.1, calm_after: 200, jitter: Span::from_millis(5), ..CALM };
        let mut pair = Pair::new([&spec(), &spec()], weather, seed, [200_000, 10_000]);
        pair.run();
        (pair.now, pair.passed, pair.hosts[0].isn)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
#[should_panic(expected = "an MTU of 67 bytes")]
fn an_mtu_below_the_least_is_refused() {
    Stock::new(&SmoltcpSpec { mtu: Stock::MIN_MTU - 1, ..spec() }, ConnectionEnd::Sender, 1, 2, 3);
}

#[test]
#[should_panic(expected = "a buffer of 0 bytes")]
fn an_empty_buffer_is_refused() {
    Stock::new(&SmoltcpSpec { receive_buffer: 0, ..spec() }, ConnectionEnd::Sender, 1, 2, 3);
}

proptest! {
    #[test]
    fn any_weather_loses_nothing(
        seed: u64,
        (loss, duplicate) in (0.0..0.3f64, 0.0..0.2f64),
        jitter in prop_oneof![Just(0u64), 0..30_000_000u64],
        calm_after in 0..400u64,
        bytes in (0..60_000u64, prop_oneof![Just(0), 0..20_000u64]),
        buffers in prop::array::uniform4(prop_oneof![1..300u64, 1000..20_000u64, 60_000..300_000u64]),
        mtu in prop::array::uniform2(prop_oneof![68..200u16, Just(576), Just(1500), Just(9000)]),
        options in any::<(bool, bool, bool, bool)>(),
        ack_delay in prop::option::of(0..50u64),
        cc in prop::sample::select(&[SmoltcpCc::None, SmoltcpCc::Reno, SmoltcpCc::Cubic][..]),
    ) {
        let ack_delay = ack_delay.map(Span::from_millis);
        let (nagle, timestamps, nagle_back, timestamps_back) = options;
        let [send_buffer, receive_buffer, send_back, receive_back] = buffers;
        let forward = SmoltcpSpec { cc, mtu: mtu[0], send_buffer, receive_buffer: receive_back, ack_delay, nagle, timestamps };
        let back = SmoltcpSpec {
            cc, mtu: mtu[1], send_buffer: send_back, receive_buffer, ack_delay: None, nagle: nagle_back, timestamps: timestamps_back,
        };
        let weather = Weather { delay: Span::from_millis(10), jitter: Span::from_nanos(jitter), loss, duplicate, calm_after };
        let bytes = [bytes.0, bytes.1];
        let mut pair = Pair::new([&forward, &back], weather, seed, bytes);
        pair.run();
        pair.check(bytes);
    }

    #[test]
    fn no_packet_panics(
        opens: bool,
        receive_buffer in prop_oneof![1..300u64, 60_000..200_000u64],
        packets in prop::collection::vec(
            (prop_oneof![Just(0x10u16), Just(0x11), Just(0x12), any::<u16>()], -300..70_000i64, 0..3000u32, -5..3000i32, prop_oneof![Just(0u16), any::<u16>()], 0..2000u64),
            1..40,
        ),
    ) {
        let spec = SmoltcpSpec { receive_buffer, ..spec() };
        let mut script = if opens { StockScript::sending(&spec, 5000) } else { StockScript::receiving(&spec) };
        script.stock.write(script.now, 2000);
        for (index, (flags, offset, len, ack, window, wait)) in packets.into_iter().enumerate() {
            let mut segment = script.segment(offset.max(0) as u64, len, Flags::from_bits(flags), window);
            segment.seq = ISN.wrapping_add(1).wrapping_add(offset as u32);
            segment.ack = segment.ack.wrapping_add(ack as u32);
            script.stock.input(script.now, &segment, Ecn::Ce);
            if index % 2 == 0 {
                script.take();
                script.now = (script.now + Span::from_millis(wait)).min(script.stock.next_deadline(script.now));
            }
            if index == 20 {
                script.stock.close(script.now);
            }
        }
        script.take();
    }
}
