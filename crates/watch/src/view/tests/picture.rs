//! The picture of the dashboard in the book: a frame of a run, as SVG.
//!
//! `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock --lib picture` writes it.

use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, RunError, run_recorded};
use ackclock_units::Time;
use crossterm::style::Attribute;

use super::super::super::{Feed, Watch};
use super::super::{State, Style};
use super::drawn;
use crate::frame::Color;

const SCENARIO: &str = r#"
schema = 1
title = "Three controllers and web traffic through PIE, with a dip of the rate"

[run]
duration = "60s"

[links.bottleneck]
rate = "20mbit"
delay = "15ms"
queue = { kind = "pie", limit = "200p" }
schedule = [{ at = "25s", rate = "8mbit" }, { at = "29s", rate = "20mbit" }]

[[flows]]
id = "reno"
path = ["bottleneck"]
cc = "newreno"

[[flows]]
id = "cubic"
path = ["bottleneck"]
cc = "cubic"
start = "3s"

[[flows]]
id = "bbr"
path = ["bottleneck"]
cc = "bbr"
start = "6s"

[[workloads]]
id = "web"
path = ["bottleneck"]
size = "30kB"
load = 0.15
"#;

/// When the picture is taken.
const AT: Time = Time::from_secs(36);

/// Columns and rows.
const SIZE: (usize, usize) = (118, 26);

/// A cell, in pixels.
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 16.0;

/// The background of a dark terminal.
const GROUND: &str = "#1c1f26";
const TEXT: &str = "#d6dae2";

#[test]
fn the_picture_in_the_book_is_what_the_program_shows() {
    let scenario = Scenario::parse("picture.toml", SCENARIO.as_bytes(), &[]).unwrap();
    let spec = scenario.spec(0);
    let watch = Arc::new(Watch::new(&spec, Some(1.0)));
    let mut feed = Feed::new(watch.clone());
    let recorders = Recorders { watch: Some(&mut feed), ..Recorders::default() };
    let ended = run_recorded(&spec, recorders, &mut |now| {
        if now < AT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(ended.map(|_| ()), Err(RunError::Interrupted));
    let picture = svg(&drawn(&watch.board(), &State::new(Some(1.0)), SIZE.0, SIZE.1, true).cells);
    assert!(picture.len() < 65536, "{} bytes", picture.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/watch.svg");
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        fs::write(&path, &picture).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == picture, "docs/images/watch.svg is not what the dashboard shows: ACKCLOCK_WRITE_DOCS=1 writes it");
}

/// A frame as text and, where it has blocks, as areas.
fn svg(cells: &[(char, Style)]) -> String {
    let (width, height, margin) = (SIZE.0 as f64 * WIDTH, SIZE.1 as f64 * HEIGHT, 8.0);
    let (outer_width, outer_height) = (width + 2.0 * margin, height + 2.0 * margin);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{margin} -{margin} {outer_width} {outer_height}\" \
         width=\"{outer_width}\" height=\"{outer_height}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect x=\"-{margin}\" y=\"-{margin}\" width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{GROUND}\"/>\n"
    );
    for (row, line) in cells.chunks(SIZE.0).enumerate() {
        let y = row as f64 * HEIGHT;
        let mut from = 0;
        for run in line.chunk_by(|a, b| a.1 == b.1) {
            let x = from as f64 * WIDTH;
            from += run.len();
            part(&mut out, run, x, y);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Cells of one style.
fn part(out: &mut String, run: &[(char, Style)], x: f64, y: f64) {
    let Style { foreground_color, attributes, .. } = run[0].1;
    let width = run.len() as f64 * WIDTH;
    let mut colour = match foreground_color {
        Some(Color::DarkRed) => "#f2707a",
        Some(Color::DarkGreen) => "#86c98a",
        Some(Color::DarkYellow) => "#e5c06b",
        Some(Color::DarkCyan) => "#6fb7d6",
        _ => TEXT,
    };
    if attributes.has(Attribute::Reverse) {
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>");
        colour = GROUND;
    }
    let mut text = String::new();
    let mut areas = String::new();
    for (index, &(char, _)) in run.iter().enumerate() {
        let Some(eighths) = "▁▂▃▄▅▆▇█".chars().position(|block| block == char) else {
            text.push(char);
            continue;
        };
        text.push(' ');
        let (left, high) = (x + index as f64 * WIDTH, (eighths + 1) as f64 * HEIGHT / 8.0);
        let _ = write!(areas, "M{left} {}h{WIDTH}v-{high}h-{WIDTH}z", y + HEIGHT);
    }
    if !areas.is_empty() {
        let _ = writeln!(out, "<path fill=\"{colour}\" d=\"{areas}\"/>");
    }
    if !text.trim().is_empty() {
        let bold = if attributes.has(Attribute::Bold) { " font-weight=\"bold\"" } else { "" };
        let faint = if attributes.has(Attribute::Dim) { " opacity=\"0.65\"" } else { "" };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{}\" fill=\"{colour}\" textLength=\"{width}\" xml:space=\"preserve\"{bold}{faint}>{text}</text>",
            y + 12.0
        );
    }
    if attributes.has(Attribute::Underlined) {
        let _ = writeln!(out, "<path stroke=\"{colour}\" d=\"M{x} {}h{width}\"/>", y + HEIGHT - 1.5);
    }
}
