//! The changes that a person may make to a run while it goes on: keys of its links, and on the
//! virtual clock its pace.
//!
//! Changes are read here, on the thread of whoever asks; the run takes them when it comes by, and
//! waits for nobody. `server` is the socket of `--control`.

mod pace;
mod protocol;
#[cfg(unix)]
mod server;
#[cfg(not(unix))]
#[path = "control/no_server.rs"]
mod server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ackclock_emulator::Change;
use ackclock_live::{Control, Made, Order};
use ackclock_scenario::Scenario;
use ackclock_sim::DirectionId;
use ackclock_units::{Span, Time};

pub use pace::Speed;
use pace::Tempo;
pub use protocol::says_over;
pub use server::{Server, Stream, connect};

/// The most bytes of a change, `KEY=VALUE`.
const LONGEST: usize = 1000;

/// The most changes that are made together, and in a run.
const TOGETHER: usize = 64;
const MOST: usize = 10_000;

/// Interval at which the author of a change looks whether it was made.
const LOOK: Duration = Duration::from_millis(1);

/// The run that is controlled: a scenario of several has several.
const RUN: usize = 0;

/// The handle of a run that goes on, for a dashboard or a socket. All calls may come from any
/// thread; none of them makes the run wait.
#[derive(Clone, Debug)]
pub struct Controls {
    shared: Arc<ControlState>,
}

#[derive(Debug)]
struct ControlState {
    scenario: Scenario,
    is_live: bool,
    control: Control,
    tempo: Tempo,
    /// The changes made so far, in order.
    made: Mutex<Vec<(DirectionId, Change)>>,
    /// One after another.
    setting: Mutex<()>,
}

impl Controls {
    /// The controls of the only run of a scenario, which goes at this speed.
    pub fn of(scenario: &Scenario, speed: Option<Speed>) -> Controls {
        let shared = ControlState {
            is_live: scenario.is_live(),
            scenario: scenario.clone(),
            control: Control::default(),
            tempo: Tempo::new(speed),
            made: Mutex::default(),
            setting: Mutex::default(),
        };
        Controls { shared: Arc::new(shared) }
    }

    /// Makes a change (`links.bottleneck.rate=5mbit`); says what was done, and when in the run.
    ///
    /// # Errors
    /// What is wrong with it, or that the run is over.
    pub(crate) fn set(&self, text: &str) -> Result<String, String> {
        self.set_all(&[text])
    }

    /// Makes several changes at the same time: all of them or none.
    ///
    /// # Errors
    /// What is wrong with them, or that the run is over.
    pub(crate) fn set_all(&self, texts: &[&str]) -> Result<String, String> {
        let ControlState { scenario, control, setting, .. } = &*self.shared;
        let _one_by_one = setting.lock().unwrap_or_else(PoisonError::into_inner);
        check(texts)?;
        self.goes_on()?;
        if self.made().len() >= MOST {
            return Err(format!("{MOST} changes were made, and a run takes no more"));
        }
        let made = self.made().clone();
        let now = control.now() + Span::from_nanos(1);
        let changes = scenario.change(RUN, texts, now, &made).map_err(|error| error.on_a_line())?;
        let set = texts.iter().map(|text| text.trim().to_owned()).collect();
        let order = Order { changes: changes.clone(), set, made: Made::default() };
        let when = order.made.clone();
        if !control.hand_in(order) {
            return Err(over());
        }
        self.shared.tempo.wake();
        let at = loop {
            // The time of the change is set before the run says that it is over.
            let is_over = control.is_over();
            match when.at() {
                Some(at) => break at,
                None if is_over => return Err(over()),
                None => thread::sleep(LOOK),
            }
        };
        self.keep(at, changes);
        let shown = texts.iter().map(|text| match text.split_once('=') {
            Some((key, value)) => format!("{} = {}", key.trim(), value.trim()),
            None => (*text).to_owned(),
        });
        Ok(format!("{} at {:.3} s", shown.collect::<Vec<_>>().join(", "), at.as_secs_f64()))
    }

