//! Scenario files: TOML, checked, to runs; errors that point at their place.
//!
//! [`Scenario::load`] reads a file, applies overrides, and reads every point of its sweep, so that
//! whatever is wrong is found before anything runs; of very many points, some with every value. A
//! scenario then gives the [`RunSpec`](ackclock_sim::spec::RunSpec) of each run, judges the
//! summaries, and writes itself back with every default filled in ([`Scenario::resolved`]).
//!
//! # The format
//!
//! `schema = 1`, `title`, `[run]` (`duration`, `seed`), `[links.NAME]`, `[[flows]]`, `[record]`,
//! `[sweep]`, `[[expect]]`. Every quantity has its unit. A key that takes a *kind* (`queue`, `cc`,
//! `loss`, `loss_detector`, `split`) takes a name, or a table with `kind` and settings. Such a
//! table may hold tables by the name of a kind, whose settings apply when that kind is selected and
//! then override those next to `kind`: with
//!
//! ```toml
//! queue = { kind = "pie", limit = "180p", pie = { target = "20ms" }, fq_codel = { quantum = "1514B" } }
//! ```
//!
//! a sweep over `links.NAME.queue.kind` gives each discipline the limit and its own settings.
//!
//! `application` of a flow is a kind too: what its sender writes and when. Sizes and times in it
//! are values, or tables with a `distribution`. Files are relative to that of the scenario.
//!
//! `[topology]` is a network of many links, copies of links of the file, with hosts that flows and
//! workloads are between.
//!
//! `[[workloads]]` are flows that arrive one after another, each of a size that is drawn.
//!
//! `schedule` of a flow is a list of tables with `at` and `cc`: other controllers of the sender,
//! each from a time of the run on.
//!
//! A flow's `host` names a profile, and each knob is also a key of the flow. `receiver` is the
//! other end: left out it is as the sender, knobs included; a table without `host` changes some of
//! them; with a `host` (or a name alone) it is a host of its own, to which the flow's knobs do not
//! apply.
//!
//! # Hosts
//!
//! `[hosts.NAME]` with `tun` are hosts behind devices, without it they are in this process;
//! `[[paths]]` is what is between two of them, `[[commands]]` what runs on them. A flow may name
//! hosts (`from`, `to`, `port`) in place of a path. `[run]` has the clock: live if a host has a
//! device, unless it says otherwise. On the virtual clock a flow between hosts is an ordinary one
//! over the path between them, with `host` (`linux-6.1` unless set otherwise) in place of each
//! kernel, and everything else that hosts do is left out ([`Scenario::notes`]). On the live clock
//! `host`, `cc` and the other settings are those of the end in this process, if there is one; a
//! flow with both ends in this process, or over a path, is an ordinary one there too. `run.replay`,
//! the path of a capture from the working directory, feeds what came from hosts in virtual time.

mod application;
mod catalogue;
mod cc;
mod change;
mod claim;
mod classes;
mod clock;
mod column;
mod command;
mod course;
mod datagrams;
mod disciplines;
mod distribution;
mod document;
mod dscp;
mod effect;
mod ends;
mod evaluation;
mod expect;
mod extent;
mod fields;
mod flow;
mod host;
mod hosts;
mod hystart;
mod inputs;
mod keys;
mod link;
mod measurement;
mod medium;
mod metric;
mod mptcp;
mod netperf;
mod notes;
mod overhead;
mod overrides;
mod own;
mod parameters;
mod paths;
mod plan;
mod points;
mod policy;
mod probe;
mod quantity;
mod queue;
mod record;
mod report;
mod scenario;
mod schedule;
mod show;
mod sweep;
mod template;
mod topology;
mod traces;
mod until;
mod values;
mod video;
mod web;
mod workload;
mod write;

pub use ackclock_cc::learned::{Measure, Policy, Scratch};
pub use ackclock_sim::Memory;
pub use catalogue::{CATEGORIES, Described, Item, item, items, nearest_category, schema};
pub use claim::Claim;
pub use column::{Column, UnknownColumn};
pub use evaluation::{Evaluation, Miss, RunSpread};
pub use expect::Measures;
pub use flow::MAX_FLOWS;
pub use inputs::Files;
pub use keys::{Domain, Key};
pub use link::htb_bucket;
pub use own::Own;
pub use policy::{measure_by_name, read_agent, read_feature, read_policy};
pub use record::{Capture, Qlog};
pub use report::{ReportedProblem, ScenarioError, nearest};
pub use scenario::{LoadError, Override, Scenario};
pub use sweep::{MAX_READ, MAX_RUNS};
pub use template::{Learning, Template};
pub use values::values;
