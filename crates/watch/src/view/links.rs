//! The link directions: a table, and the selected one over time.

use super::super::board::{Board, History, Link, ShownValue};
use super::super::frame::{Area, Frame};
use super::super::state::{Pane, State};
use super::super::text::{BLOCKS, millis, percent, si};
use super::table::{Over, Row, Table, ViewColumn};
use super::theme::Theme;

const COLUMNS: [ViewColumn; 10] = [
    ViewColumn { title: "link", width: 0, rank: 0 },
    ViewColumn { title: "bit/s", width: 5, rank: 0 },
    ViewColumn { title: "of", width: 5, rank: 2 },
    ViewColumn { title: "used", width: 5, rank: 3 },
    ViewColumn { title: "queue p", width: 7, rank: 0 },
    ViewColumn { title: "kB", width: 5, rank: 5 },
    ViewColumn { title: "wait ms", width: 7, rank: 0 },
    ViewColumn { title: "drops", width: 6, rank: 1 },
    ViewColumn { title: "marks", width: 6, rank: 1 },
    ViewColumn { title: "queue", width: 8, rank: 6 },
];

/// Intervals of a line in the table.
const LINE: usize = 60;

/// Intervals of the lines below it: half a minute of the machine's clock.
const OVER_TIME: usize = 300;

pub(super) fn table(frame: &mut Frame, area: Area, board: &Board, state: &State, theme: Theme) {
    let table = Table {
        columns: &COLUMNS,
        over_time: &["rate"],
        selected: state.link,
        has_focus: state.pane == Pane::Links,
        rows: board.links.len(),
    };
    table.draw(frame, area, |link| row(&board.links[link], theme));
}

fn row(link: &Link, theme: Theme) -> Row {
    let point = &link.point;
    let [dropped, marked] = link.recent.counts();
    let used = match (point.rate_bps, point.utilization) {
        (None, _) => (String::new(), theme.plain()),
        (Some(_), used) => (percent(used), if used > 0.95 { theme.notable() } else { theme.plain() }),
    };
    let count = |total: u64, recent: u64, style| (total.to_string(), if recent > 0 { style } else { theme.plain() });
    let waited = point.sojourn.map(ackclock_units::Span::as_millis_f64);
    Row {
        cells: vec![
            (link.id.clone(), theme.plain()),
            (si(link.rate_bps), theme.plain()),
            (point.rate_bps.map_or_else(|| "-".to_owned(), |bps| si(bps as f64)), theme.plain()),
            used,
            (point.backlog_packets.to_string(), theme.plain()),
            (si(point.backlog_bytes as f64 / 1e3), theme.plain()),
            (millis(waited), theme.plain()),
            count(link.totals.dropped + link.totals.lost, dropped, theme.bad()),
            count(link.totals.marked, marked, theme.notable()),
            (link.queue.clone(), theme.plain()),
        ],
        over_time: vec![Over {
            values: link.rates.last(LINE).collect(),
            most: point.rate_bps.map(|bps| bps as f64),
            style: theme.line(),
        }],
    }
}

/// Rate, backlog and time in the queue of the selected direction.
pub(super) fn over_time(frame: &mut Frame, area: Area, board: &Board, state: &State, theme: Theme) {
    let Some(link) = board.links.get(state.link) else { return };
    let point = &link.point;
    let of = point.rate_bps.map_or_else(String::new, |bps| format!(" of {}", si(bps as f64)));
    let wait = millis(point.sojourn.map(ackclock_units::Span::as_millis_f64));
    let lines: [(String, &History, ShownValue, Option<f64>); 3] = [
        (
            format!("{} bit/s{of}", si(link.rate_bps)),
            &link.rates,
            ShownValue::Mean,
            point.rate_bps.map(|bps| bps as f64),
        ),
        (format!("{} packets", point.backlog_packets), &link.backlogs, ShownValue::Largest, None),
        (format!("{wait} ms"), &link.sojourns, ShownValue::Largest, None),
    ];
    let edge = |line: usize| (2 * line * (area.width + 1) + 3) / 6;
    for (number, (title, history, shown, most)) in lines.into_iter().enumerate() {
        // A column is left free between two.
        let (x, end) = (edge(number), edge(number + 1));
        let place = Area { x, width: end.saturating_sub(x + 1), ..area };
        let values = history.together(place.width, (OVER_TIME / place.width.max(1)).max(1), shown);
        let largest = values.iter().copied().fold(0.0, f64::max);
        let title = if most.is_some() { format!("{title} ") } else { format!("{title}, most {} ", si(largest)) };
        let most = most.unwrap_or(0.0).max(largest).max(1e-9);
        let (width, rows) = (place.width, place.height.saturating_sub(1));
        let eighths = |value: f64| (value / most * 1000.0).round() as usize * rows * 8 / 1000;
        let heights: Vec<usize> = values.into_iter().map(eighths).collect();
        frame.put(place, 0, &[(format!("{title:─<width$.width$}"), theme.plain())]);
        for row in 1..=rows {
            let below = (rows - row) * 8;
            let text: String = heights.iter().map(|eighths| BLOCKS[eighths.saturating_sub(below).min(8)]).collect();
            // The figure ends at the right, as a line in the table.
            frame.put(place, row, &[(format!("{text:>width$}"), theme.line())]);
        }
    }
}
