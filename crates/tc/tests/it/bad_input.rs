//! Errors name file and line, what is wrong, and what may be there.

use ackclock_tc::{Options, Source, import};

fn error(text: &str) -> String {
    let source = Source { name: "router.sh", text };
    import(&[source], &Options::default()).expect_err("it is wrong").to_string()
}

#[test]
fn errors_name_line_and_expectation() {
    for (text, expected) in [
        (
            "\n\ntc qdisc add dev a root tbf rate 10mb burst 1k latency 1ms",
            "router.sh:3: `rate 10mb`; expected a rate: bit/s, or with bit",
        ),
        (
            "tc qdisc add dev a root fq_codel target 5 ms",
            "router.sh:1: `fq_codel` has no option `ms`; expected one of limit, flows",
        ),
        ("tc qdisc add dev a root fq_codel target", "router.sh:1: `target` has no value; expected a time"),
        ("tc qdisc add root pfifo", "router.sh:1: no device; expected `dev NAME`"),
        ("tc qdisc add dev a pfifo", "router.sh:1: no place for the qdisc; expected `root` or `parent ID`"),
        ("tc qdisc add dev a root handle zz: pfifo", "router.sh:1: `handle zz:`; expected the number of a qdisc"),
        (
            "tc qdisc add dev a root tbf burst 1k latency 1ms",
            "router.sh:1: `tbf` without `rate`; expected `rate VALUE`",
        ),
        (
            "tc qdisc add dev a root netem loss 1% delay",
            "router.sh:1: `delay` has no value; expected a time: nanoseconds",
        ),
        ("tc qdisc add dev a root netem loss 101%", "router.sh:1: `loss 101%`; expected a percentage"),
        (
            "tc qdisc add dev a root netem reorder 5%",
            "router.sh:1: `reorder 5%` without a delay; expected `delay TIME`",
        ),
        ("tc qdisc add dev a root netem speed 5", "router.sh:1: netem has no option `speed`; expected limit, delay"),
        (
            "tc qdisc add dev a root handle 1: htb\ntc class add dev a parent 1: htb rate 1mbit",
            "router.sh:2: no class; expected `classid ID`",
        ),
        (
            "tc qdisc add dev a root handle 1: htb\ntc class add dev a parent 1: classid 1:1 htb ceil 1mbit",
            "router.sh:2: `htb class` without `rate`; expected `rate VALUE`",
        ),
        (
            "tc qdisc add dev a root handle 1: htb\ntc class add dev a parent 1:7 classid 1:1 htb rate 1mbit",
            "router.sh:2: `parent 1:7`; expected the number of a class that is set up",
        ),
        (
            "tc qdisc add dev a root handle 1: htb\ntc class add dev a parent 1: classid 1:1 htb rate 50%",
            "router.sh:2: `rate 50%`; expected a rate, or `--rate` with that of the device",
        ),
        (
            "tc qdisc add dev a root handle 1: htb\ntc class add dev a parent 1: classid 1:1 htb rate 1mbit\n\
             tc filter add dev a parent 1: u32 match ip speed 5 flowid 1:1",
            "router.sh:3: `match ip speed 5 flowid`; expected a selector",
        ),
        (
            "ls\n",
            "router.sh: found nothing that sets a queue up (1 lines are left over, the first: router.sh:1: `ls`: not a",
        ),
        ("", "router.sh: found nothing that sets a queue up; expected"),
        ("[{\"kind\": }]", "router.sh:1: no JSON: expected value at line 1 column 11; expected the output of `tc -j`"),
        ("[\n1]", "router.sh:1: no object; expected an object with `kind` or `class`"),
        (
            "config queue\n\toption enabled '1'\n\toption script 'fast.qos'",
            "router.sh:3: `option script 'fast.qos'`; expected one of simple.qos",
        ),
        (
            "config queue\n\toption enabled '1'\n\toption script 'simple.qos'\n\toption upload '5mbit'",
            "router.sh:4: `option upload '5mbit'`; expected a whole number",
        ),
        ("config queue\n\toption enabled '0'\n", "router.sh: found no enabled section; expected `option enabled '1'`"),
        (
            "Circuit ID,Parent Node,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps\n1,A,1,1,x,1\n",
            "router.sh:2: `download max mbps` is `x`; expected a rate in Mbit/s, above 0",
        ),
        (
            "{\n\"A\": {\"downloadBandwidthMbps\": 5}}",
            "router.sh:2: `A` has no `uploadBandwidthMbps`; expected a rate in Mbit/s",
        ),
    ] {
        let found = error(text);
        assert!(found.starts_with(expected), "{text}\nfound    {found}\nexpected {expected}");
    }
}

/// Right one by one, but not together: HTB has eight levels.
#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let mut text =
        "tc qdisc add dev a root handle 1: htb default 9\ntc class add dev a parent 1: classid 1:1 htb rate 1mbit\n"
            .to_owned();
    for level in 2..=9 {
        text += &format!("tc class add dev a parent 1:{} classid 1:{level} htb rate 1mbit\n", level - 1);
    }
    let found = error(&text);
    assert!(found.starts_with("router.sh: the scenario of these commands is refused: "), "{found}");
    assert!(found.contains("at most seven classes above a leaf"), "{found}");
}
