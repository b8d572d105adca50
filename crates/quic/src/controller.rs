//! ackclock's congestion controllers in place of an implementation's, so that one law can be compared
//! across transports.
//!
//! # Source
//! RFC 9002 section 7: what a QUIC sender tells its controller, and when recovery begins and ends.
//!
//! # Departures
//! - A window counts bytes of packets, as the implementations' do, where TCP counts payload.
//! - No packet is retransmitted, so that RTT samples have no Karn's rule, and acknowledged bytes are
//!   those delivered.
//! - The window is at the slow start threshold during recovery (RFC 9002 section 7.3.2) and not
//!   shaped by PRR; a controller that rules its window has its own.
//! - Losses are told after the ACK that proves them ([`Rates`]).
//! - quinn takes losses back in no case; noq does, once all of an episode have arrived.
//! - Implementations say that marks came, not how many. The counts are read from the packets that
//!   arrive; a marked packet counts as one of full size.
//! - quinn and noq send ECT(0). Packets of a scalable controller leave with ECT(1), and the receiver
//!   counts both as ECT(0), which is what they validate (RFC 9000 section 13.4.2).
//! - Where a controller has a rate, the host holds packets back: quinn paces by the window alone, and
//!   noq by a bucket of several packets, which is too much for the shallow queue of L4S.
//! - After a migration a controller begins anew (RFC 9000 section 9.4).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ackclock_cc::{
    Ack, Arrival, CcSpec, CongestionControl, EcnFeedback, EcnUse, Flight, Sent, Signal, Stack, Verdict, Window,
};
use ackclock_units::{Random, Rate, Span, Time};

use crate::clock::{instant, span, time};
use crate::rates::Rates;

/// Controllers of ackclock that need nothing that an implementation does not tell, as the enhanced
/// round-trip times of a TCP sender.
pub(crate) const NAMES: [&str; 7] = ["newreno", "cubic", "cdg", "htcp", "westwood", "bbr", "prague"];

/// The part of a host that its controllers see, and the reverse.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Packets with CE that the peer has counted.
    marks: AtomicU64,
    /// No packet leaves before, by the controller's rate; ns after the epoch.
    release: AtomicU64,
}

impl Link {
    /// The peer has counted so many packets with CE.
    pub(crate) fn note_marks(&self, marks: u64) {
        self.marks.fetch_max(marks, Ordering::Relaxed);
    }

    /// The time before which no packet leaves.
    pub(crate) fn release(&self) -> Time {
        Time::from_nanos(self.release.load(Ordering::Relaxed))
    }
}

/// Builds an ackclock controller for each path of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    spec: CcSpec,
    random: Random,
    link: Arc<Link>,
}

impl Law {
    /// The controller of this name out of the box, one of [`NAMES`].
    pub(crate) fn of(name: &str, random: Random) -> Law {
        let Some(spec) = CcSpec::by_name(name, &Stack::default()) else { unreachable!("`{name}` is a controller") };
        Law { spec, random, link: Arc::default() }
    }

    pub(crate) fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// Returns `true` if its packets ask for L4S (RFC 9331 section 4.1).
    pub(crate) fn is_scalable(&self) -> bool {
        let mut cc = self.spec.build(self.random.clone());
        cc.on_ecn(EcnFeedback::Accurate);
        cc.needs().ecn == EcnUse::Scalable
    }

    /// A controller in the state of a new path.
    pub(crate) fn adapted(&self, now: Instant, mtu: u16) -> Adapted {
        Adapted::new(self.clone(), now, mtu)
    }
}

/// An ackclock controller as an implementation sees it.
#[derive(Debug)]
pub(crate) struct Adapted {
    law: Law,
    // Implementations share controllers among threads, and ask only through `&mut` for what changes.
    cc: Mutex<Box<dyn CongestionControl>>,
    flight: Flight,
    window: u64,
    /// What the ACK at hand acknowledges so far.
    ack: Ack,
    /// Packets with CE that have been acted upon.
    marks: u64,
    /// Packets sent no later than this belong to the last reduction, and to the last for a loss.
    recovery_start: Option<Time>,
    loss_start: Option<Time>,
    in_recovery: bool,
    /// The end of the round trip that goes on, a byte of the stream of packets.
    round_end: u64,
    rounds: u64,
    /// Delivery rates, for a controller that asks for them.
    rates: Option<Rates>,
    rate: Option<Rate>,
}

