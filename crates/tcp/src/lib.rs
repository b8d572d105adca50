//! A sans-IO TCP endpoint.

mod config;

pub use config::{Config, DelayedAck, InitialWindow, LossDetector, MinRto, Prr};
