//! The compiled part of the Python package `ackclock`: the crates of the simulator as they are,
//! with results as Arrow data. What a user sees is the Python around it.

mod columns;
mod errors;
mod gym;
#[expect(unsafe_code, reason = "signal handlers")]
mod interrupt;
mod judge;
mod lines;
mod output;
mod own;
mod packed;
mod running;
mod scenario;
mod table;

use pyo3::prelude::pymodule;

#[pymodule]
mod _core {
    use std::ffi::OsString;
    use std::io::Write;

    use ackclock_trace::metrics;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::gym::{Environments, LearnedPolicy, features};
    #[pymodule_export]
    use crate::interrupt::Interrupts;
    #[pymodule_export]
    use crate::judge::PyJudge;
    #[pymodule_export]
    use crate::lines::{Lines, PyParameters};
    #[pymodule_export]
    use crate::output::{PyOutput, manifest};
    #[pymodule_export]
    use crate::own::PyOwn;
    #[pymodule_export]
    use crate::own::builtin::PyController;
    #[pymodule_export]
    use crate::own::controller::PyCongestionControl;
    #[pymodule_export]
    use crate::own::objects::{Ack, Arrival, Flight, Lost, PySignal, RateSample, Sent, Subflow, Verdict};
    #[pymodule_export]
    use crate::own::packet::{NotBefore, PyPacket};
    #[pymodule_export]
    use crate::own::queue::PyQueueDisc;
    #[pymodule_export]
    use crate::own::surroundings::shut_down;
    #[pymodule_export]
    use crate::running::Batch;
    #[pymodule_export]
    use crate::scenario::PyScenario;
    #[pymodule_export]
    use crate::table::Table;

    /// The presentation of metrics in figures as JSON: titles, units, and selection.
    #[pyfunction]
    fn figures() -> String {
        metrics::figures::json().to_string()
    }

    /// The headings of columns with metrics of a list.
    #[pyfunction]
    #[expect(clippy::needless_pass_by_value, reason = "lists of Python are")]
    fn headings(list: &str, paths: Vec<String>) -> Vec<String> {
        metrics::headings(list, &paths.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A value in such a column.
    #[pyfunction]
    fn shown(list: &str, path: &str, value: f64) -> String {
        metrics::shown(list, path).text(Some(value))
    }

    /// The command `ackclock` with these arguments, the program's name first; its exit status.
    #[pyfunction]
    fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| {
            let status = ackclock::main_from(arguments, ackclock::built_in());
            // A program's last output may lack a line end.
            let _ = std::io::stdout().flush();
            status
        })
    }

    /// The version of the package and of the simulator.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// A hash of the sources from which this was compiled.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __build__: &str = env!("ACKCLOCK_BUILD");
}
