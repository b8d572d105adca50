//! CDG, congestion control by delay gradients: it backs off when round trips become longer,
//! whatever their length.
//!
//! FreeBSD's version is by its authors; Linux's has the same control law on different measurements,
//! with additions.

mod freebsd;
mod linux;

pub use freebsd::{Cdg, CdgConfig};
pub use linux::{LinuxCdg, LinuxCdgConfig};
