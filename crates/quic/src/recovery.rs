//! Observations of quinn's loss recovery: by what its controllers are told, its statistics, and the
//! headers of its packets.
//!
//! # Source
//! RFC 9002 section 7.3: the states of congestion control. RFC 9000 section 17: packet headers.
//!
//! # Departures
//! - Lost packets have no number, and there is neither an RTT variance nor a count of probe timeouts:
//!   quinn does not tell.
//! - There are no states of BBR, for the same reason.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ackclock_stack::{LostPacket, RecoveryEvent, RecoveryMetrics, SentPacket};
use ackclock_units::{Span, Time};
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::{Connection, RttEstimator};

use crate::controller::span;
use crate::transfer::CID;

type Factory = dyn ControllerFactory + Send + Sync;

/// Observes the connection of a client.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    told: SharedLog,
    /// Packets lost so far.
    lost: u64,
    /// The least number that the next packet can have, by packet number space.
    next: [u64; 3],
    events: Vec<(Time, RecoveryEvent)>,
}

/// What the controller has been told so far.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    in_flight: Option<u64>,
    latest_rtt: Option<Span>,
    /// Sending time of the latest packet that was acknowledged.
    newest: Option<Instant>,
    /// Packets sent no later than this belong to the last reduction.
    recovery_start: Option<Instant>,
    in_recovery: bool,
}

#[derive(Clone, Debug, Default)]
struct SharedLog(Arc<Mutex<Told>>);

impl SharedLog {
    fn get(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer {
    /// A factory of the same controllers, observed.
    pub(crate) fn observed(&self, inner: Arc<Factory>) -> Arc<Factory> {
        Arc::new(ObservedFactory { inner, told: self.told.clone() })
    }

    /// A datagram of one or more packets leaves.
    pub(crate) fn sent(&mut self, now: Time, mut datagram: &[u8]) {
        while let Some(Packet { kind, space, number, bits, bytes }) = packet(datagram) {
            // Numbers only rise: the end of one determines it (RFC 9000 appendix A.2).
            let least = self.next[space];
            let number = least + (number.wrapping_sub(least) & ((1 << bits) - 1));
            self.next[space] = number + 1;
            self.events.push((now, RecoveryEvent::Sent(SentPacket { kind, number, bytes: bytes as u64 })));
            datagram = &datagram[bytes..];
        }
    }

    /// An ACK has come, or a timer has expired.
    pub(crate) fn look(&mut self, now: Time, connection: &Connection) {
        let (told, path) = (*self.told.get(), connection.stats().path);
        let lost = std::mem::replace(&mut self.lost, path.lost_packets);
        let event = RecoveryEvent::Lost(LostPacket { data: None, by_timeout: false });
        self.events.extend((lost..path.lost_packets).map(|_| (now, event)));
        let ControllerMetrics { congestion_window, ssthresh, pacing_rate, .. } =
            connection.congestion_state().metrics();
        let state = ssthresh.map(|ssthresh| match congestion_window < ssthresh {
            _ if told.in_recovery => "recovery",
            true => "slow_start",
            false => "congestion_avoidance",
        });
        self.events.extend(state.map(|state| (now, RecoveryEvent::State(state))));
        // Before the first sample quinn has an assumption in its place.
        let measured = |rtt| told.latest_rtt.map(|_| span(rtt));
        let metrics = RecoveryMetrics {
            min_rtt: measured(path.min_rtt),
            smoothed_rtt: measured(path.rtt),
            latest_rtt: told.latest_rtt,
            congestion_window: Some(congestion_window),
            bytes_in_flight: told.in_flight,
            ssthresh: ssthresh.filter(|&ssthresh| ssthresh < u64::MAX),
            pacing_rate,
            ..RecoveryMetrics::default()
        };
        self.events.push((now, RecoveryEvent::Metrics(metrics)));
    }

    /// Hands over what has happened since the last call.
    pub(crate) fn drain(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        self.events.drain(..).for_each(|(at, event)| see(at, event));
    }
}

struct ObservedFactory {
    inner: Arc<Factory>,
    told: SharedLog,
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Observed { inner, told: self.told.clone() })
    }
}

