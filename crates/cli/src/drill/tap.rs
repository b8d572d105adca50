//! Results in the Test Anything Protocol, version 14
//! (testanything.org/tap-version-14-specification).
//!
//! A script is a test point, with its report in a YAML block below. Unsupported scripts are `not
//! ok`, so that they do not count as passed.

use std::fmt::Write;

use super::record::{Ending, ScriptRecord};

/// The first lines: version and plan.
pub(crate) fn head(scripts: usize) -> String {
    format!("TAP version 14\n1..{scripts}\n")
}

/// The test point of a script; `index` counts from 0.
pub(crate) fn point(index: usize, record: &ScriptRecord) -> String {
    let ok = if record.ending == Ending::Passed { "ok" } else { "not ok" };
    // A hash would begin a directive.
    let description = record.path.replace('\\', "\\\\").replace('#', "\\#");
    let mut out = format!("{ok} {} - {description}\n", index + 1);
    let shell = record.note();
    if record.ending == Ending::Passed && shell.is_none() && record.report.is_empty() {
        return out;
    }
    out.push_str("  ---\n");
    let severity = match record.ending {
        Ending::Passed => None,
        Ending::Failed => Some("fail"),
        Ending::Unsupported => Some("unsupported"),
        Ending::Error => Some("error"),
    };
    if let Some(severity) = severity {
        let _ = write!(out, "  message: {}\n  severity: {severity}\n", quoted(&record.what));
        let _ = write!(out, "  at:\n    file: {}\n", quoted(&record.path));
        if let Some(place) = record.place {
            let _ = writeln!(out, "    line: {}", place.line);
            if let Some(column) = place.column {
                let _ = writeln!(out, "    column: {column}");
            }
        }
    }
    if let Some(shell) = shell {
        let _ = writeln!(out, "  note: {}", quoted(&shell));
    }
    if !record.report.is_empty() {
        // The indentation is given explicitly, because the first line may itself be indented.
        out.push_str("  report: |2\n");
        for line in record.report.lines() {
            let _ = writeln!(out, "{}", format!("    {line}").trim_end());
        }
    }
    out.push_str("  ...\n");
    out
}

/// A YAML scalar: every JSON string is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn a_failure_has_its_diagnostics_below() {
        assert_eq!(
            point(0, &sample(Ending::Failed)),
            r#"not ok 1 - a/b \#1.pkt
  ---
  message: "expected <&> \"ack 1\""
  severity: fail
  at:
    file: "a/b #1.pkt"
    line: 7
  note: "2 shell lines not run: 4, 7"
  report: |2
      first ]]> line

    last: <line>
  ...
"#
        );
    }

    #[test]
    fn a_script_that_passes_is_a_line() {
        let record = ScriptRecord { shell_lines: Vec::new(), ..sample(Ending::Passed) };
        assert_eq!(point(4, &record), "ok 5 - a/b \\#1.pkt\n");
        assert!(point(4, &sample(Ending::Passed)).contains("  note: \"2 shell lines not run: 4, 7\"\n"));
        assert!(point(0, &sample(Ending::Unsupported)).starts_with("not ok 1 - "));
    }
}
