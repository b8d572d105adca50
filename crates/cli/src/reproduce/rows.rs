//! Rows: a published result each, with what its expectations come to.

use std::cmp::Ordering;
use std::slice;

use ackclock_run::ledger;
use ackclock_scenario::{Evaluation, Scenario};
use serde_json::{Map, Value, json};

use super::gallery::Chosen;
use super::number::{QuotedMetric, Unit};
use crate::report;

/// The verdict on a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of its expectations are met at all of their points.
    Ok,
    /// Some are.
    Part,
    /// None is.
    Miss,
}

impl Verdict {
    fn of(met: usize, checked: usize) -> Verdict {
        match met {
            0 => Verdict::Miss,
            met if met == checked => Verdict::Ok,
            _ => Verdict::Part,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Part => "part",
            Verdict::Miss => "miss",
        }
    }
}

/// An expectation of a row, over all points to which it applies.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) file: String,
    /// The metric, in short.
    pub(crate) metric: String,
    /// The value at the point that is furthest from its bound, or nearest to it if all are met.
    pub(crate) value: String,
    /// The spread of the runs, if there are several, and further remarks on the value.
    pub(crate) spread: String,
    pub(crate) expected: String,
    /// The values of the axes there.
    pub(crate) point: String,
    pub(crate) met: usize,
    /// Points met if the median of the runs has to meet the bounds in place of each run.
    met_by_median: usize,
    pub(crate) points: usize,
}

impl Line {
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::of(self.met, self.points)
    }

    /// The found and the expected value.
    pub(crate) fn text(&self) -> String {
        let metric = if self.metric.is_empty() { String::new() } else { format!("{}: ", self.metric) };
        let expected = if self.expected.is_empty() { String::new() } else { format!(", expected {}", self.expected) };
        let spread = if self.spread.is_empty() { String::new() } else { format!(" ({})", self.spread) };
        format!("{metric}{}{spread}{expected}", self.value)
    }

    /// Where the value is from, and at how many points it is met.
    pub(crate) fn place(&self) -> String {
        let mut text = self.file.clone();
        if !self.point.is_empty() {
            text = format!("{text}, {}", self.point);
        }
        if self.points > 1 {
            text = format!("{text}; {} of {} points met", self.met, self.points);
        }
        text
    }
}

/// A published result.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) source: String,
    pub(crate) published: Vec<String>,
    pub(crate) kernel: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// The expectations at each point, as in results.
    evaluations: Vec<Value>,
}

impl Row {
    pub(crate) fn verdict(&self) -> Verdict {
        self.judged(|line| line.met)
    }

    /// The verdict by the medians of runs, if that is another one.
    pub(crate) fn other_by_median(&self) -> Option<Verdict> {
        Some(self.by_median()).filter(|verdict| *verdict != self.verdict())
    }

    fn by_median(&self) -> Verdict {
        self.judged(|line| line.met_by_median)
    }

    fn judged(&self, met: fn(&Line) -> usize) -> Verdict {
        let sum = |count: fn(&Line) -> usize| self.lines.iter().map(count).sum();
        Verdict::of(sum(met), sum(|line| line.points))
    }

    pub(crate) fn json(&self, folder: &str) -> Value {
        json!({
            "folder": folder,
            "source": self.source,
            "published": self.published,
            "kernel": self.kernel,
            "note": self.notes,
            "result": self.verdict().name(),
            "result_by_median": self.by_median().name(),
            "expectations": self.evaluations,
        })
    }
}

