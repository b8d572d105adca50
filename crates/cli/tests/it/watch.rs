//! `--watch` on a terminal: tmux's, whose keys are pressed and whose screen is read. Where there is
//! no tmux the tests are skipped, with a line that says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::thread;
use std::time::Duration;

use crate::common::{can_go_live, folder};
use ackclock_testkit::skipped;

/// Waits for something on the screen to appear: machines may be busy.
const PATIENCE: usize = 300;
const LOOK: Duration = Duration::from_millis(100);

/// A terminal with a shell in it; it ends with the test.
#[derive(Debug)]
struct Terminal {
    socket: String,
    folder: PathBuf,
}

impl Terminal {
    /// `None`, and a line, if there is no tmux.
    fn open(test: &str, width: u16, height: u16) -> Option<Terminal> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped(test, "no tmux");
            return None;
        }
        let terminal = Terminal { socket: format!("ackclock-{test}-{}", id()), folder: folder(test) };
        let [width, height] = [width, height].map(|size| size.to_string());
        let size = ["-x", &width, "-y", &height];
        // tmux has a terminal of its own: what it can do is the same everywhere.
        let mut arguments = vec!["-u", "-f", "/dev/null", "new-session", "-d", "-s", "test"];
        arguments.extend(size);
        arguments.extend(["env", "-u", "NO_COLOR", "PS1=shell$ ", "sh"]);
        terminal.tmux(&arguments);
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket]).args(arguments).current_dir(&self.folder);
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        let output = command.output().expect("tmux runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Presses a key, by tmux's name.
    fn press(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "test", key]);
    }

    fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "test", "-l", text]);
    }

    fn enter(&self, line: &str) {
        self.type_in(line);
        self.press("Enter");
    }

    fn resize(&self, width: u16, height: u16) {
        let [width, height] = [width, height].map(|size| size.to_string());
        self.tmux(&["resize-window", "-t", "test", "-x", &width, "-y", &height]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "test"])
    }

    /// The screen once this is there.
    fn wait<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        for _ in 0..PATIENCE {
            if let Some(found) = find(&self.screen()) {
                return found;
            }
            thread::sleep(LOOK);
        }
        panic!("no {what} on\n{}", self.screen());
    }

    fn wait_for(&self, part: &str) {
        self.wait(part, |screen| screen.contains(part).then_some(()));
    }

    /// Runs ackclock between two looks at the modes of the terminal.
    fn watch(&self, scenario: &str, args: &str) {
        fs::write(self.folder.join("scenario.toml"), scenario).unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_ackclock")).display().to_string();
        self.enter("stty -a > before");
        self.enter(&format!("clear; {binary} scenario.toml --watch {args}; echo status $?; stty -a > after"));
    }

    /// The dashboard has gone, and the terminal is as before. The screen, and the exit status.
    fn ended(&self) -> (String, i32) {
        let status = self.wait("status", |screen| {
            let line = screen.lines().find_map(|line| line.strip_prefix("status "))?;
            line.trim().parse().ok()
        });
        let modes = |file: &str| fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        for _ in 0..PATIENCE {
            if modes("after").contains("echo") {
                break;
            }
            thread::sleep(LOOK);
        }
        // A resized terminal has other rows and columns.
        let settings = |file: &str| modes(file).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert!(!settings("before").is_empty());
        assert_eq!(settings("before"), settings("after"), "the terminal is not as it was");
        let screen = self.screen();
        assert!(!screen.contains("? help"), "the dashboard is still there:\n{screen}");
        (screen, status)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).env_remove("TMUX").output();
    }
}

/// A cell of the row that begins with this name, by the title of its column. Titles and cells end
/// at the same place.
fn cell(screen: &str, name: &str, title: &str) -> Option<String> {
    let lines: Vec<Vec<char>> = screen.lines().map(|line| line.chars().collect()).collect();
    let row = lines.iter().position(|line| line.starts_with(&name.chars().collect::<Vec<_>>()[..]))?;
    let heads = lines[..row].iter().rev().map(|line| line.iter().collect::<String>());
    let head = heads.into_iter().find(|line| line.starts_with("link ") || line.starts_with("flow "))?;
    let end = head.find(title)? + title.len();
    let cell: String = lines[row].get(..end)?.iter().collect();
    cell.split(' ').next_back().map(str::to_owned)
}

/// A number as the dashboard writes it: 9.98M.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = match text.chars().next_back()? {
        'k' => (&text[..text.len() - 1], 1e3),
        'M' => (&text[..text.len() - 1], 1e6),
        'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().map(|value| value * unit)
}

fn value(screen: &str, name: &str, title: &str) -> Option<f64> {
    number(&cell(screen, name, title)?)
}

/// Seconds of the run.
fn time(screen: &str) -> Option<f64> {
    screen.lines().nth(1)?.split(' ').next()?.parse().ok()
}

