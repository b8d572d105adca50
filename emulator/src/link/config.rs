//! The configuration of a link.

use ackclock_aqm::Overhead;
use ackclock_units::{Rate, Span};

use crate::impairments::Impairments;

/// The configuration of a link direction, apart from its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Rate of the transmitter; `None` sends immediately, so that nothing ever waits.
    pub rate: Option<Rate>,
    /// A token bucket of this many bytes instead of the transmitter, like a shaper in front of a
    /// much faster line: a packet leaves immediately while there are tokens, and may put the bucket
    /// into debt (Linux's HTB: `burst`). Like HTB, it does not ask an empty queue (`htb_dequeue`,
    /// `htb_dequeue_tree`), so that the queue never learns that the link is idle. `None` is a
    /// transmitter, from which a packet leaves when its last bit is sent, and which tells the queue
    /// so (`qdisc_restart`).
    pub burst: Option<u32>,
    /// Propagation delay, from the end of transmission to arrival.
    pub delay: Span,
    /// Framing of every packet while it is on this link: in the queue's books (as with `tc`'s size
    /// table, tc-stab(8)) and in transmission. 0 bytes count IP packets alone, 14 is what Linux's
    /// `tc` counts on Ethernet, 38 is Ethernet with check sequence, preamble and gap.
    pub overhead: Overhead,
    /// Loss, duplication, bit errors, jitter, reordering.
    pub impairments: Impairments,
}
