//! The connection of a packet of the script: the last one between the addresses that it names, or
//! else that of the last socket, stranger or subflow.

use std::net::IpAddr;

use ackclock_tcp::Ports;

use super::{END_OF_TIME, Run, Stop, TimeWindow, Unexpected};
use crate::ast::{Direction, TcpSpec};
use crate::mptcp::{self, Subflow};
use crate::numbers::{Connection, Phase};
use crate::report::Seconds;
use crate::sockets::{SERVER_PORT, Sent};

impl Run<'_> {
    /// The connection that a packet of the script belongs to.
    pub(super) fn connection_for(&mut self, line: u32, spec: &TcpSpec) -> Result<usize, Stop> {
        let is_stranger = self.under_test.is_none_or(|index| self.connections[index].phase == Phase::Listening);
        let is_inbound = spec.direction == Direction::Inbound;
        if is_inbound && (is_stranger || mptcp::is_join(spec)) {
            let current = if is_stranger { None } else { self.current_ends() };
            let ends = self.new_ends(spec, current);
            self.names.note_remote(ends[1]);
            let ports = Ports { local: SERVER_PORT, remote: self.kernel.client_port() };
            let mut connection = Connection::new(Phase::PacketReceived, ports, None);
            connection.open_passively(spec);
            connection.subflow = Subflow::between(ends);
            self.connections.push(connection);
            self.under_test = Some(self.connections.len() - 1);
        } else if spec.addresses.source.is_some() || spec.addresses.destination.is_some() {
            let found = self.connections.iter().rposition(|connection| self.is_between(connection, spec));
            let Some(index) = found else {
                return Err(self.failed(line, "there is no connection between these addresses".to_owned()));
            };
            self.name_ends(index, spec);
            return Ok(index);
        }
        self.under_test
            .ok_or_else(|| self.failed(line, "there is no socket that this packet could belong to".to_owned()))
    }

    fn current_ends(&self) -> Option<[IpAddr; 2]> {
        self.connections.get(self.under_test?)?.subflow.ends
    }

    /// The addresses of a subflow that the script opens, the host's first. Addresses without a name
    /// are those of the subflow before; the script's address gets a new name for a new one.
    fn new_ends(&mut self, spec: &TcpSpec, current: Option<[IpAddr; 2]>) -> [IpAddr; 2] {
        let default = current.unwrap_or(self.kernel.host.ends());
        let next = self.names.next_remote().filter(|_| current.is_some());
        let names = [(&spec.addresses.destination, default[0]), (&spec.addresses.source, next.unwrap_or(default[1]))];
        let [local, remote] = names.map(|(name, new)| {
            let name = name.as_ref()?;
            let address = self.names.address(name).unwrap_or(new);
            self.names.name_address(name, address);
            Some(address)
        });
        [local.unwrap_or(default[0]), remote.unwrap_or(default[1])]
    }

    /// Returns `true` if a connection has the addresses that a packet names, as far as the names
    /// are known.
    fn is_between(&self, connection: &Connection, spec: &TcpSpec) -> bool {
        let Some(ends) = connection.subflow.ends else { return false };
        host_first(spec).into_iter().zip(ends).all(|(name, end)| {
            let known = name.and_then(|name| self.names.address(name));
            known.is_none_or(|known| known == end)
        })
    }

    /// The addresses of a connection have the names that a packet gives them.
    fn name_ends(&mut self, index: usize, spec: &TcpSpec) {
        let Some(ends) = self.connections[index].subflow.ends else { return };
        for (name, end) in host_first(spec).into_iter().zip(ends) {
            if let Some(name) = name {
                self.names.name_address(name, end);
            }
        }
    }

    /// The connection of a packet that was sent. The script knows nothing of one that another one
    /// has replaced; a subflow that the host opens is a new one.
    pub(super) fn sender_of(&mut self, packet: &Sent) -> Option<usize> {
        let ports = Ports { local: packet.segment.source_port, remote: packet.segment.destination_port };
        let is_it = |connection: &Connection| {
            connection.ports == ports && (packet.ends.is_none() || connection.subflow.ends == packet.ends)
        };
        let found = self.connections.iter().rposition(is_it);
        if let (None, Some(ends)) = (found, packet.ends)
            && mptcp::joins(&packet.segment)
        {
            let mut connection = Connection::new(Phase::Connecting, ports, None);
            connection.subflow = Subflow::between(ends);
            connection.subflow.is_unexpected = true;
            self.connections.push(connection);
            return Some(self.connections.len() - 1);
        }
        found
    }

    /// Waits until the host opens a subflow, and takes the packets after it for those of this one.
    pub(super) fn await_subflow(&mut self, line: u32, window: TimeWindow, expected: &TcpSpec) -> Result<usize, Stop> {
        let limit = self.limit(window);
        loop {
            let is_it =
                |connection: &Connection| connection.subflow.is_unexpected && self.is_between(connection, expected);
            if let Some(index) = self.connections.iter().position(is_it) {
                self.connections[index].subflow.is_unexpected = false;
                self.under_test = Some(index);
                self.name_ends(index, expected);
                if let Some([_, remote]) = self.connections[index].subflow.ends {
                    self.names.note_remote(remote);
                }
                return Ok(index);
            }
            let next = self.next_deadline();
            if next > limit {
                let reason = match window.any {
                    true => "no subflow was opened, and no timer runs".to_owned(),
                    false => format!("no subflow was opened until {}", Seconds(limit)),
                };
                return Err(self.failed(line, reason));
            }
            self.expire(line, next)?;
        }
    }

    /// Until when an expected packet is waited for.
    pub(super) fn limit(&self, window: TimeWindow) -> ackclock_units::Time {
        if window.any { END_OF_TIME } else { window.to + self.tolerance(window.to, self.last) }
    }

    /// Returns `true` if a packet is of the tested connections: the connection under test, or a
    /// subflow of the same socket that it knows.
    pub(super) fn is_tested(&self, sent: &Unexpected) -> bool {
        let is_known = !self.connections[sent.connection].subflow.is_unexpected;
        let is_sibling = sent.packet.ends.is_some() && sent.connection >= self.first_of_socket && is_known;
        Some(sent.connection) == self.under_test || is_sibling
    }
}

/// The names of a packet's addresses, the host's first.
fn host_first(spec: &TcpSpec) -> [Option<&String>; 2] {
    let names = [spec.addresses.source.as_ref(), spec.addresses.destination.as_ref()];
    match spec.direction {
        Direction::Outbound => names,
        Direction::Inbound => [names[1], names[0]],
    }
}
