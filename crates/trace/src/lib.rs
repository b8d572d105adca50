//! Records, measures and summaries of a run.
//!
//! [`Summary`] is what every run gives. [`QueueCsv`] writes every decision of a queue ([`QueueRecord`]) while a run goes on.

mod histogram;
mod queue;
mod summary;

pub use histogram::Histogram;
pub use queue::{QUEUE_COLUMNS, QueueAction, QueueCsv, QueueRecord, QueueSink};
pub use summary::{Distribution, FlowSummary, LinkSummary, MeanQuantiles, Quantiles, Summary};
