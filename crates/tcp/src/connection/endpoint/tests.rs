//! The endpoint against a scripted peer, one file per theme; expectations are worked out from the
//! RFCs.

mod accurate;
mod arbitrary;
mod belonging;
mod closing;
mod dctcp;
mod ecn;
mod fast_open;
mod freebsd;
mod golden;
mod handshake;
mod hostile;
mod limited;
mod linux;
mod loss;
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
use crate::{DelayedAck, EcnFeedback, InitialWindow, MinRto, Prr, Shutdown, SpaceRule, StateRules, TransferRules};
use ackclock_packet::{Flags, Payload, SackBlocks, Segment, Timestamps};
use ackclock_units::Ecn;
use peer::{Script, config};

/// The handshake's RTT is 100 ms, of which RTTVAR is half: the timeout is its minimum, 1 s.
const RTO: u64 = 1000;
