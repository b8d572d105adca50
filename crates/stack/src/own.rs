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

/// Something that a machine lacks for a stack, by the key that could name another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The text.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// What is expected, and how to get it.
    pub expected: String,
}

/// Says what the machine lacks, given the values of the texts.
type Requires = fn(&[String]) -> Option<Lack>;

/// A network stack that is not of ackclock's own, under a name of its own in scenarios.
#[derive(Clone)]
pub struct OwnStack {
    name: &'static str,
    parameters: Vec<OwnParameter>,
    texts: Vec<OwnText>,
    needs: Vec<Need>,
    unseeded: Option<&'static str>,
    observable: bool,
    carries_flows: bool,
    is_virtual_only: bool,
    requires: Option<Requires>,
    build: Arc<Build>,
}

/// Keys that have an effect for some values of another alone.
#[derive(Clone, Debug)]
struct Need {
    keys: Vec<&'static str>,
    of: &'static str,
    wanted: WantedValue,
}

/// Keys that a flow sets whose host is a stack, where the stack has them.
const OF_FLOWS: [&str; 15] = [
    "app",
    "cc",
    "bytes",
    "start_s",
    "stop_s",
    "duration_s",
    "port",
    "source_port",
    "ecn",
    "segmentation_offload",
    "request_bytes",
    "response_bytes",
    "think_s",
    "requests",
    "connections",
];

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
        OwnStack {
            name,
            parameters,
            texts,
            needs,
            unseeded: None,
            observable: false,
            carries_flows: false,
            is_virtual_only: false,
            requires: None,
            build,
        }
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

    /// It can be the host of a flow over TCP (`host = "NAME"` in `[[flows]]`), with a transfer of its
    /// own between two ports. Such a flow sets the text `app` to `"send"` and `"sink"`, or to
    /// `"request"` and `"serve"`, and by these names, each where the stack has it: the text `cc`, and
    /// the numbers `bytes` (0: without end), `start_s`, `stop_s` and `duration_s` (0: none; by closing
    /// and by a reset), `port` and `source_port`, `ecn` and `segmentation_offload` (0 or 1),
    /// `request_bytes`, `response_bytes`, `think_s` and `requests` (0: without end), and `connections`,
    /// which leave from ports one after another from `source_port` on. The other keys are those of
    /// `host`.
    #[must_use]
    pub fn carries_flows(mut self) -> OwnStack {
        self.carries_flows = true;
        self
    }

    /// It does not keep up with the machine's clock: scenarios that have it in a live run are refused.
    #[must_use]
    pub fn virtual_only(mut self) -> OwnStack {
        self.is_virtual_only = true;
        self
    }

    /// It needs something of the machine: `requires` returns what is missing, given the values of the
    /// texts in their order. Scenarios are refused where they name the stack.
    #[must_use]
    pub fn requires(mut self, requires: fn(&[String]) -> Option<Lack>) -> OwnStack {
        self.requires = Some(requires);
        self
    }

    /// Returns `true` if it can be the host of a flow ([`OwnStack::carries_flows`]).
    pub fn can_carry_flows(&self) -> bool {
        self.carries_flows
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
        let OwnStack { name, parameters, texts, needs, unseeded, observable, .. } = self;
        let mut shown = f.debug_struct("OwnStack");
        shown.field("name", name).field("parameters", parameters).field("texts", texts);
        shown.field("needs", needs).field("unseeded", unseeded).field("observable", observable).finish()
    }
}

/// A stack with a value for each of its parameters and texts.
#[derive(Clone, PartialEq)]
pub struct OwnStackConfig {
    stack: Arc<OwnStack>,
    values: Vec<f64>,
    texts: Vec<String>,
    /// The host of a flow, which sets some of the keys.
    is_of_flow: bool,
}

// Not the host's part in a flow, which its texts tell.
impl fmt::Debug for OwnStackConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnStackConfig { stack, values, texts, is_of_flow: _ } = self;
        f.debug_struct("OwnStackConfig").field("stack", stack).field("values", values).field("texts", texts).finish()
    }
}

// Parameters are finite: their ranges are.
impl Eq for OwnStackConfig {}

impl OwnStackConfig {
    /// The stack out of the box.
    pub fn new(stack: Arc<OwnStack>) -> OwnStackConfig {
        let values = stack.parameters.iter().map(|of| of.default).collect();
        let texts = stack.texts.iter().map(|of| of.default.to_owned()).collect();
        OwnStackConfig { stack, values, texts, is_of_flow: false }
    }

