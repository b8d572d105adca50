//! The result of a script, and its text.

use std::fmt;

use ackclock_units::Time;

use crate::ast::Expr;

/// Lines of the trace before a failure in its report.
const CONTEXT: usize = 8;

/// The result of running a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The result.
    pub result: ScriptResult,
    /// The events, in order.
    pub trace: Vec<TraceLine>,
    /// Shell lines that were not run and are not known settings either.
    pub unrun_shell: Vec<ShellLine>,
}

/// The result of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptResult {
    /// Everything happened as the script says.
    Passed,
    /// Something did not.
    Failed(Failure),
    /// The script uses something that exists in the language but not here.
    Unsupported {
        /// Where.
        line: u32,
        /// The feature.
        what: String,
    },
    /// The text is no script: a mistake of syntax, an unknown option, an impossible value.
    Invalid {
        /// Where.
        line: u32,
        /// Why.
        message: String,
    },
}

impl ScriptResult {
    /// `passed`, `failed`, `unsupported` or `invalid`.
    pub fn name(&self) -> &'static str {
        match self {
            ScriptResult::Passed => "passed",
            ScriptResult::Failed(_) => "failed",
            ScriptResult::Unsupported { .. } => "unsupported",
            ScriptResult::Invalid { .. } => "invalid",
        }
    }
}

/// The difference from the expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The line of the expectation.
    pub line: u32,
    /// The time on the script's clock when it failed.
    pub time: Time,
    /// The difference in a few words: which field, which result.
    pub reason: String,
    /// The expected packet or result, as the script writes it.
    pub expected: Option<String>,
    /// The actual packet or result, with the script's numbers.
    pub actual: Option<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// When, on the script's clock.
    pub time: Time,
    /// The line of the script that it belongs to, where one does.
    pub line: Option<u32>,
    /// The kind of the line.
    pub kind: TraceKind,
    /// The event in the script's notation.
    pub text: String,
}

/// Kinds of lines in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A packet that arrived.
    Inbound,
    /// A packet that was sent.
    Outbound,
    /// A system call that returned.
    Call,
    /// Code that was run.
    Code,
    /// A shell line: what was made of it.
    Shell,
    /// A remark.
    Note,
}

/// A shell line that was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellLine {
    /// Where.
    pub line: u32,
    /// The command.
    pub text: String,
}

/// Seconds with six decimals, as scripts and tcpdump write times.
pub(crate) struct Seconds(pub(crate) Time);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        if rest % 1_000 == 0 { write!(f, "{seconds}.{:06}", rest / 1_000) } else { write!(f, "{seconds}.{rest:09}") }
    }
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{line:>5}  ")?,
            None => f.write_str("       ")?,
        }
        let sign = match self.kind {
            TraceKind::Inbound => "< ",
            TraceKind::Outbound => "> ",
            TraceKind::Call => "",
            TraceKind::Code => "%",
            TraceKind::Shell => "`",
            TraceKind::Note => "# ",
        };
        write!(f, "{:>12}  {sign}{}", Seconds(self.time).to_string(), self.text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)?;
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected: {expected}")?;
        }
        if let Some(actual) = &self.actual {
            write!(f, "\n    actual: {actual}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    /// The result; after a failure also the last lines of the trace; the shell lines that were not
    /// run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            ScriptResult::Passed => f.write_str("passed")?,
            ScriptResult::Failed(failure) => {
                write!(f, "failed at {failure}")?;
                for line in &self.trace[self.trace.len().saturating_sub(CONTEXT)..] {
                    write!(f, "\n  {line}")?;
                }
            }
            ScriptResult::Unsupported { line, what } => write!(f, "line {line}: unsupported: {what}")?,
            ScriptResult::Invalid { line, message } => write!(f, "line {line}: {message}")?,
        }
        for shell in &self.unrun_shell {
            write!(f, "\n  line {}: not run: `{}`", shell.line, shell.text)?;
        }
        Ok(())
    }
}

/// An argument as scripts write it.
pub(crate) fn expr_text(expr: &Expr) -> String {
    match expr {
        Expr::Ellipsis => "...".to_owned(),
        Expr::Integer(number) => number.to_string(),
        Expr::Text(text) => format!("{text:?}"),
        Expr::Symbol(name) => name.clone(),
        Expr::Or(left, right) => format!("{}|{}", expr_text(left), expr_text(right)),
        Expr::Array(list) => format!("[{}]", list.iter().map(expr_text).collect::<Vec<_>>().join(", ")),
        Expr::Struct(parts) => {
            let parts = parts.iter().map(|(name, value)| match name.as_str() {
                "" => expr_text(value),
                _ => format!("{name}={}", expr_text(value)),
            });
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
        Expr::Function(name, parts) => {
            format!("{name}({})", parts.iter().map(expr_text).collect::<Vec<_>>().join(", "))
        }
    }
}
