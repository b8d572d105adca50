//! Metrics in short, and numbers with their units.

use crate::report;

/// A metric as a reader has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuotedMetric {
    pub(crate) name: String,
    pub(crate) unit: Unit,
}

/// The unit of a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    name: &'static str,
    scale: f64,
}

const NONE: Unit = Unit { name: "", scale: 1.0 };

/// The suffixes of the names of metrics, and the form of such numbers.
const UNITS: [(&str, Unit); 4] = [
    ("_bps", Unit { name: " Mbit/s", scale: 1e-6 }),
    ("_ms", Unit { name: " ms", scale: 1.0 }),
    ("_s", Unit { name: " s", scale: 1.0 }),
    ("_bytes", Unit { name: " bytes", scale: 1.0 }),
];

/// Lists of a summary, whose names say little.
const LISTS: [&str; 6] = ["flows.", "links.", "groups.", "workloads.", "kinds.", "commands."];

/// The digits of values, and the most that tell a value from its bound.
const DIGITS: usize = 4;
const MOST_DIGITS: usize = 9;

impl QuotedMetric {
    /// The metric of an evaluation: without what goes without saying, with short names of axes.
    pub(crate) fn of(metric: &str, axes: &[&str]) -> QuotedMetric {
        let mut parts = metric.split(" relative to ");
        let measured = parts.next().unwrap_or_default();
        let others: Vec<String> = parts.map(|other| relative(other, axes)).collect();
        let unit = if others.is_empty() { unit(measured) } else { NONE };
        let name = [words(measured)].into_iter().chain(others).collect::<Vec<_>>().join(" / ");
        QuotedMetric { name, unit }
    }
}

/// The reference of a metric: another one, or a point by the values of axes.
fn relative(other: &str, axes: &[&str]) -> String {
    if !other.contains(" = ") {
        return words(other);
    }
    let mut names: Vec<(&str, String)> = axes.iter().copied().zip(report::short(axes)).collect();
    // One may end in another.
    names.sort_by_key(|(axis, _)| std::cmp::Reverse(axis.len()));
    let mut text = other.replace('"', "");
    for (axis, short) in &names {
        text = text.replace(&format!("{axis} = "), &format!("{short} "));
    }
    format!("that at {text}")
}

/// The unit of a quantity that is no ratio.
fn unit(measured: &str) -> Unit {
    let path = measured.split(' ').find(|word| word.contains('_') || word.contains('.')).unwrap_or_default();
    let of = |part: &str| UNITS.iter().find(|(ending, _)| part.ends_with(ending)).map(|(_, unit)| unit.clone());
    path.split('.').rev().find_map(of).unwrap_or(NONE)
}

/// The name without lists, units and the like.
fn words(text: &str) -> String {
    let short = |word: &str| {
        let inner = LISTS.iter().find_map(|list| word.strip_prefix(list)).unwrap_or(word);
        let inner = inner.strip_prefix("*.").unwrap_or(inner);
        if !word.contains('.') {
            return word.to_owned();
        }
        let bare = |part: &str| {
            let ending = UNITS.iter().find_map(|(ending, _)| part.strip_suffix(ending));
            ending.unwrap_or(part).to_owned()
        };
        inner.split('.').map(bare).collect::<Vec<_>>().join(".")
    };
    text.split(' ').filter(|word| *word != "of").map(short).collect::<Vec<_>>().join(" ")
}

impl Unit {
    /// A number without its unit.
    pub(crate) fn number(&self, value: f64) -> String {
        significant(value * self.scale, DIGITS)
    }

    /// A value with its unit, with as many digits as tell it from the bounds.
    pub(crate) fn value(&self, value: f64, (at_least, at_most): (Option<f64>, Option<f64>)) -> String {
        let bounds = [at_least, at_most].map(|bound| bound.map(|bound| self.bound(bound)));
        let side = |text: &str| {
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            bounds.each_ref().map(|bound| bound.as_deref().and_then(|bound| number(text).partial_cmp(&number(bound))))
        };
        let exact = [at_least, at_most].map(|bound| bound.and_then(|bound| value.partial_cmp(&bound)));
        let text = |digits| significant(value * self.scale, digits);
        let told = (DIGITS..MOST_DIGITS).map(text).find(|text| side(text) == exact);
        let text = told.unwrap_or_else(|| text(MOST_DIGITS));
        format!("{text}{}", self.name)
    }

