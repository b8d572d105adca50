//! No parameter can be given a value that it has no place for.

use ackclock_cc::{CcSpec, HystartConfig, HystartPlusPlusConfig, HystartRules};
use ackclock_sim::spec::QueueSpec;
use ackclock_tcp::profile::Profile;
use ackclock_units::Span;
use ackclock_units::parameter::{Domain, Parameter, Value};

use super::*;
use crate::document::Node;
use crate::report::Place;

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
        Domain::FlagOr(domain) => [vec![Value::Flag(false), Value::Flag(true)], ends(domain)].concat(),
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
    for rules in [HystartRules::Linux26, HystartRules::Linux39, HystartRules::Linux61] {
        let mut config = HystartConfig { rules, ..HystartConfig::default() };
        check("hystart", &mut |check| config.parameters(check));
    }
    check("hystart++", &mut |check| HystartPlusPlusConfig::default().parameters(check));
    assert!(parameters > 1000, "{parameters}");
}
