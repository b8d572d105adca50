//! From text to a [`Script`]: option lines, times, and what happens at them.
//!
//! # Source
//! `lexer.l` and `parser.y` of google/packetdrill, and what nplab/packetdrill adds to them:
//! `#ifdef`, the words `class`, `hlim`, `dscp` and `ecn`, `...(0)` and `0:0(0)!` as sequence
//! numbers, `/udp(1 > 2)`.
//!
//! # Departures
//! - A shell command without a time may stand anywhere, not only before the first event and after
//!   the last.
//! - Flags may stand in any order; a flag written twice is an error.
//! - Numbers that do not fit and options that fit no header are errors at their place.

use ackclock_units::Span;

use crate::ast::{Action, Direction, Event, EventTime, LeftOut, OptionLine, PacketSpec, Script};
use crate::error::ParseError;
use crate::expr::Program;
pub use crate::lexer::Defines;
use crate::lexer::{Kind, Lexer, Token, is_word};
use crate::settings::Settings;

mod call;
mod mptcp;
mod options;
mod packet;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use options::options_len;

/// Reads a script. Code between `%{` and `}%` is checked as well, but stays text:
/// [`Program::parse`] reads it again.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    parse_with(text, &Defines::new())
}

/// Reads a script with definitions from outside, which win over the script's own.
pub fn parse_with(text: &str, defines: &Defines) -> Result<Script, ParseError> {
    parse_for(text, defines, &Settings::new())
}

/// The word that is defined where the host is FreeBSD: the scripts for it ask for it.
const FREEBSD: &str = "FreeBSD";

/// Reads a script for a host with these settings: `FreeBSD` is defined with profiles of FreeBSD.
pub fn parse_for(text: &str, defines: &Defines, settings: &Settings) -> Result<Script, ParseError> {
    let mut parser = Parser::new(Lexer::new(text, defines));
    let options = parser.options()?;
    let mut all: Defines = options
        .iter()
        .filter(|option| option.name == "define")
        .filter_map(|option| option.value.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let own = options.iter().rev().find(|option| option.name == "profile").map(|option| option.value.as_str());
    if settings.profile().or(own).is_some_and(|name| name.starts_with("freebsd")) {
        all.entry(FREEBSD.to_owned()).or_insert_with(|| "1".to_owned());
    }
    all.extend(defines.iter().map(|(name, value)| (name.clone(), value.clone())));
    let mut parser = Parser::new(parser.lexer.with_defines(&all));
    let events = parser.events()?;
    // At the end, what was passed last stands before the token ahead.
    let lexer = parser.ahead.as_ref().map_or(&parser.lexer, |(_, after)| after);
    let left_out = lexer.left_out().map(|(line, name)| LeftOut { line, name: name.to_owned() }).collect();
    Ok(Script { options, events, left_out })
}

/// The kind that a packet is reported as, if it is only kept to be reported.
type Foreign = Option<&'static str>;

/// Reads tokens with one of them ahead.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token, and the lexer after it.
    ahead: Option<(Token<'a>, Lexer<'a>)>,
}

impl<'a> Parser<'a> {
    fn new(lexer: Lexer<'a>) -> Parser<'a> {
        Parser { lexer, ahead: None }
    }

    /// The next token, which stays.
    fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        if let Some((token, _)) = &self.ahead {
            return Ok(*token);
        }
        let mut after = self.lexer.clone();
        let token = after.next()?;
        self.ahead = Some((token, after));
        Ok(token)
    }

