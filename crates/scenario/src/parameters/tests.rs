//! `docs/parameters.md` is what the algorithms say of their parameters, and no parameter can be
//! given a value that it has no place for.

use std::fmt::Write;

use ackclock_cc::{CcSpec, HystartConfig, HystartPlusPlusConfig, HystartRules};
use ackclock_sim::spec::QueueSpec;
use ackclock_tcp::profile::Profile;
use ackclock_units::Span;
use ackclock_units::parameter::{Domain, Parameter, Value};

use super::*;
use crate::document::Node;
use crate::report::Place;
use crate::write::inline;

/// A value as scenarios have it.
fn shown(domain: &Domain, value: &Value) -> String {
    format!("`{}`", inline(&Node::new(domain.show(value), Place::new(0, 0..0))))
}

fn unit(domain: &Domain) -> &'static str {
    match *domain {
        Domain::Flag | Domain::Name { .. } | Domain::FlagOrName { .. } | Domain::NameOrFraction { .. } => "",
        Domain::Time { .. } => "time",
        Domain::Rate => "rate",
        Domain::Bytes(..) => "bytes",
        Domain::Packets(..) => "packets",
        Domain::Size(..) => "packets or bytes",
        Domain::Whole(.., unit) | Domain::Number(.., unit) => unit,
        Domain::PowerOfTwo(_) => "",
        Domain::OrOff(domain) | Domain::OrName(_, domain) => unit(domain),
        Domain::TimeOrPackets(..) => "time or packets",
        Domain::PartOfLimit { .. } => "that of `limit`",
    }
}

fn range(domain: &Domain) -> String {
    let of = |least: Value, most: Value| format!("{} to {}", shown(domain, &least), shown(domain, &most));
    let all = |names: &[&'static str]| {
        names.iter().map(|name| shown(domain, &Value::Name(name))).collect::<Vec<_>>().join(", ")
    };
    match *domain {
        Domain::Flag => "`true`, `false`".to_owned(),
        Domain::Time { positive } => if positive { "above 0" } else { "0 or more" }.to_owned(),
        Domain::Rate => "above 0".to_owned(),
        Domain::Bytes(least, most) | Domain::Packets(least, most) | Domain::Whole(least, most, _) => {
            of(Value::Whole(least), Value::Whole(most))
        }
        Domain::Size(least, most) => {
            let [packets, bytes] = [Domain::Packets(least, most), Domain::Bytes(least, most)];
            format!("{}, or {}", range(&packets), range(&bytes))
        }
        Domain::PowerOfTwo(most) => format!("powers of two up to `{most}`"),
        Domain::Number(least, most, _) => of(Value::Number(least), Value::Number(most)),
        Domain::Name { names, .. } => all(names),
        Domain::OrOff(domain) => format!("`false`, or {}", range(domain)),
        Domain::OrName(name, domain) => format!("`\"{name}\"`, or {}", range(domain)),
        Domain::TimeOrPackets(least, most) => format!("0 or more, or {}", range(&Domain::Packets(least, most))),
        Domain::FlagOrName { names, .. } => format!("`false`, `true` (the first), {}", all(names)),
        Domain::NameOrFraction { names, .. } => format!("{}, or a number above 0 and up to 1", all(names)),
        Domain::PartOfLimit { .. } => "`false`, `\"half\"`, or a size up to that of any limit".to_owned(),
    }
}

/// The rows of a table, one for each parameter.
#[derive(Default)]
struct Rows {
    rows: Vec<String>,
    /// The feature whose parameters are listed.
    feature: String,
}

impl Rows {
    fn of(of: &mut impl Configurable) -> Vec<String> {
        let mut rows = Rows::default();
        of.parameters(&mut rows);
        rows.rows
    }

    fn push(&mut self, name: &str, unit: &str, default: &str, range: &str, source: &str) {
        self.rows.push(format!("| `{}{name}` | {unit} | {default} | {range} | {source} |", self.feature));
    }
}

