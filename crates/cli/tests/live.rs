//! Live runs of the binary, in namespaces of the tests' own; where there can be none they are
//! skipped, and say so.

#![cfg(all(feature = "live", target_os = "linux"))]

#[path = "it/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ackclock_testkit::{can_go_live, skipped};
use common::{Said, ackclock, folder, run};
use serde_json::Value;

/// Two kernels with a link between them, a ping and a program that does not end by itself.
fn scenario(name: &str, seconds: f64) -> String {
    let process = std::process::id();
    format!(
        "schema = 1
title = \"live\"

[run]
duration = \"{seconds}s\"
lateness_limit = false

[links.wire]
rate = \"10mbit\"
delay = \"1ms\"

[hosts.left]
tun = \"ack0\"
netns = \"ackt-{name}l-{process}\"
address = [\"10.77.0.1/24\", \"fd77::1/64\"]

[hosts.right]
tun = \"ack0\"
netns = \"ackt-{name}r-{process}\"
address = [\"10.77.0.2/24\", \"fd77::2/64\"]

[[paths]]
between = [\"left\", \"right\"]
path = [\"wire\"]

[[commands]]
id = \"ping\"
host = \"left\"
run = \"exec ping -i 0.05 10.77.0.2\"
measure = \"ping\"

[[commands]]
id = \"sleep\"
host = \"right\"
run = \"sleep 1000 & exec sleep 1000\"
"
    )
}

/// The traces on this machine of the namespaces of [`scenario`]: files, mounts.
fn namespaces(name: &str) -> Vec<String> {
    let process = std::process::id();
    let names = [format!("ackt-{name}l-{process}"), format!("ackt-{name}r-{process}")];
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let mounts = mounts.lines().filter(|line| names.iter().any(|name| line.contains(name.as_str()))).map(str::to_owned);
    let files = names.iter().map(|name| format!("/run/netns/{name}")).filter(|path| Path::new(path).exists());
    mounts.chain(files).collect()
}

/// Processes that a run of a process has started, and its note.
fn of_run(process: u32) -> Vec<String> {
    let mark = format!("ACKCLOCK_RUN={process}-");
    let entries = |path: &str| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    let running = entries("/proc").into_iter().filter(|path| {
        fs::read(format!("{path}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it.starts_with(mark.as_bytes())))
    });
    let note = format!("/run/ackclock/{process}-");
    running.chain(entries("/run/ackclock").into_iter().filter(|path| path.starts_with(&note))).collect()
}

/// The names of files in a directory and its folders that are not hidden.
fn visible(directory: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // The folder is that of a killed run's output, which a later one put aside.
        if name.starts_with("unfinished-") {
            continue;
        }
        if entry.path().is_dir() && !name.starts_with('.') {
            names.extend(visible(&entry.path()).into_iter().map(|file| format!("{name}/{file}")));
        } else if !name.starts_with('.') {
            names.insert(name);
        }
    }
    names
}

/// Asserts that everything visible under `--out` is whole: all of a result or nothing, each file as
/// long as the manifest says; or, of a run that was killed while it gave files their names, a part
/// of the files that its hidden manifest lists.
fn is_whole(directory: &Path) -> bool {
    let mut names = visible(directory);
    let complete = names.remove("manifest.json");
    if names.is_empty() {
        return !complete;
    }
    let manifest = directory.join(if complete { "manifest.json" } else { ".manifest.json.partial" });
    let Ok(manifest) = fs::read(manifest) else { return false };
    let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest that is JSON");
    let files = manifest["files"].as_object().expect("a list of files");
    let as_listed = |name: &String| {
        fs::metadata(directory.join(name)).is_ok_and(|metadata| Some(metadata.len()) == files[name]["bytes"].as_u64())
    };
    // Killed before all files had their names, it leaves those that they are about to replace.
    let hidden = |name: &String| !complete && directory.join(format!(".{}.partial", name.replace('/', "-"))).exists();
    let is_one = |name: &String| files.contains_key(name) && (as_listed(name) || hidden(name));
    names.iter().all(is_one) && (!complete || names.len() == files.len())
}

/// A pcapng file ends where a block does: each has its length at both ends
/// (draft-ietf-opsawg-pcapng section 3.1).
fn is_whole_capture(path: &Path) -> bool {
    let bytes = fs::read(path).expect("a capture");
    let word =
        |at: usize| bytes.get(at..at + 4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")) as usize);
    let mut at = 0;
    while at < bytes.len() {
        match word(at + 4) {
            Some(length) if length >= 12 && word(at + length - 4) == Some(length) => at += length,
            _ => return false,
        }
    }
    at > 0
}

#[test]
fn a_run_leaves_its_results_and_nothing_else() {
    if !can_go_live("a live run", &["ping"]) {
        return;
    }
    let folder = folder("live-run");
    let said = run(&folder, scenario("one", 2.0), &["--out", "out"]);
    assert_eq!(said.status, 0, "{said:?}");
    let summary: Value =
        serde_json::from_slice(&fs::read(folder.join("out/summary.json")).expect("a summary")).expect("JSON");
    let commands = summary["commands"].as_array().expect("commands");
    let ping = &commands[0]["rtt_ms"];
    // One ping in 50 ms for 2 s, less what a busy machine takes to begin; twice 1 ms, and what two
    // transmissions of 84 bytes at 10 Mbit/s take (0.13 ms).
    assert!(ping["samples"].as_u64() >= Some(15), "{summary}");
    assert!(ping["min"].as_f64() >= Some(2.13), "{summary}");
    assert!(ping["p99"].as_f64() >= ping["p95"].as_f64() && ping["max"].as_f64() >= ping["p99"].as_f64(), "{summary}");
    let p99 = format!("{:.3}", ping["p99"].as_f64().expect("a number"));
    assert!(said.out.lines().any(|line| line.starts_with("ping ") && line.contains(&p99)), "{}", said.out);
    assert_eq!(commands[1]["stopped"], true);
    assert!(visible(&folder.join("out")).iter().any(|name| name.ends_with("ping.stdout")));
    assert!(is_whole(&folder.join("out")));
    assert_eq!(namespaces("one"), Vec::<String>::new());
}

#[test]
fn after_a_run_that_was_killed_the_next_cleans_up_and_works() {
    if !can_go_live("live runs that are killed", &["ping"]) {
        return;
    }
    let folder = folder("live-killed");
    let mut left = 0;
    // The fractional parts of multiples of the golden ratio are nowhere dense, whatever the number
    // they begin with.
    let begin = f64::from(std::process::id() % 1000) / 1000.0;
    for round in 0..20 {
        let out = folder.join(format!("out{}", round % 2));
        fs::write(folder.join("killed.toml"), scenario("kill", 0.3)).expect("a scenario can be written");
        let mut victim = ackclock();
        victim.current_dir(&folder).args(["--quiet", "--scenario", "killed.toml", "--record", "killed.pcapng"]);
        victim.arg("--out").arg(&out).stdout(Stdio::null()).stderr(Stdio::null());
        let mut victim = victim.spawn().expect("the binary runs");
        // From its start until after its end.
        thread::sleep(Duration::from_secs_f64(0.6 * (begin + f64::from(round) * 0.618_034).fract()));
        victim.kill().expect("killed");
        let ended = victim.wait().expect("killed").code();
        assert!(ended.is_none_or(|code| code == 0), "{ended:?}");
        left += u32::from(!namespaces("kill").is_empty());
        assert!(is_whole(&out), "round {round}: {:?}", visible(&out));
        // A capture is complete before the run is.
        let capture = folder.join("killed.pcapng");
        assert!(!capture.exists() || is_whole_capture(&capture), "round {round}");
        // The next run is of the same scenario or another one, for long enough that a busy machine
        // gets an answer to a ping.
        let name = if round % 3 == 0 { "next" } else { "kill" };
        let said = run(&folder, scenario(name, 1.0), &["--quiet", "--out", out.to_str().expect("UTF-8")]);
        let mut notes = said.err.lines();
        let kept = "note: the results that a killed run left in ";
        assert!(said.status == 0 && notes.all(|line| line.starts_with(kept)), "round {round}: {said:?}");
        assert!(is_whole(&out), "round {round}");
        let hidden = fs::read_dir(&out)
            .expect("results")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        assert_eq!(hidden.count(), 0, "round {round}");
        assert_eq!(namespaces("kill"), Vec::<String>::new(), "round {round}");
        assert_eq!(namespaces("next"), Vec::<String>::new(), "round {round}");
        assert_eq!(of_run(victim.id()), Vec::<String>::new(), "round {round}");
        let _ = fs::remove_file(capture);
    }
    assert!(left > 0, "no run came far enough to leave something");
}

/// A link without delay: what was read late leaves at once, so that it is not handed over late.
#[test]
fn a_run_that_is_stopped_now_and_then_is_not_valid() {
    if !can_go_live("a live run that is stopped", &["ping", "kill"]) {
        return;
    }
    let folder = folder("live-stopped");
    let text = scenario("stop", 2.0)
        .replace("lateness_limit = false\n", "")
        .replace("delay = \"1ms\"", "delay = \"0ms\"")
        .replace("ping -i 0.05", "ping -i 0.01");
    fs::write(folder.join("stopped.toml"), text).expect("a scenario can be written");
    let mut victim = ackclock();
    victim.current_dir(&folder).args(["--quiet", "--scenario", "stopped.toml", "--out", "out"]);
    let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let id = victim.id().to_string();
    let signal = |signal: &str| Command::new("kill").args([signal, &id]).status().expect("kill runs");
    while victim.try_wait().expect("its status").is_none() {
        signal("-STOP");
        thread::sleep(Duration::from_millis(60));
        signal("-CONT");
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(victim.wait().expect("it has ended").code(), Some(1));
    let summary = fs::read(folder.join("out/summary.json")).expect("a summary");
    let live = &serde_json::from_slice::<Value>(&summary).expect("JSON")["live"];
    assert_eq!(live["valid"], false, "{live}");
    let why = live["invalid"].as_array().expect("reasons");
    assert!(why.iter().any(|why| why.as_str().is_some_and(|why| why.contains("was read up to"))), "{live}");
    // 60 ms, less what it may have slept before it looks.
    assert!(live["longest_stall_ms"].as_f64() >= Some(50.0), "{live}");
}

/// The children of the programs die as well, and without another run that looks for them.
#[test]
fn the_programs_of_a_run_that_is_killed_die_with_it() {
    if !can_go_live("a live run that is killed", &["ping", "grep"]) {
        return;
    }
    let folder = folder("live-die");
    fs::write(folder.join("die.toml"), scenario("die", 60.0)).expect("a scenario can be written");
    let mut victim = ackclock();
    victim.current_dir(&folder).args(["--quiet", "--scenario", "die.toml"]);
    let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let programs = || of_run(victim.id()).iter().filter(|path| path.starts_with("/proc/")).count();
    let wait =
        |is_it: &dyn Fn() -> bool| (0..1000).any(|_| is_it() || (thread::sleep(Duration::from_millis(10)), false).1);
    // ping, and a shell that has become a sleep beside another one.
    assert!(wait(&|| programs() >= 3), "{:?}", of_run(victim.id()));
    let id = victim.id();
    victim.kill().expect("killed");
    victim.wait().expect("killed");
    let left = || of_run(id).iter().filter(|path| path.starts_with("/proc/")).count();
    assert!(wait(&|| left() == 0), "{:?}", of_run(id));
    // The next run removes its namespaces.
    let said = run(&folder, scenario("die", 0.3), &["--quiet"]);
    assert_eq!((said.status, namespaces("die")), (0, Vec::new()), "{said:?}");
}

/// The first line is whole, and the bar on another one.
#[test]
fn the_progress_bar_leaves_other_lines_alone() {
    if !can_go_live("a live run in a terminal", &["script"]) {
        return;
    }
    let folder = folder("live-bar");
    let text = scenario("bar", 0.5);
    let (text, _) = text.split_once("[[commands]]").expect("commands");
    fs::write(folder.join("bar.toml"), text).expect("a scenario can be written");
    let shell = format!("'{}' --scenario bar.toml >/dev/null", env!("CARGO_BIN_EXE_ackclock"));
    let mut command = Command::new("script");
    command.current_dir(&folder).args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null());
    let said = command.output().expect("the program runs");
    let shown = String::from_utf8_lossy(&said.stdout);
    assert!(shown.starts_with("live: live; 0.5 s in real time"), "{shown:?}");
}

/// Runs a live scenario by a program that takes rights away, or puts it somewhere else.
fn by(tool: &str, args: &[&str], scenario: &str) -> Said {
    let path = folder(&format!("live-by-{tool}{}", args[0].replace([',', '='], "-"))).join("scenario.toml");
    fs::write(&path, scenario).expect("a scenario can be written");
    let mut command = Command::new(tool);
    command.args(args).arg(env!("CARGO_BIN_EXE_ackclock")).arg("--scenario").arg(&path);
    command.output().expect("the program runs").into()
}

/// A disk that is full after 1 MB, of a mount that nobody else sees.
#[test]
fn a_full_disk_leaves_the_capture_up_to_there() {
    if !can_go_live("a capture on a full disk", &["unshare", "mount", "ping"]) {
        return;
    }
    let folder = folder("live-full");
    let text = scenario("full", 20.0)
        .replace("delay = \"1ms\"", "delay = \"0ms\"")
        .replace("10mbit", "1gbit")
        .replace("exec ping -i 0.05", "exec ping -f -s 1400");
    fs::write(folder.join("full.toml"), text).expect("a scenario can be written");
    fs::create_dir_all(folder.join("disk")).expect("a directory");
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=1m none disk && \"$@\"; status=$?; cp disk/* .; exit $status";
    command.current_dir(&folder).args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_ackclock")]);
    command.args(["--quiet", "--scenario", "full.toml", "--record", "disk/full.pcapng"]);
    let said: Said = command.output().expect("the program runs").into();
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.err.contains("full.pcapng: No space left on device") && said.err.contains("up to there"), "{said:?}");
    let capture = folder.join("full.pcapng");
    assert!(is_whole_capture(&capture));
    let length = fs::metadata(&capture).expect("a capture").len();
    assert!((700_000..=1 << 20).contains(&length), "{length}");
    let replay = ["--quiet", "--scenario", "full.toml", "--set", "run.replay=full.pcapng", "--json"];
    let said: Said = ackclock().current_dir(&folder).args(replay).output().expect("the binary runs").into();
    assert_eq!(said.status, 0, "{said:?}");
    let summary: Value = serde_json::from_str(said.out.lines().next().expect("a summary")).expect("JSON");
    assert!(summary["live"]["hosts"][0]["received_packets"].as_u64() > Some(100), "{summary}");
    assert_eq!(summary["live"]["valid"], true, "{summary}");
}

#[test]
fn a_run_without_the_rights_says_what_is_missing() {
    if !can_go_live("a live run without rights", &["setpriv"]) {
        return;
    }
    let without = ["--bounding-set=-net_admin,-sys_admin", "--inh-caps=-net_admin,-sys_admin", "--"];
    let said = by("setpriv", &without, &scenario("no", 1.0));
    assert_eq!(said.status, 2, "{said:?}");
    assert!(said.err.contains("a live run is not possible:"), "{said:?}");
    assert!(said.err.contains("CAP_NET_ADMIN is missing") && said.err.contains("CAP_SYS_ADMIN is missing"), "{said:?}");
    assert_eq!(namespaces("no"), Vec::<String>::new());
}

#[test]
fn a_run_without_the_device_says_how_to_make_it() {
    if !can_go_live("a live run without /dev/net/tun", &["unshare", "mount"]) {
        return;
    }
    let hidden = "mount -t tmpfs none /dev/net && exec \"$@\"";
    let said = by("unshare", &["--mount", "sh", "-c", hidden, "sh"], &scenario("no", 1.0));
    assert_eq!(said.status, 2, "{said:?}");
    assert!(
        said.err.contains("/dev/net/tun does not exist") && said.err.contains("mknod /dev/net/tun c 10 200"),
        "{said:?}"
    );
    assert_eq!(namespaces("no"), Vec::<String>::new());
}

/// In a namespace that is nobody's, so that nothing of the machine's is touched.
#[test]
fn a_host_without_a_namespace_is_where_the_program_is() {
    if !can_go_live("a live run without a namespace", &["unshare", "ping", "ip"]) {
        return;
    }
    let scenario = "schema = 1
[run]
duration = \"2s\"
lateness_limit = false
[links.wire]
rate = \"10mbit\"
delay = \"1ms\"
[hosts.left]
tun = \"ack0\"
address = \"10.77.0.1/24\"
[hosts.us]
address = \"10.99.0.2/24\"
[[paths]]
between = [\"left\", \"us\"]
path = [\"wire\"]
[[commands]]
host = \"left\"
run = \"exec ping -i 0.05 10.99.0.2\"
measure = \"ping\"
[[expect]]
metric = \"commands.left-0.rtt_ms.samples\"
at_least = 15
[[expect]]
metric = \"commands.left-0.rtt_ms.min\"
at_least = 2.13
";
    let after = "\"$@\" && ip -o link";
    let said = by("unshare", &["--net", "sh", "-c", after, "sh"], scenario);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.out.contains("lo:") && !said.out.contains("ack0:"), "the device is gone: {said:?}");
}

/// A program that is stopped, and a flow with `stop` in its place: what the socket had taken by
/// then is still sent, on both clocks.
#[test]
fn what_a_socket_has_taken_is_still_sent_when_its_program_stops() {
    if !can_go_live("a program that stops before its socket is empty", &[]) {
        return;
    }
    let folder = folder("live-stop");
    let text = scenario("sock", 5.0);
    let (text, _) = text.split_once("[hosts.right]").expect("a second host");
    let rest = "[hosts.us]
address = \"10.99.0.2/24\"
[[paths]]
between = [\"left\", \"us\"]
path = [\"wire\"]
[[flows]]
id = \"f\"
from = \"left\"
to = \"us\"
port = 5001
start = \"100ms\"
stop = \"1s\"
[[commands]]
host = \"left\"
run = \"exec $ACKCLOCK pattern --bytes 100MB --connect 10.99.0.2:5001\"
at = \"100ms\"
until = \"1s\"
[[expect]]
metric = \"flows.f.0.delivered_bytes\"
from = \"1.6s\"
at_least = 10000
";
    // The packets on their way at the end have arrived 0.6 s later; the rest takes more than a
    // second, also where a busy machine lets the program write late.
    let text = format!("{}{rest}", text.replace("10mbit", "500kbit"));
    for clock in [&["--out", "live"][..], &["--clock", "virtual", "--out", "virtual"]] {
        let said = run(&folder, &text, clock);
        assert_eq!(said.status, 0, "{clock:?}: {said:?}");
    }
}

/// Returns `true` if the kernel speaks Multipath TCP and can be told of addresses; says why not.
fn has_multipath() -> bool {
    let is_on = fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let is_told = Command::new("ip").args(["mptcp", "limits", "show"]).output().is_ok_and(|said| said.status.success());
    let why = match (is_on, is_told) {
        (true, true) => return true,
        (false, _) => "the kernel has no Multipath TCP, or it is off (net.mptcp.enabled)",
        (true, false) => "`ip` does not know `mptcp limits`",
    };
    skipped("Multipath TCP with the kernel", why);
    false
}

/// Both ways over two subflows: every byte is compared, a replay of what was recorded sends the
/// same packets, and neither end falls back.
#[test]
fn multipath_tcp_with_the_kernel() {
    if !can_go_live("Multipath TCP with the kernel", &["ip"]) || !has_multipath() {
        return;
    }
    for (file, netns) in [("mptcp-to-kernel", "ack-mptcp-server"), ("mptcp-from-kernel", "ack-mptcp-client")] {
        let folder = folder(file);
        let text = fs::read_to_string(format!("../../scenarios/live/{file}.toml")).expect("the scenario is there");
        let expected = text.find("[[expect]]").expect("there are expectations");
        // Without what a busy machine may miss.
        let text = text[..expected]
            .replace(netns, &format!("ackt-mptcp-{}", std::process::id()))
            .replace("8MB", "2MB")
            .replace("\"15s\"", "\"8s\"");
        let args = ["--set", "run.lateness_limit=false", "--out", "out", "--record", "packets.pcapng"];
        let said = run(&folder, &text, &args);
        assert_eq!(said.status, 0, "{file}: {said:?}");
        let said = run(&folder, &text, &["--set", "run.replay=packets.pcapng", "--out", "again"]);
        assert_eq!(said.status, 0, "{file}: {said:?}");
        let [live, again] = ["out", "again"].map(|out| {
            let text = fs::read(folder.join(out).join("summary.json")).expect("a summary");
            serde_json::from_slice::<Value>(&text).expect("JSON")
        });
        let flow = &live["flows"][0];
        assert_eq!(flow["delivered_bytes"], 2_000_000, "{file}: {flow}");
        assert_eq!(flow["multipath"]["plain"], false, "{file}: {flow}");
        for subflow in 0..2 {
            let received = flow["multipath"]["subflows"][subflow]["received_bytes"].as_u64();
            assert!(received > Some(100_000), "{file}: {flow}");
        }
        assert_eq!(again["flows"][0], *flow, "{file}");
    }
}
