//! `ackclock reproduce`: rows of published results, their tables in READMEs, and pages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{SMALL, Said, ackclock, folder, sweep};
use serde_json::Value;

/// The expectations of the small transfer, whose results are not known to these tests beyond the
/// limits of its link: 100 kB at 10 Mbit/s last 80 ms at least, and a round trip 10 ms.
const EXPECTS: &str = "
[[expect]]
source    = \"Figure 10\"
published = \"a round trip of at least 10 ms\"
kernel    = \"Linux 6.1: 10.2 ms\"
metric    = \"flows.f.0.rtt_ms.p50\"
at_least  = 10

[[expect]]
source    = \"Figure 2\"
published = \"\"\"complete | within
  a second\"\"\"
note      = \"ten <megabit> are slow\"
metric    = \"flows.f.0.completed_s\"
at_most   = 1

[[expect]]
source    = \"Figure 2\"
metric    = \"flows.f.0.completed_s\"
at_most   = 0.08

[[expect]]
source    = \"Table 1\"
published = \"done in no time\"
note      = \"not on this link\"
metric    = \"flows.f.0.completed_s\"
at_most   = 0.001

[[expect]]
metric    = \"flows.f.0.completed_s\"
at_least  = 100
";

/// Over three delays, of which the last has a longer round trip.
const SWEPT: &str = "
[[expect]]
source    = \"Figure 2\"
published = \"round trips below 12 ms\"
runs      = \"median\"
metric    = \"flows.f.0.rtt_ms.min\"
at_most   = 12
";

const README: &str = "# Paper\n\n<!-- reproduce -->\n<!-- /reproduce -->\n\nMore.\n";

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("the target directory is writable");
    fs::write(path, text).expect("a file can be written");
}

/// A gallery with the folders `paper`, which has rows, and `plain`, which has none.
fn gallery(name: &str) -> PathBuf {
    let dir = folder(name);
    write(dir.join("scenarios/paper/one.toml"), &format!("{SMALL}{EXPECTS}"));
    write(dir.join("scenarios/paper/swept.toml"), &format!("{}{SWEPT}", sweep()));
    write(dir.join("scenarios/paper/README.md"), README);
    write(dir.join("scenarios/plain/none.toml"), SMALL);
    dir
}

fn reproduce(dir: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(dir).arg("reproduce").args(args).output().expect("the binary runs").into()
}

#[test]
fn rows_are_ok_in_part_or_missed() {
    let dir = gallery("reproduce_rows");
    let said = reproduce(&dir, &[]);
    assert_eq!(said.status, 0, "{}", said.err);
    let result = |source: &str| {
        let line = said.out.lines().find(|line| line.starts_with(source)).unwrap_or_else(|| panic!("{}", said.out));
        line.split_whitespace().last().expect("a result").to_owned()
    };
    assert_eq!(["Figure 2", "Figure 10", "Table 1"].map(result), ["part", "ok", "miss"]);
    // In the order of people, each once.
    let places = ["Figure 2 ", "Figure 10 ", "Table 1 "].map(|source| said.out.find(source).expect("a row"));
    assert!(places.is_sorted());
    let wrapped = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "real kernel",
        "Linux 6.1: 10.2 ms",
        "expected at most 1 s; one",
        // The point that is furthest from the bound: a round trip over 9 ms each way.
        "expected at most 12 ms; swept, delay 9ms; 2 of 3 points met",
        "p5..p95",
        "n 2)",
        "\n3 rows: 1 ok, 1 part, 1 miss\n",
        "\n- Figure 2 (part): ten <megabit> are slow\n",
        "\n- Table 1 (miss): not on this link\n",
        "\n3 rows: 1 ok, 1 part, 1 miss; ",
    ] {
        assert!(said.out.contains(part) || wrapped.contains(part), "{part:?} in {}", said.out);
    }
    assert!(said.err.contains("2 of 2: paper/swept, 6 runs"), "{}", said.err);
    assert!(said.out.lines().all(|line| line.chars().count() <= 100), "{}", said.out);
    // A plain check is no row, and its miss changes nothing.
    assert!(!said.out.contains("at least 100"));
    let quiet = reproduce(&dir, &["--quiet"]);
    assert_eq!((quiet.status, quiet.out.as_str(), quiet.err.as_str()), (0, "", ""));
}

