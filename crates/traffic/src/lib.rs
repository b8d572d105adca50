//! Applications that know no packets: [`Distribution`]s of sizes and times, and [`Messages`], which
//! says what an application writes and when, clients that wait for answers ([`Requests`], [`Web`],
//! a browser, and [`Video`], a player), and [`Workload`], which says when flows of which sizes
//! arrive. Time is an argument, and random numbers come from the stream that is handed in.

mod columns;
mod distribution;
mod messages;
mod request;
mod table;
mod video;
pub mod voice;
mod web;
mod workload;

pub use distribution::{Distribution, DistributionError};
pub use messages::{Message, Messages, OnOff, Pattern, PatternError, Trace, TraceError, seconds};
pub use request::{Exchange, RequestPattern, Requests};
pub use table::{Table, TableError};
pub use video::{Adaptation, Bba, Bola, Video, VideoPattern, VideoReport};
pub use web::{Web, WebPattern};
pub use workload::{Arrival, Arrivals, PathChoice, Workload, WorkloadPattern, WorkloadStreams};
