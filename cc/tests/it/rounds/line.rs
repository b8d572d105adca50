//! A sender on a line: its controller, a window of data in flight, and a receiver that acknowledges
//! every segment. The controller hears the calls of an endpoint with SACK, timestamps and the loss
//! window of RFC 5681, at the same times; its window alone says how much is sent (no PRR).

use std::collections::VecDeque;

use ackclock_cc::{
    Ack, Arrival, CongestionControl, EcnFeedback, EcnUse, Flight, Lost, RateSample, Sent, Signal, Verdict,
};
use ackclock_units::{Span, Time};

pub(crate) const MSS: u64 = 1000;
/// The round-trip time without a queue.
pub(crate) const BASE: Span = Span::from_millis(100);

/// A segment on the link of those who pace: it carries 400 of them in a round-trip time. There is
/// none for others, whose round-trip times are therefore constant.
const SERVICE: Span = Span::from_micros(250);

/// The event of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    None,
    /// The first segment of the round is lost.
    Loss,
    /// A quarter of the segments is marked.
    Mark,
    /// Nothing of what is in flight arrives.
    Timeout,
    /// The first segment is late, and declared lost.
    FalseLoss,
    /// The late segment arrives, and with it the proof that nothing was lost.
    Undo,
}

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
struct Segment {
    seq: u64,
    sent: Time,
    arrives: Time,
    again: bool,
    marked: bool,
    // The counts from which the delivery rate is sampled.
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    in_flight: u64,
}

/// Why the controller does not hear of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// Until this is acknowledged.
    Fast(u64),
    Cwr(u64),
}

pub(crate) struct Line {
    pub(crate) cc: Box<dyn CongestionControl>,
    now: Time,
    una: u64,
    nxt: u64,
    flying: VecDeque<Segment>,
    /// Bytes above `una` that have arrived.
    sacked: u64,
    /// A late segment that is declared lost.
    late: Option<Segment>,
    recovery: Recovery,
    /// The end of the data sent before the last timeout.
    timeout_point: u64,
    srtt: Option<Span>,
    latest_rtt: Option<Span>,
    min_rtt: Option<Span>,
    /// The queue's part of the round-trip time.
    pub(crate) queue: Span,
    /// Marks on what was sent before are answered.
    answered: u64,
    round: u64,
    round_end: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    /// The first time at which the next segment may leave.
    paced_until: Time,
    /// The window came down for the controller's own reasons.
    pub(crate) backed_off: bool,
}

impl Line {
    pub(crate) fn new(cc: Box<dyn CongestionControl>) -> Line {
        let mut line = Line {
            cc,
            now: Time::from_millis(1000),
            una: 0,
            nxt: 0,
            flying: VecDeque::new(),
            sacked: 0,
            late: None,
            recovery: Recovery::None,
            timeout_point: 0,
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            queue: Span::ZERO,
            answered: 0,
            round: 0,
            round_end: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            paced_until: Time::ZERO,
            backed_off: false,
        };
        // The handshake measures a round trip.
        line.measure(BASE);
        let f = line.flight();
        line.cc.on_established(&f);
        let scalable = line.cc.needs().ecn != EcnUse::Data;
        line.cc.on_ecn(if scalable { EcnFeedback::Accurate } else { EcnFeedback::Classic });
        line
    }

