//! Environments: what a policy does in one it does in a scenario, byte for byte; resets repeat;
//! many at a time are as each by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ackclock_cc::learned::{Measure, Policy, Scratch};
use ackclock_gym::{Autoreset, Env, EnvShape, Snapshot, Source, Spec, SpecError, StepOutcome, VecEnv};
use ackclock_scenario::{Own, Scenario, read_policy};
use ackclock_sim::{Recorders, SeriesConfig, SeriesRecorder, World};
use ackclock_trace::{FLOW_NUMBERS, LINK_NUMBERS, SeriesOf, SeriesRecord, SeriesSink, Summary};
use ackclock_units::{Span, Time};

const LINKS: &str = "[links.wire]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue = { kind = \"pfifo\", limit = \"40p\" }\n\
                     loss = { kind = \"iid\", probability = 0.002 }\n";

fn flow(id: &str, cc: &str) -> String {
    format!("[[flows]]\nid = \"{id}\"\npath = [\"wire\"]\nhost = \"linux-6.1\"\ncc = {cc}\n")
}

fn scenario(flows: &str) -> String {
    format!("schema = 1\ntitle = \"test\"\n[run]\nduration = \"4s\"\nseed = 7\n{LINKS}{flows}")
}

/// An environment's settings beside the scenario: `agent` and `rest`.
fn settings(agent: &str, rest: &str) -> String {
    let role = role("", agent);
    format!("{{\"agents\": [{role}], \"stop\": [], \"max_steps\": null, \"randomise\": []{rest}}}")
}

/// An agent by its name, with what it is rewarded for.
fn role(name: &str, agent: &str) -> String {
    let reward = r#""reward": [{"feature": {"measure": "throughput_bps"}, "weight": 1e-6},
                               {"feature": {"measure": "queueing_delay_s"}, "weight": -10}]"#;
    format!("{{\"name\": \"{name}\", \"agent\": {{{agent}}}, {reward}}}")
}

fn agent(decide: &str, action: &str, beneath: &str) -> String {
    format!(
        r#""decide": {decide}, "action": {action}, "beneath": {beneath}, "history": 2, "observe": [
            {{"measure": "latency_inflation"}}, {{"measure": "rtt_ratio", "over": 5, "statistic": "min"}},
            {{"measure": "send_ratio", "limits": [0, 10]}}, {{"measure": "loss_rate", "scale": 10}}]"#
    )
}

const STEP: &str = r#"{"target": "rate", "map": "step", "delta": 0.1, "limit": 1, "least": 1e5, "most": 1e8}"#;
const POWER: &str = r#"{"target": "window", "map": "power", "base": 2, "limit": 1, "least": 2, "most": 500}"#;
const LEVEL: &str = r#"{"target": "window", "map": "level", "limit": 1, "least": 2, "most": 200}"#;

