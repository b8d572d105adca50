//! From code to tokens, in logical lines.

use std::ops::Range;

use crate::error::ParseError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name(String),
    Int(i128),
    Float(f64),
    Text(String),
    Op(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct CodeToken {
    pub(super) kind: Kind,
    pub(super) place: Range<usize>,
    /// The line in the code, from 1.
    pub(super) line: u32,
}

/// A logical line: tokens up to the end of a line outside of brackets.
#[derive(Debug)]
pub(super) struct Line {
    /// Columns of space before it.
    pub(super) indent: usize,
    /// `true` if this is the rest of the line of `%{`, whose indentation nobody chose.
    pub(super) inline: bool,
    pub(super) tokens: Vec<CodeToken>,
}

/// Longer ones first, where one starts with another.
const OPERATORS: &[&str] = &[
    "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=", "&=",
    "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">", "=", "(", ")", "[", "]", ",", ":", ";",
];

/// The tokens of `text`, by lines.
pub(super) fn lines(text: &str) -> Result<Vec<Line>, ParseError> {
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let (mut at, mut number) = (0, 1);
    let mut line = Line { indent: 0, inline: true, tokens: Vec::new() };
    let mut open: Vec<usize> = Vec::new();
    let mut indent = 0;
    let mut fresh = true;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => {
                number += 1;
                at += 1;
                if open.is_empty() {
                    let next = Line { indent: 0, inline: false, tokens: Vec::new() };
                    let done = std::mem::replace(&mut line, next);
                    if !done.tokens.is_empty() {
                        lines.push(done);
                    }
                    indent = 0;
                    fresh = true;
                }
            }
            b' ' | b'\r' | b'\x0c' => {
                indent += 1;
                at += 1;
            }
            b'\t' => {
                // Python's rule: up to the next multiple of eight.
                indent = (indent / 8 + 1) * 8;
                at += 1;
            }
            b'#' => at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at),
            b'\\' => {
                let space = bytes[at + 1..].iter().take_while(|byte| b" \t\r".contains(byte)).count();
                match bytes.get(at + 1 + space) {
                    Some(b'\n') => number += 1,
                    // The end of the code does as well: the next line is `}%`.
                    None => {}
                    Some(_) => return Err(ParseError::at(text, at..at + 1, "a backslash within a line")),
                }
                at = (at + 2 + space).min(bytes.len());
            }
            _ => {
                if fresh {
                    line.indent = if line.inline { 0 } else { indent };
                    fresh = false;
                }
                let (kind, end) = token(text, at)?;
                match kind {
                    Kind::Op("(" | "[") => open.push(at),
                    Kind::Op(")" | "]") if open.pop().is_none() => {
                        return Err(ParseError::at(text, at..end, "a bracket that was not opened"));
                    }
                    _ => {}
                }
                line.tokens.push(CodeToken { kind, place: at..end, line: number });
                at = end;
            }
        }
    }
    if let Some(at) = open.pop() {
        return Err(ParseError::at(text, at..at + 1, "a bracket that is not closed"));
    }
    if !line.tokens.is_empty() {
        lines.push(line);
    }
    Ok(lines)
}

fn token(text: &str, at: usize) -> Result<(Kind, usize), ParseError> {
    let rest = &text[at..];
    let bytes = rest.as_bytes();
    match bytes[0] {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
            let length = bytes.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
            Ok((Kind::Name(rest[..length].to_owned()), at + length))
        }
        b'0'..=b'9' => number(text, at),
        b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => number(text, at),
        mark @ (b'\'' | b'"') => string(text, at, mark),
        _ => match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            Some(operator) => Ok((Kind::Op(operator), at + operator.len())),
            None => {
                let char = rest.chars().next().unwrap_or_default();
                let place = at..at + char.len_utf8();
                Err(ParseError::at(text, place, "a character that code does not have")
                    .found(format!("`{}`", char.escape_debug())))
            }
        },
    }
}

fn number(text: &str, at: usize) -> Result<(Kind, usize), ParseError> {
    let bytes = &text.as_bytes()[at..];
    let mut length = 0;
    let radix = match bytes {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    while let Some(&byte) = bytes.get(length) {
        let exponent = radix == 10 && length > 0 && matches!(bytes[length - 1], b'e' | b'E');
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || (exponent && matches!(byte, b'+' | b'-')) {
            length += 1;
        } else {
            break;
        }
    }
    let digits = &text[at..at + length];
    let plain: String = digits.chars().filter(|&char| char != '_').collect();
    let kind = if radix != 10 {
        i128::from_str_radix(&plain[2..], radix).ok().map(Kind::Int)
    } else if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        plain.parse().ok().map(Kind::Int)
    } else {
        // `inf` and `nan` start with letters and do not come here.
        plain.parse().ok().map(Kind::Float)
    };
    let error =
        || ParseError::at(text, at..at + length, "a number that cannot be read").found(format!("`{digits:.40}`"));
    kind.map(|kind| (kind, at + length)).ok_or_else(error)
}

fn string(text: &str, at: usize, mark: u8) -> Result<(Kind, usize), ParseError> {
    let mut out = String::new();
    let mut chars = text[at + 1..].char_indices();
    let error =
        || ParseError::at(text, at..at + 1, "a string that does not end").expected("a quotation mark on the same line");
    while let Some((index, char)) = chars.next() {
        match char {
            '\n' => return Err(error()),
            '\\' => match chars.next().map(|(_, char)| char) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('\n') => {}
                Some(same @ ('\\' | '\'' | '"')) => out.push(same),
                Some(other) => out.extend(['\\', other]),
                None => return Err(error()),
            },
            _ if char == char::from(mark) => return Ok((Kind::Text(out), at + 1 + index + 1)),
            _ => out.push(char),
        }
    }
    Err(error())
}
