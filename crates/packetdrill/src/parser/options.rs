//! TCP options.

use ackclock_packet::SackBlocks;

use super::{Foreign, Parser};
use crate::ast::{Direction, OptionSpec, Options};
use crate::error::ParseError;
use crate::lexer::{Kind, Token, is_word};

/// Bytes of options that the data offset field can express (RFC 9293 section 3.1).
const MAX_OPTIONS: usize = 40;

/// Kinds of options that have no variant of their own (IANA registry "TCP Option Kind Numbers").
mod kind {
    pub(super) const MD5: u8 = 19;
    pub(super) const FAST_OPEN: u8 = 34;
    pub(super) const ACC_ECN_0: u8 = 172;
    pub(super) const ACC_ECN_1: u8 = 174;
    pub(super) const EXPERIMENTAL: u8 = 254;
}

/// Experiment identifiers (IANA registry "TCP Experimental Option Experiment Identifiers").
mod experiment {
    pub(super) const FAST_OPEN: [u8; 2] = [0xf9, 0x89];
    pub(super) const ACC_ECN_0: [u8; 2] = [0xac, 0xc0];
    pub(super) const ACC_ECN_1: [u8; 2] = [0xac, 0xc1];
    pub(super) const TARR: [u8; 2] = [0x00, 0xac];
}

impl<'a> Parser<'a> {
    /// `<...>` or `<option, option>`.
    pub(super) fn tcp_options(&mut self, direction: Direction, foreign: &mut Foreign) -> Result<Options, ParseError> {
        let open = self.next()?;
        let token = self.peek()?;
        if token.kind == Kind::Ellipsis {
            self.next()?;
            if direction == Direction::Inbound {
                return Err(self.error(&token, "`<...>` is only for outbound packets"));
            }
            self.expect('>', "options that do not end")?;
            return Ok(Options::Any);
        }
        if let Kind::Word(digits) | Kind::Integer(digits) = token.kind {
            let mut after = self.lexer.clone();
            after.next()?;
            let raw = digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if raw && after.next()?.kind == Kind::Sign('>') {
                self.next()?;
                self.next()?;
                *foreign = Some("options in hexadecimal");
                return Ok(Options::List(Vec::new()));
            }
        }
        let mut list = Vec::new();
        loop {
            list.push(self.tcp_option()?);
            let length = options_len(&list);
            let token = self.next()?;
            let place = open.start..token.end;
            if length > MAX_OPTIONS {
                return Err(self.lexer.error(place, format!("more than {MAX_OPTIONS} bytes of options")));
            }
            match token.kind {
                Kind::Sign(',') => {}
                Kind::Sign('>') if length.is_multiple_of(4) => return Ok(Options::List(list)),
                Kind::Sign('>') => {
                    return Err(self
                        .lexer
                        .error(place, "options that do not fill words of four bytes")
                        .found(format!("{length} bytes"))
                        .help("fill up with `nop` or `eol`"));
                }
                _ => return Err(self.unexpected(&token, "options that do not end", "`,` or `>`")),
            }
        }
    }

