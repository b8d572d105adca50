//! The timers that seldom run have one deadline, so that a visit does not look at all of them.

use ackclock_units::Time;

use crate::Endpoint;

impl Endpoint {
    /// The timers that seldom run: those of a closed window, of a silent peer, of the path and of
    /// the beginning and the end of a connection.
    pub(super) fn next_rare_deadline(&self) -> Time {
        let peer = self.sender.persist.deadline().min(self.liveness.deadline());
        self.timers.next_rare().min(peer).min(self.sender.path.deadline())
    }

    /// After whatever may have set one of the timers that seldom run. Full segments, plain
    /// acknowledgments and expected segments set none.
    #[inline]
    pub(crate) fn review_deadlines(&mut self) {
        self.rare_deadline = self.next_rare_deadline();
    }
}
