//! What an environment is.

use std::path::PathBuf;
use std::sync::Arc;

use ackclock_cc::learned::{Feature, Measure, Measures};
use ackclock_scenario::{Override, ScenarioError, Template, read_agent, read_features};
use serde::Deserialize;
use serde_json::Value;

use crate::draw::Distribution;

/// A part of a reward: a feature times its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// What is rewarded.
    pub feature: Feature,
    /// How much.
    pub weight: f64,
}

/// Ends an episode early: a measure of a learner is above or below a bound in so many intervals in
/// a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Which measure.
    pub measure: Measure,
    /// Above this, if there is such a bound.
    pub above: Option<f64>,
    /// Below this, if there is such a bound.
    pub below: Option<f64>,
    /// In so many intervals in a row.
    pub intervals: u32,
    /// After so many intervals from the start.
    pub after: u32,
}

/// What an environment is; shared by all that are alike.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(crate) template: Template,
    pub(crate) reward: Vec<Term>,
    pub(crate) stop: Vec<Stop>,
    pub(crate) max_steps: u64,
    pub(crate) paths: Vec<String>,
    pub(crate) draws: Vec<Distribution>,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The scenario is wrong, or a value that was drawn does not fit it.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something else is.
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecText {
    agent: Value,
    reward: Vec<TermText>,
    stop: Vec<StopText>,
    max_steps: Option<u64>,
    randomise: Vec<(String, Value)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermText {
    feature: Value,
    weight: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopText {
    measure: String,
    above: Option<f64>,
    below: Option<f64>,
    intervals: u32,
    after: u32,
}

fn refused(what: &str, error: impl std::fmt::Display) -> SpecError {
    SpecError::Refused(format!("{what}: {error}"))
}

/// A scenario: the folder of its files, its name in errors, its text and what overrides it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The folder.
    pub folder: PathBuf,
    /// The name.
    pub name: String,
    /// The text.
    pub text: String,
    /// The overrides.
    pub overrides: Vec<Override>,
}

impl Spec {
    /// From a scenario, and JSON with `agent`, `reward`, `stop`, `max_steps` and `randomise`.
    ///
    /// # Errors
    /// What is wrong with the scenario or with the JSON; or the scenario has no flow with
    /// `cc = "external"`.
    pub fn read(source: &Source, json: &str) -> Result<Spec, SpecError> {
        let text: SpecText = serde_json::from_str(json).map_err(|error| refused("environment", error))?;
        let agent = read_agent(&text.agent.to_string()).map_err(SpecError::Refused)?;
        let term = |TermText { feature, weight }: TermText| {
            let mut features = read_features(&format!("[{feature}]")).map_err(|error| refused("reward", error))?;
            let feature = features.remove(0);
            if feature.over.is_some() {
                return Err(refused("reward", "a term is of one interval, without `over`"));
            }
            if !weight.is_finite() {
                return Err(refused("reward", "expected a finite weight"));
            }
            Ok(Term { feature, weight })
        };
        let draws = text.randomise.iter().map(|(path, json)| {
            Distribution::read(json).map_err(|error| refused(&format!("randomise: {path}"), error))
        });
        let draws: Vec<Distribution> = draws.collect::<Result<_, _>>()?;
        let paths: Vec<String> = text.randomise.into_iter().map(|(path, _)| path).collect();
        let place = (source.folder.as_path(), source.name.as_str(), source.text.as_str());
        let template = Template::new(place, &source.overrides, Arc::new(agent), &paths)?;
        let spec = Spec {
            template,
            reward: text.reward.into_iter().map(term).collect::<Result<_, _>>()?,
            stop: text.stop.iter().map(StopText::read).collect::<Result<_, _>>()?,
            max_steps: text.max_steps.unwrap_or(u64::MAX).max(1),
            paths,
            draws,
        };
        spec.check_draws()?;
        Ok(spec)
    }

    /// Every distribution by its ends, the others at one of theirs.
    fn check_draws(&self) -> Result<(), SpecError> {
        let ends: Vec<Vec<String>> = self.draws.iter().map(Distribution::ends).collect();
        let first: Vec<String> = ends.iter().map(|ends| ends[0].clone()).collect();
        self.template.spec(0, &first)?;
        for (gap, ends) in ends.iter().enumerate() {
            for end in &ends[1..] {
                let mut values = first.clone();
                values[gap] = end.clone();
                self.template.spec(0, &values)?;
            }
        }
        Ok(())
    }

    /// The paths whose values are drawn for each episode.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// How many numbers an observation of a learner has.
    pub fn width(&self) -> usize {
        self.template.agent().width()
    }

    /// The reward of an interval.
    pub(crate) fn reward(&self, measures: &Measures) -> f64 {
        self.reward.iter().map(|term| term.weight * term.feature.tell(measures[term.feature.measure as usize])).sum()
    }
}

impl StopText {
    fn read(&self) -> Result<Stop, SpecError> {
        let measure = Measure::by_name(&self.measure)
            .ok_or_else(|| refused("stop", format!("unknown feature `{}`", self.measure)))?;
        if self.above.is_none() && self.below.is_none() {
            return Err(refused("stop", format!("`{}`: expected `above` or `below`", self.measure)));
        }
        if self.intervals == 0 {
            return Err(refused("stop", format!("`{}`: expected at least one interval", self.measure)));
        }
        let (above, below, intervals, after) = (self.above, self.below, self.intervals, self.after);
        Ok(Stop { measure, above, below, intervals, after })
    }
}

impl Stop {
    /// Whether an interval is such a one.
    pub(crate) fn holds(&self, measures: &Measures) -> bool {
        let value = measures[self.measure as usize];
        self.above.is_some_and(|bound| value > bound) || self.below.is_some_and(|bound| value < bound)
    }
}