/// The rows of a folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        Folder { name: name.to_owned(), rows: Vec::new() }
    }

    /// Adds what became of a scenario.
    pub(crate) fn add(&mut self, chosen: &Chosen, evaluations: &[Evaluation]) {
        for (number, claim) in chosen.scenario.claims().filter(|(_, claim)| chosen.wants(&claim.source)) {
            let of: Vec<&Evaluation> = evaluations.iter().filter(|one| one.number == number).collect();
            let place = self.rows.iter().position(|row| row.source == claim.source).unwrap_or_else(|| {
                let (published, kernel, notes, lines, evaluations) = Default::default();
                self.rows.push(Row { source: claim.source.clone(), published, kernel, notes, lines, evaluations });
                self.rows.len() - 1
            });
            let row = &mut self.rows[place];
            let texts = [
                (&mut row.published, &claim.published),
                (&mut row.kernel, &claim.kernel),
                (&mut row.notes, &claim.note),
            ];
            for (known, text) in texts {
                let text = text.as_deref().map(on_one_line);
                known.extend(text.filter(|text| !known.contains(text)));
            }
            row.lines.push(line(&chosen.scenario, &chosen.place.file, &of));
            row.evaluations.extend(of.iter().map(|one| as_json(&chosen.scenario, &chosen.place.file, one)));
        }
    }

    /// Sorts the rows by their sources, as people count.
    pub(crate) fn finish(&mut self) {
        self.rows.sort_by(|one, other| naturally(&one.source, &other.source));
    }

    /// Number of rows, in all and of each kind.
    pub(crate) fn totals(&self) -> String {
        totals([self])
    }
}

/// The rows of some folders by what became of them.
pub(crate) fn totals<'a>(folders: impl IntoIterator<Item = &'a Folder>) -> String {
    let rows: Vec<&Row> = folders.into_iter().flat_map(|folder| &folder.rows).collect();
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let [ok, part, miss] = [Verdict::Ok, Verdict::Part, Verdict::Miss].map(count);
    let by_median = match rows.iter().filter(|row| row.by_median() == Verdict::Ok).count() {
        count if count == ok => String::new(),
        count => format!(" ({count} ok by the medians of runs)"),
    };
    let name = if rows.len() == 1 { "row" } else { "rows" };
    format!("{} {name}: {ok} ok, {part} part, {miss} miss{by_median}", rows.len())
}

fn line(scenario: &Scenario, file: &str, evaluations: &[&Evaluation]) -> Line {
    let margins = evaluations.iter().map(|one| (margin(one), *one));
    // The first among equals counts.
    let worst = margins.reduce(|least, one| if one.0.total_cmp(&least.0) == Ordering::Less { one } else { least });
    let met = evaluations.iter().filter(|one| one.met).count();
    let met_by_median = evaluations.iter().filter(|one| one.met || is_met_by_median(one)).count();
    let (file, points) = (file.to_owned(), evaluations.len());
    let Some((_, shown)) = worst else {
        let nothing = "not measured on this clock".to_owned();
        let (metric, spread, expected, point) = Default::default();
        return Line { file, metric, value: nothing, spread, expected, point, met: 0, met_by_median: 0, points: 1 };
    };
    let axes: Vec<&str> = scenario.axes().collect();
    let QuotedMetric { name, unit } = QuotedMetric::of(&shown.metric, &axes);
    let (value, spread) = value(shown, &unit);
    Line {
        file,
        metric: name,
        value,
        spread,
        expected: unit.bounds(shown.at_least, shown.at_most),
        point: point(scenario, shown),
        met,
        met_by_median,
        points,
    }
}

/// Returns `true` if each run has to meet the bounds, and their median does. All runs have to have
/// a value.
fn is_met_by_median(evaluation: &Evaluation) -> bool {
    let Some(spread) = &evaluation.spread else { return false };
    let median = spread.quantile(50);
    evaluation.runs == "each"
        && evaluation.values.iter().all(Option::is_some)
        && evaluation.at_least.is_none_or(|bound| median >= bound)
        && evaluation.at_most.is_none_or(|bound| median <= bound)
}

