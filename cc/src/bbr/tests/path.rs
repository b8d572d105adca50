//! A sender that does what the controller says, over a path with one bottleneck: what the
//! controller needs of an endpoint and nothing else. Segments are full; what is lost is not sent
//! again, there is always something new.

use std::collections::VecDeque;

use ackclock_units::{Random, Span, Time};

use super::super::{Bbr, BbrConfig, State};
use crate::fixture::MSS;
use crate::{Ack, CongestionControl, Flight, Lost, RateSample, Sent, Signal};

/// The path and the application.
pub(crate) struct Setup {
    /// Bottleneck, bit/s; what is queued already leaves at the rate at which it came.
    pub rate: u64,
    /// Round trip without queue.
    pub rtt: Span,
    /// Room in the bottleneck's queue, bytes.
    pub buffer: u64,
    /// Probability that a segment is lost before the bottleneck.
    pub loss: f64,
    /// ACKs arrive at multiples of this.
    pub ack_slot: Span,
    /// Rate of the application's writes, bit/s; `None` is all that fits.
    pub application: Option<u64>,
}

impl Setup {
    /// 10 Mbit/s, 40 ms: 50 000 bytes, 34.5 segments.
    pub(crate) fn new() -> Setup {
        Setup {
            rate: 10_000_000,
            rtt: Span::from_millis(40),
            buffer: 10_000_000,
            loss: 0.0,
            ack_slot: Span::from_nanos(1),
            application: None,
        }
    }

    /// Bandwidth times round trip, bytes.
    pub(crate) fn bdp(&self) -> u64 {
        (self.rate as f64 / 8.0 * self.rtt.as_secs_f64()) as u64
    }
}

struct Packet {
    seq: u64,
    sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

pub(crate) struct Path {
    pub setup: Setup,
    pub cc: Bbr,
    pub now: Time,
    random: Random,
    link_free_at: Time,
    /// Packets in flight, in order.
    packets: VecDeque<Packet>,
    /// When an ACK arrives, and of what; nothing of a lost segment.
    acks: VecDeque<(Time, u64)>,
    next_seq: u64,
    next_send_at: Time,
    recover: Option<u64>,
    after_timeout: bool,
    last_progress: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    app_limited: u64,
    written: f64,
    limited_until: u64,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
    /// Everything that the bottleneck refused or the path lost, bytes.
    pub dropped: u64,
    pub sent: u64,
    /// States entered, and when.
    pub trace: Vec<(Time, State)>,
    /// Integral of the queue over time, byte seconds.
    queue_seconds: f64,
    pub largest_queue: u64,
    pub timeouts: u32,
}

impl Path {
    pub(crate) fn new(setup: Setup) -> Path {
        Path::with(setup, BbrConfig::default(), 1)
    }

