//! A frame of the dashboard: a character and a style for each cell of the terminal.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::style::PrintStyledContent;
pub(super) use crossterm::style::{Color, ContentStyle as Style, Stylize};
use unicode_width::UnicodeWidthChar;

/// A rectangle of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// Cuts so many rows off its top, if it has them.
    pub(super) fn cut(&mut self, rows: usize) -> Area {
        let top = Area { height: rows.min(self.height), ..*self };
        (self.y, self.height) = (self.y + top.height, self.height - top.height);
        top
    }
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) area: Area,
    /// Row by row. A cell behind a wide character is not shown.
    pub(super) cells: Vec<(char, Style)>,
    pub(super) cursor: Option<(usize, usize)>,
}

impl Frame {
    pub(super) fn blank(width: usize, height: usize) -> Frame {
        let cells = vec![(' ', Style::new()); width * height];
        Frame { area: Area { x: 0, y: 0, width, height }, cells, cursor: None }
    }

    /// Writes a row of an area, as much as there is room for.
    pub(super) fn put(&mut self, area: Area, row: usize, parts: &[(impl AsRef<str>, Style)]) {
        if row >= area.height || area.width == 0 {
            return;
        }
        let mut cells = &mut self.cells[(area.y + row) * self.area.width + area.x..][..area.width];
        for (text, style) in parts {
            for char in text.as_ref().chars() {
                // Neither control characters nor marks on the one before have a cell.
                let Some(width @ 1..) = char.width() else { continue };
                let Some((own, rest)) = cells.split_at_mut_checked(width) else { return };
                own.fill((' ', *style));
                own[0].0 = char;
                cells = rest;
            }
        }
    }

    /// Writes the changes from another frame, of the same size, that a terminal shows to this one.
    pub(super) fn write(&self, shown: &Frame, out: &mut impl Write) -> io::Result<()> {
        let width = self.area.width.max(1);
        let rows = self.cells.chunks(width).zip(shown.cells.chunks(width)).enumerate();
        for (y, (row, _)) in rows.filter(|(_, (row, before))| row != before) {
            queue!(out, MoveTo(0, y as u16))?;
            let mut covered = 0;
            for run in row.chunk_by(|a, b| a.1 == b.1) {
                let mut text = String::new();
                for (char, _) in run {
                    if covered == 0 {
                        text.push(*char);
                        covered = char.width().unwrap_or(1);
                    }
                    covered -= 1;
                }
                queue!(out, PrintStyledContent(run[0].1.apply(text)))?;
            }
        }
        match self.cursor {
            Some((x, y)) => queue!(out, MoveTo(x as u16, y as u16), Show),
            None => queue!(out, Hide),
        }
    }
}