/// By how much the bounds are met; negative by how much they are missed, and without end where
/// there is no value.
fn margin(evaluation: &Evaluation) -> f64 {
    let of = |value: f64| {
        let above = evaluation.at_least.map(|bound| value - bound);
        let below = evaluation.at_most.map(|bound| bound - value);
        above.into_iter().chain(below).fold(f64::INFINITY, f64::min)
    };
    let judged: Vec<Option<f64>> = match evaluation.runs {
        "each" => evaluation.values.clone(),
        _ => vec![evaluation.found],
    };
    judged.into_iter().map(|value| value.map_or(f64::NEG_INFINITY, of)).fold(f64::INFINITY, f64::min)
}

/// The runs of a point: their median, or the statistic that is judged, and their spread.
fn value(evaluation: &Evaluation, unit: &Unit) -> (String, String) {
    let Some(spread) = &evaluation.spread else {
        return (evaluation.reason(None).unwrap_or("has no value").to_owned(), String::new());
    };
    let runs = evaluation.values.len();
    let bounds = (evaluation.at_least, evaluation.at_most);
    let name = match evaluation.runs {
        "each" | "median" => String::new(),
        statistic => format!("{statistic} of the runs "),
    };
    let found = evaluation.found.unwrap_or_else(|| spread.quantile(50));
    let text = format!("{name}{}", unit.value(found, bounds));
    let mut more = Vec::new();
    if runs > 1 {
        let [low, high] = [5, 95].map(|percent| unit.number(spread.quantile(percent)));
        more.push(format!("p5..p95 {low}..{high}, n {runs}"));
    }
    if evaluation.runs == "each" && evaluation.runs_met < runs && runs > 1 {
        more.push(format!("{} of {runs} runs met", evaluation.runs_met));
    }
    if let Some(reason) = evaluation.reason(None) {
        more.push(format!("a run {reason}"));
    }
    (text, more.join("; "))
}

/// The values of the axes that have several.
fn point(scenario: &Scenario, evaluation: &Evaluation) -> String {
    let axes: Vec<&str> = scenario.axes().collect();
    let names = |point: usize| scenario.names(point * scenario.repeat());
    let varies =
        |axis: usize| (1..scenario.runs() / scenario.repeat()).any(|point| names(point)[axis].1 != names(0)[axis].1);
    let named = report::short(&axes).into_iter().zip(names(evaluation.point)).enumerate();
    let parts = named.filter(|(axis, _)| varies(*axis)).map(|(_, (short, (_, name)))| format!("{short} {name}"));
    parts.collect::<Vec<_>>().join(", ")
}

fn as_json(scenario: &Scenario, file: &str, evaluation: &Evaluation) -> Value {
    let mut json = Map::new();
    json.insert("scenario".to_owned(), file.into());
    if let Some(Value::Object(evaluated)) = ledger::as_json(scenario, slice::from_ref(evaluation)).pop() {
        // These are of the row.
        let of_row = ["source", "published", "kernel", "note"];
        json.extend(evaluated.into_iter().filter(|(key, _)| !of_row.contains(&key.as_str())));
    }
    json.into()
}

/// Text of several lines in one.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `Figure 2` before `Figure 10`.
fn naturally(one: &str, other: &str) -> Ordering {
    let by_parts = parts(one).cmp(&parts(other));
    by_parts.then_with(|| one.cmp(other))
}

/// Digits, as so many and themselves, and what is between them.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        let part = if is_number { part.trim_start_matches('0') } else { part };
        found.push((if is_number { part.len() + 1 } else { 0 }, part));
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_sorted_as_people_count() {
        let mut sources = ["Table 1", "Figure 10", "Figure 2b", "Figure 2a", "Check 3", "Figure 2"];
        sources.sort_by(|one, other| naturally(one, other));
        assert_eq!(sources, ["Check 3", "Figure 2", "Figure 2a", "Figure 2b", "Figure 10", "Table 1"]);
    }

    #[test]
    fn some_met_is_a_part() {
        let of = [(3, 3), (1, 3), (0, 3)].map(|(met, checked)| Verdict::of(met, checked).name());
        assert_eq!(of, ["ok", "part", "miss"]);
    }
}
