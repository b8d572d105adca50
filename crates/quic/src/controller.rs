//! ackclock's congestion controllers in place of quinn's, so that one law can be compared across
//! transports.
//!
//! # Source
//! RFC 9002 section 7: what a QUIC sender tells its controller, and when recovery begins and ends.
//!
//! # Departures
//! - A window counts bytes of packets, as quinn's do, where TCP counts payload.
//! - No packet is retransmitted, so that RTT samples have no Karn's rule, and acknowledged bytes are
//!   those delivered.
//! - The window is at the slow start threshold during recovery (RFC 9002 section 7.3.2) and not
//!   shaped by PRR.
//! - quinn takes losses back in no case: there is no `Signal::Spurious`.
//! - After a migration a controller begins anew (RFC 9000 section 9.4).

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ackclock_cc::{Ack, Arrival, CcSpec, CongestionControl, EcnFeedback, Flight, Sent, Signal, Stack, Verdict};
use ackclock_units::{Random, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Controllers of ackclock that need nothing that quinn does not tell: neither delivery rates, nor
/// counts of marks, nor the enhanced round-trip times of a TCP sender.
pub(crate) const NAMES: [&str; 5] = ["newreno", "cubic", "cdg", "htcp", "westwood"];

/// Builds an ackclock controller for each path of a connection.
#[derive(Clone)]
pub(crate) struct Law {
    spec: CcSpec,
    random: Random,
}

impl Law {
    /// The controller of this name out of the box; `None` if there is none.
    pub(crate) fn by_name(name: &str, random: Random) -> Option<Law> {
        Some(Law { spec: CcSpec::by_name(name, &Stack::default())?, random })
    }
}

impl ControllerFactory for Law {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapted::new(Law::clone(&self), now, current_mtu))
    }
}

/// An ackclock controller as quinn sees it.
struct Adapted {
    law: Law,
    // quinn shares controllers among threads, and asks only through `&mut` for what changes.
    cc: Mutex<Box<dyn CongestionControl>>,
    /// quinn's instant of time 0 here.
    epoch: Instant,
    flight: Flight,
    window: u64,
    /// What the ACK at hand acknowledges so far.
    ack: Ack,
    /// Packets sent no later than this belong to the last reduction.
    recovery_start: Option<Time>,
    in_recovery: bool,
    /// The end of the round trip that goes on, a byte of the stream of packets.
    round_end: u64,
    rounds: u64,
}

impl Adapted {
    fn new(law: Law, now: Instant, mtu: u16) -> Adapted {
        let mss = u64::from(mtu);
        // RFC 9002 section 7.2.
        let initial_window = (14_720).clamp(2 * mss, 10 * mss);
        let flight = Flight {
            now: Time::ZERO,
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
        cc.on_ecn(EcnFeedback::Classic);
        let window = cc.window().cwnd;
        Adapted {
            law,
            cc: Mutex::new(cc),
            epoch: now,
            flight,
            window,
            ack: Ack::default(),
            recovery_start: None,
            in_recovery: false,
            round_end: 0,
            rounds: 0,
        }
    }

    fn cc(&mut self) -> &mut dyn CongestionControl {
        &mut **self.cc.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX))
    }

    fn signal(&mut self, signal: Signal) {
        let flight = self.flight;
        self.cc().on_signal(&flight, signal);
    }

    /// The window in force.
    fn settle(&mut self) {
        let own = self.cc().window();
        let least = 2 * u64::from(self.flight.mss);
        self.window = if self.in_recovery { own.cwnd.min(own.ssthresh) } else { own.cwnd }.max(least);
    }
}

pub(crate) fn span(duration: std::time::Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Controller for Adapted {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.flight.now = self.time(now);
        let (flight, needs) = (self.flight, self.cc().needs());
        if needs.departures || flight.in_flight == 0 {
            self.cc().on_sent(&flight, &Sent { seq: flight.snd_nxt, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) });
        }
        self.flight.snd_nxt += bytes;
        self.flight.in_flight += bytes;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.flight.now = self.time(now);
        self.flight.cwnd_limited = !app_limited;
        self.flight.srtt = Some(span(rtt.get()));
        self.flight.min_rtt = Some(span(rtt.min()));
        self.ack.acked += bytes;
        self.ack.delivered += bytes;
        self.ack.rtt = Some(span(now.saturating_duration_since(sent)));
        // RFC 9002 section 7.3.2: a packet sent during recovery ends it.
        if self.in_recovery && self.recovery_start.is_none_or(|start| self.time(sent) > start) {
            self.in_recovery = false;
            self.signal(Signal::RecoveryEnd);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let ack = std::mem::take(&mut self.ack);
        if ack.acked == 0 {
            return;
        }
        self.flight.now = self.time(now);
        self.flight.snd_una = (self.flight.snd_una + ack.acked).min(self.flight.snd_nxt);
        self.flight.in_flight = in_flight;
        self.flight.latest_rtt = ack.rtt;
        let round = (self.flight.snd_una > self.round_end).then(|| {
            (self.round_end, self.rounds) = (self.flight.snd_nxt, self.rounds + 1);
            self.rounds
        });
        let (flight, in_recovery) = (self.flight, self.in_recovery);
        if self.cc().needs().arrivals {
            let arrival = Arrival {
                ack: flight.snd_una,
                acked: ack.acked,
                delivered: ack.delivered,
                in_recovery,
                rtt: ack.rtt,
                round,
                plain: true,
                ..Arrival::default()
            };
            self.cc().on_arrival(&flight, &arrival);
        }
        if !in_recovery && self.cc().on_ack(&flight, &ack) == Verdict::Reduced {
            self.in_recovery = true;
            self.recovery_start = Some(flight.now);
        }
        self.settle();
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        self.flight.now = self.time(now);
        if self.recovery_start.is_some_and(|start| self.time(sent) <= start) {
            return;
        }
        self.recovery_start = Some(self.flight.now);
        if is_persistent_congestion {
            // RFC 9002 section 7.6.2.
            self.in_recovery = false;
            self.signal(Signal::Timeout { repeated: false, kept: 0 });
        } else {
            self.in_recovery = true;
            self.signal(if lost_bytes == 0 { Signal::Ecn } else { Signal::Loss });
        }
        self.flight.in_flight = self.flight.in_flight.saturating_sub(lost_bytes);
        // What is lost is never acknowledged: it leaves the stream of packets.
        self.flight.snd_una = (self.flight.snd_una + lost_bytes).min(self.flight.snd_nxt);
        self.settle();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.flight.mss = new_mtu.into();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let cc = self.cc.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut metrics = ControllerMetrics::default();
        (metrics.congestion_window, metrics.ssthresh) = (self.window, Some(cc.window().ssthresh));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let mtu = u16::try_from(self.flight.mss).unwrap_or(u16::MAX);
        Box::new(Adapted::new(self.law.clone(), self.epoch, mtu))
    }

    fn initial_window(&self) -> u64 {
        self.flight.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
