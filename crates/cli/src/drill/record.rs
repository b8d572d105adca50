//! The result of a script, and its text.

use std::fmt::{self, Write};

use ackclock_units::Span;

/// The outcome of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was as the script says.
    Passed,
    /// Something was not.
    Failed,
    /// The script asks for something that this runner or this endpoint does not have.
    Unsupported,
    /// The file could not be read, or is no script.
    Error,
}

/// Where in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: Option<u32>,
}

/// A script that was run, or could not be.
#[derive(Clone, Debug)]
pub(crate) struct ScriptRecord {
    /// The file, printable.
    pub(crate) path: String,
    pub(crate) ending: Ending,
    /// The place of the finding; the file as a whole has none.
    pub(crate) place: Option<Place>,
    /// The finding, on one line; empty for a script that passed.
    pub(crate) what: String,
    /// The finding at length, lines with their ends; may be empty.
    pub(crate) report: String,
    /// Lines with shell commands, none of which was run.
    pub(crate) shell_lines: Vec<u32>,
    /// The parts that `#ifdef` leaves out: lines and words.
    pub(crate) left_out: Vec<(u32, String)>,
    /// Duration of the script on its own clock.
    pub(crate) took: Span,
}

impl ScriptRecord {
    /// `path`, `path:line` or `path:line:column`, as editors understand it.
    pub(crate) fn place(&self) -> String {
        let mut out = self.path.clone();
        if let Some(place) = self.place {
            let _ = write!(out, ":{}", place.line);
            if let Some(column) = place.column {
                let _ = write!(out, ":{column}");
            }
        }
        out
    }

    /// A note on lines without effect, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let lines: Vec<String> = self.shell_lines.iter().map(u32::to_string).collect();
        let shell = match lines.len() {
            0 => None,
            1 => Some(format!("1 shell line not run: {}", lines[0])),
            count => Some(format!("{count} shell lines not run: {}", lines.join(", "))),
        };
        let left: Vec<String> = self.left_out.iter().map(|(line, name)| format!("{line} ({name})")).collect();
        let left = (!left.is_empty()).then(|| format!("left out by `#ifdef`: {}", left.join(", ")));
        let notes: Vec<String> = shell.into_iter().chain(left).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// The line of a script, and its report below.
impl fmt::Display for ScriptRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, what, note) = (self.place(), &self.what, self.note());
        match self.ending {
            Ending::Passed => {
                write!(f, "ok   {place} ({} s", seconds(self.took))?;
                if let Some(note) = note {
                    write!(f, "; {note}")?;
                }
                writeln!(f, ")")?;
            }
            Ending::Failed | Ending::Unsupported | Ending::Error => {
                let word = match self.ending {
                    Ending::Failed => "FAIL",
                    Ending::Unsupported => "UNSUPPORTED",
                    Ending::Passed | Ending::Error => "ERROR",
                };
                write!(f, "{word} {place}: {what}")?;
                if let Some(note) = note {
                    write!(f, " ({note})")?;
                }
                writeln!(f)?;
            }
        }
        for line in self.report.lines() {
            writeln!(f, "{}", format_args!("    {line}").to_string().trim_end())?;
        }
        if !self.report.is_empty() {
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The number of scripts with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VerdictCounts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) unsupported: usize,
    pub(crate) errors: usize,
    /// Scripts of which shell lines were not run.
    pub(crate) with_shell: usize,
    /// Scripts of which `#ifdef` leaves something out.
    pub(crate) with_left_out: usize,
}

impl VerdictCounts {
    pub(crate) fn add(&mut self, record: &ScriptRecord) {
        *match record.ending {
            Ending::Passed => &mut self.passed,
            Ending::Failed => &mut self.failed,
            Ending::Unsupported => &mut self.unsupported,
            Ending::Error => &mut self.errors,
        } += 1;
        self.with_shell += usize::from(!record.shell_lines.is_empty());
        self.with_left_out += usize::from(!record.left_out.is_empty());
    }

    pub(crate) fn all(&self) -> usize {
        self.passed + self.failed + self.unsupported + self.errors
    }
}

