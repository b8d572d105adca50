//! Counts of the ends of a flow.

use ackclock_tcp::{CaStateTime, Endpoint, LimitedTime, Snapshot, Stats};
use ackclock_trace::{CaStateSeconds, FlowPoint, Limited, Progress, Reactions, Recoveries, SentPackets};
use ackclock_units::{Span, Time};

use crate::direction::mean;
use crate::host::{Host, totals};
use crate::watch::WatchCounts;

/// Counts of the two ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EndCounts {
    pub(super) sent: SentPackets,
    pub(super) recoveries: Recoveries,
    pub(super) reactions: Reactions,
    pub(super) progress: Progress,
    /// Bytes of the peer's stream that the sender's application has read.
    pub(super) response_bytes: u64,
}

impl EndCounts {
    pub(super) fn add(&mut self, other: &EndCounts) {
        self.sent.add(&other.sent);
        self.recoveries.add(&other.recoveries);
        self.reactions.add(&other.reactions);
        self.progress.add(&other.progress);
        self.response_bytes += other.response_bytes;
    }

    /// The counts since `then`; zero for a flow of programs outside that has begun anew.
    pub(super) fn since(&self, then: &EndCounts) -> EndCounts {
        EndCounts {
            sent: self.sent.since(&then.sent),
            recoveries: self.recoveries.since(&then.recoveries),
            reactions: self.reactions.since(&then.reactions),
            progress: self.progress.since(&then.progress),
            response_bytes: self.response_bytes.saturating_sub(then.response_bytes),
        }
    }

    pub(super) fn with(mut self, stats: &Stats) -> EndCounts {
        self.sent = data_packets(stats);
        self.sent.retransmitted_packets += u64::from(stats.resent_syns);
        self.recoveries = Recoveries { timeouts: stats.timeouts, fast_recoveries: stats.fast_recoveries };
        self.reactions = Reactions { undos: stats.undos, ece_acks: stats.ece_acks };
        self
    }

    pub(super) fn of(sender: &Host, receiver: &Host) -> EndCounts {
        let mut both = EndCounts {
            progress: Progress { delivered_bytes: receiver.delivered_bytes(), acked_bytes: sender.acked_bytes() },
            response_bytes: sender.delivered_bytes(),
            ..EndCounts::default()
        };
        match sender {
            Host::Endpoint(endpoint) => return both.with(endpoint.sender().stats()),
            Host::Mptcp(connection) => return both.with(&totals(connection)),
            Host::Outside(watch) => {
                let WatchCounts { sent, ece_acks, .. } = watch.counts();
                (both.sent, both.reactions.ece_acks) = (sent, ece_acks);
            }
            Host::Smoltcp(stock) => both.sent = stock.stats().sent,
            Host::Datagrams(end) => both.sent.sent_packets = end.sent(),
        }
        both
    }
}

/// Data packets that an endpoint counts.
pub(super) fn data_packets(stats: &Stats) -> SentPackets {
    SentPackets { sent_packets: stats.data_packets(), retransmitted_packets: stats.retransmitted_data() }
}

/// The counts of a flow at some time, for a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowCount {
    /// Bytes of packets that arrived at the receiver.
    pub(super) bytes: u64,
    pub(super) rtt_sum: u128,
    pub(super) rtt_samples: u64,
    pub(super) counts: EndCounts,
}

impl FlowCount {
    /// Adds what others have counted.
    pub(crate) fn add(&mut self, other: &FlowCount) {
        self.bytes += other.bytes;
        self.rtt_sum += other.rtt_sum;
        self.rtt_samples += other.rtt_samples;
        self.counts.add(&other.counts);
    }

    /// The same of a connection whose bytes are counted elsewhere.
    pub(crate) fn without_bytes(self) -> FlowCount {
        FlowCount { bytes: 0, ..self }
    }

    /// Bytes of responses since `then`.
    pub(crate) fn responses_since(&self, then: &FlowCount) -> u64 {
        self.counts.since(&then.counts).response_bytes
    }

