//! Algorithms and network stacks from outside, which scenarios may name in addition to the built-in
//! ones.

use std::sync::Arc;

use ackclock_sim::spec::{OwnController, OwnQueue, OwnStack, QueueSpec};
use ackclock_tcp::Controller;
use ackclock_units::outside::{OwnParameter, parameters_problem};

use crate::quantity::is_name;

/// Controllers whose decisions come from an environment, or from the file of a policy.
pub(crate) const LEARNED: [&str; 2] = ["external", "policy"];

/// Congestion controllers, queue disciplines and network stacks from outside.
#[derive(Clone, Debug, Default)]
pub struct Own {
    controllers: Vec<Arc<OwnController>>,
    queues: Vec<Arc<OwnQueue>>,
    stacks: Vec<Arc<OwnStack>>,
    /// Scenarios are read for their results, which may be another machine's.
    is_for_results: bool,
}

impl Own {
    /// None.
    pub const NONE: &'static Own =
        &Own { controllers: Vec::new(), queues: Vec::new(), stacks: Vec::new(), is_for_results: false };

    /// None yet.
    pub fn new() -> Own {
        Own::default()
    }

    /// One more congestion controller.
    #[must_use]
    pub fn controller(mut self, controller: OwnController) -> Own {
        self.controllers.push(Arc::new(controller));
        self
    }

    /// One more queue discipline.
    #[must_use]
    pub fn queue(mut self, queue: OwnQueue) -> Own {
        self.queues.push(Arc::new(queue));
        self
    }

    /// One more network stack.
    #[must_use]
    pub fn stack(mut self, stack: OwnStack) -> Own {
        self.stacks.push(Arc::new(stack));
        self
    }

    /// The congestion controllers.
    pub fn controllers(&self) -> &[Arc<OwnController>] {
        &self.controllers
    }

    /// The queue disciplines.
    pub fn queues(&self) -> &[Arc<OwnQueue>] {
        &self.queues
    }

    /// The network stacks.
    pub fn stacks(&self) -> &[Arc<OwnStack>] {
        &self.stacks
    }

    /// These for scenarios that are read for their results: what a stack requires of the machine
    /// ([`OwnStack::requires`]) may be missing.
    #[must_use]
    pub fn for_results(&self) -> Own {
        Own { is_for_results: true, ..self.clone() }
    }

    /// Returns `true` if what a stack requires of the machine may be missing.
    pub(crate) fn is_for_results(&self) -> bool {
        self.is_for_results
    }

    /// The names of stacks that can be the host of a flow.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &'static str> {
        self.stacks.iter().filter(|stack| stack.can_carry_flows()).map(|stack| stack.name())
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.queues.is_empty() && self.stacks.is_empty()
    }

    /// Why scenarios cannot name these, if they cannot.
    pub fn problem(&self) -> Option<String> {
        let controllers = self.controllers.iter().map(|own| (own.name(), own.parameters()));
        let queues = self.queues.iter().map(|own| (own.name(), own.parameters()));
        // Texts share the names of parameters.
        let keys = |own: &Arc<OwnStack>| {
            let texts = own.texts().iter().map(|text| OwnParameter::new(text.name, 0.0, 0.0..=0.0));
            own.parameters().iter().copied().chain(texts).collect::<Vec<_>>()
        };
        let keys: Vec<Vec<OwnParameter>> = self.stacks.iter().map(keys).collect();
        let stacks = self.stacks.iter().zip(&keys).map(|(own, keys)| (own.name(), keys.as_slice()));
        let is_free = |name: &str| Controller::by_name(name).is_none() && !LEARNED.contains(&name);
        of_kind("congestion controller", controllers, is_free)
            .or_else(|| of_kind("queue discipline", queues, |name| QueueSpec::by_name(name).is_none()))
            .or_else(|| of_kind("stack", stacks, |_| true))
    }

    /// # Panics
    /// There is a [`Own::problem`].
    pub(crate) fn check(&self) {
        if let Some(problem) = self.problem() {
            panic!("{problem}");
        }
    }
}

impl From<OwnController> for Own {
    fn from(controller: OwnController) -> Own {
        Own::new().controller(controller)
    }
}

impl From<OwnQueue> for Own {
    fn from(queue: OwnQueue) -> Own {
        Own::new().queue(queue)
    }
}

impl From<OwnStack> for Own {
    fn from(stack: OwnStack) -> Own {
        Own::new().stack(stack)
    }
}

fn of_kind<'a>(
    what: &str,
    all: impl Iterator<Item = (&'static str, &'a [OwnParameter])>,
    is_free: fn(&str) -> bool,
) -> Option<String> {
    let mut names = Vec::new();
    for (name, parameters) in all {
        let why = match () {
            () if !is_name(name) => "expected letters, digits, - and _",
            () if !is_free(name) => "a built-in one has it",
            () if names.contains(&name) => "another one has it",
            () => "",
        };
        if !why.is_empty() {
            return Some(format!("`{name}` is no name for a {what} of one's own: {why}"));
        }
        if let Some(problem) = parameters_problem(parameters) {
            return Some(format!("the {what} `{name}`: {problem}"));
        }
        if parameters.iter().any(|of| of.name == name) {
            return Some(format!("the {what} `{name}` has a parameter of the same name"));
        }
        names.push(name);
    }
    None
}
