//! A run while it goes on: a dashboard on the terminal (`--watch`), metrics for Prometheus
//! (`--metrics`), and what changes it ([`control`]).
//!
//! `feed` hands the records of a run over, `board` keeps what is known of it. `dashboard` shows it
//! by `view` and does what keys in `state` ask for; `server` gives it out as `metrics`.

mod board;
pub mod control;
mod dashboard;
mod feed;
mod frame;
mod metrics;
mod server;
mod state;
mod terminal;
mod text;
mod view;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use control::Controls;
pub use feed::{Feed, Watch};
use server::Server;
pub use server::{Address, BoundListener};
pub use terminal::check as check_terminal;

/// A run that is watched, and by what.
#[derive(Debug)]
pub struct Watching {
    watch: Arc<Watch>,
    /// The controls of the dashboard's keys.
    dashboard: Option<Controls>,
    /// Answers as long as it is there.
    server: Option<Server>,
}

impl Watching {
    /// A run that is watched by metrics, if they have an address, and by a dashboard, if there is
    /// something that its keys change.
    ///
    /// # Errors
    /// There is no further thread.
    pub fn of(watch: Watch, metrics: Option<BoundListener>, dashboard: Option<Controls>) -> anyhow::Result<Watching> {
        let watch = Arc::new(watch);
        let server = metrics.map(|bound| Server::start(bound, watch.clone())).transpose()?;
        Ok(Watching { watch, dashboard, server })
    }

    /// Where metrics are served, if they are.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.as_ref().map(Server::address)
    }

    /// Where records go.
    pub fn feed(&self) -> Feed {
        Feed::new(self.watch.clone())
    }

    /// The observer of a live run.
    pub fn watch(&self) -> Arc<Watch> {
        self.watch.clone()
    }

    /// Does the run while the dashboard, if there is to be one, shows it. `say` is given why that has
    /// ended before the run, in a sentence.
    pub fn during(&self, run: impl FnOnce(), say: impl FnOnce(&str)) {
        let Some(controls) = &self.dashboard else { return run() };
        let over = AtomicBool::new(false);
        let shown = thread::scope(|scope| {
            let shown = scope.spawn(|| dashboard::show(&self.watch, controls, &over));
            // The dashboard also ends after a panic: the scope waits for it.
            let end = EndGuard(&over, controls);
            run();
            drop(end);
            shown.join()
        });
        match shown {
            Ok(Ok(())) => {}
            Ok(Err(error)) => say(&format!("note: the dashboard has ended: {error}")),
            // The panic has been reported.
            Err(_) => say("note: the dashboard has ended by a defect of ackclock; the run was not affected"),
        }
    }
}

/// Says that the run is over, however that came.
#[derive(Debug)]
struct EndGuard<'a>(&'a AtomicBool, &'a Controls);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.close();
    }
}