/// A policy with weights that mean nothing.
fn policy_text(agent: &str) -> String {
    let weight = |n: u32| f64::from(n.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 - 0.5;
    let row = |n: u32| format!("{:?}", (0..8).map(|k| weight(8 * n + k + 1)).collect::<Vec<_>>());
    let rows: Vec<String> = (0..6).map(row).collect();
    let last: Vec<f64> = (0..6).map(|k| 2.0 * weight(100 + k)).collect();
    format!(
        "{{\"schema\": 1, {agent}, \"layers\": [
          {{\"weights\": [{}], \"bias\": [0.1, -0.1, 0.2, 0, 0, 0.05], \"activation\": \"tanh\"}},
          {{\"weights\": [{last:?}], \"bias\": [0.05], \"activation\": \"identity\"}}]}}",
        rows.join(", ")
    )
}

fn source(text: &str) -> Source {
    Source { folder: PathBuf::new(), name: "test.toml".to_owned(), text: text.to_owned(), overrides: Vec::new() }
}

fn env(text: &str, json: &str) -> Env {
    try_env(text, json).unwrap_or_else(|error| panic!("{error}"))
}

fn try_env(text: &str, json: &str) -> Result<Env, SpecError> {
    Ok(Env::new(Arc::new(Spec::read(&source(text), json, Own::NONE)?)))
}

fn go_on() -> impl FnMut() -> bool {
    || true
}

/// An episode in which a policy acts from outside.
fn driven(env: &mut Env, policy: &Policy, seed: Option<u64>) -> (u64, f64) {
    let (shape, mut scratch) = (env.shape(), Scratch::default());
    let mut outcome = env.reset(seed, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    let (mut observation, mut steps, mut reward) = (vec![0.0; shape.width], 0, 0.0);
    while !outcome.is_over() {
        let actions: Vec<f32> = (0..shape.learners)
            .map(|row| {
                env.observe(row, &mut observation);
                policy.network().act(&observation, &mut scratch)[0] as f32
            })
            .collect();
        outcome = env.step(&actions, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        reward += (0..shape.learners).map(|row| env.reward(row).0).sum::<f64>();
        steps += 1;
    }
    (steps, reward)
}

fn json(summary: &Summary<()>) -> String {
    serde_json::to_string_pretty(summary).expect("JSON").replace("\"external\"", "\"policy\"")
}

/// A directory of its own, which goes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ackclock-gym-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plain(folder: &Path, text: &str, seed: u64) -> String {
    let scenario = Scenario::parse_in(folder, "test.toml", text.as_bytes(), &[], Own::NONE);
    let mut spec = scenario.unwrap_or_else(|error| panic!("{error}")).spec(0);
    spec.seed = seed;
    let mut world = World::new(&spec);
    world.run(Recorders::default(), &mut |_| std::ops::ControlFlow::Continue(())).expect("it runs");
    json(&world.into_summary())
}

#[test]
fn a_policy_does_in_a_scenario_what_it_does_in_an_environment() {
    let folder = Folder::new("equal");
    let decisions = [
        r#"{"every": "10ms"}"#,
        r#"{"every": "7ms"}"#,
        r#"{"round_trip_times": {"factor": 0.5, "least": "1ms"}}"#,
        r#""round""#,
        r#""ack""#,
    ];
    let actions = [(STEP, "null"), (POWER, "null"), (LEVEL, "null"), (POWER, "\"cubic\""), (LEVEL, "\"bbr\"")];
    let mut seen = std::collections::BTreeSet::new();
    for decide in decisions {
        for (action, beneath) in actions {
            let agent = agent(decide, action, beneath);
            let text = policy_text(&agent);
            std::fs::write(folder.0.join("policy.json"), &text).expect("a file");
            let policy = read_policy(&text).unwrap_or_else(|error| panic!("{error}"));
            let others = flow("other", "\"cubic\"");
            let learning = scenario(&(flow("a", "\"external\"") + &others + &flow("b", "\"external\"")));
            let learned = learning.replace("\"external\"", "{ kind = \"policy\", file = \"policy.json\" }");
            let mut env = env(&learning, &settings(&agent, ""));
            let (steps, _) = driven(&mut env, &policy, Some(3));
            assert!(steps > 50, "{decide} {action}: {steps}");
            let seed = env.run_seed();
            let here = json(env.result().unwrap_or_else(|error| panic!("{error}")));
            assert_eq!(here, plain(&folder.0, &learned, seed), "{decide} {action} {beneath}");
            seen.insert(here);
        }
    }
    // They are not all the same because nothing is done.
    assert_eq!(seen.len(), decisions.len() * actions.len());
}

#[test]
fn a_seed_repeats_an_episode_and_those_after_it() {
    let agent = agent(r#"{"every": "20ms"}"#, POWER, "null");
    let policy = read_policy(&policy_text(&agent)).unwrap_or_else(|error| panic!("{error}"));
    let text = scenario(&(flow("a", "\"external\"") + &flow("other", "\"cubic\"")));
    let draws = settings(&agent, "").replace(
        "\"randomise\": []",
        r#""randomise": [["links.wire.rate", {"log_uniform": ["2mbit", "20mbit"]}],
                         ["links.wire.delay", {"uniform": ["1ms", "50ms"]}],
                         ["flows.other.cc", {"choice": ["cubic", "bbr", "newreno"]}]]"#,
    );
    let mut env = env(&text, &draws);
    let mut episode = |seed| {
        let run = driven(&mut env, &policy, seed);
        (run, env.drawn().to_vec(), env.run_seed(), json(env.result().unwrap_or_else(|error| panic!("{error}"))))
    };
    let first = [episode(Some(5)), episode(None), episode(None)];
    let again = [episode(Some(5)), episode(None), episode(None)];
    assert_eq!(first, again);
    assert_ne!(first[0].1, first[1].1);
    assert_ne!(first[1].2, first[2].2);
    assert_ne!(episode(Some(6)).1, first[0].1);
}

/// Rows of a series, by the names of their values.
#[derive(Debug, Default)]
struct Rows(Vec<(u64, String, f64)>);

impl SeriesSink for Rows {
    fn record(&mut self, record: &SeriesRecord<'_>) -> std::ops::ControlFlow<()> {
        let to = record.to.since(Time::ZERO).as_nanos();
        let mut add = |list: &str, columns: &[&str], numbers: &[Option<f64>]| {
            for (column, number) in columns.iter().zip(numbers) {
                self.0.push((to, format!("{list}.{}.{column}", record.id), number.unwrap_or(0.0)));
            }
        };
        match &record.of {
            SeriesOf::Flow(point) => add("flows", &FLOW_NUMBERS, &record.flow_numbers(point)),
            SeriesOf::Link(point) => add("links", &LINK_NUMBERS, &record.link_numbers(point)),
            _ => {}
        }
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn values_of_the_network_are_those_of_the_series() {
    let network = r#"{"measure": "links.wire.sojourn_ms"}, {"measure": "share"},
                     {"measure": "flows.other.0.cwnd_bytes", "scale": 1e-3, "limits": [0, 1000]},"#;
    let plain = agent(r#"{"every": "100ms"}"#, POWER, "null");
    let watching = plain.replace("\"observe\": [", &format!("\"observe\": [{network}"));
    let text = scenario(&(flow("a", "\"external\"") + &flow("other", "\"cubic\"")));
    let rewarded = settings(&watching, ", \"watch\": true")
        .replace("\"queueing_delay_s\"}, \"weight\": -10", "\"links.wire.forward.sojourn_ms\"}, \"weight\": -1");
    let mut env = env(&text, &rewarded);
    let mut outcome = env.reset(Some(2), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    let (names, width) = (env.spec().network_names(), env.shape().width);
    let place = |name: &str| names.iter().position(|known| known == name).expect(name);
    let [sojourn, window] = ["links.wire.forward.sojourn_ms", "flows.other.0.cwnd_bytes"].map(place);
    let (mut looked, mut before) = (std::collections::BTreeMap::new(), vec![0.0; width / 2]);
    for step in 0.. {
        let values = env.network(0).to_vec();
        let mut observation = vec![0.0; width];
        env.observe(0, &mut observation);
        // Two intervals of seven numbers, the newest behind the one before.
        let newest = &observation[width / 2..];
        assert_eq!(newest[..3], [values[sojourn], values[0], values[window] * 1e-3].map(|value| value as f32));
        assert_eq!(observation[..width / 2], before, "step {step}");
        before = newest.to_vec();
        let measures = env.measures(0).expect("it is there");
        let expected = measures[Measure::Throughput as usize] * 1e-6 - values[sojourn];
        assert!((env.reward(0).0 - expected).abs() < 1e-9, "step {step}");
        looked.insert(env.now().as_nanos(), values);
        if outcome.is_over() {
            break;
        }
        outcome = env.step(&[[1.0, -0.5, 0.25][step % 3]], &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(looked.len(), 40);
    let mut rows = Rows::default();
    let every = Span::from_millis(100);
    let series = SeriesRecorder { config: SeriesConfig { every, window: every }, sink: &mut rows };
    let recorders = &mut Recorders { series: Some(series), ..Recorders::default() };
    let again = env.again(recorders, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json(&again), json(env.result().unwrap_or_else(|error| panic!("{error}"))));
    let mut shares = std::collections::BTreeMap::<u64, Vec<f64>>::new();
    for (to, name, number) in &rows.0 {
        assert_eq!(looked[to][place(name)], *number, "{name} at {to} ns");
        if name.starts_with("flows.") && name.ends_with(".throughput_bps") {
            shares.entry(*to).or_default().push(*number);
        }
    }
    assert!(rows.0.len() > 39 * 46, "{}", rows.0.len());
    for (to, rates) in shares.into_iter().filter(|(_, rates)| rates.len() == 2) {
        assert!((looked[&to][0] - rates[0] / (rates[0] + rates[1])).abs() < 1e-9, "{to}");
    }
    // Who looks changes nothing.
    let mut blind = self::env(&text, &settings(&plain, ""));
    let mut outcome = blind.reset(Some(2), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    let mut step = 0;
    while !outcome.is_over() {
        outcome = blind.step(&[[1.0, -0.5, 0.25][step % 3]], &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        step += 1;
    }
    assert_eq!(json(blind.result().unwrap_or_else(|error| panic!("{error}"))), json(&again));
}

/// The first number of each learner's next action, and what is behind them.
fn actions(step: usize, shape: EnvShape) -> Vec<f32> {
    (0..shape.learners * shape.actions).map(|number| ((number * 7 + step * 3) % 5) as f32 / 2.0 - 1.0).collect()
}

fn observations(env: &mut Env) -> Vec<f32> {
    let shape = env.shape();
    let mut all = vec![f32::NAN; shape.learners * shape.width];
    all.chunks_exact_mut(shape.width).enumerate().for_each(|(row, into)| env.observe(row, into));
    all
}

#[test]
fn learners_may_have_agents_of_their_own_and_their_number_may_be_drawn() {
    let both = STEP.replace("1e5", "1e6");
    let wide = agent(r#"{"every": "50ms"}"#, &format!("[{both}, {LEVEL}]"), "null");
    let narrow = agent(r#"{"every": "20ms"}"#, POWER, "null").replace("\"history\": 2", "\"history\": 1");
    let json = format!(
        "{{\"agents\": [{}, {}], \"stop\": [], \"max_steps\": null, {}}}",
        role("", &narrow),
        role("wide", &wide),
        r#""randomise": [["flows.a.count", {"integer": [1, 3]}]]"#
    );
    let wide = flow("b", "{ kind = \"external\", agent = \"wide\" }");
    let text = scenario(&(flow("a", "\"external\"") + &flow("other", "\"cubic\"") + &wide)).replace("4s", "500ms");
    let mut env = env(&text, &json);
    assert_eq!(env.shape(), EnvShape { learners: 4, width: 8, actions: 2 });
    let rows: Vec<(String, (usize, usize))> = env.flows().map(str::to_owned).zip(env.widths()).collect();
    let row = |id: &str, widths| (id.to_owned(), widths);
    assert_eq!(rows, [row("a.0", (4, 1)), row("b.0", (8, 2)), row("a.1", (4, 1)), row("a.2", (4, 1))]);
    let mut counts = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let mut outcome = env.reset(Some(seed), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        let present: Vec<bool> = (0..4).map(|row| env.is_present(row)).collect();
        let count: usize = env.drawn()[0].parse().expect("a number");
        assert_eq!(present, [true, true, count > 1, count > 2]);
        counts.insert(count);
        let (mut decided, mut step) = ([0; 4], 0);
        while !outcome.is_over() {
            outcome = env.step(&actions(step, env.shape()), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
            step += 1;
            let seen = observations(&mut env);
            for row in 0..4 {
                decided[row] += usize::from(env.reward(row).1);
                let numbers = &seen[row * 8..][..8];
                assert!(numbers.iter().all(|number| number.is_finite()));
                // Behind a narrow one are zeros, and one that is not there has nothing else.
                assert!(row == 1 || numbers[4..] == [0.0; 4]);
                assert!(present[row] || numbers == [0.0; 8] && env.reward(row) == (0.0, false));
            }
        }
        assert!(decided[0] > 20 && (8..11).contains(&decided[1]), "{decided:?}");
    }
    assert_eq!(counts.len(), 3);
    let unknown = text.replace("\"wide\"", "\"wise\"");
    let said = try_env(&unknown, &json).expect_err("there is no such agent").to_string();
    assert!(said.contains("wise") && said.contains("wide"), "{said}");
}

#[test]
fn a_snapshot_brings_an_environment_back() {
    let agent = agent(r#"{"every": "20ms"}"#, POWER, "null");
    let text = scenario(&(flow("a", "\"external\"") + &flow("other", "\"bbr\"")));
    let draws = r#""randomise": [["links.wire.rate", {"uniform": ["2mbit", "20mbit"]}]]"#;
    let json_of = settings(&agent, "").replace("\"randomise\": []", draws);
    let (mut env, mut other) = (env(&text, &json_of), self::env(&text, &json_of));
    let go_on_from = |env: &mut Env, first: usize| {
        let mut seen = vec![observations(env)];
        for step in first.. {
            let outcome = env.step(&actions(step, env.shape()), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
            seen.push(observations(env));
            if outcome.is_over() {
                break;
            }
        }
        (seen, json(env.result().unwrap_or_else(|error| panic!("{error}"))), env.drawn().to_vec())
    };
    env.reset(Some(9), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    env.reset(None, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    for step in 0..70 {
        env.step(&actions(step, env.shape()), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
    }
    let there = env.snapshot().clone();
    let rest = go_on_from(&mut env, 70);
    assert!(rest.0.len() > 100);
    // In itself, whose episode is over, and in another one, which had none.
    for env in [&mut env, &mut other] {
        let outcome = env.restore(&there, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!outcome.is_over() && *env.snapshot() == there);
        assert_eq!(go_on_from(env, 70), rest);
    }
    // The next episodes are the same, too.
    let next = |env: &mut Env| {
        env.reset(None, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        env.drawn().to_vec()
    };
    assert_eq!(next(&mut env), next(&mut other));
    let odd = Snapshot { taken: vec![0.0; 100_000], ..there };
    assert!(env.restore(&odd, &mut go_on()).is_err(), "no episode has so many steps");
}

#[test]
fn an_episode_ends() {
    let agent = agent(r#"{"every": "10ms"}"#, LEVEL, "null");
    let text = scenario(&flow("a", "\"external\""));
    let run = |text: &str, json: &str, action: f32| {
        let mut env = env(text, json);
        let mut outcome = env.reset(Some(1), &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        let mut steps = 0u32;
        while !outcome.is_over() {
            outcome = env.step(&[action], &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
            steps += 1;
        }
        assert!(env.step(&[0.0], &mut go_on()).is_err(), "it is over");
        let summary = env.result().unwrap_or_else(|error| panic!("{error}"));
        (outcome, steps, summary.duration_s, summary.partial)
    };
    let (terminated, truncated) = (
        StepOutcome { terminated: true, ..StepOutcome::default() },
        StepOutcome { truncated: true, ..StepOutcome::default() },
    );
    // The handshake takes 20 ms and a little: the first decision is at 30 ms, the last at 3.99 s.
    assert_eq!(run(&text, &settings(&agent, ""), 0.0), (truncated, 397, 4.0, false));
    let few = settings(&agent, "").replace("\"max_steps\": null", "\"max_steps\": 10");
    assert_eq!(run(&text, &few, 0.0), (truncated, 10, 0.13, true));
    let stop = r#""stop": [{"measure": "queueing_delay_s", "above": 0.02, "below": null, "intervals": 3, "after": 5}]"#;
    let stops = settings(&agent, "").replace("\"stop\": []", stop);
    let (outcome, steps, at, _) = run(&text, &stops, 1.0);
    assert!(outcome == terminated && (6..100).contains(&steps), "{outcome:?} {steps}");
    assert!((at - (f64::from(steps) + 3.0) / 100.0).abs() < 1e-9, "{at}");
    // A window of two segments never fills the queue.
    assert_eq!(run(&text, &stops, -1.0).0, truncated);
    let short = text.replace("cc = \"external\"", "bytes = \"100kB\"\ncc = \"external\"");
    let (outcome, steps, ..) = run(&short, &settings(&agent, ""), 0.0);
    assert!(outcome == terminated && steps < 100, "{outcome:?} {steps}");
}

#[test]
fn many_are_as_each_by_itself() {
    let agent = agent(r#"{"every": "50ms"}"#, POWER, "null");
    let text = scenario(&(flow("a", "\"external\"") + &flow("b", "\"external\""))).replace("4s", "600ms");
    let draws = settings(&agent, "")
        .replace("\"randomise\": []", r#""randomise": [["links.wire.rate", {"uniform": ["2mbit", "20mbit"]}]]"#);
    let spec = Arc::new(Spec::read(&source(&text), &draws, Own::NONE).unwrap_or_else(|error| panic!("{error}")));
    let count = 5;
    for (threads, autoreset) in [(1, Autoreset::NextStep), (3, Autoreset::NextStep), (2, Autoreset::SameStep)] {
        let mut many = VecEnv::new(&spec, count, threads, autoreset).unwrap_or_else(|error| panic!("{error}"));
        let mut each: Vec<Env> = (0..count).map(|_| Env::new(Arc::clone(&spec))).collect();
        let seeds: Vec<Option<u64>> = (0..count as u64).map(|seed| Some(seed + 10)).collect();
        assert!(many.reset(&seeds, &vec![true; count], &mut go_on()).unwrap_or_else(|error| panic!("{error}")));
        let mut over = vec![false; count];
        for (env, seed) in each.iter_mut().zip(&seeds) {
            env.reset(*seed, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
        }
        let width = many.shape().width;
        for step in 0..40u32 {
            let actions: Vec<f32> =
                (0..2 * count).map(|row| ((row as u32 * 7 + step) % 5) as f32 / 2.0 - 1.0).collect();
            assert!(many.step(&actions, &mut go_on()).unwrap_or_else(|error| panic!("{error}")));
            for (number, env) in each.iter_mut().enumerate() {
                let outcome = if std::mem::take(&mut over[number]) {
                    env.reset(None, &mut go_on())
                } else {
                    env.step(&actions[2 * number..2 * number + 2], &mut go_on())
                };
                let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
                let rewards = [env.reward(0).0, env.reward(1).0];
                over[number] = outcome.is_over();
                let rows = many.rows();
                let ends_here = outcome.is_over() && autoreset == Autoreset::SameStep;
                for (learner, reward) in rewards.into_iter().enumerate() {
                    let row = 2 * number + learner;
                    let mut observation = vec![0.0; width];
                    env.observe(learner, &mut observation);
                    let found = if ends_here { &rows.last } else { &rows.observations };
                    assert_eq!(found[row * width..(row + 1) * width], observation, "step {step}, row {row}");
                    assert_eq!(rows.truncated[row] == 1, outcome.truncated, "step {step}, row {row}");
                    let began = rows.times[row] < 0.11;
                    assert!(began || rows.rewards[row] == reward, "step {step}, row {row}");
                }
                if ends_here {
                    env.reset(None, &mut go_on()).unwrap_or_else(|error| panic!("{error}"));
                    over[number] = false;
                }
            }
        }
    }
}

#[test]
fn a_step_can_be_broken_off() {
    let agent = agent(r#"{"every": "300s"}"#, LEVEL, "null");
    let text = scenario(&(flow("a", "\"external\"") + &flow("other", "\"cubic\"")));
    let text = text.replace("10mbit", "10gbit").replace("4s", "400s").replace("0.002", "0.0");
    let spec = Spec::read(&source(&text), &settings(&agent, ""), Own::NONE).unwrap_or_else(|error| panic!("{error}"));
    for threads in [1, 2] {
        let mut many = VecEnv::new(&Arc::new(spec.clone()), 2, threads, Autoreset::NextStep).expect("environments");
        let mut asked = 0;
        let mut breaks = || {
            asked += 1;
            asked < 3
        };
        assert!(!many.reset(&[Some(1), Some(2)], &[true, true], &mut breaks).expect("no error"));
        assert!(many.step(&[0.0, 0.0], &mut go_on()).is_err());
    }
}

#[test]
fn what_is_wrong_is_said() {
    let agent = agent(r#"{"every": "10ms"}"#, LEVEL, "null");
    let text = scenario(&flow("a", "\"external\""));
    let said = |text: &str, json: &str| try_env(text, json).expect_err("it is wrong").to_string();
    let plain = settings(&agent, "");
    assert!(said(&scenario(&flow("a", "\"cubic\"")), &plain).contains("no flow learns"));
    assert!(said(&(text.clone() + "[sweep]\nrepeat = 2\n"), &plain).contains("one run at a time"));
    let draw = |draw: &str| plain.replace("\"randomise\": []", &format!("\"randomise\": [{draw}]"));
    let rate = r#"["links.wier.rate", {"uniform": ["1mbit", "2mbit"]}]"#;
    assert!(said(&text, &draw(rate)).contains("there is no link `wier`"));
    let rate = r#"["links.wire.rate", {"uniform": ["1ms", "2ms"]}]"#;
    assert!(said(&text, &draw(rate)).contains("links.wire.rate"));
    let cc = r#"["flows.a.cc", {"choice": ["external", "cubik"]}]"#;
    assert!(said(&text, &draw(cc)).contains("cubik"));
    assert!(said(&text, &plain.replace("throughput_bps", "throughput")).contains("unknown feature `throughput`"));
    assert!(said(&text, "{").contains("environment:"));
    // Without an environment there is nobody to decide.
    let alone = Scenario::parse("test.toml", text.as_bytes(), &[]).expect_err("it is wrong").to_string();
    assert!(alone.contains("`external` requires an environment"), "{alone}");
    let workload = text.clone()
        + "[[workloads]]\nid = \"w\"\npath = [\"wire\"]\narrivals = { kind = \"incast\", senders = 4, every = \"100ms\" }\nsize = \"1kB\"\n\
           cc = { kind = \"policy\", file = \"none.json\" }\n";
    let error = said(&workload, &plain);
    assert!(error.contains("none.json"), "{error}");
}
