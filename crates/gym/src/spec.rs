//! The specification of an environment.

use std::path::PathBuf;
use std::sync::Arc;

use ackclock_cc::learned::{Agent, Feature, Measure, Measures};
use ackclock_scenario::{Learning, Override, Own, ScenarioError, Template, measure_by_name, read_agent, read_feature};
use ackclock_sim::RunError;
use ackclock_sim::spec::{CcSpec, FlowSpec, HostSpec, RunSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::draw::Distribution;
use crate::network::{self, NetworkFeatures};

/// Whose measure a feature is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ObservedValue {
    /// The sender's.
    Sender(Measure),
    /// The network's, at this place of its values.
    Network(usize),
}

impl ObservedValue {
    fn of(self, measures: &Measures, network: &[f64]) -> f64 {
        match self {
            ObservedValue::Sender(measure) => measures[measure as usize],
            ObservedValue::Network(place) => network.get(place).copied().unwrap_or(0.0),
        }
    }
}

/// A part of a reward: a feature times its weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term {
    feature: Feature<ObservedValue>,
    weight: f64,
}

/// A condition that ends an episode early: a learner's measure is above or below a bound in a
/// number of consecutive intervals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StopCondition {
    /// The measure that is compared.
    measure: ObservedValue,
    /// Above this, if there is such a bound.
    above: Option<f64>,
    /// Below this, if there is such a bound.
    below: Option<f64>,
    /// The number of consecutive intervals.
    pub(crate) intervals: u32,
    /// Intervals from the start of the episode before the condition applies.
    pub(crate) after: u32,
}

/// A number of an interval in an observation.
#[derive(Clone, Debug)]
pub(crate) enum ObservationColumn {
    /// The sender's feature at this index.
    Sender(usize),
    /// A feature of the network.
    Network(Feature<usize>),
}

/// A learner's configuration: its agent and its reward.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) agent: Arc<Agent>,
    /// An interval in an observation.
    pub(crate) columns: Vec<ObservationColumn>,
    reward: Vec<Term>,
}

impl Role {
    /// The number of values in an observation.
    pub(crate) fn width(&self) -> usize {
        self.columns.len() * self.agent.history
    }

    /// The features of the network in an interval of an observation.
    pub(crate) fn of_network(&self) -> impl Iterator<Item = &Feature<usize>> + Clone {
        self.columns.iter().filter_map(|column| match column {
            ObservationColumn::Network(feature) => Some(feature),
            ObservationColumn::Sender(_) => None,
        })
    }

    /// The reward of an interval.
    pub(crate) fn reward(&self, measures: &Measures, network: &[f64]) -> f64 {
        let term = |Term { feature, weight }: &Term| weight * feature.tell(feature.measure.of(measures, network));
        self.reward.iter().map(term).sum()
    }
}

/// A flow that learns in some episodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LearnerSpec {
    pub(crate) id: Arc<str>,
    /// Index of its role.
    pub(crate) role: usize,
}

/// The specification of an environment, shared by all of the same kind.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(crate) template: Template,
    pub(crate) roles: Vec<Role>,
    /// Learners in the order of rows.
    pub(crate) learners: Vec<LearnerSpec>,
    /// The network's features; `None` if no column or condition uses them.
    pub(crate) network: Option<NetworkFeatures>,
    /// Algorithms from outside may fail.
    pub(crate) has_own: bool,
    pub(crate) stop: Vec<StopCondition>,
    pub(crate) max_steps: u64,
    pub(crate) paths: Vec<String>,
    pub(crate) draws: Vec<Distribution>,
}

