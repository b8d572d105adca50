//! Shell scripts, as far as they are lists of commands: words, quotes, comments, continued lines,
//! variables, and arithmetic. Nothing is executed.
//!
//! # Source
//! POSIX.1-2024, Shell Command Language: 2.2 quoting, 2.5.3 variables, 2.6.2 parameter expansion,
//! 2.6.4 arithmetic expansion, 2.6.5 field splitting.
//!
//! # Departures
//! - The output of a command is not known (but for `expr`, which is arithmetic), nor is what `read`
//!   and positional parameters hold.
//! - Conditions of `if`, `case` and loops are not evaluated: what is below them counts once.

use std::collections::BTreeMap;

/// More nesting than any script has.
const DEEPEST: usize = 16;

/// A command of a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simple {
    /// Its line, from 1.
    pub(crate) line: u32,
    /// Its words before expansion.
    words: Vec<Vec<Part>>,
    /// The operator between it and the command before.
    pub(crate) joint: Joint,
    /// It is the name in the definition of a function.
    pub(crate) is_function: bool,
}

/// The operator between a command and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Joint {
    /// By nothing.
    #[default]
    None,
    /// `&&`: it runs if that succeeds.
    And,
    /// `||`: it runs if that fails.
    Or,
    /// `|`.
    Pipe,
}

/// A part of a word.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    /// `$NAME` or `${NAME:-DEFAULT}`; unquoted values are split into words.
    Variable {
        name: String,
        default: Option<Vec<Part>>,
        is_quoted: bool,
    },
    /// `$((...))`.
    Sum(Vec<Part>),
    /// A quoted part, which makes a word even if it is empty.
    Quoted,
    /// A part that is not known before the script runs, as it is written.
    Unknown(String),
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its text, with what is not known as it is written.
    pub(crate) text: String,
    /// The first part that is not known.
    pub(crate) unknown: Option<String>,
}

/// Cuts a text into commands.
pub(crate) fn commands(text: &str) -> Vec<Simple> {
    let mut lexer = Lexer { rest: text, line: 1, here: Vec::new() };
    let mut commands = Vec::new();
    let mut joint = Joint::None;
    while let Some(mut command) = lexer.command() {
        let next = std::mem::replace(&mut command.joint, joint);
        joint = if command.words.is_empty() && next == Joint::None { joint } else { next };
        let is_end = command.words.len() == 1
            && matches!(&command.words[0][..], [Part::Text(word)] if lexer.here.contains(word));
        if !command.words.is_empty() && !is_end {
            commands.push(command);
        }
    }
    commands
}

struct Lexer<'t> {
    rest: &'t str,
    line: u32,
    /// Ends of here-documents.
    here: Vec<String>,
}

