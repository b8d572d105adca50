#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`CongestionControl`] is the trait: its documentation tells when each hook is called. [`Flight`]
//! is what a controller sees of the sender, [`Ack`] and [`Signal`] are what happens to it,
//! [`Needs`] is what it asks for, and [`Window`] is its answer.

mod algorithm;
mod balia;
mod bbr;
mod cdg;
mod chd;
mod congestion_control;
mod controllers;
mod coupled;
mod coupled_reno;
mod cubic;
mod dctcp;
mod domains;
mod ertt;
#[cfg(test)]
mod fixture;
mod hd;
mod htcp;
mod hystart;
mod hystart_plus_plus;
pub mod learned;
mod lia;
mod newreno;
mod olia;
mod own;
mod prague;
mod reactions;
mod scalable;
mod slow_start;
mod vegas;
mod westwood;
mod wvegas;

pub use algorithm::{Algorithm, Stack};
pub use balia::Balia;
pub use bbr::{Bbr, BbrConfig};
pub use cdg::{Cdg, CdgConfig, DelayState, LinuxCdg, LinuxCdgConfig, QueueState};
pub use chd::{Chd, ChdConfig};
pub use congestion_control::{
    Ack, Arrival, CongestionControl, EcnFeedback, EcnUse, EnhancedRtt, Flight, Inspection, Lost, Needs, RateSample,
    Sent, Signal, Verdict, Window,
};
pub use controllers::CcSpec;
pub use coupled::{Coupled, MAX_SUBFLOWS, Shared, Subflow};
pub use cubic::{Cubic, CubicConfig, CubicRules};
pub use dctcp::{Dctcp, DctcpConfig, DctcpRules};
pub use ertt::Ertt;
pub use hd::{Hd, HdConfig};
pub use htcp::{Htcp, HtcpConfig};
pub use hystart::{HystartConfig, HystartRules};
pub use hystart_plus_plus::HystartPlusPlusConfig;
pub use learned::Learner;
pub use lia::Lia;
pub use newreno::NewReno;
pub use olia::Olia;
pub use own::OwnController;
pub use prague::{Prague, PragueConfig};
pub use reactions::{NewRenoConfig, SlowStartRules};
pub use scalable::{Scalable, ScalableConfig};
pub use vegas::{LinuxVegas, LinuxVegasConfig, Vegas, VegasConfig};
pub use westwood::{Westwood, WestwoodConfig};
pub use wvegas::{Wvegas, WvegasConfig};
