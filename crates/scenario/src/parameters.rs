//! Parameters of algorithms, read as their configurations describe them ([`Configurable`]).

use ackclock_aqm::Limit;
use ackclock_units::parameter::{self, Choice, Configurable, Named, Setting, Visitor};
use ackclock_units::{Size, parse_size};

use crate::document::{self, Node};
use crate::extent::{self, Extent};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{
    Bytes, Flag, Kind, Number, OneOf, OrOff, Packets, PlainRate, PowerOfTwo, Problem, SizeOf, Time, Whole,
};
use crate::report::{Diagnostic, Place};
use crate::write;

/// Reads the parameters of `kind`; those that are left out stay as they are in `of`.
pub(crate) fn read(fields: &mut Fields<'_>, kind: &str, of: &mut impl Configurable) {
    read_with(fields, None, kind, of);
}

/// Reads a queue's parameters, whose sizes may be in other units.
pub(crate) fn read_with(fields: &mut Fields<'_>, extent: Option<&Extent>, kind: &str, of: &mut impl Configurable) {
    of.parameters(&mut Reader { fields, extent });
    if let Some(problem) = of.problem() {
        let title = format!("{}: the parameters of `{kind}` do not fit together", fields.shown());
        fields.push(Diagnostic::new(title, fields.place(), problem.to_owned()));
    }
}

/// Reads settings as they are visited.
pub(crate) fn reader<'f, 'a>(fields: &'f mut Fields<'a>) -> impl Visitor + use<'f, 'a> {
    Reader { fields, extent: None }
}

/// A shown value was in range when it was read.
const MAX: u64 = u64::MAX;

struct Reader<'f, 'a> {
    fields: &'f mut Fields<'a>,
    /// The reference of sizes in other units.
    extent: Option<&'f Extent>,
}

/// A domain, and whether what is expected is also a size in other units.
struct InOtherUnits(parameter::Domain, bool);

impl Kind for InOtherUnits {
    type Held = parameter::Value;

    fn read(&self, node: &Node) -> Result<parameter::Value, Problem> {
        self.0.read(node).map_err(|problem| match node.str().map(parse_size) {
            Some(Err(_)) if self.1 => expecting(problem, |size| format!("{size}; or {}", extent::OTHERS)),
            _ => problem,
        })
    }

    fn show(&self, held: &parameter::Value) -> document::Value {
        self.0.show(held)
    }

    fn domain(&self) -> Domain {
        self.0.domain()
    }
}

impl Reader<'_, '_> {
    fn kind(&self, of: &parameter::Parameter) -> InOtherUnits {
        InOtherUnits(of.domain, self.extent.is_some() && extent::applies(of))
    }

    /// The value of a parameter that is in another unit than that of its domain.
    fn converted(&mut self, of: &parameter::Parameter) -> Option<parameter::Value> {
        let extent = self.extent.filter(|_| extent::applies(of))?;
        let node = &self.fields.get(of.name)?.node;
        let to = match extent.of(self.fields, of, node)? {
            Ok(to) => to,
            Err(problem) => {
                self.fields.reject(of.name, node, problem);
                return None;
            }
        };
        match of.domain.read(&to) {
            Ok(value) => {
                self.fields.converted(of.name, node, &to);
                Some(value)
            }
            Err(problem) => {
                let title = format!("{}: it comes to {}", problem.title, write::inline(&to));
                self.fields.reject(of.name, node, Problem { title, ..problem });
                None
            }
        }
    }
}

impl Visitor for Reader<'_, '_> {
    fn visit<T: Setting>(&mut self, of: parameter::Parameter, at: &mut T) {
        let errors = self.fields.errors();
        let value = match (self.converted(&of), of.derived) {
            (Some(value), _) => Some(value),
            // An invalid value was reported.
            (None, _) if self.fields.errors() > errors => None,
            (None, Some(_)) => self.fields.maybe((of.name, of.meaning), self.kind(&of)),
            (None, None) => Some(self.fields.or((of.name, of.meaning), at.value(), self.kind(&of))),
        };
        if let Some(value) = value {
            *at = T::from_value(value).unwrap_or_else(|| unreachable!("`{}` cannot be {value:?}", of.name));
        }
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, _: &'static str, at: &mut Option<T>) {
        let extent = self.extent;
        *at = self.fields.switch(name, at.take(), T::default(), |fields, mut on: T| {
            on.parameters(&mut Reader { fields, extent });
            on
        });
    }

    fn table<T: Configurable>(&mut self, name: &'static str, meaning: &'static str, at: &mut T) {
        let mut few = Vec::new();
        parameter::each(at, &mut |of, value| {
            few.push(format!(
                "{} = {}",
                of.name,
                write::inline(&Node::new(of.domain.show(&value), Place::new(0, 0..0)))
            ));
            None
        });
        few.truncate(3);
        let mut section = self.fields.section((name, meaning), &format!("a table such as {{ {} }}", few.join(", ")));
        at.parameters(&mut Reader { fields: &mut section, extent: None });
        section.finish();
    }

