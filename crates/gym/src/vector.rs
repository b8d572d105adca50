//! Many environments at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use ackclock_trace::Summary;

use crate::env::{Env, EnvShape, Snapshot, StepOutcome};
use crate::spec::{Spec, SpecError};

/// Interval at which a step over several threads checks for cancellation.
const PATIENCE: Duration = Duration::from_millis(50);

/// The step at which an environment whose episode is over begins the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autoreset {
    /// The next step, whose actions are ignored.
    NextStep,
    /// The same step: the observation is the first one of the new episode, the last one is in
    /// [`StepRows::last`].
    SameStep,
    /// None: only an explicit reset begins an episode.
    Disabled,
}

/// The results of a step: a row for each learner of each environment, environment by environment.
#[derive(Clone, Debug, Default)]
pub struct StepRows {
    /// Observations, one after another.
    pub observations: Vec<f32>,
    /// The last observations of episodes that are over, with [`Autoreset::SameStep`]; others are
    /// old.
    pub last: Vec<f32>,
    /// Rewards.
    pub rewards: Vec<f64>,
    /// 1 where the episode came to an end of its own.
    pub terminated: Vec<u8>,
    /// 1 where the scenario or the steps are at an end.
    pub truncated: Vec<u8>,
    /// 1 where the learner decides now.
    pub decides: Vec<u8>,
    /// 1 where the episode has this learner.
    pub present: Vec<u8>,
    /// Seconds since the start of the run.
    pub times: Vec<f64>,
}

impl StepRows {
    fn new(rows: usize, width: usize) -> StepRows {
        StepRows {
            observations: vec![0.0; rows * width],
            last: vec![0.0; rows * width],
            rewards: vec![0.0; rows],
            terminated: vec![0; rows],
            truncated: vec![0; rows],
            decides: vec![0; rows],
            present: vec![0; rows],
            times: vec![0.0; rows],
        }
    }

    fn copy(&mut self, from: &StepRows, row: usize, width: usize) {
        let rows = from.rewards.len();
        let wide = row * width..(row + rows) * width;
        self.observations[wide.clone()].copy_from_slice(&from.observations);
        self.last[wide].copy_from_slice(&from.last);
        self.rewards[row..row + rows].copy_from_slice(&from.rewards);
        self.terminated[row..row + rows].copy_from_slice(&from.terminated);
        self.truncated[row..row + rows].copy_from_slice(&from.truncated);
        self.decides[row..row + rows].copy_from_slice(&from.decides);
        self.present[row..row + rows].copy_from_slice(&from.present);
        self.times[row..row + rows].copy_from_slice(&from.times);
    }
}

/// Environments that one thread steps, with their rows.
#[derive(Debug)]
struct EnvGroup {
    envs: Vec<Env>,
    /// Episodes that are over and wait for a reset.
    over: Vec<bool>,
    autoreset: Autoreset,
    shape: EnvShape,
    actions: Vec<f32>,
    rows: StepRows,
    results: Vec<Option<Summary<()>>>,
    keeps_results: bool,
}

/// A command to a group.
#[derive(Clone, Debug)]
enum Task {
    Step,
    /// Reset those that are chosen, with the seed of each.
    Reset(Vec<Option<u64>>, Vec<bool>),
}

impl EnvGroup {
    fn new(spec: &Arc<Spec>, count: usize, autoreset: Autoreset) -> EnvGroup {
        // Each has its own copy of the scenario, so that no two threads share anything.
        let envs: Vec<Env> = (0..count).map(|_| Env::new(Arc::new(Spec::clone(spec)))).collect();
        let shape = envs.first().map_or(EnvShape { learners: 0, width: 0, actions: 0 }, Env::shape);
        let rows = count * shape.learners;
        EnvGroup {
            over: vec![true; count],
            results: (0..count).map(|_| None).collect(),
            keeps_results: false,
            actions: vec![0.0; rows * shape.actions],
            rows: StepRows::new(rows, shape.width),
            envs,
            autoreset,
            shape,
        }
    }

