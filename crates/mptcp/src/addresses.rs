//! Address management: ADD_ADDR, REMOVE_ADDR and MP_PRIO (RFC 8684 sections 3.3.8 and 3.4).

use ackclock_packet::{AddAddress, AddressIds, MptcpOption};
use ackclock_units::{Span, Time};

use crate::config::{MAX_SUBFLOWS, Path};
use crate::connection::{Announced, Connection, is_synchronized};
use crate::input::reason;
use crate::keys;
use crate::subflow::Stage;

/// Transmissions of an announcement: the first, and as many retransmissions as Linux's
/// (`ADD_ADDR_RETRANS_MAX`).
const ANNOUNCEMENTS: u32 = 1 + 3;

impl Connection {
    /// The known pairs of addresses, indexed by path.
    pub fn paths(&self) -> &[Path] {
        &self.config.paths
    }

    /// The number of the path between two addresses, which is added unless known: the peer's
    /// addresses may become known only from its options and SYNs. `None` if there are
    /// [`MAX_SUBFLOWS`] paths already.
    pub fn add_path(&mut self, path: Path) -> Option<usize> {
        let paths = &mut self.config.paths;
        let known = paths.iter().position(|known| (known.local, known.remote) == (path.local, path.remote));
        if known.is_none() && paths.len() < MAX_SUBFLOWS {
            paths.push(path);
            return Some(paths.len() - 1);
        }
        known
    }

    /// The identifier of our address on a path: the path's number, unless the path was added later
    /// and shares its address with another.
    pub(crate) fn address_id(&self, path: usize) -> u8 {
        let own = self.config.paths.get(path).filter(|_| path >= self.configured).map(|path| path.local);
        let same = own.and_then(|own| self.config.paths.iter().position(|path| path.local == own));
        same.unwrap_or(path) as u8
    }

    /// Uses further addresses, as both ends now know that the other supports MPTCP.
    pub(crate) fn confirmed(&mut self, now: Time) {
        for path in 1..self.config.paths.len() {
            if self.is_client && self.config.join_unannounced {
                self.join(path);
            } else if !self.is_client {
                self.announce(now, path);
            }
        }
    }

    /// Announces our address on a path to the peer.
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

    /// Repeats announcements that were not confirmed.
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

    /// Handles an announcement by the peer, or its confirmation of one of ours.
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

    /// Ends the subflows of addresses that the peer has removed.
    pub(crate) fn forget_addresses(&mut self, now: Time, ids: &AddressIds) {
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let is_gone = ids.as_slice().contains(&subflow.address_ids[1]);
            if is_gone && subflow.stage != Stage::Closed && is_synchronized(subflow.endpoint.state()) {
                self.reset_subflow(now, index, reason::UNSPECIFIED);
            }
        }
    }

    /// Removes our address on a path: its subflow ends, and another subflow informs the peer.
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

    /// Restores our address on a path.
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

    /// Sets whether the subflow of a path is a backup, which carries data only if there is no
    /// other, and informs the peer.
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
