#![doc = include_str!("../README.md")]
//!
//! ## Where to start
//!
//! [`QueueDisc`] is the trait and [`Queued`] what it asks of a packet. [`Dequeue`] and [`Drops`]
//! are what a discipline returns, [`Counters`] are its books, [`Probe`] are the variables of its
//! algorithm, and [`Store`] keeps the packets of a single queue.

mod afd;
mod avq;
mod blue;
mod books;
mod cake;
mod change;
mod choke;
mod cobalt;
mod cobalt_law;
mod codel;
mod codel_law;
mod curvy_red;
mod discipline;
mod disciplines;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod held;
mod hfsc;
mod htb;
mod limit;
mod overhead;
mod own;
mod pfifo_head_drop;
mod pi2;
mod pie;
mod pie_law;
mod prio;
mod probe;
mod qfq;
mod queue_disc;
mod queued;
mod red;
mod rem;
mod ring;
mod series;
mod sfb;
mod sfq;
mod slab;
mod store;
#[cfg(test)]
mod stub;
mod tbf;
mod tree;
mod wred;

pub use afd::{Afd, AfdConfig};
pub use avq::{Avq, AvqConfig};
pub use blue::{Blue, BlueConfig, BlueStats, BlueThreshold, BlueUpdates};
pub use books::{Backlog, Books, Counters, DropReason, Dropped, Drops, Tally};
pub use cake::{AckFilter, Atm, Cake, CakeConfig, CakeRtt, Diffserv, FlowMode, Framing};
pub use change::ChangeError;
pub use choke::{Choke, ChokeConfig};
pub use cobalt::{Cobalt, CobaltConfig};
pub use codel::{Codel, CodelConfig};
pub use codel_law::ControlLaw;
pub use curvy_red::{CurvyRed, CurvyRedConfig};
pub use disciplines::{
    Class, Hfsc, HfscConfig, Htb, HtbConfig, Qfq, QfqConfig, QueueSpec, Series, SeriesConfig, Stage,
};
pub use dualpi2::{DualPi2, DualPi2Config, StepThreshold};
pub use ets::{Ets, EtsConfig};
pub use fifo::{Fifo, FifoConfig};
pub use fq::{Fq, FqConfig};
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use fq_pie::{FqPie, FqPieConfig};
pub use hfsc::{HfscClass, ServiceCurve};
pub use htb::HtbClass;
pub use limit::Limit;
pub use overhead::{LinkLayer, Overhead};
pub use own::{Described, OwnQueue, OwnQueueConfig};
pub use pfifo_head_drop::{HeadDrop, HeadDropConfig};
pub use pi2::{Pi2, Pi2Config};
pub use pie::{Pie, PieConfig};
pub use pie_law::DqRateEstimator;
pub use prio::{Prio, PrioConfig, PrioMap};
pub use probe::{Probe, Variable};
pub use qfq::QfqClass;
pub use queue_disc::{ClassState, Dequeue, QueueDisc};
pub use queued::{AckHeader, Entry, Headers, Queued};
pub use red::{Red, RedAdaptive, RedBottom, RedConfig, RedFloyd, RedStats, RedWeight};
pub use rem::{Rem, RemConfig};
pub use sfb::{Sfb, SfbConfig, SfbStats};
pub use sfq::{Sfq, SfqConfig, SfqRed};
pub use store::Store;
pub use tbf::{Tbf, TbfConfig};
pub use tree::Filter;
pub use wred::{Wred, WredConfig, WredProfile};
