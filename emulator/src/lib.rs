//! The path: links made of a queue, a transmitter and a delay line, with their impairments.
//!
//! The same code serves the virtual clock and real time: a link is told the time and acts at its own due times, however
//! late it is asked.

mod impairments;
mod link;
mod recording;
mod split;

pub use impairments::{HoldBack, Impairments, Loss, Reorder};
pub use link::{Framed, Link, LinkConfig, LinkEvent, LinkEventKind};
pub use recording::{Action, Decision};
pub use split::{Split, send_vector};