/// A controller that notes what it is told.
struct Observed {
    inner: Box<dyn Controller>,
    told: SharedLog,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let told = &mut *self.told.get();
        // RFC 9002 section 5.1: the newest packet of an ACK gives the sample, if it is new.
        if told.newest.is_none_or(|newest| sent > newest) {
            (told.newest, told.latest_rtt) = (Some(sent), Some(span(now.saturating_duration_since(sent))));
        }
        // Section 7.3.2: a packet sent during recovery ends it.
        if told.recovery_start.is_none_or(|start| sent > start) {
            told.in_recovery = false;
        }
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.told.get().in_flight = Some(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let told = &mut *self.told.get();
        told.in_flight = told.in_flight.map(|in_flight| in_flight.saturating_sub(lost_bytes));
        if told.recovery_start.is_none_or(|start| sent > start) {
            // Section 7.6.2: persistent congestion leads to slow start.
            (told.recovery_start, told.in_recovery) = (Some(now), !is_persistent_congestion);
        }
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Observed { inner: self.inner.clone_box(), told: self.told.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    kind: &'static str,
    /// Packet number space.
    space: usize,
    /// The last `bits` of its number.
    number: u64,
    bits: u32,
    /// Bytes of the packet.
    bytes: usize,
}

/// The first packet of a datagram; `None` of nothing, and of a packet without a number.
fn packet(datagram: &[u8]) -> Option<Packet> {
    let first = *datagram.first()?;
    let (kind, space, at, bytes) = if first & 0x80 == 0 {
        ("1RTT", 2, 1 + CID, datagram.len())
    } else {
        let (kind, space) = match first >> 4 & 0b11 {
            0 => ("initial", 0),
            1 => ("0RTT", 2),
            2 => ("handshake", 1),
            _ => return None,
        };
        // After the version come both connection IDs, then the token of an Initial packet.
        let mut at = 5;
        for _ in 0..2 {
            at += 1 + usize::from(*datagram.get(at)?);
        }
        if kind == "initial" {
            let (token, after) = variable(datagram, at)?;
            at = after + token;
        }
        let (length, at) = variable(datagram, at)?;
        (kind, space, at, at + length)
    };
    let len = usize::from(first & 0b11) + 1;
    let number = datagram.get(at..at + len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    (bytes <= datagram.len()).then_some(Packet { kind, space, number, bits: 8 * len as u32, bytes })
}

/// The variable-length integer at `at`, and where it ends (RFC 9000 section 16).
fn variable(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    let end = at + (1 << (first >> 6));
    let rest = bytes.get(at + 1..end)?;
    let value = rest.iter().fold(usize::from(first & 0x3f), |value, &byte| value << 8 | usize::from(byte));
    // Longer than any datagram: of no packet.
    (value <= usize::from(u16::MAX)).then_some((value, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_datagram_have_their_numbers() {
        // RFC 9000 section 17.2.2: Initial, version 1, a destination ID of 8 bytes and none of the
        // source, no token, 4 bytes of number and payload (two bytes of varint: 0x4004); then
        // section 17.3.1, a short header with a number of two bytes.
        let mut datagram = vec![0b1100_0000, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x40, 4, 9, 0, 0, 0];
        datagram.extend([0b0100_0001, 1, 2, 3, 4, 5, 6, 7, 8, 0x01, 0x02, 0xff]);
        let mut observer = Observer { next: [0, 0, 0xff_f0], ..Observer::default() };
        observer.sent(Time::ZERO, &datagram);
        let mut seen = Vec::new();
        observer.drain(&mut |_, event| seen.push(event));
        // The least number from 0xfff0 on that ends in 0x0102.
        let [initial, short] = [("initial", 9, 22), ("1RTT", 0x1_0102, 12)]
            .map(|(kind, number, bytes)| RecoveryEvent::Sent(SentPacket { kind, number, bytes }));
        assert_eq!(seen, [initial, short]);
        // Nothing of any shorter datagram is read beyond its end.
        for len in 0..datagram.len() {
            observer.sent(Time::ZERO, &datagram[..len]);
        }
    }
}
