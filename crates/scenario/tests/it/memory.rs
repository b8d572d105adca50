//! The cost of reading and showing very much: for each flow and each key as much as for the one
//! before.

use ackclock_scenario::Scenario;
use ackclock_testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn reading_and_showing_flows_is_linear_in_them() {
    let text = |flows: u32| {
        let base = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n";
        let flows = (0..flows).map(|n| format!("[[flows]]\nid = \"f{n}\"\npath = [\"a\"]\n"));
        base.to_owned() + &flows.collect::<String>()
    };
    let taken = |flows: u32| {
        let text = text(flows);
        let mut shown = 0;
        let taken = allocations(|| {
            let scenario = Scenario::parse("flows", text.as_bytes(), &[]).expect("it is right");
            shown = scenario.resolved().lines().count();
        });
        (taken.count, taken.bytes, shown as u64)
    };
    let (few, many) = (taken(1000), taken(4000));
    let lines = many.2 / 4000;
    assert!(lines > 40, "{lines} keys of a flow");
    // Four times as much: buffers that double may be half empty.
    assert!(many.0 < few.0 * 4 + 1000, "{few:?} {many:?}");
    assert!(many.1 < few.1 * 6, "{few:?} {many:?}");
    // A line has its name, its value, both for being written, and a share of what its table takes.
    assert!(many.0 / many.2 < 20, "{} allocations for a line", many.0 / many.2);
    assert!(many.1 / many.2 < 1800, "{} bytes for a line", many.1 / many.2);
}

#[test]
fn unknown_keys_beyond_those_that_are_told_cost_nothing_but_their_reading() {
    let base =
        "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    let keys: String = (0..100_000).map(|n| format!("k{n} = 1\n")).collect();
    let text = base.to_owned() + &keys;
    let mut error = None;
    let taken = allocations(|| error = Scenario::parse("keys", text.as_bytes(), &[]).err());
    let error = error.expect("the keys are unknown").render(false);
    assert!(error.contains("unknown key `k0`") && error.ends_with("\n\nand at least 980 more"), "{error}");
    // To look for a near miss among the 75 keys of a flow takes some hundreds.
    assert!(taken.count / 100_000 < 20, "{} allocations for a key", taken.count / 100_000);
}

#[test]
fn there_are_not_too_many_axes() {
    let base =
        "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"10mbit\"\n[[flows]]\nid = \"f\"\npath = [\"a\"]\n";
    let axes: String = (0..100_000).map(|n| format!("axes.\"links.a.x{n}\" = [1]\n")).collect();
    let error = Scenario::parse("axes", format!("{base}[sweep]\n{axes}").as_bytes(), &[]).unwrap_err().render(false);
    assert!(error.contains("sweep.axes: 100000 axes are too many"), "{error}");
}
