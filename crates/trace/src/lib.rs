//! Records, measures and summaries of a run.
//!
//! [`Summary`] is what every run gives. [`QueueCsv`] writes every decision of a queue ([`QueueRecord`]) while a run goes on,
//! [`TcpCsv`] every ACK of a flow and what its losses and retransmissions were in truth ([`TcpRecord`]).

mod histogram;
mod queue;
mod rows;
mod summary;
mod tcp;

pub use histogram::{Histogram, SignedHistogram};
pub use queue::{QUEUE_COLUMNS, QueueAction, QueueCsv, QueueRecord, QueueSink};
pub use summary::{
    Displacement, Distribution, FlowSummary, LinkSummary, LossDeclarations, MeanQuantiles, Quantiles, Retransmissions,
    Summary,
};
pub use tcp::{AckRecord, Judged, TCP_COLUMNS, TcpCsv, TcpEvent, TcpRecord, TcpSink, Verdict};
