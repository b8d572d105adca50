//! From a run to its board: records are gathered for an interval and handed over at once. The loop
//! of a live run never waits for that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use ackclock_live::{LiveWatch, Moment};
use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_trace::{LiveHost, SeriesOf, SeriesRecord, WatchSink};
use ackclock_units::{Span, Time};

use crate::board::{Board, Key, Kind, Row};

/// Rows that wait at most for somebody to look. In virtual time they are then taken in at once, and
/// in real time further ones are lost, and counted.
const ROOM: usize = 1 << 16;

/// The intervals of a run in real time, and of one whose clock goes as fast.
const EVERY: Span = Span::from_millis(100);

/// Intervals of a run that is as fast as it can, if they are longer than that.
const INTERVALS: u64 = 1000;

/// Data handed over that is not on the board yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) keys: Vec<Key>,
    pub(super) rows: Vec<Row>,
    pub(super) moment: Option<Moment>,
    pub(super) hosts: Vec<LiveHost>,
    pub(super) lost: u64,
}

/// The state of a run that is watched.
#[derive(Debug)]
pub struct Watch {
    in_real_time: bool,
    /// The length of an interval, ns.
    every: AtomicU64,
    inbox: Mutex<Inbox>,
    board: Mutex<Board>,
}

impl Watch {
    /// The watch of a run that has not begun, whose clock goes so much faster than the machine's,
    /// or as fast as it can.
    pub fn new(spec: &RunSpec, speed: Option<f64>) -> Watch {
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

    /// Returns `true` if the run goes by the machine's clock.
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

    /// The state of the run by now.
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

/// The end of it at the run.
#[derive(Debug)]
pub struct Feed {
    watch: Arc<Watch>,
    rows: Vec<Row>,
    new: Vec<Key>,
    /// The names that there are, in the order of the last records, which hardly changes.
    order: Vec<Key>,
    next: usize,
    numbers: BTreeMap<Kind, BTreeMap<String, usize>>,
}

impl Feed {
    pub(crate) fn new(watch: Arc<Watch>) -> Feed {
        Feed { watch, rows: Vec::new(), new: Vec::new(), order: Vec::new(), next: 0, numbers: BTreeMap::new() }
    }

    /// The number of a name. Mostly that of the one behind the last.
    fn key(&mut self, kind: Kind, id: &str) -> usize {
        let is_next = |key: &&Key| key.kind == kind && key.id == id;
        if self.order.get(self.next).filter(is_next).is_none() {
            match self.numbers.get(&kind).and_then(|numbers| numbers.get(id)) {
                Some(&number) => self.next = number,
                None => {
                    self.next = self.order.len();
                    let key = Key { kind, id: id.to_owned() };
                    self.numbers.entry(kind).or_default().insert(id.to_owned(), self.next);
                    self.order.push(key.clone());
                    self.new.push(key);
                }
            }
        }
        let key = self.next;
        self.next = (key + 1) % self.order.len();
        key
    }
}

impl WatchSink for Feed {
    fn every(&self) -> Span {
        self.watch.every()
    }

    fn record(&mut self, record: &SeriesRecord<'_>) {
        let kind = match record.of {
            SeriesOf::Flow(_) => Kind::Flow,
            SeriesOf::Subflow(number, _) => Kind::Subflow(number),
            SeriesOf::Group(_) => Kind::Group,
            SeriesOf::Link(_) => Kind::Link,
            SeriesOf::Class(_) => Kind::Class,
        };
        let key = self.key(kind, record.id);
        let SeriesRecord { from, to, bytes, packets, of, .. } = *record;
        self.rows.push(Row { key, from, to, bytes, packets, of });
    }

    fn passed(&mut self, _: Time) -> Span {
        let Feed { watch, rows, new, .. } = self;
        let is_full = watch.hand_over(|inbox| {
            inbox.keys.append(new);
            if inbox.rows.len() < ROOM || !watch.in_real_time() {
                inbox.rows.append(rows);
            } else {
                inbox.lost += rows.len() as u64;
                rows.clear();
            }
            inbox.rows.len() >= ROOM
        });
        if is_full == Some(true) && !watch.in_real_time() {
            drop(watch.board());
        }
        watch.every()
    }
}

impl LiveWatch for Watch {
    fn look(&self, moment: &Moment, hosts: &mut dyn Iterator<Item = (&LiveHost, u64)>) {
        self.hand_over(|inbox| {
            inbox.moment = Some(*moment);
            inbox.hosts.clear();
            inbox.hosts.extend(hosts.map(|(host, refused)| {
                let sent_packets = host.sent_packets.saturating_sub(refused);
                LiveHost { refused, sent_packets, ..host.clone() }
            }));
        });
    }
}

impl Watch {
    /// Puts something into the inbox. In real time only if nobody is at it, which is rare: what was
    /// to be handed over goes with the next.
    fn hand_over<T>(&self, put: impl FnOnce(&mut Inbox) -> T) -> Option<T> {
        if !self.in_real_time() {
            return Some(put(&mut self.inbox.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        match self.inbox.try_lock() {
            Ok(mut inbox) => Some(put(&mut inbox)),
            Err(TryLockError::Poisoned(poisoned)) => Some(put(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
