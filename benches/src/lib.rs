//! The common parts of the benches: scenarios, programs run under callgrind, tables and plots.

pub mod callgrind;
pub mod plot;
pub mod process;
pub mod reference;
pub mod table;
pub mod topology;
