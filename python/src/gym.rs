//! Environments: the buffers that NumPy sees, and what is asked beside steps.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use ackclock_gym::{Autoreset, Snapshot, Source, Spec, SpecError, VecEnv};
use ackclock_run::batch;
use ackclock_scenario::{Measure, Override, Policy, Scenario, Scratch, read_policy};
use ackclock_sim::RunError;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::errors;
use crate::lines::Lines;
use crate::own::PyOwn;
use crate::scenario::algorithms;

/// The most numbers of all observations together.
const MOST_NUMBERS: usize = 1 << 27;

fn raise(error: &SpecError) -> PyErr {
    match error {
        SpecError::Scenario(error) => errors::scenario(error, None),
        SpecError::Run(error) => {
            let cause = match error {
                RunError::Own { failure, .. } => failure.source.clone(),
                _ => None,
            };
            errors::failed(&error.to_string(), cause.as_deref())
        }
        SpecError::Refused(why) => PyValueError::new_err(why.clone()),
    }
}

/// Numbers as bytes of the machine.
trait Packable: Copy {
    const SIZE: usize;
    fn write(self, to: &mut [u8]);
}

impl Packable for f32 {
    const SIZE: usize = 4;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_ne_bytes());
    }
}

impl Packable for f64 {
    const SIZE: usize = 8;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_ne_bytes());
    }
}

impl Packable for u8 {
    const SIZE: usize = 1;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to[0] = self;
    }
}

/// Copies numbers into a buffer of Python's.
fn fill<T: Packable>(buffer: &Bound<'_, PyByteArray>, values: &[T]) -> PyResult<()> {
    if buffer.len() != values.len() * T::SIZE {
        return Err(PyRuntimeError::new_err("a buffer of the environments has another size than it was made with"));
    }
    // SAFETY: this thread holds the interpreter, and nothing of Python runs while the slice lives.
    #[expect(unsafe_code, reason = "a buffer of Python's is written in place")]
    let bytes = unsafe { buffer.as_bytes_mut() };
    for (place, &value) in bytes.chunks_exact_mut(T::SIZE).zip(values) {
        value.write(place);
    }
    Ok(())
}

fn floats(buffer: &Bound<'_, PyByteArray>) -> Vec<f32> {
    let bytes = buffer.to_vec();
    let floats = bytes.chunks_exact(4).map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]]));
    floats.collect()
}

/// Memory shared with NumPy: the actions, and the results of a step.
#[derive(Debug)]
struct Buffers {
    actions: Py<PyByteArray>,
    observations: Py<PyByteArray>,
    last: Py<PyByteArray>,
    rewards: Py<PyByteArray>,
    terminated: Py<PyByteArray>,
    truncated: Py<PyByteArray>,
    decides: Py<PyByteArray>,
    present: Py<PyByteArray>,
    times: Py<PyByteArray>,
}

/// Environments that are alike, with buffers of their rows.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Environments {
    envs: Mutex<VecEnv>,
    buffers: Buffers,
    flows: Vec<String>,
    paths: Vec<String>,
    network: Vec<String>,
    /// Learners, numbers of an observation, and numbers of an action.
    shape: (usize, usize, usize),
    widths: Vec<(usize, usize)>,
    count: usize,
    /// The scenario, if it asks for records and they are kept.
    recorded: Option<Scenario>,
    /// It asks for records that are not kept.
    loses_records: bool,
}

/// The scenario as the command line reads it, with another controller for the flows that learn, if
/// it asks for records.
fn recorded(source: &Source, flows: &[String], own: &ackclock_scenario::Own) -> Result<Option<Scenario>, SpecError> {
    let mut overrides = source.overrides.clone();
    let mut groups: Vec<&str> = flows.iter().map(|flow| flow.rsplit_once('.').map_or(&**flow, |(id, _)| id)).collect();
    groups.dedup();
    let other = |id| Override { flag: "learners".to_owned(), text: format!("flows.{id}.cc=newreno") };
    overrides.extend(groups.into_iter().map(other));
    let text = source.text.as_bytes();
    let scenario = Scenario::parse_in(&source.folder, &source.name, text, &overrides, own)?;
    Ok(scenario.records_anything().then_some(scenario))
}

/// Returns `false` after Ctrl-C; keeps the exception that it raised.
fn goes_on(raised: &mut Option<PyErr>) -> bool {
    if raised.is_none() {
        *raised = Python::attach(|py| py.check_signals()).err();
    }
    raised.is_none()
}

