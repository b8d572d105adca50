//! Colours.

use super::super::frame::{Color, Style, Stylize};

/// The colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) colour: bool,
}

impl Theme {
    fn of(self, colour: Color) -> Style {
        Style { foreground_color: self.colour.then_some(colour), ..Style::new() }
    }

    pub(crate) fn good(self) -> Style {
        self.of(Color::DarkGreen)
    }

    pub(crate) fn notable(self) -> Style {
        self.of(Color::DarkYellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.of(Color::DarkRed).bold()
    }

    pub(crate) fn line(self) -> Style {
        self.of(Color::DarkCyan)
    }

    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn faint(self) -> Style {
        Style::new().dim()
    }
}