impl<'t> Lexer<'t> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        self.line += u32::from(next == '\n');
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest.starts_with(text);
        if is_next {
            self.rest = &self.rest[text.len()..];
        }
        is_next
    }

    /// The next command, which may have no words; its joint is that of the command behind it.
    fn command(&mut self) -> Option<Simple> {
        if self.rest.is_empty() {
            return None;
        }
        let mut command = Simple { line: self.line, ..Simple::default() };
        // The word behind a redirection is no argument.
        let mut drops_next = None;
        loop {
            let word = match self.rest.chars().next() {
                None => break,
                Some(' ' | '\t' | '\r') => {
                    self.next();
                    continue;
                }
                Some('#') => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[end..];
                    continue;
                }
                Some('\\') if self.rest[1..].starts_with('\n') || self.rest[1..].starts_with("\r\n") => {
                    while self.next() != Some('\n') {}
                    if command.words.is_empty() {
                        command.line = self.line;
                    }
                    continue;
                }
                Some('\n' | ';') => {
                    self.next();
                    break;
                }
                Some('&') => {
                    self.next();
                    if self.take(">") {
                        drops_next = Some(false);
                        continue;
                    }
                    command.joint = if self.take("&") { Joint::And } else { Joint::None };
                    break;
                }
                Some('|') => {
                    self.next();
                    command.joint = if self.take("|") { Joint::Or } else { Joint::Pipe };
                    break;
                }
                Some('(') => {
                    self.next();
                    command.is_function = !command.words.is_empty();
                    break;
                }
                Some(')') => {
                    self.next();
                    break;
                }
                Some('<' | '>') => {
                    let is_here = self.take("<<");
                    while self.take(">") || self.take("<") || self.take("&") || self.take("-") {}
                    drops_next = Some(is_here);
                    continue;
                }
                Some(_) => self.word(),
            };
            let is_descriptor =
                matches!(&word[..], [Part::Text(text)] if text.bytes().all(|byte| byte.is_ascii_digit()));
            match drops_next.take() {
                Some(true) => {
                    if let Some(Part::Text(end)) = word.into_iter().find(|part| matches!(part, Part::Text(_))) {
                        self.here.push(end);
                    }
                }
                Some(false) => {}
                // The number before a redirection belongs to it.
                None if is_descriptor && self.rest.starts_with(['<', '>']) => {}
                None => command.words.push(word),
            }
        }
        Some(command)
    }

    fn word(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        while let Some(next) = self.rest.chars().next() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.next();
                    let end = self.rest.find('\'').unwrap_or(self.rest.len());
                    let text = self.rest[..end].to_owned();
                    self.line += text.matches('\n').count() as u32;
                    self.rest = self.rest[end..].strip_prefix('\'').unwrap_or("");
                    parts.extend([Part::Quoted, Part::Text(text)]);
                }
                '"' => {
                    self.next();
                    parts.push(Part::Quoted);
                    loop {
                        match self.rest.chars().next() {
                            None => break,
                            Some('"') => {
                                self.next();
                                break;
                            }
                            Some(_) => self.part(&mut parts, true, 0),
                        }
                    }
                }
                _ => self.part(&mut parts, false, 0),
            }
        }
        parts
    }

    /// A variable, or a character.
    fn part(&mut self, parts: &mut Vec<Part>, is_quoted: bool, depth: usize) {
        let start = self.rest;
        match self.next() {
            Some('\\') => match self.next() {
                Some('\n') | None => {}
                Some(next) if is_quoted && !"\\\"$`".contains(next) => text(parts, &['\\', next]),
                Some(next) => text(parts, &[next]),
            },
            Some('`') => {
                let end = self.rest.find('`').unwrap_or(self.rest.len());
                let part = output(&self.rest[..end], depth);
                self.skip(end + 1);
                let written = &start[..start.len() - self.rest.len()];
                parts.push(part.unwrap_or_else(|| Part::Unknown(written.to_owned())));
            }
            Some('$') => {
                let part = self.variable(is_quoted, depth);
                let written = &start[..start.len() - self.rest.len()];
                parts.push(part.unwrap_or_else(|| Part::Unknown(written.to_owned())));
            }
            Some(next) => text(parts, &[next]),
            None => {}
        }
    }

    /// The part that follows `$`; `None` if it is not known.
    fn variable(&mut self, is_quoted: bool, depth: usize) -> Option<Part> {
        let rest = self.rest;
        if rest.starts_with("((") {
            let inner = self.enclosed('(', ')')?;
            let sum = inner.strip_prefix('(').and_then(|sum| sum.strip_suffix(')'))?;
            return Some(Part::Sum(parts(sum, depth + 1)?));
        }
        if rest.starts_with('(') {
            return output(self.enclosed('(', ')')?, depth);
        }
        if rest.starts_with('{') {
            let inner = self.enclosed('{', '}')?;
            let end = inner.find(|c: char| !is_name(c)).unwrap_or(inner.len());
            let (name, rest) = inner.split_at(end);
            let default = match rest {
                "" => None,
                _ => Some(parts(rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'))?, depth + 1)?),
            };
            return Some(Part::Variable { name: name.to_owned(), default, is_quoted }).filter(|_| !name.is_empty());
        }
        let mut end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            end = 1;
        }
        if end == 0 {
            // `$@`, `$?` and the like are not known; a `$` before anything else is itself.
            if rest.starts_with(['@', '*', '#', '?', '$', '!', '-']) {
                self.skip(1);
                return None;
            }
            return Some(Part::Text("$".to_owned()));
        }
        self.skip(end);
        Some(Part::Variable { name: rest[..end].to_owned(), default: None, is_quoted })
    }

    /// The text up to the bracket that ends the one it begins with, without these.
    fn enclosed(&mut self, open: char, close: char) -> Option<&'t str> {
        let rest = self.rest;
        let mut depth = 0usize;
        for (place, c) in rest.char_indices() {
            depth += usize::from(c == open);
            if c == close {
                depth -= 1;
                if depth == 0 {
                    self.skip(place + close.len_utf8());
                    return Some(&rest[open.len_utf8()..place]);
                }
            }
        }
        self.skip(rest.len());
        None
    }

    fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.rest.len());
        self.line += self.rest[..bytes].matches('\n').count() as u32;
        self.rest = &self.rest[bytes..];
    }
}

fn text(parts: &mut Vec<Part>, chars: &[char]) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.extend(chars),
        _ => parts.push(Part::Text(chars.iter().collect())),
    }
}

