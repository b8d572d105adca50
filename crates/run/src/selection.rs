//! The selection of a sweep's runs: all, some (`--only`), or a share of them (`--shard`).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use ackclock_scenario::{MAX_READ, Measures, Scenario};
use anyhow::{Context, bail};

/// The runs requested on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only(Vec<Item>);

/// Runs, or repetitions of a point; ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Runs(usize, usize),
    Of(usize, usize, usize),
}

/// One of so many shares, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: usize,
}

/// A number, or two of them with a hyphen between.
fn span(text: &str) -> Option<(usize, usize)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from <= to).then_some((from, to))
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Only, String> {
        let item = |item: &str| match item.split_once(':') {
            None => span(item).map(|(from, to)| Item::Runs(from, to)),
            Some((point, runs)) => {
                let (from, to) = span(runs)?;
                Some(Item::Of(point.trim().parse().ok()?, from, to))
            }
        };
        let items: Option<Vec<Item>> = text.split(',').map(item).collect();
        items.map(Only).ok_or_else(|| {
            "expected numbers of runs (`7`, `3-9`) or of a point and its repetitions (`4:0`, `4:0-2`), counted from 0 and \
             separated by commas"
                .to_owned()
        })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if index < of => Ok(Shard { index, of }),
            Some((_, of)) => Err(format!("shards count from 0: expected 0/{of} to {}/{of}", of.max(1) - 1)),
            None => Err("expected the number of a shard, from 0, and how many there are: `0/16`".to_owned()),
        }
    }
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, item) in self.0.iter().enumerate() {
            f.write_str(if number > 0 { "," } else { "" })?;
            let (point, from, to) = match *item {
                Item::Runs(from, to) => (None, from, to),
                Item::Of(point, from, to) => (Some(point), from, to),
            };
            point.map_or(Ok(()), |point| write!(f, "{point}:"))?;
            if from == to { write!(f, "{from}") } else { write!(f, "{from}-{to}") }?;
        }
        Ok(())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// The runs that are done, in ascending order.
#[derive(Clone, Debug)]
pub struct Selection {
    which: Which,
    /// The places of them that are left out at the front.
    from: usize,
    len: usize,
    /// The request; nothing for all.
    part: Option<(&'static str, String)>,
}

#[derive(Clone, Debug)]
enum Which {
    All,
    Ranges(Vec<Range<usize>>),
    /// A share in blocks of so many runs each, which stay together.
    Shard(Shard, usize),
}

impl Selection {
    /// The requested runs.
    ///
    /// # Errors
    /// There are no such runs.
    pub fn of(scenario: &Scenario, only: Option<&Only>, shard: Option<Shard>) -> anyhow::Result<Selection> {
        let runs = scenario.runs();
        if (only.is_some() || shard.is_some()) && !scenario.is_sweep() {
            bail!("--only and --shard require a sweep, and the scenario has none");
        }
        if let Some(only) = only {
            let mut ranges = only.0.iter().map(|item| range(*item, scenario)).collect::<anyhow::Result<Vec<_>>>()?;
            ranges.sort_by_key(|range| range.start);
            // A run that is named twice is done once.
            let mut merged: Vec<Range<usize>> = Vec::new();
            for range in ranges {
                match merged.last_mut().filter(|last| range.start <= last.end) {
                    Some(last) => last.end = last.end.max(range.end),
                    None => merged.push(range),
                }
            }
            let len = merged.iter().map(Range::len).sum();
            return Ok(Selection {
                which: Which::Ranges(merged),
                from: 0,
                len,
                part: Some(("only", only.to_string())),
            });
        }
        Ok(match shard {
            Some(shard) => {
                // The block is a point's runs, all of which decide whether it is settled.
                let block = if scenario.is_adaptive() { scenario.repeat() } else { 1 };
                let len = (runs / block).saturating_sub(shard.index).div_ceil(shard.of) * block;
                Selection { which: Which::Shard(shard, block), from: 0, len, part: Some(("shard", shard.to_string())) }
            }
            None => Selection { which: Which::All, from: 0, len: runs, part: None },
        })
    }

    /// The runs at some places in the order, which are a part in any case.
    ///
    /// # Errors
    /// There are no such places, or runs that stay together would not.
    pub fn slice(mut self, scenario: &Scenario, places: Range<usize>) -> anyhow::Result<Selection> {
        let block = self.block(scenario);
        let is_whole = |place: usize| place.is_multiple_of(block) || place == self.len;
        if places.start > places.end || places.end > self.len || !is_whole(places.start) || !is_whole(places.end) {
            bail!("there are no runs at places {places:?} of {}, of which {block} stay together", self.len);
        }
        (self.from, self.len) = (self.from + places.start, places.len());
        self.part.get_or_insert(("places", format!("{}-{}", places.start, places.end)));
        Ok(self)
    }

