//! The tables in the READMEs of folders.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::rows::{Folder, Line, Row, Verdict};
use super::text::notes;
use crate::figures::write;

const BEGIN: &str = "<!-- reproduce -->";
const END: &str = "<!-- /reproduce -->";

/// The table in Markdown, each row with its verdict first. `ackclock reproduce` prints every
/// expectation with its file, point and spread; the table leaves these out, the metrics of what is
/// met, expectations that are met beside others, and published texts of earlier rows. Results that
/// differ only in their source are one row.
fn table(folder: &Folder) -> String {
    let mut out = format!(
        "Written by `ackclock reproduce {0} --readme`; `ackclock reproduce {0}` prints every expectation with metric, spread and point.\n\n{1}.\n\n",
        folder.name,
        folder.totals()
    );
    out.push_str("| result | source | published | ackclock |\n|---|---|---|---|\n");
    let mut rows: Vec<([String; 3], Vec<String>)> = Vec::new();
    for row in &folder.rows {
        let by_median =
            row.other_by_median().map_or_else(String::new, |other| format!("; {} by medians", other.name()));
        let kernel = row.kernel.iter().map(|text| format!("<br>{}", escaped(text)));
        let found = found(row) + &kernel.collect::<String>();
        let cells = [format!("{}{by_median}", row.verdict().name()), cell(&row.published), found];
        let source = escaped(&row.source);
        match rows.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, sources)) => sources.push(source),
            None => rows.push((cells, vec![source])),
        }
    }
    let mut told: Vec<(&str, &str)> = Vec::new();
    for ([result, published, found], sources) in &rows {
        let _ = write!(out, "| {result} | {} | ", sources.join("; "));
        // A longer text that another row has already is not repeated.
        let _ = match told.iter().find(|(known, _)| known == published) {
            Some((_, source)) if published.len() > source.len() + 3 => writeln!(out, "as {source} | {found} |"),
            Some(_) => writeln!(out, "{published} | {found} |"),
            None => {
                told.push((published, &sources[0]));
                writeln!(out, "{published} | {found} |")
            }
        };
    }
    let notes = shared_notes(folder);
    if !notes.is_empty() {
        out.push('\n');
    }
    for (note, sources) in notes {
        let _ = writeln!(out, "- {}: {}", sources.join("; "), escaped(note));
    }
    out
}

/// Each note with the rows that have it, in the order of the first of them.
fn shared_notes(folder: &Folder) -> Vec<(&str, Vec<String>)> {
    let mut shared: Vec<(&str, Vec<String>)> = Vec::new();
    for (row, note) in notes(folder) {
        let source = escaped(&row.source);
        match shared.iter_mut().find(|(known, _)| *known == note.as_str()) {
            Some((_, sources)) => sources.push(source),
            None => shared.push((note.as_str(), vec![source])),
        }
    }
    shared
}

/// The value of a single expectation; of several, how many are met unless all are, and those that
/// are not.
fn found(row: &Row) -> String {
    let value = |line: &Line| {
        let expected = if line.expected.is_empty() { String::new() } else { format!(", expected {}", line.expected) };
        format!("{}{expected}", line.value)
    };
    if let [line] = &row.lines[..]
        && line.verdict() == Verdict::Ok
    {
        return escaped(&value(line));
    }
    let missed = |line: &Line| {
        let metric = if line.metric.is_empty() { String::new() } else { format!("{}: ", line.metric) };
        let points = match line.verdict() {
            Verdict::Part => format!("; {} of {} points met", line.met, line.points),
            _ => String::new(),
        };
        // Metrics may have stars in them.
        escaped(&format!("{metric}{}{points}", value(line))).replace('*', "\\*")
    };
    if let [line] = &row.lines[..] {
        return missed(line);
    }
    let lines: Vec<&Line> = row.lines.iter().filter(|line| line.verdict() != Verdict::Ok).collect();
    if lines.is_empty() {
        return "met".to_owned();
    }
    let met = format!("{} of {} met", row.lines.len() - lines.len(), row.lines.len());
    met + &lines.into_iter().map(|line| format!("<br>{}: {}", line.verdict().name(), missed(line))).collect::<String>()
}

fn cell(texts: &[String]) -> String {
    texts.iter().map(|text| escaped(text)).collect::<Vec<_>>().join("<br>")
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// A README around its table.
struct Readme {
    text: String,
    /// The table is between these bytes.
    begin: usize,
    end: usize,
}

impl Readme {
    fn read(path: &Path) -> anyhow::Result<Readme> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let places = |mark: &str| text.match_indices(mark).map(|(place, _)| place).collect::<Vec<_>>();
        match (&places(BEGIN)[..], &places(END)[..]) {
            (&[begin], &[end]) if begin < end => Ok(Readme { begin: begin + BEGIN.len(), end, text }),
            _ => bail!(
                "{} has no place for its table: expected the lines `{BEGIN}` and `{END}`, once each",
                path.display()
            ),
        }
    }

    fn with(&self, folder: &Folder) -> String {
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let table = format!("\n{}", table(folder)).replace('\n', newline);
        format!("{}{table}{}", &self.text[..self.begin], &self.text[self.end..])
    }
}

/// Puts the table of a folder into its README.
pub(crate) fn update(path: &Path, folder: &Folder) -> anyhow::Result<()> {
    let readme = Readme::read(path)?;
    let text = readme.with(folder);
    if text == readme.text {
        return Ok(());
    }
    write(path, text.as_bytes())
}

/// The first line in which the table of a README differs from that of its folder, in a sentence.
pub(crate) fn difference(path: &Path, folder: &Folder) -> anyhow::Result<Option<String>> {
    let readme = Readme::read(path)?;
    let wanted = readme.with(folder);
    if wanted == readme.text {
        return Ok(None);
    }
    let (mut is, mut should) = (readme.text.lines(), wanted.lines());
    for number in 1.. {
        let (is, should) = (is.next(), should.next());
        if is != should {
            let shown = |line: Option<&str>| line.map_or_else(|| "  (nothing)".to_owned(), |line| format!("  {line}"));
            let place = format!("differs: {}:{number}: the README has", path.display());
            return Ok(Some(format!("{place}\n{}\nand the scenarios give\n{}", shown(is), shown(should))));
        }
        if is.is_none() {
            break;
        }
    }
    Ok(Some(format!("differs: {}: its lines end differently", path.display())))
}

/// Returns `true` if a README has a place for a table.
pub(crate) fn has_place(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains(BEGIN))
}