    fn bound(&self, bound: f64) -> String {
        significant(bound * self.scale, MOST_DIGITS)
    }

    /// Both bounds, or the only one.
    pub(crate) fn bounds(&self, at_least: Option<f64>, at_most: Option<f64>) -> String {
        let text = |bound: f64| self.bound(bound);
        match (at_least, at_most) {
            (Some(least), Some(most)) if least == most => format!("exactly {}{}", text(most), self.name),
            (Some(least), Some(most)) => format!("{} to {}{}", text(least), text(most), self.name),
            (Some(least), None) => format!("at least {}{}", text(least), self.name),
            (None, Some(most)) => format!("at most {}{}", text(most), self.name),
            (None, None) => String::new(),
        }
    }
}

/// A number with so many significant digits, without needless zeros.
fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    // The exponent after rounding.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    if exponent < -6 {
        return rounded;
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(metric: &str) -> String {
        QuotedMetric::of(metric, &["links.bottleneck.queue.kind", "links.bottleneck.delay"]).name
    }

    #[test]
    fn metrics_are_shortened() {
        assert_eq!(name("max of flows.*.rtt_ms.p50"), "max rtt.p50");
        assert_eq!(name("flows.cdg.0.goodput_bps from 10s on"), "cdg.0.goodput from 10s on");
        assert_eq!(name("fairness_jain"), "fairness_jain");
        assert_eq!(
            name("flows.cdg.0.goodput_bps relative to sum of flows.*.goodput_bps"),
            "cdg.0.goodput / sum goodput"
        );
        assert_eq!(
            name("sum of flows.*.goodput_bps relative to links.bottleneck.queue.kind = \"pfifo\""),
            "sum goodput / that at queue.kind pfifo"
        );
        assert_eq!(name("links.bottleneck.forward.sojourn_ms.p50"), "bottleneck.forward.sojourn.p50");
    }

    #[test]
    fn numbers_have_the_unit_of_their_metric() {
        let unit = |metric| QuotedMetric::of(metric, &[]).unit;
        let rate = unit("sum of flows.*.goodput_bps");
        assert_eq!(rate.value(9_412_345.0, (Some(9e6), None)), "9.412 Mbit/s");
        assert_eq!(rate.bounds(Some(8_210_000.0), Some(8.66e6)), "8.21 to 8.66 Mbit/s");
        assert_eq!(unit("flows.*.rtt_ms.p50").value(187.0, (None, Some(200.0))), "187 ms");
        assert_eq!(unit("flows.a.0.goodput_bps relative to sum of flows.*.goodput_bps"), NONE);
        assert_eq!(unit("fairness_jain"), NONE);
        assert_eq!(unit("flows.f.0.fct_s").bounds(None, Some(2.0)), "at most 2 s");
    }

    #[test]
    fn a_value_is_told_from_its_bound() {
        assert_eq!(NONE.value(0.96997, (Some(0.97), None)), "0.96997");
        assert_eq!(NONE.value(0.9, (Some(0.97), None)), "0.9");
        assert_eq!(NONE.value(0.97, (Some(0.97), None)), "0.97");
        assert_eq!(NONE.value(1.0 / 3.0, (Some(0.3), Some(0.4))), "0.3333");
    }

    #[test]
    fn digits_are_significant_ones() {
        let of = [0.000_123_456, 99.996, 12_345.6, 0.0, -2.5, 1e-9].map(|value| significant(value, 4));
        assert_eq!(of, ["0.0001235", "100", "12346", "0", "-2.5", "1.000e-9"]);
    }
}
