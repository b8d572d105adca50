//! The events that poll and epoll report for a socket.

use ackclock_tcp::Readiness;

use crate::epoll::{Activity, EDGE, ERR, HUP, IN, Item, NVAL, ONESHOT, OUT, RDHUP, RDNORM, Ready, WRNORM};
use crate::sockets::{Kernel, Kind, SocketId};

impl Kernel {
    /// The events of a socket (Linux `tcp_poll`).
    pub(crate) fn poll_mask(&self, id: SocketId) -> u32 {
        match self.sockets.get(id).map(|socket| &socket.kind) {
            None => NVAL,
            Some(Kind::New) if self.sockets[id].deferred => OUT | WRNORM,
            Some(Kind::New) => OUT | WRNORM | HUP,
            Some(Kind::Listening(listener)) => {
                if listener.is_readable() {
                    IN | RDNORM
                } else {
                    0
                }
            }
            Some(Kind::MultipathListening(listener)) => {
                if listener.is_readable() {
                    IN | RDNORM
                } else {
                    0
                }
            }
            Some(Kind::Open(_) | Kind::Multipath(_)) => {
                let (Some(ready), unread) = (self.readiness(id), self.unread(id)) else { return NVAL };
                let mut mask = 0;
                if ready.hung_up {
                    mask |= HUP;
                }
                if ready.read_closed {
                    mask |= IN | RDNORM | RDHUP;
                }
                let low_water = self.sockets[id].options.receive_low_water.unwrap_or(1);
                if ready.readable && (unread >= low_water || ready.read_closed) {
                    mask |= IN | RDNORM;
                }
                if ready.writable {
                    mask |= OUT | WRNORM;
                }
                if ready.error {
                    mask |= ERR;
                }
                mask
            }
        }
    }

    /// The readiness of a connection.
    pub(crate) fn readiness(&self, id: SocketId) -> Option<Readiness> {
        match &self.sockets.get(id)?.kind {
            Kind::Open(endpoint) => Some(endpoint.readiness()),
            Kind::Multipath(multipath) => Some(multipath.readiness()),
            _ => None,
        }
    }

    /// Bytes of a connection that wait to be read.
    pub(crate) fn unread(&self, id: SocketId) -> u64 {
        match self.sockets.get(id).map(|socket| &socket.kind) {
            Some(Kind::Open(endpoint)) => endpoint.receiver().unread(),
            Some(Kind::Multipath(multipath)) => multipath.connection.unread(),
            _ => 0,
        }
    }

    /// Returns `true` if the peer of a connection sends no more.
    pub(crate) fn peer_finished(&self, id: SocketId) -> bool {
        match self.sockets.get(id).map(|socket| &socket.kind) {
            Some(Kind::Open(endpoint)) => endpoint.receiver().is_finished(),
            Some(Kind::Multipath(multipath)) => multipath.connection.peer_finished(),
            _ => false,
        }
    }

    fn activity(&self, id: SocketId) -> Activity {
        let delivered = match self.multipath(id) {
            Some(multipath) => multipath.connection.delivered_bytes(),
            None => self.endpoint(id).map_or(0, |endpoint| endpoint.receiver().delivered()),
        };
        Activity { delivered, ready: self.poll_mask(id) }
    }

    /// Adds `socket` to the set; `false` if it is there already.
    pub(crate) fn epoll_add(&mut self, epoll: usize, socket: SocketId, events: u32, data: i64) -> bool {
        let items = &mut self.epolls[epoll].items;
        if items.iter().any(|item| item.socket == socket) {
            return false;
        }
        items.push(Item { socket, events, data, seen: None, spent: false });
        true
    }

    /// Changes what is watched; `false` if the socket is not in the set.
    pub(crate) fn epoll_modify(&mut self, epoll: usize, socket: SocketId, events: u32, data: i64) -> bool {
        match self.epolls[epoll].items.iter_mut().find(|item| item.socket == socket) {
            Some(item) => {
                *item = Item { socket, events, data, seen: None, spent: false };
                true
            }
            None => false,
        }
    }

    /// Takes `socket` out of the set; `false` if it is not in it.
    pub(crate) fn epoll_remove(&mut self, epoll: usize, socket: SocketId) -> bool {
        let items = &mut self.epolls[epoll].items;
        let before = items.len();
        items.retain(|item| item.socket != socket);
        items.len() < before
    }

    /// A closed socket leaves every set.
    pub(crate) fn epoll_forget(&mut self, socket: SocketId) {
        for epoll in &mut self.epolls {
            epoll.items.retain(|item| item.socket != socket);
        }
    }

    /// Notes what is over: an edge-triggered event that comes again is news then.
    pub(crate) fn epoll_note(&mut self) {
        for epoll in 0..self.epolls.len() {
            for index in 0..self.epolls[epoll].items.len() {
                let item = &self.epolls[epoll].items[index];
                if item.seen.is_some() {
                    let now = self.poll_mask(item.socket);
                    if let Some(seen) = &mut self.epolls[epoll].items[index].seen {
                        seen.ready &= now;
                    }
                }
            }
        }
    }

    /// Collects the events to report, at most `most`; an event that is reported once is then done.
    pub(crate) fn epoll_collect(&mut self, epoll: usize, most: usize) -> Vec<Ready> {
        let mut ready = Vec::new();
        for index in 0..self.epolls[epoll].items.len() {
            if ready.len() == most {
                break;
            }
            let item = &self.epolls[epoll].items[index];
            let (socket, events, seen, spent) = (item.socket, item.events, item.seen, item.spent);
            let activity = self.activity(socket);
            // Errors and hang-ups are always told.
            let found = activity.ready & (events | ERR | HUP);
            let item = &mut self.epolls[epoll].items[index];
            if found == 0 || spent {
                continue;
            }
            if events & EDGE != 0 {
                item.seen = Some(activity);
                let news = match seen {
                    None => true,
                    Some(seen) => activity.ready & !seen.ready != 0 || activity.delivered != seen.delivered,
                };
                if !news {
                    continue;
                }
            }
            item.spent = events & ONESHOT != 0;
            ready.push(Ready { events: found, data: item.data });
        }
        ready
    }
}
