//! The flows of clients that open connections of their own, and those connections.

use ackclock_units::Time;

use super::counts::EndCounts;
use super::{ApplicationState, Flow};
use crate::flow::application::{Browser, ClientConnection, Tries};
use crate::host::Host;

impl Flow {
    /// The client that opens and closes connections, if the flow is of one.
    pub(crate) fn browser(&mut self) -> Option<&mut Browser> {
        match self.application.as_deref_mut() {
            Some(ApplicationState::Browser(browser)) => Some(browser),
            _ => None,
        }
    }

    /// The tries of netperf, if the flow is of its client.
    pub(crate) fn tries(&mut self) -> Option<&mut Tries> {
        self.browser()?.tries()
    }

    /// The client of this connection gives it up. Of one that was never open nothing is left.
    pub(crate) fn give_up(&mut self, now: Time, sender: &mut Host) {
        if let Some(connection) = self.connection() {
            connection.give_up();
        }
        if !sender.is_open() {
            self.closed = true;
            sender.close(now);
        }
        self.settle();
    }

    /// Returns true if the sender is a client to which the receiver responds.
    pub(crate) fn has_client(&self) -> bool {
        !matches!(self.application.as_deref(), None | Some(ApplicationState::Messages(_)))
    }

    /// Bytes per write of the application.
    pub(crate) fn write_size(&self) -> u64 {
        self.write_size
    }

    /// Returns true if the client may send further requests.
    pub(crate) fn is_browsing(&self) -> bool {
        self.started && !self.stopped && !self.aborted
    }

    /// The application of a flow that is one of such a client's connections.
    pub(crate) fn connection(&mut self) -> Option<&mut ClientConnection> {
        match self.application.as_deref_mut() {
            Some(ApplicationState::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    /// Returns true if the flow's client may have more requests for it, or will end it.
    pub(super) fn waits_for_client(&self) -> bool {
        !self.closed && matches!(self.application.as_deref(), Some(ApplicationState::Connection(_)))
    }

    /// Returns true if the flow's own ends are idle: other connections carry its requests.
    pub(super) fn is_carried(&self) -> bool {
        matches!(self.application.as_deref(), Some(ApplicationState::Browser(_)))
    }

    /// The counts of the flow's ends, and of connections that are over.
    pub(super) fn counts(&self, sender: &Host, receiver: &Host) -> EndCounts {
        let mut counts = EndCounts::of(sender, receiver);
        if let Some(ApplicationState::Browser(browser)) = self.application.as_deref() {
            counts.add(browser.counts());
        }
        counts
    }

    /// Time after which the application writes no more.
    pub(crate) fn stop(&self) -> Option<Time> {
        self.stop
    }

    /// Returns true if the flow has ended.
    pub(crate) fn has_nothing_more(&self) -> bool {
        self.over.is_some()
    }

    /// A connection of the client of this flow is over, or the run: what was measured on it.
    pub(crate) fn absorb(&mut self, connection: &Flow, [sender, receiver]: [&Host; 2]) {
        self.rtt.absorb(&connection.rtt);
        self.cwnd.absorb(&connection.cwnd);
        self.truth.absorb(&connection.truth);
        self.checksum_errors += connection.checksum_errors;
        if let Some(browser) = self.browser() {
            browser.absorb(sender, receiver);
        }
    }
}