const VIRTUAL: &str = r#"
schema = 1
title = "two flows"

[run]
duration = "900s"

[links.bottleneck]
rate = "8mbit"
delay = "10ms"
queue = { kind = "fq_codel" }

[[flows]]
id = "reno"
path = ["bottleneck"]
cc = "newreno"

[[flows]]
id = "cubic"
path = ["bottleneck"]
cc = "cubic"
"#;

const LINK: &str = "bottleneck.forward";

#[test]
fn a_run_whose_terminal_is_closed_ends() {
    for (test, paused) in [("watch_closed", false), ("watch_closed_paused", true)] {
        let Some(terminal) = Terminal::open(test, 80, 24) else { return };
        fs::write(terminal.folder.join("scenario.toml"), VIRTUAL).unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_ackclock")).display().to_string();
        terminal.enter(&format!("echo $$ > pid; exec {binary} scenario.toml --watch"));
        terminal.wait_for("running");
        if paused {
            terminal.press("Space");
            terminal.wait_for("paused");
        }
        let pid = fs::read_to_string(terminal.folder.join("pid")).unwrap();
        let status = PathBuf::from(format!("/proc/{}/status", pid.trim()));
        drop(terminal);
        let gone = |status: &Path| fs::read_to_string(status).map_or(true, |text| text.contains("State:\tZ"));
        assert!(
            (0..PATIENCE).any(|_| {
                thread::sleep(LOOK);
                gone(&status)
            }),
            "paused {paused}: it goes on"
        );
    }
}

#[test]
fn a_virtual_run_is_shown_and_changed_by_keys() {
    let Some(terminal) = Terminal::open("watch_virtual", 100, 30) else { return };
    terminal.watch(VIRTUAL, "");
    let near =
        |rate: f64| move |screen: &str| value(screen, LINK, "bit/s").filter(|found| (found / rate - 1.0).abs() < 0.08);
    terminal.wait("a rate near 8 Mbit/s", near(8e6));
    for flow in ["reno.0", "cubic.0"] {
        // 20 ms of the path, and what the queue adds: little with fq_codel, after slow start.
        terminal.wait(flow, |screen| value(screen, flow, "rtt ms").filter(|rtt| (20.0..60.0).contains(rtt)));
    }
    let screen = terminal.screen();
    assert_eq!(cell(&screen, "reno.0", "cc").as_deref(), Some("newreno"), "{screen}");
    assert!(screen.starts_with("two flows") && screen.contains("virtual at 1x, running"), "{screen}");

    // Time stands still, and goes on.
    terminal.press("Space");
    terminal.wait_for("paused");
    thread::sleep(5 * LOOK);
    let stood = time(&terminal.screen()).expect("a time");
    thread::sleep(10 * LOOK);
    assert_eq!(time(&terminal.screen()), Some(stood));
    terminal.press("Space");
    terminal.wait("time that goes on", |screen| time(screen).filter(|&now| now > stood + 0.5));

    // Eight and a quarter of that is ten; the flows follow.
    terminal.press("+");
    terminal.wait("10 Mbit/s", |screen| value(screen, LINK, "of").filter(|&rate| rate == 10e6));
    terminal.wait("a rate near 10 Mbit/s", near(10e6));
    terminal.type_in(":links.bottleneck.rate=2mbit");
    terminal.wait_for(":links.bottleneck.rate=2mbit");
    terminal.press("Enter");
    terminal.wait("2 Mbit/s", |screen| value(screen, LINK, "of").filter(|&rate| rate == 2e6));
    terminal.wait("a rate near 2 Mbit/s", near(2e6));
    // Twice 10 ms, and a quarter more: 25 ms.
    terminal.press("]");
    terminal.wait_for("12500us");

    // The error is shown.
    terminal.enter(":links.nonsense.rate=1mbit");
    terminal.wait_for("nonsense");
    terminal.press("?");
    terminal.wait_for("half, or double the speed");
    terminal.press("Escape");

    // The frame has the size of the terminal.
    for (width, height) in [(60, 15), (140, 45), (80, 24)] {
        terminal.resize(width, height);
        terminal.wait("a frame of this size", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let head = lines.first()?.trim_end().chars().count();
            (lines.len() == usize::from(height) && head == usize::from(width) && lines.last()?.starts_with("q end"))
                .then_some(())
        });
    }

    // Faster: ten seconds of the run take less than two.
    (0..3).for_each(|_| terminal.press(">"));
    terminal.wait_for("virtual at 8x");
    let from = time(&terminal.screen()).expect("a time");
    thread::sleep(20 * LOOK);
    let passed = time(&terminal.screen()).expect("a time") - from;
    assert!(passed > 8.0, "{passed} s in two seconds at eight times the speed");

    terminal.press("q");
    let (screen, status) = terminal.ended();
    assert_eq!(status, 130, "{screen}");
    assert!(screen.contains("was not completed; the results are partial"), "{screen}");
    assert!(screen.contains("cubic.0") && screen.contains("reno.0"), "no report:\n{screen}");
}

