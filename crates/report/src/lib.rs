//! Figures of results: of sweeps over their parameters, of runs over time.
//!
//! [`Report::read`] takes in output directories. [`Report::page`] is a page of HTML that needs
//! nothing else: its figures can be asked for other metrics and axes. [`Report::figures`] are
//! figures as SVG, for papers. Both are drawn by the same functions with the same library, Apache
//! ECharts: in a browser, and in an interpreter of JavaScript without one.
//!
//! # The library
//! Of four libraries that can be shipped in a page, measured with a line of 100,000 points in a
//! headless Chromium: uPlot 0.1 s, Observable Plot 0.3 s, ECharts 1.0 s (0.3 s with its sampling,
//! which is on), Vega-Lite 1.2 s. uPlot draws lines over time alone; Plot has no linked zoom,
//! tooltips for all, or menus; ECharts has box plots, heat maps and linked zoom, and can write SVG
//! without a browser.

mod columns;
pub mod gallery;
mod read;
mod render;
mod run;
mod statistics;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use anyhow::bail;
use serde_json::{Map, Value, json};

pub use read::names;
pub use render::Figure;
pub use run::Options;

/// Note on the repeatability of virtual runs.
const VIRTUAL: &str = "Results repeat to the byte: <code>ackclock verify DIR</code>.";
const LIVE: &str = "Live runs do not repeat; what <code>--record</code> has kept of one is replayed \
    by <code>--set run.replay=FILE</code>, to the byte.";

/// A figure over the axes of sweeps, in the names of the page's menus; what is not given is chosen
/// as the page does.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `box`, `lines`, `cdf`, `scatter` or `heat`.
    pub figure: String,
    /// The list that is measured: `flows`, `links` and so on.
    pub of: Option<String>,
    /// The metric, upwards.
    pub metric: Option<String>,
    /// The metric across, of `scatter`.
    pub across: Option<String>,
    /// Axes and their places: `x`, `y`, `colour`, `columns` or `rows`.
    pub places: Vec<(&'static str, String)>,
    /// Axes of which one value alone is drawn.
    pub only: Vec<(String, String)>,
}

/// A name that there is not.
#[derive(Debug)]
pub struct Unknown {
    /// The option in which the name was given.
    pub place: String,
    /// The name.
    pub name: String,
    /// The known names.
    pub known: Vec<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: there is no such name in these results", self.place, self.name)
    }
}

impl Error for Unknown {}

/// Results, ready to be drawn.
#[derive(Debug)]
pub struct Report {
    title: String,
    data: Value,
    /// True if some runs used a machine's clock.
    is_live: bool,
    /// Notes on omissions, in sentences.
    notes: Vec<String>,
}

impl Report {
    /// Reads output directories. Several are compared: which one it is, is another axis.
    ///
    /// # Errors
    /// A directory is not an output of ackclock, or one of its files cannot be read.
    pub fn read(dirs: &[PathBuf], options: &Options) -> anyhow::Result<Report> {
        if dirs.is_empty() {
            bail!("no output directory was given");
        }
        let results = read::results(dirs)?;
        let mut notes = Vec::new();
        let runs = run::all(&results, options, &mut notes)?;
        let title = results.outputs.iter().map(|output| output.title.as_str()).fold(Vec::new(), |mut titles, title| {
            if !titles.contains(&title) {
                titles.push(title);
            }
            titles
        });
        let title = title.join("; ");
        let statistics = statistics::of(&results, &mut notes);
        let data = json!({
            "title": title,
            "outputs": results.outputs.iter().map(read::OutputDir::json).collect::<Vec<_>>(),
            "axes": results.axes(),
            "runs": results.runs(),
            "subjects": results.subjects.iter().map(|subject| (subject.name.to_owned(), subject.json()))
                .collect::<Map<_, _>>(),
            "statistics": statistics,
            "expectations": results.expectations,
            "records": runs,
            "notes": notes,
        });
        let is_live = results.runs.iter().any(|run| run.is_live);
        Ok(Report { title, data, is_live, notes })
    }

    /// Chooses a figure: the page begins with it, and it is the only file.
    ///
    /// # Errors
    /// [`Unknown`], if the results do not have a name; the figure cannot be drawn.
    pub fn ask(&mut self, asked: &Asked) -> anyhow::Result<()> {
        let mut json = json!({
            "figure": asked.figure, "of": asked.of, "metric": asked.metric, "across": asked.across, "only": asked.only,
        });
        for (place, name) in &asked.places {
            json[*place] = name.as_str().into();
        }
        let mut found = render::asked(&self.data, &json)?;
        let text = |key: &str| found[key].as_str().map(str::to_owned);
        if let Some(wrong) = text("wrong") {
            bail!(wrong);
        }
        if let (Some(place), Some(name)) = (text("what"), text("unknown")) {
            let known = found["known"].as_array().into_iter().flatten().filter_map(Value::as_str);
            return Err(Unknown { place, name, known: known.map(str::to_owned).collect() }.into());
        }
        self.data["asked"] = found["choice"].take();
        Ok(())
    }

    /// Notes on parts omitted for their size, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The page: HTML with everything that it needs.
    pub fn page(&self) -> String {
        // Within a script no text begins a tag or a comment.
        let data = self.data.to_string().replace('<', "\\u003c");
        let title = self.title.replace('&', "&amp;").replace('<', "&lt;");
        filled(
            include_str!("../page/page.html"),
            &[
                ("{{title}}", &title),
                ("{{style}}", include_str!("../page/style.css")),
                ("{{repeats}}", if self.is_live { LIVE } else { VIRTUAL }),
                ("{{data}}", &data),
                ("{{library}}", render::LIBRARY),
                ("{{figures}}", &render::functions()),
                ("{{app}}", include_str!("../page/app.js")),
            ],
        )
    }

    /// The requested figures, or those that the page shows first, as files.
    ///
    /// # Errors
    /// A figure could not be drawn.
    pub fn figures(&self) -> anyhow::Result<Vec<Figure>> {
        render::figures(&self.data)
    }
}

/// A template with these texts in the places of its marks, in their order.
fn filled(template: &str, texts: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + texts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = template;
    for (mark, text) in texts {
        // What was put in is not looked at again.
        let Some((before, after)) = rest.split_once(mark) else { continue };
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}
