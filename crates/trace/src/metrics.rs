//! Metrics, each described once: a field of a struct of the [`Summary`] is its row.
//!
//! `metrics!` declares such a struct. A field's key, type and comment are the metric's path, kind
//! and meaning; what its name does not say follows the type: the heading of its column, the title
//! of its axis, and the digits of tables and of comparisons where its unit has others.
//!
//! ```text
//! /// Round-trip times, one per ACK that measures one, not smoothed.
//! pub rtt_ms: Distribution => ("RTT", "RTT"),
//! ```
//!
//! The unit is the end of the key ([`MetricUnit`]). A key has the same row in every struct that has
//! none of its own, so that sums and windows are named as flows are.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::Summary;

pub(crate) mod described;
pub mod figures;

pub(crate) use described::metrics;
pub use described::{Described, MetricKind, MetricRow, SummaryPart};

/// The struct of a whole run.
pub fn run() -> &'static SummaryPart {
    Summary::<()>::KIND.part().expect("a struct")
}

/// The row of each key: the first one with a name of its own, or the first one.
static ROWS: LazyLock<BTreeMap<&str, &MetricRow>> = LazyLock::new(|| {
    let (mut all, mut due) = (BTreeMap::<_, &MetricRow>::new(), vec![run()]);
    // Structs before those that they have.
    while !due.is_empty() {
        let rows: Vec<&MetricRow> = due.iter().flat_map(|part| part.keys()).collect();
        for &row in &rows {
            let known = all.entry(row.key).or_insert(row);
            if known.heading.is_empty() && !row.heading.is_empty() {
                *known = row;
            }
        }
        due = rows.iter().filter_map(|row| row.part()).collect();
    }
    all
});

/// The meaning of a key; nothing of an unknown one.
pub fn meaning(key: &str) -> &'static str {
    ROWS.get(key).map_or("", |row| row.meaning.trim())
}

/// The unit of a metric, given by the end of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// `_bps`, bits per second.
    BitRate,
    /// `_ms`, milliseconds.
    Millis,
    /// `_bytes`.
    Bytes,
    /// `_s`, seconds.
    Seconds,
    /// `_packets`.
    Packets,
    /// A share of 1: `_ratio`, and rows that say so.
    Share,
    /// Anything else.
    None,
}

const ENDS: [(&str, MetricUnit); 8] = [
    ("_bps", MetricUnit::BitRate),
    ("_ms", MetricUnit::Millis),
    ("_bytes", MetricUnit::Bytes),
    ("_s", MetricUnit::Seconds),
    ("_packets", MetricUnit::Packets),
    ("_ratio", MetricUnit::Share),
    // Without an end.
    ("utilization", MetricUnit::Share),
    ("bucket_empty", MetricUnit::Share),
];

impl MetricUnit {
    /// The unit of a path: that of the last of its keys that has one.
    pub fn of(path: &str) -> MetricUnit {
        let of = |key: &str| ENDS.iter().find(|(end, _)| key.ends_with(end)).map(|(_, unit)| *unit);
        path.split('.').rev().find_map(of).unwrap_or(MetricUnit::None)
    }

    /// Symbol in JSON.
    pub fn base(self) -> &'static str {
        match self {
            MetricUnit::BitRate => "bit/s",
            MetricUnit::Millis => "ms",
            MetricUnit::Bytes => "bytes",
            MetricUnit::Seconds => "s",
            MetricUnit::Packets => "packets",
            MetricUnit::Share | MetricUnit::None => "",
        }
    }

    /// Symbol in tables.
    pub fn symbol(self) -> &'static str {
        match self {
            MetricUnit::BitRate => "Mbit/s",
            MetricUnit::Bytes => "kB",
            MetricUnit::Share => "%",
            MetricUnit::Packets => "",
            MetricUnit::Millis | MetricUnit::Seconds | MetricUnit::None => self.base(),
        }
    }

    /// A value as tables show it.
    pub fn scaled(self, value: f64) -> f64 {
        match self {
            MetricUnit::BitRate => value / 1e6,
            MetricUnit::Bytes => value / 1e3,
            MetricUnit::Share => value * 100.0,
            MetricUnit::Millis | MetricUnit::Seconds | MetricUnit::Packets | MetricUnit::None => value,
        }
    }

    /// Digits after the point: in tables, and where values are compared.
    const fn digits(self) -> [usize; 2] {
        match self {
            MetricUnit::BitRate | MetricUnit::Seconds | MetricUnit::Share => [3, 3],
            MetricUnit::Millis => [1, 2],
            MetricUnit::Bytes => [1, 1],
            MetricUnit::Packets | MetricUnit::None => [0, 0],
        }
    }
}