/// The output of a command, which is known of `expr` alone: the sum that it computes.
fn output(command: &str, depth: usize) -> Option<Part> {
    let sum = command.trim().strip_prefix("expr ")?.replace("\\*", "*");
    Some(Part::Sum(parts(&sum, depth + 1)?))
}

/// The parts of a text within a word; `None` if it is nested too deeply.
fn parts(text: &str, depth: usize) -> Option<Vec<Part>> {
    if depth > DEEPEST {
        return None;
    }
    let mut lexer = Lexer { rest: text, line: 0, here: Vec::new() };
    let mut parts = Vec::new();
    while !lexer.rest.is_empty() {
        lexer.part(&mut parts, true, depth);
    }
    Some(parts)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The variables of a script: `None` is one whose value is not known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Option<String>>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: Option<String>) {
        self.0.insert(name.to_owned(), value);
    }

    /// The words of a command.
    pub(crate) fn expand(&self, command: &Simple) -> Vec<Word> {
        command.words.iter().flat_map(|word| self.word(word)).collect()
    }

    fn word(&self, parts: &[Part]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        // The word that goes on, if one has begun.
        let mut open: Option<Word> = None;
        for part in parts {
            let (value, unknown, splits) = match part {
                Part::Text(text) => (text.clone(), None, false),
                Part::Quoted => (String::new(), None, false),
                Part::Unknown(written) => (written.clone(), Some(written.clone()), false),
                Part::Variable { is_quoted, .. } => {
                    let (value, unknown) = self.value(part);
                    (value, unknown, !is_quoted)
                }
                Part::Sum(_) => {
                    let (value, unknown) = self.value(part);
                    (value, unknown, false)
                }
            };
            if !splits || unknown.is_some() {
                let word = open.get_or_insert_with(|| Word { text: String::new(), unknown: None });
                word.text.push_str(&value);
                word.unknown = word.unknown.take().or(unknown);
                continue;
            }
            let mut fields = value.split_ascii_whitespace().peekable();
            if value.starts_with(|c: char| c.is_ascii_whitespace()) {
                words.extend(open.take());
            }
            while let Some(field) = fields.next() {
                open.get_or_insert_with(|| Word { text: String::new(), unknown: None }).text.push_str(field);
                if fields.peek().is_some() || value.ends_with(|c: char| c.is_ascii_whitespace()) {
                    words.extend(open.take());
                }
            }
        }
        words.extend(open);
        words
    }

    /// The value of a variable or a sum, and what of it is not known.
    fn value(&self, part: &Part) -> (String, Option<String>) {
        match part {
            Part::Variable { name, default, .. } => {
                let written = format!("${name}");
                match (self.0.get(name), default) {
                    (Some(Some(value)), None) => (value.clone(), None),
                    (Some(Some(value)), Some(_)) if !value.is_empty() => (value.clone(), None),
                    (Some(None), _) | (None, None) => (written.clone(), Some(written)),
                    (_, Some(default)) => self.text(default),
                }
            }
            Part::Sum(parts) => {
                let (text, unknown) = self.text(parts);
                match self.sum(&text).filter(|_| unknown.is_none()) {
                    Some(sum) => (sum.to_string(), None),
                    None => (format!("$(({text}))"), Some(unknown.unwrap_or_else(|| format!("$(({text}))")))),
                }
            }
            Part::Text(text) => (text.clone(), None),
            Part::Quoted => (String::new(), None),
            Part::Unknown(written) => (written.clone(), Some(written.clone())),
        }
    }

    fn text(&self, parts: &[Part]) -> (String, Option<String>) {
        let mut all = (String::new(), None);
        for (text, unknown) in parts.iter().map(|part| self.value(part)) {
            all.0.push_str(&text);
            all.1 = all.1.or(unknown);
        }
        all
    }

    /// The value of an expression of whole numbers, variables, `+ - * / %` and brackets.
    fn sum(&self, text: &str) -> Option<i64> {
        let mut sum = Sum { variables: self, rest: text.trim() };
        sum.added(0).filter(|_| sum.rest.is_empty())
    }

    /// The result of a test, where it has one.
    pub(crate) fn test(&self, words: &[Word]) -> Option<bool> {
        if words.iter().any(|word| word.unknown.is_some()) {
            return None;
        }
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).filter(|word| *word != "]").collect();
        let numbers = |one: &str, other: &str| Some((one.parse::<i64>().ok()?, other.parse::<i64>().ok()?));
        match words[..] {
            ["-z", text] => Some(text.is_empty()),
            ["-n", text] => Some(!text.is_empty()),
            ["-z"] => Some(true),
            ["-n"] => Some(false),
            [one, "=" | "==", other] => Some(one == other),
            [one, "!=", other] => Some(one != other),
            [one, "-eq", other] => numbers(one, other).map(|(one, other)| one == other),
            [one, "-ne", other] => numbers(one, other).map(|(one, other)| one != other),
            [one, "-gt", other] => numbers(one, other).map(|(one, other)| one > other),
            [one, "-ge", other] => numbers(one, other).map(|(one, other)| one >= other),
            [one, "-lt", other] => numbers(one, other).map(|(one, other)| one < other),
            [one, "-le", other] => numbers(one, other).map(|(one, other)| one <= other),
            _ => None,
        }
    }
}

