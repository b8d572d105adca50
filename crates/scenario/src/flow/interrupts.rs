//! The key `interrupts` of the hosts of a flow: what they receive waits for one.
//!
//! An interface is a link of its own between the path and the host, without a rate and a delay, of
//! which the way to the host has slots ([`ackclock_emulator::Slots`]): the first packet since the
//! last interrupt causes the next one, and those that come until then are handed over together.
//!
//! # Source
//! Linux `ethtool -C`, `rx-usecs`: the time from the first packet to the interrupt
//! (`Documentation/networking/ethtool-netlink.rst`); `packets` is the budget of a poll
//! (`dev_weight`), after which the rest waits for another interrupt.
//!
//! # Departures
//! - The coalescing is constant: no adaptive moderation, and no bound on packets that would cause
//!   an interrupt early (`rx-frames`).
//! - What a host sends never waits; completions of transmissions are not modelled.
//! - Each flow has two hosts of its own, and so two interfaces.

use std::sync::Arc;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_emulator::{Course, Slots};
use ackclock_sim::spec::{DirectionSpec, FlowGroup, FlowSpec, LinkSpec, QueueSpec};

use crate::document::Table;
use crate::fields::Fields;
use crate::link;
use crate::link::slots;
use crate::quantity::Problem;

/// The key.
pub(super) const INTERRUPTS: slots::Keys = slots::Keys {
    key: ("interrupts", "interrupt coalescing at the receiving host"),
    delay: ("delay", "time from the first packet to the interrupt (`rx-usecs` of ethtool)"),
    packets: ("packets", "largest number of packets per interrupt"),
    bytes: ("bytes", "largest number of bytes per interrupt"),
};

/// The interrupts of the sender and of the receiver; `None` hands over at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FlowInterrupts(pub(super) [Option<Slots>; 2]);

impl FlowInterrupts {
    /// Number of hosts of a flow that have any.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().flatten().count() as u64
    }

    /// Checks where the file has them: in flows that are `listed`, `outside` if packets come from
    /// there.
    pub(super) fn check(&self, fields: &Fields<'_>, table: &Table, listed: bool, outside: bool) {
        let of_receiver = || table.get("receiver")?.node.table()?.get(INTERRUPTS.key.0);
        let Some(entry) = table.get(INTERRUPTS.key.0).or_else(of_receiver).filter(|_| self.len() > 0) else { return };
        let (title, expected) = match (outside, listed) {
            (true, _) => ("not where packets come from outside", "`false`, or the virtual clock"),
            (false, false) => ("not with `results = \"sum\"`", "`false`, or `results = \"each\"`"),
            (false, true) => return,
        };
        fields.reject(INTERRUPTS.key.0, &entry.node, Problem::new(title, expected));
    }

    /// Gives the hosts of a flow their interfaces, at the ends of its paths.
    pub(crate) fn attach(&self, flow: &mut FlowSpec, links: &mut Vec<LinkSpec>) {
        let [of_sender, of_receiver] = &self.0;
        for (slots, end, is_sender) in [(of_sender, "sender", true), (of_receiver, "receiver", false)] {
            let Some(slots) = slots else { continue };
            // Paths begin with the sender, unless the data goes against them.
            let is_first = is_sender != flow.reverse;
            let number = links.len();
            links.push(interface(format!("{}.{end}", flow.id), slots, is_first));
            let group = Arc::make_mut(&mut flow.group);
            for path in paths(group) {
                path.insert(if is_first { 0 } else { path.len() }, number);
            }
        }
    }
}

/// All paths of a flow.
fn paths(group: &mut FlowGroup) -> impl Iterator<Item = &mut Vec<usize>> {
    let split = group.split.iter_mut().flat_map(|split| &mut split.others);
    let subflows = group.mptcp.iter_mut().flat_map(|mptcp| &mut mptcp.others);
    [&mut group.path].into_iter().chain(split).chain(subflows)
}

/// An interface whose host receives what comes back along the link, or else what goes along it.
fn interface(name: String, slots: &Slots, receives_back: bool) -> LinkSpec {
    let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(u64::MAX) });
    let sends = DirectionSpec { queue, ..link::bare() };
    let course = Course { slots: Some(slots.clone()), ..Course::default() };
    let receives = DirectionSpec { course, ..sends.clone() };
    let (forward, reverse) = if receives_back { (sends, receives) } else { (receives, sends) };
    LinkSpec { name, forward, reverse, medium: None, is_interface: true }
}
