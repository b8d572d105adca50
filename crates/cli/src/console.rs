//! The terminal, or whatever reads standard output and standard error.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;

use ackclock_scenario::LoadError;
use anyhow::Context;
use serde::Serialize;

/// Bytes that are written to stdout at a time.
const BUFFER: usize = 64 << 10;

/// Writes an error to stderr.
pub(crate) fn tell(error: &anyhow::Error) {
    match error.downcast_ref::<LoadError>() {
        // A scenario's error has its own layout, and styles.
        Some(LoadError::Scenario(error)) => {
            let styled = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let _ = writeln!(io::stderr().lock(), "{}", error.render(styled));
        }
        _ => say(&format!("error: {error:#}")),
    }
}

/// Writes a line to stderr; there is nobody to tell if that fails.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// The text with control characters as escapes, which a terminal would obey; lines stay lines.
fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes other characters as well.
pub(crate) fn escaped(text: &str, others: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || others(c));
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    Cow::Owned(out)
}

/// Writes to stdout. A reader that has left breaks off what only it would have seen; anything else,
/// such as a full disk, is an error: what is there is not complete.
pub(crate) fn print(text: &str) -> anyhow::Result<ControlFlow<()>> {
    print_with(|out| out.write_all(printable(text).as_bytes()))
}

/// Writes a value to stdout as a line of JSON, as [`print`] does.
pub(crate) fn print_line(value: &impl Serialize) -> anyhow::Result<ControlFlow<()>> {
    print_with(|out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

pub(crate) fn print_with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<ControlFlow<()>> {
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}
