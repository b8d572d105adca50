//! One environment: a world that stands at a decision.

use std::sync::Arc;

use ackclock_cc::Learner;
use ackclock_cc::learned::Measures;
use ackclock_sim::spec::RunSpec;
use ackclock_sim::{FlowId, Recorders, RunError, World};
use ackclock_trace::Summary;
use ackclock_units::{Random, Span, Time};

use crate::spec::{Spec, SpecError};

/// Wakeups after which the caller is asked whether to go on.
const TURN: u32 = 1 << 16;

/// The sizes of what an environment takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Flows that learn.
    pub learners: usize,
    /// Numbers of an observation of one.
    pub width: usize,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The episode came to an end of its own: all learners have transferred everything, or a
    /// condition holds by which it stops.
    pub terminated: bool,
    /// The scenario, or the steps, are at an end.
    pub truncated: bool,
    /// The caller has broken the step off; only a reset helps.
    pub interrupted: bool,
}

impl Outcome {
    /// The episode is over, in one way or another.
    pub fn is_over(self) -> bool {
        self.terminated || self.truncated
    }
}

/// An environment.
#[derive(Debug)]
pub struct Env {
    spec: Arc<Spec>,
    world: Option<Box<World>>,
    end: Time,
    now: Time,
    learners: Vec<LearnerState>,
    random: (u64, u64),
    run_seed: u64,
    drawn: Vec<String>,
    steps: u64,
    is_over: bool,
    result: Option<Summary<()>>,
    /// The run of this episode, and the actions of all steps one after another, if they are kept.
    run: Option<Arc<RunSpec>>,
    taken: Vec<f32>,
    keeps_actions: bool,
}

#[derive(Clone, Debug)]
struct LearnerState {
    flow: FlowId,
    id: Arc<str>,
    /// How often each condition has held in a row.
    held: Vec<u32>,
    intervals: u32,
    /// It decides at this step.
    decides: bool,
    reward: f64,
}

impl Env {
    /// An environment before its first reset.
    ///
    /// # Errors
    /// No flow learns.
    pub fn new(spec: Arc<Spec>) -> Result<Env, SpecError> {
        let mut env = Env {
            spec,
            world: None,
            end: Time::ZERO,
            now: Time::ZERO,
            learners: Vec::new(),
            random: (0, 0),
            run_seed: 0,
            drawn: Vec::new(),
            steps: 0,
            is_over: true,
            result: None,
            run: None,
            taken: Vec::new(),
            keeps_actions: false,
        };
        env.begin()?;
        if env.learners.is_empty() {
            let why = "no flow learns: expected one with `cc = \"external\"`";
            return Err(SpecError::Refused(why.to_owned()));
        }
        (env.world, env.is_over) = (None, true);
        Ok(env)
    }

    /// The sizes of what it takes and gives.
    pub fn shape(&self) -> Shape {
        Shape { learners: self.learners.len(), width: self.spec.template.agent().width() }
    }

