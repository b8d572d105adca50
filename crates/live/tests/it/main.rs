//! All integration tests of the crate, in one binary.

mod broken;
mod hostile;
mod kernel;
mod replay;
mod stacks;
