//! System calls and their arguments.

use ackclock_units::Span;

use super::Parser;
use crate::ast::{Action, Call, EventTime, Expr};
use crate::error::ParseError;
use crate::lexer::{Kind, Token};

/// Deepest nesting of arguments.
const MAX_DEPTH: usize = 32;

/// Most values that `|` may join.
const MAX_TERMS: usize = 64;

impl<'a> Parser<'a> {
    /// `...end name(arguments) = result ERRNO (remark)`.
    pub(super) fn call(&mut self, time: EventTime) -> Result<Action, ParseError> {
        let until = self.end_time(time)?;
        let token = self.next()?;
        let Kind::Word(name) = token.kind else {
            return Err(self.unexpected(&token, "no call", "the name of a call"));
        };
        self.expect('(', "a call without arguments")?;
        let args = self.list(')', 0)?;
        self.expect('=', "a call without a result")?;
        let result = self.expr(0)?;
        let next = self.peek()?;
        let errno = match next.kind {
            Kind::Word(word) if !next.first => {
                self.next()?;
                Some(word.to_owned())
            }
            _ => None,
        };
        let next = self.peek()?;
        let note = if next.kind == Kind::Sign('(') {
            self.next()?;
            let Some(text) = self.raw().until(b')') else {
                return Err(self.error(&next, "a remark that does not end").expected("`)` on the same line"));
            };
            Some(text.trim().to_owned())
        } else {
            None
        };
        Ok(Action::Call(Call { until, name: name.to_owned(), args, result, errno, note }))
    }

    fn end_time(&mut self, start: EventTime) -> Result<Option<Span>, ParseError> {
        if self.peek()?.kind != Kind::Ellipsis {
            return Ok(None);
        }
        self.next()?;
        // FreeBSD's and Linux's scripts give the end without a sign also where the start is
        // relative.
        let plus = self.peek()?;
        let signed = self.accept('+')?;
        let (end, token) = self.time()?;
        match start {
            EventTime::Absolute(_) if signed => {
                Err(self.error(&plus, "an absolute start and a relative end of a call"))
            }
            EventTime::Absolute(from) | EventTime::Relative(from) if end < from => {
                Err(self.error(&token, "a call that ends before it starts"))
            }
            _ => Ok(Some(end)),
        }
    }

    /// Values up to `close`, which is taken.
    fn list(&mut self, close: char, depth: usize) -> Result<Vec<Expr>, ParseError> {
        let mut list = Vec::new();
        if self.accept(close)? {
            return Ok(list);
        }
        loop {
            list.push(self.expr(depth)?);
            let token = self.next()?;
            match token.kind {
                Kind::Sign(',') => {}
                Kind::Sign(sign) if sign == close => return Ok(list),
                _ => return Err(self.unexpected(&token, "a list that does not end", &format!("`,` or `{close}`"))),
            }
        }
    }

    fn expr(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut sum = self.value(depth)?;
        let mut terms = 1;
        while self.peek()?.kind == Kind::Sign('|') {
            let token = self.next()?;
            terms += 1;
            if terms > MAX_TERMS {
                return Err(self.error(&token, format!("more than {MAX_TERMS} values joined by `|`")));
            }
            let right = self.value(depth)?;
            sum = Expr::Or(Box::new(sum), Box::new(right));
        }
        Ok(sum)
    }

    fn value(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let token = self.next()?;
        if depth > MAX_DEPTH {
            return Err(self.error(&token, "arguments nested too deep"));
        }
        match token.kind {
            Kind::Ellipsis => Ok(Expr::Ellipsis),
            Kind::Integer(digits) => digits
                .parse()
                .map(Expr::Integer)
                .map_err(|_| self.unexpected(&token, "a number is out of range", "at most 64 bits")),
            // `0xffffffffffffffff` is -1.
            Kind::Hex(digits) => u64::from_str_radix(digits, 16)
                .map(|number| Expr::Integer(number as i64))
                .map_err(|_| self.unexpected(&token, "a number is out of range", "at most 64 bits")),
            Kind::Text(text) => self.text(&token, text),
            Kind::Word(word) => self.word(word, depth),
            Kind::Sign('[') => self.list(']', depth + 1).map(Expr::Array),
            Kind::Sign('{') => self.structure(&token, depth + 1),
            _ => Err(self.unexpected(&token, "no value", "a number, a name, a string, `...`, `[` or `{`")),
        }
    }

