//! Figures as SVG, drawn by the functions and the library of the page, without a browser.

use std::fmt::Write;

use anyhow::anyhow;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Runtime};
use serde_json::Value;

/// Apache ECharts.
pub(crate) const LIBRARY: &str = include_str!("../vendor/echarts.min.js");

/// The functions that say what is in a figure.
pub(crate) const FIGURES: &str = include_str!("../page/figures.js");

/// What the library asks of a browser: timers, which a figure that is drawn at once has no need of.
const BROWSER: &str = "globalThis.setTimeout = () => 0; globalThis.clearTimeout = () => {};";

/// Draws each of the figures that the page shows first.
const DRAW: &str = "
    JSON.stringify(Figures.first(data).map(({ name, figure }) => {
        const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: 860, height: figure.height });
        // A file has nothing to zoom with; widths of text are estimates without a browser.
        const { dataZoom, legend, ...option } = figure.option;
        const wide = legend ? { legend: { ...legend, itemGap: 28 } } : {};
        chart.setOption({ ...option, ...wide, backgroundColor: '#fff' });
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

/// The figures that the page shows first.
pub(crate) fn figures(data: &Value) -> anyhow::Result<Vec<Figure>> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY);
    let context = Context::full(&runtime)?;
    let text = context.with(|cx| -> anyhow::Result<String> {
        for (what, code) in [("its environment", BROWSER), ("ECharts", LIBRARY), ("the figures", FIGURES)] {
            cx.eval::<(), _>(code).catch(&cx).map_err(|error| failed(what, &error))?;
        }
        cx.globals().set("text", data.to_string())?;
        let parsed: Result<(), _> = cx.eval("globalThis.data = JSON.parse(text);");
        parsed.catch(&cx).map_err(|error| failed("the data", &error))?;
        draw(&cx)
    })?;
    let figures: Vec<(String, String)> = serde_json::from_str(&text)?;
    Ok(figures.into_iter().map(|(name, svg)| Figure { name, svg }).collect())
}

fn draw(cx: &Ctx<'_>) -> anyhow::Result<String> {
    cx.eval(DRAW).catch(cx).map_err(|error| failed("a figure", &error))
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