    /// What it is.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The names of the flows that learn, in the order of rows.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        self.learners.iter().map(|learner| &*learner.id)
    }

    /// The values drawn for this episode, in the order of [`Spec::paths`].
    pub fn drawn(&self) -> &[String] {
        &self.drawn
    }

    /// The seed of the run of this episode.
    pub fn run_seed(&self) -> u64 {
        self.run_seed
    }

    /// The time of the decision at which it stands, since the start of the run.
    pub fn now(&self) -> Span {
        self.now.since(Time::ZERO)
    }

    /// Begins a new episode, and goes to its first decision. With a `seed`, this episode and those
    /// after it depend on it alone. `goes_on` is asked now and then.
    ///
    /// # Errors
    /// A combination of drawn values does not fit the scenario, or the number of learners changes.
    pub fn reset(&mut self, seed: Option<u64>, goes_on: &mut dyn FnMut() -> bool) -> Result<Outcome, SpecError> {
        self.random = match seed {
            Some(seed) => (seed, 0),
            None => (self.random.0, self.random.1 + 1),
        };
        let learners = self.learners.len();
        self.begin()?;
        if self.learners.len() != learners {
            let found = self.learners.len();
            let why = format!("with the values that were drawn, {found} flows learn, expected {learners} as at first");
            (self.world, self.is_over) = (None, true);
            return Err(SpecError::Refused(why));
        }
        self.go_to_decision(goes_on)
    }

    fn begin(&mut self) -> Result<(), SpecError> {
        let (seed, episode) = self.random;
        let mut random = Random::for_component(seed, episode, "gym");
        // As a scenario may have it.
        self.run_seed = random.bits() >> 1;
        self.drawn.clear();
        self.drawn.extend(self.spec.draws.iter().map(|distribution| distribution.draw(&mut random)));
        let run = self.spec.template.spec(self.run_seed, &self.drawn)?;
        let mut world = Box::new(World::new(&run));
        world.start(&Recorders::default());
        world.wait_for_actions();
        self.learners.clear();
        let conditions = self.spec.stop.len();
        for flow in world.learning().collect::<Vec<_>>() {
            if world.has_external(flow) {
                self.learners.push(LearnerState {
                    flow,
                    id: run.flows[flow.index()].id.clone(),
                    held: vec![0; conditions],
                    intervals: 0,
                    decides: false,
                    reward: 0.0,
                });
            }
        }
        (self.end, self.now) = (world.end(), Time::ZERO);
        (self.world, self.steps, self.is_over, self.result) = (Some(world), 0, false, None);
        self.taken.clear();
        self.run = self.keeps_actions.then(|| Arc::new(run));
        Ok(())
    }

    /// Gives an action for each learner, and goes to the next decision. Those of learners that do
    /// not decide now are ignored, and one that is no number changes nothing.
    ///
    /// # Errors
    /// The episode is over, or the run has failed.
    ///
    /// # Panics
    /// There is not one action for each learner.
    pub fn step(&mut self, actions: &[f32], goes_on: &mut dyn FnMut() -> bool) -> Result<Outcome, SpecError> {
        assert_eq!(actions.len(), self.learners.len(), "actions and learners");
        let Some(world) = self.world.as_mut().filter(|_| !self.is_over) else {
            return Err(SpecError::Refused("the episode is over: reset the environment".to_owned()));
        };
        self.steps += 1;
        if self.keeps_actions {
            self.taken.extend(actions);
        }
        for (learner, &action) in self.learners.iter().zip(actions) {
            if learner.decides {
                world.act(learner.flow, f64::from(action));
            }
        }
        world.go_on_after_actions();
        self.go_to_decision(goes_on)
    }

    fn go_to_decision(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<Outcome, SpecError> {
        let Some(world) = &mut self.world else { return Ok(Outcome::default()) };
        let mut turn = TURN;
        let mut has_ended = false;
        while world.waiting().is_empty() {
            if world.step(self.end).is_none() {
                has_ended = true;
                break;
            }
            turn -= 1;
            if turn == 0 {
                turn = TURN;
                if !goes_on() {
                    self.is_over = true;
                    return Ok(Outcome { interrupted: true, ..Outcome::default() });
                }
            }
        }
        if has_ended {
            world.end_intervals(self.end);
            self.now = self.end;
        } else {
            self.now = world.decided_at();
        }
        let mut stops = false;
        let mut all_over = !self.learners.is_empty();
        for learner in &mut self.learners {
            learner.decides = world.waiting().contains(&learner.flow);
            learner.reward = 0.0;
            all_over &= world.is_over(learner.flow);
            if learner.decides || has_ended {
                let Some(state) = world.learner(learner.flow) else { continue };
                learner.reward = self.spec.reward(state.measures());
                learner.intervals += 1;
                for (held, stop) in learner.held.iter_mut().zip(&self.spec.stop) {
                    let holds = learner.intervals > stop.after && stop.holds(state.measures());
                    *held = if holds { *held + 1 } else { 0 };
                    stops |= *held >= stop.intervals;
                }
            }
        }
        let terminated = stops || all_over;
        let truncated = !terminated && (has_ended || self.steps >= self.spec.max_steps);
        let outcome = Outcome { terminated, truncated, interrupted: false };
        self.is_over = outcome.is_over();
        Ok(outcome)
    }

    fn learner(&mut self, row: usize) -> Option<&mut Learner> {
        let flow = self.learners[row].flow;
        self.world.as_mut()?.learner(flow)
    }

    /// Writes the observation of a learner; before its first decision, that of zeros.
    ///
    /// # Panics
    /// There is no such learner, or the place is not as wide as an observation.
    pub fn observe(&mut self, row: usize, into: &mut [f32]) {
        match self.learner(row) {
            Some(learner) => into.copy_from_slice(learner.observation()),
            None => into.copy_from_slice(&self.spec.template.agent().blank()),
        }
    }

    /// The measures of the last interval of a learner.
    ///
    /// # Panics
    /// There is no such learner.
    pub fn measures(&mut self, row: usize) -> Option<Measures> {
        self.learner(row).map(|learner| *learner.measures())
    }

    /// The reward of the last step, and whether the learner decides now.
    ///
    /// # Panics
    /// There is no such learner.
    pub fn reward(&self, row: usize) -> (f64, bool) {
        (self.learners[row].reward, self.learners[row].decides)
    }

    /// Keeps what [`Env::again`] needs, from the next episode on.
    pub fn keep_actions(&mut self) {
        self.keeps_actions = true;
    }

    /// Runs the episode again with its actions, as far as it came, with these records: the same
    /// run. `goes_on` is asked now and then.
    ///
    /// # Errors
    /// There was no reset since actions are kept, the run has failed, or it was broken off.
    pub fn again(
        &self,
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Summary<()>, SpecError> {
        let none = || SpecError::Refused("there is no episode: reset the environment".to_owned());
        let failed = |error: RunError| SpecError::Refused(error.to_string());
        let run = self.run.as_ref().ok_or_else(none)?;
        let mut world = Box::new(World::new(run));
        world.start(recorders);
        world.wait_for_actions();
        let mut steps = self.taken.chunks_exact(self.learners.len().max(1));
        let mut turn = TURN;
        loop {
            while world.waiting().is_empty() {
                let Some(now) = world.step(self.end) else { break };
                world.keep_up(now, recorders).map_err(failed)?;
                turn -= 1;
                if turn == 0 {
                    turn = TURN;
                    if !goes_on() {
                        return Err(SpecError::Refused("broken off".to_owned()));
                    }
                }
            }
            let Some(actions) = steps.next() else { break };
            let waiting = world.waiting().to_vec();
            for (learner, &action) in self.learners.iter().zip(actions) {
                if waiting.contains(&learner.flow) {
                    world.act(learner.flow, f64::from(action));
                }
            }
            world.go_on_after_actions();
        }
        if self.now < self.end {
            world.end_at(self.now);
        }
        match world.complete(recorders) {
            Ok(()) | Err(RunError::TooMany { .. }) => Ok(world.into_summary()),
            Err(error) => Err(failed(error)),
        }
    }

    /// The summary of the run until now. It ends an episode that goes on.
    ///
    /// # Errors
    /// There was no reset, or the run has failed.
    pub fn result(&mut self) -> Result<&Summary<()>, SpecError> {
        if let Some(mut world) = self.world.take() {
            if self.now < self.end {
                world.end_at(self.now);
            }
            self.is_over = true;
            let ended = world.complete(&mut Recorders::default());
            match ended {
                Ok(()) | Err(RunError::TooMany { .. }) => self.result = Some(world.into_summary()),
                Err(error) => return Err(SpecError::Refused(error.to_string())),
            }
        }
        let none = || SpecError::Refused("there is no episode: reset the environment".to_owned());
        self.result.as_ref().ok_or_else(none)
    }
}