    /// A name, `name(arguments)` or `name = value`; the last is a structure of one part.
    fn word(&mut self, word: &str, depth: usize) -> Result<Expr, ParseError> {
        if self.accept('(')? {
            return Ok(Expr::Function(word.to_owned(), self.list(')', depth + 1)?));
        }
        if self.accept('=')? {
            return Ok(Expr::Struct(vec![(word.to_owned(), self.expr(depth + 1)?)]));
        }
        Ok(Expr::Symbol(word.to_owned()))
    }

    /// Strings in a row are one; `"start"...` is one whose end does not matter.
    fn text(&mut self, token: &Token<'a>, text: &str) -> Result<Expr, ParseError> {
        let mut all = self.unescape(token, text)?;
        loop {
            let next = self.peek()?;
            match next.kind {
                Kind::Text(more) => {
                    self.next()?;
                    all.push_str(&self.unescape(&next, more)?);
                }
                Kind::Ellipsis => {
                    self.next()?;
                    return Ok(Expr::Function("...".to_owned(), vec![Expr::Text(all)]));
                }
                _ => return Ok(Expr::Text(all)),
            }
        }
    }

    fn unescape(&self, token: &Token<'a>, text: &str) -> Result<String, ParseError> {
        let mut plain = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            if char != '\\' {
                plain.push(char);
                continue;
            }
            plain.push(match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('f') => '\x0c',
                Some('v') => '\x0b',
                Some(same @ ('\\' | '"')) => same,
                Some('x') => {
                    let hex = chars.as_str().get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                    let byte = hex.ok_or_else(|| self.error(token, "`\\x` without two hexadecimal digits"))?;
                    chars.nth(1);
                    char::from(byte)
                }
                other => {
                    let escape: String = other.into_iter().collect();
                    return Err(self.error(token, format!("`\\{escape}` means nothing in a string")));
                }
            });
        }
        Ok(plain)
    }

    /// `{name = value, ...}`. `msg_iov(2) = [...]` is two parts: `msg_iov`, and `msg_iovlen` with
    /// what is in parentheses.
    fn structure(&mut self, open: &Token<'a>, depth: usize) -> Result<Expr, ParseError> {
        let first = self.peek()?;
        let kind = match first.kind {
            Kind::Sign('(') => Some("mpls"),
            Kind::Word("flags") => {
                let mut after = self.lexer.clone();
                after.next()?;
                (after.next()?.kind != Kind::Sign('=')).then_some("gre")
            }
            _ => None,
        };
        if let Some(kind) = kind {
            let text = self.skip_to_close(open, '{', '}')?;
            return Ok(Expr::Function(kind.to_owned(), vec![Expr::Text(text)]));
        }
        let mut parts = Vec::new();
        if self.accept('}')? {
            return Ok(Expr::Struct(parts));
        }
        loop {
            let named = matches!(self.peek()?.kind, Kind::Word(_));
            match self.expr(depth)? {
                Expr::Struct(mut part) if named => parts.append(&mut part),
                Expr::Function(name, mut args) if args.len() == 1 && self.accept('=')? => {
                    let value = self.expr(depth)?;
                    parts.push((format!("{name}len"), args.remove(0)));
                    parts.push((name, value));
                }
                other => parts.push((String::new(), other)),
            }
            let token = self.next()?;
            match token.kind {
                Kind::Sign(',') => {}
                Kind::Sign('}') => return Ok(Expr::Struct(parts)),
                _ => return Err(self.unexpected(&token, "a structure that does not end", "`,` or `}`")),
            }
        }
    }
}
