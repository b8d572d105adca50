//! The common parts of the benches: scenarios, programs run under cachegrind, tables and plots.

pub mod cachegrind;
pub mod plot;
pub mod process;
pub mod reference;
pub mod table;
pub mod topology;
