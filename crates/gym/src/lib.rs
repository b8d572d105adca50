//! Environments in which congestion controllers learn: a scenario whose flows with
//! `cc = "external"` wait for actions, with observations, rewards, random scenarios and an end.
//!
//! [`Spec`] says what an environment is, [`Env`] is one, and [`VecEnv`] steps many at a time. A run
//! in it is the run of the scenario: a policy that decides in the scenario
//! (`cc = { kind = "policy" }`) as it did here gives the same results.

mod draw;
mod env;
mod network;
mod spec;
mod vector;

pub use draw::Distribution;
pub use env::{Env, EnvShape, Snapshot, StepOutcome};
pub use spec::{Source, Spec, SpecError};
pub use vector::{Autoreset, StepRows, VecEnv};