    fn table_or<T: Configurable>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        alone: &'static str,
        at: &mut T,
    ) {
        if self.fields.peek(name).is_some_and(|node| node.table().is_none()) {
            at.parameters(&mut Alone { fields: self.fields, key: (name, meaning), alone });
        } else {
            let domain = |of: &mut T| {
                let mut domain = Domain::Table;
                parameter::each(of, &mut |of, _| {
                    if of.name == alone {
                        domain = Domain::Either(vec![of.domain.domain(), Domain::Table]);
                    }
                    None
                });
                domain
            };
            self.fields.declare((name, meaning), || domain(at));
            self.table(name, meaning, at);
        }
    }

    fn choice<T: Choice>(&mut self, name: &'static str, meaning: &'static str, at: &mut T) {
        let of = OneOf { what: T::WHAT, names: T::Kind::NAMES };
        *at = self.fields.choose((name, meaning), at.kind().name(), &of, |kind, fields| {
            let mut of = T::Kind::by_name(kind).map_or_else(|| at.clone(), |kind| at.of_kind(kind));
            of.parameters(&mut Reader { fields, extent: None });
            of
        });
    }
}

/// Reads one parameter of a table, whose value the table's key has.
struct Alone<'f, 'a> {
    fields: &'f mut Fields<'a>,
    key: (&'static str, &'static str),
    alone: &'static str,
}

impl Visitor for Alone<'_, '_> {
    fn visit<T: Setting>(&mut self, of: parameter::Parameter, at: &mut T) {
        if of.name == self.alone {
            let value = self.fields.or(self.key, at.value(), of.domain);
            *at = T::from_value(value).unwrap_or_else(|| unreachable!("`{}` cannot be {value:?}", of.name));
        }
    }

    fn feature<T: Configurable + Default>(&mut self, _: &'static str, _: &'static str, _: &mut Option<T>) {}
}

impl Kind for parameter::Domain {
    type Held = parameter::Value;

    fn read(&self, node: &Node) -> Result<parameter::Value, Problem> {
        use parameter::{Domain, Value};
        match *self {
            Domain::Flag => Flag.read(node).map(Value::Flag),
            Domain::FlagOr(other) => match node.value {
                document::Value::Boolean(on) => Ok(Value::Flag(on)),
                _ => other
                    .read(node)
                    .map_err(|problem| expecting(problem, |other| format!("`true`, `false` or {other}"))),
            },
            Domain::Time { positive } => time(positive).read(node).map(Value::Time),
            Domain::Rate => PlainRate.read(node).map(Value::Rate),
            Domain::Bytes(least, most) => Bytes(least, most).read(node).map(Value::Whole),
            Domain::Packets(least, most) => Packets(least, most).read(node).map(Value::Whole),
            Domain::Size(least, most) => SizeOf(least, most).read(node).map(|size| Value::Size(size_of(size))),
            Domain::Whole(least, most, _) => Whole(least, most).read(node).map(Value::Whole),
            Domain::PowerOfTwo(most) => PowerOfTwo(most).read(node).map(Value::Whole),
            Domain::Number(least, most, _) => Number(least, most).read(node).map(Value::Number),
            Domain::Name { what, names } => OneOf { what, names }.read(node).map(Value::Name),
            Domain::OrOff(domain) => OrOff(*domain).read(node).map(|value| value.unwrap_or(Value::Off)),
            Domain::OrName(name, domain) => or_name(name, domain, node),
            Domain::TimeOrPackets(least, most) => time_or_packets(least, most, node),
            Domain::FlagOrName { what, names } => flag_or_name(what, names, node),
            Domain::NameOrFraction { what, names } => name_or_fraction(what, names, node),
            Domain::PartOfLimit { packets, most } => part_of_limit(packets, most, node),
        }
    }

    fn show(&self, held: &parameter::Value) -> document::Value {
        use parameter::{Domain, Value};
        match (*self, *held) {
            (_, Value::Off) => false.into(),
            (_, Value::Flag(on)) => on.into(),
            (Domain::FlagOr(domain) | Domain::OrOff(domain) | Domain::OrName(_, domain), value) => domain.show(&value),
            (Domain::Bytes(..) | Domain::PartOfLimit { packets: false, .. }, Value::Whole(n)) => Bytes(0, MAX).show(&n),
            (Domain::Packets(..) | Domain::PartOfLimit { packets: true, .. }, Value::Whole(n)) => {
                Packets(0, MAX).show(&n)
            }
            (_, Value::Whole(n)) => n.into(),
            (_, Value::Number(number)) => number.into(),
            (_, Value::Time(span)) => span.into(),
            (_, Value::Rate(rate)) => rate.into(),
            (_, Value::Size(Size::Packets(packets))) => Packets(0, MAX).show(&packets),
            (_, Value::Size(Size::Bytes(bytes))) => Bytes(0, MAX).show(&bytes),
            (_, Value::Name(name)) => name.into(),
        }
    }

