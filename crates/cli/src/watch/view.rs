//! The dashboard as text: a board and what a person has chosen, at the size of the terminal.

mod flows;
mod links;
mod table;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::board::{Board, Live};
use super::state::{State, speed_text};
use super::text::{millis, percent};

/// From this height on there are lines over time of the selected link.
const TALL: u16 = 22;

/// Rows of these lines, with their titles: at least, and where flows leave room.
const OVER_TIME: [u16; 2] = [6, 12];

/// The colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) colour: bool,
}

impl Theme {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn good(self) -> Style {
        self.of(Color::Green)
    }

    fn notable(self) -> Style {
        self.of(Color::Yellow)
    }

    fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn line(self) -> Style {
        self.of(Color::Cyan)
    }

    fn plain(self) -> Style {
        Style::new()
    }

    fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Draws all of it.
pub(crate) fn draw(frame: &mut Frame<'_>, board: &Board, state: &State, theme: Theme) {
    let area = frame.area();
    let is_live = board.live.is_some();
    let room = area.height.saturating_sub(4 + u16::from(is_live));
    let [least, most] = if area.height >= TALL { OVER_TIME } else { [0, 0] };
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(1);
    let links = rows(board.links.len()).min((room.saturating_sub(least) / 3).max(2) + 1);
    let over_time = room.saturating_sub(links).saturating_sub(rows(board.flows.len())).clamp(least, most);
    let parts = [
        Constraint::Length(2),
        Constraint::Length(u16::from(is_live)),
        Constraint::Length(links),
        Constraint::Length(over_time),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, live, links, over_time, flows, message, foot] = Layout::vertical(parts).areas(area);
    header(frame, head, board, state, theme);
    if let Some(punctuality) = &board.live {
        frame.render_widget(Paragraph::new(live_line(punctuality)), live);
    }
    links::table(frame, links, board, state, theme);
    if over_time.height > 0 {
        links::over_time(frame, over_time, board, state, theme);
    }
    flows::table(frame, flows, board, state, theme);
    frame.render_widget(Paragraph::new(message_line(state, message.width, theme)), message);
    frame.render_widget(Paragraph::new(footer(foot.width, board.clock == "virtual", theme)), foot);
    if let Some(typed) = &state.prompt {
        let column = (typed.chars().count() + 1).min(usize::from(message.width.saturating_sub(1)));
        frame.set_cursor_position((message.x + column as u16, message.y));
    }
    if state.help {
        help(frame, area);
    }
}

fn header(frame: &mut Frame<'_>, area: Rect, board: &Board, state: &State, theme: Theme) {
    let width = usize::from(area.width);
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
    let first = Line::from(vec![
        Span::styled(format!("{title:<room$} "), Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(right),
        Span::styled(standing, style),
    ]);
    let lost = if board.lost > 0 { format!("; {} records lost", board.lost) } else { String::new() };
    let left = format!("{:.1} of {} s ", board.now.as_secs_f64(), board.duration.as_secs_f64());
    let share = format!(" {}{lost}", percent(board.progress()));
    let bar = width.saturating_sub(left.chars().count() + share.chars().count() + 2);
    let done = (bar as f64 * board.progress()) as usize;
    let second = Line::from(vec![
        Span::raw(left),
        Span::raw("["),
        Span::styled("█".repeat(done), theme.line()),
        Span::raw(" ".repeat(bar - done)),
        Span::raw("]"),
        Span::raw(share),
    ]);
    frame.render_widget(Paragraph::new(vec![first, second]), area);
}

/// How punctual a run in real time is, and the packets of its hosts.
fn live_line(live: &Live) -> Line<'static> {
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
    Line::raw(line)
}

fn message_line(state: &State, width: u16, theme: Theme) -> Line<'_> {
    if let Some(typed) = &state.prompt {
        // The end of what is typed stays in sight.
        let hidden = (typed.chars().count() + 2).saturating_sub(usize::from(width));
        let shown: String = typed.chars().skip(hidden).collect();
        return Line::from(vec![Span::styled(":", theme.notable()), Span::raw(shown)]);
    }
    match state.messages.back() {
        Some(message) if message.is_error => Line::styled(&*message.text, theme.bad()),
        Some(message) => Line::raw(&*message.text),
        None => Line::styled("select a link or a flow by the arrow keys; ? explains the keys", theme.faint()),
    }
}

/// The keys, as many as there is room for; the most important come first.
fn footer(width: u16, is_virtual: bool, theme: Theme) -> Line<'static> {
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
    let (mut spans, mut used) = (Vec::new(), 0);
    for (key, does, _) in keys.into_iter().filter(|&(.., shown)| shown) {
        used += key.chars().count() + does.len() + 3;
        if used > usize::from(width) + 2 {
            break;
        }
        spans.push(Span::styled(key, Style::new().add_modifier(Modifier::BOLD)));
        spans.push(Span::styled(format!(" {does}  "), theme.faint()));
    }
    Line::from(spans)
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

fn help(frame: &mut Frame<'_>, area: Rect) {
    let width = 54.min(area.width);
    let height = (HELP.len() as u16 + 2).min(area.height);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text: Vec<Line<'_>> = HELP.iter().map(|line| Line::raw(*line)).collect();
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
pub(super) mod tests;