impl Environments {
    /// Nobody waits for it: who holds it may wait for the interpreter.
    fn envs(&self) -> PyResult<MutexGuard<'_, VecEnv>> {
        match self.envs.try_lock() {
            Ok(envs) => Ok(envs),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("the environments are in use by another thread"))
            }
            Err(TryLockError::Poisoned(_)) => Err(errors::run("a defect of ackclock: a step has ended in a panic")),
        }
    }

    /// Does something with the environments while other threads of Python go on, and writes the
    /// buffers.
    fn run(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut VecEnv, &mut dyn FnMut() -> bool) -> Result<bool, SpecError> + Send,
    ) -> PyResult<(f64, bool, bool)> {
        let mut raised = None;
        let ended = py.detach(|| {
            let mut envs = self.envs()?;
            work(&mut envs, &mut || goes_on(&mut raised)).map_err(|error| raise(&error))
        });
        if let Some(raised) = raised {
            return Err(raised);
        }
        ended?;
        let envs = self.envs()?;
        let (rows, buffers) = (envs.rows(), &self.buffers);
        fill(buffers.observations.bind(py), &rows.observations)?;
        fill(buffers.last.bind(py), &rows.last)?;
        fill(buffers.rewards.bind(py), &rows.rewards)?;
        fill(buffers.terminated.bind(py), &rows.terminated)?;
        fill(buffers.truncated.bind(py), &rows.truncated)?;
        fill(buffers.decides.bind(py), &rows.decides)?;
        fill(buffers.present.bind(py), &rows.present)?;
        fill(buffers.times.bind(py), &rows.times)?;
        let learners = self.shape.0;
        let present = rows.present[..learners].iter().filter(|present| **present != 0).count();
        let reward = rows.rewards[..learners].iter().sum::<f64>() / present.max(1) as f64;
        Ok((reward, rows.terminated[0] != 0, rows.truncated[0] != 0))
    }

    /// The result of the only environment with what the scenario records: the episode runs again.
    fn recorded(&self, py: Python<'_>, scenario: &Scenario) -> PyResult<Lines> {
        let mut raised = None;
        let line = py.detach(|| {
            let mut envs = self.envs()?;
            let Some(env) = envs.env_mut(0) else { return Err(PyIndexError::new_err("there is no environment")) };
            env.result().map_err(|error| raise(&error))?;
            let line = batch::recorded(scenario, |recorders| env.again(recorders, &mut || goes_on(&mut raised)));
            line.map_err(|error| raise(&error))?.map_err(|error| errors::batch(&error))
        });
        match raised {
            Some(raised) => Err(raised),
            None => Ok(Lines(Arc::new(vec![line?]))),
        }
    }

    fn check(&self, number: usize) -> PyResult<()> {
        let count = self.count;
        let error = || PyIndexError::new_err(format!("environment {number} of {count}"));
        if number < count { Ok(()) } else { Err(error()) }
    }
}

