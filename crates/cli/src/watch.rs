//! Watching a run while it goes on: a dashboard on the terminal (`--watch`), and metrics for
//! Prometheus (`--metrics`).
//!
//! `feed` hands the records of a run over, `board` keeps what is known of it, `dashboard` and
//! `metrics` show that.

pub(crate) mod board;
mod feed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_units::Span;

use board::Board;
pub(crate) use feed::Feed;
use feed::Inbox;

/// The intervals of a run in real time, and of one whose clock goes as fast.
const EVERY: Span = Span::from_millis(100);

/// A run that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    in_real_time: bool,
    /// The length of an interval, ns.
    every: AtomicU64,
    inbox: Mutex<Inbox>,
    board: Mutex<Board>,
}

impl Watch {
    /// Of a run that has not begun.
    pub(crate) fn new(spec: &RunSpec) -> Watch {
        Watch {
            in_real_time: spec.live.as_ref().is_some_and(|live| live.clock == Clock::Real),
            every: AtomicU64::new(EVERY.as_nanos()),
            inbox: Mutex::default(),
            board: Mutex::new(Board::new(spec)),
        }
    }

    /// Whether the run goes by the machine's clock.
    pub(crate) fn in_real_time(&self) -> bool {
        self.in_real_time
    }

    /// The length of an interval.
    fn every(&self) -> Span {
        Span::from_nanos(self.every.load(Ordering::Relaxed))
    }

    /// The clock of the run goes so much faster than the machine's: ten intervals take a second.
    pub(crate) fn go_at(&self, speed: f64) {
        // 1 ns to 10^5 s.
        let every = (EVERY.as_nanos() as f64 * speed).clamp(1.0, 1e14);
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
