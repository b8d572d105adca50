//! The congestion states, and the time in each.

use ackclock_units::{Span, Time};

/// Where a sender stands between losses, by Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs, not enough to prove a loss.
    Disorder,
    /// The window comes down for a congestion signal without loss (ECN).
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl CaState {
    /// The name in records, Linux's.
    pub const fn name(self) -> &'static str {
        match self {
            CaState::Open => "Open",
            CaState::Disorder => "Disorder",
            CaState::Cwr => "CWR",
            CaState::Recovery => "Recovery",
            CaState::Loss => "Loss",
        }
    }
}

/// Time in the congestion states other than [`CaState::Open`], which has the rest of the sender's
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaStateTime {
    /// Time in [`CaState::Disorder`].
    pub disorder: Span,
    /// Time in [`CaState::Cwr`].
    pub cwr: Span,
    /// Time in [`CaState::Recovery`].
    pub recovery: Span,
    /// Time in [`CaState::Loss`].
    pub loss: Span,
}

impl CaStateTime {
    fn add(&mut self, state: CaState, time: Span) {
        match state {
            CaState::Open => {}
            CaState::Disorder => self.disorder += time,
            CaState::Cwr => self.cwr += time,
            CaState::Recovery => self.recovery += time,
            CaState::Loss => self.loss += time,
        }
    }
}

/// The times, and since when the sender is in its state. Takes memory once it leaves
/// [`CaState::Open`], which many never do.
#[derive(Debug, Default)]
pub(crate) struct StateClock(Option<Box<(Time, CaStateTime)>>);

impl StateClock {
    /// The sender leaves a state.
    #[inline(never)]
    pub(super) fn leave(&mut self, now: Time, state: CaState) {
        let (since, total) = &mut **self.0.get_or_insert_default();
        total.add(state, now.since(*since));
        *since = now;
    }

    /// The times until `now`, at which the sender is in this state.
    pub(crate) fn read(&self, now: Time, state: CaState) -> CaStateTime {
        let Some((since, mut total)) = self.0.as_deref().copied() else { return CaStateTime::default() };
        total.add(state, now.since(since));
        total
    }
}
