//! Figures as SVG, drawn by the functions and the library of the page, without a browser.

use std::fmt::Write;

use ackclock_trace::metrics::figures;
use anyhow::anyhow;
use rquickjs::{CatchResultExt, CaughtError, Context, Runtime};
use serde_json::Value;

/// Apache ECharts.
pub(crate) const LIBRARY: &str = include_str!("../vendor/echarts.min.js");

/// The functions that say what is in a figure, with the rows of metrics.
pub(crate) fn functions() -> String {
    include_str!("../page/figures.js").replace("{{metrics}}", &figures::json().to_string())
}

/// The library's requirements on a browser: timers, which a figure drawn at once never uses.
const BROWSER: &str = "globalThis.setTimeout = () => 0; globalThis.clearTimeout = () => {};";

/// Widths of texts, which a browser knows: letters of most fonts are narrower than 0.6 of their
/// size. The library takes the width of a Chinese character for the height of a line.
const LETTERS: &str = r"echarts.setPlatformAPI({
    measureText: (text, font) => {
        const size = parseFloat(/([\d.]+)px/.exec(font)?.[1]) || 12;
        return { width: [...text].reduce((width, letter) => width + (letter > '\u2e80' ? 1 : 0.6) * size, 0) };
    },
});";

/// A requested figure, complete, or the error in the request.
const ASK: &str = "JSON.stringify(Figures.asked(data, asked))";

/// Draws the requested figure, or those that the page shows first.
const DRAW: &str = "
    JSON.stringify(Figures.first(data).map(({ name, figure }) => {
        const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 860, height: figure.height });
        // A file has nothing to zoom with.
        const { dataZoom, ...option } = figure.option;
        chart.setOption({ ...option, backgroundColor: '#fff' });
        const svg = chart.renderToSVGString();
        chart.dispose();
        return [name, svg];
    }))";

/// The most memory that a drawing takes, in bytes.
const MEMORY: usize = 2 << 30;

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// A name for its file, without an extension.
    pub name: String,
    /// The figure as SVG.
    pub svg: String,
}

/// The requested figure, or those that the page shows first.
pub(crate) fn figures(data: &Value) -> anyhow::Result<Vec<Figure>> {
    let text = evaluated(&[("data", data)], ("a figure", DRAW))?;
    let figures: Vec<(String, String)> = serde_json::from_str(&text)?;
    Ok(figures.into_iter().map(|(name, svg)| Figure { name, svg }).collect())
}

/// The data of a requested figure, as the page computes it.
pub(crate) fn asked(data: &Value, asked: &Value) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&evaluated(&[("data", data), ("asked", asked)], ("what was asked for", ASK))?)?)
}

/// The value of a piece of code that can use the library, the figures and these values.
fn evaluated(values: &[(&str, &Value)], (what, code): (&str, &str)) -> anyhow::Result<String> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY);
    let context = Context::full(&runtime)?;
    context.with(|cx| {
        let parts = [
            ("its environment", BROWSER),
            ("ECharts", LIBRARY),
            ("its letters", LETTERS),
            ("the figures", &functions()),
        ];
        for (what, code) in parts {
            cx.eval::<(), _>(code).catch(&cx).map_err(|error| failed(what, &error))?;
        }
        for (name, value) in values {
            cx.globals().set("text", value.to_string())?;
            let parsed: Result<(), _> = cx.eval(format!("globalThis.{name} = JSON.parse(text);"));
            parsed.catch(&cx).map_err(|error| failed("the data", &error))?;
        }
        cx.eval(code).catch(&cx).map_err(|error| failed(what, &error))
    })
}

/// An error of the interpreter, with where it happened.
fn failed(what: &str, error: &CaughtError<'_>) -> anyhow::Error {
    let mut text = format!("cannot draw {what}: ");
    match error {
        CaughtError::Exception(exception) => {
            let message = exception.message().unwrap_or_default();
            let _ = write!(text, "{message}\n{}", exception.stack().unwrap_or_default());
        }
        other => {
            let _ = write!(text, "{other}");
        }
    }
    anyhow!(text)
}
