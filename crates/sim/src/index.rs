//! Numbers of the parts of a run, each of a type of its own, and tables that they index.
//!
//! A link has two directions, forward and reverse; a flow has two hosts, sender and receiver. Which
//! number follows from which is written here alone. All of it is arithmetic on a machine word.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use ackclock_events::Slot;

/// A number that is the place of something in a [`IndexVec`].
pub(crate) trait Identifier: Copy {
    fn new(index: usize) -> Self;
    fn index(self) -> usize;
}

/// Declares a number with its trait.
macro_rules! id {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        $visibility struct $name(usize);

        impl Identifier for $name {
            #[inline]
            fn new(index: usize) -> $name {
                $name(index)
            }

            #[inline]
            fn index(self) -> usize {
                self.0
            }
        }
    };
}

id! {
    /// A direction of a link: two for each link in the order of the specification, forward and
    /// reverse.
    pub DirectionId
}

id! {
    /// A flow, in the order of the specification.
    pub FlowId
}

id! {
    /// An end of a flow: two for each flow in the order of the specification, sender and receiver.
    pub HostId
}

id! {
    /// A route. The first ones are those of the hosts, in their order.
    pub(crate) RouteId
}

id! {
    /// A splitter between two paths.
    pub(crate) SplitId
}

impl DirectionId {
    /// The direction in which paths list the link at this place.
    pub const fn forward(link: usize) -> DirectionId {
        DirectionId(2 * link)
    }

    /// The way back.
    pub const fn reverse(link: usize) -> DirectionId {
        DirectionId(2 * link + 1)
    }

    /// The link.
    pub const fn link(self) -> usize {
        self.0 / 2
    }

    /// The direction's index in its link, 0 for forward.
    pub(crate) const fn side(self) -> usize {
        self.0 % 2
    }

    /// Both directions of its link.
    pub(crate) const fn pair(self) -> [DirectionId; 2] {
        [DirectionId::forward(self.link()), DirectionId::reverse(self.link())]
    }

    /// The slot of its wakeup.
    #[inline]
    pub(crate) const fn slot(self) -> Slot {
        self.0 as Slot
    }

    /// Whose wakeup it is.
    #[inline]
    pub(crate) const fn of_slot(slot: Slot) -> DirectionId {
        DirectionId(slot as usize)
    }

    /// The directions of this many links, in order.
    pub fn all(links: usize) -> impl Iterator<Item = DirectionId> {
        (0..2 * links).map(DirectionId)
    }
}

impl FlowId {
    /// The flow at this place.
    pub const fn new(index: usize) -> FlowId {
        FlowId(index)
    }

    /// Index in the specification.
    pub const fn index(self) -> usize {
        self.0
    }

    /// The host that sends data.
    #[inline]
    pub const fn sender(self) -> HostId {
        HostId(2 * self.0)
    }

    /// The host that receives data.
    #[inline]
    pub const fn receiver(self) -> HostId {
        HostId(2 * self.0 + 1)
    }
}

impl HostId {
    /// The flow that it is an end of.
    #[inline]
    pub const fn flow(self) -> FlowId {
        FlowId(self.0 / 2)
    }

    /// Returns true for the end that sends data.
    #[inline]
    pub const fn is_sender(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// The other end.
    #[inline]
    pub const fn peer(self) -> HostId {
        HostId(self.0 ^ 1)
    }

    /// The slot of its wakeup.
    #[inline]
    pub(crate) const fn slot(self) -> Slot {
        self.0 as Slot
    }

    /// Whose wakeup it is.
    #[inline]
    pub(crate) const fn of_slot(slot: Slot) -> HostId {
        HostId(slot as usize)
    }

    /// The number for records.
    pub(crate) const fn number(self) -> u32 {
        self.0 as u32
    }

    /// The identifier of a host outside as the destination of packets of no flow: a number behind
    /// those of all ends of flows.
    pub(crate) fn of_node<T>(node: usize, hosts: &IndexVec<HostId, T>) -> HostId {
        HostId(hosts.len() + node)
    }

    /// The host outside that this stands for, if it does.
    pub(crate) fn node<T>(self, hosts: &IndexVec<HostId, T>) -> Option<usize> {
        self.0.checked_sub(hosts.len())
    }
}

impl RouteId {
    /// The route of the packets of a host.
    #[inline]
    pub(crate) const fn of_host(host: HostId) -> RouteId {
        RouteId(host.0)
    }

    /// The route that a packet names.
    #[inline]
    pub(crate) const fn of_packet(route: u32) -> RouteId {
        RouteId(route as usize)
    }

    /// The number by which a packet names it.
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        self.0 as u32
    }
}

/// A list that is indexed by one kind of number alone.
pub(crate) struct IndexVec<I, T> {
    items: Vec<T>,
    by: PhantomData<I>,
}

impl<I: Identifier, T> IndexVec<I, T> {
    pub(crate) fn new() -> IndexVec<I, T> {
        IndexVec { items: Vec::new(), by: PhantomData }
    }

    /// Two items of different numbers.
    pub(crate) fn two(&mut self, one: I, other: I) -> [&mut T; 2] {
        self.items.get_disjoint_mut([one.index(), other.index()]).expect("two different numbers of the table")
    }

    /// Adds an item, and returns its number.
    pub(crate) fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The numbers of all items.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    #[inline]
    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    pub(crate) fn into_iter(self) -> std::vec::IntoIter<T> {
        self.items.into_iter()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<T> IndexVec<HostId, T> {
    /// The two ends of each flow, sender and receiver.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&T, &T)> {
        self.items.chunks_exact(2).map(|ends| (&ends[0], &ends[1]))
    }

    /// The same, taken out.
    pub(crate) fn into_pairs(self) -> impl Iterator<Item = [T; 2]> {
        let mut ends = self.items.into_iter();
        std::iter::from_fn(move || Some([ends.next()?, ends.next()?]))
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> IndexVec<I, T> {
        IndexVec { items: Vec::new(), by: PhantomData }
    }
}

impl<I: Identifier, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> IndexVec<I, T> {
        IndexVec { items: items.into_iter().collect(), by: PhantomData }
    }
}

impl<I: Identifier, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Identifier, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_flow_follow_from_each_other() {
        let flow = FlowId::new(3);
        let (sender, receiver) = (flow.sender(), flow.receiver());
        assert_eq!((sender.number(), receiver.number()), (6, 7));
        assert_eq!((sender.peer(), receiver.peer()), (receiver, sender));
        assert_eq!((sender.flow(), receiver.flow()), (flow, flow));
        assert_eq!((sender.is_sender(), receiver.is_sender()), (true, false));
    }

    #[test]
    fn hosts_outside_are_numbered_behind_ends_of_flows() {
        let hosts: IndexVec<HostId, char> = "abcd".chars().collect();
        let beyond = HostId::of_node(1, &hosts);
        assert_eq!((beyond.number(), beyond.node(&hosts), hosts.get(beyond)), (5, Some(1), None));
        assert_eq!(FlowId::new(1).receiver().node(&hosts), None);
        assert_eq!(hosts.pairs().collect::<Vec<_>>(), [(&'a', &'b'), (&'c', &'d')]);
    }
}
