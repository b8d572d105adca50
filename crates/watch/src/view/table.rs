//! A table with as many columns as there is room for, and lines over time in what is left.

use super::super::frame::{Area, Frame, Style, Stylize};
use super::super::text::spark;

/// A column; the first of a table is as wide as its cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewColumn {
    pub(super) title: &'static str,
    pub(super) width: usize,
    /// Order in which columns go where there is no room, the highest first.
    pub(super) rank: u8,
}

/// The contents of a line over time.
#[derive(Debug)]
pub(super) struct Over {
    /// The oldest first, as many as may be shown.
    pub(super) values: Vec<f64>,
    /// The value that fills it; by default the largest.
    pub(super) most: Option<f64>,
    pub(super) style: Style,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<(String, Style)>,
    pub(super) over_time: Vec<Over>,
}

#[derive(Debug)]
pub(super) struct Table<'t> {
    pub(super) columns: &'t [ViewColumn],
    /// The titles of the lines over time.
    pub(super) over_time: &'t [&'t str],
    pub(super) selected: usize,
    pub(super) has_focus: bool,
    /// Number of rows.
    pub(super) rows: usize,
}

/// The widths of the first column.
const FIRST: [usize; 2] = [8, 24];

/// The least and the most of a line over time.
const OVER: [usize; 2] = [8, 60];

impl Table<'_> {
    /// Draws it; `row` makes those that are in sight.
    pub(super) fn draw(&self, frame: &mut Frame, area: Area, row: impl Fn(usize) -> Row) {
        let height = area.height.saturating_sub(1);
        let selected = self.selected.min(self.rows.saturating_sub(1));
        let first = (selected + 1).saturating_sub(height).min(self.rows);
        let last = (first + height).min(self.rows);
        let rows: Vec<Row> = (first..last).map(row).collect();
        let widest = rows.iter().filter_map(|row| row.cells.first()).map(|(text, _)| text.chars().count()).max();
        let title = self.title(first, last);
        let name = widest.unwrap_or(0).max(title.chars().count()).clamp(FIRST[0], FIRST[1]);
        let (columns, over) = self.layout(area.width, name);
        frame.put(area, 0, &[self.head(&title, name, &columns, over)]);
        for (number, row) in (first..).zip(rows) {
            let mut parts = Vec::new();
            for &column in &columns {
                let Some((text, style)) = row.cells.get(column) else { continue };
                let style = if number == selected { self.highlight(*style) } else { *style };
                parts.push((self.cell(column, name, text), style));
            }
            for over_time in row.over_time.iter().take(if over > 0 { self.over_time.len() } else { 0 }) {
                let skip = over_time.values.len().saturating_sub(over);
                let values = &over_time.values[skip..];
                let most = over_time.most.unwrap_or_else(|| values.iter().copied().fold(0.0, f64::max));
                let text = format!("{} ", spark(values.iter().copied(), most, over));
                parts.push((text, over_time.style));
            }
            frame.put(area, 1 + number - first, &parts);
        }
    }

    fn highlight(&self, style: Style) -> Style {
        if self.has_focus { style.reverse() } else { style.bold() }
    }

    /// The title of the first column, with the range in sight if that is not all.
    fn title(&self, first: usize, last: usize) -> String {
        let title = self.columns.first().map_or("", |column| column.title);
        if last - first == self.rows { title.to_owned() } else { format!("{title} {}-{last}/{}", first + 1, self.rows) }
    }

    fn head(&self, title: &str, name: usize, columns: &[usize], over: usize) -> (String, Style) {
        let mut head = String::new();
        for &column in columns {
            let title = if column == 0 { title } else { self.columns[column].title };
            head.push_str(&self.cell(column, name, title));
        }
        if over > 0 {
            self.over_time.iter().for_each(|title| head.push_str(&format!("{title:>over$.over$} ")));
        }
        let style = Style::new().underlined();
        (head, if self.has_focus { style.bold() } else { style })
    }

    fn cell(&self, column: usize, name: usize, text: &str) -> String {
        if column == 0 {
            return format!("{text:<name$.name$} ");
        }
        let width = self.columns[column].width;
        format!("{text:>width$.width$} ")
    }

    /// The columns that there is room for, and the width of each line over time.
    fn layout(&self, width: usize, name: usize) -> (Vec<usize>, usize) {
        let least = OVER[0] * self.over_time.len();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let used = |shown: &[usize]| -> usize {
            shown.iter().map(|&column| if column == 0 { name } else { self.columns[column].width } + 1).sum()
        };
        while shown.len() > 2 && used(&shown) + least > width {
            let place = (1..shown.len()).max_by_key(|&place| (self.columns[shown[place]].rank, place)).unwrap_or(1);
            shown.remove(place);
        }
        let left = width.saturating_sub(used(&shown)) / self.over_time.len().max(1);
        let over = left.saturating_sub(1).min(OVER[1]);
        (shown, if over >= OVER[0] - 1 { over } else { 0 })
    }
}
