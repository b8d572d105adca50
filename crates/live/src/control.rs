//! Changes that a person makes during a run.
//!
//! Another thread reads them and hands finished changes of link directions to the loop. The loop
//! takes them between two packets, gives them their time and reports it; it waits for nobody.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ackclock_emulator::Change;
use ackclock_sim::DirectionId;
use ackclock_units::Time;

/// The channel from those who change a run to its loop.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// `orders` is not empty.
    pending: AtomicBool,
    orders: Mutex<Vec<Order>>,
    /// The time of the run that the loop reported last, in nanoseconds.
    now: AtomicU64,
    begun: AtomicBool,
    over: AtomicBool,
}

/// Changes that are made together.
#[derive(Clone, Debug)]
pub struct Order {
    /// The change of each direction; the loop sets its time.
    pub changes: Vec<(DirectionId, Change)>,
    /// The changes as they were entered, `KEY=VALUE`.
    pub set: Vec<String>,
    /// The time at which the changes were made.
    pub made: Made,
}

/// The time at which an order was carried out, once known; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Made(Arc<AtomicU64>);

impl Made {
    /// The time at which the order was carried out; `None` before.
    pub fn at(&self) -> Option<Time> {
        // 0 stands for an order that has not been carried out.
        self.0.load(Ordering::Acquire).checked_sub(1).map(Time::from_nanos)
    }

    /// Records that the order was carried out at `at`.
    pub fn tell(&self, at: Time) {
        self.0.store(at.as_nanos().saturating_add(1), Ordering::Release);
    }
}

impl Control {
    /// Submits an order; `false` if the run is over.
    pub fn hand_in(&self, order: Order) -> bool {
        let mut orders = self.0.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.over.load(Ordering::Acquire) {
            return false;
        }
        orders.push(order);
        self.0.pending.store(true, Ordering::Release);
        true
    }

    /// The orders submitted since the last call. Does not block: an order whose submission is in
    /// progress is returned by a later call.
    pub fn take(&self) -> Vec<Order> {
        if !self.0.pending.load(Ordering::Acquire) {
            return Vec::new();
        }
        let Ok(mut orders) = self.0.orders.try_lock() else { return Vec::new() };
        self.0.pending.store(false, Ordering::Release);
        std::mem::take(&mut *orders)
    }

    /// Reports that the loop has reached `now`.
    pub fn reach(&self, now: Time) {
        self.0.now.store(now.as_nanos(), Ordering::Release);
        self.0.begun.store(true, Ordering::Release);
    }

    /// The time that the loop reported last.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.0.now.load(Ordering::Acquire))
    }

    /// Returns `true` if the run has begun and is not over.
    pub fn goes_on(&self) -> bool {
        self.0.begun.load(Ordering::Acquire) && !self.0.over.load(Ordering::Acquire)
    }

    /// Ends the run and discards orders that have not been taken.
    pub fn close(&self) {
        let mut orders = self.0.orders.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.over.store(true, Ordering::Release);
        orders.clear();
    }

    /// Returns `true` if the run is over.
    pub fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }
}

/// Reads the changes of a capture (`KEY=VALUE`) that were made together at a time.
#[derive(Clone)]
pub struct ChangeReader(Arc<Read>);

type Read = dyn Fn(Time, &[&str]) -> Result<Vec<(DirectionId, Change)>, String> + Send + Sync;

impl ChangeReader {
    /// A reader that calls `read` with the time and the texts; an error is one line.
    pub fn new(
        read: impl Fn(Time, &[&str]) -> Result<Vec<(DirectionId, Change)>, String> + Send + Sync + 'static,
    ) -> ChangeReader {
        ChangeReader(Arc::new(read))
    }

    pub(crate) fn read(&self, at: Time, texts: &[&str]) -> Result<Vec<(DirectionId, Change)>, String> {
        (self.0)(at, texts)
    }
}

impl fmt::Debug for ChangeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeReader")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> Order {
        Order { changes: Vec::new(), set: vec![text.to_owned()], made: Made::default() }
    }

    #[test]
    fn orders_come_in_their_order_and_once() {
        let control = Control::default();
        assert!(control.take().is_empty());
        assert!(control.hand_in(order("a")) && control.hand_in(order("b")));
        let taken: Vec<String> = control.take().into_iter().flat_map(|order| order.set).collect();
        assert_eq!(taken, ["a", "b"]);
        assert!(control.take().is_empty());
    }

    #[test]
    fn nothing_is_handed_in_when_the_run_is_over() {
        let control = Control::default();
        assert!(!control.goes_on());
        control.reach(Time::from_secs(1));
        assert!(control.goes_on() && control.now() == Time::from_secs(1));
        assert!(control.hand_in(order("a")));
        control.close();
        assert!(!control.hand_in(order("b")) && control.take().is_empty() && !control.goes_on());
    }

    #[test]
    fn a_time_is_known_once_it_was_told() {
        let made = Made::default();
        assert_eq!(made.at(), None);
        made.clone().tell(Time::ZERO);
        assert_eq!(made.at(), Some(Time::ZERO));
    }
}
