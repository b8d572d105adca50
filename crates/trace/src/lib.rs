//! Records, measures and summaries of a run.

mod histogram;
mod summary;

pub use histogram::Histogram;
pub use summary::{Distribution, FlowSummary, LinkSummary, MeanQuantiles, Quantiles, Summary};
