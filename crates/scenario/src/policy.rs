//! Learned policies as files, and what a learner sees and does, in JSON.
//!
//! The same text describes an agent in an environment and, with `schema` and `layers`, a policy
//! that was exported.

use std::sync::Arc;

use ackclock_cc::CcSpec;
use ackclock_cc::learned::{
    Activation, Agent, Decides, Feature, Law, Layer, Map, Measure, Network, Normalisation, Policy, Statistic, Target,
    problem_of,
};
use ackclock_tcp::Controller;
use ackclock_tcp::profile::Profile;
use ackclock_units::{Span, parse_span};
use serde::Deserialize;
use serde_json::Value;

use crate::report::{did_you_mean, listed};

/// The version of the files.
const SCHEMA: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    schema: u64,
    decide: DecideText,
    action: Value,
    #[serde(default)]
    headroom: Option<f64>,
    observe: Vec<FeatureText>,
    history: usize,
    #[serde(default)]
    beneath: Option<String>,
    #[serde(default)]
    normalisation: Option<NormalisationText>,
    layers: Vec<LayerText>,
    /// For people.
    #[serde(default, rename = "about")]
    _about: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentText {
    decide: DecideText,
    action: Value,
    #[serde(default)]
    headroom: Option<f64>,
    observe: Vec<FeatureText>,
    history: usize,
    #[serde(default)]
    beneath: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecideText {
    Every(String),
    RoundTripTimes { factor: f64, least: String },
    Round,
    Ack,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionText {
    target: TargetText,
    map: MapText,
    #[serde(default)]
    delta: Option<f64>,
    #[serde(default)]
    base: Option<f64>,
    limit: f64,
    least: f64,
    most: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetText {
    Rate,
    Window,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum MapText {
    Level,
    Step,
    Power,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeatureText {
    measure: String,
    #[serde(default)]
    over: Option<usize>,
    #[serde(default)]
    statistic: Option<String>,
    #[serde(default)]
    scale: Option<f64>,
    #[serde(default)]
    log: bool,
    #[serde(default)]
    offset: f64,
    #[serde(default)]
    limits: Option<[f64; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalisationText {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    limit: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerText {
    weights: Vec<Vec<f64>>,
    bias: Vec<f64>,
    activation: String,
}

fn by_name<T: Copy>(what: &str, name: &str, all: &[(&'static str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(other, _)| *other == name).map(|&(_, value)| value);
    let names = || all.iter().map(|&(other, _)| other);
    found.ok_or_else(|| unknown(what, name, names()))
}

fn unknown<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let help = did_you_mean(name, names.clone()).map(|help| format!("; {help}")).unwrap_or_default();
    format!("unknown {what} `{name}`{help}; expected one of {}", listed(names))
}

fn span(text: &str) -> Result<Span, String> {
    parse_span(text).map_err(|error| format!("decide: `{text}`: {error}"))
}

impl DecideText {
    fn read(&self) -> Result<Decides, String> {
        Ok(match self {
            DecideText::Every(text) => Decides::Every(span(text)?),
            DecideText::RoundTripTimes { factor, least } => Decides::RoundTripTimes(*factor, span(least)?),
            DecideText::Round => Decides::Round,
            DecideText::Ack => Decides::Ack,
        })
    }
}

impl ActionText {
    fn read(&self) -> Result<Law, String> {
        let target = match self.target {
            TargetText::Rate => Target::Rate,
            TargetText::Window => Target::Window,
        };
        let map = match (&self.map, self.delta, self.base) {
            (MapText::Level, None, None) => Map::Level,
            (MapText::Step, Some(delta), None) => Map::Step { delta },
            (MapText::Power, None, Some(base)) => Map::Power { base },
            _ => return Err("action: expected `delta` with `step`, `base` with `power`, none with `level`".to_owned()),
        };
        Ok(Law { target, map, limit: self.limit, bounds: [self.least, self.most] })
    }
}

/// The laws of an action: of one number, or a list of several.
fn laws(action: Value) -> Result<Vec<Law>, String> {
    let parts = match action {
        Value::Array(parts) => parts,
        one => vec![one],
    };
    let read = |part| serde_json::from_value::<ActionText>(part).map_err(|error| format!("action: {error}"))?.read();
    parts.into_iter().map(read).collect()
}

/// The measure of a sender that has this name.
///
/// # Errors
/// There is none; which there are.
pub fn measure_by_name(name: &str) -> Result<Measure, String> {
    if name == "share" || name.contains('.') {
        return Err(format!("`{name}` is nothing that a sender sees, and so no feature of a policy"));
    }
    let names = Measure::ALL.iter().map(|measure| measure.name());
    Measure::by_name(name).ok_or_else(|| unknown("feature", name, names))
}

impl FeatureText {
    fn read<M>(&self, find: impl Fn(&str) -> Result<M, String>) -> Result<Feature<M>, String> {
        let measure = find(&self.measure)?;
        let over = match (self.over, &self.statistic) {
            (None, None) => None,
            (Some(over), Some(name)) => Some((over, by_name("statistic", name, &Statistic::NAMES)?)),
            _ => return Err(format!("`{}`: expected `over` and `statistic` together", self.measure)),
        };
        let plain = Feature::plain(measure);
        let feature = Feature {
            over,
            scale: self.scale.unwrap_or(1.0),
            log: self.log,
            offset: self.offset,
            limits: self.limits.unwrap_or(plain.limits),
            ..plain
        };
        problem_of(&self.measure, &feature).map_or(Ok(feature), Err)
    }
}

/// A feature in JSON, whose measure `by_name` finds.
///
/// # Errors
/// It is none; in words.
pub fn read_feature<M>(json: &Value, by_name: impl Fn(&str) -> Result<M, String>) -> Result<Feature<M>, String> {
    FeatureText::deserialize(json).map_err(|error| error.to_string())?.read(by_name)
}

fn agent(text: AgentText) -> Result<Agent, String> {
    let beneath = text.beneath.as_deref().map(|name| {
        let names = || ackclock_tcp::CONTROLLERS.iter().map(|known| known.name);
        Controller::by_name(name).map(|known| known.name).ok_or_else(|| unknown("controller beneath", name, names()))
    });
    let agent = Agent {
        number: 0,
        decides: text.decide.read()?,
        laws: laws(text.action)?,
        headroom: text.headroom,
        observes: text.observe.iter().map(|feature| feature.read(measure_by_name)).collect::<Result<_, String>>()?,
        history: text.history,
        beneath: beneath.transpose()?,
    };
    match agent.problem() {
        Some(problem) => Err(problem),
        None => Ok(agent),
    }
}

/// Reads a learner: its observations, the times of its decisions and the effects of its actions.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read_agent(json: &str) -> Result<Agent, String> {
    agent(serde_json::from_str(json).map_err(|error| error.to_string())?)
}

/// A policy, from the text of its file.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read_policy(json: &str) -> Result<Policy, String> {
    let PolicyFile { schema, decide, action, headroom, observe, history, beneath, normalisation, layers, _about } =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    if schema != SCHEMA {
        return Err(format!("its schema is {schema}, expected {SCHEMA}"));
    }
    let agent = agent(AgentText { decide, action, headroom, observe, history, beneath })?;
    let normalisation =
        normalisation.map(|NormalisationText { mean, deviation, limit }| Normalisation { mean, deviation, limit });
    let layer = |(number, layer): (usize, LayerText)| {
        let activation = by_name("activation", &layer.activation, &Activation::NAMES);
        let activation = activation.map_err(|error| format!("layer {number}: {error}"))?;
        Layer::new(number, &layer.weights, layer.bias, activation).map_err(|error| error.to_string())
    };
    let layers: Vec<Layer> = layers.into_iter().enumerate().map(layer).collect::<Result<_, String>>()?;
    let network = Network::new(agent.width(), normalisation, layers).map_err(|error| error.to_string())?;
    Policy::new(Arc::new(agent), network).map_err(|error| error.to_string())
}

/// The controller beneath an agent, as the host has it.
pub(crate) fn beneath(agent: &Agent, profile: &Profile) -> Option<Box<CcSpec>> {
    CcSpec::by_name(agent.beneath?, &profile.stack()).map(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = r#""decide": {"every": "10ms"}, "history": 1, "beneath": "cubic",
        "action": {"target": "window", "map": "power", "base": 2, "limit": 2, "least": 2, "most": 1000},
        "observe": [{"measure": "rtt_s", "over": 5, "statistic": "min", "scale": 10}, {"measure": "loss_rate"}]"#;

    fn policy(agent: &str, rest: &str) -> Result<Policy, String> {
        read_policy(&format!("{{\"schema\": 1, {agent}, {rest}}}"))
    }

    #[test]
    fn a_policy_is_read() {
        let layers = r#""layers": [{"weights": [[1, 2]], "bias": [0.5], "activation": "tanh"}]"#;
        let policy = policy(AGENT, layers).expect("it is one");
        assert_eq!(policy.agent().decides, Decides::Every(Span::from_millis(10)));
        assert_eq!(policy.agent().observes[0].over, Some((5, Statistic::Min)));
        assert_eq!(policy.agent().beneath, Some("cubic"));
        assert_eq!(**policy.agent(), read_agent(&format!("{{{AGENT}}}")).expect("it is one"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let one = r#""layers": [{"weights": [[1, 2, 3]], "bias": [0.5], "activation": "tanh"}]"#;
        let cases = [
            (AGENT.to_owned(), one, "layer 0 has 3 inputs, and an observation has 2 numbers"),
            (AGENT.to_owned(), r#""layers": []"#, "there are no layers"),
            (AGENT.replace("rtt_s", "rtt"), one, "unknown feature `rtt`"),
            (AGENT.replace("cubic", "cubik"), one, "unknown controller beneath `cubik`"),
            (AGENT.replace("10ms", "10"), one, "decide: `10`"),
            (AGENT.replace("\"base\": 2", "\"delta\": 2"), one, "action: expected `delta` with `step`"),
            (AGENT.replace("\"least\": 2", "\"least\": 2000"), one, "action: expected a limit above 0"),
            (AGENT.replace("\"over\": 5,", ""), one, "`rtt_s`: expected `over` and `statistic` together"),
            (AGENT.replace("\"window\"", "\"rate\", \"x\": 1"), one, "unknown field `x`"),
        ];
        for (agent, layers, expected) in cases {
            let error = policy(&agent, layers).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let activation = r#""layers": [{"weights": [[1, 2]], "bias": [0.5], "activation": "gelu"}]"#;
        assert!(policy(AGENT, activation).is_err_and(|error| error.contains("layer 0: unknown activation `gelu`")));
        assert!(read_policy("{").is_err() && read_policy(&format!("{{\"schema\": 2, {AGENT}, {one}}}")).is_err());
    }
}
