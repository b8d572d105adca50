//! From text to tokens, one at a time, as the parser asks for them.
//!
//! The meaning of a run of characters depends on its place in few cases (flags, values of options,
//! remarks); there the parser reads the text itself, through [`Lexer::run`] and [`Lexer::until`].

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::ParseError;

/// Words that stand for something else, as `--define=NAME=value` gives them: a number, a word,
/// `"a string"`, or `` `a command` ``. `#ifdef` asks whether a word is among them.
pub type Defines = BTreeMap<String, String>;

/// A part of the text that means something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    /// `--name`, without the dashes.
    Option(&'a str),
    /// Digits with a point: `0.1`, `.1`.
    Float(&'a str),
    /// Digits, with a minus sign perhaps.
    Integer(&'a str),
    /// The digits after `0x`.
    Hex(&'a str),
    /// Letters, digits and underscores.
    Word(&'a str),
    /// The text between quotation marks, as written.
    Text(&'a str),
    /// The text between backquotes.
    Shell(&'a str),
    /// The text between `%{` and `}%`.
    Code(&'a str),
    /// `...`
    Ellipsis,
    /// Any other character.
    Sign(char),
    /// Nothing is left.
    End,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The line, from 1.
    pub(crate) line: u32,
    /// `true` if a line ended between the token before and this one.
    pub(crate) first: bool,
    /// Where the token before ended.
    pub(crate) previous: usize,
}

impl Token<'_> {
    pub(crate) fn place(&self) -> Range<usize> {
        self.start..self.end
    }

    /// A description for messages.
    pub(crate) fn describe(&self) -> String {
        let short = |text: &str| {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push_str("...");
            }
            short
        };
        match self.kind {
            Kind::Option(name) => format!("`--{}`", short(name)),
            Kind::Float(text) | Kind::Integer(text) => format!("number `{}`", short(text)),
            Kind::Hex(text) => format!("number `0x{}`", short(text)),
            Kind::Word(text) => format!("`{}`", short(text)),
            Kind::Text(text) => format!("string \"{}\"", short(text)),
            Kind::Shell(_) => "a shell command".to_owned(),
            Kind::Code(_) => "code".to_owned(),
            Kind::Ellipsis => "`...`".to_owned(),
            Kind::Sign(sign) if sign.is_control() => format!("character {:#04x}", u32::from(sign)),
            Kind::Sign(sign) => format!("`{sign}`"),
            Kind::End => "the end of the file".to_owned(),
        }
    }
}

/// Reads tokens; a copy of it is a place to come back to.
#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a str,
    defines: &'a Defines,
    at: usize,
    line: u32,
    first: bool,
    /// Where the last token ended.
    previous: usize,
    /// Where the `#ifdef` is that is open.
    condition: Option<usize>,
    /// The parts left out so far: the line of the `#ifdef` and its word.
    left_out: Vec<(u32, &'a str)>,
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, defines: &'a Defines) -> Lexer<'a> {
        // Editors of one system put a byte order mark before the text.
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { text, defines, at, line: 1, first: true, previous: at, condition: None, left_out: Vec::new() }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The parts that `#ifdef` has left out so far.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (u32, &'a str)> {
        self.left_out.iter().copied()
    }

    /// The offset at which the next token, or the space before it, starts.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn error(&self, place: Range<usize>, title: impl Into<String>) -> ParseError {
        ParseError::at(self.text, place, title)
    }

    /// Goes `length` bytes on, counting lines.
    fn skip(&mut self, length: usize) {
        let lines = self.rest()[..length].iter().filter(|&&byte| byte == b'\n').count();
        self.first |= lines > 0;
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at += length;
    }

    /// Goes past spaces, comments, and what an `#ifdef` leaves out.
    fn skip_space(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = self.rest();
            let spaces = rest.iter().take_while(|byte| b" \t\n\r\x0c".contains(byte)).count();
            if spaces > 0 {
                self.skip(spaces);
            } else if rest.starts_with(b"//") {
                self.skip(self.text[self.at..].find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with(b"/*") {
                let Some(length) = self.text[self.at + 2..].find("*/") else {
                    return Err(self
                        .error(self.at..self.at + 2, "a comment that does not end")
                        .expected("`*/` after it"));
                };
                self.skip(length + 4);
            } else if rest.starts_with(b"#") {
                self.directive()?;
            } else {
                return Ok(());
            }
        }
    }

    /// `#ifdef NAME`, `#endif`.
    fn directive(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        let length = 1 + self.rest()[1..].iter().take_while(|&&byte| is_word(byte)).count();
        let place = start..start + length;
        match &self.text[place.clone()] {
            "#ifdef" if self.condition.is_some() => Err(self.error(place, "an `#ifdef` within another")),
            "#ifdef" => {
                let line = self.line;
                self.skip(length);
                let rest = self.rest();
                self.skip(rest.iter().take_while(|byte| b" \t".contains(byte)).count());
                let name = self.run(is_word);
                if name.is_empty() {
                    return Err(self.error(place, "`#ifdef` without a name"));
                }
                if !self.defines.contains_key(name) {
                    let Some(length) = self.text[self.at..].find("#endif") else {
                        return Err(self.error(place, "an `#ifdef` that does not end").expected("`#endif` after it"));
                    };
                    self.skip(length + "#endif".len());
                    self.left_out.push((line, name));
                } else {
                    self.condition = Some(start);
                }
                Ok(())
            }
            "#endif" if self.condition.take().is_some() => {
                self.skip(length);
                Ok(())
            }
            "#endif" => Err(self.error(place, "an `#endif` without an `#ifdef`")),
            _ => Err(self
                .error(place, "a line with `#`")
                .help("comments are `// ...` and `/* ... */`; the only `#` directives are `#ifdef NAME` and `#endif`")),
        }
    }

    /// The characters from here on for which `keep` holds, without going past spaces first.
    pub(crate) fn run(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest().iter().take_while(|&&byte| byte.is_ascii() && keep(byte)).count();
        let run = &self.text[self.at..self.at + length];
        if length > 0 {
            self.take(length);
        }
        run
    }

    /// Takes `length` bytes that were looked at.
    pub(crate) fn take(&mut self, length: usize) {
        self.skip(length);
        self.first = false;
        self.previous = self.at;
    }

    /// The text from here up to `stop`, which is passed, if it comes before the end of the line.
    pub(crate) fn until(&mut self, stop: u8) -> Option<&'a str> {
        let length = self.rest().iter().position(|&byte| byte == stop || byte == b'\n')?;
        if self.rest()[length] != stop {
            return None;
        }
        let text = &self.text[self.at..self.at + length];
        self.take(length + 1);
        Some(text)
    }

    /// Goes past spaces and comments and gives the byte that follows.
    pub(crate) fn next_byte(&mut self) -> Result<Option<u8>, ParseError> {
        self.skip_space()?;
        Ok(self.rest().first().copied())
    }

    pub(crate) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_space()?;
        let (start, line, first, previous) = (self.at, self.line, self.first, self.previous);
        let token = |kind, end| Token { kind, start, end, line, first, previous };
        let rest = self.rest();
        let text = &self.text[start..];
        let Some(&byte) = rest.first() else {
            return match self.condition {
                Some(at) => Err(self.error(at..at + "#ifdef".len(), "an `#ifdef` that does not end")),
                None => Ok(token(Kind::End, start)),
            };
        };
        let words = |from: usize| from + rest[from..].iter().take_while(|&&byte| is_word(byte)).count();
        let (kind, length) = match byte {
            b'-' if rest.get(1) == Some(&b'-') && rest.get(2).copied().is_some_and(is_word) => {
                let end = words(2);
                (Kind::Option(&text[2..end]), end)
            }
            b'.' if rest.starts_with(b"...") => (Kind::Ellipsis, 3),
            b'0'..=b'9' | b'.' | b'-' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.number_or_word(text),
            b'"' => self.quoted(start, b'"', "a string that does not end", "`\"`")?,
            b'`' => self.quoted(start, b'`', "a shell command that does not end", "a backquote")?,
            b'%' if rest.get(1) == Some(&b'{') => {
                let Some(length) = text.find("}%") else {
                    return Err(self.error(start..start + 2, "code that does not end").expected("`}%` after it"));
                };
                (Kind::Code(&text[2..length]), length + 2)
            }
            _ => {
                let sign = text.chars().next().unwrap_or_default();
                (Kind::Sign(sign), sign.len_utf8())
            }
        };
        self.take(length);
        Ok(self.defined(token(kind, start + length)))
    }

    /// A number, a word, or a sign, whichever is longest (as flex decides).
    fn number_or_word(&self, text: &'a str) -> (Kind<'a>, usize) {
        let bytes = text.as_bytes();
        let digits =
            |from: usize| from + bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        let sign = usize::from(bytes[0] == b'-');
        let whole = digits(sign);
        let word = bytes.iter().take_while(|&&byte| is_word(byte)).count();
        if bytes.get(whole) == Some(&b'.') && bytes.get(whole + 1).is_some_and(u8::is_ascii_digit) {
            let end = digits(whole + 1);
            return (Kind::Float(&text[..end]), end);
        }
        if bytes.starts_with(b"0x") && bytes.get(2).is_some_and(u8::is_ascii_hexdigit) {
            let end = 2 + bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            if end == word {
                return (Kind::Hex(&text[2..end]), end);
            }
        }
        if whole > sign && whole >= word {
            (Kind::Integer(&text[..whole]), whole)
        } else if word > 0 {
            (Kind::Word(&text[..word]), word)
        } else {
            (Kind::Sign(char::from(bytes[0])), 1)
        }
    }

    /// Reads the text between two `mark`s; a backslash takes the next character with it.
    fn quoted(&self, start: usize, mark: u8, title: &str, end: &str) -> Result<(Kind<'a>, usize), ParseError> {
        let bytes = self.rest();
        let mut at = 1;
        while let Some(&byte) = bytes.get(at) {
            if byte == mark {
                let inside = &self.text[start + 1..start + at];
                return Ok((if mark == b'"' { Kind::Text(inside) } else { Kind::Shell(inside) }, at + 1));
            }
            at += if byte == b'\\' { 2 } else { 1 };
        }
        Err(self.error(start..start + 1, title).expected(format!("{end} after it")))
    }

    /// A word that was defined stands for its value.
    fn defined(&self, token: Token<'a>) -> Token<'a> {
        let Kind::Word(word) = token.kind else { return token };
        let Some(value) = self.defines.get(word) else { return token };
        let inside = |mark: char| value.strip_prefix(mark).and_then(|value| value.strip_suffix(mark));
        let digits = value.strip_prefix('-').unwrap_or(value);
        let kind = if let Some(text) = inside('"') {
            Kind::Text(text)
        } else if let Some(command) = inside('`') {
            Kind::Shell(command)
        } else if let Some(hex) =
            value.strip_prefix("0x").filter(|hex| !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            Kind::Hex(hex)
        } else if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            Kind::Integer(value)
        } else {
            Kind::Word(value)
        };
        Token { kind, ..token }
    }
}

impl<'a> Lexer<'a> {
    /// The lexer at the same place with other definitions.
    pub(crate) fn with_defines<'b>(&self, defines: &'b Defines) -> Lexer<'b>
    where
        'a: 'b,
    {
        Lexer { defines, ..self.clone() }
    }
}
