#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! ```text
//!   Stack (kernel) --- boots, drives ---> guest --- messages ---> calendar    its clock
//!                                           |                \--> vhost       its network interface
//!                                        process                    \--> vring
//! ```
//!
//! `guest/init.c` is the first process of the kernel: it takes its job from `kernel`, and reports.

#[cfg(target_os = "linux")]
mod calendar;
#[cfg(target_os = "linux")]
mod guest;
mod image;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod vhost;
#[cfg(target_os = "linux")]
mod vring;

use ackclock_stack::OwnStack;

pub use image::IMAGE;

/// The stacks of this crate: `kernel`, on Linux.
pub fn stacks() -> Vec<OwnStack> {
    #[cfg(target_os = "linux")]
    return vec![kernel::stack()];
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}
