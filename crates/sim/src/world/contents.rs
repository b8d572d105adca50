//! The contents of packets, and what the loss of one means to those who measure.

use ackclock_packet::{Payload, Segment};
use ackclock_units::Time;

use crate::datagrams::{DatagramInFlight, Datagrams};
use crate::flow::{Flow, of_all};
use crate::host::Host;
use crate::index::{FlowId, HostId, IndexVec};
use crate::reordering::Reorderings;

/// The contents of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contents {
    pub(super) segment: Segment,
    /// From a sender: the number of the transmission with data, or 0. From a receiver: the number
    /// of the packet.
    pub(super) number: u64,
}

/// A datagram as the contents of a packet. In records, its payload shows its number and length.
impl From<DatagramInFlight> for Contents {
    fn from(datagram: DatagramInFlight) -> Contents {
        let payload = Payload { offset: datagram.number, len: datagram.len };
        Contents { segment: Segment { payload, ..Segment::default() }, number: datagram.sent.as_nanos() }
    }
}

impl From<&Contents> for DatagramInFlight {
    fn from(contents: &Contents) -> DatagramInFlight {
        let Payload { offset, len } = contents.segment.payload;
        DatagramInFlight { number: offset, sent: Time::from_nanos(contents.number), len }
    }
}

/// The end of a flow of datagrams at a host.
pub(super) fn datagrams_of(hosts: &mut IndexVec<HostId, Host>, host: HostId) -> Option<&mut Datagrams> {
    match hosts.get_mut(host) {
        Some(Host::Datagrams(end)) => Some(end),
        _ => None,
    }
}

/// The last copy of a datagram to this host was lost: the end that measures notes it.
#[cold]
pub(super) fn lose_datagram(hosts: &mut IndexVec<HostId, Host>, to: HostId, contents: &Contents) {
    let datagram = DatagramInFlight::from(contents);
    for host in [to, to.peer()] {
        if let Some(end) = datagrams_of(hosts, host) {
            end.lost(datagram.number);
        }
    }
}

/// The last copy of a packet to this host was lost; its flow is not told yet.
pub(super) fn lose_at_places(
    places: &mut Reorderings,
    hosts: &IndexVec<HostId, Host>,
    flows: &IndexVec<FlowId, Flow>,
    (at, to): (Time, HostId),
    contents: &Contents,
) {
    if let Some(number) = number(hosts, to, contents) {
        places.lost(to.peer(), number);
    }
    if let Some(number) = transmission(hosts, to, contents) {
        places.in_sequence(at, to.flow(), number, &flows[to.flow()].truth, None);
    }
}

/// The transmission of data to this host, if sequence numbers order those of its flow.
pub(super) fn transmission(hosts: &IndexVec<HostId, Host>, to: HostId, contents: &Contents) -> Option<u64> {
    match hosts.get(to)? {
        Host::Endpoint(_) | Host::Smoltcp(_) if !to.is_sender() => Some(contents.number).filter(|&number| number > 0),
        _ => None,
    }
}

/// The place of a packet to this host in the order of sending; `None` for those of a sender without
/// data.
pub(super) fn number(hosts: &IndexVec<HostId, Host>, to: HostId, contents: &Contents) -> Option<u64> {
    match hosts.get(to)? {
        Host::Datagrams(_) => Some(contents.segment.payload.offset),
        // Segments are numbered from 1; of several subflows, on all of them together.
        Host::Mptcp(_) => of_all(contents.number).checked_sub(1),
        Host::Endpoint(_) | Host::Smoltcp(_) | Host::Outside(_) => contents.number.checked_sub(1),
    }
}
