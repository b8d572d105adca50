//! Applications that know no packets: [`Distribution`]s of sizes and times, and [`Messages`], which
//! says what an application writes and when, clients that wait for answers ([`Requests`], [`Web`],
//! a browser, and [`Video`], a player), probes of responsiveness ([`ProbePattern`],
//! [`LoadPattern`], [`ProbeTimes`]), and [`Workload`], which says when flows of which sizes arrive.
//! Time is an argument, and random numbers come from the stream that is handed in.

mod columns;
mod distribution;
mod messages;
mod netperf;
mod probe;
mod request;
mod responsiveness;
mod table;
mod video;
pub mod voice;
mod web;
mod workload;

pub use distribution::{Distribution, DistributionError};
pub use messages::{Message, MessageTraceError, Messages, OnOff, Pattern, PatternError, Trace, seconds};
pub use netperf::{ConnectionSeen, Netperf, NetperfPattern, NetperfStep};
pub use probe::{LoadPattern, ProbePattern, ProbeTicks, Transfer};
pub use request::{Exchange, RequestPattern, Requests};
pub use responsiveness::{ProbeTimes, Responsiveness, TRIMMED_MEAN_PERCENT, trimmed_mean};
pub use table::{Table, TableError};
pub use video::{Adaptation, Bba, Bola, Video, VideoPattern, VideoReport};
pub use web::{Web, WebPattern};
pub use workload::{Arrival, Arrivals, PathChoice, Workload, WorkloadPattern, WorkloadStreams};
