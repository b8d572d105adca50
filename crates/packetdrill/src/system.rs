//! The systems whose calls are known.

/// The system whose calls the host has, where stacks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    FreeBsd,
}
