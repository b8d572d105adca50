//! Instructions and estimated cache misses of the program for each data packet, compared with the
//! committed table of its build profile.
//!
//! `ACKCLOCK_PROFILE` names the profile (`dist` by default), `ACKCLOCK_WRITE_DOCS=1` writes the
//! table anew, and `ACKCLOCK_BIN` names another build to be measured. Without valgrind nothing is
//! measured. `cargo test` only reads the tables.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use ackclock_benches::cachegrind::{self, Case, Counts};
use ackclock_benches::table;
use ackclock_benches::topology::{Bulk, CUBIC, NEWRENO, Queue, overshoot};

/// The profiles that have a table: packages and published numbers, and `.ci/run`.
const PROFILES: [&str; 2] = [cachegrind::SHIPPED, "dev"];

/// The window in packets of the runs with one large loss.
const WIDE: u64 = 10_000;

/// The table of a profile.
fn path(profile: &str) -> String {
    let suffix = if profile == cachegrind::SHIPPED { String::new() } else { format!("-{profile}") };
    format!("{}/instructions{suffix}.md", env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the table; what is published is measured for longer than what every change pays.
fn cases(profile: &str) -> Vec<Case> {
    let is_published = profile == cachegrind::SHIPPED;
    let pick = |long, short| if is_published { long } else { short };
    let mut cases = Vec::new();
    let mut case = |name: String, bulk: Bulk, durations: [&str; 2]| {
        cases.push(Case { name, scenarios: durations.map(|duration| bulk.scenario(duration)) });
    };
    let queues = [
        ("drop-tail 180", Queue::DropTail(180)),
        ("PIE", Queue::Named("pie")),
        ("fq_codel", Queue::Named("fq_codel")),
        ("RED", Queue::Named("red")),
        ("BLUE", Queue::Named("blue")),
    ];
    for host in [NEWRENO, CUBIC] {
        for (name, queue) in queues {
            let name = format!("2 {} {}, 10 Mbit/s, {name}", host.0, host.1);
            case(name, Bulk::shared(2, host, 10, queue), pick(["20s", "50s"], ["10s", "25s"]));
        }
    }
    let most = pick(["200ms", "400ms"], ["100ms", "200ms"]);
    for (flows, gbit, limit, durations) in
        [(100, 1, 1000, ["1s", "2s"]), (1000, 1, 1000, ["1s", "1500ms"]), (10_000, 10, 10_000, most)]
    {
        let name = format!("{flows} {} {}, {gbit} Gbit/s, drop-tail {limit}", NEWRENO.0, NEWRENO.1);
        case(name, Bulk::shared(flows, NEWRENO, 1000 * gbit, Queue::DropTail(limit)), durations);
    }
    // Its cost for a packet is not to grow with the window.
    for host in [NEWRENO.0, CUBIC.0] {
        let scenarios = ["200ms", "1200ms"].map(|duration| overshoot(host, WIDE, duration));
        cases.push(Case { name: format!("1 {host} newreno, half of {WIDE} packets lost"), scenarios });
    }
    cases
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The table of a profile as it is committed: its compiler and its rows.
fn committed(profile: &str) -> io::Result<(String, table::Rows)> {
    let path = path(profile);
    table::parse(&fs::read_to_string(&path)?).ok_or_else(|| io::Error::other(format!("{path} is not a table")))
}

/// Checks that each table has a row for each case, in the same order, and the generated text.
fn are_complete() -> io::Result<bool> {
    for profile in PROFILES {
        let (compiler, rows) = committed(profile)?;
        let is_complete = rows.iter().map(|(name, _)| name).eq(cases(profile).iter().map(|case| &case.name));
        if !is_complete || fs::read_to_string(path(profile))? != table::render(profile, &compiler, &rows) {
            say(&format!("{} has other rows or words than are written\n", path(profile)));
            return Ok(false);
        }
    }
    Ok(true)
}

/// Measures, and writes the table of the profile or compares with it. Whether it is as committed.
fn measure() -> io::Result<bool> {
    let profile = std::env::var("ACKCLOCK_PROFILE").unwrap_or_else(|_| cachegrind::SHIPPED.to_owned());
    let cases = cases(&profile);
    let (program, compiler) = (cachegrind::program(&profile)?, cachegrind::compiler()?);
    let writes = std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some();
    let counts = if writes { Counts::Misses } else { Counts::Instructions };
    let costs = cachegrind::measure(&program, &cases, counts, |_| say("."))?;
    say("\n");
    let measured: table::Rows = cases.into_iter().map(|case| case.name).zip(costs).collect();
    if writes {
        let path = path(&profile);
        fs::write(&path, table::render(&profile, &compiler, &measured))?;
        say(&format!("written: {path}\n"));
        return Ok(true);
    }
    let (theirs, rows) = committed(&profile)?;
    let (text, differs) = table::compare(&rows, &measured);
    say(&text);
    if differs && theirs != compiler {
        say(&format!("not judged: the table is of {theirs}, this is {compiler}\n"));
    } else if differs {
        say(&format!(
            "The costs differ from {} by more than 1 %. If that is meant, say why in the commit, with\n\
             ACKCLOCK_WRITE_DOCS=1 ACKCLOCK_PROFILE={profile} cargo bench -p ackclock-benches --bench instructions\n",
            path(&profile)
        ));
    }
    Ok(!differs || theirs != compiler)
}

fn main() -> ExitCode {
    let result = if !std::env::args().any(|argument| argument == "--bench") {
        are_complete()
    } else if cachegrind::is_there() {
        measure()
    } else {
        say("skipped instructions: there is no valgrind\n");
        Ok(true)
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}
