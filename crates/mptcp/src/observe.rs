//! What a driver observes of a connection, for its records.

use std::ops::Range;

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

    /// Where bytes of our stream are in those of the subflows that were given them, as far as these
    /// or the peer's connection have yet to acknowledge them.
    pub fn copies(&self, data: Range<u64>) -> impl Iterator<Item = (&Subflow, Range<u64>)> {
        self.subflows.iter().flat_map(move |subflow| {
            let (start, end) = (data.start, data.end);
            let given = subflow.maps.iter().filter(move |map| map.data < end && start < map.data_end());
            given.map(move |map| {
                let at = map.at + (start.max(map.data) - map.data);
                (subflow, at..map.at + (end.min(map.data_end()) - map.data))
            })
        })
    }

    /// Bytes of the peer's stream that arrived more than once, by the same subflow or another.
    pub fn duplicate_bytes(&self) -> u64 {
        self.receiving.duplicate
    }

    /// What holds a subflow back now; `None` unless it is open, and once everything has been sent
    /// and the connection has closed.
    /// - `Pacing`: the time of its next segment has not come.
    /// - `Cwnd`: data waits, in it or for it in the connection, and its congestion window is full.
    /// - `Window`: data waits in the connection for the peer's window, and the congestion window
    ///   has room.
    /// - `Application`: there is nothing for it. No data waits, or too little, or it is for others.
    pub fn limit_of(&self, subflow: &Subflow) -> Option<Limit> {
        let (endpoint, sending) = (&subflow.endpoint, &self.sending);
        match endpoint.limited_by() {
            _ if !subflow.takes_data() => return None,
            // In plain TCP its data and its window are all there are.
            own if self.is_plain() => return own,
            own @ Some(Limit::Pacing | Limit::Cwnd) => return own,
            Some(Limit::Window | Limit::Application) | None => {}
        }
        let available = sending.written.saturating_sub(sending.next);
        let left = sending.window_end.saturating_sub(sending.next);
        let mss = u64::from(endpoint.full_segment());
        // Less than a segment may wait for more (Nagle).
        let delays = self.tcp.nagle && !sending.closed && sending.una < sending.next;
        if available == 0 || delays && available < mss.min(left + 1) {
            return (!sending.closed).then_some(Limit::Application);
        }
        if endpoint.window_room() < mss.min(available) {
            Some(Limit::Cwnd)
        } else if left < mss.min(available) {
            Some(Limit::Window)
        } else {
            Some(Limit::Application)
        }
    }

    /// What holds the connection back now: one of what holds its subflows back, in this order:
    /// `Pacing`, `Window`, `Cwnd`, `Application`.
    pub fn limited_by(&self) -> Option<Limit> {
        let limits = || self.subflows.iter().filter_map(|subflow| self.limit_of(subflow));
        let order = [Limit::Pacing, Limit::Window, Limit::Cwnd, Limit::Application];
        order.into_iter().find(|&limit| limits().any(|found| found == limit))
    }
}
