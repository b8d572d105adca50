//! Settings of a host as its configuration describes them ([`Configurable`]): by the keys of a
//! scenario, such as `delayed_ack.quick`.

use ackclock_tcp::Config;
use ackclock_units::parameter::{Choice, Configurable, Domain, Named, Parameter, Setting, Value, Visitor};

use super::setters::{bytes_within, number, positive_span, span, switch};

/// Every key with what it takes, those of every kind included.
pub(super) fn keys() -> Vec<(String, String)> {
    let mut listing = SettingsListing::default();
    Config::default().parameters(&mut listing);
    listing.keys
}

/// Sets a key; `None` if the host as it is has no such key, otherwise what is wrong with the value.
pub(super) fn set(config: &mut Config, key: &str, value: &str) -> Option<Result<(), String>> {
    let mut setter = Setter { key, value, result: None };
    config.parameters(&mut setter);
    setter.result
}

#[derive(Default)]
struct SettingsListing {
    prefix: String,
    keys: Vec<(String, String)>,
}

impl SettingsListing {
    fn push(&mut self, name: &str, takes: String) {
        let key = format!("{}{name}", self.prefix);
        // Several kinds may have a key.
        if self.keys.iter().all(|(known, _)| *known != key) {
            self.keys.push((key, takes));
        }
    }

    fn below(&mut self, name: &str, list: impl FnOnce(&mut SettingsListing)) {
        let prefix = format!("{}{name}.", self.prefix);
        let before = std::mem::replace(&mut self.prefix, prefix);
        list(self);
        self.prefix = before;
    }
}

impl Visitor for SettingsListing {
    fn visit<T: Setting>(&mut self, of: Parameter, _: &mut T) {
        self.push(of.name, takes(&of.domain));
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, _: &'static str, _: &mut Option<T>) {
        self.table(name, "", &mut T::default());
    }

    fn table<T: Configurable>(&mut self, name: &'static str, _: &'static str, at: &mut T) {
        self.below(name, |listing| at.parameters(listing));
    }

    fn table_or<T: Configurable>(&mut self, name: &'static str, _: &'static str, alone: &'static str, at: &mut T) {
        let mut inner = SettingsListing::default();
        at.parameters(&mut inner);
        let of = inner.keys.into_iter().find(|(key, _)| key == alone);
        self.push(name, of.map(|(_, takes)| takes).unwrap_or_default());
        self.table(name, "", at);
    }

    fn choice<T: Choice>(&mut self, name: &'static str, _: &'static str, at: &mut T) {
        self.push(name, one_of(T::Kind::NAMES));
        for kind in T::Kind::NAMES.iter().filter_map(|name| T::Kind::by_name(name)) {
            self.table(name, "", &mut at.of_kind(kind));
        }
    }
}

struct Setter<'a> {
    /// The rest of the key, below the tables that were entered.
    key: &'a str,
    value: &'a str,
    result: Option<Result<(), String>>,
}

impl<'a> Setter<'a> {
    fn below(&mut self, name: &str, set: impl FnOnce(&mut Setter<'a>)) {
        if let Some(rest) = self.key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
            let before = std::mem::replace(&mut self.key, rest);
            set(self);
            self.key = before;
        }
    }
}

impl Visitor for Setter<'_> {
    fn visit<T: Setting>(&mut self, of: Parameter, at: &mut T) {
        if self.key == of.name {
            self.result = Some(read(&of.domain, self.value).map(|value| {
                *at = T::from_value(value).unwrap_or_else(|| unreachable!("`{}` cannot be {value:?}", of.name));
            }));
        }
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, _: &'static str, at: &mut Option<T>) {
        if let Some(on) = at {
            self.table(name, "", on);
        }
    }

    fn table<T: Configurable>(&mut self, name: &'static str, _: &'static str, at: &mut T) {
        self.below(name, |setter| at.parameters(setter));
    }

    fn table_or<T: Configurable>(&mut self, name: &'static str, _: &'static str, alone: &'static str, at: &mut T) {
        if self.key == name {
            self.key = alone;
            at.parameters(self);
            self.key = name;
        } else {
            self.table(name, "", at);
        }
    }

    fn choice<T: Choice>(&mut self, name: &'static str, _: &'static str, at: &mut T) {
        if self.key == name {
            let kind = T::Kind::by_name(self.value).ok_or_else(|| format!("`{}` is not one of them", self.value));
            self.result = Some(kind.map(|kind| *at = at.of_kind(kind)));
        } else {
            self.table(name, "", at);
        }
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// The values of a domain, in words.
fn takes(domain: &Domain) -> String {
    match domain {
        Domain::Flag => "on or off".to_owned(),
        Domain::Time { .. } => "a time".to_owned(),
        Domain::Bytes(..) => "bytes".to_owned(),
        Domain::Packets(..) => "a number of segments".to_owned(),
        Domain::Name { names, .. } => one_of(names),
        Domain::OrOff(domain) => format!("off, {}", takes(domain)),
        Domain::OrName(name, domain) => format!("{name}, or {}", takes(domain)),
        Domain::FlagOr(domain) => format!("on, off, {}", takes(domain)),
        _ => "a number".to_owned(),
    }
}

/// A value as scripts write it: switches also as on and off, sizes also without a unit.
fn read(domain: &Domain, value: &str) -> Result<Value, String> {
    match *domain {
        Domain::Flag => switch(value).map(Value::Flag),
        Domain::FlagOr(other) => switch(value).map(Value::Flag).or_else(|_| read(other, value)),
        Domain::Time { positive: true } => positive_span(value).map(Value::Time),
        Domain::Time { positive: false } => span(value).map(Value::Time),
        Domain::Bytes(least, most) => bytes_within(value, least..=most).map(Value::Whole),
        Domain::Packets(least, most) => number(value.trim_end_matches('p'), least..=most).map(Value::Whole),
        Domain::Whole(least, most, _) => number(value, least..=most).map(Value::Whole),
        Domain::Number(least, most, _) => match value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Value::Number(number)),
            _ => Err(format!("`{value}` is no number from {least} to {most}")),
        },
        Domain::Name { names, .. } => {
            let found = names.iter().find(|&&name| name == value);
            found.map(|name| Value::Name(name)).ok_or_else(|| format!("`{value}` is not one of them"))
        }
        Domain::OrOff(_) if switch(value) == Ok(false) => Ok(Value::Off),
        Domain::OrOff(domain) => read(domain, value),
        Domain::OrName(name, _) if name == value => Ok(Value::Name(name)),
        Domain::OrName(_, domain) => read(domain, value),
        // These are domains of queue disciplines and congestion controllers alone.
        Domain::Rate
        | Domain::Size(..)
        | Domain::PowerOfTwo(_)
        | Domain::TimeOrPackets(..)
        | Domain::FlagOrName { .. }
        | Domain::NameOrFraction { .. }
        | Domain::PartOfLimit { .. } => Err(format!("`{value}` is no setting of a host")),
    }
}
