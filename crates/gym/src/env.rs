//! One environment: a world that stands at a decision.

use std::sync::Arc;

use ackclock_cc::Learner;
use ackclock_cc::learned::Measures;
use ackclock_sim::{FlowId, Recorders, RunError, World};
use ackclock_trace::Summary;
use ackclock_units::{Random, Span, Time};

use crate::network::NetworkView;
use crate::spec::{ObservationColumn, Role, Spec, SpecError};

/// The error without an episode.
const NO_EPISODE: &str = "there is no episode: reset the environment";

/// Wakeups after which the caller is asked whether to go on.
const TURN: u32 = 1 << 16;

/// The sizes of what an environment takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvShape {
    /// Flows that learn, in one episode or another.
    pub learners: usize,
    /// Numbers of the widest observation of one; behind narrower ones are zeros.
    pub width: usize,
    /// The most numbers of an action of one; further ones have no meaning.
    pub actions: usize,
}

/// The state of the episode after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOutcome {
    /// The episode came to an end of its own: all learners have transferred everything, or a
    /// condition holds by which it stops.
    pub terminated: bool,
    /// The scenario, or the steps, are at an end.
    pub truncated: bool,
    /// The caller has broken the step off; only a reset helps.
    pub interrupted: bool,
}

impl StepOutcome {
    /// The episode is over, in one way or another.
    pub fn is_over(self) -> bool {
        self.terminated || self.truncated
    }
}

/// A point in an episode: what brings an environment there again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The seed, and the number of the episode since that was given.
    pub random: (u64, u64),
    /// True if there was a reset.
    pub has_begun: bool,
    /// The actions of all steps, one after another.
    pub taken: Vec<f32>,
}

/// An environment.
#[derive(Debug)]
pub struct Env {
    spec: Arc<Spec>,
    world: Option<Box<World>>,
    end: Time,
    now: Time,
    learners: Vec<LearnerState>,
    /// The current episode, with the actions that led to the current state.
    at: Snapshot,
    run_seed: u64,
    drawn: Vec<String>,
    steps: u64,
    is_over: bool,
    result: Option<Summary<()>>,
}

#[derive(Debug, Default)]
struct LearnerState {
    /// None in an episode that lacks it.
    flow: Option<FlowId>,
    /// Consecutive intervals in which each stopping condition held.
    held: Vec<u32>,
    intervals: u32,
    /// The learner decides at this step.
    decides: bool,
    reward: f64,
    view: Option<NetworkView>,
    /// Features of the network in the intervals of an observation, the newest last.
    told: Vec<f32>,
}

impl LearnerState {
    /// The interval has ended, with these values of the network.
    fn tell(&mut self, role: &Role) {
        let (width, values) = (role.of_network().count(), self.view.as_ref().map_or(&[][..], |view| &view.values));
        self.told.copy_within(width.., 0);
        let from = self.told.len() - width;
        for (place, feature) in self.told[from..].iter_mut().zip(role.of_network()) {
            *place = feature.tell(values[feature.measure]) as f32;
        }
    }
}

impl Env {
    /// An environment before its first reset.
    pub fn new(spec: Arc<Spec>) -> Env {
        let learners = spec.learners.iter().map(|_| LearnerState::default()).collect();
        Env {
            spec,
            world: None,
            end: Time::ZERO,
            now: Time::ZERO,
            learners,
            at: Snapshot::default(),
            run_seed: 0,
            drawn: Vec::new(),
            steps: 0,
            is_over: true,
            result: None,
        }
    }

    /// The sizes of what it takes and gives.
    pub fn shape(&self) -> EnvShape {
        EnvShape { learners: self.learners.len(), width: self.spec.width(), actions: self.spec.actions() }
    }

