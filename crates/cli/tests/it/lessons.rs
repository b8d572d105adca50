//! The tables of the lessons have what their commands print.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Said, ackclock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(format!("docs/tutorial/{name}.md"))).expect("a lesson")
}

/// The options of the command of a page that runs a scenario with columns, but for `--out`.
fn options(page: &str, scenario: &str) -> Vec<String> {
    let text = page.replace("\\\n", "");
    let begin = format!("    ackclock {scenario} ");
    let command = text.lines().find_map(|line| line.strip_prefix(&begin).filter(|rest| rest.contains("--columns")));
    let words = command.unwrap_or_else(|| panic!("no command has columns of {scenario}")).split_whitespace();
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    if let Some(out) = words.iter().position(|word| word == "--out") {
        words.drain(out..out + 2);
    }
    words
}

/// The cells of the rows of a printed table.
fn printed(scenario: &str, options: &[String]) -> Vec<Vec<String>> {
    let said: Said = ackclock().current_dir(root()).arg(scenario).args(options).output().expect("it runs").into();
    assert_eq!(said.status, 0, "{}", said.err);
    let rows = said.out.lines().skip_while(|line| !line.starts_with("---")).skip(1).take_while(|line| !line.is_empty());
    rows.map(|row| row.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect())
        .collect()
}

/// The cells of the rows of the table of a page whose header begins so, the header first.
fn table(page: &str, header: &str) -> Vec<Vec<String>> {
    let rows = page.lines().skip_while(|line| !line.starts_with(header)).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).enumerate().filter(|(number, _)| *number != 1).map(|(_, row)| row).collect()
}