    pub(crate) fn with(setup: Setup, config: BbrConfig, seed: u64) -> Path {
        let now = Time::from_secs(1);
        let mut path = Path {
            cc: Bbr::new(config, Random::for_component(seed, 0, "cc")),
            now,
            random: Random::for_component(seed, 0, "path"),
            link_free_at: now,
            packets: VecDeque::new(),
            acks: VecDeque::new(),
            next_seq: 0,
            next_send_at: now,
            recover: None,
            after_timeout: false,
            last_progress: now,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited: 0,
            written: 0.0,
            limited_until: 0,
            srtt: Some(setup.rtt),
            min_rtt: Some(setup.rtt),
            dropped: 0,
            sent: 0,
            trace: vec![(now, State::Startup)],
            queue_seconds: 0.0,
            largest_queue: 0,
            timeouts: 0,
            setup,
        };
        let flight = path.flight();
        path.cc.on_established(&flight);
        path
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.packets.len() as u64 * MSS
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes waiting at the bottleneck.
    pub(crate) fn queue(&self) -> u64 {
        (self.link_free_at.since(self.now).as_secs_f64() * self.setup.rate as f64 / 8.0) as u64
    }

    pub(crate) fn flight(&self) -> Flight {
        Flight {
            now: self.now,
            mss: MSS as u32,
            in_flight: self.in_flight(),
            cwnd_limited: self.delivered <= self.limited_until,
            snd_una: self.packets.front().map_or(self.next_seq, |packet| packet.seq),
            snd_nxt: self.next_seq,
            srtt: self.srtt,
            latest_rtt: self.srtt,
            min_rtt: self.min_rtt,
            after_timeout: self.after_timeout,
            initial_window: 10 * MSS,
            paced: true,
            app_limited: self.app_limited > 0,
        }
    }

    fn note_state(&mut self) {
        if self.trace.last().is_none_or(|(_, state)| *state != self.cc.state) {
            self.trace.push((self.now, self.cc.state));
        }
    }

    fn advance(&mut self, to: Time) {
        // The queue falls in a straight line until it is empty.
        let (before, span) = (self.queue() as f64, to.since(self.now).as_secs_f64());
        let empties = before * 8.0 / self.setup.rate as f64;
        let (busy, rest) = (span.min(empties), (before - span * self.setup.rate as f64 / 8.0).max(0.0));
        self.queue_seconds += busy * (before + rest) / 2.0;
        if let Some(rate) = self.setup.application {
            self.written += span * rate as f64 / 8.0;
        }
        self.now = to;
    }

    /// Runs for `span`; returns goodput in bit/s and the mean queue in bytes.
    pub(crate) fn run(&mut self, span: Span) -> (f64, f64) {
        self.run_until(self.now + span, |_| false)
    }

    /// Runs until `stop`, or `end` at the latest.
    pub(crate) fn run_until(&mut self, end: Time, stop: impl Fn(&Path) -> bool) -> (f64, f64) {
        let (start, delivered, queue) = (self.now, self.delivered, self.queue_seconds);
        while self.now < end && !stop(self) {
            self.step(end);
        }
        let secs = self.now.since(start).as_secs_f64();
        ((self.delivered - delivered) as f64 * 8.0 / secs, (self.queue_seconds - queue) / secs)
    }

    fn step(&mut self, end: Time) {
        let fits = self.in_flight() + MSS <= self.cc.window().cwnd;
        let has_data = self.setup.application.is_none() || self.written >= MSS as f64;
        if !fits {
            self.limited_until = self.delivered + self.in_flight();
        }
        let ack_at = self.acks.front().map_or(Time::NEVER, |(at, _)| *at);
        let send_at = if fits && has_data { self.now.max(self.next_send_at) } else { Time::NEVER };
        let rto_at = if self.packets.is_empty() { Time::NEVER } else { self.last_progress + Span::from_secs(1) };
        let write_at = match self.setup.application {
            Some(rate) if !has_data && rate > 0 => {
                let wait = Span::from_secs_f64((MSS as f64 - self.written) * 8.0 / rate as f64);
                self.now + wait.max(Span::from_nanos(1))
            }
            _ => Time::NEVER,
        };
        let next = ack_at.min(send_at).min(rto_at).min(write_at).min(end).max(self.now);
        if fits && !has_data {
            self.app_limited = (self.delivered + self.in_flight()).max(1);
        }
        self.advance(next);
        if next == end {
        } else if next == ack_at {
            self.on_ack();
        } else if next == send_at {
            self.send();
        } else if next == rto_at {
            self.on_timeout();
        }
        self.note_state();
    }

    fn send(&mut self) {
        let flight = self.flight();
        self.cc.on_sent(&flight, &Sent { seq: self.next_seq, bytes: MSS as u32 });
        if self.packets.is_empty() {
            (self.first_sent_at, self.delivered_at, self.last_progress) = (self.now, self.now, self.now);
        }
        self.packets.push_back(Packet {
            seq: self.next_seq,
            sent_at: self.now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: flight.in_flight + MSS,
            lost: self.lost,
            app_limited: self.app_limited > 0,
        });
        self.sent += MSS;
        self.written -= MSS as f64;
        let drops = self.random.chance(self.setup.loss) || self.queue() + MSS > self.setup.buffer;
        if drops {
            self.dropped += MSS;
        } else {
            let transmission = Span::from_secs_f64(MSS as f64 * 8.0 / self.setup.rate as f64);
            self.link_free_at = self.link_free_at.max(self.now) + transmission;
            self.largest_queue = self.largest_queue.max(self.queue());
            let slot = self.setup.ack_slot.as_nanos();
            let at = Time::from_nanos((self.link_free_at + self.setup.rtt).as_nanos().div_ceil(slot) * slot);
            self.acks.push_back((at, self.next_seq));
        }
        self.next_seq += MSS;
        let rate = self.cc.pacing_rate(&self.flight()).unwrap().as_bps();
        self.next_send_at = self.next_send_at.max(self.now) + Span::from_secs_f64(MSS as f64 * 8.0 / rate as f64);
    }

    /// All ACKs that are due now, each of one segment; what was sent three segments before it is
    /// lost.
    fn on_ack(&mut self) {
        let mut acked = 0;
        let mut newest: Option<Packet> = None;
        while let Some((_, seq)) = self.acks.front().copied().filter(|(at, _)| *at <= self.now) {
            self.acks.pop_front();
            // Gone if it was declared lost at a timeout.
            let Ok(index) = self.packets.binary_search_by_key(&seq, |packet| packet.seq) else { continue };
            newest = self.packets.remove(index);
            acked += MSS;
        }
        let Some(newest) = newest else { return };
        self.delivered += acked;
        self.delivered_at = self.now;
        self.last_progress = self.now;
        self.first_sent_at = newest.sent_at;
        let rtt = self.now.since(newest.sent_at);
        self.srtt = self.srtt.map(|srtt| (srtt * 7 + rtt) / 8);
        self.min_rtt = self.min_rtt.map(|min| min.min(rtt));
        let reach = newest.seq.saturating_sub(3 * MSS);
        let mut lost = 0;
        while self.packets.front().is_some_and(|front| front.seq <= reach && front.seq < newest.seq) {
            lost += MSS;
            self.lose_front();
        }
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let front = self.packets.front().map_or(self.next_seq, |packet| packet.seq);
        if self.recover.is_some_and(|recover| front >= recover) {
            self.recover = None;
            if !std::mem::take(&mut self.after_timeout) {
                self.cc.on_signal(&self.flight(), Signal::RecoveryEnd);
            }
        }
        if lost > 0 && self.recover.is_none() {
            self.recover = Some(self.next_seq);
            self.cc.on_signal(&self.flight(), Signal::Loss);
        }
        let elapsed = newest.sent_at.since(newest.first_sent_at).max(self.now.since(newest.delivered_at));
        let rate = RateSample {
            total_delivered: self.delivered,
            prior_delivered: newest.delivered,
            delivered: self.delivered - newest.delivered,
            interval: Some(elapsed),
            app_limited: newest.app_limited,
            in_flight_when_sent: newest.in_flight,
            lost: self.lost - newest.lost,
        };
        let ack = Ack { acked, delivered: acked, rtt: Some(rtt), lost, rate: Some(rate), ..Ack::default() };
        let _ = self.cc.on_ack(&self.flight(), &ack);
    }

    fn lose_front(&mut self) {
        let Some(packet) = self.packets.pop_front() else { return };
        self.lost += MSS;
        let lost = Lost {
            seq: packet.seq,
            bytes: MSS as u32,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_delivered: packet.delivered,
            prior_lost: packet.lost,
            in_flight_when_sent: packet.in_flight,
            app_limited: packet.app_limited,
            selective_acks: true,
        };
        self.cc.on_lost(&self.flight(), &lost);
    }

    fn on_timeout(&mut self) {
        self.timeouts += 1;
        self.last_progress = self.now;
        while !self.packets.is_empty() {
            self.lose_front();
        }
        self.recover = Some(self.next_seq);
        self.after_timeout = true;
        self.cc.on_signal(&self.flight(), Signal::Timeout { repeated: false, kept: 0 });
    }

    /// When the controller entered `state`.
    pub(crate) fn entered(&self, state: State) -> Vec<Time> {
        self.trace.iter().filter(|(_, entered)| *entered == state).map(|(at, _)| *at).collect()
    }
}
