//! Applications that know no packets: [`Distribution`]s of sizes and times, and [`Messages`], which
//! says what an application writes and when, [`Requests`], a client that waits for answers, and
//! [`Workload`], which says when flows of which sizes arrive.
//! Time is an argument, and random numbers come from the stream that is handed in.

mod columns;
mod distribution;
mod messages;
mod request;
mod table;
pub mod voice;
mod workload;

pub use distribution::{Distribution, DistributionError};
pub use messages::{Message, Messages, OnOff, Pattern, PatternError, Trace, TraceError, seconds};
pub use request::{Exchange, RequestPattern, Requests};
pub use table::{Table, TableError};
pub use workload::{Arrival, Arrivals, PathChoice, Workload, WorkloadPattern, WorkloadStreams};
