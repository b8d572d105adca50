//! What is in flight, what is lost of it, and what the sender does about it.

pub(crate) mod detector;
pub(crate) mod linux;
pub(crate) mod recovery;
pub(crate) mod scoreboard;
pub(crate) mod tail_probe;
pub(crate) mod undo;
