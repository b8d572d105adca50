//! The language of code between `%{` and `}%`: the part of Python that scripts assert with.
//!
//! Statements are `assert`, `print`, assignments, `if` with `elif` and `else`, `pass` and
//! expressions; there are no loops and no definitions, so that every program ends. Expressions have
//! Python's operators and precedence over integers, floats, strings, booleans, `None` and tuples,
//! and the functions `abs min max int float str bool len round range`.
//!
//! # Source
//! Python's language reference; `code.c` of google/packetdrill for the names that are defined
//! before code runs.
//!
//! # Departures
//! - Integers have 128 bits; what does not fit is an error.
//! - `print x` is taken as well as `print(x)`: old scripts are written for Python 2.
//! - Lines may be indented as a whole, as they often are within a script.
//! - Strings and tuples have a greatest length.

use std::collections::BTreeMap;

use crate::error::ParseError;

mod constants;
mod error;
mod eval;
mod parse;
mod syntax;
#[cfg(test)]
mod tests;
mod token;
mod value;

pub use error::CodeError;
pub use value::Value;

/// The assigned variables, kept from one program of a script to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables {
    names: BTreeMap<String, Value>,
}

impl Variables {
    /// Nothing is assigned.
    pub fn new() -> Variables {
        Variables::default()
    }

    /// The value of an assigned name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.names.get(name)
    }
}

/// Code that was read.
#[derive(Clone, Debug)]
pub struct Program {
    body: Vec<syntax::Statement>,
    text: String,
}

impl Program {
    /// Reads code whose first line is line `first_line` of the script. The error's place is in
    /// `text`, its line in the script.
    pub fn parse(text: &str, first_line: u32) -> Result<Program, ParseError> {
        let first_line = first_line.max(1);
        let mut body = parse::parse(text).map_err(|mut error| {
            error.line = error.line.saturating_add(first_line - 1);
            error
        })?;
        parse::renumber(&mut body, first_line - 1);
        Ok(Program { body, text: text.to_owned() })
    }

    /// Runs the code and gives the lines it printed. `lookup` knows the names that the runner
    /// defines, such as `tcpi_snd_cwnd`; they stand before what earlier programs assigned, and
    /// before the constants (`TCP_CA_Open`, `TCP_ESTABLISHED`, `TCPI_OPT_SACK`), whose values are
    /// Linux's.
    pub fn run(&self, env: &mut Variables, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Vec<String>, CodeError> {
        // packetdrill assigns its names anew before each piece of code.
        env.names.retain(|name, _| constants::find(name).is_none() && lookup(name).is_none());
        let mut run = eval::Run { env: &mut env.names, lookup, printed: Vec::new(), text: &self.text };
        match run.block(&self.body) {
            Ok(()) => Ok(run.printed),
            Err(mut error) => {
                error.printed = run.printed;
                Err(*error)
            }
        }
    }
}
