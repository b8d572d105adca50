//! Programs that run on hosts at set times during a run. A separate thread starts them, so that the
//! loop does not fork.

pub(crate) mod guard;
mod measure;
mod output;
#[cfg(test)]
mod tests;

use std::env;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ackclock_sim::spec::{CommandSpec, LiveSpec};
use ackclock_trace::CommandSummary;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::LiveError;
use crate::commands::guard::SHELL;
use crate::runner::have_programs_heed_interrupts;
use crate::testbed::Testbed;
use guard::Guard;
use output::ProgramOutput;

/// The time a program has to end after SIGINT, and to disappear after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// The environment variable that tells programs the path of ackclock, for `"$ACKCLOCK" pattern`.
const ACKCLOCK: &str = "ACKCLOCK";

/// A shell's exit statuses for a program that does not exist or cannot be executed.
const NOT_FOUND: [i32; 2] = [127, 126];

/// The programs of a run, killed on drop.
#[derive(Debug)]
pub(crate) struct Commands {
    control: Sender<CommandEvent>,
    /// `None` once it has been joined.
    thread: Option<JoinHandle<Vec<CommandSummary>>>,
    /// The program that has the terminal has ended.
    over: Arc<AtomicBool>,
}

#[derive(Debug)]
enum CommandEvent {
    /// A program has ended and is a zombie.
    Ended(usize, Instant),
    /// The run is over: all programs have to end.
    Stop,
    /// All programs are killed immediately.
    Kill,
}

/// A program and its state.
#[derive(Debug)]
struct ScheduledProgram {
    spec: CommandSpec,
    state: State,
    summary: CommandSummary,
}

#[derive(Debug)]
enum State {
    Waiting,
    Running(Running),
    Over,
}

#[derive(Debug)]
struct Running {
    child: Child,
    output: ProgramOutput,
    /// It leads a process group of its own.
    is_group: bool,
    /// The time of SIGINT.
    asked: Option<Instant>,
    /// The time of SIGKILL.
    killed: Option<Instant>,
}

/// All programs, and the thread's state.
struct Schedule {
    programs: Vec<ScheduledProgram>,
    testbed: Arc<Testbed>,
    directory: Option<PathBuf>,
    /// Time 0 of the run.
    zero: Instant,
    events: Sender<CommandEvent>,
    over: Arc<AtomicBool>,
    /// Kills the programs if this process is killed.
    _guard: Option<Guard>,
}

impl Commands {
    /// Starts the clock of the programs: time 0 is now. Their output goes to `ID.stdout` and
    /// `ID.stderr` in the directory `output`; without one, output to be measured is held in memory.
    ///
    /// # Errors
    /// [`LiveError::File`] if the directory cannot be created, [`LiveError::SetUp`] if the thread
    /// cannot be started. A program's own failure is in its summary.
    pub(crate) fn start(
        spec: &LiveSpec,
        testbed: Option<Arc<Testbed>>,
        output: Option<PathBuf>,
    ) -> Result<Commands, LiveError> {
        let zero = now();
        let (control, events) = channel();
        let over = Arc::new(AtomicBool::new(false));
        // Only hosts behind devices have programs.
        let (Some(testbed), false) = (testbed, spec.commands.is_empty()) else {
            return Ok(Commands { control, thread: None, over });
        };
        // Programs are asked to end by SIGINT. If this fails they are killed.
        let _ = have_programs_heed_interrupts();
        if let Some(path) = &output {
            fs::create_dir_all(path).map_err(|source| LiveError::File { path: path.clone(), source })?;
        }
        let programs = spec.commands.iter().map(|command| {
            let host = spec.nodes[command.node].name.clone();
            let summary =
                CommandSummary { id: command.id.clone(), host, run: command.run.clone(), ..Default::default() };
            ScheduledProgram { spec: command.clone(), state: State::Waiting, summary }
        });
        let programs = programs.collect();
        // Without a shell no program can be started either.
        let guard = Guard::over(&testbed.mark()).ok();
        let (events_of_it, told) = (control.clone(), over.clone());
        let schedule =
            Schedule { programs, testbed, directory: output, zero, events: events_of_it, over: told, _guard: guard };
        let thread = thread::Builder::new().name(String::from("commands")).spawn(move || schedule.run(&events));
        let thread = thread.map_err(|source| LiveError::SetUp {
            host: spec.nodes[spec.commands[0].node].name.clone(),
            what: String::from("a thread for commands"),
            source,
        })?;
        Ok(Commands { control, thread: Some(thread), over })
    }

