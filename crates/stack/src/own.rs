//! Stacks by name: the form in which a program makes its stacks known to scenarios.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use ackclock_units::Random;
use ackclock_units::outside::{OwnParameter, interned};
use ackclock_units::parameter::{Configurable, Domain, Visitor};

use crate::Stack;

/// Builds the stack of a host.
type Build = dyn Fn(&StackHost, &[f64], Random) -> Box<dyn Stack> + Send + Sync;

/// A host whose packets come from a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackHost {
    /// Name in the scenario.
    pub name: String,
    /// Addresses, at least one.
    pub addresses: Vec<IpAddr>,
    /// The most bytes of a packet.
    pub mtu: u16,
    /// Hosts that a path leads to, in the order of the paths.
    pub neighbours: Vec<Neighbour>,
    /// Values of the stack's texts ([`OwnStack::text`]), in their order.
    pub texts: Vec<String>,
}

/// A host that a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Name in the scenario.
    pub name: String,
    /// Addresses, at least one.
    pub addresses: Vec<IpAddr>,
}

/// A text that a scenario may set, as a key beside `kind`.
#[derive(Clone, Copy)]
pub struct OwnText {
    /// Key in scenarios.
    pub name: &'static str,
    /// Value unless a scenario sets another.
    pub default: &'static str,
    /// What is expected in place of a text that is not valid.
    pub problem: fn(&str) -> Option<String>,
}

/// A network stack that is not of ackclock's own, under a name of its own in scenarios.
#[derive(Clone)]
pub struct OwnStack {
    name: &'static str,
    parameters: Vec<OwnParameter>,
    texts: Vec<OwnText>,
    needs: Vec<Need>,
    unseeded: Option<&'static str>,
    observable: bool,
    build: Arc<Build>,
}

/// Keys that have an effect for some values of another alone.
#[derive(Clone, Debug)]
struct Need {
    keys: Vec<&'static str>,
    of: &'static str,
    wanted: WantedValue,
}

/// The values of a key for which others have an effect.
#[derive(Clone, Debug)]
enum WantedValue {
    /// These texts.
    Texts(Vec<&'static str>),
    /// Any number but 0.
    Positive,
    /// The number 0.
    Zero,
}

// A specification outlives a run that panics; what `build` has made for it does not.
impl UnwindSafe for OwnStack {}
impl RefUnwindSafe for OwnStack {}

impl OwnStack {
    /// A stack called `name`. `build` makes the stack of a host at time 0, from the values of its
    /// parameters in their order, and a stream of random numbers.
    pub fn new(
        name: &str,
        build: impl Fn(&StackHost, &[f64], Random) -> Box<dyn Stack> + Send + Sync + 'static,
    ) -> OwnStack {
        let (parameters, texts, needs) = (Vec::new(), Vec::new(), Vec::new());
        let (name, build) = (interned(name), Arc::new(build));
        OwnStack { name, parameters, texts, needs, unseeded: None, observable: false, build }
    }

    /// One more number that a scenario may set, as a key beside `kind`: its default, and the values
    /// that it may have.
    #[must_use]
    pub fn parameter(mut self, name: &str, default: f64, range: RangeInclusive<f64>) -> OwnStack {
        self.parameters.push(OwnParameter::new(name, default, range));
        self
    }

    /// One more text that a scenario may set, as a key beside `kind`: its default, and a function that
    /// returns what is expected in place of a text that is not valid. The values are
    /// [`StackHost::texts`].
    #[must_use]
    pub fn text(mut self, name: &str, default: &str, problem: fn(&str) -> Option<String>) -> OwnStack {
        self.texts.push(OwnText { name: interned(name), default: interned(default), problem });
        self
    }

    /// `keys` have an effect only where the text `text` has one of these `values`; elsewhere a scenario
    /// that sets them is refused.
    #[must_use]
    pub fn only_with(self, keys: &[&str], text: &str, values: &[&str]) -> OwnStack {
        self.needing(keys, text, WantedValue::Texts(values.iter().map(|value| interned(value)).collect()))
    }

    /// `keys` have an effect only where the number `of` is above 0; elsewhere a scenario that sets them
    /// is refused.
    #[must_use]
    pub fn only_above_zero(self, keys: &[&str], of: &str) -> OwnStack {
        self.needing(keys, of, WantedValue::Positive)
    }

    /// `keys` have an effect only where the number `of` is 0; elsewhere a scenario that sets them is
    /// refused.
    #[must_use]
    pub fn only_at_zero(self, keys: &[&str], of: &str) -> OwnStack {
        self.needing(keys, of, WantedValue::Zero)
    }

