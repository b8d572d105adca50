//! Keys, and what they change of a run that only notes it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::super::view::tests::filled;
use super::*;

/// A run with these keys.
#[derive(Debug)]
struct Noted {
    values: RefCell<BTreeMap<String, String>>,
    done: RefCell<Vec<String>>,
    paused: Cell<bool>,
    pace: Cell<Option<f64>>,
    is_live: bool,
}

impl Noted {
    fn new(is_live: bool) -> Noted {
        let values =
            [("forward.rate", "10mbit"), ("forward.delay", "20ms"), ("reverse.rate", "1mbit"), ("reverse.delay", "0s")];
        let values = values.map(|(key, value)| (format!("links.bottleneck.{key}"), value.to_owned()));
        Noted {
            values: RefCell::new(values.into()),
            done: RefCell::default(),
            paused: Cell::new(false),
            pace: Cell::new((!is_live).then_some(1.0)),
            is_live,
        }
    }

    fn value(&self, key: &str) -> String {
        self.values.borrow()[&format!("links.bottleneck.{key}")].clone()
    }

    fn of_virtual(&self, what: String) -> Result<String, String> {
        if self.is_live {
            return Err("a live run goes by the machine's clock".to_owned());
        }
        self.done.borrow_mut().push(what.clone());
        Ok(what)
    }
}

impl RunControl for Noted {
    fn set(&self, text: &str) -> Result<String, String> {
        let (key, value) = text.split_once('=').ok_or("not KEY=VALUE")?;
        match self.values.borrow_mut().get_mut(key) {
            Some(now) => *now = value.to_owned(),
            None => return Err(format!("{key}: no such key")),
        }
        Ok(text.to_owned())
    }

    fn get(&self, key: &str) -> Result<String, String> {
        self.values.borrow().get(key).cloned().ok_or(format!("{key}: no such key"))
    }

    fn pause(&self, paused: bool) -> Result<String, String> {
        let done = self.of_virtual(format!("pause {paused}"))?;
        self.paused.set(paused);
        Ok(done)
    }

    fn speed(&self, factor: f64) -> Result<String, String> {
        let done = self.of_virtual(format!("speed {factor}"))?;
        self.pace.set(Some(factor));
        Ok(done)
    }

    fn is_paused(&self) -> bool {
        self.paused.get()
    }

    fn pace(&self) -> Option<f64> {
        self.pace.get()
    }
}

fn press(state: &mut State, change: &Noted, keys: &str) -> Wish {
    let board = filled();
    let mut wish = Wish::Nothing;
    for char in keys.chars() {
        let code = match char {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x08' => KeyCode::Backspace,
            '\x1b' => KeyCode::Esc,
            char => KeyCode::Char(char),
        };
        wish = state.key(KeyEvent::new(code, KeyModifiers::NONE), &board, change);
    }
    wish
}

fn last(state: &State) -> (&str, bool) {
    state.messages.back().map(|message| (message.text.as_str(), message.is_error)).expect("a message")
}

#[test]
fn rates_and_delays_of_the_selected_direction_change_by_a_quarter() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    press(&mut state, &change, "+");
    assert_eq!(change.value("forward.rate"), "12500kbit");
    // 12.5 / 1.25 is 10, and 10 / 1.25 is 8.
    press(&mut state, &change, "--");
    assert_eq!((change.value("forward.rate"), change.value("reverse.rate")), ("8mbit".to_owned(), "1mbit".to_owned()));
    press(&mut state, &change, "]");
    assert_eq!(change.value("forward.delay"), "25ms");
    press(&mut state, &change, "[[");
    assert_eq!(change.value("forward.delay"), "16ms");
    press(&mut state, &change, "j-");
    assert_eq!(
        (change.value("forward.rate"), change.value("reverse.rate")),
        ("8mbit".to_owned(), "800kbit".to_owned())
    );
    // There is a way up from no delay, and back.
    press(&mut state, &change, "]");
    assert_eq!(change.value("reverse.delay"), "100us");
    press(&mut state, &change, "[");
    assert_eq!(change.value("reverse.delay"), "0s");
    // However often: a link keeps some rate, and never more than there can be.
    press(&mut state, &change, &"-".repeat(200));
    assert_eq!(change.value("reverse.rate"), "1bit");
    press(&mut state, &change, &"+".repeat(300));
    assert!(parse_rate(&change.value("reverse.rate")).is_ok(), "{}", change.value("reverse.rate"));
}