    /// Number of runs that stay together: those of a point of which the runs decide how many there
    /// are.
    pub fn block(&self, scenario: &Scenario) -> usize {
        match self.which {
            Which::Ranges(_) => 1,
            _ if scenario.is_adaptive() => scenario.repeat(),
            _ => 1,
        }
    }

    /// The points of the runs, if they are few.
    pub fn points(&self, scenario: &Scenario) -> Option<BTreeSet<usize>> {
        let runs = || (0..self.len).filter_map(|place| self.run(place));
        (self.len <= MAX_READ).then(|| runs().map(|run| run / scenario.repeat()).collect())
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.len
    }

    /// Number of runs of the selection before a run.
    pub fn before(&self, run: usize) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.run(middle).is_some_and(|at| at < run) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns `true` if these are all runs.
    pub fn is_all(&self) -> bool {
        self.part.is_none()
    }

    /// The key and the value by which a manifest has it, unless it is all.
    pub fn part(&self) -> Option<&(&'static str, String)> {
        self.part.as_ref()
    }

    /// The run at a place in the order.
    pub fn run(&self, place: usize) -> Option<usize> {
        if place >= self.len {
            return None;
        }
        let place = place + self.from;
        match &self.which {
            Which::All => Some(place),
            Which::Shard(shard, block) => Some((place / block * shard.of + shard.index) * block + place % block),
            Which::Ranges(ranges) => {
                let mut left = place;
                ranges.iter().find_map(|range| {
                    let found = (left < range.len()).then(|| range.start + left);
                    left = left.saturating_sub(range.len());
                    found
                })
            }
        }
    }
}

/// The runs that are done one after another. In an adaptive sweep, what they measure decides which
/// come next; runs that are named one by one are all done.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    scenario: &'a Scenario,
    selection: Selection,
    /// The place of the next run in the selection.
    place: usize,
    /// Measures of the runs of the point at hand, in an adaptive sweep.
    of_point: Vec<Measures>,
    /// Number of runs done.
    done: usize,
    /// Of these, the ones that were not next, because one before them was not completed.
    beyond: usize,
}

impl<'a> Walk<'a> {
    /// From the first of them on.
    pub fn new(scenario: &'a Scenario, selection: Selection) -> Walk<'a> {
        Walk { scenario, selection, place: 0, of_point: Vec::new(), done: 0, beyond: 0 }
    }

    /// The scenario of these runs.
    pub fn scenario(&self) -> &'a Scenario {
        self.scenario
    }

    /// Returns `true` if the measures of runs decide which come next.
    pub fn is_adaptive(&self) -> bool {
        self.scenario.is_adaptive() && !matches!(self.selection.which, Which::Ranges(_))
    }

    /// The run that is next, if there is one.
    pub fn next(&self) -> Option<usize> {
        self.selection.run(self.place)
    }

    /// The run that comes so many after the next, if none before is left out.
    pub fn ahead(&self, runs: usize) -> Option<usize> {
        self.selection.run(self.place + runs)
    }

    /// Number of runs left, at most.
    pub fn left(&self) -> usize {
        self.selection.count() - self.place
    }

    /// Number of runs done.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Number of runs, those done included; in an adaptive sweep, at most.
    pub fn all(&self) -> usize {
        self.done - self.beyond + self.left()
    }

    /// Measures of the runs of the point at hand, in an adaptive sweep.
    pub fn of_point(&self) -> &[Measures] {
        &self.of_point
    }

    /// A run has been done, and has measured this. If it is not the next one, because that was not
    /// completed, the walk stays where it is.
    pub fn step(&mut self, run: usize, measures: &Measures) {
        self.done += 1;
        if self.next() != Some(run) {
            self.beyond += 1;
            return;
        }
        self.place += 1;
        if !self.is_adaptive() {
            return;
        }
        self.of_point.push(measures.clone());
        if self.scenario.is_settled(&self.of_point) {
            self.place += self.scenario.repeat() - self.of_point.len();
            self.of_point.clear();
        }
    }
}