    fn needing(mut self, keys: &[&str], of: &str, wanted: WantedValue) -> OwnStack {
        self.needs.push(Need { keys: keys.iter().map(|key| interned(key)).collect(), of: interned(of), wanted });
        self
    }

    /// Its runs do not repeat to the byte, for the reason `what`, which the notes of a scenario say.
    #[must_use]
    pub fn unseeded(mut self, what: &str) -> OwnStack {
        self.unseeded = Some(interned(what));
        self
    }

    /// It keeps what it does for records ([`Stack::observe`]): `record.qlog` has a log of its hosts.
    #[must_use]
    pub fn observable(mut self) -> OwnStack {
        self.observable = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[OwnParameter] {
        &self.parameters
    }

    /// Its texts.
    pub fn texts(&self) -> &[OwnText] {
        &self.texts
    }
}

impl PartialEq for OwnStack {
    /// Names are unique.
    fn eq(&self, other: &OwnStack) -> bool {
        self.name == other.name
    }
}

// Not the address of the check: captures have a fingerprint of what is shown here.
impl fmt::Debug for OwnText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnText { name, default, problem: _ } = self;
        f.debug_struct("OwnText").field("name", name).field("default", default).finish()
    }
}

impl fmt::Debug for OwnStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnStack { name, parameters, texts, needs, unseeded, observable, build: _ } = self;
        let mut shown = f.debug_struct("OwnStack");
        shown.field("name", name).field("parameters", parameters).field("texts", texts);
        shown.field("needs", needs).field("unseeded", unseeded).field("observable", observable).finish()
    }
}

/// A stack with a value for each of its parameters and texts.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnStackConfig {
    stack: Arc<OwnStack>,
    values: Vec<f64>,
    texts: Vec<String>,
}

// Parameters are finite: their ranges are.
impl Eq for OwnStackConfig {}

impl OwnStackConfig {
    /// The stack out of the box.
    pub fn new(stack: Arc<OwnStack>) -> OwnStackConfig {
        let values = stack.parameters.iter().map(|of| of.default).collect();
        let texts = stack.texts.iter().map(|of| of.default.to_owned()).collect();
        OwnStackConfig { stack, values, texts }
    }

    /// Its texts with their values.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = (OwnText, &mut String)> {
        self.stack.texts.iter().copied().zip(&mut self.texts)
    }

    /// The keys that are set and have no effect, each with what is expected.
    pub fn idle(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let texts = || self.stack.texts.iter().zip(&self.texts);
        let is_set = move |key: &str| {
            let mut numbers = self.stack.parameters.iter().zip(&self.values);
            numbers.any(|(of, &value)| of.name == key && value != of.default)
                || texts().any(|(of, text)| of.name == key && text != of.default)
        };
        let unmet = move |need: &&Need| {
            let number = || self.stack.parameters.iter().zip(&self.values).find(|(of, _)| of.name == need.of);
            match &need.wanted {
                WantedValue::Texts(values) => {
                    texts().any(|(of, text)| of.name == need.of && !values.contains(&text.as_str()))
                }
                WantedValue::Positive => number().is_some_and(|(_, &value)| value <= 0.0),
                WantedValue::Zero => number().is_some_and(|(_, &value)| value != 0.0),
            }
        };
        self.stack.needs.iter().filter(unmet).flat_map(move |need| {
            let wanted = match &need.wanted {
                WantedValue::Texts(values) => {
                    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                    format!("= {}", values.join("` or `"))
                }
                WantedValue::Positive => "> 0".into(),
                WantedValue::Zero => "= 0".into(),
            };
            let expected = format!("`{} {wanted}`, without which it has no effect", need.of);
            need.keys.iter().filter(move |key| is_set(key)).map(move |&key| (key, expected.clone()))
        })
    }

    /// The stack's name.
    pub fn name(&self) -> &'static str {
        self.stack.name
    }

    /// The reason why runs with it do not repeat, if they do not ([`OwnStack::unseeded`]).
    pub fn unseeded(&self) -> Option<&'static str> {
        self.stack.unseeded
    }

    /// Returns `true` if it keeps what it does for records ([`OwnStack::observable`]).
    pub fn is_observable(&self) -> bool {
        self.stack.observable
    }

    /// The stack of a host at time 0. Its texts are these.
    pub fn build(&self, host: StackHost, random: Random) -> Box<dyn Stack> {
        (self.stack.build)(&StackHost { texts: self.texts.clone(), ..host }, &self.values, random)
    }
}

impl Configurable for OwnStackConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        for (of, value) in self.stack.parameters.iter().zip(&mut self.values) {
            v.parameter(of.name, Domain::Number(of.min, of.max, ""), self.stack.name, value);
        }
    }
}
