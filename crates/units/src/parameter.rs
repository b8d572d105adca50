//! Parameters of algorithms, described where the algorithm is: name, range with its unit, source. A
//! configuration lists its parameters by handing each to a [`Visitor`]; what reads scenarios,
//! prints defaults and writes tables is one.
//!
//! [`configuration!`](crate::configuration) declares one: a field, its meaning, its default, and, if
//! it is a parameter, range and source stand in one place.
//!
//! ```
//! use ackclock_units::parameter::{Domain, Value, each};
//! use ackclock_units::{Span, configuration};
//!
//! configuration! {
//! /// Parameters of an example.
//! pub struct ExampleConfig {
//!     /// The most packets that wait.
//!     pub limit: u64 = 100 => (Domain::Packets(1, 1000), "tc-example(8)");
//!     /// The queueing delay to settle at.
//!     pub target: Span = Span::from_millis(15) => (Domain::Time { positive: true }, "RFC 8033 s4.2");
//! }
//! }
//!
//! let mut config = ExampleConfig::default();
//! each(&mut config, &mut |of, _| (of.name == "limit").then_some(Value::Whole(20)));
//! assert_eq!(config.limit, 20);
//! ```

use crate::{Rate, Size, Span};

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// None: the parameter is off.
    Off,
    /// On or off.
    Flag(bool),
    /// A whole number, in the unit of its domain.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A length of time.
    Time(Span),
    /// A rate.
    Rate(Rate),
    /// Packets or bytes, where either may be given.
    Size(Size),
    /// A name.
    Name(&'static str),
}

/// The values that a parameter may take, with their unit. Ranges include both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// On or off.
    Flag,
    /// On or off, or one of these.
    FlagOr(&'static Domain),
    /// A length of time.
    Time {
        /// More than zero.
        positive: bool,
    },
    /// A rate.
    Rate,
    /// Bytes.
    Bytes(u64, u64),
    /// Packets or segments.
    Packets(u64, u64),
    /// Packets or bytes.
    Size(u64, u64),
    /// A whole number in this unit.
    Whole(u64, u64, &'static str),
    /// A power of two up to this.
    PowerOfTwo(u64),
    /// A number in this unit.
    Number(f64, f64, &'static str),
    /// One of these names.
    Name {
        /// The noun for the named thing.
        what: &'static str,
        /// The names.
        names: &'static [&'static str],
    },
    /// Off, or one of these.
    OrOff(&'static Domain),
    /// This name, or one of these.
    OrName(&'static str, &'static Domain),
    /// A length of time, which may be zero, or packets.
    TimeOrPackets(u64, u64),
    /// Off, one of these names, or on: the first of them.
    FlagOrName {
        /// The noun for the named things, with its article.
        what: &'static str,
        /// The names.
        names: &'static [&'static str],
    },
    /// One of these names, or a number above 0 and up to 1.
    NameOrFraction {
        /// The noun for the value, with its article.
        what: &'static str,
        /// The names.
        names: &'static [&'static str],
    },
    /// Off, `half` of the limit, or a size from 1 up to `most` in the limit's unit.
    PartOfLimit {
        /// The limit counts packets, not bytes.
        packets: bool,
        /// The largest size.
        most: u64,
    },
}

impl Domain {
    /// The names of an enum's variants; `what` they name.
    pub const fn named<T: Named>(what: &'static str) -> Domain {
        Domain::Name { what, names: T::NAMES }
    }
}

/// A parameter: everything about it but its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name in scenarios.
    pub name: &'static str,
    /// The values that it may take.
    pub domain: Domain,
    /// Source of name, default and range.
    pub source: &'static str,
    /// Description of the value that the parameter is derived from unless it is given; `None` if it
    /// has a default of its own.
    pub derived: Option<&'static str>,
    /// What it means, in a line; empty where name and source say it.
    pub meaning: &'static str,
}

/// A type that a parameter may have.
pub trait Setting: Sized {
    /// The parameter's value.
    fn value(&self) -> Value;
    /// The setting for a value; `None` if the type has no such value.
    fn from_value(value: Value) -> Option<Self>;
}

/// A configuration that lists its parameters.
pub trait Configurable {
    /// Hands every parameter to `v`, in the order in which they are shown. Ranges and defaults may
    /// depend on the parameters before.
    fn parameters(&mut self, v: &mut impl Visitor);

    /// A fault in the combination of parameters that are valid one by one.
    fn problem(&self) -> Option<&'static str> {
        None
    }
}

/// A configuration of one of several kinds, each with parameters of its own.
pub trait Choice: Configurable + Clone {
    /// Its kinds.
    type Kind: Named;
    /// What the kinds are called together.
    const WHAT: &'static str;
    /// Its kind.
    fn kind(&self) -> Self::Kind;
    /// Of this kind, with its own parameters where it is that already.
    fn of_kind(&self, kind: Self::Kind) -> Self;
}

/// Looks at parameters, and may change them.
pub trait Visitor {
    /// Visits a parameter with its present value, which is the default if it was not changed.
    fn visit<T: Setting>(&mut self, parameter: Parameter, at: &mut T);