#[test]
fn a_rate_that_is_none_is_an_error_that_says_so() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    change.values.borrow_mut().insert("links.bottleneck.forward.rate".to_owned(), "unlimited".to_owned());
    press(&mut state, &change, "+");
    let (text, is_error) = last(&state);
    assert!(is_error && text.starts_with("links.bottleneck.forward.rate is unlimited: "), "{text}");
    assert_eq!(change.value("forward.rate"), "unlimited");
}

#[test]
fn the_clock_of_a_virtual_run_stops_and_goes_faster_and_that_of_a_live_one_does_not() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    press(&mut state, &change, " ");
    assert!(state.paused);
    press(&mut state, &change, " ");
    assert!(!state.paused);
    press(&mut state, &change, ">><<<");
    assert_eq!(state.speed, Some(0.5));
    let done = ["pause true", "pause false", "speed 2", "speed 4", "speed 2", "speed 1", "speed 0.5"];
    assert_eq!(*change.done.borrow(), done);
    let (mut state, change) = (State::new(None), Noted::new(true));
    assert_eq!(press(&mut state, &change, " >"), Wish::Nothing);
    assert!(!state.paused && state.speed.is_none() && last(&state).1);
}

#[test]
fn what_is_typed_is_set_once_it_is_entered() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    // Keys mean nothing else meanwhile.
    press(&mut state, &change, ":links.bottleneck.forward.rate=5mbitqq\x08\x08");
    assert_eq!(state.prompt.as_deref(), Some("links.bottleneck.forward.rate=5mbit"));
    assert_eq!(change.value("forward.rate"), "10mbit");
    press(&mut state, &change, "\n");
    assert_eq!((change.value("forward.rate"), state.prompt.is_none()), ("5mbit".to_owned(), true));
    press(&mut state, &change, ":nonsense=1\n");
    assert_eq!(last(&state), ("nonsense: no such key", true));
    press(&mut state, &change, ":links.bottleneck.forward.rate=1mbit\x1b");
    assert_eq!((change.value("forward.rate"), state.prompt.is_none()), ("5mbit".to_owned(), true));
    // Once nothing is left, it is over; and it has an end.
    press(&mut state, &change, ":x\x08\x08");
    assert_eq!(state.prompt, None);
    press(&mut state, &change, &format!(":{}", "x".repeat(1000)));
    assert_eq!(state.prompt.as_ref().map(String::len), Some(LONGEST));
}

#[test]
fn q_and_ctrl_c_end_the_run_and_then_the_dashboard() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    assert_eq!(press(&mut state, &change, "q"), Wish::End);
    assert_eq!(press(&mut state, &change, "q"), Wish::Leave);
    let mut state = State::new(Some(1.0));
    // Control-C ends the run also while something is typed.
    press(&mut state, &change, ":x");
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.key(ctrl_c, &filled(), &change), Wish::End);
    assert_eq!(state.key(ctrl_c, &filled(), &change), Wish::Leave);
}

#[test]
fn selection_stays_within_its_table() {
    let (mut state, change) = (State::new(Some(1.0)), Noted::new(false));
    press(&mut state, &change, "jjjjj");
    assert_eq!((state.link, state.flow), (1, 0));
    press(&mut state, &change, "\tG");
    assert_eq!((state.link, state.flow), (1, 1));
    press(&mut state, &change, "kkk\tg");
    assert_eq!((state.link, state.flow), (0, 0));
    // Help goes with any key, which does nothing else.
    press(&mut state, &change, "?j");
    assert_eq!((state.help, state.link), (false, 0));
}

#[test]
fn messages_are_of_one_line_and_few() {
    let mut state = State::new(None);
    (0..100).for_each(|number| state.say(Ok(format!("line\n  {number}"))));
    assert_eq!((state.messages.len(), last(&state).0), (MESSAGES, "line 99"));
}