impl Visitor for Rows {
    fn visit<T: Setting>(&mut self, of: Parameter, at: &mut T) {
        let default = of.derived.map_or_else(|| shown(&of.domain, &at.value()), str::to_owned);
        self.push(of.name, unit(&of.domain), &default, &range(&of.domain), of.source);
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, source: &'static str, at: &mut Option<T>) {
        self.push(name, "", if at.is_some() { "`true`" } else { "`false`" }, "`false`, `true`, or a table of:", source);
        let before = std::mem::replace(&mut self.feature, format!("{name}."));
        at.take().unwrap_or_default().parameters(self);
        self.feature = before;
    }
}

const HEAD: &str = "\
# Parameters

The parameters of queue disciplines and congestion controllers, by the keys that a scenario sets next to `kind`. This file is
generated from the descriptions in `aqm/src` and `cc/src`, where each parameter is documented:
`ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-scenario parameters` writes it.

Ranges are inclusive; one that depends on another parameter, as that of `queue_min` on `queue_threshold`, is given for its
default. Where there is no fixed default, the rule that determines it is given. Times and rates are written with their unit,
`\"20ms\"` and `\"10mbit\"`, packets and bytes as `\"180p\"` and `\"50kB\"`. In sources `s` is short for section, and FreeBSD's `cc.hd`
for the sysctls below `net.inet.tcp.cc.hd`. Limits and thresholds of queues may also be in the other unit, a time or
bandwidth-delay products (README, \"A scenario\").
";

const CONTROLLERS: &str = "
## Congestion controllers

Defaults are those of the host `rfc`. On other hosts NewReno, and what the others share with it, CUBIC, DCTCP and CDG are as their
stacks have them; `--show-config` prints what a host has.
";

const HYSTART: &str = "
## Slow start

The key `hystart` of a host, next to `cc`.
";

fn table(out: &mut String, title: &str, rows: &[String]) {
    let _ = write!(out, "\n### {title}\n\n");
    let _ = writeln!(out, "| Parameter | Unit | Default | Range | Source |\n|---|---|---|---|---|");
    for row in rows {
        let _ = writeln!(out, "{row}");
    }
}

fn document() -> String {
    let mut out = format!("{HEAD}\n## Queue disciplines\n");
    for mut spec in QueueSpec::all() {
        table(&mut out, &format!("`{}`", spec.name()), &Rows::of(&mut spec));
    }
    out.push_str(CONTROLLERS);
    let host = Profile::rfc().stack();
    let shared = Rows::of(&mut host.newreno.clone());
    for mut spec in CcSpec::NAMES.iter().flat_map(|name| CcSpec::variants(name, &host)) {
        let stack = spec.variant().map_or(String::new(), |stack| format!(", `variant = \"{stack}\"`"));
        let mut rows = Rows::of(&mut spec);
        let has_newreno = rows.len() > shared.len() && rows.ends_with(&shared);
        rows.truncate(rows.len() - if has_newreno { shared.len() } else { 0 });
        table(&mut out, &format!("`{}`{stack}", spec.name()), &rows);
        if has_newreno {
            out.push_str("\nAnd the parameters of `newreno`.\n");
        }
    }
    out.push_str(HYSTART);
    table(&mut out, "`rules = \"linux-3.9\"` and `\"linux-6.1\"`", &Rows::of(&mut HystartConfig::default()));
    table(&mut out, "`rules = \"rfc9406\"`", &Rows::of(&mut HystartPlusPlusConfig::default()));
    out
}

#[test]
fn the_documented_parameters_are_those_of_the_algorithms() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/parameters.md");
    let document = document();
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        std::fs::write(path, &document).expect("the file can be written");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let differs = document.lines().zip(found.lines().chain(std::iter::repeat(""))).find(|(line, found)| line != found);
    assert!(
        document == found,
        "docs/parameters.md is out of date: {differs:?}\nACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-scenario parameters writes it"
    );
}