fn range(item: Item, scenario: &Scenario) -> anyhow::Result<Range<usize>> {
    let (runs, repeat) = (scenario.runs(), scenario.repeat());
    let (from, to) = match item {
        Item::Runs(from, to) => (from, to),
        Item::Of(point, from, to) => {
            if point >= runs / repeat {
                bail!("--only: there is no point {point}; they count from 0, and there are {}", runs / repeat);
            }
            if to >= repeat {
                bail!("--only: there is no repetition {to} of a point; they count from 0, and there are {repeat}");
            }
            (point * repeat + from, point * repeat + to)
        }
    };
    if to >= runs {
        bail!("--only: there is no run {to}; runs count from 0, and there are {runs}");
    }
    Ok(from..to.checked_add(1).context("a number of a run")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"1mbit\"\n[[flows]]\nid = \"f\"\n\
                    path = [\"a\"]\n[sweep]\nrepeat = 4\naxes.\"flows.f.count\" = [1, 2, 3]\n";
        Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn runs(selection: &Selection) -> Vec<usize> {
        (0..selection.count()).filter_map(|place| selection.run(place)).collect()
    }

    #[test]
    fn runs_done_before_one_that_was_not_completed_count_once() {
        let scenario = scenario();
        let selection = Selection::of(&scenario, None, None).expect("all");
        let mut walk = Walk::new(&scenario, selection);
        // Of twelve, three in order; the fourth was broken off while two behind it were done.
        for run in [0, 1, 2, 4, 5] {
            walk.step(run, &Measures::new());
        }
        assert_eq!((walk.done(), walk.all(), walk.next()), (5, 12, Some(3)));
    }

    #[test]
    fn a_run_has_its_place_among_those_chosen() {
        let scenario = scenario();
        let before = |only: Option<&str>, run| {
            let only: Option<Only> = only.map(|text| text.parse().expect("it is well-formed"));
            Selection::of(&scenario, only.as_ref(), None).expect("they are there").before(run)
        };
        assert_eq!((before(None, 0), before(None, 7), before(None, 12)), (0, 7, 12));
        assert_eq!([2, 3, 9, 11, 12].map(|run| before(Some("2,3,9-11"), run)), [0, 1, 2, 4, 5]);
    }

    #[test]
    fn runs_are_named_by_their_numbers_or_by_point_and_repetition() {
        let only = |text: &str| {
            let only: Only = text.parse().expect("it is well-formed");
            assert_eq!(only.to_string().parse(), Ok(only.clone()));
            Selection::of(&scenario(), Some(&only), None).map(|selection| runs(&selection)).map_err(|e| e.to_string())
        };
        assert_eq!(only("7"), Ok(vec![7]));
        assert_eq!(only("9-11, 2,3-4,2"), Ok(vec![2, 3, 4, 9, 10, 11]));
        assert_eq!(only("2:0,1:2-3"), Ok(vec![6, 7, 8]));
        assert!(only("12").is_err_and(|error| error.contains("there is no run 12")));
        assert!(only("3:0").is_err_and(|error| error.contains("there is no point 3")));
        assert!(only("0:4").is_err_and(|error| error.contains("there is no repetition 4")));
        for wrong in ["", "x", "3-", "4-3", "1:", ":1", "1,,2", "-1"] {
            assert!(wrong.parse::<Only>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn slices_are_those_of_the_order() {
        let only: Only = "9-11,2-4".parse().expect("it is well-formed");
        let shard: Shard = "1/3".parse().expect("a shard");
        for (only, shard) in [(None, None), (Some(&only), None), (None, Some(shard))] {
            let of = |places| Selection::of(&scenario(), only, shard).and_then(|all| all.slice(&scenario(), places));
            let all = runs(&Selection::of(&scenario(), only, shard).expect("a sweep"));
            for from in 0..=all.len() {
                for to in from..=all.len() {
                    let slice = of(from..to).expect("a slice");
                    assert_eq!((runs(&slice), slice.is_all()), (all[from..to].to_vec(), false));
                }
            }
            assert!(of(0..all.len() + 1).is_err());
        }
    }

    #[test]
    fn shards_are_disjoint_and_complete() {
        for of in [1, 2, 5, 12, 16] {
            let shard = |index| format!("{index}/{of}").parse::<Shard>().expect("a shard");
            let mut all: Vec<usize> = (0..of)
                .flat_map(|index| runs(&Selection::of(&scenario(), None, Some(shard(index))).expect("a sweep")))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..12).collect::<Vec<_>>(), "{of}");
        }
        for wrong in ["16/16", "0/0", "1", "a/b", "-1/3", "1/"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
