//! The state of the dashboard that a person has chosen, and the effects of keys.

use std::collections::VecDeque;

use ackclock_units::{Rate, Span, parse_rate, parse_span};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::board::Board;
use super::text;
use crate::control::Controls;

/// Messages that are remembered.
const MESSAGES: usize = 20;

/// By how much a key changes a rate or a delay, and back.
const STEP: f64 = 1.25;

/// Shorter delays are none, ns.
const SHORTEST: f64 = 1e5;

/// Characters of an assignment.
const LONGEST: usize = 200;

/// The interface by which keys change a run.
pub(crate) trait RunControl {
    /// Sets a key of the scenario, from `KEY=VALUE`; what was done.
    fn set(&self, text: &str) -> Result<String, String>;
    /// The value of a key.
    fn get(&self, key: &str) -> Result<String, String>;
    fn pause(&self, paused: bool) -> Result<String, String>;
    fn speed(&self, factor: f64) -> Result<String, String>;
    /// Returns `true` if the clock stands still.
    fn is_paused(&self) -> bool;
    /// Seconds of the run in a second; `None` is as fast as it can.
    fn pace(&self) -> Option<f64>;
}

impl RunControl for Controls {
    fn set(&self, text: &str) -> Result<String, String> {
        Controls::set(self, text)
    }

    fn get(&self, key: &str) -> Result<String, String> {
        Controls::get(self, key)
    }

    fn pause(&self, paused: bool) -> Result<String, String> {
        Controls::pause(self, paused)
    }

    fn speed(&self, factor: f64) -> Result<String, String> {
        Controls::speed(self, factor)
    }

    fn is_paused(&self) -> bool {
        Controls::is_paused(self)
    }

    fn pace(&self) -> Option<f64> {
        Controls::pace(self)
    }
}

/// The request of a key to the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// The run ends, as by a signal.
    End,
    /// A repetition of the key: the dashboard goes.
    Leave,
}

/// The table that arrow keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Links,
    Flows,
}

/// A line about what has happened.
#[derive(Clone, Debug)]
pub(crate) struct RunMessage {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// A person's choices.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(crate) link: usize,
    pub(crate) flow: usize,
    /// The text typed behind a colon.
    pub(crate) prompt: Option<String>,
    pub(crate) help: bool,
    pub(crate) messages: VecDeque<RunMessage>,
    /// `None` is as fast as it can.
    pub(crate) speed: Option<f64>,
    pub(crate) paused: bool,
    pub(crate) ending: bool,
    /// The text typed last.
    before: String,
}

