//! Watching a run while it goes on: a dashboard on the terminal (`--watch`), and metrics for
//! Prometheus (`--metrics`).
//!
//! `feed` hands the records of a run over, `board` keeps what is known of it. `dashboard` shows it
//! by `view` and does what keys in `state` ask for; `server` gives it out as `metrics`.

pub(crate) mod board;
mod dashboard;
mod feed;
mod frame;
mod metrics;
mod server;
mod state;
mod terminal;
mod text;
mod view;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_units::Span;
use anyhow::bail;

use crate::args::Args;
use crate::control::Controls;
use crate::say;
use board::Board;
pub(crate) use feed::Feed;
use feed::Inbox;
use server::Server;
pub(crate) use server::{Address, Bound};

/// The intervals of a run in real time, and of one whose clock goes as fast.
const EVERY: Span = Span::from_millis(100);

/// Intervals of a run that is as fast as it can, if they are longer than that.
const INTERVALS: u64 = 1000;

/// By what a run is to be watched; by nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    pub(crate) dashboard: bool,
    metrics: Option<Bound>,
}

/// Checks that the run can be watched as the command line asks for, before anything runs.
///
/// # Errors
/// There is more than one run, a replay, no terminal, or the address cannot be had.
pub(crate) fn check(args: &Args, scenario: &Scenario) -> anyhow::Result<Wish> {
    let flag = match (args.watch, args.metrics) {
        (true, _) => "--watch",
        (false, Some(_)) => "--metrics",
        (false, None) => return Ok(Wish::default()),
    };
    if scenario.runs() != 1 {
        bail!("{flag} requires a single run, and the scenario has {}", scenario.runs());
    }
    if args.watch {
        if scenario.spec(0).live.is_some_and(|live| live.clock != Clock::Real) {
            bail!("--watch is not for a replay, which goes as fast as it can");
        }
        terminal::check()?;
    }
    Ok(Wish { dashboard: args.watch, metrics: args.metrics.map(Bound::at).transpose()? })
}

/// A run that is watched, and by what.
#[derive(Debug)]
pub(crate) struct Watching {
    watch: Arc<Watch>,
    /// What keys of the dashboard change.
    dashboard: Option<Controls>,
    /// Answers as long as it is there.
    _server: Option<Server>,
}

impl Watching {
    /// The only run of a scenario, watched as is wanted; `None` if it is not.
    ///
    /// # Errors
    /// There is no further thread.
    pub(crate) fn open(
        wish: Wish,
        scenario: &Scenario,
        controls: Option<&Controls>,
    ) -> anyhow::Result<Option<Watching>> {
        let Wish { dashboard, metrics } = wish;
        if !dashboard && metrics.is_none() {
            return Ok(None);
        }
        let watch = Watch::new(&scenario.spec(0), controls.and_then(Controls::pace));
        let watching = Watching::of(watch, metrics)?;
        Ok(Some(Watching { dashboard: controls.filter(|_| dashboard).cloned(), ..watching }))
    }

    /// A run that is watched by metrics alone.
    ///
    /// # Errors
    /// There is no further thread.
    pub(crate) fn of(watch: Watch, metrics: Option<Bound>) -> anyhow::Result<Watching> {
        let watch = Arc::new(watch);
        let server = metrics.map(|bound| Server::start(bound, watch.clone())).transpose()?;
        if let Some(server) = &server {
            say(&format!("note: metrics are at http://{}/metrics", server.address()));
        }
        Ok(Watching { watch, dashboard: None, _server: server })
    }

    /// Where records go.
    pub(crate) fn feed(&self) -> Feed {
        Feed::new(self.watch.clone())
    }

    /// Who is told of a live run.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        self.watch.clone()
    }

    /// Does the run while the dashboard, if there is to be one, shows it.
    pub(crate) fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        let Some(controls) = &self.dashboard else { return run() };
        let over = AtomicBool::new(false);
        let (result, shown) = thread::scope(|scope| {
            let shown = scope.spawn(|| dashboard::show(&self.watch, controls, &over));
            // Also after a panic: the scope waits for the dashboard.
            let end = End(&over, controls);
            let result = run();
            drop(end);
            (result, shown.join())
        });
        match shown {
            Ok(Ok(())) => {}
            Ok(Err(error)) => say(&format!("note: the dashboard has ended: {error}")),
            // It has said why.
            Err(_) => say("note: the dashboard has ended by a defect of ackclock; the run was not affected"),
        }
        result
    }
}

/// Does a run, which may be watched.
pub(crate) fn during<T>(watching: Option<&Watching>, run: impl FnOnce() -> T) -> T {
    match watching {
        Some(watching) => watching.during(run),
        None => run(),
    }
}

/// Says that the run is over, however that came.
#[derive(Debug)]
struct End<'a>(&'a AtomicBool, &'a Controls);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.close();
    }
}

/// What is known of a run that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    in_real_time: bool,
    /// The length of an interval, ns.
    every: AtomicU64,
    inbox: Mutex<Inbox>,
    board: Mutex<Board>,
}

impl Watch {
    /// Of a run that has not begun, whose clock goes so much faster than the machine's, or as fast
    /// as it can.
    pub(crate) fn new(spec: &RunSpec, speed: Option<f64>) -> Watch {
        let in_real_time = spec.live.as_ref().is_some_and(|live| live.clock == Clock::Real);
        let every = if in_real_time { EVERY } else { EVERY.max(spec.duration / INTERVALS) };
        let watch = Watch {
            in_real_time,
            every: AtomicU64::new(every.as_nanos()),
            inbox: Mutex::default(),
            board: Mutex::new(Board::new(spec)),
        };
        if let (Some(speed), false) = (speed, in_real_time) {
            watch.go_at(speed);
        }
        watch
    }

    /// Whether the run goes by the machine's clock.
    pub(crate) fn in_real_time(&self) -> bool {
        self.in_real_time
    }

    /// The length of an interval.
    fn every(&self) -> Span {
        Span::from_nanos(self.every.load(Ordering::Relaxed))
    }

    /// The clock of a virtual run goes so much faster than the machine's: ten intervals take a
    /// second.
    pub(crate) fn go_at(&self, speed: f64) {
        // 1 us to 10^5 s.
        let every = (EVERY.as_nanos() as f64 * speed).clamp(1e3, 1e14);
        self.every.store(every as u64, Ordering::Relaxed);
    }

    /// What is known of the run by now.
    pub(crate) fn board(&self) -> MutexGuard<'_, Board> {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        // The run is not kept from handing over while this is taken in.
        let Inbox { keys, rows, moment, hosts, lost } =
            std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        board.add(keys.into_iter());
        rows.iter().for_each(|row| board.take(row));
        if let Some(moment) = moment {
            board.take_live(moment, &hosts);
        }
        board.lost += lost;
        board
    }
}
