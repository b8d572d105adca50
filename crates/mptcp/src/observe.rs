//! What a driver observes of a connection, for its records.

use ackclock_packet::Segment;
use ackclock_tcp::{Limit, LossDeclaration};

use crate::connection::Connection;
use crate::subflow::Subflow;

impl Connection {
    /// Notes from now on what subflows declare lost, for [`Connection::loss_declarations`]. Whoever
    /// asks for it has to fetch it.
    pub fn observe_losses(&mut self) {
        self.observes_losses = true;
        self.subflows.iter_mut().for_each(|subflow| subflow.endpoint.observe_losses());
    }

    /// What subflows have declared lost since the last time, each with its path and its own port;
    /// offsets are those of its stream. Nothing unless it is observed.
    pub fn loss_declarations(&mut self) -> impl Iterator<Item = (usize, u16, LossDeclaration)> {
        let noted = self.subflows.iter_mut().filter(|subflow| subflow.endpoint.has_loss_declarations());
        noted.flat_map(|subflow| {
            let (path, port) = (subflow.path, subflow.endpoint.ports().local);
            subflow.endpoint.loss_declarations().map(move |declared| (path, port, declared))
        })
    }

    /// The subflow to which a segment that comes over a path belongs.
    pub fn subflow_of(&self, path: usize, segment: &Segment) -> Option<&Subflow> {
        self.subflows.iter().find(|subflow| subflow.is_addressed(path, segment))
    }

    /// Bytes of the peer's stream that arrived more than once, by the same subflow or another.
    pub fn duplicate_bytes(&self) -> u64 {
        self.receiving.duplicate
    }

    /// What holds the connection back now, one thing at a time; `None` before it is open and once
    /// everything has been sent and it has closed. In this order:
    /// - `Pacing`: a subflow waits for the time of its next segment.
    /// - `Window`: data waits for the peer's window, and a subflow has room for it in its
    ///   congestion window.
    /// - `Cwnd`: data waits, of the connection or in a subflow, for congestion windows. That the
    ///   scheduler waits for a faster subflow although another one has room is the same.
    /// - `Application`: no data waits, or too little. The application wrote no more, or the send
    ///   buffer is full of what was sent.
    pub fn limited_by(&self) -> Option<Limit> {
        let usable = || self.subflows.iter().filter(|subflow| subflow.takes_data());
        let is_stopped_by = |limit: Limit| usable().any(|subflow| subflow.endpoint.limited_by() == Some(limit));
        let sending = &self.sending;
        let available = sending.written - sending.next;
        let left = sending.window_end.saturating_sub(sending.next);
        let has_room = || usable().any(|one| one.endpoint.window_room() >= u64::from(one.endpoint.full_segment()));
        let mss = usable().map(|one| u64::from(one.endpoint.full_segment())).max()?;
        // Less than a segment may wait for more (Nagle).
        let delays = self.tcp.nagle && !sending.closed && sending.una < sending.next;
        let waits = available > 0 && !(delays && available < mss && left >= available);
        if is_stopped_by(Limit::Pacing) {
            Some(Limit::Pacing)
        } else if waits && left < mss.min(available) && has_room() {
            Some(Limit::Window)
        } else if waits || is_stopped_by(Limit::Cwnd) {
            Some(Limit::Cwnd)
        } else {
            (!sending.closed).then_some(Limit::Application)
        }
    }
}