    /// The flight with the window full, at a time.
    fn flight(&self) -> Flight {
        let cwnd = self.cc.window().cwnd;
        let in_flight = self.in_flight();
        Flight {
            now: self.now,
            mss: MSS as u32,
            in_flight,
            cwnd_limited: in_flight + 2 * MSS > cwnd || self.paced_until > self.now,
            snd_una: self.una,
            snd_nxt: self.nxt,
            srtt: self.srtt,
            latest_rtt: self.latest_rtt,
            min_rtt: self.min_rtt,
            after_timeout: self.una < self.timeout_point,
            initial_window: 10 * MSS,
            paced: false,
            app_limited: false,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * MSS
    }

    fn measure(&mut self, rtt: Span) {
        self.latest_rtt = Some(rtt);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| srtt / 8 * 7 + rtt / 8));
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Sends `seq`, before which `f` was.
    fn send(&mut self, seq: u64, again: bool) {
        let f = self.flight();
        if self.cc.needs().departures || f.snd_una == f.snd_nxt {
            self.cc.on_sent(&f, &Sent { seq, bytes: MSS as u32 });
        }
        if self.flying.is_empty() {
            (self.first_sent, self.delivered_at) = (self.now, self.now);
        }
        let paced = self.cc.pacing_rate(&f).is_some();
        let service = if paced { SERVICE } else { Span::ZERO };
        let free = self.flying.back().map_or(Time::ZERO, |segment| segment.arrives + service);
        let segment = Segment {
            seq,
            sent: self.now,
            arrives: (self.now + BASE + self.queue).max(free),
            again,
            marked: false,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            in_flight: self.in_flight() + MSS,
        };
        self.flying.push_back(segment);
        self.nxt = self.nxt.max(seq + MSS);
        if let Some(rate) = self.cc.pacing_rate(&self.flight()) {
            let nanos = u128::from(MSS) * 8 * 1_000_000_000 / u128::from(rate.as_bps());
            self.paced_until = self.paced_until.max(self.now) + Span::from_nanos(nanos as u64);
        }
    }

    /// Returns `true` if the window has room for a segment, whatever the pacing says.
    fn has_room(&self) -> bool {
        self.in_flight() + MSS <= self.cc.window().cwnd
    }

    /// The next byte to be sent: after a timeout what was in flight is sent again.
    fn next(&self, cursor: u64) -> (u64, bool) {
        if cursor < self.timeout_point { (cursor, true) } else { (self.nxt, false) }
    }

    /// Sends what may leave now.
    fn fill(&mut self) {
        while self.has_room() && self.paced_until <= self.now {
            let cursor = self.flying.back().map_or(self.una, |segment| segment.seq + MSS);
            let (seq, again) = self.next(cursor);
            self.send(seq, again);
        }
    }

    /// Sends what may leave before the next ACK.
    fn fill_until_arrival(&mut self) {
        self.fill();
        while self.has_room() && self.flying.front().is_some_and(|first| self.paced_until < first.arrives) {
            self.now = self.now.max(self.paced_until);
            self.fill();
        }
    }

    /// Goes on until as many segments have arrived as are in flight now, and an event has had its
    /// course.
    pub(crate) fn round(&mut self, event: Event) {
        self.fill_until_arrival();
        self.backed_off = false;
        let mut count = self.flying.len();
        match event {
            Event::None => {}
            Event::Undo => {
                let late = self.late.take().expect("a segment is late");
                self.una = late.seq + MSS + std::mem::take(&mut self.sacked);
                self.delivered += MSS;
                self.recovery = Recovery::None;
                let f = self.flight();
                self.cc.on_signal(&f, Signal::Spurious);
                self.fill();
            }
            Event::Mark => {
                for segment in self.flying.iter_mut().step_by(4) {
                    segment.marked = true;
                }
            }
            Event::Timeout => {
                self.now += Span::from_millis(300);
                self.lost += self.in_flight();
                let f = self.flight();
                self.flying.clear();
                (self.timeout_point, self.recovery) = (self.nxt, Recovery::None);
                self.cc.on_signal(&f, Signal::Timeout { repeated: false, kept: 0 });
                self.paced_until = self.now;
                self.fill_until_arrival();
                count = self.flying.len();
            }
            Event::Loss | Event::FalseLoss => {
                // The segments behind it tell: the rest of the round is duplicate ACKs.
                let first = self.flying.pop_front().expect("the window is full");
                let f = Flight { in_flight: self.in_flight() + MSS, ..self.flight() };
                self.lost += MSS;
                if self.cc.needs().delivery_rate {
                    self.cc.on_lost(&f, &self.lost_segment(&first));
                }
                self.cc.on_signal(&f, Signal::Loss);
                self.recovery = Recovery::Fast(self.nxt);
                if event == Event::Loss {
                    self.send(first.seq, true);
                } else {
                    self.late = Some(first);
                }
                count -= 1;
            }
        }
        while count > 0 {
            self.fill_until_arrival();
            self.now = self.flying.front().expect("a segment is in flight").arrives;
            self.arrive();
            count -= 1;
        }
        self.fill();
    }

