//! The committed tables of instructions for each data packet, one for a build profile.

use std::fmt::Write;

use crate::cachegrind::Cost;

/// The difference in instructions that needs no new table, as a share.
const TOLERANCE: f64 = 0.01;

/// Costs by the names of their cases.
pub type Rows = Vec<(String, Cost)>;

const COLUMNS: &str = "\
| scenario | instructions | I1 misses | D1 misses | LL misses |
|---|---|---|---|---|
";

/// The text of the file for a profile.
pub fn render(profile: &str, compiler: &str, rows: &[(String, Cost)]) -> String {
    let mut text = format!(
        "# Instructions for each data packet, profile `{profile}`\n\n\
         Written by `ACKCLOCK_WRITE_DOCS=1 ACKCLOCK_PROFILE={profile} cargo bench -p ackclock-benches --bench instructions`. More or \
         fewer\ninstructions by over 1 % fail until the table is written anew. [README.md](README.md) describes the measurement.\n\n\
         Compiler: {compiler}\n\n{COLUMNS}"
    );
    for (name, cost) in rows {
        let Cost { instructions, i1, d1, ll } = cost;
        // Nothing is 0, also where the longer run has fewer.
        let [i1, d1, ll] = [i1, d1, ll].map(|misses| (misses * 10.0).round() / 10.0 + 0.0);
        let _ = writeln!(text, "| {name} | {instructions:.0} | {i1:.1} | {d1:.1} | {ll:.1} |");
    }
    text
}

/// Compiler and rows of a file.
pub fn parse(text: &str) -> Option<(String, Rows)> {
    let compiler = text.lines().find_map(|line| line.strip_prefix("Compiler: "))?;
    let (_, table) = text.split_once(COLUMNS)?;
    let rows = table.lines().map(row).collect::<Option<Rows>>()?;
    Some((compiler.to_owned(), rows))
}

fn row(line: &str) -> Option<(String, Cost)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let &[name, instructions, i1, d1, ll] = cells.as_slice() else { return None };
    let number = |cell: &str| cell.parse::<f64>().ok();
    let cost = Cost { instructions: number(instructions)?, i1: number(i1)?, d1: number(d1)?, ll: number(ll)? };
    Some((name.to_owned(), cost))
}

/// Returns `true` if instructions differ by more than the table allows.
fn differs(was: f64, is: f64) -> bool {
    (is - was).abs() > TOLERANCE * was
}

/// Both tables side by side, and whether a case differs by too much.
pub fn compare(committed: &[(String, Cost)], measured: &[(String, Cost)]) -> (String, bool) {
    let mut text = String::from("instructions for each data packet\n    table       now\n");
    let mut any = false;
    for (name, is) in measured {
        let Some((_, was)) = committed.iter().find(|(other, _)| other == name) else {
            let _ = writeln!(text, "        -  {:8.0}            {name}  <- not in the table", is.instructions);
            any = true;
            continue;
        };
        let bad = differs(was.instructions, is.instructions);
        any |= bad;
        let percent = (is.instructions / was.instructions - 1.0) * 100.0;
        let mark = if bad { "  <-" } else { "" };
        let _ = writeln!(text, " {:8.0}  {:8.0}  {percent:+6.1} %  {name}{mark}", was.instructions, is.instructions);
    }
    (text, any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(instructions: f64) -> Rows {
        let cost = |factor: f64| Cost { instructions: factor * instructions, i1: 98.5, d1: 11.0, ll: 0.5 };
        vec![("2 newreno, pie".to_owned(), cost(1.0)), ("100 newreno".to_owned(), cost(2.0))]
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(
            parse(&render("dist", "rustc 1.95.0", &rows(2000.0))),
            Some(("rustc 1.95.0".to_owned(), rows(2000.0)))
        );
        assert_eq!(parse("Compiler: rustc 1.95.0\n"), None);
        assert_eq!(parse(&render("dist", "rustc 1.95.0", &rows(2000.0)).replace("2000 ", "")), None);
    }

    #[test]
    fn one_percent_either_way_is_allowed() {
        let bad = |instructions| compare(&rows(2000.0), &rows(instructions)).1;
        assert!(!bad(2000.0) && !bad(2019.0) && !bad(1981.0));
        assert!(bad(2021.0) && bad(1979.0));
    }

    #[test]
    fn a_case_that_the_table_does_not_have_differs() {
        let (text, bad) = compare(&rows(2000.0)[..1], &rows(2000.0));
        assert!(bad && text.contains("100 newreno  <- not in the table"), "{text}");
    }
}
