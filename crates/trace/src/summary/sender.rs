//! Results of a sender: limiting factors, congestion states, loss declarations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Name;
use crate::metrics::metrics;

metrics! {
/// Time by the factor that limited a sender, s, without opening and closing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// The congestion window was full.
    pub cwnd: f64,
    /// The receiver's window was full.
    pub rwnd: f64,
    /// The application had nothing to send, or too little.
    pub app: f64,
    /// The time of the next paced segment had not come.
    pub pacing: f64,
}

/// Time of a sender in each congestion state, s, by Linux's names; hosts that follow the RFCs are
/// in the corresponding ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaStateSeconds {
    /// Nothing unusual.
    pub open: f64,
    /// Duplicate ACKs or SACKs, not enough to prove a loss.
    pub disorder: f64,
    /// The window was reduced for a mark, or because a queue of the host was full.
    pub cwr: f64,
    /// Fast recovery.
    pub recovery: f64,
    /// After a retransmission timeout.
    pub loss: f64,
}

/// Every retransmission of data is one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retransmissions {
    /// Every earlier transmission of some of its data was lost.
    pub needed: u64,
    /// None of its data was lost; other arrivals caused it.
    pub spurious_reordering: u64,
    /// None of its data was lost; a timer caused it.
    pub spurious_delay: u64,
    /// Needed retransmissions by link direction (or `receiver`, where data was refused) and reason
    /// of the loss.
    #[serde(deserialize_with = "super::name::counts_by_place")]
    pub by_queue: BTreeMap<String, BTreeMap<Name, u64>>,
}

/// Every transmission declared lost counts once, as right or wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossDeclarations {
    /// Declared transmissions that were lost.
    pub right: u64,
    /// Declarations before any ACK could show the loss: usually by a timeout.
    pub blind: u64,
    /// Declared transmissions that were not lost.
    pub wrong: u64,
}
}