impl fmt::Display for VerdictCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scripts = if self.all() == 1 { "script" } else { "scripts" };
        write!(f, "{} {scripts}: {} passed", self.all(), self.passed)?;
        for (count, what) in [(self.failed, "failed"), (self.unsupported, "unsupported"), (self.errors, "in error")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if self.with_shell > 0 {
            write!(f, "; of {} some shell lines were not run", self.with_shell)?;
        }
        if self.with_left_out > 0 {
            write!(f, "; of {} something was left out by `#ifdef`", self.with_left_out)?;
        }
        Ok(())
    }
}

/// Seconds to the millisecond.
pub(crate) fn seconds(span: Span) -> String {
    let millis = span.as_nanos() / 1_000_000;
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// The text with what neither a terminal nor XML nor YAML can hold written as an escape; lines stay
/// lines.
pub(crate) fn printable(text: &str) -> String {
    // XML 1.0 s2.2 and YAML 1.2 s5.1 exclude the last two code points of the first plane.
    crate::console::escaped(text, |c| matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')).into_owned()
}

/// The text on one line.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.replace('\n', " "))
}

#[cfg(test)]
pub(crate) fn sample(ending: Ending) -> ScriptRecord {
    ScriptRecord {
        path: "a/b #1.pkt".to_owned(),
        ending,
        place: (ending != Ending::Passed).then_some(Place { line: 7, column: None }),
        what: if ending == Ending::Passed { String::new() } else { "expected <&> \"ack 1\"".to_owned() },
        report: if ending == Ending::Failed { "  first ]]> line\n\nlast: <line>\n".to_owned() } else { String::new() },
        shell_lines: vec![4, 7],
        left_out: Vec::new(),
        took: Span::from_millis(1250),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_ending() {
        let lines = [Ending::Passed, Ending::Failed, Ending::Unsupported].map(|ending| sample(ending).to_string());
        assert_eq!(lines[0], "ok   a/b #1.pkt (1.250 s; 2 shell lines not run: 4, 7)\n");
        assert_eq!(
            lines[1],
            "FAIL a/b #1.pkt:7: expected <&> \"ack 1\" (2 shell lines not run: 4, 7)\n      first ]]> line\n\n    \
             last: <line>\n\n"
        );
        assert_eq!(lines[2], "UNSUPPORTED a/b #1.pkt:7: expected <&> \"ack 1\" (2 shell lines not run: 4, 7)\n");
        let error = ScriptRecord { place: Some(Place { line: 7, column: Some(3) }), ..sample(Ending::Error) };
        assert!(error.to_string().starts_with("ERROR a/b #1.pkt:7:3: "), "{error}");
        let one = ScriptRecord { shell_lines: vec![9], place: None, ..sample(Ending::Error) };
        assert!(one.to_string().ends_with("(1 shell line not run: 9)\n"), "{one}");
        let both = ScriptRecord { left_out: vec![(3, "X".to_owned()), (5, "Y".to_owned())], ..one };
        let note = "(1 shell line not run: 9; left out by `#ifdef`: 3 (X), 5 (Y))\n";
        assert!(both.to_string().ends_with(note), "{both}");
    }

    #[test]
    fn counts_say_what_there_is() {
        let mut counts = VerdictCounts::default();
        counts.add(&ScriptRecord { shell_lines: Vec::new(), ..sample(Ending::Passed) });
        assert_eq!(counts.to_string(), "1 script: 1 passed");
        for ending in [Ending::Failed, Ending::Failed, Ending::Unsupported, Ending::Error] {
            counts.add(&sample(ending));
        }
        assert_eq!(
            counts.to_string(),
            "5 scripts: 1 passed, 2 failed, 1 unsupported, 1 in error; of 4 some shell lines were not run"
        );
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(printable("a\tb\nc\u{1b}[1m\0é\u{85}\u{ffff}"), "a\tb\nc\\u{1b}[1m\\u{0}é\\u{85}\\u{ffff}");
        assert_eq!(one_line("a\nb\r"), "a b\\r");
    }
}