    /// The stack as the host of a flow, the sender or the receiver.
    pub fn of_flow(stack: Arc<OwnStack>, sends: bool) -> OwnStackConfig {
        let mut config = OwnStackConfig { is_of_flow: true, ..OwnStackConfig::new(stack) };
        config.set_text("app", if sends { "send" } else { "sink" });
        config
    }

    /// The receiver that is like this sender of a flow: with its settings that apply to receivers.
    #[must_use]
    pub fn receiver(&self) -> OwnStackConfig {
        let mut receiver = self.clone();
        receiver.set_text("app", if self.text("app") == Some("request") { "serve" } else { "sink" });
        let idle: Vec<&str> = receiver.idle().map(|(key, _)| key).collect();
        let OwnStackConfig { stack, values, texts, .. } = &mut receiver;
        for (of, value) in stack.parameters.iter().zip(values).filter(|(of, _)| idle.contains(&of.name)) {
            *value = of.default;
        }
        for (of, text) in stack.texts.iter().zip(texts).filter(|(of, _)| idle.contains(&of.name)) {
            of.default.clone_into(text);
        }
        receiver
    }

    /// Sets a text, if the stack has it; returns what is expected in place of one that is not valid.
    pub fn set_text(&mut self, name: &str, text: &str) -> Option<String> {
        let found = self.stack.texts.iter().position(|of| of.name == name)?;
        text.clone_into(&mut self.texts[found]);
        (self.stack.texts[found].problem)(text)
    }

    /// Sets a number to a value in its range, if the stack has it.
    pub fn set_number(&mut self, name: &str, value: f64) {
        if let Some(found) = self.stack.parameters.iter().position(|of| of.name == name) {
            let of = &self.stack.parameters[found];
            self.values[found] = value.clamp(of.min, of.max);
        }
    }

    /// The value of a text, if the stack has it.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.stack.texts.iter().position(|of| of.name == name)?;
        Some(&self.texts[found])
    }

    /// Returns `true` if the stack has a number of this name.
    pub fn has_number(&self, name: &str) -> bool {
        self.stack.parameters.iter().any(|of| of.name == name)
    }

    /// The congestion controller of the host of a flow.
    pub fn cc_of_flow(&self) -> Option<&str> {
        self.text("cc").filter(|_| self.is_of_flow)
    }

    /// Its texts with their values, those that a scenario may set.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = (OwnText, &mut String)> {
        let is_of_flow = self.is_of_flow;
        let texts = self.stack.texts.iter().copied().zip(&mut self.texts);
        texts.filter(move |(of, _)| !is_of_flow || !OF_FLOWS.contains(&of.name))
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

    /// What this machine lacks for the stack ([`OwnStack::requires`]).
    pub fn lack(&self) -> Option<Lack> {
        self.stack.requires?(&self.texts)
    }

    /// The stack's name.
    pub fn name(&self) -> &'static str {
        self.stack.name
    }

    /// The reason why runs with it do not repeat, if they do not ([`OwnStack::unseeded`]).
    pub fn unseeded(&self) -> Option<&'static str> {
        self.stack.unseeded
    }

    /// Returns `true` if it is for the virtual clock alone ([`OwnStack::virtual_only`]).
    pub fn is_virtual_only(&self) -> bool {
        self.stack.is_virtual_only
    }

    /// Returns `true` if it keeps what it does for records ([`OwnStack::observable`]).
    pub fn is_observable(&self) -> bool {
        // A stack that receives has no loss recovery.
        self.stack.observable && !matches!(self.text("app"), Some("sink" | "serve"))
    }

    /// The stack of a host at time 0. Its texts are these.
    pub fn build(&self, host: StackHost, random: Random) -> Box<dyn Stack> {
        (self.stack.build)(&StackHost { texts: self.texts.clone(), ..host }, &self.values, random)
    }
}

impl Configurable for OwnStackConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let is_of_flow = self.is_of_flow;
        let parameters = self.stack.parameters.iter().zip(&mut self.values);
        for (of, value) in parameters.filter(|(of, _)| !is_of_flow || !OF_FLOWS.contains(&of.name)) {
            v.parameter(of.name, Domain::Number(of.min, of.max, ""), self.stack.name, value);
        }
    }
}
