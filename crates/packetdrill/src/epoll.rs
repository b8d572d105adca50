//! Instances of epoll, and the bits of events.

pub(crate) const IN: u32 = 0x1;
pub(crate) const OUT: u32 = 0x4;
pub(crate) const ERR: u32 = 0x8;
pub(crate) const HUP: u32 = 0x10;
pub(crate) const NVAL: u32 = 0x20;
pub(crate) const RDNORM: u32 = 0x40;
pub(crate) const WRNORM: u32 = 0x100;
pub(crate) const RDHUP: u32 = 0x2000;
pub(crate) const ONESHOT: u32 = 1 << 30;
pub(crate) const EDGE: u32 = 1 << 31;

/// An epoll instance.
#[derive(Debug)]
pub(crate) struct Epoll {
    pub(crate) fd: Option<i64>,
    pub(crate) items: Vec<Item>,
}

impl Epoll {
    /// An instance that watches nothing.
    pub(crate) fn new(fd: i64) -> Epoll {
        Epoll { fd: Some(fd), items: Vec::new() }
    }
}

/// A socket that an epoll instance watches.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) socket: usize,
    pub(crate) events: u32,
    pub(crate) data: i64,
    /// Edge-triggered: what was there when it was last looked at.
    pub(crate) seen: Option<Activity>,
    /// One shot, and it was fired.
    pub(crate) spent: bool,
}

/// The state that changes whenever something happens on a socket that wakes its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) delivered: u64,
    pub(crate) ready: u32,
}

/// An event that epoll_wait gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) events: u32,
    pub(crate) data: i64,
}
