//! A peer that does as the test says, and the test's clock.

use ackclock_cc::{CongestionControl, NewReno, NewRenoConfig};

use super::*;
use crate::seq::{lift, lower};

/// Both streams wrap around 2^32 soon.
const ISN: u32 = 0u32.wrapping_sub(1500);
const PEER_ISN: u32 = 0u32.wrapping_sub(500);
/// The peer's timestamp clock, which wraps soon as well.
const PEER_TS: u32 = 0u32.wrapping_sub(200);

/// Segments of 1000 bytes; no timestamps, no window scale, no Nagle, an initial window of four
/// segments.
pub(super) fn config() -> Config {
    Config {
        mss: 1000,
        initial_window: InitialWindow::Segments(4),
        timestamps: false,
        window_scaling: false,
        nagle: false,
        ..Config::default()
    }
}

/// An endpoint, its peer's part, and the time. Sequence numbers are relative, as inside the
/// endpoint: a SYN is 0, the first byte 1. The endpoint's segments are collected at once, after
/// every call.
pub(super) struct Script {
    pub(super) endpoint: Endpoint,
    pub(super) now: Time,
    /// The sequence number and the window of the peer's next segment.
    pub(super) seq: u64,
    pub(super) window: u16,
    /// The window scale option of the peer's SYN, if the endpoint offers one.
    pub(super) shift: u8,
    log: Vec<(u64, Segment, Ecn)>,
    last_timestamp: u32,
}

impl Script {
    pub(super) fn new(config: Config) -> Script {
        Script::controlled(config, Box::new(NewReno::new(NewRenoConfig::default())))
    }

    /// An endpoint with another controller.
    pub(super) fn controlled(config: Config, cc: Box<dyn CongestionControl>) -> Script {
        let endpoint = Endpoint::new(config, cc, Ports { local: 1, remote: 2 }, ISN, 0);
        Script { endpoint, now: Time::ZERO, seq: 1, window: 65_535, shift: 0, log: Vec::new(), last_timestamp: 0 }
    }

    /// Opened actively, the peer agreeing to all options, 100 ms after the SYN; the log is empty.
    pub(super) fn open(config: Config) -> Script {
        Script::open_with(config, |_| ())
    }

    /// Opens a connection as `open` does, after `prepare`.
    pub(super) fn open_with(config: Config, prepare: impl FnOnce(&mut Script)) -> Script {
        let mut script = Script::new(config);
        prepare(&mut script);
        script.connected()
    }

    /// The handshake of an active open.
    pub(super) fn connected(self) -> Script {
        let mut script = self;
        script.endpoint.connect();
        script.pump();
        script.wait(100);
        let syn = script.syn(Flags::SYN | Flags::ACK);
        script.input(syn);
        assert_eq!(script.endpoint.state(), State::Established);
        assert_eq!(script.data(), [(0, 1)]);
        script
    }

    /// Opened passively.
    pub(super) fn accept(config: Config) -> Script {
        let mut script = Script::new(config);
        script.endpoint.listen();
        let syn = script.syn(Flags::SYN);
        script.input(syn);
        script.wait(100);
        script.ack(1);
        assert_eq!(script.endpoint.state(), State::Established);
        assert_eq!(script.sent(), ["S. 0:1 ack 1"]);
        script
    }

    /// The peer's SYN, with every option that the endpoint is set up for.
    pub(super) fn syn(&self, flags: Flags) -> Segment {
        let config = &self.endpoint.config;
        let ecn = match (config.ecn, flags.contains(Flags::ACK)) {
            (EcnFeedback::None, _) => Flags::NONE,
            (EcnFeedback::Classic | EcnFeedback::Dctcp, false) => Flags::ECE | Flags::CWR,
            (EcnFeedback::Classic | EcnFeedback::Dctcp, true) => Flags::ECE,
            (EcnFeedback::Accurate, false) => Flags::from_ace(0b111),
            // The SYN arrived without ECT.
            (EcnFeedback::Accurate, true) => Flags::from_ace(0b010),
        };
        Segment {
            mss: Some(config.mss),
            sack_permitted: config.sack,
            window_scale: config.window_scaling.then_some(self.shift),
            timestamps: config.timestamps.then(|| self.timestamps()),
            ..self.segment(flags | ecn, 0, 0, 1)
        }
    }

    pub(super) fn timestamps(&self) -> Timestamps {
        let millis = (self.now.as_nanos() / 1_000_000) as u32;
        Timestamps { value: PEER_TS.wrapping_add(millis), echo: self.last_timestamp }
    }

    /// A segment of the peer with the stream's bytes.
    pub(super) fn segment(&self, flags: Flags, seq: u64, len: u32, ack: u64) -> Segment {
        Segment {
            payload: Payload { offset: seq.saturating_sub(1), len },
            source_port: 2,
            destination_port: 1,
            seq: lower(seq, PEER_ISN),
            ack: if flags.contains(Flags::ACK) { lower(ack, ISN) } else { 0 },
            flags,
            window: self.window,
            timestamps: self.endpoint.sender.negotiated.timestamps().then(|| self.timestamps()),
            ..Segment::default()
        }
    }

    pub(super) fn input(&mut self, segment: Segment) -> Acknowledgment {
        self.input_marked(segment, Ecn::NotEct)
    }

    pub(super) fn input_marked(&mut self, segment: Segment, ecn: Ecn) -> Acknowledgment {
        let arrival = self.endpoint.input(self.now, &segment, ecn);
        self.pump();
        arrival
    }

