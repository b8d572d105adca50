//! The arrows between the crates (ARCHITECTURE.md) hold: what is not drawn in [`ARROWS`] does not
//! exist.

use std::collections::BTreeSet;
use std::process::Command;

use serde::Deserialize;

/// Each crate with the crates that its arrows point at. It may also use what lies behind them.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("aqm", &["units"]),
    ("cc", &["units"]),
    ("events", &["units"]),
    ("packet", &["units"]),
    ("stack", &["units"]),
    ("quic", &["cc", "stack"]),
    ("uml", &["stack"]),
    ("traffic", &["units"]),
    ("emulator", &["aqm", "packet", "traffic"]),
    ("tcp", &["cc", "packet"]),
    ("mptcp", &["tcp"]),
    ("packetdrill", &["mptcp"]),
    ("trace", &["packet", "stack"]),
    ("sim", &["events", "emulator", "mptcp", "stack", "trace", "traffic"]),
    ("live", &["sim"]),
    ("scenario", &["sim", "emulator"]),
    ("gym", &["scenario", "sim"]),
    ("tc", &["scenario", "emulator"]),
    ("report", &["trace"]),
    ("run", &["live", "scenario"]),
    ("watch", &["live", "scenario"]),
    ("cli", &["packetdrill", "quic", "report", "run", "tc", "uml", "watch"]),
    ("python", &["cli", "gym"]),
];

/// Crates for tests and benches: they may use everything, and nothing but tests and benches may use
/// them.
const FOR_TESTS: [&str; 2] = ["testkit", "benches"];

/// Crates that hold the laws and the order of events: they use nothing from outside the workspace.
const PURE: [&str; 3] = ["aqm", "cc", "events"];

/// Crates from outside that read clocks and sockets, with those that may use them.
const FENCED: &[(&str, &[&str])] = &[
    ("tokio", &["live"]),
    ("tun-tap", &["live"]),
    // A file is opened where no link leads; the dashboard waits for its terminal; tests ask what they may do here.
    ("nix", &["cli", "live", "run", "testkit", "watch"]),
    ("rayon", &["run"]),
    ("clap", &["cli"]),
    ("pyo3", &["python"]),
    ("toml", &["scenario"]),
];

/// Crates that the default program is built from, those of the workspace and of build scripts
/// included. A clone takes two minutes to its first result; more crates need a reason as good.
const CRATES: usize = 146;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; normal ones have none.
    kind: Option<String>,
    /// Set for members of the workspace only.
    path: Option<String>,
    #[serde(default)]
    optional: bool,
}

/// A crate by its short name: the binary's package is called like the project.
fn short(name: &str) -> &str {
    if name == "ackclock" { "cli" } else { name.strip_prefix("ackclock-").unwrap_or(name) }
}

/// All crates behind the arrows of a crate.
fn reachable(from: &str) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for &next in ARROWS.iter().filter(|(other, _)| *other == name).flat_map(|(_, arrows)| *arrows) {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Every dependency that no arrow allows, in words.
fn violations(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let from = short(&package.name);
        let exempt = FOR_TESTS.contains(&from);
        if !exempt && !ARROWS.iter().any(|(name, _)| *name == from) {
            found.push(format!("{from} has no place among the arrows"));
            continue;
        }
        let allowed = reachable(from);
        // `python` has what tests have by a feature, and uses none of it.
        let counts = |of: &&Dependency| of.kind.as_deref() != Some("dev") && !(from == "python" && of.optional);
        for dependency in package.dependencies.iter().filter(counts) {
            let to = short(&dependency.name);
            let inside = dependency.path.is_some();
            let fenced = FENCED.iter().any(|(name, users)| *name == to && !users.contains(&from));
            let bad = match (inside, exempt) {
                (true, true) => false,
                (true, false) => !allowed.contains(to),
                (false, _) => fenced || PURE.contains(&from),
            };
            if bad {
                found.push(format!("{from} -> {to}"));
            }
        }
    }
    found
}

fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
    let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
        name: name.to_owned(),
        kind: kind.map(str::to_owned),
        path: name.starts_with("ackclock").then(String::new),
        optional: false,
    };
    Package { name: name.to_owned(), dependencies: dependencies.iter().map(dependency).collect() }
}

#[test]
fn the_workspace_keeps_to_its_arrows() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let members: BTreeSet<&str> = metadata.packages.iter().map(|package| short(&package.name)).collect();
    let drawn: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).chain(FOR_TESTS).collect();
    assert_eq!(members, drawn, "the crates of the workspace and of the arrows");
    assert_eq!(violations(&metadata.packages), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn the_default_program_is_built_from_few_crates() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "ackclock", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("UTF-8");
    let crates: BTreeSet<_> = tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>()).collect();
    assert!(crates.len() <= CRATES, "{} crates, at most {CRATES} are expected", crates.len());
}

#[test]
fn arrows_reach_what_lies_behind_them() {
    assert_eq!(reachable("emulator"), BTreeSet::from(["aqm", "packet", "traffic", "units"]));
    let fine = [
        package("ackclock-sim", &[("ackclock-aqm", None), ("ackclock-units", None), ("smoltcp", None)]),
        package(
            "ackclock-aqm",
            &[("ackclock-units", None), ("ackclock-testkit", Some("dev")), ("proptest", Some("dev"))],
        ),
        package("ackclock-testkit", &[("ackclock-sim", None), ("proptest", None)]),
        package("ackclock", &[("ackclock-tcp", None), ("clap", None)]),
        package("ackclock-live", &[("ackclock-tcp", None), ("tokio", None)]),
    ];
    assert_eq!(violations(&fine), Vec::<String>::new());
}

#[test]
fn an_edge_that_is_not_drawn_is_found() {
    for (name, dependency, kind) in [
        ("ackclock-aqm", "ackclock-packet", None),
        ("ackclock-tcp", "ackclock-trace", None),
        ("ackclock-packet", "ackclock-tcp", None),
        ("ackclock-cc", "ackclock-units-of-another-kind", None),
        ("ackclock-emulator", "ackclock-events", Some("build")),
        ("ackclock-sim", "ackclock-testkit", None),
        ("ackclock-cc", "libm", None),
        ("ackclock-sim", "tokio", None),
        ("ackclock-sim", "clap", None),
        ("ackclock-sim", "ackclock-live", None),
        ("ackclock-scenario", "nix", None),
    ] {
        let found = violations(&[package(name, &[("ackclock-units", None), (dependency, kind)])]);
        assert_eq!(found, [format!("{} -> {}", short(name), short(dependency))]);
    }
    assert_eq!(violations(&[package("ackclock-gui", &[])]), ["gui has no place among the arrows"]);
}
