//! CDG, congestion control by delay gradients: it backs off when round trips grow longer, however
//! long they are.
//!
//! FreeBSD's is its authors' own; Linux's has the same law on other measurements, with additions of
//! its own.

mod freebsd;
mod linux;

pub use freebsd::{Cdg, CdgConfig};
pub use linux::{LinuxCdg, LinuxCdgConfig};
