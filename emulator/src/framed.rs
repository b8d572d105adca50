//! A packet on a link.

use ackclock_aqm::Queued;
use ackclock_packet::Packet;
use ackclock_units::Ecn;

/// A packet on a link, as its queue holds it: its length includes the link's framing.
///
/// A handle has no room for the hashes of its hosts, so that [`Queued::host_hashes`] takes each
/// flow for one of hosts of its own, as flows of endpoints here are unless they say otherwise
/// (`from`, `to`). A discipline that is fair among hosts is shown them ([`crate::Link::look`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed(pub(crate) Packet);

impl Queued for Framed {
    #[inline]
    fn wire_len(&self) -> u32 {
        self.0.wire_len
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.0.ecn
    }

    #[inline]
    fn set_ce(&mut self) {
        self.0.ecn = Ecn::Ce;
    }

    #[inline]
    fn flow_hash(&self) -> u64 {
        self.0.flow_hash
    }

    #[inline]
    fn dscp(&self) -> u8 {
        self.0.class.dscp()
    }

    fn wash(&mut self) {
        self.0.class = self.0.class.washed();
    }

    #[inline]
    fn is_pure_ack(&self) -> bool {
        self.0.class.is_pure_ack()
    }
}
