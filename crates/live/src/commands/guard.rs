//! A shell that kills the programs of a run if this process is killed itself.
//!
//! A signal that cannot be caught leaves programs running: they are in process groups of their own,
//! and nobody asks them to end. `PR_SET_PDEATHSIG` does not reach their children (a shell's
//! commands), and is tied to the thread that started them, which ends immediately. Therefore a
//! shell waits for the end of a pipe that only this process holds open, and then kills every
//! process that carries the mark of the run.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The shell that runs commands.
pub(crate) const SHELL: &str = "/bin/sh";

/// Reads a line, or the end of the pipe if this process was killed. Processes that are killed may
/// have just started others: the search is repeated until it finds none.
const SCRIPT: &str = "trap '' HUP INT QUIT TERM
read -r over && exit
for round in 1 2 3 4 5 6 7 8 9 10; do
    found=$(grep -lszxF \"$1\" /proc/[0-9]*/environ) || exit
    for file in $found; do
        id=${file#/proc/}
        kill -KILL \"${id%/environ}\"
    done
done";

/// The waiting shell; dropping this tells it that the run is over.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    told: Option<ChildStdin>,
}

impl Guard {
    /// Watches over programs with `mark` (`NAME=VALUE`) in their environment.
    ///
    /// # Errors
    /// There is no shell. The next run then kills the programs that are left behind.
    pub(super) fn over(mark: &str) -> io::Result<Guard> {
        let mut command = Command::new(SHELL);
        // Its own process group does not receive Ctrl-C.
        command.args(["-c", SCRIPT, "ackclock-guard", mark]).current_dir("/").process_group(0);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let told = shell.stdin.take();
        Ok(Guard { shell, told })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.told.take() {
            // A failed write means that the shell is gone.
            let _ = pipe.write_all(b"over\n");
        }
        let _ = self.shell.wait();
    }
}