#[pymethods]
impl Environments {
    /// Environments over a text, whose files are in `folder`; `settings` is JSON.
    #[new]
    #[pyo3(signature = (name, text, folder, overrides, settings, count, threads, autoreset, keep_results, own = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        name: String,
        text: String,
        folder: PathBuf,
        overrides: Vec<(String, String)>,
        settings: &str,
        count: usize,
        threads: usize,
        autoreset: &str,
        keep_results: bool,
        own: Option<Py<PyOwn>>,
    ) -> PyResult<Environments> {
        let own = algorithms(own.as_ref());
        if !(1..=1_000_000).contains(&count) || threads == 0 {
            return Err(PyValueError::new_err("expected 1 to 1,000,000 environments, and at least one thread"));
        }
        let autoreset = match autoreset {
            "next_step" => Autoreset::NextStep,
            "same_step" => Autoreset::SameStep,
            _ => Autoreset::Disabled,
        };
        // Others begin their next episode by themselves.
        let is_one = count == 1 && matches!(autoreset, Autoreset::Disabled);
        let overrides = overrides.into_iter().map(|(flag, text)| Override { flag, text }).collect();
        let source = Source { folder, name, text, overrides };
        let made = py.detach(|| {
            let spec = Arc::new(Spec::read(&source, settings, &own)?);
            if count.saturating_mul(spec.width()) > MOST_NUMBERS {
                let why =
                    format!("{count} observations of {} numbers do not fit: at most {MOST_NUMBERS}", spec.width());
                return Err(SpecError::Refused(why));
            }
            let mut envs = VecEnv::new(&spec, count, threads, autoreset)?;
            envs.keep_results(keep_results);
            let flows: Vec<String> =
                envs.env(0).map(|env| env.flows().map(str::to_owned).collect()).unwrap_or_default();
            let recorded = recorded(&source, &flows, &own)?;
            let widths = envs.env(0).map(|env| env.widths().collect()).unwrap_or_default();
            Ok((spec, envs, flows, widths, recorded))
        });
        let (spec, envs, flows, widths, recorded) = made.map_err(|error| raise(&error))?;
        let (shape, rows) = (envs.shape(), count * envs.shape().learners);
        let zeros = |bytes: usize| PyByteArray::new(py, &vec![0; bytes]).unbind();
        Ok(Environments {
            buffers: Buffers {
                actions: zeros(4 * rows * shape.actions),
                observations: zeros(4 * rows * shape.width),
                last: zeros(4 * rows * shape.width),
                rewards: zeros(8 * rows),
                terminated: zeros(rows),
                truncated: zeros(rows),
                decides: zeros(rows),
                present: zeros(rows),
                times: zeros(8 * rows),
            },
            envs: Mutex::new(envs),
            flows,
            paths: spec.paths().to_vec(),
            network: spec.network_names(),
            shape: (shape.learners, shape.width, shape.actions),
            widths,
            count,
            loses_records: recorded.is_some() && !is_one,
            recorded: recorded.filter(|_| is_one),
        })
    }

    /// Learners of an environment, and the most numbers of an observation and of an action of one.
    #[getter]
    fn shape(&self) -> (usize, usize, usize) {
        self.shape
    }

    /// The numbers of each learner's observation, and of its action.
    #[getter]
    fn widths(&self) -> Vec<(usize, usize)> {
        self.widths.clone()
    }

    /// The names of the values of the network, behind the features in `measures`.
    #[getter]
    fn network(&self) -> Vec<String> {
        self.network.clone()
    }

    /// The flows that learn, in the order of rows.
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.flows.clone()
    }

    /// The paths whose values are drawn.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.clone()
    }

    /// Returns `true` if the scenario asks for records that are not kept.
    #[getter]
    fn loses_records(&self) -> bool {
        self.loses_records
    }

    /// A buffer by its name; its contents change with each step.
    fn buffer(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyByteArray>> {
        let Buffers { actions, observations, last, rewards, terminated, truncated, decides, present, times } =
            &self.buffers;
        let buffer = match name {
            "actions" => actions,
            "observations" => observations,
            "last" => last,
            "rewards" => rewards,
            "terminated" => terminated,
            "truncated" => truncated,
            "decides" => decides,
            "present" => present,
            "times" => times,
            _ => return Err(PyValueError::new_err(format!("there is no buffer {name:?}"))),
        };
        Ok(buffer.clone_ref(py))
    }

    /// Begins new episodes: of those chosen, each with a seed or none.
    fn reset(&self, py: Python<'_>, seeds: Vec<Option<u64>>, chosen: Vec<bool>) -> PyResult<()> {
        if seeds.len() != self.count || chosen.len() != self.count {
            return Err(PyValueError::new_err("expected a seed and a choice for each environment"));
        }
        self.run(py, |envs, goes_on| envs.reset(&seeds, &chosen, goes_on)).map(|_| ())
    }

    /// Takes the actions from their buffer. Gives the mean reward of the first environment, and
    /// whether its episode has terminated or was truncated.
    fn step(&self, py: Python<'_>) -> PyResult<(f64, bool, bool)> {
        let actions = floats(self.buffers.actions.bind(py));
        if actions.len() != self.count * self.shape.0 * self.shape.2 {
            return Err(PyRuntimeError::new_err("the buffer of actions has another size than it was made with"));
        }
        self.run(py, move |envs, goes_on| envs.step(&actions, goes_on))
    }

    /// The measures of a learner's last interval, and the values of the network in it.
    fn measures(&self, number: usize, learner: usize) -> PyResult<Vec<f64>> {
        self.check(number)?;
        if learner >= self.shape.0 {
            return Err(PyIndexError::new_err(format!("learner {learner} of {}", self.shape.0)));
        }
        let mut envs = self.envs()?;
        let Some(env) = envs.env_mut(number) else { return Ok(Vec::new()) };
        let mut found = env.measures(learner).map_or_else(|| vec![0.0; Measure::COUNT], |found| found.to_vec());
        found.extend(env.network(learner));
        found.resize(Measure::COUNT + self.network.len(), 0.0);
        Ok(found)
    }

    /// The values drawn for an episode, and the seed of its run.
    fn drawn(&self, number: usize) -> PyResult<(Vec<String>, u64)> {
        self.check(number)?;
        let envs = self.envs()?;
        Ok(envs.env(number).map(|env| (env.drawn().to_vec(), env.run_seed())).unwrap_or_default())
    }

    /// The state of an environment: its seed, the number of the episode since the seed was given,
    /// whether there was one, and the actions so far.
    fn snapshot<'py>(&self, py: Python<'py>, number: usize) -> PyResult<(u64, u64, bool, Bound<'py, PyBytes>)> {
        self.check(number)?;
        let envs = self.envs()?;
        let at = envs.env(number).map(|env| env.snapshot().clone()).unwrap_or_default();
        let taken: Vec<u8> = at.taken.iter().flat_map(|number| number.to_le_bytes()).collect();
        Ok((at.random.0, at.random.1, at.has_begun, PyBytes::new(py, &taken)))
    }

    /// Goes to where an environment that is alike stood.
    fn restore(&self, py: Python<'_>, number: usize, to: (u64, u64, bool, Vec<u8>)) -> PyResult<()> {
        self.check(number)?;
        let (seed, episode, has_begun, taken) = to;
        let taken = taken.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let to = Snapshot { random: (seed, episode), has_begun, taken: taken.collect() };
        self.run(py, |envs, goes_on| envs.restore(number, &to, goes_on)).map(|_| ())
    }

    /// The summary of an episode: the last one that is over if they are kept, otherwise of the one
    /// that goes on, which it ends.
    fn result(&self, py: Python<'_>, number: usize) -> PyResult<Lines> {
        self.check(number)?;
        if let Some(scenario) = &self.recorded {
            return self.recorded(py, scenario);
        }
        let mut envs = self.envs()?;
        let summary = match envs.result(number) {
            Some(kept) => kept.clone(),
            None => match envs.env_mut(number) {
                Some(env) => env.result().map_err(|error| raise(&error))?.clone(),
                None => return Err(PyIndexError::new_err(format!("environment {number} of {}", self.count))),
            },
        };
        let line = batch::line_of(summary).map_err(|error| errors::run(&error.to_string()))?;
        Ok(Lines(Arc::new(vec![line])))
    }
}