    /// Visits a feature with parameters of its own, which is off if there is `None`.
    fn feature<T: Configurable + Default>(&mut self, name: &'static str, source: &'static str, at: &mut Option<T>);

    /// Visits a table of parameters.
    fn table<T: Configurable>(&mut self, _name: &'static str, _meaning: &'static str, at: &mut T)
    where
        Self: Sized,
    {
        at.parameters(self);
    }

    /// Visits a table of parameters that its parameter `alone` may stand for.
    fn table_or<T: Configurable>(&mut self, name: &'static str, meaning: &'static str, _alone: &'static str, at: &mut T)
    where
        Self: Sized,
    {
        self.table(name, meaning, at);
    }

    /// Visits a choice of kinds: a name, or a table with `kind` and its parameters.
    fn choice<T: Choice>(&mut self, _name: &'static str, _meaning: &'static str, at: &mut T)
    where
        Self: Sized,
    {
        at.parameters(self);
    }

    /// Visits a parameter with a default and a meaning.
    fn setting<T: Setting>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        domain: Domain,
        source: &'static str,
        at: &mut T,
    ) {
        self.visit(Parameter { name, domain, source, derived: None, meaning }, at);
    }

    /// Visits a parameter with a default.
    fn parameter<T: Setting>(&mut self, name: &'static str, domain: Domain, source: &'static str, at: &mut T) {
        self.visit(Parameter { name, domain, source, derived: None, meaning: "" }, at);
    }

    /// Visits a parameter that, unless it is given, follows from others as `rule` says.
    fn derived<T: Setting>(
        &mut self,
        name: &'static str,
        domain: Domain,
        source: &'static str,
        rule: &'static str,
        at: &mut Option<T>,
    ) {
        self.visit(Parameter { name, domain, source, derived: Some(rule), meaning: "" }, at);
    }
}

/// Calls `f` for every parameter with its value, also for those of features that are on, and sets
/// the value that it returns. One that the parameter's type does not have is ignored.
pub fn each(of: &mut impl Configurable, f: &mut dyn FnMut(&Parameter, Value) -> Option<Value>) {
    struct EachParameter<'a>(&'a mut dyn FnMut(&Parameter, Value) -> Option<Value>);

    impl Visitor for EachParameter<'_> {
        fn visit<T: Setting>(&mut self, parameter: Parameter, at: &mut T) {
            if let Some(value) = (self.0)(&parameter, at.value()).and_then(T::from_value) {
                *at = value;
            }
        }

        fn feature<T: Configurable + Default>(&mut self, _: &'static str, _: &'static str, at: &mut Option<T>) {
            if let Some(on) = at {
                on.parameters(self);
            }
        }
    }

    of.parameters(&mut EachParameter(f));
}

/// Implements [`Setting`] for types that are one kind of [`Value`].
macro_rules! settings {
    ($($type:ty: $variant:ident)*) => {
        $(impl Setting for $type {
            fn value(&self) -> Value {
                Value::$variant((*self).into())
            }

            fn from_value(value: Value) -> Option<$type> {
                match value {
                    Value::$variant(held) => held.try_into().ok(),
                    _ => None,
                }
            }
        })*
    };
}

settings! { bool: Flag u8: Whole u16: Whole u32: Whole u64: Whole f64: Number Span: Time Rate: Rate Size: Size }

impl<T: Setting> Setting for Option<T> {
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Off, Setting::value)
    }

    fn from_value(value: Value) -> Option<Option<T>> {
        if value == Value::Off { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// An enum whose variants have names, by [`named!`](crate::named).
pub trait Named: Setting {
    /// The names in scenarios.
    const NAMES: &'static [&'static str];

    /// The variant called `name`.
    fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|known| **known == name).and_then(|name| Self::from_value(Value::Name(name)))
    }

    /// Its name; empty for one that is [`Value::Off`].
    fn name(&self) -> &'static str {
        if let Value::Name(name) = self.value() { name } else { "" }
    }
}