impl Adapted {
    fn new(law: Law, now: Instant, mtu: u16) -> Adapted {
        let mss = u64::from(mtu);
        // RFC 9002 section 7.2.
        let initial_window = (14_720).clamp(2 * mss, 10 * mss);
        let flight = Flight {
            now: time(now),
            mss: mtu.into(),
            in_flight: 0,
            cwnd_limited: true,
            snd_una: 0,
            snd_nxt: 0,
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            after_timeout: false,
            initial_window,
            paced: true,
            app_limited: false,
        };
        let mut cc = law.spec.build(law.random.clone());
        cc.on_established(&flight);
        cc.on_ecn(if law.is_scalable() { EcnFeedback::Accurate } else { EcnFeedback::Classic });
        let window = cc.window().cwnd;
        let rates = cc.needs().delivery_rate.then(Rates::default);
        let rate = cc.pacing_rate(&flight);
        Adapted {
            marks: law.link.marks.load(Ordering::Relaxed),
            law,
            cc: Mutex::new(cc),
            flight,
            window,
            ack: Ack::default(),
            recovery_start: None,
            loss_start: None,
            in_recovery: false,
            round_end: 0,
            rounds: 0,
            rates,
            rate,
        }
    }

    fn cc(&mut self) -> &mut dyn CongestionControl {
        &mut **self.cc.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&mut self, signal: Signal) {
        let flight = self.flight;
        self.cc().on_signal(&flight, signal);
    }

    /// The window and the rate in force.
    fn settle(&mut self) {
        let flight = self.flight;
        let own = self.cc().window();
        let shaped = self.in_recovery && !self.cc().needs().whole_control;
        let least = 2 * u64::from(flight.mss);
        self.window = if shaped { own.cwnd.min(own.ssthresh) } else { own.cwnd }.max(least);
        self.rate = self.cc().pacing_rate(&flight);
    }