#[test]
fn a_row_that_the_median_of_runs_would_meet_says_so() {
    let dir = folder("reproduce_median");
    let lossy = SMALL.replace("delay = \"5ms\"", "delay = \"5ms\"\nloss = { kind = \"iid\", probability = 0.05 }");
    let with_bound = |bound: f64| {
        let expect = "[[expect]]\nsource = \"Figure 1\"\nmetric = \"flows.f.0.completed_s\"";
        let text = format!("{lossy}[sweep]\nrepeat = 5\n{expect}\nat_most = {bound}\n");
        write(dir.join("scenarios/paper/one.toml"), &text);
        write(dir.join("scenarios/paper/README.md"), README);
        let row: Value = serde_json::from_str(&reproduce(&dir, &["--json"]).out).expect("JSON");
        row
    };
    let row = with_bound(1e3);
    assert_eq!((&row["result"], &row["result_by_median"]), (&"ok".into(), &"ok".into()));
    let values = row["expectations"][0]["values"].as_array().expect("values");
    let mut values: Vec<f64> = values.iter().map(|value| value.as_f64().expect("a time")).collect();
    values.sort_by(f64::total_cmp);
    assert!(values[2] < values[4], "{values:?}");

    let row = with_bound(f64::midpoint(values[2], values[4]));
    assert_eq!((&row["result"], &row["result_by_median"]), (&"miss".into(), &"ok".into()));
    assert_eq!(reproduce(&dir, &["--readme"]).status, 0);
    let text = fs::read_to_string(dir.join("scenarios/paper/README.md")).expect("a README");
    assert!(text.contains("\n| miss; ok by medians | Figure 1 |"), "{text}");
    let totals = "1 row: 0 ok, 0 part, 1 miss (1 ok by the medians of runs)";
    assert!(text.contains(&format!("\n{totals}.\n")), "{text}");
    let said = reproduce(&dir, &[]);
    assert!(said.out.contains(totals) && said.out.contains("\n    ok by the medians of runs\n"), "{}", said.out);

    let row = with_bound(values[0] / 2.0);
    assert_eq!((&row["result"], &row["result_by_median"]), (&"miss".into(), &"miss".into()));
}

#[test]
fn json_has_a_row_in_each_line() {
    let dir = gallery("reproduce_json");
    let said = reproduce(&dir, &["paper", "--json", "--threads", "1"]);
    let rows: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let shown: Vec<_> = rows.iter().map(|row| (row["source"].as_str(), row["result"].as_str())).collect();
    assert_eq!(
        shown,
        [(Some("Figure 2"), Some("part")), (Some("Figure 10"), Some("ok")), (Some("Table 1"), Some("miss"))]
    );
    assert_eq!(rows[0]["published"][0], "complete | within a second");
    // Two of one file, and one at three points.
    let expectations = rows[0]["expectations"].as_array().expect("expectations");
    assert_eq!(expectations.len(), 5);
    assert_eq!(expectations[0]["scenario"], "one");
    assert_eq!(
        (&expectations[4]["params"]["links.wire.delay"], &expectations[4]["met"]),
        (&"9ms".into(), &false.into())
    );
    // The output is the same at any number of threads.
    assert_eq!(reproduce(&dir, &["paper", "--json", "--threads", "2", "--quiet"]).out, said.out);
}