/// Gives the variants of an enum the names that parameters know them by: [`Setting`] and [`Named`].
/// A variant without a name does not compile. `named! { Type or Variant: ... }` has one variant
/// that is [`Value::Off`].
#[macro_export]
macro_rules! named {
    ($type:ident $(or $off:ident)?: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $crate::parameter::Named for $type {
            const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl $crate::parameter::Setting for $type {
            fn value(&self) -> $crate::parameter::Value {
                match self {
                    $($type::$off => $crate::parameter::Value::Off,)?
                    $($type::$variant => $crate::parameter::Value::Name($name)),+
                }
            }

            fn from_value(value: $crate::parameter::Value) -> Option<$type> {
                match value {
                    $($crate::parameter::Value::Off => Some($type::$off),)?
                    $($crate::parameter::Value::Name($name) => Some($type::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

/// Declares a configuration with its defaults and parameters: the struct, [`Default`] and
/// [`Configurable`]. The parameters have the names of their fields, and are visited in their order.
///
/// | a field | |
/// |---|---|
/// | `at: T = default;` | no parameter |
/// | `at: T = default => (domain, source);` | a parameter with this default |
/// | `at: T = default => ("meaning": domain, source);` | the same, with its meaning in a line |
/// | `at: Option<T> = None => (domain, source, derived rule);` | follows from others unless it is given |
/// | `at: Option<T> = None => (feature source);` | parameters of their own, while it is on |
/// | `at: T = default => (..);` | the parameters of `at` |
/// | `at: T = default => (with \|v\| visit);` | visited by this expression |
///
/// The struct may have one type parameter with a bound. After `self:` at the beginning, the expressions may read the configuration. `problem` at the end
/// has the type's own `problem` judge the parameters together.
#[macro_export]
macro_rules! configuration {
    ($self:ident:
        $(#[$about:meta])*
        $visible:vis struct $name:ident $(<$of:ident: $bound:path>)? {
            $($(#[$doc:meta])* $shown:vis $field:ident: $type:ty = $default:expr $(=> $row:tt)?;)*
        }
        $($problem:ident)?
    ) => {
        $(#[$about])*
        $visible struct $name $(<$of>)? {
            $($(#[$doc])* $shown $field: $type,)*
        }

        impl $(<$of: $bound>)? Default for $name $(<$of>)? {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $(<$of: $bound>)? $crate::parameter::Configurable for $name $(<$of>)? {
            fn parameters(&mut $self, v: &mut impl $crate::parameter::Visitor) {
                $($($crate::configuration!(@row $self v $field $row);)?)*
            }

            $(fn $problem(&$self) -> Option<&'static str> {
                // The type's own comes before the trait's.
                Self::$problem($self)
            })?
        }
    };
    (@row $self:ident $v:ident $field:ident (..)) => {
        $crate::parameter::Configurable::parameters(&mut $self.$field, $v)
    };
    (@row $self:ident $v:ident $field:ident (feature $source:expr)) => {
        $v.feature(stringify!($field), $source, &mut $self.$field)
    };
    (@row $self:ident $v:ident $field:ident (with |$visitor:ident| $visit:expr)) => {{
        let $visitor = &mut *$v;
        $visit
    }};
    (@row $self:ident $v:ident $field:ident ($meaning:literal: $domain:expr, $source:expr)) => {
        $v.setting(stringify!($field), $meaning, $domain, $source, &mut $self.$field)
    };
    (@row $self:ident $v:ident $field:ident ($domain:expr, $source:expr)) => {
        $v.parameter(stringify!($field), $domain, $source, &mut $self.$field)
    };
    (@row $self:ident $v:ident $field:ident ($domain:expr, $source:expr, derived $rule:expr)) => {
        $v.derived(stringify!($field), $domain, $source, $rule, &mut $self.$field)
    };
    ($($declaration:tt)*) => {
        $crate::configuration!(self: $($declaration)*);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Law {
        Old,
        New,
    }

    named! { Law: Old = "old", New = "new" }

    #[derive(Debug, Default, PartialEq)]
    struct TestRamp {
        steps: u32,
    }

    impl Configurable for TestRamp {
        fn parameters(&mut self, v: &mut impl Visitor) {
            v.parameter("steps", Domain::Whole(0, 9, ""), "none", &mut self.steps);
        }
    }

    #[derive(Debug, PartialEq)]
    struct TestConfig {
        law: Law,
        seed: Option<u64>,
        ramp: Option<TestRamp>,
    }

    impl Configurable for TestConfig {
        fn parameters(&mut self, v: &mut impl Visitor) {
            v.parameter("law", Domain::named::<Law>("law"), "none", &mut self.law);
            v.derived("seed", Domain::Whole(0, 9, ""), "none", "the run's seed", &mut self.seed);
            v.feature("ramp", "none", &mut self.ramp);
        }
    }

    #[test]
    fn values_are_listed_in_order_and_set_by_name() {
        let mut config = TestConfig { law: Law::Old, seed: None, ramp: Some(TestRamp { steps: 3 }) };
        let mut seen = Vec::new();
        each(&mut config, &mut |of, value| {
            seen.push((of.name, value));
            match of.name {
                "law" => Some(Value::Name("new")),
                "seed" => Some(Value::Whole(7)),
                _ => None,
            }
        });
        assert_eq!(seen, [("law", Value::Name("old")), ("seed", Value::Off), ("steps", Value::Whole(3))]);
        assert_eq!(config, TestConfig { law: Law::New, seed: Some(7), ramp: Some(TestRamp { steps: 3 }) });
    }

    #[test]
    fn a_type_takes_no_value_of_another() {
        assert_eq!(u32::from_value(Value::Whole(1 << 32)), None);
        assert_eq!(u64::from_value(Value::Number(1.0)), None);
        assert_eq!(Law::from_value(Value::Name("older")), None);
        assert_eq!(Option::<Law>::from_value(Value::Off), Some(None));
        assert_eq!(Option::<Law>::from_value(Value::Flag(true)), None);
    }
}
