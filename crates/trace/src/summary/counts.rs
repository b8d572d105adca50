//! Metrics that flows and link directions have as a whole, in windows, in groups or as subflows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::distribution::ProbabilitySummary;
use super::name::{self, Name};
use crate::metrics::metrics;

/// Declares structs of counts, which can be added, and subtracted from later ones.
macro_rules! counts {
    ($(
        $(#[$($about:tt)*])*
        pub struct $name:ident {
            $($(#[$($attribute:tt)*])* pub $key:ident: u64 $(=> $row:tt)?,)*
        }
    )*) => {
        metrics! {$(
            $(#[$($about)*])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$($attribute)*])* pub $key: u64 $(=> $row)?,)*
            }
        )*}

        $(
            impl $name {
                /// Adds the counts of others.
                pub fn add(&mut self, other: &$name) {
                    $(self.$key += other.$key;)*
                }

                /// The counts since `then`; zero for a count that was reset since.
                pub fn since(&self, then: &$name) -> $name {
                    $name { $($key: self.$key.saturating_sub(then.$key),)* }
                }
            }
        )*
    };
}

counts! {
/// Data packets of a sender.
pub struct SentPackets {
    /// Data packets sent, retransmissions included; a FIN without data is none.
    pub sent_packets: u64 => ("sent", "Data packets sent"),
    /// Data packets retransmitted, and SYNs on hosts that count them (Linux).
    pub retransmitted_packets: u64 => ("retrans.", "Retransmissions"),
}

/// Loss recoveries of a sender.
pub struct Recoveries {
    /// Expiries of the retransmission timer.
    pub timeouts: u64 => ("timeouts", "Timeouts"),
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
}

/// Congestion signals to a sender, and reductions that it took back.
pub struct Reactions {
    /// Window reductions taken back.
    pub undos: u64,
    /// ACKs with the ECN echo.
    pub ece_acks: u64 => ("ACKs with ECE", "ACKs with ECN echo"),
}

/// The payload of a flow.
pub struct Progress {
    /// Payload bytes delivered in order to the receiving application.
    pub delivered_bytes: u64,
    /// Payload bytes acknowledged to the sender.
    pub acked_bytes: u64,
}
}

metrics! {
/// Packets of a link direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkPackets {
    /// Rate of the transmitter; its mean if it changes, null if it is unlimited.
    pub rate_bps: Option<u64>,
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets accepted by the queue.
    pub enqueued: u64,
    /// Packets passed to the transmitter.
    pub dequeued: u64,
    /// Packets marked CE.
    pub marked: u64 => ("marked", "Marks"),
    /// Packets dropped, by reason.
    #[serde(deserialize_with = "name::counts")]
    pub dropped: BTreeMap<Name, u64> => ("dropped", "Drops"),
    /// Packets duplicated on the wire.
    pub duplicated: u64,
}

/// The load of a link direction over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// Share of the time in which a transmitter of this rate was busy (with a token bucket, would
    /// have been); 0 for an unlimited rate. If the rate changes, the used share of the capacity.
    pub utilization: f64 => ("busy", "Utilization", [1, 1]),
    /// Share of the time in which packets waited for tokens; null without a token bucket.
    pub bucket_empty: Option<f64> => ("bucket empty", "", [1, 1]),
    /// The discipline's mark or drop probability over time (`blue` only); left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<ProbabilitySummary> => ("probability", "Drop or mark probability"),
    /// Time in the queue of the packets that were transmitted.
    pub sojourn_ms: Distribution => ("sojourn", "Queueing delay"),
    /// Packets waiting, over time.
    pub backlog_packets: Distribution => ("backlog", "Queue length"),
}
}