/// The numbers of a cell.
fn numbers(cell: &str) -> Vec<String> {
    let parts = cell.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Returns `true` if both numbers are the same one, rounded to their digits.
fn agree(quoted: &str, printed: &str) -> bool {
    let digits = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let value = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let last = |text: &str| value(&format!("5e-{}", digits(text) + 1));
    let apart = (value(quoted) - value(printed)).abs();
    if digits(quoted) == digits(printed) {
        apart == 0.0
    } else {
        apart <= (last(quoted) + last(printed)) * (1.0 + 1e-9)
    }
}

/// Compares points, as the values of the axes with numbers of a page, with what its command prints.
fn compare(lesson: &str, scenario: &str, points: &[(Vec<&str>, Vec<String>)]) {
    let scenario = format!("scenarios/tutorial/{scenario}.toml");
    let rows = printed(&scenario, &options(&page(lesson), &scenario));
    for (axes, quoted) in points {
        let row =
            rows.iter().find(|row| row.starts_with(&axes.iter().map(|&axis| axis.to_owned()).collect::<Vec<_>>()));
        let row = row.unwrap_or_else(|| panic!("{lesson}: no row has {axes:?}: {rows:#?}"));
        let cells = &row[row.len() - quoted.len()..];
        let found: Vec<&str> = cells.iter().map(|cell| cell.split('±').next().unwrap_or(cell)).collect();
        let same = quoted.iter().zip(&found).all(|(quoted, found)| agree(quoted, found));
        assert!(same, "{lesson}, {axes:?}: the page has {quoted:?}, and its command prints {found:?}");
    }
}

#[test]
fn numbers_agree_if_they_are_roundings_of_one() {
    for (quoted, printed, same) in [
        ("0.971", "0.970", false),
        ("0.971", "0.971", true),
        ("10.1", "10.06", true),
        ("10.1", "10.04", false),
        ("7.7", "7.65", true),
        ("724", "723.6", true),
        ("12.62", "12.6", true),
        ("x", "1", false),
    ] {
        assert_eq!(agree(quoted, printed), same, "{quoted} {printed}");
    }
}

#[test]
fn the_lesson_on_buffers() {
    let rows = table(&page("1-buffers"), "| buffer |");
    let limit = |row: &Vec<String>| row[0].to_lowercase().replace(' ', "");
    let limits: Vec<String> = rows[1..].iter().map(limit).collect();
    let points = limits.iter().zip(&rows[1..]).map(|(limit, row)| (vec![limit.as_str()], numbers(&row[1..].join(" "))));
    let points: Vec<_> = points.collect();
    assert!(points.len() == 7 && points.iter().all(|(_, quoted)| quoted.len() == 5), "{points:?}");
    compare("1-buffers", "1-buffers", &points);
}

#[test]
fn the_lesson_on_queues() {
    let rows = table(&page("2-aqm"), "| RTT of the path |");
    let mut points = Vec::new();
    for row in &rows[1..] {
        // A delay is one way.
        let delay = match &*row[0] {
            "10 ms" => "5ms",
            "20 ms" => "10ms",
            "50 ms" => "25ms",
            "100 ms" => "50ms",
            _ => "100ms",
        };
        points.extend((1..row.len()).map(|column| (vec![&*rows[0][column], delay], numbers(&row[column]))));
    }
    assert!(points.len() == 20 && points.iter().all(|(_, quoted)| quoted.len() == 3), "{points:?}");
    compare("2-aqm", "2-aqm", &points);
}

#[test]
fn the_lesson_on_fairness() {
    let rows = table(&page("3-fairness"), "| | far: extra delay |");
    let (mut points, mut cc) = (Vec::new(), "");
    let delays: Vec<String> = rows.iter().map(|row| row[1].replace(' ', "")).collect();
    for (row, delay) in rows.iter().zip(&delays).skip(1) {
        cc = match &*row[0] {
            "" => cc,
            name if name.ends_with("CUBIC") => "cubic",
            _ => "newreno",
        };
        points.extend((2..4).map(|column| (vec![&*rows[0][column], cc, delay], numbers(&row[column]))));
    }
    assert!(points.len() == 12 && points.iter().all(|(_, quoted)| quoted.len() == 3), "{points:?}");
    compare("3-fairness", "3-fairness", &points);
}

#[test]
fn the_lesson_on_delay() {
    let rows = table(&page("4-delay"), "| a, b |");
    let mut points = Vec::new();
    for row in &rows[1..] {
        let pair = row[0].to_lowercase();
        let (a, b) = pair.split_once(", ").expect("two controllers");
        let known = |name| ["newreno", "vegas", "cdg"].into_iter().find(|known| *known == name).expect("a controller");
        for column in [1, 3] {
            let quoted = numbers(&row[column..column + 2].join(" "));
            points.push((vec![&*rows[0][column], known(a), known(b)], quoted));
        }
    }
    assert!(points.len() == 12 && points.iter().all(|(_, quoted)| quoted.len() == 3), "{points:?}");
    compare("4-delay", "4-delay", &points);
}

#[test]
fn the_lesson_on_losses() {
    let rows = table(&page("5-losses"), "| losses |");
    let mut points = Vec::new();
    for row in &rows[1..] {
        let probability = match &*row[0] {
            "none" => "0.0",
            "0.01 %" => "0.0001",
            "0.1 %" => "0.001",
            _ => "0.01",
        };
        for (cc, column) in [("newreno", 1), ("cubic", 3), ("bbr", 4)] {
            points.push((vec![cc, probability], numbers(&row[column])));
        }
    }
    assert!(points.len() == 12 && points.iter().all(|(_, quoted)| quoted.len() == 1), "{points:?}");
    compare("5-losses", "5-losses", &points);
}

#[test]
fn the_lesson_on_reordering() {
    let rows = table(&page("5-losses"), "| extent |");
    let mut points = Vec::new();
    for row in &rows[1..] {
        for column in 1..row.len() {
            let (detector, undo) = rows[0][column].split_once(", ").expect("a detector, and undo");
            points
                .push((vec![detector, if undo == "undo" { "true" } else { "false" }, &row[0]], numbers(&row[column])));
        }
    }
    assert!(points.len() == 20 && points.iter().all(|(_, quoted)| quoted.len() == 2), "{points:?}");
    compare("5-losses", "5-reordering", &points);
}