/// A policy that was exported.
#[pyclass(frozen, name = "LearnedPolicy", module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct LearnedPolicy(Policy);

#[pymethods]
impl LearnedPolicy {
    /// Reads the text of a file.
    #[new]
    fn new(text: &str) -> PyResult<LearnedPolicy> {
        read_policy(text).map(LearnedPolicy).map_err(PyValueError::new_err)
    }

    /// Numbers of an observation.
    #[getter]
    fn width(&self) -> usize {
        self.0.network().inputs()
    }

    /// Numbers of an action.
    #[getter]
    fn outputs(&self) -> usize {
        self.0.network().outputs()
    }

    /// The actions on observations, one after another in a buffer of 32-bit floats.
    fn act(&self, observations: &[u8]) -> PyResult<Vec<f64>> {
        let size = 4 * self.0.network().inputs();
        if !observations.len().is_multiple_of(size) {
            return Err(PyValueError::new_err(format!("expected observations of {} numbers", size / 4)));
        }
        let mut scratch = Scratch::default();
        let act = |row: &[u8]| -> Vec<f64> {
            let row: Vec<f32> =
                row.chunks_exact(4).map(|four| f32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect();
            self.0.network().act(&row, &mut scratch).to_vec()
        };
        Ok(observations.chunks_exact(size).flat_map(act).collect())
    }
}

/// The features by their names, with what each is.
#[pyfunction]
pub(crate) fn features() -> Vec<(&'static str, String)> {
    let sentence = |measure: &Measure| measure.meaning().trim().to_owned();
    Measure::ALL.iter().map(|measure| (measure.name(), sentence(measure))).collect()
}
