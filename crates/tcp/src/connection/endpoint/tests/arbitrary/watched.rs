//! Whatever comes, what an endpoint does is watched.

use super::*;

/// The start of the connection.
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
        let sequence = self.endpoint.sender().sequence();
        let (una, nxt) = (sequence.una(), sequence.nxt());
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
                echo: millis.wrapping_sub(self.endpoint.sender.negotiated.clock_offset()),
            }),
            sack,
            acc_ecn: shape.acc_ecn,
            fast_open: has_cookie.then(|| FastOpen::new(b"ackclock")),
            ..Segment::default()
        }
    }

    fn input(&mut self, segment: &Segment, ecn: Ecn) {
        self.endpoint.input(self.now, segment, ecn);
        let send = &self.endpoint.sender.sequence;
        self.edge = self.edge.max(send.una() + send.window());
        assert!(send.una() <= send.nxt());
        self.endpoint.sender.loss.board.check();
    }

    fn transmit(&mut self) {
        let mut segment = Segment::default();
        // Segments may have a single byte of payload, and H-TCP opens the window by thousands of
        // them after a long time without congestion.
        let una = self.endpoint.sender().sequence().una();
        let most = 10_000 + 2 * (self.endpoint.sender.sequence.written() + 2).saturating_sub(una);
        let mut unit_cwnd = 0;
        for _ in 0..most {
            let cwnd = self.endpoint.sender().cwnd();
            let (pipe, nxt, mss) =
                (self.in_flight(), self.endpoint.sender.sequence.nxt(), self.endpoint.sender.negotiated.mss());
            let segments = self.endpoint.sender.loss.board.segments();
            let mut exempt = self.endpoint.sender.loss.recovery.forces_retransmission()
                || self.endpoint.sender.loss.recovery.probe().is_due()
                || self.endpoint.sender.persist.has_expired()
                || self.endpoint.sender.persist.rules();
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
                let options = segment.header_len() - 20 - self.endpoint.sender.negotiated.options_len();
                assert!(segment.payload.len + options <= self.endpoint.sender.negotiated.mss(), "more than the MSS");
            }
            if !self.endpoint.sender().continues_unit() {
                unit_cwnd = cwnd;
            }
            // Linux 4.0 restarts the window after an idle time once the first unit is gone, which
            // may be several segments that the window of before has room for.
            let first_unit = if self.endpoint.config.transfer.offload.restarts_late { unit_cwnd } else { 0 };
            // A FIN needs no window, and Linux counts it as a segment.
            let fin =
                if self.endpoint.sender.loss.linux_episodes() && segment.payload.len == 0 { u64::from(mss) } else { 1 };
            let allowed = self.endpoint.sender().cwnd().max(first_unit).max(pipe) + self.limited_transmit() + fin;
            // A segment that is resent with a smaller MSS is cut, and each part counts
            // (`tcp_fragment`).
            let is_resent = self.endpoint.sender.sequence.nxt() == nxt;
            let cut = if is_resent { self.endpoint.sender.loss.board.segments().saturating_sub(segments) } else { 0 };
            let allowed = allowed + cut * u64::from(mss);
            let in_flight = self.in_flight();
            assert!(
                !is_data || exempt || in_flight <= allowed,
                "more than the congestion window: {in_flight} of {allowed}, {pipe} of {cwnd} before, {:?}, {segment:?}",
                self.endpoint.sender.loss.recovery.state()
            );
            let new = self.endpoint.sender.sequence.nxt().max(1) - nxt.max(1);
            assert!(
                self.endpoint.sender.sequence.nxt() <= self.edge.max(self.sent).max(1)
                    || with_syn
                    || (exempt && new == 1),
                "beyond the window"
            );
            self.sent = self.sent.max(self.endpoint.sender.sequence.nxt());
            self.watch_own_window(&segment);
        }
        panic!("transmits for ever");
    }

    /// The data that counts against the window: in Linux segments, whatever their length. RFC
    /// 6675's pipe counts a segment twice that is sent again without being declared lost, as a
    /// window probe is that may go as a whole now. The BSDs count bytes of the stream, and in
    /// recovery with SACK those that are sent again alone.
    fn in_flight(&self) -> u64 {
        let (endpoint, pipe) = (&self.endpoint, self.endpoint.sender().pipe());
        if endpoint.sender.loss.linux_episodes() {
            return endpoint.sender.loss.segments_in_flight(&endpoint.sender.negotiated)
                * u64::from(endpoint.sender.negotiated.mss());
        }
        if !endpoint.sender.loss.bsd_episodes() {
            return pipe;
        }
        let sack = endpoint.sender.negotiated.sack() && endpoint.sender.loss.recovery.state() == CaState::Recovery;
        pipe.min(if sack { endpoint.sender.loss.board.resent() } else { endpoint.sender.loss.board.outstanding() })
    }

    /// The data allowed beyond the window for the first two duplicate ACKs (RFC 3042 section 2) by
    /// the BSDs' rules; by others they count as segments that have left.
    fn limited_transmit(&self) -> u64 {
        let endpoint = &self.endpoint;
        let applies = endpoint.config.limited_transmit
            && endpoint.sender.loss.bsd_episodes()
            && matches!(endpoint.sender.loss.recovery.state(), CaState::Disorder | CaState::Cwr);
        if applies { 2 * u64::from(endpoint.sender.negotiated.mss()) } else { 0 }
    }

    /// Asserts that outstanding or waiting data has a timer, even if the peer never says another
    /// word.
    fn assert_alive(&self) {
        let (endpoint, send) = (&self.endpoint, &self.endpoint.sender.sequence);
        let open = !matches!(endpoint.state(), State::Closed | State::Listen | State::TimeWait | State::FinWait2);
        let opening = matches!(endpoint.state(), State::SynSent | State::SynReceived);
        let waits = !send.is_fin_sent() && (send.written() + 1 > send.nxt() || send.is_closed());
        if open && (opening || waits || !endpoint.sender.loss.board.is_empty()) {
            let sender = &endpoint.sender;
            let least = sender
                .timer
                .retransmission()
                .min(sender.persist.deadline())
                .min(sender.pacer.deadline())
                .min(endpoint.timers.handshake());
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
        let shift = if self.endpoint.sender.negotiated.scaling() { self.endpoint.receiver.own_shift() } else { 0 };
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
                self.endpoint.set_option(SocketOption::Linger(span(linger)));
                self.endpoint.set_option(SocketOption::UserTimeout(span(user_timeout)));
                let times =
                    span(keepalive).map(|idle| KeepAlive { idle, interval: idle + Span::from_secs(1), count: 3 });
                self.endpoint.set_keepalive(self.now, times);
            }
            Call::TakeOver(controller) => self.endpoint.set_congestion_control(self.now, controller.build()),
            &Call::MaxPacingRate(rate) => self.endpoint.set_option(SocketOption::MaxPacingRate(rate)),
            &Call::Look(bytes) => self.look(bytes),
            Call::Noise(segment, ecn) => self.input(segment, *ecn),
            Call::Icmp(error, index) => {
                let sequence = self.endpoint.sender().sequence();
                let (una, nxt) = (sequence.una(), sequence.nxt());
                let sequence = match error.sequence % 8 {
                    0 => error.sequence,
                    _ => lower(una + index.index((nxt - una) as usize + 1) as u64, self.isn),
                };
                self.endpoint.icmp(self.now, &IcmpError { sequence, ..*error });
                self.endpoint.sender.loss.board.check();
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

    /// Asserts that the results of a socket's calls agree.
    fn look(&mut self, bytes: u64) {
        let endpoint = &mut self.endpoint;
        let ready = endpoint.readiness();
        assert_eq!(ready.error, endpoint.take_error().is_some());
        assert!(endpoint.sender().sequence().unsent() <= endpoint.sender().sequence().unacknowledged());
        let unread = endpoint.receiver().unread();
        match endpoint.recv(bytes) {
            Received::Data(read) => assert!(read <= unread && ready.readable),
            Received::EndOfFile => assert!(unread == 0 && ready.read_closed),
            Received::WouldBlock | Received::Failed(_) => assert!(unread == 0),
        }
        match endpoint.send(bytes) {
            Sending::Taken(taken) => assert!(taken <= bytes),
            Sending::WouldBlock => assert!(!ready.hung_up),
            Sending::Failed(_) => {
                assert!(
                    endpoint.sender.sequence.is_closed() || matches!(endpoint.state(), State::Closed | State::Listen)
                );
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
        // Permission for segments to take the short path makes no difference.
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