    pub(crate) fn sent(&mut self, now: Instant, bytes: u64) {
        self.flight.now = time(now);
        let (flight, needs) = (self.flight, self.cc().needs());
        if needs.departures || flight.in_flight == 0 {
            self.cc().on_sent(&flight, &Sent { seq: flight.snd_nxt, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) });
        }
        if let Some(rates) = &mut self.rates {
            rates.sent(flight.now, flight.snd_nxt, bytes, flight.in_flight);
        }
        self.flight.snd_nxt += bytes;
        self.flight.in_flight += bytes;
        if let Some(rate) = self.cc().pacing_rate(&flight) {
            self.rate = Some(rate);
            let from = self.law.link.release().max(flight.now);
            let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps());
            let until = from + Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.law.link.release.store(until.as_nanos(), Ordering::Relaxed);
        }
    }

    /// A packet sent at `sent` is acknowledged.
    pub(crate) fn acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        (srtt, min_rtt): (Duration, Duration),
    ) {
        self.flight.now = time(now);
        self.flight.cwnd_limited = !app_limited;
        self.flight.srtt = Some(span(srtt));
        self.flight.min_rtt = Some(span(min_rtt));
        self.ack.acked += bytes;
        self.ack.delivered += bytes;
        self.ack.rtt = Some(span(now.saturating_duration_since(sent)));
        let sent_at = time(sent);
        if let Some(rates) = &mut self.rates {
            rates.delivered(self.flight.now, sent_at, bytes);
        }
        // RFC 9002 section 7.3.2: a packet sent during recovery ends it.
        if self.in_recovery && self.recovery_start.is_none_or(|start| sent_at > start) {
            self.in_recovery = false;
            self.signal(Signal::RecoveryEnd);
        }
    }

    /// The ACK at hand is read.
    pub(crate) fn acks_end(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        let mut ack = std::mem::take(&mut self.ack);
        if ack.acked == 0 {
            return;
        }
        self.flight.now = time(now);
        self.flight.snd_una = (self.flight.snd_una + ack.acked).min(self.flight.snd_nxt);
        self.flight.in_flight = in_flight;
        self.flight.latest_rtt = ack.rtt;
        let marks = self.law.link.marks.load(Ordering::Relaxed);
        let marked = marks - std::mem::replace(&mut self.marks, marks);
        ack.ce = (marked * u64::from(self.flight.mss)).min(ack.delivered);
        let round = (self.flight.snd_una > self.round_end).then(|| {
            (self.round_end, self.rounds) = (self.flight.snd_nxt, self.rounds + 1);
            self.rounds
        });
        if let Some(rates) = &mut self.rates {
            let Flight { now, srtt, min_rtt, .. } = self.flight;
            ack.rate = rates.sample(now, (srtt, min_rtt), app_limited.then_some(in_flight));
            self.flight.app_limited = rates.is_app_limited();
        }
        let (flight, in_recovery) = (self.flight, self.in_recovery);
        let needs = self.cc().needs();
        if needs.arrivals {
            let arrival = Arrival {
                ack: flight.snd_una,
                acked: ack.acked,
                delivered: ack.delivered,
                in_recovery,
                rtt: ack.rtt,
                round,
                ce: ack.ce,
                plain: true,
                ..Arrival::default()
            };
            self.cc().on_arrival(&flight, &arrival);
        }
        if needs.whole_control {
            // It has changed the window as it likes; nothing else does.
            let _ = self.cc().on_ack(&flight, &ack);
        } else if !in_recovery && self.cc().on_ack(&flight, &ack) == Verdict::Reduced {
            self.in_recovery = true;
            self.recovery_start = Some(flight.now);
        }
        self.settle();
    }

    /// Packets are lost, the last of them sent at `sent`, or marked if `lost_bytes` is 0.
    pub(crate) fn congested(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.flight.now = time(now);
        let sent_at = time(sent);
        let flight = self.flight;
        if let Some(rates) = &mut self.rates {
            let cc = self.cc.get_mut().unwrap_or_else(PoisonError::into_inner);
            rates.lost(sent_at, lost_bytes, |lost| cc.on_lost(&flight, &lost));
        }
        let is_loss = lost_bytes > 0;
        // A controller to which marks mean little hears of a loss in spite of them.
        let scalable = self.cc().needs().ecn != EcnUse::Data;
        let start = if is_loss && scalable { self.loss_start } else { self.recovery_start };
        if start.is_some_and(|start| sent_at <= start) {
            return;
        }
        self.recovery_start = Some(self.flight.now);
        if is_loss {
            self.loss_start = self.recovery_start;
        }
        if is_persistent {
            // RFC 9002 section 7.6.2.
            self.in_recovery = false;
            self.signal(Signal::Timeout { repeated: false, kept: 0 });
        } else {
            self.in_recovery = true;
            self.signal(if is_loss { Signal::Loss } else { Signal::Ecn });
        }
        self.flight.in_flight = self.flight.in_flight.saturating_sub(lost_bytes);
        // What is lost is never acknowledged: it leaves the stream of packets.
        self.flight.snd_una = (self.flight.snd_una + lost_bytes).min(self.flight.snd_nxt);
        self.settle();
    }

    /// All that was lost has arrived after all.
    pub(crate) fn undo(&mut self) {
        self.in_recovery = false;
        self.signal(Signal::Spurious);
        self.settle();
    }

    pub(crate) fn resize(&mut self, mtu: u16) {
        self.flight.mss = mtu.into();
    }

    /// The window in force.
    pub(crate) fn bytes(&self) -> u64 {
        self.window
    }

    /// The slow start threshold; `None` of a controller with a model of the path.
    pub(crate) fn ssthresh(&self) -> Option<u64> {
        let cc = self.cc.lock().unwrap_or_else(PoisonError::into_inner);
        let Window { ssthresh, .. } = cc.window();
        self.rates.is_none().then_some(ssthresh)
    }

    /// The rate in force, if the controller has one.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    pub(crate) fn initial(&self) -> u64 {
        self.flight.initial_window
    }

    /// A controller of another path.
    pub(crate) fn anew(&self) -> Adapted {
        let mtu = u16::try_from(self.flight.mss).unwrap_or(u16::MAX);
        Adapted::new(self.law.clone(), instant(self.flight.now), mtu)
    }
}
