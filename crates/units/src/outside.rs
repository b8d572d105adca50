//! What algorithms from outside have in common, whether they control congestion or queues: names
//! and parameters that exist only once a program runs, and failures.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Time;

/// A name with the lifetime of the program, as required of names of algorithms. Each distinct name
/// is stored once, and never freed: a program that keeps creating names keeps them all.
pub fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let stored: &'static str = Box::leak(name.into());
    names.insert(stored);
    stored
}

/// A number that a scenario may set, as a key beside `kind`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnParameter {
    /// Key in scenarios.
    pub name: &'static str,
    /// Value unless a scenario sets another.
    pub default: f64,
    /// The least that it may be.
    pub min: f64,
    /// The most that it may be.
    pub max: f64,
}

impl OwnParameter {
    /// A parameter with its default, and the values that it may have.
    pub fn new(name: &str, default: f64, range: RangeInclusive<f64>) -> OwnParameter {
        OwnParameter { name: interned(name), default, min: *range.start(), max: *range.end() }
    }
}

/// The first fault in a list of parameters; `None` if the list is valid.
pub fn parameters_problem(parameters: &[OwnParameter]) -> Option<String> {
    for (number, OwnParameter { name, default, min, max }) in parameters.iter().enumerate() {
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if !is_name || *name == "kind" {
            return Some(format!(
                "`{name}` is no name for a parameter: expected letters, digits, - and _, but not `kind`"
            ));
        }
        if parameters[..number].iter().any(|other| other.name == *name) {
            return Some(format!("there are two parameters `{name}`"));
        }
        let finite = [default, min, max].into_iter().all(|number| number.is_finite());
        if !finite || !(min..=max).contains(&default) {
            return Some(format!(
                "the parameter `{name}` is {default} by default, of {min} to {max}: expected finite numbers in order"
            ));
        }
    }
    None
}

/// An algorithm from outside has failed: the run cannot go on.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Time in the run.
    pub at: Time,
    /// Description of the failure, a sentence.
    pub what: String,
    /// The underlying error, for programs that can use it.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure without a cause of its own.
    pub fn new(at: Time, what: impl Into<String>) -> Failure {
        Failure { at, what: what.into(), source: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:.9} s: {}", self.at.since(Time::ZERO).as_secs_f64(), self.what)
    }
}

impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        (self.at, &self.what) == (other.at, &other.what)
    }
}

impl Eq for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_stored_once() {
        let made = String::from("mine");
        let [first, second] = [interned("mine"), interned(&made)];
        assert!(std::ptr::eq(first, second));
        assert_ne!(first, interned("yours"));
    }

    #[test]
    fn parameters_have_names_of_their_own_and_defaults_in_range() {
        let beta = OwnParameter::new("beta", 0.8, 0.1..=0.99);
        assert_eq!(parameters_problem(&[beta, OwnParameter::new("target_ms", 1.0, 1.0..=1.0)]), None);
        for wrong in [
            vec![beta, beta],
            vec![OwnParameter::new("", 1.0, 0.0..=2.0)],
            vec![OwnParameter::new("kind", 1.0, 0.0..=2.0)],
            vec![OwnParameter::new("a.b", 1.0, 0.0..=2.0)],
            vec![OwnParameter { default: 3.0, ..beta }],
            vec![OwnParameter { max: f64::NAN, ..beta }],
            vec![OwnParameter { max: f64::INFINITY, ..beta }],
        ] {
            assert!(parameters_problem(&wrong).is_some(), "{wrong:?}");
        }
    }
}
