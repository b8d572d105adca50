//! The estimate of a run's memory against the peak of a process that does it.
#![cfg(target_os = "linux")]

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::Command;
use std::{env, fs};

use ackclock_scenario::Scenario;

/// Names the scenario to the process that is measured.
const CASE: &str = "ACKCLOCK_PEAK_CASE";

const BULK: &str = "[links.a]\nrate = \"1gbit\"\ndelay = \"10ms\"\nqueue = { kind = \"pfifo\", limit = \"5000p\" }\n\
                    [[flows]]\nid = \"f\"\npath = [\"a\"]\nstart_jitter = \"200ms\"\n";

fn scenario(case: &str) -> Scenario {
    let text = match case {
        "Linux" => format!("duration = \"2s\"\n{BULK}count = 3000\nhost = \"linux-6.1\"\ncc = \"cubic\"\n"),
        "FreeBSD" => format!("duration = \"2s\"\n{BULK}count = 3000\nhost = \"freebsd-9.2\"\ncc = \"newreno\"\n"),
        "short" => "duration = \"5s\"\n[links.a]\nrate = \"1gbit\"\ndelay = \"100ms\"\n[[flows]]\nid = \"f\"\n\
                    path = [\"a\"]\nbytes = \"10kB\"\ncount = 20_000\narrival_rate = 5000\n"
            .to_owned(),
        "workload" => "duration = \"1s\"\n[links.a]\nrate = \"10gbit\"\ndelay = \"50us\"\n\
                       queue = { kind = \"pfifo\", limit = \"500p\" }\n[[workloads]]\nid = \"w\"\npath = [\"a\"]\n\
                       host = \"linux-6.1\"\nsize = \"30kB\"\nload = 0.6\n"
            .to_owned(),
        _ => panic!("no such case: {case}"),
    };
    let text = format!("schema = 1\n[run]\n{text}");
    Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The peak of this process so far, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number")
}

/// Measured in a process of its own.
fn measured(case: &str) -> u64 {
    let own = env::current_exe().expect("it is known");
    let test = ["--exact", "peak::estimates_cover_the_peak_and_are_within_twice_of_it", "--nocapture"];
    let output = Command::new(own).args(test).env(CASE, case).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.lines().find_map(|line| line.split("peak=").nth(1)?.trim().parse().ok());
    told.unwrap_or_else(|| panic!("{case}: {text}"))
}

#[test]
fn estimates_cover_the_peak_and_are_within_twice_of_it() {
    if let Ok(case) = env::var(CASE) {
        let spec = scenario(&case).spec(0);
        let summary = ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(())).expect("the data is intact");
        writeln!(io::stdout(), "\npeak={}", peak()).expect("it is read");
        drop(summary);
        return;
    }
    for case in ["Linux", "FreeBSD", "short", "workload"] {
        let estimate = scenario(case).memory().remove(0).1;
        let (peak, total) = (measured(case), estimate.total());
        assert!(peak <= total && total <= 2 * peak, "{case}: {peak} bytes, estimated {total}: {estimate:?}");
    }
}
