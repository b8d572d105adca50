//! The flows: a table in which there may be thousands.

use super::super::board::{Board, FLOW_HISTORY, Flow, History, Kind};
use super::super::frame::{Area, Frame};
use super::super::state::{Pane, State};
use super::super::text::{millis, si};
use super::table::{Over, Row, Table, ViewColumn};
use super::theme::Theme;

const COLUMNS: [ViewColumn; 10] = [
    ViewColumn { title: "flow", width: 0, rank: 0 },
    ViewColumn { title: "bit/s", width: 5, rank: 0 },
    ViewColumn { title: "rtt ms", width: 6, rank: 0 },
    ViewColumn { title: "cwnd kB", width: 7, rank: 1 },
    ViewColumn { title: "flight", width: 6, rank: 4 },
    ViewColumn { title: "resent", width: 6, rank: 2 },
    ViewColumn { title: "rto", width: 4, rank: 5 },
    ViewColumn { title: "state", width: 8, rank: 3 },
    ViewColumn { title: "cc", width: 9, rank: 3 },
    ViewColumn { title: "MB", width: 6, rank: 6 },
];

/// Intervals without anything from which on a flow is called idle.
const IDLE: u64 = 2;

pub(super) fn table(frame: &mut Frame, area: Area, board: &Board, state: &State, theme: Theme) {
    let table = Table {
        columns: &COLUMNS,
        over_time: &["goodput", "rtt"],
        selected: state.flow,
        has_focus: state.pane == Pane::Flows,
        rows: board.flows.len(),
    };
    table.draw(frame, area, |flow| row(&board.flows[flow], board, theme));
}

fn row(flow: &Flow, board: &Board, theme: Theme) -> Row {
    let point = &flow.point;
    let idle = flow.idle(board);
    let is_idle = idle >= IDLE;
    let rtt = point.srtt.or(point.rtt).map(ackclock_units::Span::as_millis_f64);
    let kilobytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |bytes| si(bytes as f64 / 1e3));
    let state = match (&flow.kind, point.ca_state) {
        (Kind::Group, _) => "group",
        _ if is_idle => "idle",
        (_, state) => state.unwrap_or("-"),
    };
    let worried = matches!(state, "Recovery" | "Loss" | "CWR");
    let id = match flow.kind {
        Kind::Subflow(number) => format!("  subflow{number}"),
        _ => flow.id.clone(),
    };
    Row {
        cells: vec![
            (id, theme.plain()),
            (si(if idle == 0 { flow.goodput_bps } else { 0.0 }), theme.plain()),
            (millis(rtt), theme.plain()),
            (kilobytes(point.cwnd), theme.plain()),
            (kilobytes(point.in_flight), theme.plain()),
            (flow.totals.retransmitted.to_string(), theme.plain()),
            (flow.totals.timeouts.to_string(), theme.plain()),
            (state.to_owned(), if worried { theme.notable() } else { theme.plain() }),
            (flow.cc.clone(), theme.plain()),
            (si(flow.totals.delivered_bytes as f64 / 1e6), theme.plain()),
        ],
        over_time: vec![over(&flow.goodputs, idle, theme), over(&flow.rtts, idle, theme)],
    }
}

/// The values of a flow, and nothing for the intervals in which it was idle.
fn over(history: &History, idle: u64, theme: Theme) -> Over {
    let idle = usize::try_from(idle).unwrap_or(FLOW_HISTORY).min(FLOW_HISTORY);
    let values = history.last(FLOW_HISTORY - idle).chain(std::iter::repeat_n(0.0, idle)).collect();
    Over { values, most: None, style: theme.line() }
}