    /// A pure ACK.
    pub(super) fn ack(&mut self, ack: u64) -> Acknowledgment {
        self.input(self.segment(Flags::ACK, self.seq, 0, ack))
    }

    /// A pure ACK with another window from now on.
    pub(super) fn ack_window(&mut self, ack: u64, window: u16) -> Acknowledgment {
        self.window = window;
        self.ack(ack)
    }

    /// The TSval of the last segment sent.
    pub(super) fn last_timestamp(&self) -> u32 {
        self.last_timestamp
    }

    /// A pure ACK with SACK blocks that echoes `echo`.
    pub(super) fn sack_echoing(&mut self, ack: u64, ranges: &[(u64, u64)], echo: u32) -> Acknowledgment {
        let last = std::mem::replace(&mut self.last_timestamp, echo);
        let arrival = self.sack(ack, ranges);
        if self.last_timestamp == echo {
            self.last_timestamp = last;
        }
        arrival
    }

    /// A pure ACK with SACK blocks.
    pub(super) fn sack(&mut self, ack: u64, ranges: &[(u64, u64)]) -> Acknowledgment {
        let mut sack = SackBlocks::default();
        ranges.iter().for_each(|&(left, right)| assert!(sack.push(lower(left, ISN), lower(right, ISN))));
        self.input(Segment { sack, ..self.segment(Flags::ACK, self.seq, 0, ack) })
    }

    /// Data of the peer, acknowledging all that was sent.
    pub(super) fn peer_data(&mut self, seq: u64, len: u32) -> Acknowledgment {
        self.peer_segment(Flags::NONE, seq, len)
    }

    /// Sends a segment of the peer with these flags.
    pub(super) fn peer_segment(&mut self, flags: Flags, seq: u64, len: u32) -> Acknowledgment {
        let nxt = self.endpoint.sender().sequence().nxt();
        let segment = self.segment(flags | Flags::ACK, seq, len, nxt);
        self.seq = self.seq.max(seq + u64::from(segment.sequence_len()));
        self.input(segment)
    }

    pub(super) fn write(&mut self, bytes: u64) {
        assert_eq!(self.endpoint.write(bytes), bytes);
        self.pump();
    }

    pub(super) fn read(&mut self, bytes: u64) {
        assert_eq!(self.endpoint.read(bytes), bytes);
        self.pump();
    }

    pub(super) fn close(&mut self) {
        self.endpoint.shutdown(Shutdown::Write);
        self.pump();
    }

    /// Lets time pass; every deadline on the way is met.
    pub(super) fn wait(&mut self, millis: u64) {
        let end = self.now + Span::from_millis(millis);
        while self.endpoint.next_deadline() <= end {
            assert!(self.endpoint.next_deadline() >= self.now, "a deadline in the past");
            self.now = self.endpoint.next_deadline();
            self.endpoint.on_deadline(self.now);
            self.pump();
        }
        self.now = end;
    }

    pub(super) fn pump(&mut self) {
        let mut segment = Segment::default();
        for _ in 0..10_000 {
            let Some(ecn) = self.endpoint.transmit(self.now, &mut segment) else { return };
            self.last_timestamp = segment.timestamps.map_or(0, |timestamps| timestamps.value);
            self.log.push((self.now.as_nanos() / 1_000_000, segment, ecn));
        }
        panic!("transmits for ever");
    }

    /// Segments sent since the last call: milliseconds, segment, codepoint.
    pub(super) fn segments(&mut self) -> Vec<(u64, Segment, Ecn)> {
        std::mem::take(&mut self.log)
    }

    fn range(&self, segment: &Segment) -> (u64, u64) {
        let seq = lift(segment.seq, ISN, self.endpoint.sender.sequence.nxt()).expect("before the SYN");
        (seq, seq + u64::from(segment.sequence_len()))
    }

    /// The sequence numbers of the segments with data or FIN since the last look; pure ACKs are
    /// left out.
    pub(super) fn data(&mut self) -> Vec<(u64, u64)> {
        let ranges: Vec<_> = self.segments().iter().map(|(_, segment, _)| self.range(segment)).collect();
        ranges.into_iter().filter(|(left, right)| left < right).collect()
    }

    /// Data sent since the last call, with the times in milliseconds.
    pub(super) fn timed_data(&mut self) -> Vec<(u64, u64, u64)> {
        let timed = self.segments();
        let ranges = timed.iter().map(|(at, segment, _)| (*at, self.range(segment)));
        ranges.filter(|(_, (left, right))| left < right).map(|(at, (left, right))| (at, left, right)).collect()
    }

    /// Everything since the last look: flags (without PSH), sequence numbers, ACK, SACK blocks.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let segments = self.segments();
        segments.iter().map(|(_, segment, _)| self.describe(segment)).collect()
    }

    fn describe(&self, segment: &Segment) -> String {
        let (left, right) = self.range(segment);
        let mut text = format!("{:?} {left}:{right}", segment.flags).replace('P', "");
        let relative = |wire: u32| wire.wrapping_sub(PEER_ISN);
        if segment.flags.contains(Flags::ACK) {
            text += &format!(" ack {}", relative(segment.ack));
        }
        for &(left, right) in segment.sack.as_slice() {
            text += &format!(" sack {}:{}", relative(left), relative(right));
        }
        text
    }
}

/// `n` ranges of 1000 bytes from `from` on.
pub(super) fn full(from: u64, n: u64) -> Vec<(u64, u64)> {
    (0..n).map(|i| (from + 1000 * i, from + 1000 * (i + 1))).collect()
}
