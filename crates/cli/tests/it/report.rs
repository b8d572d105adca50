//! `ackclock report`: the page, in a browser where there is one, and figures as files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Said, ackclock, folder, run};
use serde_json::Value;

/// Two axes, three repetitions that differ, and every record that has a picture.
const SWEEP: &str = r#"
schema = 1
title  = "Two <controllers> & queues"
run    = { duration = "2s" }
record = { series = "100ms", queue = true, tcp = true, reordering = ["receiver"], reordering_every = "100ms" }

[links.wire]
rate  = "5mbit"
delay = "10ms"
queue = { kind = "pie", limit = "60p" }

[[flows]]
id           = "f"
count        = 2
path         = ["wire"]
start_jitter = "300ms"

[sweep]
repeat = 3
axes."links.wire.queue.kind" = ["pfifo", "pie"]
axes."flows.f.cc" = ["newreno", "cubic"]

[[expect]]
metric   = "flows.f.0.goodput_bps"
at_least = 1

[[expect]]
metric  = "flows.f.1.goodput_bps"
at_most = 1
"#;

/// A script that drives the page: every kind of figure with every metric, every subject, menus,
/// tooltips, zoom, both colours. Errors are noted by the page itself.
const DRIVE: &str = r##"
    const marks = [], tips = [];
    const set = (list, value) => { list.value = value; list.dispatchEvent(new Event("change")); };
    const lists = () => [...document.querySelectorAll("#figures select")];
    const metrics = () => lists().find((list) => ["metric", "up"].includes(list.getAttribute("aria-label")));
    const figure = document.querySelector("[data-figure=figure]");
    for (const tab of [...document.querySelectorAll("[data-kind]")].map((tab) => tab.dataset.kind)) {
        document.querySelector(`[data-kind=${tab}]`).click();
        for (const subject of [...lists()[0].options].map((option) => option.value)) {
            set(lists()[0], subject);
            for (const metric of [...metrics().options].map((option) => option.value).slice(0, 12)) {
                set(metrics(), metric);
                marks.push(`${tab} ${subject} ${metric} ${figure.dataset.marks}`);
            }
        }
        for (const list of lists().slice(2).filter((list) => !list.getAttribute("aria-label").startsWith("only"))) {
            const name = list.getAttribute("aria-label");
            for (const value of [...list.options].map((option) => option.value)) {
                const same = lists().find((list) => list.getAttribute("aria-label") === name);
                if (same) set(same, value);
            }
        }
    }
    document.querySelector("[data-kind=cdf]").click();
    set(lists()[0], "flows");
    for (const [name, value] of [["colour", "id"], ["columns", ""], ["rows", ""]]) {
        set(lists().find((list) => list.getAttribute("aria-label") === name), value);
    }
    const whole = Number(figure.dataset.marks);
    const only = () => lists().find((list) => list.getAttribute("aria-label") === "only queue.kind");
    set(only(), "0");
    document.body.dataset.only = [whole, Number(figure.dataset.marks)].join(" ");
    set(only(), "");
    for (const one of document.querySelectorAll("#run select, #table select")) {
        for (const option of [...one.options]) if (one.isConnected) set(one, option.value);
    }
    document.querySelector("[data-kind=boxes]").click();
    set(lists()[0], "flows");
    for (const chart of Page.charts) {
        chart.drawn.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: 1 });
        tips.push(chart.box.textContent.trim().length);
    }
    const time = Page.charts.find((chart) => chart.box.dataset.figure === "time").drawn;
    time.dispatchAction({ type: "dataZoom", dataZoomIndex: 1, start: 25, end: 50 });
    const zooms = time.getModel().getComponent("xAxis", 0) && time.getOption().dataZoom.map((zoom) => zoom.start);
    document.getElementById("theme").click();
    document.body.dataset.marks = marks.join("\n");
    document.body.dataset.tips = tips.join(" ");
    document.body.dataset.zooms = zooms.join(" ");
    document.body.dataset.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    document.body.dataset.rows = document.querySelectorAll("#table tbody tr").length;
    document.body.dataset.verdicts = [...document.querySelectorAll("#expectations td.met, #expectations td.missed")].map((cell) => cell.textContent).join(" ");
    document.body.dataset.driven = "yes";