    fn tcp_option(&mut self) -> Result<OptionSpec, ParseError> {
        let start = self.peek()?;
        let lexer = self.raw();
        lexer.next_byte()?;
        let name = lexer.run(|byte| is_word(byte) || byte == b'-');
        Ok(match name {
            "nop" => OptionSpec::Nop,
            "eol" => OptionSpec::Eol,
            "sackOK" => OptionSpec::SackPermitted,
            "mss" => OptionSpec::Mss(self.number_u16("mss")?.0),
            "wscale" => OptionSpec::WindowScale(self.number_u8("window scale")?.0),
            "sack" => OptionSpec::Sack(self.sack_blocks()?),
            "TS" => {
                let mut part = |word: &str, what| {
                    if self.accept_word(word)? {
                        return self.number_u32(what);
                    }
                    let token = self.next()?;
                    Err(self.unexpected(&token, "timestamps without their parts", "`TS val N ecr N`"))
                };
                let value = part("val", "timestamp value")?.0;
                OptionSpec::Timestamps { value, echo: part("ecr", "timestamp echo")?.0 }
            }
            "md5" if self.accept_word("valid")? => {
                OptionSpec::Other { name: "md5 valid".to_owned(), kind: kind::MD5, data: vec![0; 16] }
            }
            "md5" => {
                let (text, data) = self.hex_bytes("digest")?;
                if data.len() > 16 {
                    return Err(self.error(&start, "a digest of more than 16 bytes"));
                }
                OptionSpec::Other { name: format!("md5 {text}"), kind: kind::MD5, data }
            }
            "FO" => {
                let (text, data) = self.hex_bytes("cookie")?;
                OptionSpec::Other { name: format!("FO {text}").trim_end().to_owned(), kind: kind::FAST_OPEN, data }
            }
            "FOEXP" | "exp-FO" | "EXP-FO" => {
                let (text, data) = self.hex_bytes("cookie")?;
                let name = format!("{name} {text}").trim_end().to_owned();
                experimental(name, experiment::FAST_OPEN, &data)
            }
            "ECN" | "AccECN0" | "AccECN1" | "exp-AccECN0" | "exp-AccECN1" => self.accurate_ecn(name)?,
            "exp-tarr" => {
                let data = match self.peek()?.kind {
                    Kind::Integer(_) => vec![self.number_u8("rate")?.0],
                    _ => Vec::new(),
                };
                experimental(with_numbers(name, &data), experiment::TARR, &data)
            }
            _ => match self.other_option(name)? {
                Some(option) => option,
                None => {
                    let token = Token { end: start.start + name.len().max(1), ..start };
                    return Err(self
                        .error(&token, "an unknown TCP option")
                        .expected(
                            "`mss`, `sackOK`, `wscale`, `TS`, `sack`, `nop`, `eol`, `FO`, `FOEXP`, `md5` or `ECN`",
                        )
                        .found(if name.is_empty() { start.describe() } else { format!("`{name}`") }));
                }
            },
        })
    }

    /// Options with names of many kinds.
    fn other_option(&mut self, name: &str) -> Result<Option<OptionSpec>, ParseError> {
        Ok(match self.mptcp_option(name)? {
            Some(option) => Some(OptionSpec::Mptcp(Box::new(option))),
            None => self.generic(name)?,
        })
    }

    /// `gen-KIND bytes`, `exp-ID bytes`.
    fn generic(&mut self, name: &str) -> Result<Option<OptionSpec>, ParseError> {
        if let Some(kind) = name.strip_prefix("gen-").and_then(|kind| kind.parse().ok()) {
            let (text, data) = self.hex_bytes("option")?;
            return Ok(Some(OptionSpec::Other { name: format!("{name} {text}").trim_end().to_owned(), kind, data }));
        }
        let id = name.strip_prefix("exp-").filter(|id| id.len() == 4);
        let Some(id) = id.and_then(|id| u16::from_str_radix(id, 16).ok()) else { return Ok(None) };
        let (text, data) = self.hex_bytes("option")?;
        Ok(Some(experimental(format!("{name} {text}").trim_end().to_owned(), id.to_be_bytes(), &data)))
    }

    fn sack_blocks(&mut self) -> Result<SackBlocks, ParseError> {
        let mut blocks = SackBlocks::default();
        loop {
            let (left, token) = self.number_u32("left edge of a SACK block")?;
            self.expect(':', "a SACK block without a right edge")?;
            let right = self.number_u32("right edge of a SACK block")?.0;
            if !blocks.push(left, right) {
                return Err(self.error(&token, "more than four SACK blocks"));
            }
            let Kind::Integer(_) = self.peek()?.kind else { return Ok(blocks) };
        }
    }

