//! Prefetching of the state that an endpoint's next segment will touch, before it arrives.
//!
//! With so many connections that their state does not stay in the cache, a driver that knows which
//! endpoint comes next can have the state fetched while it deals with another one.

use std::mem::offset_of;

use ackclock_units::{prefetch, prefetch_part};

use super::endpoint::Endpoint;
use crate::loss::Loss;
use crate::loss::scoreboard::Scoreboard;
use crate::receiver::Receiver;
use crate::send::Sender;

impl Endpoint {
    /// Starts to fetch what an arriving segment touches of the endpoint itself, of an end that
    /// sends data or of one that only receives.
    #[inline]
    pub fn prefetch(&self, sends: bool) {
        if sends { self.prefetch_all() } else { self.prefetch_receiver() }
    }

    // Apart, since the two have many lines in common, whose addresses would be computed first.
    #[inline(never)]
    fn prefetch_all(&self) {
        prefetch(self);
    }

    #[inline(never)]
    fn prefetch_receiver(&self) {
        const RECEIVER: usize = offset_of!(Endpoint, receiver);
        const SENDER: usize = offset_of!(Endpoint, sender);
        const BOARD: usize = SENDER + offset_of!(Sender, loss) + offset_of!(Loss, board);
        prefetch_part(self, 0..offset_of!(Endpoint, handshake));
        prefetch_part(self, SENDER..SENDER + offset_of!(Sender, loss));
        prefetch_part(self, RECEIVER..RECEIVER + size_of::<Receiver>());
        prefetch_part(self, BOARD..BOARD + size_of::<Scoreboard>() / 8);
        prefetch_part(self, SENDER + offset_of!(Sender, ecn)..offset_of!(Endpoint, opening));
    }

    /// Starts to fetch what lies behind it. Best called once [`Endpoint::prefetch`] has done its
    /// work.
    #[inline]
    pub fn prefetch_behind(&self, sends: bool) {
        if sends {
            prefetch(&*self.sender.cc);
            self.sender.loss.board.prefetch_behind();
        }
    }
}