    /// Runs a task; returns false if it was cancelled.
    fn run(&mut self, task: &Task, goes_on: &mut dyn FnMut() -> bool) -> Result<bool, SpecError> {
        for number in 0..self.envs.len() {
            let outcome = match task {
                Task::Step => self.step(number, goes_on)?,
                Task::Reset(_, chosen) if !chosen[number] => continue,
                Task::Reset(seeds, _) => self.envs[number].reset(seeds[number], goes_on)?,
            };
            if outcome.interrupted || !self.note(number, outcome, matches!(task, Task::Step), goes_on)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step(&mut self, number: usize, goes_on: &mut dyn FnMut() -> bool) -> Result<StepOutcome, SpecError> {
        if self.over[number] {
            if self.autoreset == Autoreset::Disabled {
                let why = format!("the episode of environment {number} is over: reset it");
                return Err(SpecError::Refused(why));
            }
            return self.envs[number].reset(None, goes_on);
        }
        let numbers = self.shape.learners * self.shape.actions;
        self.envs[number].step(&self.actions[number * numbers..][..numbers], goes_on)
    }

    /// Writes the rows of an environment.
    fn note(
        &mut self,
        number: usize,
        outcome: StepOutcome,
        steps: bool,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, SpecError> {
        let EnvShape { learners, width, .. } = self.shape;
        let (env, rows) = (&mut self.envs[number], &mut self.rows);
        let began_anew = std::mem::replace(&mut self.over[number], outcome.is_over()) || !steps;
        let ends = outcome.is_over() && self.autoreset == Autoreset::SameStep;
        for learner in 0..learners {
            let row = number * learners + learner;
            let (reward, decides) = env.reward(learner);
            // What came before the first decision was not decided.
            rows.rewards[row] = if began_anew { 0.0 } else { reward };
            (rows.decides[row], rows.times[row]) = (u8::from(decides), env.now().as_secs_f64());
            rows.present[row] = u8::from(env.is_present(learner));
            rows.terminated[row] = u8::from(outcome.terminated);
            rows.truncated[row] = u8::from(outcome.truncated);
            let place = if ends { &mut rows.last } else { &mut rows.observations };
            env.observe(learner, &mut place[row * width..(row + 1) * width]);
        }
        if outcome.is_over() && self.keeps_results {
            self.results[number] = Some(env.result()?.clone());
        }
        if ends {
            let first = env.reset(None, goes_on)?;
            self.over[number] = first.is_over();
            for learner in 0..learners {
                let row = number * learners + learner;
                rows.decides[row] = u8::from(env.reward(learner).1);
                rows.present[row] = u8::from(env.is_present(learner));
                env.observe(learner, &mut rows.observations[row * width..(row + 1) * width]);
            }
            return Ok(!first.interrupted);
        }
        Ok(true)
    }
}

/// A thread with a group of its own, which travels.
#[derive(Debug)]
struct Worker {
    tasks: Sender<(Task, EnvGroup)>,
    done: Receiver<(EnvGroup, Result<bool, SpecError>)>,
}

impl Worker {
    fn start(stop: Arc<AtomicBool>) -> std::io::Result<Worker> {
        let (tasks, inbox) = channel::<(Task, EnvGroup)>();
        let (outbox, done) = channel();
        let work = move || {
            for (task, mut group) in inbox {
                let ended = group.run(&task, &mut || !stop.load(Ordering::Relaxed));
                if outbox.send((group, ended)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("ackclock-gym".to_owned()).spawn(work)?;
        Ok(Worker { tasks, done })
    }
}

/// Many environments that are alike.
#[derive(Debug)]
pub struct VecEnv {
    /// `None` while it travels.
    groups: Vec<Option<EnvGroup>>,
    workers: Vec<Worker>,
    stop: Arc<AtomicBool>,
    shape: EnvShape,
    count: usize,
    rows: StepRows,
    is_broken: bool,
}

impl VecEnv {
    /// `count` environments on `threads` threads.
    ///
    /// # Errors
    /// There are no threads.
    ///
    /// # Panics
    /// There are none.
    pub fn new(spec: &Arc<Spec>, count: usize, threads: usize, autoreset: Autoreset) -> Result<VecEnv, SpecError> {
        assert!(count > 0, "no environments");
        let threads = threads.clamp(1, count);
        let share = |group: usize| (group + 1) * count / threads - group * count / threads;
        let groups: Vec<EnvGroup> = (0..threads).map(|group| EnvGroup::new(spec, share(group), autoreset)).collect();
        let shape = groups[0].shape;
        let stop = Arc::new(AtomicBool::new(false));
        let workers = if threads > 1 { threads } else { 0 };
        let workers = (0..workers).map(|_| Worker::start(Arc::clone(&stop))).collect::<Result<_, _>>();
        let workers = workers.map_err(|error| SpecError::Refused(format!("no thread for environments: {error}")))?;
        Ok(VecEnv {
            rows: StepRows::new(count * shape.learners, shape.width),
            groups: groups.into_iter().map(Some).collect(),
            is_broken: false,
            workers,
            stop,
            shape,
            count,
        })
    }

    /// The sizes of what each takes and gives.
    pub fn shape(&self) -> EnvShape {
        self.shape
    }

    /// The number of environments.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows of the last step.
    pub fn rows(&self) -> &StepRows {
        &self.rows
    }

    /// The summaries of episodes are kept when they are over.
    pub fn keep_results(&mut self, keeps: bool) {
        self.groups.iter_mut().flatten().for_each(|group| group.keeps_results = keeps);
    }

    /// The summary of the last episode of an environment that is over, if they are kept.
    pub fn result(&self, number: usize) -> Option<&Summary<()>> {
        let (group, number) = self.place(number)?;
        group.results[number].as_ref()
    }

    /// An environment.
    pub fn env(&self, number: usize) -> Option<&Env> {
        let (group, number) = self.place(number)?;
        group.envs.get(number)
    }

    /// The same, to look into its learners.
    pub fn env_mut(&mut self, mut number: usize) -> Option<&mut Env> {
        for group in self.groups.iter_mut().flatten() {
            if number < group.envs.len() {
                return group.envs.get_mut(number);
            }
            number -= group.envs.len();
        }
        None
    }

    fn place(&self, mut number: usize) -> Option<(&EnvGroup, usize)> {
        for group in self.groups.iter().flatten() {
            if number < group.envs.len() {
                return Some((group, number));
            }
            number -= group.envs.len();
        }
        None
    }

    /// Begins new episodes: of all environments, or of those chosen, each with its seed if it has
    /// one. `false` if `goes_on` has broken it off.
    ///
    /// # Errors
    /// As [`Env::reset`].
    ///
    /// # Panics
    /// There is not one seed and one choice for each.
    pub fn reset(
        &mut self,
        seeds: &[Option<u64>],
        chosen: &[bool],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, SpecError> {
        assert!(seeds.len() == self.count && chosen.len() == self.count, "seeds and environments");
        if chosen.iter().all(|chosen| *chosen) {
            self.is_broken = false;
        }
        let mut first = 0;
        let tasks = self.groups.iter().flatten().map(|group| {
            let range = first..first + group.envs.len();
            first = range.end;
            Task::Reset(seeds[range.clone()].to_vec(), chosen[range].to_vec())
        });
        let tasks: Vec<Task> = tasks.collect();
        self.run(&tasks, goes_on)
    }

    /// Gives an action for each learner of each environment, and goes to the next decision in each.
    /// `false` if `goes_on` has broken it off; then only a reset of all helps.
    ///
    /// # Errors
    /// As [`Env::step`].
    ///
    /// # Panics
    /// There is not one action for each row.
    pub fn step(&mut self, actions: &[f32], goes_on: &mut dyn FnMut() -> bool) -> Result<bool, SpecError> {
        assert_eq!(actions.len(), self.count * self.shape.learners * self.shape.actions, "actions and rows");
        if self.is_broken {
            return Err(SpecError::Refused("a step was broken off: reset the environments".to_owned()));
        }
        let mut first = 0;
        for group in self.groups.iter_mut().flatten() {
            let rows = group.actions.len();
            group.actions.copy_from_slice(&actions[first..first + rows]);
            first += rows;
        }
        self.run(&[Task::Step], goes_on)
    }

    /// Restores the state of an equal environment, as [`Env::restore`]. Returns false if `goes_on`
    /// cancelled it.
    ///
    /// # Errors
    /// As [`Env::restore`], or there is no such environment.
    pub fn restore(
        &mut self,
        number: usize,
        to: &Snapshot,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool, SpecError> {
        let (mut place, mut row) = (number, 0);
        for group in self.groups.iter_mut().flatten() {
            if place < group.envs.len() {
                let outcome = group.envs[place].restore(to, goes_on)?;
                if !to.has_begun {
                    group.over[place] = true;
                    return Ok(true);
                }
                let steps = !to.taken.is_empty();
                let complete = !outcome.interrupted && group.note(place, outcome, steps, goes_on)?;
                self.rows.copy(&group.rows, row, self.shape.width);
                self.is_broken = !complete;
                return Ok(complete);
            }
            place -= group.envs.len();
            row += group.rows.rewards.len();
        }
        Err(SpecError::Refused(format!("there is no environment {number}")))
    }

    /// Each group does its task; of one task, all do that.
    fn run(&mut self, tasks: &[Task], goes_on: &mut dyn FnMut() -> bool) -> Result<bool, SpecError> {
        let task = |group: usize| &tasks[group.min(tasks.len() - 1)];
        let (mut complete, mut error) = (true, None);
        let mut note = |ended: Result<bool, SpecError>| match ended {
            Ok(whole) => complete &= whole,
            Err(why) => error = error.take().or(Some(why)),
        };
        if self.workers.is_empty() {
            if let Some(Some(group)) = self.groups.first_mut() {
                note(group.run(task(0), goes_on));
            }
        } else {
            self.stop.store(false, Ordering::Relaxed);
            for (number, worker) in self.workers.iter().enumerate() {
                if let Some(group) = self.groups[number].take() {
                    let _ = worker.tasks.send((task(number).clone(), group));
                }
            }
            for (number, worker) in self.workers.iter().enumerate() {
                let (group, ended) = loop {
                    match worker.done.recv_timeout(PATIENCE) {
                        Ok(done) => break done,
                        Err(RecvTimeoutError::Timeout) if goes_on() => {}
                        Err(RecvTimeoutError::Timeout) => self.stop.store(true, Ordering::Relaxed),
                        Err(RecvTimeoutError::Disconnected) => {
                            self.is_broken = true;
                            return Err(SpecError::Refused("a thread of the environments has ended".to_owned()));
                        }
                    }
                };
                self.groups[number] = Some(group);
                note(ended);
            }
        }
        let (mut row, width) = (0, self.shape.width);
        for group in self.groups.iter().flatten() {
            self.rows.copy(&group.rows, row, width);
            row += group.rows.rewards.len();
        }
        self.is_broken |= !complete || error.is_some();
        error.map_or(Ok(complete), Err)
    }
}