    /// The present value of a key, as a scenario has it.
    ///
    /// # Errors
    /// There is no such key, or the directions of the link differ.
    pub(crate) fn get(&self, key: &str) -> Result<String, String> {
        let all = self.list();
        let value = |key: &str| all.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
        let way = |way: &str| {
            // The name of a link has no dots.
            let mut parts = key.splitn(3, '.');
            let [section, link, rest] = [parts.next()?, parts.next()?, parts.next()?];
            value(&format!("{section}.{link}.{way}.{rest}"))
        };
        match (value(key), way("forward"), way("reverse")) {
            (Some(value), ..) => Ok(value),
            (None, Some(one), Some(other)) if one == other => Ok(one),
            (None, Some(one), None) | (None, None, Some(one)) => Ok(one),
            (None, Some(one), Some(other)) => {
                Err(format!("`{key}` is {one} forward and {other} in reverse: ask for one of them"))
            }
            (None, None, None) => Err(format!("there is no `{key}` that could be changed; `list` has all keys")),
        }
    }

    /// The keys that can be set, with their present values.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        let made = self.made();
        // The loop tells its time now and then: what was made counts.
        let last = made.iter().map(|(_, change)| change.at).max().unwrap_or(Time::ZERO);
        self.shared.scenario.changeable(RUN, self.now().max(last), &made).unwrap_or_default()
    }

    /// Stops the virtual clock, or lets it go on.
    ///
    /// # Errors
    /// The run is by another clock, or over.
    pub(crate) fn pause(&self, paused: bool) -> Result<String, String> {
        self.is_virtual()?;
        self.goes_on()?;
        self.shared.tempo.pause(paused);
        let what = if paused { "paused" } else { "goes on" };
        Ok(format!("{what} at {:.3} s", self.now().as_secs_f64()))
    }

    /// Simulated seconds in a second.
    ///
    /// # Errors
    /// The run is by another clock, or over, or it is no such number.
    pub(crate) fn speed(&self, factor: f64) -> Result<String, String> {
        self.is_virtual()?;
        self.goes_on()?;
        self.shared.tempo.set(Speed::new(factor)?);
        Ok(format!("speed {factor} at {:.3} s", self.now().as_secs_f64()))
    }

    /// Ends the run as Ctrl-C does.
    pub(crate) fn stop(&self) {
        if !self.shared.control.is_over() {
            ackclock_live::interrupt();
            self.shared.tempo.wake();
        }
    }

    /// The time of the run.
    pub(crate) fn now(&self) -> Time {
        self.shared.control.now()
    }

    /// Returns `true` if the virtual clock stands still.
    pub(crate) fn is_paused(&self) -> bool {
        self.shared.tempo.is_paused()
    }

    /// Seconds of the virtual clock in one of the machine's; `None` is as fast as it can.
    pub fn pace(&self) -> Option<f64> {
        self.shared.tempo.speed()
    }

    /// The source of changes for the loop of a live run.
    pub fn control(&self) -> Control {
        self.shared.control.clone()
    }

    /// Before what time a run on the virtual clock goes on that has come to some time. `None` if it
    /// is not to go on yet: some time has passed, or somebody wants something.
    pub fn pacer(&self) -> impl FnMut(Time) -> Option<Time> + use<> {
        let (shared, mut pace) = (self.shared.clone(), pace::Pace::default());
        move |now| pace.until(&shared.tempo, now)
    }

    /// The run is over.
    pub(crate) fn close(&self) {
        self.shared.control.close();
    }

    fn keep(&self, at: Time, changes: Vec<(DirectionId, Change)>) {
        self.made().extend(changes.into_iter().map(|(of, change)| (of, Change { at, ..change })));
    }

    fn made(&self) -> MutexGuard<'_, Vec<(DirectionId, Change)>> {
        self.shared.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> Result<(), String> {
        match (self.shared.control.goes_on(), self.shared.control.is_over()) {
            (true, _) => Ok(()),
            (false, true) => Err(over()),
            (false, false) => Err("the run has not begun yet".to_owned()),
        }
    }

    fn is_virtual(&self) -> Result<(), String> {
        if self.shared.is_live { Err("a live run goes by the machine's clock".to_owned()) } else { Ok(()) }
    }
}

/// The answer once a run is over.
pub(crate) const OVER: &str = "the run is over";

fn over() -> String {
    OVER.to_owned()
}

/// Checks that texts can stand in a capture and in a line.
fn check(texts: &[&str]) -> Result<(), String> {
    if texts.is_empty() || texts.len() > TOGETHER {
        return Err(format!("{} changes; expected 1 to {TOGETHER} at a time, KEY=VALUE", texts.len()));
    }
    if let Some(long) = texts.iter().find(|text| text.len() > LONGEST) {
        return Err(format!("a change of {} bytes; the longest has {LONGEST}", long.len()));
    }
    if texts.iter().any(|text| text.contains(char::is_control)) {
        return Err("a change with a control character; expected one line".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
