//! The differences between stacks: the settings, and those of real stacks.

pub(crate) mod config;
pub(crate) mod controllers;
pub(crate) mod ecn;
pub(crate) mod loss;
pub(crate) mod offload;
pub(crate) mod path;
pub mod profile;
pub(crate) mod rules;
pub(crate) mod ticks;
pub(crate) mod transfer;
pub(crate) mod tuning;
pub(crate) mod window;