    fn next(&mut self) -> Result<Token<'a>, ParseError> {
        match self.ahead.take() {
            Some((token, after)) => {
                self.lexer = after;
                Ok(token)
            }
            None => self.lexer.next(),
        }
    }

    /// The lexer before the next token, to read the text itself.
    fn raw(&mut self) -> &mut Lexer<'a> {
        self.ahead = None;
        &mut self.lexer
    }

    fn error(&self, token: &Token<'a>, title: impl Into<String>) -> ParseError {
        self.lexer.error(token.place(), title)
    }

    /// An error at a token that cannot be here. One on a later line says nothing: what is missing
    /// is missing before it.
    fn unexpected(&self, token: &Token<'a>, title: &str, expected: &str) -> ParseError {
        if token.first && token.previous > 0 {
            let place = token.previous..token.previous;
            let found = if token.kind == Kind::End { "the end of the file" } else { "the end of the line" };
            return self.lexer.error(place, title).expected(expected).found(found);
        }
        self.error(token, title).expected(expected).found(token.describe())
    }

    /// Takes `sign` if it is next.
    fn accept(&mut self, sign: char) -> Result<bool, ParseError> {
        let is = self.peek()?.kind == Kind::Sign(sign);
        if is {
            self.next()?;
        }
        Ok(is)
    }

    /// Takes `word` if it is next.
    fn accept_word(&mut self, word: &str) -> Result<bool, ParseError> {
        let is = self.peek()?.kind == Kind::Word(word);
        if is {
            self.next()?;
        }
        Ok(is)
    }

    fn expect(&mut self, sign: char, title: &str) -> Result<Token<'a>, ParseError> {
        let token = self.next()?;
        if token.kind == Kind::Sign(sign) {
            return Ok(token);
        }
        Err(self.unexpected(&token, title, &format!("`{sign}`")))
    }

    /// A decimal number from 0 to `most`.
    fn number(&mut self, what: &str, most: u64) -> Result<(u64, Token<'a>), ParseError> {
        let token = self.next()?;
        let Kind::Integer(digits) = token.kind else {
            let error = self.unexpected(&token, &format!("{what} is missing"), "a number");
            return Err(match token.kind {
                Kind::Word(word) if word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') => {
                    error.help(format!("if `{word}` stands for a number: `--define={word}=...`"))
                }
                _ => error,
            });
        };
        match digits.parse::<u64>() {
            Ok(number) if number <= most => Ok((number, token)),
            _ => {
                Err(self.unexpected(&token, &format!("{what} is out of range"), &format!("a number from 0 to {most}")))
            }
        }
    }

    fn number_u32(&mut self, what: &str) -> Result<(u32, Token<'a>), ParseError> {
        let (number, token) = self.number(what, u64::from(u32::MAX))?;
        Ok((number as u32, token))
    }

    fn number_u16(&mut self, what: &str) -> Result<(u16, Token<'a>), ParseError> {
        let (number, token) = self.number(what, u64::from(u16::MAX))?;
        Ok((number as u16, token))
    }

    fn number_u8(&mut self, what: &str) -> Result<(u8, Token<'a>), ParseError> {
        let (number, token) = self.number(what, u64::from(u8::MAX))?;
        Ok((number as u8, token))
    }

    /// The lines `--name=value` at the top.
    fn options(&mut self) -> Result<Vec<OptionLine>, ParseError> {
        let mut options = Vec::new();
        while let Kind::Option(name) = self.peek()?.kind {
            let token = self.next()?;
            let value = if self.accept('=')? { self.option_value()? } else { String::new() };
            options.push(OptionLine { line: token.line, name: name.to_owned(), value });
        }
        Ok(options)
    }

    fn option_value(&mut self) -> Result<String, ParseError> {
        let next = self.peek()?;
        if let Kind::Text(text) = next.kind {
            self.next()?;
            return Ok(text.to_owned());
        }
        let lexer = self.raw();
        let from = lexer.next_byte()?.map_or(lexer.text.len(), |_| lexer.offset());
        loop {
            lexer.run(|byte| !byte.is_ascii_whitespace() && !b"\"`/".contains(&byte));
            let rest = &lexer.text.as_bytes()[lexer.offset()..];
            match rest {
                [b'"' | b'`', ..] => {
                    lexer.next()?;
                }
                [b'/', b'/' | b'*', ..] | [] => break,
                [b'/', ..] => {
                    lexer.run(|byte| byte == b'/');
                }
                [byte, ..] if byte.is_ascii_whitespace() => break,
                _ => {
                    let at = lexer.offset();
                    return Err(lexer.error(at..at + 1, "a character that no option has"));
                }
            }
        }
        let value = &lexer.text[from..lexer.offset()];
        if value.is_empty() {
            return Err(self.unexpected(&next, "an option without its value", "a value after `=`"));
        }
        Ok(value.to_owned())
    }

    fn events(&mut self) -> Result<Vec<Event>, ParseError> {
        let mut events = Vec::new();
        loop {
            let token = self.peek()?;
            match token.kind {
                Kind::End => return Ok(events),
                Kind::Shell(command) => {
                    self.next()?;
                    let time = EventTime::Relative(Span::ZERO);
                    events.push(Event { line: token.line, time, action: Action::Shell(command.to_owned()) });
                }
                Kind::Option(_) => {
                    return Err(self.error(&token, "an option after the first event").help("options stand at the top"));
                }
                _ => events.push(self.event()?),
            }
        }
    }

    fn event(&mut self) -> Result<Event, ParseError> {
        let start = self.peek()?;
        let time = self.event_time()?;
        let token = self.peek()?;
        let action = match token.kind {
            Kind::Sign('<') => self.packet(Direction::Inbound)?,
            Kind::Sign('>') => self.packet(Direction::Outbound)?,
            Kind::Shell(command) => {
                self.next()?;
                Action::Shell(command.to_owned())
            }
            Kind::Code(code) => {
                self.next()?;
                Program::parse(code, token.line).map_err(|error| self.within(&token, error))?;
                Action::Code(code.to_owned())
            }
            Kind::Ellipsis | Kind::Word(_) => self.call(time)?,
            _ => {
                return Err(self.unexpected(
                    &token,
                    "nothing happens at this time",
                    "a packet (`<` or `>`), a call, a shell command or code",
                ));
            }
        };
        let outbound = match &action {
            Action::Packet(packet) => match packet.as_ref() {
                PacketSpec::Tcp(tcp) => tcp.direction == Direction::Outbound,
                PacketSpec::Icmp(_) => false,
                PacketSpec::Unsupported { direction, .. } => *direction == Direction::Outbound,
            },
            _ => false,
        };
        let vague = match time {
            EventTime::Any => Some("the time `*`"),
            EventTime::AbsoluteRange(..) | EventTime::RelativeRange(..) => Some("a range of times"),
            EventTime::Absolute(_) | EventTime::Relative(_) => None,
        };
        match vague {
            Some(what) if !outbound => Err(self.error(&start, format!("{what} is only for outbound packets"))),
            _ => Ok(Event { line: start.line, time, action }),
        }
    }

    /// An error in code, as one in the script.
    fn within(&self, token: &Token<'a>, error: ParseError) -> ParseError {
        let from = token.start + "%{".len();
        let place = from + error.place.start..from + error.place.end;
        let ParseError { title, found, expected, help, .. } = error;
        ParseError { found, expected, help, ..self.lexer.error(place, title) }
    }

    fn event_time(&mut self) -> Result<EventTime, ParseError> {
        if self.accept('*')? {
            return Ok(EventTime::Any);
        }
        let relative = self.accept('+')?;
        let (from, start) = self.time()?;
        if !self.accept('~')? {
            return Ok(if relative { EventTime::Relative(from) } else { EventTime::Absolute(from) });
        }
        let plus = self.accept('+')?;
        let (to, end) = self.time()?;
        if relative && !plus {
            return Err(self.unexpected(&end, "a range from a relative time to an absolute one", "`+` before it"));
        }
        if to < from {
            let place = start.start..end.end;
            return Err(self.lexer.error(place, "a range of times that ends before it starts"));
        }
        Ok(if plus { EventTime::RelativeRange(from, to) } else { EventTime::AbsoluteRange(from, to) })
    }

    /// Seconds.
    fn time(&mut self) -> Result<(Span, Token<'a>), ParseError> {
        let token = self.next()?;
        let (Kind::Float(text) | Kind::Integer(text)) = token.kind else {
            let error =
                self.error(&token, "no time").expected("a time such as `+0.1`, `0.1` or `*`").found(token.describe());
            return Err(match token.kind {
                Kind::Word(word) if word.bytes().all(is_word) => error.help("every event starts with its time"),
                _ => error,
            });
        };
        if text.starts_with('-') {
            return Err(self.error(&token, "a negative time"));
        }
        seconds(text).map(|time| (time, token)).ok_or_else(|| self.error(&token, "a time out of range"))
    }
}

/// Digits with a point perhaps, to whole nanoseconds; what is finer is cut off.
fn seconds(text: &str) -> Option<Span> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.checked_mul(1_000_000_000)?.checked_add(nanos).map(Span::from_nanos)
}
