//! What a person may change of a run while it goes on: keys of its links, and on the virtual clock
//! its pace.

use std::str::FromStr;
use std::sync::Arc;

use ackclock_scenario::Scenario;

/// Seconds of the virtual clock in a second of the machine's: a finite number above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed(f64);

impl Speed {
    /// The slowest and the fastest.
    const RANGE: [f64; 2] = [1e-6, 1e6];

    /// # Errors
    /// Not a number in the range.
    pub(crate) fn new(factor: f64) -> Result<Speed, String> {
        let [least, most] = Speed::RANGE;
        if (least..=most).contains(&factor) {
            return Ok(Speed(factor));
        }
        Err(format!("not a speed from {least} to {most}"))
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let factor: f64 = text.parse().map_err(|_| "not a number, such as 0.5 or 10".to_owned())?;
        Speed::new(factor)
    }
}

/// The handle of a run that goes on, for a dashboard or a socket. All calls may come from any
/// thread; none of them makes the run wait.
#[derive(Clone, Debug)]
pub(crate) struct Controls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    is_live: bool,
}

impl Controls {
    /// Those of the only run of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Controls {
        Controls { shared: Arc::new(Shared { is_live: scenario.is_live() }) }
    }

    /// Makes a change (`links.bottleneck.rate=5mbit`); says what was done, and when in the run.
    ///
    /// # Errors
    /// What is wrong with it, or that the run is over.
    pub(crate) fn set(&self, text: &str) -> Result<String, String> {
        Err(format!("{text}: there is no run"))
    }

    /// The present value of a key, as a scenario has it.
    ///
    /// # Errors
    /// There is no such key.
    pub(crate) fn get(&self, key: &str) -> Result<String, String> {
        Err(format!("{key}: there is no run"))
    }

    /// The keys that can be set, with their present values.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Stops the virtual clock, or lets it go on.
    ///
    /// # Errors
    /// The run is by another clock.
    pub(crate) fn pause(&self, _paused: bool) -> Result<String, String> {
        self.is_virtual()?;
        Ok(String::new())
    }

    /// Simulated seconds in a second.
    ///
    /// # Errors
    /// The run is by another clock, or it is not above 0.
    pub(crate) fn speed(&self, _factor: f64) -> Result<String, String> {
        self.is_virtual()?;
        Ok(String::new())
    }

    /// Ends the run as Ctrl-C does.
    pub(crate) fn stop(&self) {}

    fn is_virtual(&self) -> Result<(), String> {
        if self.shared.is_live { Err("a live run goes by the machine's clock".to_owned()) } else { Ok(()) }
    }
}
