//! Runs of scenarios: on all cores, with their results in order, into output directories.
//!
//! [`batch`] is for programs: lines of JSON, and records in memory. [`session`] does the runs of a
//! scenario into a directory, and tells a [`session::Listener`] of them; [`judged`], [`merge`] and
//! [`verify`] are built on it. Below are [`execute`] (the runs themselves), `ledger` and [`result`]
//! (what they have measured), [`output`] (the directory) with [`partial`] (its files),
//! [`selection`] (which runs), [`memory`] (how many at the same time), [`pilot`] and [`changes`]
//! (what is changed while a run goes on).
//!
//! Nothing is printed here, and no argument is parsed: sentences for a person are returned, or
//! handed to a listener.

pub mod attendant;
pub mod batch;
pub mod changes;
pub mod execute;
pub mod judged;
pub mod ledger;
pub mod memory;
pub mod merge;
pub mod names;
pub mod output;
pub mod parameters;
pub mod partial;
pub mod pilot;
pub mod progress;
pub mod result;
pub mod selection;
pub mod session;
pub mod status;
pub mod verify;