    /// A flag that is set when the program that has the terminal has ended.
    pub(crate) fn over(&self) -> Arc<AtomicBool> {
        self.over.clone()
    }

    /// Asks running programs to end, waits for them briefly, and returns the summaries of all
    /// programs.
    pub(crate) fn stop(mut self) -> Vec<CommandSummary> {
        let _ = self.control.send(CommandEvent::Stop);
        let thread = self.thread.take();
        thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).unwrap_or_default()
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        let _ = self.control.send(CommandEvent::Kill);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Schedule {
    fn run(mut self, events: &Receiver<CommandEvent>) -> Vec<CommandSummary> {
        let mut stopping = false;
        loop {
            let now = now();
            let mut next = None;
            for index in 0..self.programs.len() {
                let due = self.act(index, now, stopping);
                next = [next, due].into_iter().flatten().min();
            }
            if stopping && self.programs.iter().all(|program| matches!(program.state, State::Over)) {
                break;
            }
            let event = match next {
                Some(next) => events.recv_timeout(next.saturating_duration_since(now)),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(CommandEvent::Ended(index, at)) => self.ended(index, at),
                Ok(CommandEvent::Stop) => stopping = true,
                // This thread itself has a sender, so that the channel is never disconnected.
                Ok(CommandEvent::Kill) | Err(RecvTimeoutError::Disconnected) => {
                    stopping = true;
                    self.programs.iter_mut().for_each(ScheduledProgram::kill);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        // Descendants that programs have left behind.
        self.testbed.kill_programs();
        self.programs.into_iter().map(|program| program.summary).collect()
    }

    /// Handles everything due for a program; returns the next time at which something will be due.
    fn act(&mut self, index: usize, now: Instant, stopping: bool) -> Option<Instant> {
        let program = &mut self.programs[index];
        let start = self.zero + Duration::from_nanos(program.spec.at.as_nanos());
        let until = program.spec.until.map(|until| self.zero + Duration::from_nanos(until.as_nanos()));
        match &mut program.state {
            State::Over => None,
            State::Waiting if stopping => {
                program.state = State::Over;
                None
            }
            State::Waiting if now < start => Some(start),
            State::Waiting => {
                self.start(index);
                until.filter(|_| matches!(self.programs[index].state, State::Running(_)))
            }
            State::Running(running) => match (running.asked, running.killed) {
                (_, Some(killed)) if now >= killed + PATIENCE => {
                    program.summary.error = Some(String::from("it did not end"));
                    program.state = State::Over;
                    None
                }
                (_, Some(killed)) => Some(killed + PATIENCE),
                (Some(asked), None) if now >= asked + PATIENCE => {
                    program.kill();
                    Some(now + PATIENCE)
                }
                (Some(asked), None) => Some(asked + PATIENCE),
                (None, None) if stopping || until.is_some_and(|until| now >= until) => {
                    // Interactive shells ignore SIGINT.
                    running.signal(if running.is_group { Signal::SIGINT } else { Signal::SIGHUP });
                    running.asked = Some(now);
                    program.summary.stopped = true;
                    Some(now + PATIENCE)
                }
                (None, None) => until,
            },
        }
    }

    fn start(&mut self, index: usize) {
        let Schedule { programs, testbed, directory, zero, events, .. } = self;
        let program = &mut programs[index];
        program.summary.started_s = Some(zero.elapsed().as_secs_f64());
        match program.spawn(testbed, directory.as_deref()) {
            Ok(running) => {
                let pid = pid(&running.child);
                program.state = State::Running(running);
                let events = events.clone();
                let waiter = thread::Builder::new().name(format!("command {}", program.spec.id));
                let waiting = waiter.spawn(move || {
                    // The program remains a zombie, so that its process ID is not reused before its
                    // status has been read.
                    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
                    let _ = events.send(CommandEvent::Ended(index, now()));
                });
                if let Err(error) = waiting {
                    program.kill();
                    program.summary.error = Some(error.to_string());
                }
            }
            Err(error) => {
                program.summary.started_s = None;
                program.summary.error = Some(error.to_string());
                program.state = State::Over;
                self.told(index);
            }
        }
    }

    fn ended(&mut self, index: usize, at: Instant) {
        let program = &mut self.programs[index];
        if let State::Running(mut running) = std::mem::replace(&mut program.state, State::Over) {
            program.summary.ended_s = Some(at.saturating_duration_since(self.zero).as_secs_f64());
            match running.child.wait() {
                Ok(status) => program.summarise(status, running.output),
                Err(error) => program.summary.error = Some(error.to_string()),
            }
        }
        self.told(index);
    }

    /// Ends the run with the program that has the terminal, also if that could not be started.
    fn told(&self, index: usize) {
        if self.programs[index].spec.terminal && matches!(self.programs[index].state, State::Over) {
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

impl ScheduledProgram {
    fn spawn(&self, testbed: &Testbed, directory: Option<&Path>) -> io::Result<Running> {
        let mut command = Command::new(SHELL);
        command.arg("-c").arg(&self.spec.run).envs(self.spec.env.iter().cloned());
        // A program that embeds this one, such as Python, has set the variable. The executable may
        // have been removed: then no command can use it.
        if env::var_os(ACKCLOCK).is_none()
            && let Ok(path) = env::current_exe()
        {
            command.env(ACKCLOCK, path);
        }
        let output = ProgramOutput::prepare(&mut command, &self.spec, directory)?;
        let mut child = match self.spec.terminal {
            true => testbed.spawn_in_terminal(self.spec.node, &mut command)?,
            false => testbed.spawn(self.spec.node, &mut command)?,
        };
        // The command's own ends of the pipes would keep them open.
        drop(command);
        let output = output.begin(&mut child);
        let is_group = !self.spec.terminal;
        Ok(Running { child, output, is_group, asked: None, killed: None })
    }

    fn kill(&mut self) {
        if let State::Running(running) = &mut self.state {
            running.signal(Signal::SIGKILL);
            running.killed.get_or_insert_with(now);
            self.summary.stopped = true;
        }
    }

    fn summarise(&mut self, status: ExitStatus, output: ProgramOutput) {
        let summary = &mut self.summary;
        (summary.exit, summary.signal) = (status.code(), status.signal());
        let read = output.read();
        if status.code().is_some_and(|code| NOT_FOUND.contains(&code)) {
            let said = String::from_utf8_lossy(&read.stderr);
            summary.error = Some(said.lines().next().unwrap_or("there is no such program").to_owned());
        } else if let Some(kind) = self.spec.measure {
            summary.error = match read.stdout {
                Ok(stdout) => measure::measure(kind, &stdout, summary).err(),
                Err(error) => Some(format!("its output cannot be read: {error}")),
            };
        }
    }
}

impl Running {
    /// Signals the whole process group (a shell, its commands, and their descendants), or the
    /// program alone if that is in our group.
    fn signal(&self, signal: Signal) {
        // The process ID is not reused until the status has been read.
        let pid = pid(&self.child);
        let _ = if self.is_group { killpg(pid, signal) } else { kill(pid, signal) };
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("process numbers are positive pid_t"))
}

#[expect(clippy::disallowed_methods, reason = "programs run by the machine's clock")]
fn now() -> Instant {
    Instant::now()
}