impl State {
    pub(crate) fn new(speed: Option<f64>) -> State {
        State {
            pane: Pane::default(),
            link: 0,
            flow: 0,
            prompt: None,
            help: false,
            messages: VecDeque::new(),
            speed,
            paused: false,
            ending: false,
            before: String::new(),
        }
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: KeyEvent, board: &Board, change: &impl RunControl) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'C')) {
            return self.end();
        }
        if self.prompt.is_some() {
            self.type_in(key, change);
            return Wish::Nothing;
        }
        if std::mem::take(&mut self.help) {
            return Wish::Nothing;
        }
        match key.code {
            KeyCode::Char('q' | 'Q') => return self.end(),
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char(':') => self.prompt = Some(String::new()),
            KeyCode::Char(' ') => self.pause(change),
            KeyCode::Char('+' | '=') => self.scale_rate(board, change, STEP),
            KeyCode::Char('-') => self.scale_rate(board, change, 1.0 / STEP),
            KeyCode::Char(']') => self.scale_delay(board, change, STEP),
            KeyCode::Char('[') => self.scale_delay(board, change, 1.0 / STEP),
            KeyCode::Char('>') => self.scale_speed(change, 2.0),
            KeyCode::Char('<') => self.scale_speed(change, 0.5),
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => {
                self.pane = if self.pane == Pane::Links { Pane::Flows } else { Pane::Links };
            }
            KeyCode::Down | KeyCode::Char('j') => self.step(board, 1),
            KeyCode::Up | KeyCode::Char('k') => self.step(board, -1),
            KeyCode::PageDown => self.step(board, 10),
            KeyCode::PageUp => self.step(board, -10),
            KeyCode::Home | KeyCode::Char('g') => self.step(board, isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(board, isize::MAX),
            _ => {}
        }
        Wish::Nothing
    }

    fn end(&mut self) -> Wish {
        if std::mem::replace(&mut self.ending, true) {
            return Wish::Leave;
        }
        self.say(Ok("the run ends; again leaves the dashboard".to_owned()));
        Wish::End
    }

    fn step(&mut self, board: &Board, by: isize) {
        let (at, of) = match self.pane {
            Pane::Links => (&mut self.link, board.links.len()),
            Pane::Flows => (&mut self.flow, board.flows.len()),
        };
        *at = at.saturating_add_signed(by).min(of.saturating_sub(1));
    }

    /// A key while something is typed.
    fn type_in(&mut self, key: KeyEvent, change: &impl RunControl) {
        let Some(typed) = &mut self.prompt else { return };
        match key.code {
            KeyCode::Esc => self.prompt = None,
            KeyCode::Enter => {
                let text = self.prompt.take().unwrap_or_default();
                let text = text.trim();
                if !text.is_empty() {
                    text.clone_into(&mut self.before);
                    self.say(change.set(text));
                }
            }
            KeyCode::Up => typed.clone_from(&self.before),
            KeyCode::Backspace if typed.is_empty() => self.prompt = None,
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => typed.clear(),
            KeyCode::Char(char) if !char.is_control() && typed.len() + char.len_utf8() <= LONGEST => typed.push(char),
            _ => {}
        }
    }

    /// Takes over at what pace the run goes: others may change it as well.
    pub(crate) fn follow(&mut self, change: &impl RunControl) {
        (self.paused, self.speed) = (change.is_paused(), change.pace());
    }

    fn pause(&mut self, change: &impl RunControl) {
        let done = change.pause(!change.is_paused());
        self.say(done);
        self.follow(change);
    }

    fn scale_speed(&mut self, change: &impl RunControl, by: f64) {
        let done = change.speed(change.pace().unwrap_or(1.0) * by);
        self.say(done);
        self.follow(change);
    }

    fn scale_rate(&mut self, board: &Board, change: &impl RunControl, by: f64) {
        let done = scaled(board, self.link, "rate", change, |now| {
            let rate = parse_rate(now).map_err(|error| error.to_string())?;
            rounded(rate.as_bps() as f64 * by).map(|rate| rate.to_string())
        });
        self.say(done);
    }

    fn scale_delay(&mut self, board: &Board, change: &impl RunControl, by: f64) {
        let done = scaled(board, self.link, "delay", change, |now| {
            let delay = parse_span(now).map_err(|error| error.to_string())?;
            Ok(rounded_delay(delay.as_nanos() as f64 * by, by > 1.0).to_string())
        });
        self.say(done);
    }

    /// Shows what was done, or why not.
    pub(crate) fn say(&mut self, done: Result<String, String>) {
        let (text, is_error) = match done {
            Ok(text) => (text, false),
            Err(text) => (text, true),
        };
        // The message has one line.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.messages.len() == MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(RunMessage { text, is_error });
    }
}

/// Changes a value of the selected link direction by what it is now.
fn scaled(
    board: &Board,
    link: usize,
    key: &str,
    change: &impl RunControl,
    new: impl FnOnce(&str) -> Result<String, String>,
) -> Result<String, String> {
    let link = board.links.get(link).ok_or("there is no link")?;
    let class = if link.class.is_empty() { String::new() } else { format!("queue.classes.{}.", link.class) };
    let key = format!("links.{}.{}.{class}{key}", link.link, link.direction);
    let now = change.get(&key)?;
    let value = new(now.trim_matches('"')).map_err(|error| format!("{key} is {now}: {error}"))?;
    change.set(&format!("{key}={value}"))
}

/// The rate of `bps`, rounded to its first three digits. No link is stopped by a key.
fn rounded(bps: f64) -> Result<Rate, String> {
    let bps = bps.clamp(1.0, Rate::MAX.as_bps() as f64) as u64;
    let unit = 10u64.pow(bps.ilog10().saturating_sub(2));
    Rate::from_bps((bps + unit / 2) / unit * unit).ok_or_else(|| "no such rate".to_owned())
}

/// A delay by its first three digits, to the microsecond. There is a way up from none, and down to
/// it.
fn rounded_delay(nanos: f64, up: bool) -> Span {
    if !up && nanos < SHORTEST {
        return Span::ZERO;
    }
    let micros = (nanos.max(SHORTEST) / 1e3) as u64;
    let unit = 10u64.pow(micros.max(1).ilog10().saturating_sub(2));
    Span::from_micros((micros + unit / 2) / unit * unit)
}

/// The ratio of the run's clock to the machine's.
pub(super) fn speed_text(speed: f64) -> String {
    if speed >= 1.0 {
        format!("{}x", text::three(speed).trim_end_matches('0').trim_end_matches('.'))
    } else {
        format!("{speed}x")
    }
}

#[cfg(test)]
mod tests;
