//! The binary, run on scenarios made for a test.
// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for a test, empty.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target directory is writable");
    folder
}

/// Returns `true` if a test with live runs can run here, with this build; says so if not.
pub fn can_go_live(test: &str, programs: &[&str]) -> bool {
    #[cfg(all(feature = "live", target_os = "linux"))]
    return ackclock_testkit::can_go_live(test, programs);
    #[cfg(not(all(feature = "live", target_os = "linux")))]
    {
        let _ = programs;
        ackclock_testkit::skipped(test, "this build has no live mode");
        false
    }
}

/// `ackclock`, with arguments to come.
pub fn ackclock() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ackclock"))
}

/// A program's output and end.
#[derive(Debug)]
pub struct Said {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            err: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// Runs a scenario in its folder under the name `scenario.toml`.
pub fn run(folder: &Path, scenario: impl AsRef<[u8]>, args: &[&str]) -> Said {
    fs::write(folder.join("scenario.toml"), scenario).expect("a scenario can be written");
    let output = ackclock().current_dir(folder).args(["--scenario", "scenario.toml"]).args(args).output();
    output.expect("the binary runs").into()
}

/// An error with the names that it expects cut after the first: a new one changes no test.
pub fn without_names(error: &str) -> String {
    let cut = |line: &str| match line.split_once("`, `") {
        Some((before, _)) if before.contains("expected one of `") => format!("{before}`, ..."),
        _ => line.to_owned(),
    };
    error.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// One small transfer over one link; further lines are put behind it.
pub const SMALL: &str = "schema = 1
title = \"small\"

[run]
duration = \"2s\"

[links.wire]
rate = \"10mbit\"
delay = \"5ms\"

[[flows]]
id = \"f\"
path = [\"wire\"]
bytes = \"100kB\"
";

/// The small scenario as a sweep of six runs.
pub fn sweep() -> String {
    format!(
        "{SMALL}
[sweep]
repeat = 2
axes.\"links.wire.delay\" = [\"1ms\", \"5ms\", \"9ms\"]
"
    )
}
