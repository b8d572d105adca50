#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`Link`] is one direction of a link, [`LinkConfig`] and [`Impairments`] are its parameters,
//! [`Course`] is how they change over time, with a [`Trace`], which a [`Model`] can draw,
//! [`LinkEvent`] is what it reports to a [`LinkSink`], [`Decision`] is what its queue did,
//! [`Split`] chooses between two paths, and a [`Medium`] lets two links transmit in turn.
//! [`Network`] joins links by routes, for programs with their own hosts.

pub use ackclock_traffic::Distribution;

mod autorate;
mod course;
mod framed;
mod impairments;
mod link;
mod medium;
mod network;
mod recording;
mod split;
mod trace;

pub use autorate::{Autorate, AutorateConfig};
pub use course::{AutorateSpec, Change, Course, Up};
pub use framed::Framed;
pub use impairments::{GilbertElliott, HoldBack, Impairments, JitterDistribution, JitterTable, Loss, Markov, Reorder};
pub use link::{
    BqlConfig, DeviceConfig, DeviceLimit, Link, LinkConfig, LinkEvent, LinkEventKind, LinkSink, Slots, Usage,
};
pub use medium::{Medium, MediumConfig};
pub use network::{Arrival, Header, LinkId, Network, RouteId};
pub use recording::{Action, Decision};
pub use split::{MAX_PATHS, Split, SplitRule, send_vector};
pub use trace::{Format, Model, Notation, OPPORTUNITY, Trace, TraceError};
