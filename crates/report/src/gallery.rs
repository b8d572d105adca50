//! A page of tables: what was published beside what was found, with links to pages of figures.

use std::fmt::Write;

/// All of the page.
#[derive(Clone, Debug, Default)]
pub struct Gallery {
    /// The heading.
    pub title: String,
    /// Summary of the page, one line.
    pub about: String,
    /// Tables in the order of the page.
    pub tables: Vec<Table>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heading.
    pub name: String,
    /// A line below the table.
    pub totals: String,
    /// Rows in the order of the table.
    pub rows: Vec<Entry>,
}

/// A published result.
#[derive(Clone, Debug)]
pub struct Entry {
    /// State of the result.
    pub state: State,
    /// The published figure or table.
    pub source: String,
    /// The published claims, a paragraph each.
    pub published: Vec<String>,
    /// Measurements of a real kernel, likewise.
    pub kernel: Vec<String>,
    /// Explanations, likewise.
    pub notes: Vec<String>,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// A number that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Agreement with the expectation.
    pub state: State,
    /// Name of the metric.
    pub metric: String,
    /// The number, with its unit.
    pub value: String,
    /// Spread of the values over its runs.
    pub spread: String,
    /// The expected bounds.
    pub expected: String,
    /// Scenario and point of the finding.
    pub place: String,
    /// The page with figures, relative to this one.
    pub page: Option<String>,
}

/// The state of a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The expectation is met.
    Ok,
    /// A part of it is.
    Part,
    /// The expectation is not met.
    Miss,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Part => "part",
            State::Miss => "miss",
        }
    }

    /// The state in a coloured box.
    fn badge(self) -> String {
        format!("<span class=\"state {0}\">{0}</span>", self.name())
    }
}

impl Gallery {
    /// The page: HTML that needs nothing but the pages to which it links.
    pub fn page(&self) -> String {
        let mut main = String::new();
        let mut nav = String::new();
        for table in &self.tables {
            let name = escaped(&table.name);
            let _ = write!(nav, "<a href=\"#{name}\">{name}</a>");
            table.write(&mut main);
        }
        let title = escaped(&self.title);
        let style = [include_str!("../page/style.css"), include_str!("../page/gallery.css")].concat();
        let about = escaped(&self.about);
        crate::filled(
            include_str!("../page/gallery.html"),
            &[
                ("{{title}}", &title),
                ("{{style}}", &style),
                ("{{title}}", &title),
                ("{{about}}", &about),
                ("{{nav}}", &nav),
                ("{{main}}", &main),
            ],
        )
    }
}

impl Table {
    fn write(&self, out: &mut String) {
        let has_kernel = self.rows.iter().any(|row| !row.kernel.is_empty());
        let name = escaped(&self.name);
        let _ = write!(out, "<section id=\"{name}\">\n<h2>{name}</h2>\n<table class=\"gallery\">\n<thead><tr>");
        let kernel = has_kernel.then_some("real kernel");
        let heads = [Some("source"), Some("published"), Some("ackclock"), kernel, Some("result")];
        for head in heads.into_iter().flatten() {
            let _ = write!(out, "<th>{head}</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            row.write(out, has_kernel);
        }
        let _ = write!(out, "</tbody>\n</table>\n<p class=\"hint\">{}.</p>\n</section>\n", escaped(&self.totals));
    }
}

impl Entry {
    fn write(&self, out: &mut String, has_kernel: bool) {
        let name = self.state.name();
        let _ = write!(out, "<tr class=\"{name}\"><th scope=\"row\">{}</th>", escaped(&self.source));
        cell(out, "published", &self.published);
        out.push_str("<td data-head=\"ackclock\">");
        self.findings.iter().for_each(|finding| finding.write(out));
        if !self.notes.is_empty() {
            let _ = write!(out, "<div class=\"note\">{}</div>", paragraphs(&self.notes));
        }
        out.push_str("</td>");
        if has_kernel {
            cell(out, "real kernel", &self.kernel);
        }
        let _ = writeln!(out, "<td data-head=\"result\">{}</td></tr>", self.state.badge());
    }
}

impl Finding {
    fn write(&self, out: &mut String) {
        let [metric, value, spread, expected, place] =
            [&self.metric, &self.value, &self.spread, &self.expected, &self.place].map(|text| escaped(text));
        let spread = if spread.is_empty() { spread } else { format!(" ({spread})") };
        let expected = if expected.is_empty() { expected } else { format!(", expected {expected}") };
        let place = match &self.page {
            Some(page) => format!("<a href=\"{}\">{place}</a>", escaped(page)),
            None => place,
        };
        let badge = self.state.badge();
        let _ = write!(out, "<p>{badge} {metric} <b>{value}</b>{spread}{expected}<br><small>{place}</small></p>");
    }
}

fn cell(out: &mut String, head: &str, texts: &[String]) {
    let none = if texts.is_empty() { " class=\"none\"" } else { "" };
    let _ = write!(out, "<td data-head=\"{head}\"{none}>{}</td>", paragraphs(texts));
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>", escaped(text))).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_table_is_text() {
        let finding = Finding {
            state: State::Miss,
            metric: "rtt".to_owned(),
            value: "5 ms".to_owned(),
            spread: "4..6".to_owned(),
            expected: "at most 4 ms".to_owned(),
            place: "two-flows".to_owned(),
            page: Some("teacup/two-flows.html".to_owned()),
        };
        let row = Entry {
            state: State::Part,
            source: "Figure <1>".to_owned(),
            published: vec!["a & b".to_owned(), "{{main}}".to_owned()],
            kernel: Vec::new(),
            notes: vec!["\"why\"".to_owned()],
            findings: vec![finding],
        };
        let table = Table { name: "teacup".to_owned(), totals: "1 row".to_owned(), rows: vec![row] };
        let page = Gallery { title: "T".to_owned(), about: "A".to_owned(), tables: vec![table] }.page();
        for part in [
            "<a href=\"#teacup\">",
            "Figure &lt;1&gt;",
            "<p>a &amp; b</p><p>{{main}}</p>",
            "&quot;why&quot;",
            "<a href=\"teacup/two-flows.html\">two-flows</a>",
            "<span class=\"state part\">part</span>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("real kernel") && page.trim_end().ends_with("</html>"));
    }
}