    fn lost_segment(&self, segment: &Segment) -> Lost {
        Lost {
            seq: segment.seq,
            bytes: MSS as u32,
            total_delivered: self.delivered,
            total_lost: self.lost,
            prior_delivered: segment.delivered,
            prior_lost: self.lost - MSS,
            in_flight_when_sent: segment.in_flight,
            app_limited: false,
            selective_acks: true,
        }
    }

    /// The ACK of the first segment in flight.
    fn arrive(&mut self) {
        let segment = self.flying.pop_front().expect("a segment is in flight");
        self.delivered += MSS;
        self.delivered_at = self.now;
        self.first_sent = segment.sent;
        let una = self.una;
        if segment.seq == self.una {
            self.una += MSS + std::mem::take(&mut self.sacked);
        } else {
            self.sacked += MSS;
        }
        let acked = self.una - una;
        let rtt = (!segment.again).then(|| self.now.since(segment.sent));
        if let Some(rtt) = rtt {
            self.measure(rtt);
        }
        let mut f = self.flight();
        // The window was full before the ACK.
        f.cwnd_limited |= f.in_flight + 2 * MSS >= self.cc.window().cwnd;
        let ce = if segment.marked { MSS } else { 0 };
        let echo = segment.marked && self.cc.needs().ecn == EcnUse::Data;
        let begins_round = acked > 0 && self.una >= self.round_end;
        if begins_round {
            (self.round, self.round_end) = (self.round + 1, self.nxt);
        }
        let arrival = Arrival {
            ack: self.una,
            acked,
            delivered: MSS,
            sacked_to: (acked == 0).then_some(segment.seq + MSS),
            duplicate: acked == 0,
            in_recovery: matches!(self.recovery, Recovery::Fast(_)) || f.after_timeout,
            echoed: Some(self.now.since(segment.sent)),
            rtt,
            round: begins_round.then_some(self.round),
            ce,
            plain: acked > 0 && !segment.marked,
        };
        self.cc.on_arrival(&f, &arrival);

        let ended = match self.recovery {
            Recovery::Fast(point) | Recovery::Cwr(point) => self.una >= point,
            Recovery::None => false,
        };
        if ended {
            self.recovery = Recovery::None;
            self.cc.on_signal(&f, Signal::RecoveryEnd);
        }
        if segment.marked && self.recovery == Recovery::None && segment.seq >= self.answered {
            // RFC 3168 section 6.1.2: once per window of data.
            self.answered = self.nxt;
            self.recovery = Recovery::Cwr(self.nxt);
            self.cc.on_signal(&f, Signal::Ecn);
        }
        let needs = self.cc.needs();
        // Its own recovery is the controller's affair where no PRR shapes the window.
        let told = self.recovery == Recovery::None || self.backed_off || needs.whole_control;
        if told && (acked > 0 || needs.whole_control) {
            let rate = needs.delivery_rate.then(|| self.rate(&segment));
            let ack = Ack { acked, delivered: MSS, rtt, ece: echo, ce, rate, ..Ack::default() };
            if self.cc.on_ack(&f, &ack) == Verdict::Reduced && !needs.whole_control {
                self.backed_off = true;
                self.recovery = Recovery::Cwr(self.nxt);
            }
        }
    }

    fn rate(&self, segment: &Segment) -> RateSample {
        let sending = segment.sent.since(segment.first_sent);
        let acking = self.now.since(segment.delivered_at);
        RateSample {
            total_delivered: self.delivered,
            prior_delivered: segment.delivered,
            delivered: self.delivered - segment.delivered,
            interval: Some(sending.max(acking)),
            app_limited: false,
            in_flight_when_sent: segment.in_flight,
            lost: 0,
        }
    }
}