    fn domain(&self) -> Domain {
        use parameter::Domain as Of;
        match *self {
            Of::Flag => Domain::Flag,
            Of::FlagOr(domain) => Domain::Either(vec![Domain::Flag, domain.domain()]),
            Of::Time { positive } => Domain::Time { positive },
            Of::Rate => Domain::Rate,
            Of::Bytes(least, most) => Domain::Bytes(least, most),
            Of::Packets(least, most) => Domain::Packets(least, most),
            Of::Size(least, most) => SizeOf(least, most).domain(),
            Of::Whole(least, most, _) => Domain::Whole(least, most),
            Of::PowerOfTwo(most) => Domain::PowerOfTwo(most),
            Of::Number(least, most, _) => Domain::Number(least, most),
            Of::Name { names, .. } => Domain::Name(names.to_vec()),
            Of::OrOff(domain) => Domain::Either(vec![Domain::Off, domain.domain()]),
            Of::OrName(name, domain) => Domain::Either(vec![Domain::Name(vec![name]), domain.domain()]),
            Of::TimeOrPackets(least, most) => {
                Domain::Either(vec![Domain::Time { positive: false }, Domain::Packets(least, most)])
            }
            Of::FlagOrName { names, .. } => Domain::Either(vec![Domain::Flag, Domain::Name(names.to_vec())]),
            Of::NameOrFraction { names, .. } => {
                Domain::Either(vec![Domain::Name(names.to_vec()), Domain::Number(f64::MIN_POSITIVE, 1.0)])
            }
            Of::PartOfLimit { packets, most } => {
                let size = if packets { Domain::Packets(1, most) } else { Domain::Bytes(1, most) };
                Domain::Either(vec![Domain::Off, Domain::Name(vec!["half"]), size])
            }
        }
    }
}

fn time(positive: bool) -> Time {
    if positive { Time::Positive } else { Time::Any }
}

fn size_of(limit: Limit) -> Size {
    match limit {
        Limit::Packets(packets) => Size::Packets(packets),
        Limit::Bytes(bytes) => Size::Bytes(bytes),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

fn name_in(names: &[&'static str], node: &Node) -> Option<parameter::Value> {
    names.iter().find(|&&name| node.str() == Some(name)).map(|name| parameter::Value::Name(name))
}

/// The problem with a longer list of expected values than its kind knows.
fn expecting(problem: Problem, expected: impl FnOnce(&str) -> String) -> Problem {
    Problem { expected: expected(&problem.expected), ..problem }
}

fn or_name(name: &'static str, domain: &parameter::Domain, node: &Node) -> Result<parameter::Value, Problem> {
    match name_in(&[name], node) {
        Some(value) => Ok(value),
        None => domain.read(node).map_err(|problem| expecting(problem, |other| format!("\"{name}\", or {other}"))),
    }
}

fn time_or_packets(least: u64, most: u64, node: &Node) -> Result<parameter::Value, Problem> {
    if node.str().is_some_and(|text| text.trim_end().ends_with('p')) {
        return Packets(least, most).read(node).map(|packets| parameter::Value::Size(Size::Packets(packets)));
    }
    let read = Time::Any.read(node).map(parameter::Value::Time);
    read.map_err(|problem| expecting(problem, |time| format!("{time}, or packets, such as \"5p\"")))
}

fn flag_or_name(what: &str, names: &[&'static str], node: &Node) -> Result<parameter::Value, Problem> {
    match node.value {
        document::Value::Boolean(false) => Ok(parameter::Value::Off),
        document::Value::Boolean(true) => Ok(parameter::Value::Name(names[0])),
        _ => name_in(names, node)
            .ok_or_else(|| Problem::new(format!("not {what}"), format!("`true` or {}, or `false`", quoted(names)))),
    }
}

fn name_or_fraction(what: &str, names: &[&'static str], node: &Node) -> Result<parameter::Value, Problem> {
    match node.value {
        document::Value::Float(number) if number > 0.0 && number <= 1.0 => Ok(parameter::Value::Number(number)),
        _ => name_in(names, node).ok_or_else(|| {
            Problem::new(format!("not {what}"), format!("{}, or a number above 0 and up to 1", quoted(names)))
        }),
    }
}

fn part_of_limit(packets: bool, most: u64, node: &Node) -> Result<parameter::Value, Problem> {
    if let document::Value::Boolean(false) = node.value {
        return Ok(parameter::Value::Off);
    }
    if let Some(half) = name_in(&["half"], node) {
        return Ok(half);
    }
    let read = SizeOf(1, most).read(node);
    match (
        read.map_err(|problem| expecting(problem, |size| format!("\"half\" (of the limit), `false`, or {size}")))?,
        packets,
    ) {
        (Limit::Packets(at), true) | (Limit::Bytes(at), false) => Ok(parameter::Value::Whole(at)),
        _ => Err(Problem::new("not in the unit of `limit`", "packets if `limit` counts packets, else bytes")),
    }
}

#[cfg(test)]
mod tests;
