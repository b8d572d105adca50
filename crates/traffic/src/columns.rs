//! Text files of columns.

/// The lines that say something, counted from 1, cut into columns at spaces and commas; what
/// follows a `#` is a comment.
pub(crate) fn of(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    (1..).zip(text.lines().map(cut)).filter(|(_, columns)| !columns.is_empty())
}

fn cut(line: &str) -> Vec<&str> {
    let said = line.split('#').next().unwrap_or("");
    said.split(|c: char| c.is_whitespace() || c == ',').filter(|column| !column.is_empty()).collect()
}