#[test]
fn names_select_folders_files_and_sources() {
    let dir = gallery("reproduce_names");
    let totals = |names: &[&str]| {
        let said = reproduce(&dir, names);
        assert_eq!(said.status, 0, "{}", said.err);
        said.out.lines().last().and_then(|line| line.split(';').next()).map(str::to_owned).expect("totals")
    };
    assert_eq!(totals(&["paper"]), "3 rows: 1 ok, 1 part, 1 miss");
    assert_eq!(totals(&["paper/one"]), "3 rows: 1 ok, 1 part, 1 miss");
    assert_eq!(totals(&["scenarios/paper/swept.toml"]), "1 row: 0 ok, 1 part, 0 miss");
    assert_eq!(totals(&["paper:Figure 2"]), "1 row: 0 ok, 1 part, 0 miss");
    assert_eq!(totals(&["paper:fig"]), "2 rows: 1 ok, 1 part, 0 miss");
    assert_eq!(totals(&["paper/one:Table", "paper/swept"]), "2 rows: 0 ok, 1 part, 1 miss");
    for (name, message) in [
        ("papers", "no folder or file `papers` in scenarios; there are:\n  paper: one, swept"),
        ("paper/two", "no folder or file `paper/two`"),
        ("paper:Figure 3", "no source of `paper:Figure 3`; paper has: Figure 10, Figure 2, Table 1"),
        ("plain", "`plain` has no [[expect]] with a `source`; there are:\n  paper: one, swept"),
    ] {
        let said = reproduce(&dir, &[name]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{name}");
        assert!(said.err.contains(message), "{message:?} in {}", said.err);
    }
    let said = reproduce(&dir, &["--scenarios", "nowhere"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("--scenarios DIR names the directory with the folders of scenarios"), "{}", said.err);
    let said = reproduce(&dir.join("scenarios"), &["--scenarios", "plain"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("no scenario plain/FOLDER/FILE.toml"), "{}", said.err);
    fs::remove_dir_all(dir.join("scenarios/paper")).expect("it can be removed");
    let said = reproduce(&dir, &[]);
    assert_eq!(said.status, 0);
    assert!(said.err.contains("note: no [[expect]] in scenarios has a `source`"), "{}", said.err);
}

#[test]
fn tables_of_readmes_are_written_and_compared() {
    let dir = gallery("reproduce_readme");
    let path = dir.join("scenarios/paper/README.md");
    let check = || reproduce(&dir, &["--check", "--quiet"]);
    let said = check();
    assert_eq!(said.status, 1);
    assert!(said.err.contains("differs: scenarios/paper/README.md:4: the README has"), "{}", said.err);
    assert_eq!(fs::read_to_string(&path).expect("a README"), README, "--check writes nothing");

    assert_eq!(reproduce(&dir, &["--readme", "--threads", "1"]).status, 0);
    let text = fs::read_to_string(&path).expect("a README");
    assert!(
        text.starts_with("# Paper\n\n<!-- reproduce -->\nWritten by `ackclock reproduce paper --readme`; `ackclock "),
        "{text}"
    );
    assert!(text.ends_with("<!-- /reproduce -->\n\nMore.\n"), "{text}");
    for part in [
        "\n3 rows: 1 ok, 1 part, 1 miss.\n\n| result | source | published | ackclock |\n|---|---|---|---|\n",
        "| complete \\| within a second<br>round trips below 12 ms |",
        "\n| ok | Figure 10 | a round trip of at least 10 ms | ",
        " ms, expected at least 10 ms<br>Linux 6.1: 10.2 ms |\n",
        "<br>miss: f.0.completed: ",
        "|\n\n- Figure 2: ten &lt;megabit> are slow\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let said = check();
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert_eq!(reproduce(&dir, &["--readme", "--threads", "2", "--quiet"]).status, 0);
    assert_eq!(fs::read_to_string(&path).expect("a README"), text, "the same bytes again");

    fs::write(&path, text.replace("done in no time", "done in time")).expect("it can be written");
    let said = check();
    assert_eq!(said.status, 1);
    assert!(said.err.contains("| Table 1 | done in time |") && said.err.contains("| Table 1 | done in no time |"));

    // A part of a folder has no table of its own.
    let said = reproduce(&dir, &["paper/one", "--readme"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("--readme requires whole folders, such as `paper`"), "{}", said.err);
    for wrong in ["# Paper\n", "<!-- /reproduce -->\n<!-- reproduce -->\n", "<!-- reproduce -->\n"] {
        fs::write(&path, wrong).expect("it can be written");
        for flag in ["--check", "--readme"] {
            let said = reproduce(&dir, &[flag, "--quiet"]);
            assert_eq!(said.status, 2);
            assert!(said.err.contains("scenarios/paper/README.md has no place for its table"), "{}", said.err);
        }
        assert_eq!(fs::read_to_string(&path).expect("a README"), wrong);
    }
    fs::remove_file(&path).expect("it can be removed");
    let said = check();
    assert_eq!(said.status, 2);
    assert!(said.err.contains("cannot read scenarios/paper/README.md"), "{}", said.err);
}

#[test]
fn a_table_without_rows_is_told() {
    let dir = gallery("reproduce_stale");
    assert_eq!(reproduce(&dir, &["--readme", "--quiet"]).status, 0);
    write(dir.join("scenarios/plain/README.md"), README);
    let said = reproduce(&dir, &["--check", "--quiet"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("differs: scenarios/plain/README.md has a table"), "{}", said.err);
}

#[test]
fn pages_have_the_rows_and_the_figures() {
    let dir = gallery("reproduce_pages");
    let out = dir.join("out");
    for _ in 0..2 {
        let said = reproduce(&dir, &["--out", "out"]);
        assert_eq!(said.status, 0, "{}", said.err);
        assert!(said.out.ends_with("out/index.html\n"), "{}", said.out);
    }
    let index = fs::read_to_string(out.join("index.html")).expect("a page");
    for part in [
        "<h2>paper</h2>",
        "<tr class=\"part\"><th scope=\"row\">Figure 2</th>",
        "<p>complete | within a second</p><p>round trips below 12 ms</p>",
        "<tr class=\"ok\"><th scope=\"row\">Figure 10</th>",
        "<p>Linux 6.1: 10.2 ms</p>",
        "<tr class=\"miss\"><th scope=\"row\">Table 1</th>",
        "<a href=\"paper/one.html\">one</a>",
        "<a href=\"paper/swept.html\">swept, delay 9ms; 2 of 3 points met</a>",
        "ten &lt;megabit&gt; are slow",
        "3 rows: 1 ok, 1 part, 1 miss.",
    ] {
        assert!(index.contains(part), "{part:?} in {index}");
    }
    for name in ["one", "swept"] {
        let page = fs::read_to_string(out.join(format!("paper/{name}.html"))).expect("a page");
        assert!(page.contains("<title>small</title>"), "{name}");
        // The results are those of the scenario alone.
        let alone = dir.join(name);
        let file = format!("scenarios/paper/{name}.toml");
        let run = ackclock().current_dir(&dir).args(["-q", &file, "--out", name]).output().expect("the binary runs");
        assert!(run.status.code().is_some_and(|status| status <= 1));
        for entry in fs::read_dir(alone).expect("a folder") {
            let path = entry.expect("a file").path();
            let file = path.file_name().expect("a name");
            let same =
                fs::read(&path).expect("a file") == fs::read(out.join("paper").join(name).join(file)).expect("a file");
            assert!(same, "{}", path.display());
        }
    }
    // Nothing in it depends on the time or the threads.
    assert_eq!(reproduce(&dir, &["--out", "again", "--threads", "1", "--quiet"]).status, 0);
    assert_eq!(fs::read_to_string(dir.join("again/index.html")).expect("a page"), index);
}

#[test]
fn what_cannot_run_does_not_end_the_others() {
    let dir = gallery("reproduce_broken");
    write(dir.join("scenarios/paper/broken.toml"), "schema = 1\nrum = 2\n");
    let live = "schema = 1\nrun = { clock = \"live\", duration = \"1s\" }\n[hosts.us]\naddress = \"10.0.0.1/24\"\n\
                [hosts.kernel]\ntun = \"ackreproduce\"\nnetns = \"right\"\naddress = \"10.0.1.1/24\"\n\
                [links.wire]\nrate = \"1mbit\"\n[[paths]]\nbetween = [\"us\", \"kernel\"]\npath = [\"wire\"]\n\
                [[flows]]\nid = \"f\"\nfrom = \"us\"\nto = \"kernel\"\nport = 5201\n\
                [[expect]]\nsource = \"Figure 9\"\nmetric = \"fairness_jain\"\nat_least = 0\n";
    write(dir.join("scenarios/real/live.toml"), live);
    let said = reproduce(&dir, &["--check"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("scenarios/paper/broken.toml:2:1"), "{}", said.err);
    assert!(said.err.contains("skipped: real/live: live scenarios are not repeatable"), "{}", said.err);
    assert!(
        said.err.contains("note: scenarios/paper/README.md: not all of its scenarios have results"),
        "{}",
        said.err
    );
    assert!(said.out.contains("3 rows: 1 ok, 1 part, 1 miss"), "{}", said.out);
    assert!(!said.out.contains("Figure 9"), "{}", said.out);
    fs::remove_file(dir.join("scenarios/paper/broken.toml")).expect("it can be removed");
    let said = reproduce(&dir, &["real"]);
    assert_eq!(
        (said.status, said.out.lines().last().map(|line| line.starts_with("0 rows"))),
        (0, Some(true)),
        "{}",
        said.err
    );
}

#[test]
fn a_run_that_fails_leaves_its_rows_without_values() {
    let dir = gallery("reproduce_failed");
    let web = "
[[workloads]]
id        = \"web\"
path      = [\"wire\"]
size      = \"50kB\"
load      = 0.9
max_alive = 1
[[expect]]
source    = \"Figure 4\"
metric    = \"flows.f.0.completed_s\"
at_most   = 1
";
    write(dir.join("scenarios/paper/alive.toml"), &format!("{SMALL}{web}"));
    let said = reproduce(&dir, &["--check", "--out", "out"]);
    assert_eq!(said.status, 3, "{}", said.err);
    assert!(said.err.contains("run 0 was broken off: 2 flows are alive after "), "{}", said.err);
    assert!(said.err.contains("note: paper/alive: not all of its runs have results"), "{}", said.err);
    assert!(
        said.err.contains("note: scenarios/paper/README.md: not all of its scenarios have results"),
        "{}",
        said.err
    );
    let found = "miss  f.0.completed: has no value, since the run failed, expected at most 1 s; alive";
    assert!(said.out.contains(found), "{}", said.out);
    assert!(said.out.contains("4 rows: 1 ok, 1 part, 2 miss"), "{}", said.out);
    let index = fs::read_to_string(dir.join("out/index.html")).expect("a page");
    assert!(index.contains("<small>alive</small>") && index.contains("<a href=\"paper/one.html\">"), "{index}");
}