    /// An even number of hexadecimal digits, or nothing.
    fn hex_bytes(&mut self, what: &str) -> Result<(&'a str, Vec<u8>), ParseError> {
        let token = self.peek()?;
        let (Kind::Word(digits) | Kind::Integer(digits)) = token.kind else { return Ok(("", Vec::new())) };
        self.next()?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(self
                .unexpected(&token, &format!("a {what} that is not a number"), "hexadecimal digits")
                .help(format!("if `{digits}` stands for one: `--define={digits}=...`")));
        }
        if digits.len() % 2 == 1 {
            return Err(self.unexpected(&token, &format!("a {what} with half a byte"), "an even number of digits"));
        }
        // Digits alone, so that every pair is one.
        let byte =
            |pair: &[u8]| pair.iter().fold(0, |sum, &digit| sum << 4 | (digit as char).to_digit(16).unwrap_or(0) as u8);
        let data: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
        if data.len() > MAX_OPTIONS {
            return Err(self.error(&token, format!("a {what} of more than {MAX_OPTIONS} bytes")));
        }
        Ok((digits, data))
    }

    /// Counters of 24 bits in the order that the name gives (RFC 9768 section 3.2.3).
    fn accurate_ecn(&mut self, name: &str) -> Result<OptionSpec, ParseError> {
        let mut text = name.to_owned();
        let mut data = Vec::new();
        let mut first = None;
        while let Kind::Word(word) = self.peek()?.kind {
            let token = self.next()?;
            let field = word.strip_prefix('e').filter(|_| word.len() == 4).unwrap_or(word);
            let order: &[&str] = match first.unwrap_or(field) {
                "e0b" => &["e0b", "ceb", "e1b"],
                _ => &["e1b", "ceb", "e0b"],
            };
            if order.get(data.len() / 3) != Some(&field) {
                return Err(self.unexpected(
                    &token,
                    "counters of AccECN out of order",
                    "`e0b ceb e1b` or `e1b ceb e0b`",
                ));
            }
            first = first.or(Some(field));
            let (value, _) = self.number(word, 0xff_ffff)?;
            data.extend_from_slice(&(value as u32).to_be_bytes()[1..]);
            text.push_str(&format!(" {word} {value}"));
        }
        let fits = match name {
            "AccECN0" | "exp-AccECN0" => first != Some("e1b"),
            "AccECN1" | "exp-AccECN1" => first != Some("e0b"),
            _ => first.is_some(),
        };
        if !fits {
            let token = self.peek()?;
            return Err(self.unexpected(&token, "counters of AccECN in the other order", "the counters of the option"));
        }
        Ok(match name {
            "exp-AccECN0" => experimental(text, experiment::ACC_ECN_0, &data),
            "exp-AccECN1" => experimental(text, experiment::ACC_ECN_1, &data),
            _ => {
                let zero = name == "AccECN0" || first == Some("e0b");
                OptionSpec::Other { name: text, kind: if zero { kind::ACC_ECN_0 } else { kind::ACC_ECN_1 }, data }
            }
        })
    }
}

fn experimental(name: String, id: [u8; 2], data: &[u8]) -> OptionSpec {
    OptionSpec::Other { name, kind: kind::EXPERIMENTAL, data: [&id[..], data].concat() }
}

fn with_numbers(name: &str, numbers: &[u8]) -> String {
    numbers.iter().fold(name.to_owned(), |name, number| format!("{name} {number}"))
}

/// Bytes of options in a header.
pub(crate) fn options_len(options: &[OptionSpec]) -> usize {
    options.iter().map(option_len).sum()
}

fn option_len(option: &OptionSpec) -> usize {
    match option {
        OptionSpec::Nop | OptionSpec::Eol => 1,
        OptionSpec::Mss(_) => 4,
        OptionSpec::WindowScale(_) => 3,
        OptionSpec::SackPermitted => 2,
        OptionSpec::Sack(blocks) => 2 + 8 * blocks.as_slice().len(),
        OptionSpec::Timestamps { .. } => 10,
        OptionSpec::Mptcp(option) => option.encoded_len(),
        OptionSpec::Other { data, .. } => 2 + data.len(),
    }
}
