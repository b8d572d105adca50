//! `ackclock import tc`, and `ackclock export --format tc`.

use std::fs;
use std::path::Path;

use crate::common::{self, Said, ackclock};

/// HTB with a class for EF, and netem the other way.
const SCRIPT: &str = "\
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 10mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1
tc qdisc add dev $WAN parent 1:20 fq_codel
tc filter add dev $WAN parent 1: u32 match ip dsfield 0xb8 0xfc flowid 1:10
tc qdisc add dev lan root netem delay 10ms rate 50mbit
reboot
";

fn run(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).args(args).output().expect("the binary runs").into()
}

#[test]
fn a_script_becomes_a_scenario_and_a_script() {
    let folder = common::folder("import");
    fs::write(folder.join("router.sh"), SCRIPT).unwrap();
    let said = run(&folder, &["import", "tc", "router.sh", "-D", "WAN=wan", "-o", "router.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let why = "not a `tc` command: not understood and not executed";
    assert!(said.err.contains(&format!("not carried over: router.sh:8: `reboot`: {why}")), "{}", said.err);
    let text = fs::read_to_string(folder.join("router.toml")).unwrap();
    assert!(text.contains("# - router.sh:8: `reboot`"), "{text}");
    // It runs as it is: EF has its class, of 2 Mbit/s and what it borrows.
    let said = run(&folder, &["router.toml", "--set", "run.duration=2s", "--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let said = run(&folder, &["export", "router.toml", "--format", "tc"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.contains("htb rate 2mbit ceil 10mbit\n"), "{}", said.out);
    assert!(said.out.contains("netem delay 10ms limit"), "{}", said.out);
}

#[test]
fn wrong_input_names_what_was_expected() {
    let folder = common::folder("import-bad");
    fs::write(folder.join("a.sh"), "\ntc qdisc add dev a root tbf rate 10mb burst 1k latency 1ms\n").unwrap();
    for (args, expected) in [
        (&["import", "tc", "a.sh"][..], "error: a.sh:2: `rate 10mb`; expected a rate"),
        (&["import", "tc", "b.sh"], "error: cannot read b.sh: "),
        (&["import", "tc", "a.sh", "--rate", "5"], "error: --rate 5: the unit is missing"),
        (&["import", "tc", "a.sh", "-D", "X"], "error: --define X: expected NAME=VALUE"),
        (&["export", ".", "--format", "tc"], "error: .: it is a directory; expected a scenario file"),
    ] {
        let said = run(&folder, args);
        assert_eq!((said.status, said.err.starts_with(expected)), (2, true), "{args:?}: {}", said.err);
    }
}
