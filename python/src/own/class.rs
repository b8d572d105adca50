//! A class of Python as a kind of controller or queue discipline.

use std::sync::Arc;

use ackclock_cc::{EcnUse, Needs};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::controller::{self, PyCongestionControl};
use super::queue::{self, PyQueueDisc};

/// A class, with what is known of it before there is an instance.
#[derive(Debug)]
pub(crate) struct OwnClass {
    pub(crate) name: String,
    class: Py<PyType>,
    parameters: Vec<String>,
    /// The hooks that it overrides, of those of its base class.
    hooks: Vec<&'static str>,
    pub(crate) needs: Needs,
}

impl OwnClass {
    pub(crate) fn of_controller(
        name: &str,
        class: &Bound<'_, PyAny>,
        parameters: &[(String, f64, f64, f64)],
    ) -> PyResult<Arc<OwnClass>> {
        let base = class.py().get_type::<PyCongestionControl>();
        let mut class =
            OwnClass::of(name, class, &base, "controllers", "ackclock.CongestionControl", &controller::HOOKS)?;
        class.needs = class.needs(base.py())?;
        class.parameters = parameters.iter().map(|(name, ..)| name.clone()).collect();
        Ok(Arc::new(class))
    }

    pub(crate) fn of_queue(
        name: &str,
        class: &Bound<'_, PyAny>,
        parameters: &[(String, f64, f64, f64)],
    ) -> PyResult<Arc<OwnClass>> {
        let base = class.py().get_type::<PyQueueDisc>();
        let mut class = OwnClass::of(name, class, &base, "queues", "ackclock.QueueDisc", &queue::HOOKS)?;
        class.parameters = parameters.iter().map(|(name, ..)| name.clone()).collect();
        Ok(Arc::new(class))
    }

    fn of(
        name: &str,
        class: &Bound<'_, PyAny>,
        base: &Bound<'_, PyType>,
        argument: &str,
        expected: &str,
        known: &[&'static str],
    ) -> PyResult<OwnClass> {
        let wrong = || format!("{argument}[{name:?}]: expected a subclass of {expected}");
        let class = class.cast::<PyType>().map_err(|_| PyTypeError::new_err(wrong()))?;
        if !class.is_subclass(base)? {
            return Err(PyTypeError::new_err(wrong()));
        }
        let mut hooks = Vec::new();
        for &hook in known {
            if !class.getattr(hook)?.is(&base.getattr(hook)?) {
                hooks.push(hook);
            }
        }
        let class = class.clone().unbind();
        Ok(OwnClass { name: name.to_owned(), class, parameters: Vec::new(), hooks, needs: Needs::default() })
    }

    /// Returns `true` if the class overrides a hook.
    pub(crate) fn has(&self, hook: &str) -> bool {
        self.hooks.contains(&hook)
    }

    /// The needs of a controller, from its hooks and attributes.
    fn needs(&self, py: Python<'_>) -> PyResult<Needs> {
        let class = self.class.bind(py);
        let says = |attribute: &str| -> PyResult<bool> {
            let value = class.getattr(attribute)?;
            value.extract().map_err(|_| {
                PyTypeError::new_err(format!("{}.{attribute}: expected True or False, found {value:?}", self.name))
            })
        };
        let ecn = class.getattr("ecn")?;
        let ecn = match &*ecn.extract::<String>().unwrap_or_default() {
            "data" => EcnUse::Data,
            "all" => EcnUse::All,
            "scalable" => EcnUse::Scalable,
            _ => {
                let expected = "expected \"data\", \"all\" or \"scalable\"";
                return Err(PyValueError::new_err(format!("{}.ecn: {expected}, found {ecn:?}", self.name)));
            }
        };
        Ok(Needs {
            arrivals: ["on_arrival", "on_rtt_sample", "on_round"].into_iter().any(|hook| self.has(hook)),
            delivery_rate: self.has("on_lost") || says("delivery_rate")?,
            departures: self.has("on_sent"),
            whole_control: says("whole_control")?,
            ecn,
            siblings: self.has("couple"),
            ..Needs::default()
        })
    }

    /// An instance: its parameters are attributes before its `__init__` is called. `prepare` gets
    /// it before that.
    pub(crate) fn instance<'py>(
        &self,
        py: Python<'py>,
        values: &[f64],
        prepare: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<()>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        let made = class.call_method1("__new__", (class,))?;
        prepare(&made)?;
        self.set(&made, values)?;
        made.call_method0("__init__")?;
        Ok(made)
    }

    /// Sets the parameters of an instance.
    pub(crate) fn set(&self, instance: &Bound<'_, PyAny>, values: &[f64]) -> PyResult<()> {
        self.parameters.iter().zip(values).try_for_each(|(name, value)| instance.setattr(name.as_str(), value))
    }
}
