//! Congestion controllers and queue disciplines that are classes of Python.

pub(crate) mod builtin;
pub(crate) mod calls;
pub(crate) mod class;
pub(crate) mod controller;
mod driven_controller;
mod driven_queue;
pub(crate) mod objects;
pub(crate) mod packet;
pub(crate) mod queue;
mod stream;
pub(crate) mod surroundings;

use ackclock_sim::spec::{OwnController, OwnQueue};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use class::OwnClass;
use driven_controller::DrivenController;
use driven_queue::DrivenQueue;

/// Name, class, and name, default, least and most of each parameter.
pub(crate) type Listed<'py> = (String, Bound<'py, PyAny>, Vec<(String, f64, f64, f64)>);
/// Classes of controllers, and of queues.
pub(crate) type Classes<'py> = (Vec<Listed<'py>>, Vec<Listed<'py>>);
/// The same as [`Listed`], to be kept.
type Kept = (String, Py<PyAny>, Vec<(String, f64, f64, f64)>);

/// The classes that a scenario may name.
#[pyclass(name = "Own", frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct PyOwn(pub(crate) ackclock_scenario::Own, Vec<Kept>, Vec<Kept>);

impl PyOwn {
    /// The classes that it was created from.
    pub(crate) fn made_of<'py>(&self, py: Python<'py>) -> Classes<'py> {
        let listed = |(name, class, parameters): &Kept| (name.clone(), class.bind(py).clone(), parameters.clone());
        (self.1.iter().map(listed).collect(), self.2.iter().map(listed).collect())
    }
}

fn kept(listed: &[Listed<'_>]) -> Vec<Kept> {
    listed.iter().map(|(name, class, parameters)| (name.clone(), class.clone().unbind(), parameters.clone())).collect()
}

#[pymethods]
impl PyOwn {
    #[new]
    fn new(controllers: Vec<Listed<'_>>, queues: Vec<Listed<'_>>) -> PyResult<PyOwn> {
        let made_of = (kept(&controllers), kept(&queues));
        let mut own = ackclock::built_in();
        for (name, class, parameters) in controllers {
            let class = OwnClass::of_controller(&name, &class, &parameters)?;
            let build = move |values: &[f64], random| DrivenController::build(&class, values, random);
            let listed = OwnController::new(&name, build);
            own =
                own.controller(parameters.iter().fold(listed, |listed, (name, default, least, most)| {
                    listed.parameter(name, *default, *least..=*most)
                }));
        }
        for (name, class, parameters) in queues {
            let class = OwnClass::of_queue(&name, &class, &parameters)?;
            let changes = class.has("on_change");
            let build = move |values: &[f64], random| DrivenQueue::build(&class, values, random);
            let listed = OwnQueue::new(&name, build);
            let listed = if changes { listed.changes() } else { listed };
            own =
                own.queue(parameters.iter().fold(listed, |listed, (name, default, least, most)| {
                    listed.parameter(name, *default, *least..=*most)
                }));
        }
        match own.problem() {
            Some(problem) => Err(PyValueError::new_err(problem)),
            None => Ok(PyOwn(own, made_of.0, made_of.1)),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, Classes<'py>) {
        (py.get_type::<PyOwn>().into_any(), self.made_of(py))
    }
}