/// Values at the ends of a domain.
fn ends(domain: &Domain) -> Vec<Value> {
    let named = |names: &[&'static str]| names.iter().map(|name| Value::Name(name)).collect::<Vec<_>>();
    match *domain {
        Domain::Flag => vec![Value::Flag(false), Value::Flag(true)],
        Domain::Time { positive } => {
            vec![Value::Time(Span::from_nanos(positive.into())), Value::Time(Span::from_secs(1))]
        }
        Domain::Rate => vec![Value::Rate(ackclock_units::parse_rate("1bit").expect("a rate"))],
        Domain::Bytes(least, most) | Domain::Packets(least, most) | Domain::Whole(least, most, _) => {
            vec![Value::Whole(least), Value::Whole(most)]
        }
        Domain::Size(least, most) => vec![Value::Size(Size::Packets(least)), Value::Size(Size::Bytes(most))],
        Domain::PowerOfTwo(most) => vec![Value::Whole(1), Value::Whole(most)],
        Domain::Number(least, most, _) => vec![Value::Number(least), Value::Number(most)],
        Domain::Name { names, .. } => named(names),
        Domain::OrOff(domain) => [vec![Value::Off], ends(domain)].concat(),
        Domain::OrName(name, domain) => [named(&[name]), ends(domain)].concat(),
        Domain::TimeOrPackets(least, most) => [least, most]
            .map(|packets| Value::Size(Size::Packets(packets)))
            .into_iter()
            .chain([Value::Time(Span::ZERO)])
            .collect(),
        Domain::FlagOrName { names, .. } => [vec![Value::Off], named(names)].concat(),
        Domain::NameOrFraction { names, .. } => [named(names), vec![Value::Number(1.0)]].concat(),
        Domain::PartOfLimit { most, .. } => vec![Value::Off, Value::Name("half"), Value::Whole(1), Value::Whole(most)],
    }
}

/// Holds every value at the end of a domain, and the default, against the parameter's type.
struct Check(&'static str, usize);

impl Visitor for Check {
    fn visit<T: Setting>(&mut self, of: Parameter, at: &mut T) {
        let default = of.derived.is_none().then(|| at.value());
        for value in ends(&of.domain).into_iter().chain(default) {
            let node = Node::new(of.domain.show(&value), Place::new(0, 0..0));
            let read = of.domain.read(&node).unwrap_or_else(|problem| panic!("{}.{}: {problem:?}", self.0, of.name));
            assert_eq!(read, value, "{}.{}", self.0, of.name);
            let held = T::from_value(read).unwrap_or_else(|| panic!("{}.{} cannot be {value:?}", self.0, of.name));
            assert_eq!(held.value(), value, "{}.{}", self.0, of.name);
        }
        assert!(!of.source.is_empty(), "{}.{}", self.0, of.name);
        self.1 += 1;
    }

    fn feature<T: Configurable + Default>(&mut self, _: &'static str, _: &'static str, _: &mut Option<T>) {
        T::default().parameters(self);
    }
}

#[test]
fn every_value_that_is_read_has_a_place() {
    let mut parameters = 0;
    let mut check = |name, of: &mut dyn FnMut(&mut Check)| {
        let mut check = Check(name, 0);
        of(&mut check);
        parameters += check.1;
    };
    for mut spec in QueueSpec::all() {
        check(spec.name(), &mut |check| spec.parameters(check));
    }
    for host in Profile::all() {
        for mut spec in CcSpec::NAMES.iter().flat_map(|name| CcSpec::variants(name, &host.stack())) {
            check(spec.name(), &mut |check| spec.parameters(check));
        }
    }
    for rules in [HystartRules::Linux39, HystartRules::Linux61] {
        let mut config = HystartConfig { rules, ..HystartConfig::default() };
        check("hystart", &mut |check| config.parameters(check));
    }
    check("hystart++", &mut |check| HystartPlusPlusConfig::default().parameters(check));
    assert!(parameters > 1000, "{parameters}");
}
