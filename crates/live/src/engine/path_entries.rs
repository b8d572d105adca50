//! The entries of paths, with their routers.

use ackclock_sim::spec::LiveSpec;

use crate::router::Router;

/// The entries of all paths, by sending and receiving host.
#[derive(Debug)]
pub(super) struct PathEntries {
    hosts: usize,
    /// A row for each sending host; `None` where there is no path.
    rows: Vec<Option<PathEntry>>,
}

/// The entry of a path.
#[derive(Debug)]
pub(super) struct PathEntry {
    pub(super) router: Option<Router>,
}

impl PathEntries {
    pub(super) fn new(live: &LiveSpec) -> PathEntries {
        let hosts = live.nodes.len();
        let mut entries = PathEntries { hosts, rows: Vec::new() };
        entries.rows.resize_with(hosts * hosts, || None);
        for pipe in &live.pipes {
            for [from, to] in [pipe.between, [pipe.between[1], pipe.between[0]]] {
                let router = pipe.router.as_ref().map(|router| Router::new(router, live.nodes[to].mtu));
                entries.rows[from * hosts + to] = Some(PathEntry { router });
            }
        }
        entries
    }

    /// The entry of the path from one host to another, if there is one.
    #[inline]
    pub(super) fn get(&mut self, [from, to]: [usize; 2]) -> Option<&mut PathEntry> {
        self.rows[from * self.hosts + to].as_mut()
    }

    /// Returns `true` if there is a path from one host to another.
    pub(super) fn leads(&self, [from, to]: [usize; 2]) -> bool {
        self.rows[from * self.hosts + to].is_some()
    }

    /// The router at the entry of the path from one host to another.
    #[inline]
    pub(super) fn router(&mut self, between: [usize; 2]) -> Option<&mut Router> {
        self.get(between)?.router.as_mut()
    }

    /// The first router at the entry of a path from a host.
    pub(super) fn first_router(&mut self, from: usize) -> Option<&mut Router> {
        let mut row = self.rows[from * self.hosts..][..self.hosts].iter_mut().flatten();
        row.find_map(|entry| entry.router.as_mut())
    }
}
