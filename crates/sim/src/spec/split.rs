//! The splitting of a flow's packets over several paths.

use ackclock_emulator::SplitRule;

/// Several paths in place of one: the first, and others.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitSpec {
    /// Indices of the links of the others, in order: one to 15 of them.
    pub others: Vec<Vec<usize>>,
    /// The rule for packets along the paths; for a flow, its data.
    pub along: SplitRule,
    /// The rule for packets that come back; for a flow, its ACKs.
    pub back: WayBack,
    /// Packets with SYN take the first path in both directions and are not counted.
    pub after_handshake: bool,
    /// The segments of one unit of a host (TSO) take one path, and count as one.
    pub whole_units: bool,
}

/// The way back over several paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// Over one of them, by its number from 0.
    Over(usize),
    /// Over all.
    Split(SplitRule),
}

impl SplitSpec {
    /// The links of the path with this number, of which `first` is number 0.
    pub fn path<'s>(&'s self, first: &'s [usize], number: usize) -> &'s [usize] {
        number.checked_sub(1).map_or(first, |other| &self.others[other])
    }

    /// The links of all paths, of which `first` are those of the first.
    pub fn paths<'s>(&'s self, first: &'s [usize]) -> impl Iterator<Item = &'s [usize]> {
        [first].into_iter().chain(self.others.iter().map(Vec::as_slice))
    }
}