/// A metric as tables show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownMetric {
    /// Names of the keys of the path.
    words: Vec<String>,
    /// Unit.
    pub unit: MetricUnit,
    /// Digits after the point in tables.
    pub digits: usize,
    /// The same where values are compared.
    pub fine_digits: usize,
}

/// The heading and digits of the metric of a list (`flows`) at this path (`rtt_ms.p50`).
pub fn shown(list: &str, path: &str) -> ShownMetric {
    let find = |part: &'static SummaryPart, key: &str| part.keys().into_iter().find(|metric| metric.key == key);
    let mut part = find(run(), list).map_or(Some(run()), MetricRow::part);
    let unit = MetricUnit::of(path);
    let (mut words, mut digits) = (Vec::new(), unit.digits());
    for key in path.split('.') {
        let own = part.and_then(|part| find(part, key));
        part = own.and_then(MetricRow::part);
        let named = own.filter(|row| !row.heading.is_empty()).or_else(|| ROWS.get(key).copied());
        let heading = named.map(|row| row.heading).filter(|heading| !heading.is_empty());
        words.push(heading.map_or_else(|| plain(key), str::to_owned));
        digits = named.and_then(|row| row.digits).unwrap_or(digits);
    }
    ShownMetric { words, unit, digits: digits[0], fine_digits: digits[1] }
}

/// The headings of columns. Several of one quantity say in the first of their columns what it is,
/// which may be the mean.
pub fn headings(list: &str, paths: &[&str]) -> Vec<String> {
    let mut before = (String::new(), MetricUnit::None);
    let mut heading = |path: &&str| {
        let shown = shown(list, path);
        let name = shown.words.join(" ");
        let Some((stem, last)) = name.rsplit_once(' ') else { return shown.heading() };
        let stem = (stem.to_owned(), shown.unit);
        if before == stem {
            return last.to_owned();
        }
        before = stem;
        shown.heading().replace(" mean", "")
    };
    paths.iter().map(&mut heading).collect()
}

/// A key without its unit: `flow goodput`.
fn plain(key: &str) -> String {
    let end = ENDS[..6].iter().find_map(|(end, _)| key.strip_suffix(end));
    let word = |word: &str| if matches!(word, "rtt" | "fct") { word.to_uppercase() } else { word.to_owned() };
    end.unwrap_or(key).split('_').map(word).collect::<Vec<_>>().join(" ")
}

impl ShownMetric {
    /// The heading: `RTT p50 ms`.
    pub fn heading(&self) -> String {
        format!("{} {}", self.words.join(" "), self.unit.symbol()).trim_end().to_owned()
    }

    /// A value with the digits of tables, or a dash.
    pub fn text(&self, value: Option<f64>) -> String {
        self.number(value, self.digits)
    }

    /// A value with the digits of comparisons, or a dash.
    pub fn fine_text(&self, value: Option<f64>) -> String {
        self.number(value, self.fine_digits)
    }

    fn number(&self, value: Option<f64>, digits: usize) -> String {
        value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", self.unit.scaled(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_unit_and_the_names_of_its_row() {
        let heading = |list, path| shown(list, path).heading();
        assert_eq!(heading("flows", "rtt_ms.p50"), "RTT p50 ms");
        assert_eq!(heading("commands", "rtt_ms.p50"), "ping p50 ms");
        assert_eq!(heading("links", "utilization"), "busy %");
        assert_eq!(headings("groups", &["fct_ms.mean", "fct_ms.p99", "timeouts"]), ["FCT ms", "p99", "timeouts"]);
        // A sum, which is not in a summary, and keys that say what they are.
        assert_eq!(heading("sums", "rtt_p50_ms"), "RTT p50 ms");
        assert_eq!(heading("flows", "limited_s.rwnd"), "limited rwnd s");
        assert_eq!(figures::json()["titles"]["goodput_bps"], "Goodput");
    }

    #[test]
    fn values_have_the_digits_of_their_rows_or_units() {
        assert_eq!(shown("flows", "goodput_bps").text(Some(1_234_567.0)), "1.235");
        assert_eq!(shown("links", "utilization").text(Some(0.5)), "50.0");
        let fct = shown("workloads", "fct_ms.p50");
        assert_eq!((fct.text(None), fct.fine_text(Some(2.0))), ("-".to_owned(), "2.000".to_owned()));
    }
}