struct Sum<'v> {
    variables: &'v Variables,
    rest: &'v str,
}

impl Sum<'_> {
    fn take(&mut self, operators: &[char]) -> Option<char> {
        let next = self.rest.chars().next().filter(|next| operators.contains(next))?;
        self.rest = self.rest[1..].trim_start();
        Some(next)
    }

    fn added(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.multiplied(depth)?;
        while let Some(operator) = self.take(&['+', '-']) {
            let other = self.multiplied(depth)?;
            value = if operator == '+' { value.checked_add(other)? } else { value.checked_sub(other)? };
        }
        Some(value)
    }

    fn multiplied(&mut self, depth: usize) -> Option<i64> {
        let mut value = self.one(depth)?;
        while let Some(operator) = self.take(&['*', '/', '%']) {
            let other = self.one(depth)?;
            value = match operator {
                '*' => value.checked_mul(other)?,
                '/' => value.checked_div(other)?,
                _ => value.checked_rem(other)?,
            };
        }
        Some(value)
    }

    fn one(&mut self, depth: usize) -> Option<i64> {
        if depth > DEEPEST {
            return None;
        }
        if self.take(&['(']).is_some() {
            let value = self.added(depth + 1)?;
            return self.take(&[')']).map(|_| value);
        }
        if self.take(&['-']).is_some() {
            return self.one(depth + 1)?.checked_neg();
        }
        let end = self.rest.find(|c: char| !is_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word.parse().ok().or_else(|| self.variables.0.get(word)?.as_ref()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str, set: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut variables = Variables::default();
        set.iter().for_each(|(name, value)| variables.set(name, Some((*value).to_owned())));
        let words = |command| variables.expand(command).into_iter().map(|word| word.text).collect();
        commands(text).iter().map(words).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let text = "tc  a 'b  $X' \"c $X\" d\\ e # no\n# nothing\ntc f \\\n  g; tc h && tc i >/dev/null 2>&1 || true";
        assert_eq!(
            expanded(text, &[("X", "1 2")]),
            [
                vec!["tc", "a", "b  $X", "c 1 2", "d e"],
                vec!["tc", "f", "g"],
                vec!["tc", "h"],
                vec!["tc", "i"],
                vec!["true"]
            ]
        );
        assert_eq!(commands(text).iter().map(|command| command.line).collect::<Vec<_>>(), [1, 3, 4, 4, 4]);
    }

    #[test]
    fn variables_are_put_in_and_split() {
        let set = [("LQ", "quantum 1500"), ("N", "3"), ("E", "")];
        assert_eq!(expanded("x $(expr $N \\* 4) `expr 9 / 2`", &set), [["x", "12", "4"]]);
        assert_eq!(
            expanded("x $LQ ${N}kbit \"$LQ\" $E \"$E\" ${M:-7} ${E:-8} $(($N * (2 + 5) / 2))ms", &set),
            [["x", "quantum", "1500", "3kbit", "quantum 1500", "", "7", "8", "10ms"]]
        );
    }

    #[test]
    fn the_unknown_stays_as_it_is_written() {
        let variables = Variables::default();
        let commands = commands("tc $(id -u) `date` $1 $@ ${A%b} $A $((1 / 0))");
        let words = variables.expand(&commands[0]);
        let unknown: Vec<_> = words.iter().filter_map(|word| word.unknown.as_deref()).collect();
        assert_eq!(unknown, ["$(id -u)", "`date`", "$1", "$@", "${A%b}", "$A", "$((1 / 0))"]);
    }

    #[test]
    fn here_documents_are_commands() {
        assert_eq!(expanded("tc -b - <<'END'\nqdisc add\nEND\n", &[]), [vec!["tc", "-b", "-"], vec!["qdisc", "add"]]);
    }

    #[test]
    fn tests_compare_what_is_known() {
        let variables = Variables::default();
        let result = |text: &str| variables.test(&variables.expand(&commands(text)[0]));
        assert_eq!(result("-z '' ]"), Some(true));
        assert_eq!(result("10 -gt 9 ]"), Some(true));
        assert_eq!(result("a = b ]"), Some(false));
        assert_eq!(result("$A = b ]"), None);
    }
}