    /// The environment's specification.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// The names of the flows that learn, in the order of rows.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        self.spec.learners.iter().map(|learner| &*learner.id)
    }

    /// The numbers of observation values and of actions of each learner.
    pub fn widths(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.learners.len()).map(|row| (self.role(row).width(), self.role(row).agent.laws.len()))
    }

    fn role(&self, row: usize) -> &Role {
        &self.spec.roles[self.spec.learners[row].role]
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
    /// A combination of drawn values does not fit the scenario, or a run failed.
    pub fn reset(&mut self, seed: Option<u64>, goes_on: &mut dyn FnMut() -> bool) -> Result<StepOutcome, SpecError> {
        self.at.random = match seed {
            Some(seed) => (seed, 0),
            None => (self.at.random.0, self.at.random.1 + 1),
        };
        self.begin(&mut Recorders::default(), goes_on)
    }

    fn begin(
        &mut self,
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<StepOutcome, SpecError> {
        let (seed, episode) = self.at.random;
        let mut random = Random::for_component(seed, episode, "gym");
        // As a scenario may have it.
        self.run_seed = random.bits() >> 1;
        self.drawn.clear();
        self.drawn.extend(self.spec.draws.iter().map(|distribution| distribution.draw(&mut random)));
        (self.world, self.is_over) = (None, true);
        let run = self.spec.template.spec(self.run_seed, &self.drawn)?;
        let mut world = Box::new(World::new(&run));
        world.start(recorders);
        world.wait_for_actions();
        let conditions = self.spec.stop.len();
        for (row, learner) in self.learners.iter_mut().enumerate() {
            let role = &self.spec.roles[self.spec.learners[row].role];
            let blank = role.of_network().map(|feature| feature.tell(0.0) as f32);
            let told = std::iter::repeat_n(blank, role.agent.history).flatten().collect();
            *learner = LearnerState { held: vec![0; conditions], told, ..LearnerState::default() };
        }
        for flow in world.learning().filter(|flow| world.has_external(*flow)) {
            let id = &run.flows[flow.index()].id;
            let Some(row) = self.spec.learners.iter().position(|learner| learner.id == *id) else {
                let why = format!("with the values that were drawn, `{id}` learns, which it does at no end of them");
                return Err(SpecError::Refused(why));
            };
            self.learners[row].flow = Some(flow);
            self.learners[row].view = self.spec.network.as_ref().map(|network| network.view(world.lookout()));
        }
        (self.end, self.now) = (world.end(), Time::ZERO);
        (self.world, self.steps, self.is_over, self.result) = (Some(world), 0, false, None);
        self.at.has_begun = true;
        self.at.taken.clear();
        self.go_to_decision(recorders, goes_on)
    }

    /// Gives each learner the numbers of its action, and goes to the next decision. Those of
    /// learners that do not decide now are ignored, and one that is no number changes nothing.
    ///
    /// # Errors
    /// The episode is over, or the run has failed.
    ///
    /// # Panics
    /// There is not one action for each learner.
    pub fn step(&mut self, actions: &[f32], goes_on: &mut dyn FnMut() -> bool) -> Result<StepOutcome, SpecError> {
        self.step_with(actions, &mut Recorders::default(), goes_on)
    }

    fn step_with(
        &mut self,
        actions: &[f32],
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<StepOutcome, SpecError> {
        let width = self.spec.actions();
        assert_eq!(actions.len(), self.learners.len() * width, "actions and learners");
        let Some(world) = self.world.as_mut().filter(|_| !self.is_over) else {
            return Err(SpecError::Refused("the episode is over: reset the environment".to_owned()));
        };
        self.steps += 1;
        self.at.taken.extend(actions);
        for (learner, action) in self.learners.iter().zip(actions.chunks_exact(width)) {
            if let Some(flow) = learner.flow.filter(|_| learner.decides) {
                world.act(flow, action);
            }
        }
        world.go_on_after_actions();
        self.go_to_decision(recorders, goes_on)
    }

    fn go_to_decision(
        &mut self,
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<StepOutcome, SpecError> {
        let Some(world) = &mut self.world else { return Ok(StepOutcome::default()) };
        let mut turn = TURN;
        let mut has_ended = false;
        while world.waiting().is_empty() {
            let Some(now) = world.step(self.end) else {
                has_ended = true;
                break;
            };
            world.keep_up(now, recorders)?;
            turn -= 1;
            if turn == 0 {
                turn = TURN;
                if !goes_on() {
                    self.is_over = true;
                    return Ok(StepOutcome { interrupted: true, ..StepOutcome::default() });
                }
            }
        }
        if self.spec.has_own {
            world.check_some_data()?;
        }
        if has_ended {
            world.end_intervals(self.end);
            self.now = self.end;
        } else {
            self.now = world.decided_at();
        }
        let mut stops = false;
        let mut all_over = self.learners.iter().any(|learner| learner.flow.is_some());
        for (row, learner) in self.learners.iter_mut().enumerate() {
            (learner.decides, learner.reward) = (false, 0.0);
            let Some(flow) = learner.flow else { continue };
            learner.decides = world.waiting().contains(&flow);
            all_over &= world.is_over(flow);
            if !learner.decides && !has_ended {
                continue;
            }
            let of = &self.spec.learners[row];
            let role = &self.spec.roles[of.role];
            if let (Some(view), Some(network)) = (&mut learner.view, &self.spec.network) {
                view.look(self.now, world, network, &of.id);
                learner.tell(role);
            }
            let Some(state) = world.learner(flow) else { continue };
            let values = learner.view.as_ref().map_or(&[][..], |view| &view.values);
            learner.reward = role.reward(state.measures(), values);
            learner.intervals += 1;
            for (held, stop) in learner.held.iter_mut().zip(&self.spec.stop) {
                let holds = learner.intervals > stop.after && stop.holds(state.measures(), values);
                *held = if holds { *held + 1 } else { 0 };
                stops |= *held >= stop.intervals;
            }
        }
        let terminated = stops || all_over;
        let truncated = !terminated && (has_ended || self.steps >= self.spec.max_steps);
        let outcome = StepOutcome { terminated, truncated, interrupted: false };
        self.is_over = outcome.is_over();
        Ok(outcome)
    }

    fn learner(&mut self, row: usize) -> Option<&mut Learner> {
        let flow = self.learners[row].flow?;
        self.world.as_mut()?.learner(flow)
    }

    /// Writes the observation of a learner; before its first decision, or where there is none in
    /// this episode, that of zeros.
    ///
    /// # Panics
    /// There is no such learner, or the place is narrower than its observation.
    pub fn observe(&mut self, row: usize, into: &mut [f32]) {
        let spec = Arc::clone(&self.spec);
        let role = &spec.roles[spec.learners[row].role];
        let (into, rest) = into.split_at_mut(role.width());
        rest.fill(0.0);
        let width = role.of_network().count();
        let blank;
        let seen = match self.learner(row) {
            // As most are.
            Some(learner) if width == 0 => return into.copy_from_slice(learner.observation()),
            Some(learner) => {
                blank = learner.observation().to_vec();
                &blank
            }
            None => {
                blank = role.agent.blank();
                &blank
            }
        };
        let told = &self.learners[row].told;
        let senders = role.agent.observes.len();
        for (interval, numbers) in into.chunks_exact_mut(role.columns.len()).enumerate() {
            let mut of_network = told.iter().skip(interval * width);
            for (number, column) in numbers.iter_mut().zip(&role.columns) {
                *number = match column {
                    ObservationColumn::Sender(place) => seen[interval * senders + place],
                    ObservationColumn::Network(feature) => {
                        of_network.next().copied().unwrap_or_else(|| feature.tell(0.0) as f32)
                    }
                };
            }
        }
    }

    /// The measures of the last interval of a learner.
    ///
    /// # Panics
    /// There is no such learner.
    pub fn measures(&mut self, row: usize) -> Option<Measures> {
        self.learner(row).map(|learner| *learner.measures())
    }

    /// The values of the network in the last interval of a learner, in the order of
    /// [`Spec::network_names`].
    ///
    /// # Panics
    /// There is no such learner.
    pub fn network(&self, row: usize) -> &[f64] {
        self.learners[row].view.as_ref().map_or(&[], |view| &view.values)
    }

    /// The reward of the last step, and whether the learner decides now.
    ///
    /// # Panics
    /// There is no such learner.
    pub fn reward(&self, row: usize) -> (f64, bool) {
        (self.learners[row].reward, self.learners[row].decides)
    }

    /// Returns true if the learner of this row exists in this episode.
    ///
    /// # Panics
    ///
    /// There is no such row.
    ///
    /// # Panics
    /// There is no such row.
    pub fn is_present(&self, row: usize) -> bool {
        self.learners[row].flow.is_some()
    }

    /// The current state.
    pub fn snapshot(&self) -> &Snapshot {
        &self.at
    }

    /// Restores the state of an equal environment: the episode runs again with its actions, which
    /// takes as long as it took. `goes_on` is called regularly; returning false cancels.
    ///
    /// # Errors
    /// The snapshot is of another environment, or a run failed.
    pub fn restore(&mut self, to: &Snapshot, goes_on: &mut dyn FnMut() -> bool) -> Result<StepOutcome, SpecError> {
        self.replay(to, &mut Recorders::default(), goes_on)
    }

    fn replay(
        &mut self,
        to: &Snapshot,
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<StepOutcome, SpecError> {
        let width = self.learners.len() * self.spec.actions();
        let other = || SpecError::Refused("the snapshot is of another environment".to_owned());
        if !to.taken.len().is_multiple_of(width) {
            return Err(other());
        }
        self.at.random = to.random;
        if !to.has_begun {
            (self.world, self.is_over, self.result) = (None, true, None);
            self.at = to.clone();
            return Ok(StepOutcome::default());
        }
        let mut outcome = self.begin(recorders, goes_on)?;
        for actions in to.taken.chunks_exact(width) {
            if outcome.interrupted {
                break;
            }
            if outcome.is_over() {
                return Err(other());
            }
            outcome = self.step_with(actions, recorders, goes_on)?;
        }
        Ok(outcome)
    }

    /// Runs the episode again with its actions, as far as it came, with these records: the same
    /// run. `goes_on` is asked now and then.
    ///
    /// # Errors
    /// There was no reset, the run has failed, or it was broken off.
    pub fn again(
        &self,
        recorders: &mut Recorders<'_>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Summary<()>, SpecError> {
        let mut twin = Env::new(Arc::clone(&self.spec));
        if twin.replay(&self.at, recorders, goes_on)?.interrupted {
            return Err(SpecError::Refused("broken off".to_owned()));
        }
        twin.finish(recorders)?;
        twin.result.ok_or_else(|| SpecError::Refused(NO_EPISODE.to_owned()))
    }

    /// The summary of the run until now. It ends an unfinished episode.
    ///
    /// # Errors
    /// There was no reset, or the run has failed.
    pub fn result(&mut self) -> Result<&Summary<()>, SpecError> {
        self.finish(&mut Recorders::default())?;
        self.result.as_ref().ok_or_else(|| SpecError::Refused(NO_EPISODE.to_owned()))
    }

    fn finish(&mut self, recorders: &mut Recorders<'_>) -> Result<(), SpecError> {
        let Some(mut world) = self.world.take() else { return Ok(()) };
        if self.now < self.end {
            world.end_at(self.now);
        }
        self.is_over = true;
        match world.complete(recorders) {
            Ok(()) | Err(RunError::TooMany { .. }) => self.result = Some(world.into_summary()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
