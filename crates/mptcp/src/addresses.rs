//! Which addresses the two ends know of each other: ADD_ADDR, REMOVE_ADDR and MP_PRIO (RFC 8684
//! sections 3.3.8 and 3.4).

use ackclock_packet::{AddAddress, AddressIds, MptcpOption};
use ackclock_units::{Span, Time};

use crate::config::{MAX_SUBFLOWS, Path};
use crate::connection::Connection;
use crate::input::{is_synchronized, reason};
use crate::keys;
use crate::subflow::Stage;

/// How often an address is announced: once, and again as often as Linux does
/// (`ADD_ADDR_RETRANS_MAX`).
const ANNOUNCEMENTS: u32 = 1 + 3;

/// An address that the peer was told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    pub(crate) path: usize,
    /// When it is announced again.
    pub(crate) again_at: Time,
    wait: Span,
    times: u32,
}

impl Connection {
    /// The pairs of addresses that it knows, in the order of their numbers.
    pub fn paths(&self) -> &[Path] {
        &self.config.paths
    }

    /// The number of the path between two addresses, which is a new one unless it is known: the
    /// peer's addresses may become known only by its options and its SYNs. `None` if there are too
    /// many.
    pub fn add_path(&mut self, path: Path) -> Option<usize> {
        let paths = &mut self.config.paths;
        let known = paths.iter().position(|known| (known.local, known.remote) == (path.local, path.remote));
        if known.is_none() && paths.len() < MAX_SUBFLOWS {
            paths.push(path);
            return Some(paths.len() - 1);
        }
        known
    }

    /// The number of our address on a path: that of the path, unless the path was added and has an
    /// address that another one has.
    pub(crate) fn address_id(&self, path: usize) -> u8 {
        let own = self.config.paths.get(path).filter(|_| path >= self.configured).map(|path| path.local);
        let same = own.and_then(|own| self.config.paths.iter().position(|path| path.local == own));
        same.unwrap_or(path) as u8
    }

    /// Both ends know that the other one speaks MPTCP: other addresses may be used.
    pub(crate) fn confirmed(&mut self, now: Time) {
        for path in 1..self.config.paths.len() {
            if self.is_client && self.config.join_unannounced {
                self.join(path);
            } else if !self.is_client {
                self.announce(now, path);
            }
        }
    }

    /// Tells the peer of our address on a path.
    fn announce(&mut self, now: Time, path: usize) {
        let wait = self.config.announcement_timeout;
        self.announced.retain(|announced| announced.path != path);
        self.announced.push(Announced { path, again_at: now + wait, wait, times: 1 });
        self.send_announcement(path);
    }

    fn send_announcement(&mut self, path: usize) {
        let Some(keys) = self.keys() else { return };
        let (id, address) = (path as u8, self.config.paths[path].local);
        let hmac = keys::address_hmac(keys, id, address, None);
        let option = MptcpOption::AddAddress(AddAddress { id, address, port: None, hmac: Some(hmac) });
        if let Some(subflow) = self.subflows.iter_mut().find(|subflow| subflow.is_open()) {
            subflow.signal(option);
        }
    }

    /// Announcements that were not confirmed are repeated.
    pub(crate) fn announce_again(&mut self, now: Time) {
        let mut due = Vec::new();
        self.announced.retain_mut(|announced| {
            if announced.again_at > now {
                return true;
            }
            announced.times += 1;
            announced.wait = Span::from_nanos(announced.wait.as_nanos().saturating_mul(2));
            announced.again_at = now + announced.wait;
            if announced.times <= ANNOUNCEMENTS {
                due.push(announced.path);
            }
            announced.times <= ANNOUNCEMENTS
        });
        due.into_iter().for_each(|path| self.send_announcement(path));
    }

    /// An address of the peer, or its confirmation of one of ours.
    pub(crate) fn take_address(&mut self, index: usize, add: &AddAddress) {
        let Some(hmac) = add.hmac else {
            self.announced.retain(|announced| announced.path != usize::from(add.id));
            return;
        };
        let Some([own, peer]) = self.keys() else { return };
        if hmac != keys::address_hmac([peer, own], add.id, add.address, add.port) {
            return;
        }
        self.subflows[index].signal(MptcpOption::AddAddress(AddAddress { hmac: None, ..*add }));
        let path = self.config.paths.iter().position(|path| path.remote == add.address);
        let is_our_port = add.port.is_none_or(|port| port == self.ports.remote);
        if let Some(path) = path.filter(|_| self.is_client && is_our_port) {
            self.join(path);
        }
    }

    /// Addresses that the peer uses no longer: their subflows end.
    pub(crate) fn forget_addresses(&mut self, now: Time, ids: &AddressIds) {
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let is_gone = ids.as_slice().contains(&subflow.address_ids[1]);
            if is_gone && subflow.stage != Stage::Closed && is_synchronized(subflow.endpoint.state()) {
                self.reset_subflow(now, index, reason::UNSPECIFIED);
            }
        }
    }

    /// Our address on a path is gone: its subflow ends, and the peer is told on another one.
    pub fn remove_path(&mut self, now: Time, path: usize) {
        if !self.is_multipath() || self.removed.contains(&path) {
            return;
        }
        self.removed.push(path);
        self.announced.retain(|announced| announced.path != path);
        let ends = |number: usize| self.subflows[number].path == path && self.subflows[number].stage != Stage::Closed;
        let ending: Vec<usize> = (0..self.subflows.len()).filter(|&number| ends(number)).collect();
        let id = ending.first().map_or(path as u8, |&number| self.subflows[number].address_ids[0]);
        let other = self.subflows.iter_mut().find(|subflow| subflow.is_open() && subflow.path != path);
        if let Some(other) = other {
            other.signal(MptcpOption::RemoveAddress(AddressIds::new(&[id])));
        }
        ending.into_iter().for_each(|number| self.reset_subflow(now, number, reason::UNSPECIFIED));
        self.push(now);
    }

    /// Our address on a path is back.
    pub fn restore_path(&mut self, now: Time, path: usize) {
        self.removed.retain(|removed| *removed != path);
        if !self.is_multipath() || path >= self.config.paths.len() {
            return;
        }
        if self.is_client {
            self.join(path);
        } else if path > 0 {
            self.announce(now, path);
        }
        self.push(now);
    }

    /// Data is to be sent on the subflow of a path only if there is no other, or as on any other;
    /// the peer is told.
    pub fn set_backup(&mut self, now: Time, path: usize, backup: bool) {
        if let Some(path) = self.config.paths.get_mut(path) {
            path.backup = backup;
        }
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.path == path && subflow.is_open()) {
            subflow.backup = backup;
            subflow.signal(MptcpOption::Priority { backup });
        }
        self.push(now);
    }
}
