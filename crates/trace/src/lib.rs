//! Records, measures and summaries of a run.

mod histogram;
mod summary;

pub use histogram::Histogram;
pub use summary::{FlowSummary, LinkSummary, Percentiles, Percentiles5, Percentiles7, Summary};
