//! Observations of loss recovery: by what controllers are told, the statistics of an implementation,
//! and the headers of its packets.
//!
//! # Source
//! RFC 9002 section 7.3: the states of congestion control.
//!
//! # Departures
//! - There is neither an RTT variance nor a count of probe timeouts, and packets that quinn declares
//!   lost have no number: implementations do not tell.
//! - There are no states of BBR, for the same reason.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ackclock_stack::{LostPacket, RecoveryEvent, RecoveryMetrics, SentPacket};
use ackclock_units::{Span, Time};

use crate::clock::span;
use crate::transfer::PathFigures;
use crate::wire::{Packet, packet};

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
#[derive(Debug, Default)]
pub(crate) struct Told {
    in_flight: Option<u64>,
    latest_rtt: Option<Span>,
    /// Sending time of the latest packet that was acknowledged.
    newest: Option<Instant>,
    /// Packets sent no later than this belong to the last reduction.
    recovery_start: Option<Instant>,
    in_recovery: bool,
    /// Numbers of lost packets since the last look.
    lost: Vec<u64>,
}

impl Told {
    /// A packet sent at `sent` is acknowledged.
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant) {
        // RFC 9002 section 5.1: the newest packet of an ACK gives the sample, if it is new.
        if self.newest.is_none_or(|newest| sent > newest) {
            (self.newest, self.latest_rtt) = (Some(sent), Some(span(now.saturating_duration_since(sent))));
        }
        // Section 7.3.2: a packet sent during recovery ends it.
        if self.recovery_start.is_none_or(|start| sent > start) {
            self.in_recovery = false;
        }
    }

    /// The ACK at hand is read.
    pub(crate) fn acks_end(&mut self, in_flight: u64) {
        self.in_flight = Some(in_flight);
    }

    /// Packets are lost, the last of them sent at `sent`, or marked.
    pub(crate) fn congested(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.in_flight = self.in_flight.map(|in_flight| in_flight.saturating_sub(lost_bytes));
        if self.recovery_start.is_none_or(|start| sent > start) {
            // Section 7.6.2: persistent congestion leads to slow start.
            (self.recovery_start, self.in_recovery) = (Some(now), !is_persistent);
        }
    }

    /// The packet of this number is lost.
    pub(crate) fn lost(&mut self, number: u64) {
        self.lost.push(number);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLog(Arc<Mutex<Told>>);

impl SharedLog {
    pub(crate) fn get(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer {
    /// The place where an observed controller notes what it is told.
    pub(crate) fn log(&self) -> SharedLog {
        self.told.clone()
    }

    /// A datagram of one or more packets leaves.
    pub(crate) fn sent(&mut self, now: Time, mut datagram: &[u8]) {
        while let Some(Packet { kind, space, number, bits, bytes, .. }) = packet(datagram) {
            // Numbers only rise: the end of one determines it (RFC 9000 appendix A.2).
            let least = self.next[space];
            let number = least + (number.wrapping_sub(least) & ((1 << bits) - 1));
            self.next[space] = number + 1;
            self.events.push((now, RecoveryEvent::Sent(SentPacket { kind, number, bytes: bytes as u64 })));
            datagram = &datagram[bytes..];
        }
    }

    /// An ACK has come, or a timer has expired.
    pub(crate) fn look(&mut self, now: Time, path: &PathFigures) {
        let told = &mut *self.told.get();
        let unknown = path.lost_packets.saturating_sub(std::mem::replace(&mut self.lost, path.lost_packets));
        let unknown = unknown.saturating_sub(told.lost.len() as u64);
        let numbers = told.lost.drain(..).map(Some).chain((0..unknown).map(|_| None));
        let lost = |number| RecoveryEvent::Lost(LostPacket { number, data: None, by_timeout: false });
        self.events.extend(numbers.map(|number| (now, lost(number))));
        let state = path.ssthresh.map(|ssthresh| match path.cwnd_bytes < ssthresh {
            _ if told.in_recovery => "recovery",
            true => "slow_start",
            false => "congestion_avoidance",
        });
        self.events.extend(state.map(|state| (now, RecoveryEvent::State(state))));
        // Before the first sample there is an assumption in its place.
        let measured = |rtt| told.latest_rtt.map(|_| span(rtt));
        let metrics = RecoveryMetrics {
            min_rtt: path.min_rtt.and_then(measured),
            smoothed_rtt: measured(path.rtt),
            latest_rtt: told.latest_rtt,
            congestion_window: Some(path.cwnd_bytes),
            bytes_in_flight: told.in_flight,
            ssthresh: path.ssthresh.filter(|&ssthresh| ssthresh < u64::MAX),
            pacing_rate: path.pacing_rate,
            ..RecoveryMetrics::default()
        };
        self.events.push((now, RecoveryEvent::Metrics(metrics)));
    }

    /// Hands over what has happened since the last call.
    pub(crate) fn drain(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        self.events.drain(..).for_each(|(at, event)| see(at, event));
    }
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