"##;

fn report(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).arg("report").args(args).output().expect("the binary runs").into()
}

fn good(said: &Said) {
    assert_eq!((said.status, said.err.as_str()), (0, ""));
}

fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    found.into_iter().find(|program| program.is_file())
}

/// The document of a page after its scripts have run.
fn open(browser: &Path, page: &Path) -> String {
    let url = format!("file://{}", page.display());
    let profile = page.with_extension("profile");
    let opened = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--window-size=1280,1000", "--dump-dom", &url])
        .output()
        .expect("it was found");
    let _ = fs::remove_dir_all(&profile);
    String::from_utf8_lossy(&opened.stdout).into_owned()
}

/// The value of an attribute of the body.
fn attribute<'a>(document: &'a str, name: &str) -> &'a str {
    let body = document.find("<body").map_or("", |at| &document[at..]);
    let body = &body[..body.find('>').unwrap_or(0)];
    let Some((_, rest)) = body.split_once(&format!("data-{name}=\"")) else { return "there is none" };
    rest.split('"').next().unwrap_or("")
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn every_figure_of_the_page_can_be_chosen_and_has_marks() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no Chromium in PATH");
        return;
    };
    let folder = folder("report_page");
    run(&folder, SWEEP, &["--out", "out", "-q"]);
    good(&report(&folder, &["out"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let (before, after) = page.rsplit_once("</body>").unwrap();
    fs::write(folder.join("driven.html"), format!("{before}<script>{DRIVE}</script></body>{after}")).unwrap();
    let document = open(&browser, &fs::canonicalize(folder.join("driven.html")).unwrap());
    assert_eq!(attribute(&document, "errors"), "");
    assert_eq!((attribute(&document, "ready"), attribute(&document, "driven")), ("yes", "yes"));
    let marks: Vec<&str> = attribute(&document, "marks").split('\n').collect();
    for kind in ["boxes", "lines", "cdf", "scatter", "heat"] {
        assert!(marks.iter().filter(|line| line.starts_with(kind)).count() >= 20, "{marks:#?}");
    }
    let empty: Vec<&&str> = marks.iter().filter(|line| line.ends_with(" 0")).collect();
    assert!(empty.is_empty(), "nothing is drawn for {empty:?}");
    let tips: Vec<u32> = attribute(&document, "tips").split(' ').map(|length| length.parse().unwrap()).collect();
    // The figure, runs over each other, time, reordering, its densities, queue, sequence numbers,
    // and an expectation.
    assert!(tips.len() == 8 && tips.iter().all(|&length| length > 5), "{tips:?}");
    assert_eq!(attribute(&document, "zooms"), "25 25");
    assert_eq!(attribute(&document, "overflow"), "0");
    // 4 points of 3 runs of 2 flows, or half of them; each of the two lines begins at 0.
    assert_eq!(attribute(&document, "only"), "26 14");
    // 4 points of 2 flows or of 2 directions, or of the run, whichever was looked at last.
    assert!(attribute(&document, "rows").parse::<u32>().unwrap() >= 4);
    let verdicts = attribute(&document, "verdicts");
    assert!(verdicts.starts_with("met met met met") && verdicts.ends_with("missed"), "{verdicts}");
}

#[test]
fn the_page_needs_nothing_else_and_repeats() {
    let folder = folder("report_alone");
    run(&folder, SWEEP, &["--out", "out", "-q"]);
    good(&report(&folder, &["out", "-o", "one.html"]));
    good(&report(&folder, &["out", "-o", "two.html"]));
    let page = fs::read_to_string(folder.join("one.html")).unwrap();
    assert_eq!(page, fs::read_to_string(folder.join("two.html")).unwrap());
    for tag in ["src=\"", "<link", "@import", "{{"] {
        let markup = page.split("<script>").next().unwrap();
        assert!(!markup.contains(tag), "{tag}");
    }
    // The scenario's text ends no element of the page.
    assert!(page.contains("<title>Two &lt;controllers> &amp; queues</title>"));
    assert_eq!(page.matches("</script>").count(), 4);
}

/// Number of texts and shapes in a figure.
fn drawn(file: &Path) -> (u32, u32) {
    let svg = fs::read_to_string(file).unwrap();
    let mut reader = quick_xml::Reader::from_str(&svg);
    let (mut texts, mut paths) = (0, 0);
    loop {
        match reader.read_event().expect("it is XML") {
            quick_xml::events::Event::Start(tag) if tag.name().as_ref() == "text" => texts += 1,
            quick_xml::events::Event::Start(tag) if ["path", "polyline"].contains(&tag.name().as_ref()) => paths += 1,
            quick_xml::events::Event::Eof => return (texts, paths),
            _ => {}
        }
    }
}

#[test]
fn figures_are_files() {
    let folder = folder("report_svg");
    run(&folder, SWEEP, &["--out", "out", "-q"]);
    good(&report(&folder, &["out", "--svg", "figures", "--run", "3"]));
    let names = names(&folder.join("figures"));
    for name in [
        "box-flows-goodput_bps",
        "cdf-flows-rtt_ms.p50",
        "box-flows-rtt_ms-within",
        "throughput-delay-flows",
        "heat-flows-rtt_ms.p50",
        "run-3-time",
        "run-3-reordering",
        "run-3-reorder-density",
        "run-3-queue-wire.forward",
        "run-3-sequence-f.0",
    ] {
        assert!(names.contains(&format!("{name}.svg")), "{name}: {names:?}");
        let (texts, paths) = drawn(&folder.join("figures").join(format!("{name}.svg")));
        assert!(texts > 5 && paths > 10, "{name}: {texts} texts, {paths} paths");
    }
    assert!(!names.iter().any(|name| name.contains("run-0")));
    // A metric has its unit.
    let svg = fs::read_to_string(folder.join("figures/box-flows-goodput_bps.svg")).unwrap();
    assert!(svg.contains("Goodput (Mbit/s)") && svg.contains("newreno") && svg.contains("pie"), "{svg}");
}

/// The files of a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.collect()
}

#[test]
fn a_figure_can_be_asked_for() {
    let folder = folder("report_asked");
    run(&folder, SWEEP, &["--out", "out", "-q"]);
    let ask = |more: &[&str]| report(&folder, &[&["out", "--svg", "one", "--figure"], more].concat());
    good(&ask(&["box", "--metric", "rtt_ms.p50", "--x", "queue.kind", "--colour", "f.cc", "--only", "flow=f.1"]));
    assert_eq!(names(&folder.join("one")), ["box-flows-rtt_ms.p50.svg"]);
    let svg = fs::read_to_string(folder.join("one/box-flows-rtt_ms.p50.svg")).unwrap();
    for text in ["RTT, median (ms)", ">queue.kind<", ">newreno<", ">cubic<", "Only flow f.1."] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // Facets are left out, or take the place of what had them.
    good(&ask(&["lines", "--of", "links", "--x", "f.cc", "--colour", "none", "--columns", "none", "--rows", "none"]));
    let svg = fs::read_to_string(folder.join("one/lines-links-sojourn_ms.p50.svg")).unwrap();
    assert!(svg.contains(">cc<") && svg.contains("Pooled: all values of queue.kind"), "{svg}");
    good(&ask(&["scatter", "--across", "rtt_ms.p95"]));
    good(&ask(&["heat", "--metric", "rtt_ms.*", "--x", "f.cc", "--y", "queue.kind"]));
    let mut files = names(&folder.join("one"));
    files.sort();
    let more = ["heat-flows-rtt_ms-within.svg", "lines-links-sojourn_ms.p50.svg"];
    assert_eq!(files[1..], [more[0], more[1], "scatter-flows-goodput_bps-rtt_ms.p95.svg"]);
    // The page begins with it.
    good(&report(&folder, &["out", "--figure", "cdf", "--metric", "timeouts", "--colour", "queue.kind"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let of = |key: &str| data["asked"][key].as_str().unwrap();
    assert_eq!(["kind", "metric", "color"].map(of), ["cdf", "timeouts", "links.wire.queue.kind"]);
    for (arguments, error) in [
        (&["box", "--metric", "goodput_bp"][..], "did you mean `goodput_bps`?\nthere are: "),
        (&["box", "--of", "flow"], "did you mean `flows`?\nthere are: flows, links, run"),
        (&["box", "--x", "queue.knd"], "did you mean `queue.kind`?\nthere are: queue.kind, cc, flow, none"),
        (&["box", "--only", "queue.kind=pi"], "--only queue.kind pi: there is no such name"),
        (&["box", "--y", "queue.kind"], "--y does nothing in a figure of kind box"),
        (&["cdf", "--x", "queue.kind"], "--x does nothing in a figure of kind cdf"),
        (&["heat", "--across", "rtt_ms.p50"], "--across does nothing in a figure of kind heat"),
        (&["box", "--x", "f.cc", "--rows", "f.cc"], "--rows f.cc: --x has it"),
        (&["box", "--x", "flow", "--only", "flow=f.0"], "--x flow: --only leaves one value of it"),
        (&["box", "--only", "flow"], "expected AXIS=VALUE"),
        (&["box", "--run", "1"], "--run does nothing for one --figure with --svg"),
    ] {
        let said = ask(arguments);
        assert!(said.status == 2 && said.err.contains(error), "{arguments:?}: {said:?}");
    }
    let said = report(&folder, &["out", "--metric", "timeouts"]);
    assert!(said.status == 2 && said.err.contains("--figure"), "{said:?}");
}

/// As many numbers as a sweep draws are a scale, and each row a point; fewer have a box each.
#[test]
fn many_numbers_are_a_scale() {
    let folder = folder("report_scale");
    for (points, name) in [(40, ">delay<"), (41, ">delay (ms)<")] {
        let sweep = format!(
            "schema = 1\nrun.duration = \"200ms\"\nlinks.wire.rate = \"5mbit\"\n[[flows]]\nid = \"f\"\npath = [\"wire\"]\n\
             [sweep]\nsample = {{ lhs = {points} }}\nranges.\"links.wire.delay\" = {{ min = \"1ms\", max = \"30ms\" }}\n"
        );
        run(&folder, sweep, &["--out", "out", "-q", "--overwrite"]);
        good(&report(&folder, &["out", "--svg", "scale", "--figure", "box"]));
        let svg = fs::read_to_string(folder.join("scale/box-flows-goodput_bps.svg")).expect("a figure");
        assert!(svg.contains(name), "{points}: {svg}");
    }
}

#[test]
fn comparisons_are_counted_as_the_terminal_does() {
    let folder = folder("report_counts");
    let said = run(&folder, SWEEP, &["--out", "out"]);
    // Two expectations at four points of three runs, one of which every run misses.
    assert!(said.out.contains("expectations: 24 checked, 12 missed"), "{}", said.out);
    let summaries = fs::read_to_string(folder.join("out/summary.jsonl")).unwrap();
    let last: Value = serde_json::from_str(summaries.lines().last().unwrap()).unwrap();
    let rows = last["expectations"].as_array().unwrap();
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((rows.len(), sum("checks"), sum("misses")), (8, 24, 12));
    let Some(browser) = browser() else { return };
    good(&report(&folder, &["out"]));
    let document = open(&browser, &fs::canonicalize(folder.join("report.html")).unwrap());
    let text = "24 checked, 12 missed. The table has 8 rows, one for each expectation and point.";
    assert!(document.contains(text));
}

/// The changes of a run from outside.
const CHANGES: &str = r#"{"at_ns": 700000000, "set": "links.wire.rate=2mbit"}
{"at_ns": 700000000, "set": "links.wire.delay=30ms"}
{"at_ns": 1200000000, "set": "links.wire.rate=5mbit"}
"#;

#[test]
fn a_live_run_has_its_changes_and_what_its_links_carry() {
    let folder = folder("report_live");
    fs::write(folder.join("changes.jsonl"), CHANGES).unwrap();
    let scenario = &SWEEP[..SWEEP.find("[sweep]").unwrap()];
    run(&folder, scenario, &["--out", "out", "-q", "--changes", "changes.jsonl"]);
    good(&report(&folder, &["out", "--svg", "figures"]));
    let svg = fs::read_to_string(folder.join("figures/run-0-time.svg")).unwrap();
    for text in ["1: links.wire.rate=2mbit, links.wire.delay=30ms at 0.7 s", "2: links.wire.rate=5mbit at 1.2 s"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(svg.contains(">Throughput<") && !svg.contains("Throughput of links"), "{svg}");
    good(&report(&folder, &["out"]));
    let repeats = "Results repeat to the byte";
    assert!(fs::read_to_string(folder.join("report.html")).unwrap().contains(repeats));
    // Between hosts outside there may be no flow that anybody has declared.
    let out = folder.join("out");
    let series = fs::read_to_string(out.join("series.csv")).unwrap();
    let links = series.lines().filter(|row| !row.contains(",flow,")).map(|row| format!("{row}\n"));
    replace(&out, "series.csv", &links.collect::<String>());
    let summary = fs::read_to_string(out.join("summary.json")).unwrap();
    assert!(summary.contains(r#""clock": "virtual""#), "{summary}");
    replace(&out, "summary.json", &summary.replace(r#""clock": "virtual""#, r#""clock": "live""#));
    good(&report(&folder, &["out", "--svg", "live"]));
    let svg = fs::read_to_string(folder.join("live/run-0-time.svg")).unwrap();
    assert!(svg.contains(">Throughput<") && svg.contains("Mbit/s"), "{svg}");
    good(&report(&folder, &["out"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("Live runs do not repeat") && !page.contains(repeats));
}

/// A point with one run, as narrow as a phone is.
const NARROW: &str = r##"
    const frame = document.createElement("iframe");
    frame.style.width = "390px";
    frame.addEventListener("load", () => {
        const inside = frame.contentDocument, { charts } = frame.contentWindow.Page;
        const texts = charts.flatMap(({ drawn }) => drawn.getZr().storage.getDisplayList(true)).filter((shape) => shape.type === "tspan");
        const cut = texts.filter((shape) => {
            const box = shape.getBoundingRect().clone();
            if (shape.transform) box.applyTransform(shape.transform);
            return box.x < -1 || box.x + box.width > 391;
        });
        document.body.dataset.texts = texts.length;
        document.body.dataset.cut = cut.map((shape) => shape.style.text).join("|");
        document.body.dataset.paged = texts.filter((shape) => /^\d+\/\d+$/.test(shape.style.text)).length;
        document.body.dataset.menus = [...inside.querySelectorAll("select")].filter((list) => list.clientWidth < 300).length;
        document.body.dataset.heads = [...inside.querySelectorAll("#table th")].map((head) => head.textContent).join(" ");
    });
    frame.srcdoc = PAGE;
    document.body.append(frame);
"##;

#[test]
fn nothing_is_cut_off_on_a_narrow_page() {
    let Some(browser) = browser() else { return };
    let folder = folder("report_narrow");
    let scenario = SWEEP.replace("count        = 2", "count        = 9").replace("repeat = 3", "repeat = 1");
    run(&folder, scenario, &["--out", "out", "-q"]);
    good(&report(&folder, &["out"]));
    let page = serde_json::to_string(&fs::read_to_string(folder.join("report.html")).unwrap()).unwrap();
    let script = format!("const PAGE = {};{NARROW}", page.replace('<', "\\u003c"));
    fs::write(folder.join("frame.html"), format!("<body><script>{script}</script></body>")).unwrap();
    let document = open(&browser, &fs::canonicalize(folder.join("frame.html")).unwrap());
    assert!(attribute(&document, "texts").parse::<u32>().unwrap() > 200);
    assert_eq!(
        (attribute(&document, "cut"), attribute(&document, "paged"), attribute(&document, "menus")),
        ("", "0", "0")
    );
    // Without repetitions there is nothing that could vary.
    assert_eq!(attribute(&document, "heads"), "queue.kind cc id value");
}

/// A flow over two links, with the records that tell of its subflows.
const MULTIPATH: &str = r#"
schema = 1
run    = { duration = "3s" }
record = { series = "100ms", tcp = true }
links.slow = { rate = "5mbit", delay = "40ms" }
links.fast = { rate = "5mbit", delay = "5ms" }

[[flows]]
id        = "m"
transport = "mptcp"
subflows  = [["slow"], ["fast"]]

[sweep]
axes."flows.m.scheduler" = ["min_rtt", "round_robin"]
"#;

/// Every metric of subflows, over each other.
const STACKS: &str = r##"
    const marks = [], list = document.querySelector("#subflows select");
    for (const option of [...list.options]) {
        list.value = option.value;
        list.dispatchEvent(new Event("change"));
        marks.push(document.querySelector("[data-figure=subflows]").dataset.marks);
    }
    document.body.dataset.marks = marks.join(" ");
    document.body.dataset.lines = document.querySelector("[data-figure='subflows over time']").dataset.marks;
"##;

#[test]
fn subflows_are_drawn_over_each_other_and_over_time() {
    let folder = folder("report_subflows");
    run(&folder, MULTIPATH, &["--out", "out", "-q"]);
    good(&report(&folder, &["out", "--svg", "figures"]));
    for name in
        ["subflows-goodput_bps", "box-subflows-goodput_bps", "run-0-subflows-m.0", "run-1-sequence-m.0.subflow2"]
    {
        let (texts, paths) = drawn(&folder.join("figures").join(format!("{name}.svg")));
        assert!(texts > 5 && paths > 10, "{name}: {texts} texts, {paths} paths");
    }
    let Some(browser) = browser() else { return };
    good(&report(&folder, &["out"]));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let (before, after) = page.rsplit_once("</body>").unwrap();
    fs::write(folder.join("driven.html"), format!("{before}<script>{STACKS}</script></body>{after}")).unwrap();
    let document = open(&browser, &fs::canonicalize(folder.join("driven.html")).unwrap());
    assert_eq!((attribute(&document, "errors"), attribute(&document, "ready")), ("", "yes"));
    // Two subflows, each in the bars of two schedulers.
    let marks: Vec<&str> = attribute(&document, "marks").split(' ').collect();
    assert!(marks.len() > 20 && marks.iter().all(|&marks| marks == "4"), "{marks:?}");
    // Goodput, RTT, windows and more of 30 intervals, of two subflows.
    assert!(attribute(&document, "lines").parse::<u32>().unwrap() >= 240);
}

#[test]
fn displacements_are_drawn_with_their_density() {
    let folder = folder("report_displacement");
    let scenario = r#"
schema = 1
run    = { duration = "5s" }
record = { displacement = true }
links.near = { rate = "5mbit", delay = "5ms" }
links.far  = { rate = "5mbit", delay = "50ms" }

[[flows]]
id    = "f"
paths = [["near"], ["far"]]
"#;
    run(&folder, scenario, &["--out", "out", "-q"]);
    good(&report(&folder, &["out", "--svg", "figures"]));
    let file = folder.join("figures/run-0-displacement-f.0.svg");
    let (texts, paths) = drawn(&file);
    assert!(texts > 10 && paths > 100, "{texts} texts, {paths} paths");
    let svg = fs::read_to_string(file).unwrap();
    assert!(svg.contains("Reorder density") && svg.contains("by sequence numbers"), "{svg}");
    let Some(browser) = browser() else { return };
    good(&report(&folder, &["out"]));
    let document = open(&browser, &fs::canonicalize(folder.join("report.html")).unwrap());
    assert_eq!((attribute(&document, "errors"), attribute(&document, "ready")), ("", "yes"));
    assert!(
        document.contains("Displacement of the packets of f.0") && document.contains("data-figure=\"displacement\"")
    );
}

/// A flow that infers the state of the queue from delays, and one that measures them alone.
const GRADIENTS: &str = r#"
schema = 1
run    = { duration = "10s" }
record = { ertt = true }
links.wire = { rate = "5mbit", delay = "20ms", queue = { kind = "pfifo", limit = "60p" } }

[[flows]]
id   = "cdg"
host = "freebsd-9.2"
cc   = "cdg"
path = ["wire"]

[[flows]]
id   = "hd"
host = "freebsd-9.2"
cc   = "hd"
path = ["wire"]
"#;

/// Other contents of a file, of which the manifest knows the length.
fn replace(out: &Path, name: &str, contents: &str) {
    fs::write(out.join(name), contents).unwrap();
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    manifest["files"][name]["bytes"] = contents.len().into();
    fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
}

#[test]
fn gradients_of_delay_are_drawn_where_a_controller_follows_them() {
    let folder = folder("report_gradients");
    run(&folder, GRADIENTS, &["--out", "out", "-q"]);
    good(&report(&folder, &["out", "--svg", "figures"]));
    let file = folder.join("figures/run-0-gradients-cdg.0.svg");
    let (texts, paths) = drawn(&file);
    assert!(texts > 20 && paths > 10, "{texts} texts, {paths} paths");
    let svg = fs::read_to_string(file).unwrap();
    for text in ["gradient, shortest RTT", "gradient, longest RTT", "falling", "shadow window", "ms / RTT"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(!folder.join("figures/run-0-gradients-hd.0.svg").exists());
    // A file of an earlier version has no such columns.
    let out = folder.join("out");
    let rows = fs::read_to_string(out.join("ertt.csv")).unwrap();
    let earlier = rows.lines().map(|row| row.split(',').take(10).collect::<Vec<_>>().join(",") + "\n");
    replace(&out, "ertt.csv", &earlier.collect::<String>());
    good(&report(&folder, &["out", "--svg", "earlier"]));
    assert!(!folder.join("earlier/run-0-gradients-cdg.0.svg").exists());
    let Some(browser) = browser() else { return };
    replace(&out, "ertt.csv", &rows);
    good(&report(&folder, &["out"]));
    let document = open(&browser, &fs::canonicalize(folder.join("report.html")).unwrap());
    assert_eq!((attribute(&document, "errors"), attribute(&document, "ready")), ("", "yes"));
    assert!(document.contains("Delay gradients of cdg.0") && document.contains("data-figure=\"gradients\""));
}

#[test]
fn what_is_no_output_is_refused() {
    let folder = folder("report_refused");
    run(&folder, SWEEP, &["--out", "out", "-q"]);
    fs::create_dir(folder.join("empty")).unwrap();
    for (arguments, error) in [
        (&["empty"][..], "empty is not an ackclock output directory (no manifest.json)"),
        (&["out", "--run", "12"], "there is no run 12; runs count from 0"),
        (&["out", "-o", "empty"], "cannot write empty: it is a directory"),
        (&["out", "-o", "missing/page.html"], "cannot write missing/page.html"),
    ] {
        let said = report(&folder, arguments);
        assert!(said.status == 2 && said.err.contains(error), "{arguments:?}: {said:?}");
    }
    // A record that was cut off, and one of something else.
    let (out, record) = (folder.join("out"), "runs/0000/series.csv");
    fs::write(out.join(record), "from_s,to_s,kind\n").unwrap();
    let said = report(&folder, &["out"]);
    assert!(said.status == 2 && said.err.contains("series.csv: it has 17 bytes, and the manifest says"), "{said:?}");
    replace(&out, record, "from_s,to_s,kind\n0,1,flow\n");
    let said = report(&folder, &["out"]);
    assert!(said.status == 2 && said.err.contains("has no column `id`"), "{said:?}");
    #[cfg(target_os = "linux")]
    for (name, other) in [(record, "/dev/zero"), ("summary.jsonl", "/dev/full")] {
        let (path, kept) = (out.join(name), fs::read_to_string(out.join(name)).unwrap());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(other, &path).unwrap();
        for program in ["report", "export", "verify"] {
            let said = Said::from(ackclock().current_dir(&folder).args([program, "out"]).output().unwrap());
            assert_eq!(said.status, 2, "{program} {name}: {said:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    replace(&out, "summary.jsonl", "{\"schema\": 2}\n");
    let said = report(&folder, &["out"]);
    assert!(
        said.status == 2 && said.err.contains("summary 0 is not one of ackclock: its `schema` is not 1"),
        "{said:?}"
    );
}
