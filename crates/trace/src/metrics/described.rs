//! The rows of metrics, and the macro that declares them with the structs of a summary.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

/// A metric, or something that has metrics.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow {
    /// Key in JSON.
    pub key: &'static str,
    /// Kind of the value.
    pub kind: MetricKind,
    /// Meaning, one or more sentences.
    pub meaning: &'static str,
    /// The keys of its value stand in its place.
    pub is_flat: bool,
    /// The heading of columns; empty where the key says it.
    pub(super) heading: &'static str,
    /// The title in figures; empty likewise.
    pub(super) title: &'static str,
    /// Digits after the point, in tables and in comparisons, where they are not those of the unit.
    pub(super) digits: Option<[usize; 2]>,
}

/// A struct of the summary.
#[derive(Debug)]
pub struct SummaryPart {
    /// Name in Rust.
    pub name: &'static str,
    /// Meaning.
    pub meaning: &'static str,
    /// Fields, in the order of JSON.
    pub metrics: &'static [MetricRow],
}

/// The value of a metric.
#[derive(Clone, Copy, Debug)]
pub enum MetricKind {
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Text.
    Text,
    /// Any object.
    Object,
    /// A list of these.
    List(&'static MetricKind),
    /// These by name.
    Named(&'static MetricKind),
    /// A struct.
    Part(&'static SummaryPart),
}

/// A type of which a summary may have values.
pub trait Described {
    /// Kind of the values.
    const KIND: MetricKind;
}

macro_rules! described {
    ($($kind:ident: $($of:ty),*;)*) => { $($(impl Described for $of { const KIND: MetricKind = MetricKind::$kind; })*)* };
}

described! {
    Number: f64, u32, u64, i32, i64;
    Flag: bool;
    Text: &'static str, String, Arc<str>;
    Object: (), Value, Map<String, Value>;
}

impl<T: Described> Described for Option<T> {
    const KIND: MetricKind = T::KIND;
}

impl<T: Described> Described for Box<T> {
    const KIND: MetricKind = T::KIND;
}

impl<T: Described> Described for Vec<T> {
    const KIND: MetricKind = MetricKind::List(&T::KIND);
}

impl<K, T: Described> Described for BTreeMap<K, T> {
    const KIND: MetricKind = MetricKind::Named(&T::KIND);
}

/// Declares structs of the summary, with their rows.
macro_rules! metrics {
    (@doc doc = $text:literal) => { $text };
    (@doc $($other:tt)*) => { "" };
    (@flat [serde(flatten)] $($rest:tt)*) => { true };
    (@flat [$($other:tt)*] $($rest:tt)*) => { $crate::metrics::described::metrics!(@flat $($rest)*) };
    (@flat) => { false };
    (@digits) => { None };
    (@digits $digits:expr) => { Some($digits) };
    ($(
        $(#[$($about:tt)*])*
        pub struct $name:ident $(<$of:ident>)? {
            $(
                $(#[$($attribute:tt)*])*
                pub $key:ident: $kind:ty $(=> ($heading:literal, $title:literal $(, $digits:expr)?))?,
            )*
        }
    )*) => {
        $(
            $(#[$($about)*])*
            pub struct $name $(<$of>)? {
                $($(#[$($attribute)*])* pub $key: $kind,)*
            }

            impl $(<$of: $crate::metrics::described::Described>)? $crate::metrics::described::Described for $name $(<$of>)? {
                const KIND: $crate::metrics::described::MetricKind = $crate::metrics::described::MetricKind::Part(&$crate::metrics::described::SummaryPart {
                    name: stringify!($name),
                    meaning: concat!($($crate::metrics::described::metrics!(@doc $($about)*)),*),
                    metrics: &[$($crate::metrics::described::MetricRow::new(
                        (stringify!($key), <$kind as $crate::metrics::described::Described>::KIND),
                        concat!($($crate::metrics::described::metrics!(@doc $($attribute)*)),*),
                        $crate::metrics::described::metrics!(@flat $([$($attribute)*])*),
                        (concat!($($heading)?), concat!($($title)?)),
                        $crate::metrics::described::metrics!(@digits $($($digits)?)?),
                    )),*],
                });
            }
        )*
    };
}
pub(crate) use metrics;

impl MetricRow {
    /// A row of `metrics!`.
    pub(crate) const fn new(
        (key, kind): (&'static str, MetricKind),
        meaning: &'static str,
        is_flat: bool,
        (heading, title): (&'static str, &'static str),
        digits: Option<[usize; 2]>,
    ) -> MetricRow {
        MetricRow { key, kind, meaning, is_flat, heading, title, digits }
    }

    pub(super) const fn part(&self) -> Option<&'static SummaryPart> {
        self.kind.part()
    }
}

impl MetricKind {
    /// The struct of which it is made.
    pub const fn part(&self) -> Option<&'static SummaryPart> {
        match self {
            MetricKind::Part(part) => Some(part),
            MetricKind::List(of) | MetricKind::Named(of) => of.part(),
            MetricKind::Number | MetricKind::Flag | MetricKind::Text | MetricKind::Object => None,
        }
    }
}

impl SummaryPart {
    /// The metrics in JSON, with those of flat structs in the place of the structs.
    pub fn keys(&self) -> Vec<&'static MetricRow> {
        let keys = |metric: &'static MetricRow| match metric.part() {
            Some(part) if metric.is_flat => part.keys(),
            _ => vec![metric],
        };
        self.metrics.iter().flat_map(keys).collect()
    }
}
