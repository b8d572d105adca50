//! The endpoint against a scripted peer, one file per theme; expectations are worked out from the
//! RFCs.

mod accurate;
mod arbitrary;
mod belonging;
mod berkeley;
mod closing;
mod dctcp;
mod ecn;
mod fast_open;
mod freebsd;
mod freebsd_9;
mod golden;
mod handshake;
mod hostile;
mod limited;
mod linux;
mod loss;
mod offload;
mod own_reduction;
mod pacing;
mod patience;
mod peer;
mod prediction;
mod rates;
mod recovery;
mod sending;
mod sockets;
mod timeout;
mod timestamps;
mod validation;
mod window;
mod witness;

use super::*;
use crate::{
    DelayedAck, EcnFeedback, InitialWindow, MinRto, Prr, Shutdown, SocketOption, SpaceRule, StateRules, TransferRules,
};
use ackclock_packet::{Flags, Payload, SackBlocks, Segment, Timestamps};
use ackclock_units::Ecn;
use peer::{Script, config};

/// The handshake's RTT is 100 ms, of which RTTVAR is half: the timeout is its minimum, 1 s.
const RTO: u64 = 1000;

/// Data that most segments touch lies together, and an endpoint takes no more memory than it has
/// to.
#[test]
fn an_endpoint_is_small_and_begins_with_what_each_visit_touches() {
    use std::mem::offset_of;
    let sizes = (size_of::<Endpoint>(), offset_of!(Endpoint, receiver), offset_of!(Endpoint, sender.config));
    assert!(sizes.0 <= 2176 && sizes.1 <= 640 && sizes.2 <= 1536, "{sizes:?}");
    let sender = (offset_of!(Sender, sequence), offset_of!(Sender, loss.recovery));
    assert!(sender.0 <= 64 && sender.1 <= 320, "{sender:?}");
}
