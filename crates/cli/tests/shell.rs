//! `ackclock shell`, in namespaces of the tests' own; where there can be none they are skipped, and
//! say so.

#![cfg(all(feature = "live", target_os = "linux"))]

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use ackclock_testkit::{can_go_live, skipped};
use common::{ackclock, folder};

/// Runs `ackclock shell` with these arguments.
fn shell(args: &[&str]) -> Output {
    ackclock().arg("shell").args(args).env("SHELL", "/bin/sh").output().expect("ackclock")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The round-trip times in what ping has printed, in milliseconds.
fn round_trips(printed: &str) -> Vec<f64> {
    let times = printed.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    times.filter_map(|time| time.parse().ok()).collect()
}

/// The remains of shells whose process has this number.
fn left_by(process: u32) -> Vec<String> {
    let entries = |directory: &str, prefix: String| {
        let names = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(&prefix)).map(|name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let mut left = entries("/run/netns", format!("ack-{process}"));
    left.extend(entries("/run/ackclock", format!("{process}-")));
    let mark = format!("ACKCLOCK_RUN={process}-");
    left.extend(entries("/proc", String::new()).into_iter().filter(|path| {
        fs::read(format!("{path}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it.starts_with(mark.as_bytes())))
    }));
    left
}

#[test]
fn a_program_runs_behind_the_link_and_its_status_is_ours() {
    let test = "a_program_runs_behind_the_link_and_its_status_is_ours";
    if !can_go_live(test, &["ping"]) {
        return;
    }
    let ping = "ping -c 3 -i 0.2 $ACKCLOCK_PEER; echo $ACKCLOCK_SHELL $ACKCLOCK_LINK; exit 7";
    let said = shell(&["--delay", "30ms", "--rate", "10mbit", "--queue", "fq_codel", "--", "sh", "-c", ping]);
    let (out, error) = (text(&said.stdout), text(&said.stderr));
    assert_eq!(said.status.code(), Some(7), "{out}{error}");
    assert!(out.ends_with("1 30ms 10mbit fq_codel\n"), "{out}");
    let times = round_trips(&out);
    assert!(times.len() == 3 && times.iter().all(|&time| time >= 60.0), "{out}");
    let lines: Vec<&str> = error.lines().filter(|line| !line.starts_with("not valid")).collect();
    assert!(lines.len() == 2 && lines[0].starts_with("up:   3 packets"), "{error}");
    assert!(lines[1].starts_with("down: 3 packets") && lines[1].contains("in fq_codel; 0 dropped"), "{error}");
}

#[test]
fn standard_input_and_output_are_those_of_the_program() {
    if !can_go_live("standard_input_and_output_are_those_of_the_program", &[]) {
        return;
    }
    let mut child = ackclock();
    let child = child.args(["shell", "--quiet", "--", "tr", "a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().expect("ackclock");
    child.stdin.take().expect("a pipe").write_all(b"a line\n").expect("a write");
    let said = child.wait_with_output().expect("ackclock");
    assert_eq!((said.status.code(), text(&said.stdout)), (Some(0), "A LINE\n".to_owned()), "{}", text(&said.stderr));
    // A program that does not exist, and one that a signal ends, are as a shell has them.
    assert_eq!(shell(&["--", "/no/such/program"]).status.code(), Some(127));
    assert_eq!(shell(&["--", "sh", "-c", "kill -TERM $$"]).status.code(), Some(128 + 15));
}

#[test]
fn shells_nest_and_the_network_behind_them_is_reached_by_nat() {
    let test = "shells_nest_and_the_network_behind_them_is_reached_by_nat";
    if !can_go_live(test, &["ping", "nft"]) {
        return;
    }
    // Nothing of this machine's network is touched: the inner one's kernel is that of the outer
    // one.
    let program = env!("CARGO_BIN_EXE_ackclock");
    let inner = format!(
        "OUTER=$ACKCLOCK_PEER; export OUTER; before=$(cat /proc/sys/net/ipv4/ip_forward); \
         {program} shell --delay 20ms --internet -- sh -c 'ping -c 3 -i 0.2 $OUTER; echo level $ACKCLOCK_SHELL of $ACKCLOCK_LINK'; \
         echo status $? forwarding $before $(cat /proc/sys/net/ipv4/ip_forward); nft list ruleset"
    );
    let said = shell(&["--delay", "10ms", "--", "sh", "-c", &inner]);
    let (out, error) = (text(&said.stdout), text(&said.stderr));
    let times = round_trips(&out);
    assert!(times.len() == 3 && times.iter().all(|&time| time >= 60.0), "{out}{error}");
    assert!(out.contains("level 2 of 10ms | 20ms\n"), "{out}");
    // Nothing of the shell is left: no table follows.
    assert!(out.ends_with("status 0 forwarding 0 0\n"), "{out}{error}");
}

#[test]
fn a_peer_is_behind_the_link() {
    let test = "a_peer_is_behind_the_link";
    if !can_go_live(test, &["nc"]) {
        return;
    }
    let peer =
        "echo 'from the peer' | nc -l -N 5001 -s 0.0.0.0 -p 5001 2>/dev/null || echo 'from the peer' | nc -l -N 5001";
    let said = shell(&["--delay", "5ms", "--peer", peer, "--", "sh", "-c", "nc -w 3 $ACKCLOCK_PEER 5001 < /dev/null"]);
    assert_eq!(text(&said.stdout), "from the peer\n", "{}", text(&said.stderr));
}

#[test]
fn killed_shells_are_cleaned_up_by_the_next() {
    if !can_go_live("killed_shells_are_cleaned_up_by_the_next", &[]) {
        return;
    }
    let processes: Vec<u32> = (0..20)
        .map(|number| {
            let mut child: Child = ackclock()
                .args(["shell", "--delay", "1ms", "--", "sleep", "1000"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("ackclock");
            // At any point of its way up.
            thread::sleep(Duration::from_millis(number * 9));
            child.kill().expect("SIGKILL");
            child.wait().expect("a process that was killed");
            child.id()
        })
        .collect();
    let said = shell(&["--quiet", "--", "true"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let left: Vec<String> = processes.iter().flat_map(|&process| left_by(process)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_ordinary_user_has_a_network_of_their_own() {
    let test = "an_ordinary_user_has_a_network_of_their_own";
    if !can_go_live(test, &["setpriv", "ping"]) {
        return;
    }
    let folder = folder("shell-user");
    // A place that everybody may read.
    let program = folder.join("ackclock");
    fs::copy(env!("CARGO_BIN_EXE_ackclock"), &program).expect("a copy");
    let as_user = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg(&program).arg("shell").args(args).current_dir("/").env_remove("XDG_RUNTIME_DIR");
        command.env("TMPDIR", "/tmp").env("SHELL", "/bin/sh").output().expect("setpriv")
    };
    let inner = format!("{} shell --delay 20ms -- sh -c 'ping -c 2 -i 0.2 $ACKCLOCK_PEER'", program.display());
    let said = as_user(&["--delay", "1ms", "--", "sh", "-c", &inner]);
    let (out, error) = (text(&said.stdout), text(&said.stderr));
    if error.contains("Permission denied") || error.contains("a user namespace: ") {
        return skipped(test, error.lines().next().unwrap_or_default());
    }
    assert_eq!(said.status.code(), Some(0), "{out}{error}");
    let times = round_trips(&out);
    assert!(times.len() == 2 && times.iter().all(|&time| time >= 40.0), "{out}{error}");
    let said = as_user(&["--internet"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("--internet requires root"), "{}", text(&said.stderr));
}

#[test]
fn what_is_missing_is_named() {
    let test = "what_is_missing_is_named";
    if !can_go_live(test, &["unshare"]) {
        return;
    }
    let program = env!("CARGO_BIN_EXE_ackclock");
    let without = |what: &str, args: &str| {
        let script = format!("{what} && exec {program} shell {args} -- true");
        let said = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().expect("unshare");
        (said.status.code(), text(&said.stderr))
    };
    let (status, error) = without("mount -t tmpfs none /dev/net", "");
    assert!(status == Some(2) && error.contains("/dev/net/tun does not exist"), "{status:?} {error}");
    let (status, error) = without("PATH=/nowhere; export PATH", "--internet");
    assert!(status == Some(2) && error.contains("the program `nft` is missing"), "{status:?} {error}");
}

#[test]
fn a_saved_scenario_says_the_same() {
    let folder = folder("shell-save");
    let file = folder.join("saved.toml");
    let path = file.display().to_string();
    let options =
        ["--delay", "20ms", "--rate", "10mbit", "--up", "1mbit", "--queue", "pie,target=20ms", "--loss", "1%"];
    // Without the rights it is saved all the same.
    let _ = shell(&[&options[..], &["--save", &path, "--peer", "true", "--", "printf", "it's"]].concat());
    let saved = fs::read_to_string(&file).expect("a scenario");
    for part in [
        "delay = \"20ms\"",
        "rate = \"1mbit\"",
        "reverse = { rate = \"10mbit\" }",
        "queue = { kind = \"pie\", target = \"20ms\" }",
        "loss = { kind = \"iid\", probability = 0.01 }",
        "exec printf 'it'\\\\''s'",
        "terminal = true",
    ] {
        assert!(saved.contains(part), "{part}: {saved}");
    }
    let checked = ackclock().arg("check").arg(&file).output().expect("ackclock");
    assert_eq!((checked.status.code(), text(&checked.stderr)), (Some(0), String::new()));
    let again = shell(&["--save", &path, "--", "true"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("exists, and is not overwritten"), "{}", text(&again.stderr));
    assert_eq!(fs::read_to_string(&file).expect("a scenario"), saved);
}

#[test]
fn what_is_saved_recorded_and_replayed_is_one_experiment() {
    let test = "what_is_saved_recorded_and_replayed_is_one_experiment";
    if !can_go_live(test, &["ping"]) {
        return;
    }
    let folder = folder("shell-three");
    fs::write(folder.join("up.trace"), "1\n2\n3\n").expect("a trace");
    fs::write(folder.join("down.trace"), "2\n4\n").expect("a trace");
    let ping = ["--", "sh", "-c", "ping -c 3 -i 0.1 -s 400 $ACKCLOCK_PEER"];
    let link = "links.link";
    let options: [&[&str]; 10] = [
        &["--delay", "20ms"],
        &["--rate", "1mbit"],
        &["--rate", "1mbit", "--up", "200kbit"],
        &["--delay", "5ms", "--queue", "fq_codel,target=7ms"],
        &["--loss", "30%"],
        &["--trace", "up.trace"],
        &["--trace", "up.trace", "down.trace"],
        &["--delay", "50ms", "--set", &format!("{link}.reverse.delay=0s"), "--set", "run.seed=7"],
        &["--rate", "1mbit", "--set", &format!("{link}.reverse.trace={{ file = \"down.trace\" }}")],
        &["--delay", "10ms", "--peer", "sleep 1"],
    ];
    for (number, options) in options.into_iter().enumerate() {
        // In another directory, where the files are not.
        let elsewhere = folder.join(number.to_string());
        fs::create_dir(&elsewhere).expect("a directory");
        let [saved, record] = ["saved.toml", "run.pcapng"].map(|name| elsewhere.join(name).display().to_string());
        let to = ["--save", &saved, "--record", &record];
        let said = ackclock()
            .current_dir(&folder)
            .args([&["shell"], options, &to, &ping].concat())
            .env("SHELL", "/bin/sh")
            .output()
            .expect("ackclock");
        let error = text(&said.stderr);
        assert!(said.status.code().is_some_and(|status| status < 2), "{options:?}: {error}");
        let asked: f64 =
            if options[0] == "--delay" { options[1].trim_end_matches("ms").parse().expect("ms") } else { 0.0 };
        let back = if options.contains(&"run.seed=7") { 0.0 } else { asked };
        assert!(round_trips(&text(&said.stdout)).iter().all(|&ms| ms >= asked + back), "{}", text(&said.stdout));
        let set = format!("run.replay={record}");
        let out = elsewhere.join("out").display().to_string();
        let again = [&saved, "--set", &set, "--set", "record.series=100ms", "--out", &out];
        let replay = ackclock().args(again).output().expect("ackclock");
        assert_eq!(replay.status.code(), Some(0), "{options:?}: {}", text(&replay.stderr));
        let summary = fs::read_to_string(elsewhere.join("out/summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        let live = &summary["live"];
        // Packet by packet what was sent is what was sent then.
        assert_eq!((&live["valid"], &live["clock"]), (&true.into(), &"capture".into()), "{options:?}: {live}");
        assert!(live["compared_packets"].as_u64() > Some(0), "{options:?}: {live}");
        // Saved again it is the same text, and another network matches nothing.
        let shown = ackclock().args([&saved, "--show-config"]).output().expect("ackclock");
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    }
}

#[test]
fn mistakes_are_reported_before_anything_starts() {
    let wrong = |args: &[&str], part: &str| {
        let said = shell(&[args, &["--", "true"]].concat());
        let error = text(&said.stderr);
        assert!(said.status.code() == Some(2) && error.contains(part), "{args:?}: {error}");
    };
    wrong(&["--delay", "20"], "--delay 20");
    wrong(&["--rate", "fast"], "a rate of fast");
    wrong(&["--loss", "101%"], "expected a share of packets");
    wrong(&["--queue", "fq_coddle"], "fq_codel");
    wrong(&["--queue", "pie,target"], "is not KEY=VALUE");
    wrong(&["--queue", "pie,tarket=5ms"], "tarket");
    wrong(&["--trace", "/no/such/file"], "/no/such/file");
    wrong(&["--set", "links.link.dely=5ms"], "dely");
    wrong(&["--trace", "a", "--rate", "1mbit"], "cannot be used with");
    wrong(&["--internet", "--peer", "true"], "cannot be used with");
    assert!(!Path::new("/run/netns/ack-shell").exists());
}