/// The reason why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The scenario is wrong, or a value that was drawn does not fit it.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Something else is.
    #[error("{0}")]
    Refused(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecText {
    agents: Vec<RoleText>,
    /// Values of the network are requested beside the features.
    #[serde(default)]
    watch: bool,
    stop: Vec<StopText>,
    max_steps: Option<u64>,
    randomise: Vec<(String, Value)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleText {
    name: String,
    agent: Value,
    reward: Vec<TermText>,
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

/// An agent as its sender sees it, and the names of all features of an interval.
fn read_role(number: usize, mut json: Value) -> Result<(Agent, Vec<Feature<String>>), String> {
    let mut all = Vec::new();
    if let Some(Value::Array(observed)) = json.get_mut("observe") {
        for feature in &*observed {
            let feature = read_feature(feature, |name| Ok(name.to_owned()))?;
            if network::has(&feature.measure) && feature.over.is_some() {
                return Err(format!(
                    "`{}`: a value of the network is of one interval, without `over`",
                    feature.measure
                ));
            }
            all.push(feature);
        }
        let mut names = all.iter().map(|feature| &feature.measure);
        observed.retain(|_| names.next().is_some_and(|name| !network::has(name)));
        if observed.is_empty() && !all.is_empty() {
            // An agent sees something; it is not told of it.
            observed.push(json!({ "measure": Measure::Interval.name() }));
        }
    }
    let agent = read_agent(&json.to_string())?;
    Ok((Agent { number, ..agent }, all))
}

impl Spec {
    /// Reads a scenario, and JSON with `agents`, `stop`, `max_steps`, `randomise` and `watch`. The
    /// scenario may name the algorithms of `own`.
    ///
    /// # Errors
    /// What is wrong with the scenario or with the JSON; or the scenario has no flow with
    /// `cc = "external"`.
    ///
    /// # Panics
    /// Algorithms from outside cannot be named: [`Own::problem`].
    pub fn read(source: &Source, json: &str, own: &Own) -> Result<Spec, SpecError> {
        let text: SpecText = serde_json::from_str(json).map_err(|error| refused("environment", error))?;
        let draws = text.randomise.iter().map(|(path, json)| {
            Distribution::read(json).map_err(|error| refused(&format!("randomise: {path}"), error))
        });
        let draws: Vec<Distribution> = draws.collect::<Result<_, _>>()?;
        let paths: Vec<String> = text.randomise.into_iter().map(|(path, _)| path).collect();
        let (mut agents, mut features, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
        for (number, RoleText { name, agent, reward }) in text.agents.into_iter().enumerate() {
            let (agent, observed) = read_role(number, agent).map_err(SpecError::Refused)?;
            agents.push((name, Arc::new(agent)));
            features.push(observed);
            rewards.push(reward);
        }
        let place = (source.folder.as_path(), source.name.as_str(), source.text.as_str());
        let learning = Learning { agents: agents.clone(), own: own.clone() };
        let template = Template::new(place, &source.overrides, learning, &paths)?;
        let (mut network, mut learners) = (NetworkFeatures::default(), Vec::new());
        at_ends(&template, &draws, |run| {
            network.add(run);
            let found = run.flows.iter().filter_map(learner_of);
            let new: Vec<LearnerSpec> = found.filter(|learner| !learners.contains(learner)).collect();
            learners.extend(new);
        })?;
        if learners.is_empty() {
            let why = "no flow learns: expected one with `cc = \"external\"`";
            return Err(SpecError::Refused(why.to_owned()));
        }
        let mut roles = Vec::new();
        for (((_, agent), observed), reward) in agents.into_iter().zip(features).zip(rewards) {
            let mut of_sender = 0..;
            let column = |feature: Feature<String>| {
                if !network::has(&feature.measure) {
                    return Ok(ObservationColumn::Sender(of_sender.next().unwrap_or_default()));
                }
                let place = network.find(&feature.measure).map_err(|error| refused("observe", error))?;
                Ok(ObservationColumn::Network(feature.of(place)))
            };
            let columns = observed.into_iter().map(column).collect::<Result<_, SpecError>>()?;
            let reward = reward.iter().map(|term| term.read(&network)).collect::<Result<_, _>>()?;
            roles.push(Role { agent, columns, reward });
        }
        let stop = text.stop.iter().map(|stop| stop.read(&network)).collect::<Result<Vec<StopCondition>, _>>()?;
        let rewarded = roles.iter().flat_map(|role| &role.reward).map(|term| term.feature.measure);
        let mut seen = rewarded.chain(stop.iter().map(|stop| stop.measure));
        let looks = text.watch
            || seen.any(|seen| matches!(seen, ObservedValue::Network(_)))
            || roles.iter().any(|role| role.of_network().next().is_some());
        Ok(Spec {
            template,
            roles,
            learners,
            network: looks.then_some(network),
            has_own: !own.is_empty(),
            stop,
            max_steps: text.max_steps.unwrap_or(u64::MAX).max(1),
            paths,
            draws,
        })
    }

    /// The paths whose values are drawn for each episode.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The number of values in the widest observation of any learner.
    pub fn width(&self) -> usize {
        self.of_learners().map(Role::width).max().unwrap_or(0)
    }

    /// The same of the actions.
    pub(crate) fn actions(&self) -> usize {
        self.of_learners().map(|role| role.agent.laws.len()).max().unwrap_or(0)
    }

    fn of_learners(&self) -> impl Iterator<Item = &Role> {
        self.learners.iter().map(|learner| &self.roles[learner.role])
    }

    /// The names of the network's values, if they are used.
    pub fn network_names(&self) -> Vec<String> {
        self.network.as_ref().map(NetworkFeatures::names).unwrap_or_default()
    }
}

/// The runs with every distribution at its ends, the others at one of theirs.
fn at_ends(template: &Template, draws: &[Distribution], mut see: impl FnMut(&RunSpec)) -> Result<(), SpecError> {
    let ends: Vec<Vec<String>> = draws.iter().map(Distribution::ends).collect();
    let first: Vec<String> = ends.iter().map(|ends| ends[0].clone()).collect();
    see(&template.spec(0, &first)?);
    for (gap, ends) in ends.iter().enumerate() {
        for end in &ends[1..] {
            let mut values = first.clone();
            values[gap] = end.clone();
            see(&template.spec(0, &values)?);
        }
    }
    Ok(())
}

/// The learner of a flow whose actions come from outside, now or later in the run.
fn learner_of(flow: &FlowSpec) -> Option<LearnerSpec> {
    let HostSpec::Endpoint(sender) = &flow.sender else { return None };
    let mut controllers = [&sender.cc].into_iter().chain(flow.schedule.iter().map(|change| &change.cc));
    let role = controllers.find_map(|cc| match cc {
        CcSpec::External(agent, _) => Some(agent.number),
        _ => None,
    })?;
    flow.mptcp.is_none().then(|| LearnerSpec { id: flow.id.clone(), role })
}

fn seen(name: &str, network: &NetworkFeatures) -> Result<ObservedValue, String> {
    if network::has(name) {
        network.find(name).map(ObservedValue::Network)
    } else {
        measure_by_name(name).map(ObservedValue::Sender)
    }
}

impl TermText {
    fn read(&self, network: &NetworkFeatures) -> Result<Term, SpecError> {
        let feature = read_feature(&self.feature, |name| seen(name, network));
        let feature = feature.map_err(|error| refused("reward", error))?;
        if feature.over.is_some() {
            return Err(refused("reward", "a term is of one interval, without `over`"));
        }
        if !self.weight.is_finite() {
            return Err(refused("reward", "expected a finite weight"));
        }
        Ok(Term { feature, weight: self.weight })
    }
}

impl StopText {
    fn read(&self, network: &NetworkFeatures) -> Result<StopCondition, SpecError> {
        let measure = seen(&self.measure, network).map_err(|error| refused("stop", error))?;
        if self.above.is_none() && self.below.is_none() {
            return Err(refused("stop", format!("`{}`: expected `above` or `below`", self.measure)));
        }
        if self.intervals == 0 {
            return Err(refused("stop", format!("`{}`: expected at least one interval", self.measure)));
        }
        let (above, below, intervals, after) = (self.above, self.below, self.intervals, self.after);
        Ok(StopCondition { measure, above, below, intervals, after })
    }
}

impl StopCondition {
    /// Returns true if the interval meets the condition.
    pub(crate) fn holds(&self, measures: &Measures, network: &[f64]) -> bool {
        let value = self.measure.of(measures, network);
        self.above.is_some_and(|bound| value > bound) || self.below.is_some_and(|bound| value < bound)
    }
}
