//! Tables in plain text.

/// Rows under a header. The first columns are text and stand left, the others are numbers and stand
/// right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    text_columns: usize,
}

impl Table {
    pub(crate) fn new(text_columns: usize, header: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { rows: vec![header.into_iter().map(Into::into).collect()], text_columns }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether there is anything under the header.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.len() > 1
    }

    /// The table with a blank between columns and a rule under the header.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(
                    |(column, (cell, &width))| {
                        if column < self.text_columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                    },
                )
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
            if index == 0 {
                out.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)));
                out.push('\n');
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_left_and_numbers_right() {
        let mut table = Table::new(1, ["flow", "Mbit/s"]);
        table.row(vec!["reno.0".to_owned(), "4.7".to_owned()]);
        table.row(vec!["µ".to_owned(), "12.25".to_owned()]);
        assert_eq!(table.render(), "flow    Mbit/s\n--------------\nreno.0     4.7\nµ        12.25\n");
    }
}