    /// Bytes and data packets since `then`, and the other values of a series, with these variables.
    pub(crate) fn since(&self, then: &FlowCount, variables: FlowPoint) -> (u64, u64, FlowPoint) {
        let EndCounts { sent, recoveries, progress, .. } = self.counts.since(&then.counts);
        let point = FlowPoint {
            delivered_bytes: progress.delivered_bytes,
            retransmitted_packets: sent.retransmitted_packets,
            timeouts: recoveries.timeouts,
            rtt: mean(self.rtt_sum - then.rtt_sum, self.rtt_samples - then.rtt_samples),
            ..variables
        };
        (self.bytes.saturating_sub(then.bytes), sent.sent_packets, point)
    }
}

/// A point of a series with the variables of an endpoint alone.
pub(crate) fn variables(sender: &Endpoint) -> FlowPoint {
    let now = Snapshot::of(sender.sender());
    FlowPoint {
        srtt: now.srtt,
        cwnd: Some(now.cwnd),
        ssthresh: Some(now.ssthresh).filter(|&ssthresh| ssthresh < u64::MAX),
        in_flight: Some(now.pipe),
        reordering: Some(now.counts.reordering.into()),
        ca_state: Some(now.ca_state.name()),
        ..FlowPoint::default()
    }
}

/// The same of the ends of a flow.
pub(crate) fn variables_of(sender: &Host, receiver: &Host) -> FlowPoint {
    match sender {
        Host::Endpoint(endpoint) => variables(endpoint),
        Host::Mptcp(connection) => {
            let open = connection.subflows().iter().filter(|subflow| subflow.is_open());
            FlowPoint {
                srtt: connection.srtt(),
                cwnd: Some(connection.cwnd()),
                in_flight: Some(open.map(|subflow| subflow.endpoint().sender().pipe()).sum()),
                reordered_bytes: match receiver {
                    Host::Mptcp(receiver) => Some(receiver.reordered_bytes().0),
                    _ => None,
                },
                ..FlowPoint::default()
            }
        }
        Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => FlowPoint::default(),
    }
}

/// The time by limiting factor of a sender, in seconds.
pub(super) fn limited(time: LimitedTime) -> Limited {
    Limited {
        cwnd: time.cwnd.as_secs_f64(),
        rwnd: time.rwnd.as_secs_f64(),
        app: time.app.as_secs_f64(),
        pacing: time.pacing.as_secs_f64(),
    }
}

/// The time of a sender in each congestion state until `end`, in seconds, in a time of this length.
pub(super) fn ca_states(sender: &Host, end: Time, length: Span) -> CaStateSeconds {
    ca_time(sender, end).map_or_else(CaStateSeconds::default, |time| ca_seconds(time, length))
}

/// The time of a sender in each congestion state until `end`; `None` for a sender outside, or one
/// that has not sent.
pub(super) fn ca_time(sender: &Host, end: Time) -> Option<CaStateTime> {
    match sender {
        // One that never sent has a flow that consists of other connections.
        Host::Endpoint(endpoint) if endpoint.sender().stats().sent_packets > 0 => {
            Some(endpoint.sender().loss().state_time(end))
        }
        _ => None,
    }
}

/// These times in seconds, in a time of this length.
pub(super) fn ca_seconds(CaStateTime { disorder, cwr, recovery, loss }: CaStateTime, length: Span) -> CaStateSeconds {
    CaStateSeconds {
        open: (length - (disorder + cwr + recovery + loss)).as_secs_f64(),
        disorder: disorder.as_secs_f64(),
        cwr: cwr.as_secs_f64(),
        recovery: recovery.as_secs_f64(),
        loss: loss.as_secs_f64(),
    }
}

/// The adaptive threshold of a sender, segments.
pub(super) fn dupthresh(sender: &Host) -> Option<u64> {
    match sender {
        Host::Endpoint(endpoint) => Some(endpoint.sender().loss_counts().reordering.into()),
        Host::Mptcp(_) | Host::Smoltcp(_) | Host::Outside(_) | Host::Datagrams(_) => None,
    }
}

/// Bytes in a time as bits per second; 0 in none.
pub(super) fn bits_per_second(bytes: u64, time: Span) -> f64 {
    if time > Span::ZERO { bytes as f64 * 8.0 / time.as_secs_f64() } else { 0.0 }
}
