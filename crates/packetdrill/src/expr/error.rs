//! What is wrong with code.

use std::fmt;

use super::value::Value;

/// Code that failed: an assertion that does not hold, or something that cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct CodeError {
    /// The line of the script.
    pub line: u32,
    /// The message of an assertion, or the error; empty where an assertion has no message.
    pub message: String,
    /// The condition of the failed assertion as it is written; `None` for other errors.
    pub condition: Option<String>,
    /// The names in the condition with their values, in their order.
    pub values: Vec<(String, Value)>,
    /// Text printed before.
    pub printed: Vec<String>,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(condition) = &self.condition else { return write!(f, "line {}: {}", self.line, self.message) };
        write!(f, "line {}: `{condition}` does not hold", self.line)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        for (index, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name} = {}", if index == 0 { " (" } else { ", " }, value.repr())?;
        }
        if self.values.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}