#[test]
fn a_run_that_comes_to_its_end_leaves_its_report() {
    let Some(terminal) = Terminal::open("watch_end", 100, 30) else { return };
    terminal.watch(&VIRTUAL.replace("900s", "3s"), "--set links.bottleneck.rate=4mbit");
    terminal.wait_for("q end");
    let (screen, status) = terminal.ended();
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("3 s simulated") && screen.contains("reno.0"), "{screen}");
}

#[test]
fn signals_and_ctrl_c_end_it_and_give_the_terminal_back() {
    let Some(terminal) = Terminal::open("watch_signals", 80, 24) else { return };
    terminal.watch(VIRTUAL, "");
    terminal.wait_for("q end");
    terminal.press("C-c");
    assert_eq!(terminal.ended().1, 130);
    let _ = fs::remove_file(terminal.folder.join("after"));
    // Signals also work while the clock stands still, and from elsewhere.
    for signal in ["TERM", "HUP"] {
        let _ = fs::remove_file(terminal.folder.join("after"));
        terminal.enter("clear");
        terminal.watch(VIRTUAL, "& echo $! > pid; fg");
        terminal.wait_for("q end");
        terminal.press("Space");
        terminal.wait_for("paused");
        let pid = fs::read_to_string(terminal.folder.join("pid")).unwrap();
        let sent = Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().expect("kill runs");
        assert!(sent.success());
        assert_eq!(terminal.ended().1, 130, "{signal}");
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let Some(terminal) = Terminal::open("watch_colours", 80, 24) else { return };
    let coloured = |terminal: &Terminal| {
        terminal.wait_for("% ");
        terminal.wait("a line over time", |screen| screen.contains('█').then_some(()));
        // SGR 30 to 38: a colour in front; 38 is that of a palette.
        let screen = terminal.tmux(&["capture-pane", "-e", "-p", "-t", "test"]);
        (30..39).any(|code| ['m', ';'].iter().any(|end| screen.contains(&format!("\u{1b}[{code}{end}"))))
    };
    terminal.watch(VIRTUAL, "");
    assert!(coloured(&terminal), "{}", terminal.screen());
    terminal.press("q");
    terminal.ended();
    terminal.enter("export NO_COLOR=1; clear");
    terminal.watch(VIRTUAL, "");
    assert!(!coloured(&terminal), "{}", terminal.screen());
    terminal.press("q");
    terminal.ended();
}

/// Two kernels that ping each other.
fn live(name: &str) -> String {
    format!(
        r#"
schema = 1
title = "ping"

[run]
duration = "60s"
lateness_limit = false

[links.wire]
rate = "10mbit"
delay = "20ms"

[hosts.left]
tun = "ack0"
netns = "{name}-l"
address = "10.0.0.1/24"

[hosts.right]
tun = "ack0"
netns = "{name}-r"
address = "10.0.0.2/24"

[[paths]]
between = ["left", "right"]
path = ["wire"]

[[commands]]
id = "ping"
host = "left"
run = "exec ping -i 0.05 10.0.0.2"
measure = "ping"
"#
    )
}

#[test]
fn a_live_run_is_shown_with_its_lateness_and_hosts() {
    if !can_go_live("a_live_run_is_shown_with_its_lateness_and_hosts", &["ping"]) {
        return;
    }
    let Some(terminal) = Terminal::open("watch_live", 150, 30) else { return };
    terminal.watch(&live(&format!("ackt-watch-{}", id())), "");
    // 20 pings a second of 84 bytes.
    terminal.wait("traffic", |screen| value(screen, "wire.forward", "bit/s").filter(|&rate| rate > 5e3));
    terminal.wait("lateness", |screen| {
        let rest = screen.lines().find_map(|line| line.strip_prefix("late ms: p50 "))?;
        rest.split(' ').next()?.parse::<f64>().ok()
    });
    let packets = |screen: &str| {
        let (_, rest) = screen.split_once("; left in ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    };
    let before = terminal.wait("packets of a host", packets);
    terminal.wait("more packets", |screen| packets(screen).filter(|&now| now > before + 20));
    // Its links change as those of a virtual run.
    terminal.press("+");
    terminal.wait("12.5 Mbit/s", |screen| value(screen, "wire.forward", "of").filter(|&rate| rate == 12.5e6));
    // The time goes by the machine's clock.
    terminal.press("Space");
    terminal.wait_for("machine's clock");
    terminal.press("q");
    let (screen, status) = terminal.ended();
    assert_eq!(status, 130, "{screen}");
    assert!(screen.contains("wire.forward") && screen.contains("late by"), "no report:\n{screen}");
}
