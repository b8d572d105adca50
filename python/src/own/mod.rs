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
pub(crate) mod surroundings;

use ackclock::{OwnController, OwnQueue};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use class::Class;
use driven_controller::DrivenController;
use driven_queue::DrivenQueue;

/// Name, class, and name, default, least and most of each parameter.
type Listed<'py> = (String, Bound<'py, PyAny>, Vec<(String, f64, f64, f64)>);

/// The classes that a scenario may name.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Own(pub(crate) ackclock::Own);

#[pymethods]
impl Own {
    #[new]
    fn new(controllers: Vec<Listed<'_>>, queues: Vec<Listed<'_>>) -> PyResult<Own> {
        let mut own = ackclock::Own::new();
        for (name, class, parameters) in controllers {
            let class = Class::of_controller(&name, &class, &parameters)?;
            let build = move |values: &[f64], random| DrivenController::build(&class, values, random);
            let listed = OwnController::new(&name, build);
            own =
                own.controller(parameters.iter().fold(listed, |listed, (name, default, least, most)| {
                    listed.parameter(name, *default, *least..=*most)
                }));
        }
        for (name, class, parameters) in queues {
            let class = Class::of_queue(&name, &class, &parameters)?;
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
            None => Ok(Own(own)),
        }
    }
}
