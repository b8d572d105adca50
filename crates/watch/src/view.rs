//! The dashboard as text: a board and what a person has chosen, at the size of the terminal.

mod flows;
mod links;
mod table;
mod theme;

use super::board::{Board, Live};
use super::frame::{Area, Frame, Style, Stylize};
use super::state::{State, speed_text};
use super::text::{millis, percent};
pub(crate) use theme::Theme;

/// From this height on there are lines over time of the selected link.
const TALL: usize = 22;

/// Rows of these lines, with their titles: at least, and where flows leave room.
const OVER_TIME: [usize; 2] = [6, 12];

/// Draws all of it.
pub(crate) fn draw(frame: &mut Frame, board: &Board, state: &State, theme: Theme) {
    let Area { width, height, .. } = frame.area;
    let is_live = usize::from(board.live.is_some());
    let room = height.saturating_sub(4 + is_live);
    let [least, most] = if height >= TALL { OVER_TIME } else { [0, 0] };
    let links = (board.links.len() + 1).min((room.saturating_sub(least) / 3).max(2) + 1);
    let over_time = room.saturating_sub(links + board.flows.len() + 1).clamp(least, most);
    let mut area = frame.area;
    let mut body = area.cut(height.saturating_sub(2));
    let message = area.cut(1);
    frame.put(message, 0, &message_line(state, width, theme));
    frame.put(area, 0, &footer(width, board.clock == "virtual", theme));
    header(frame, body.cut(2), board, state, theme);
    if let Some(punctuality) = &board.live {
        frame.put(body.cut(1), 0, &[(live_line(punctuality), theme.plain())]);
    }
    links::table(frame, body.cut(links), board, state, theme);
    links::over_time(frame, body.cut(over_time), board, state, theme);
    flows::table(frame, body, board, state, theme);
    if let Some(typed) = &state.prompt {
        frame.cursor = Some(((typed.chars().count() + 1).min(width.saturating_sub(1)), message.y));
    }
    if state.help {
        help(frame);
    }
}

fn header(frame: &mut Frame, area: Area, board: &Board, state: &State, theme: Theme) {
    let width = area.width;
    let title = if board.title.is_empty() { "ackclock" } else { &board.title };
    let (standing, style) = match (state.ending, state.paused, board.is_late()) {
        (true, ..) => ("ending".to_owned(), theme.notable()),
        (false, true, _) => ("paused".to_owned(), theme.notable()),
        (false, false, Some(true)) => ("LATE: not valid".to_owned(), theme.bad()),
        (false, false, Some(false)) => ("on time".to_owned(), theme.good()),
        (false, false, None) => ("running".to_owned(), theme.good()),
    };
    let speed = match (board.clock, state.speed) {
        ("virtual", Some(speed)) => format!(" at {}", speed_text(speed)),
        ("virtual", None) => " at full speed".to_owned(),
        _ => String::new(),
    };
    let right = format!("{}{speed}, ", board.clock);
    let room = width.saturating_sub(right.chars().count() + standing.chars().count() + 1);
    let title: String = title.chars().filter(|char| !char.is_control()).take(room).collect();
    let title = format!("{title:<room$} ");
    frame.put(area, 0, &[(title, theme.plain().bold()), (right, theme.plain()), (standing, style)]);
    let lost = if board.lost > 0 { format!("; {} records lost", board.lost) } else { String::new() };
    let left = format!("{:.1} of {} s ", board.now.as_secs_f64(), board.duration.as_secs_f64());
    let share = format!(" {}{lost}", percent(board.progress()));
    let bar = width.saturating_sub(left.chars().count() + share.chars().count() + 2);
    let done = (bar as f64 * board.progress()) as usize;
    let rest = format!("{}]{share}", " ".repeat(bar - done));
    frame.put(area, 1, &[(format!("{left}["), theme.plain()), ("█".repeat(done), theme.line()), (rest, theme.plain())]);
}

/// The punctuality of a run in real time, and the packets of its hosts.
fn live_line(live: &Live) -> String {
    let moment = &live.moment;
    let ms = |span: Option<ackclock_units::Span>| millis(span.map(ackclock_units::Span::as_millis_f64));
    let mut line = format!(
        "late ms: p50 {} p99 {}, run p99 {}; behind {:.2} s, stalled {} ms",
        ms(moment.lateness.p50),
        ms(moment.lateness.p99),
        ms(moment.lateness.run_p99),
        moment.behind.as_secs_f64(),
        ms(Some(moment.longest_stall)),
    );
    for host in &live.hosts {
        line.push_str(&format!("; {} in {} out {}", host.id, host.received_packets, host.sent_packets));
        if host.refused > 0 {
            line.push_str(&format!(" refused {}", host.refused));
        }
    }
    line
}

fn message_line(state: &State, width: usize, theme: Theme) -> Vec<(&str, Style)> {
    if let Some(typed) = &state.prompt {
        // The end of what is typed stays in sight.
        let hidden = (typed.chars().count() + 2).saturating_sub(width);
        let from = typed.char_indices().nth(hidden).map_or(typed.len(), |(at, _)| at);
        return vec![(":", theme.notable()), (&typed[from..], theme.plain())];
    }
    vec![match state.messages.back() {
        Some(message) => (&*message.text, if message.is_error { theme.bad() } else { theme.plain() }),
        None => ("select a link or a flow by the arrow keys; ? explains the keys", theme.faint()),
    }]
}

/// The keys, as many as there is room for; the most important come first.
fn footer(width: usize, is_virtual: bool, theme: Theme) -> Vec<(String, Style)> {
    let keys = [
        ("q", "end", true),
        ("?", "help", true),
        ("space", "pause", is_virtual),
        ("+ -", "rate", true),
        ("[ ]", "delay", true),
        ("< >", "speed", is_virtual),
        (":", "set", true),
        ("tab", "table", true),
        ("↑ ↓", "select", true),
    ];
    let (mut parts, mut used) = (Vec::new(), 0);
    for (key, does, _) in keys.into_iter().filter(|&(.., shown)| shown) {
        used += key.chars().count() + does.len() + 3;
        if used > width + 2 {
            break;
        }
        parts.push((key.to_owned(), theme.plain().bold()));
        parts.push((format!(" {does}  "), theme.faint()));
    }
    parts
}

const HELP: [&str; 13] = [
    "q       end the run, as Ctrl-C does; again: leave",
    "space   stop the clock, or let it go on",
    "< >     half, or double the speed",
    "+ -     rate of the link: a quarter more, or back",
    "[ ]     delay of the link: less, or a quarter more",
    ":       set any key, as with --set; Esc leaves",
    "tab     the other table",
    "↑ ↓     select; PgUp PgDn Home End likewise",
    "",
    "Values are of the last interval. Drops and marks",
    "are of the whole run, and in the last ten",
    "intervals. A live run has its own clock: space, <",
    "and > are for virtual ones.",
];

fn help(frame: &mut Frame) {
    let all = frame.area;
    let (width, height) = (all.width.min(54), all.height.min(HELP.len() + 2));
    let area = Area { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    let inner = width.saturating_sub(2);
    for row in 0..height {
        let line = match row {
            0 => format!("┌{:─<inner$.inner$}┐", " keys "),
            _ if row + 1 == height => format!("└{:─<inner$}┘", ""),
            _ => format!("│{:<inner$.inner$}│", HELP[row - 1]),
        };
        frame.put(area, row, &[(line, Style::new())]);
    }
}

#[cfg(test)]
pub(super) mod tests;
