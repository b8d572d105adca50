//! Observation of a connection, for the records of a driver.

use std::ops::Range;

use ackclock_packet::Segment;
use ackclock_tcp::{Limit, LossDeclaration};

use crate::connection::Connection;
use crate::subflow::Subflow;

impl Connection {
    /// Records the loss declarations of subflows from now on. The caller must then fetch them
    /// ([`Connection::loss_declarations`]).
    pub fn observe_losses(&mut self) {
        self.observes_losses = true;
        self.subflows.iter_mut().for_each(|subflow| subflow.endpoint.sender_mut().scoreboard_mut().observe_losses());
    }

    /// The subflows' loss declarations since the last call, each with its path and local port;
    /// offsets are those of the subflow's stream. Empty unless they are recorded.
    pub fn loss_declarations(&mut self) -> impl Iterator<Item = (usize, u16, LossDeclaration)> {
        let noted = self
            .subflows
            .iter_mut()
            .filter(|subflow| subflow.endpoint.sender().loss().scoreboard().has_loss_declarations());
        noted.flat_map(|subflow| {
            let (path, port) = (subflow.path, subflow.endpoint.ports().local);
            subflow
                .endpoint
                .sender_mut()
                .scoreboard_mut()
                .loss_declarations()
                .map(move |declared| (path, port, declared))
        })
    }

    /// The subflow of a segment that arrives over a path.
    pub fn subflow_of(&self, path: usize, segment: &Segment) -> Option<&Subflow> {
        self.subflows.iter().find(|subflow| subflow.is_addressed(path, segment))
    }

    /// The positions of bytes of our stream in the subflows that were given them, unless both
    /// subflow and connection have been acknowledged.
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

    /// Bytes of the peer's stream that arrived more than once, over the same subflow or another.
    pub fn duplicate_bytes(&self) -> u64 {
        self.receiving.duplicate
    }

    /// The present limit of a subflow; `None` unless it is open, and once everything was sent and
    /// the connection has closed.
    /// - `Pacing`: the time of its next segment has not come.
    /// - `Cwnd`: data waits, in it or for it in the connection, and its congestion window is full.
    /// - `Window`: data waits in the connection for the peer's window, and the congestion window
    ///   has room.
    /// - `Application`: no data waits, or too little, or it is for other subflows.
    pub fn limit_of(&self, subflow: &Subflow) -> Option<Limit> {
        let (endpoint, sending) = (&subflow.endpoint, &self.sending);
        match endpoint.sender().limits().reason() {
            _ if !subflow.takes_data() => return None,
            // In plain TCP the subflow has all data and the only window.
            own if self.is_plain() => return own,
            own @ Some(Limit::Pacing | Limit::Cwnd) => return own,
            Some(Limit::Window | Limit::Application) | None => {}
        }
        let available = sending.written.saturating_sub(sending.next);
        let left = sending.window_end.saturating_sub(sending.next);
        let mss = u64::from(endpoint.sender().full_payload());
        // Nagle's algorithm may delay less than a segment.
        let delays = self.tcp.nagle && !sending.closed && sending.una < sending.next;
        if available == 0 || delays && available < mss.min(left + 1) {
            return (!sending.closed).then_some(Limit::Application);
        }
        if endpoint.sender().window_room() < mss.min(available) {
            Some(Limit::Cwnd)
        } else if left < mss.min(available) {
            Some(Limit::Window)
        } else {
            Some(Limit::Application)
        }
    }

    /// The present limit of the connection: the first in this order that limits one of its
    /// subflows: `Pacing`, `Window`, `Cwnd`, `Application`.
    pub fn limited_by(&self) -> Option<Limit> {
        let limits = || self.subflows.iter().filter_map(|subflow| self.limit_of(subflow));
        let order = [Limit::Pacing, Limit::Window, Limit::Cwnd, Limit::Application];
        order.into_iter().find(|&limit| limits().any(|found| found == limit))
    }
}
