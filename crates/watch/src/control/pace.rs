//! The pace of the virtual clock: as fast as it can, by the machine's clock, or not at all.

use std::str::FromStr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ackclock_units::{Span, Time};

/// Seconds of the virtual clock in a second of the machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// The slowest and the fastest.
    const RANGE: [f64; 2] = [1e-6, 1e6];

    /// The speed of the machine's clock.
    pub const ONE: Speed = Speed(1.0);

    /// # Errors
    /// Not a number in the range.
    pub fn new(factor: f64) -> Result<Speed, String> {
        let [least, most] = Speed::RANGE;
        if (least..=most).contains(&factor) {
            return Ok(Speed(factor));
        }
        Err(format!("{factor} is no speed; expected a number from {least} to {most}"))
    }

    /// The time of the virtual clock that passes in `time`.
    fn of(self, time: Duration) -> Span {
        Span::from_secs_f64(time.as_secs_f64() * self.0)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let factor: f64 = text.parse().map_err(|_| "expected a number, such as 0.5 or 10".to_owned())?;
        Speed::new(factor)
    }
}

/// Interval at which the clock is read while the run goes by it, and its step each time.
const TICK: Duration = Duration::from_millis(1);

/// Interval at which a run that stands still looks around.
const STILL: Duration = Duration::from_millis(50);

/// Longest delay that a run catches up; more is left out.
const DEBT: Duration = Duration::from_secs(1);

/// The pace of a run, which others may set.
#[derive(Debug)]
pub(super) struct Tempo {
    wish: Mutex<Wish>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug)]
struct Wish {
    paused: bool,
    speed: Option<Speed>,
    /// Goes up with every wish.
    number: u64,
}

impl Tempo {
    pub(super) fn new(speed: Option<Speed>) -> Tempo {
        Tempo { wish: Mutex::new(Wish { paused: false, speed, number: 0 }), changed: Condvar::new() }
    }

    pub(super) fn set(&self, speed: Speed) {
        self.wish(|wish| wish.speed = Some(speed));
    }

    pub(super) fn pause(&self, paused: bool) {
        self.wish(|wish| wish.paused = paused);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.lock().paused
    }

    pub(super) fn speed(&self) -> Option<f64> {
        self.lock().speed.map(|Speed(factor)| factor)
    }

    /// Has a run that waits look around.
    pub(super) fn wake(&self) {
        self.wish(|_| {});
    }

    fn wish(&self, change: impl FnOnce(&mut Wish)) {
        let mut wish = self.lock();
        change(&mut wish);
        wish.number += 1;
        drop(wish);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Wish> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the machine's clock and the virtual one were at the same time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    anchor: Option<(Instant, Time)>,
    /// The wish that it is by.
    number: u64,
}

impl Pace {
    /// Before what time a run goes on that has come to `now`. `None` if it is not to go on yet:
    /// some time has passed, or somebody wants something.
    pub(super) fn until(&mut self, tempo: &Tempo, now: Time) -> Option<Time> {
        let wish = *tempo.lock();
        let is_new = wish.number != self.number;
        self.number = wish.number;
        let speed = match wish {
            Wish { paused: true, .. } => {
                self.anchor = None;
                self.wait(tempo, STILL);
                return None;
            }
            Wish { speed: None, .. } => return Some(Time::NEVER),
            Wish { speed: Some(speed), .. } => speed,
        };
        let clock = clock();
        let (begun, from) = *self.anchor.get_or_insert((clock, now));
        let due = from + speed.of(clock.duration_since(begun));
        // From here on it is another speed, or it has fallen behind.
        if is_new || due.since(now) > speed.of(DEBT) {
            self.anchor = Some((clock, now));
        }
        let until = due.min(now + speed.of(DEBT));
        if until >= now + speed.of(TICK).max(Span::from_nanos(1)) {
            return Some(until);
        }
        self.wait(tempo, TICK);
        None
    }

    /// Waits for so long, or for a wish that is not known yet.
    fn wait(&self, tempo: &Tempo, time: Duration) {
        let wish = tempo.lock();
        let known = |wish: &mut Wish| wish.number == self.number;
        drop(tempo.changed.wait_timeout_while(wish, time, known));
    }
}

#[expect(clippy::disallowed_methods, reason = "a virtual clock that goes by the machine's")]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_in_its_range() {
        assert_eq!("2.5".parse::<Speed>(), Ok(Speed(2.5)));
        for wrong in ["0", "-1", "inf", "nan", "1e7", "fast", ""] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_speed_a_run_goes_as_fast_as_it_can() {
        let tempo = Tempo::new(None);
        assert_eq!(Pace::default().until(&tempo, Time::from_secs(5)), Some(Time::NEVER));
    }

    #[test]
    fn a_run_goes_by_the_clock() {
        let (tempo, mut pace) = (Tempo::new(Some(Speed(100.0))), Pace::default());
        let (begun, mut now) = (clock(), Time::ZERO);
        while now < Time::from_secs(5) {
            now = pace.until(&tempo, now).unwrap_or(now);
        }
        // 5 s at a hundredfold speed take 50 ms, and a machine that is busy takes longer.
        let (took, reached) = (begun.elapsed(), now.as_secs_f64());
        assert!(took >= Duration::from_millis(49) && reached < 105.0, "{took:?} {reached}");
    }

    #[test]
    fn a_run_stands_still_and_goes_on_where_it_was() {
        let (tempo, mut pace) = (Tempo::new(Some(Speed(1e6))), Pace::default());
        tempo.pause(true);
        assert!(tempo.is_paused());
        assert_eq!(pace.until(&tempo, Time::from_secs(1)), None);
        tempo.pause(false);
        let until = std::iter::repeat_with(|| pace.until(&tempo, Time::from_secs(1))).flatten().next().unwrap();
        // The time of standing still does not count: less than the 50 ms.
        assert!(until > Time::from_secs(1) && until < Time::from_secs(1_000_001), "{until:?}");
    }
}
