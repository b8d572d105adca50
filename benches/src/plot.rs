//! Plots with logarithmic axes, as SVG that is legible on a telephone and on dark backgrounds.

use std::fmt::Write;

/// A plot of one quantity. Several share a file, one below the other.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The label of the vertical axis, with its unit.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// Lines with their names.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

/// Width of a picture, and height of a panel.
const WIDTH: f64 = 390.0;
const HEIGHT: f64 = 250.0;

/// The ends of the axes within a panel.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 370.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 206.0;

/// Colours of the lines, on light ground and on dark.
const COLOURS: [(&str, &str); 3] = [("#0b5fa5", "#6cb6ff"), ("#b3430e", "#f0883e"), ("#2d7d32", "#7ee787")];

/// A logarithmic axis from one place on the picture to another.
struct LogAxis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> LogAxis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        LogAxis { least, most, from, to }
    }

    /// The axis extended to lines of the grid, and to at least a factor of four.
    fn rounded(self) -> LogAxis {
        let below = grid().rfind(|&line| line <= self.least).unwrap_or(self.least);
        let above = grid().find(|&line| line >= self.most.max(4.0 * below)).unwrap_or(self.most);
        LogAxis { least: below, most: above, ..self }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value / self.least).log10() / (self.most / self.least).log10().max(f64::MIN_POSITIVE);
        self.from + share * (self.to - self.from)
    }

    /// Lines of the grid: 1, 2 and 5 of each power of ten where there is room.
    fn lines(&self) -> Vec<f64> {
        let all = || grid().filter(|&line| line >= self.least && line <= self.most);
        if all().count() <= 8 { all().collect() } else { all().step_by(3).collect() }
    }
}

/// 0.01, 0.02, 0.05, 0.1, ...
fn grid() -> impl DoubleEndedIterator<Item = f64> {
    let power = |power: u32| f64::from(10_u32.pow(power.min(9)));
    (0..12).flat_map(move |place: u32| {
        let unit = if place < 2 { 1.0 / power(2 - place) } else { power(place - 2) };
        [1.0, 2.0, 5.0].map(|digit| digit * unit)
    })
}

/// A number as axes have it: 500, 1,000, 10k.
fn number(value: f64) -> String {
    match value as u64 {
        0 => value.to_string(),
        small @ 0..1000 => small.to_string(),
        middle @ 1000..10_000 => format!("{},{:03}", middle / 1000, middle % 1000),
        large => format!("{}k", large / 1000),
    }
}

/// The picture of these panels.
pub fn svg(panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\n"
    );
    text.push_str(&style());
    let _ = writeln!(text, "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>");
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(text, "<g transform=\"translate(0 {})\">", HEIGHT * index as f64);
        draw(panel, &mut text);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// Colours for light ground, and for dark.
fn style() -> String {
    let mut light = String::from(".ground { fill: #ffffff } text { fill: #1f2328 } .grid { stroke: #d0d7de }");
    let mut dark = String::from(".ground { fill: #0d1117 } text { fill: #e6edf3 } .grid { stroke: #30363d }");
    for (index, (of_light, of_dark)) in COLOURS.iter().enumerate() {
        let _ = write!(light, " .s{index} {{ stroke: {of_light} }} .d{index} {{ fill: {of_light} }}");
        let _ = write!(dark, " .s{index} {{ stroke: {of_dark} }} .d{index} {{ fill: {of_dark} }}");
    }
    format!(
        "<style>\ntext {{ font: 12px sans-serif }} .title {{ font-weight: bold; font-size: 13px }} polyline {{ fill: none; \
         stroke-width: 2 }}\n{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n</style>\n"
    )
}

fn draw(panel: &Panel, text: &mut String) {
    let points = || panel.series.iter().flat_map(|(_, points)| points.iter());
    let x = LogAxis::new(points().map(|point| point.0), LEFT, RIGHT);
    let y = LogAxis::new(points().map(|point| point.1), BOTTOM, TOP).rounded();
    let _ = writeln!(text, "<text class=\"title\" x=\"10\" y=\"20\">{}</text>", panel.title);
    for line in y.lines() {
        let (at, number) = (y.place(line), number(line));
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>");
        let _ = writeln!(text, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>", LEFT - 6.0, at + 4.0);
    }
    for line in x.lines().into_iter().filter(|line| line.log10().fract() == 0.0) {
        let (at, number) = (x.place(line), number(line));
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/>");
        let _ = writeln!(text, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{number}</text>", BOTTOM + 16.0);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let _ =
        writeln!(text, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>", BOTTOM + 33.0, panel.x_label);
    let mut legend = 10.0;
    for (index, (name, points)) in panel.series.iter().enumerate() {
        let places: Vec<String> = points.iter().map(|&(a, b)| format!("{:.1},{:.1}", x.place(a), y.place(b))).collect();
        let _ = writeln!(text, "<polyline class=\"s{index}\" points=\"{}\"/>", places.join(" "));
        for &(a, b) in points {
            let (a, b) = (x.place(a), y.place(b));
            let _ = writeln!(text, "<circle class=\"d{index}\" cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"3\"/>");
        }
        if panel.series.len() > 1 {
            let _ = writeln!(text, "<circle class=\"d{index}\" cx=\"{}\" cy=\"33\" r=\"4\"/>", legend + 4.0);
            let _ = writeln!(text, "<text x=\"{}\" y=\"37\">{name}</text>", legend + 12.0);
            legend += 24.0 + 6.5 * name.len() as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_logarithmic() {
        let axis = LogAxis { least: 1.0, most: 10_000.0, from: 0.0, to: 40.0 };
        assert!((axis.place(100.0) - 20.0).abs() < 1e-9 && (axis.place(1000.0) - 30.0).abs() < 1e-9);
        let rounded = LogAxis { least: 2300.0, most: 4100.0, from: 0.0, to: 1.0 }.rounded();
        assert_eq!((rounded.least, rounded.most), (2000.0, 10_000.0));
        assert_eq!(rounded.lines(), [2000.0, 5000.0, 10_000.0]);
    }

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!([1.0, 500.0, 2000.0, 100_000.0].map(number), ["1", "500", "2,000", "100k"]);
    }
}
