//! Packets.

use ackclock_packet::Flags;
use ackclock_units::Ecn;

use super::{Foreign, Parser};
use crate::ast::{Action, Direction, EcnSpec, IcmpSpec, IpInfo, Options, PacketSpec, SeqForm, TcpSpec};
use crate::error::ParseError;
use crate::lexer::{Kind, Token, is_word};

impl<'a> Parser<'a> {
    /// A packet, from its direction on.
    pub(super) fn packet(&mut self, direction: Direction) -> Result<Action, ParseError> {
        let start = self.next()?;
        let mut foreign: Foreign = None;
        let ip = match self.peek()?.kind {
            Kind::Sign('(' | '[') => self.ip_info(direction, &mut foreign)?,
            _ => IpInfo::default(),
        };
        let next = self.peek()?;
        let other = match next.kind {
            Kind::Word("icmp") => Some("icmp"),
            Kind::Word("udp") => Some("udp"),
            Kind::Word("udplite") => Some("udplite"),
            Kind::Word("gre" | "GREv0") => Some("gre"),
            Kind::Word("mpls") => Some("mpls"),
            Kind::Word("ipv4") => Some("ipv4"),
            Kind::Word("ipv6") => Some("ipv6"),
            Kind::Word("sctp") => Some("sctp"),
            _ => None,
        };
        match other {
            Some("icmp") => {
                let icmp = self.icmp()?;
                if let Some(icmp) = icmp.filter(|_| direction == Direction::Inbound) {
                    return Ok(Action::Packet(Box::new(PacketSpec::Icmp(icmp))));
                }
            }
            Some("udp" | "udplite") => self.udp()?,
            Some(_) => self.rest_of_line()?,
            None => {
                if self.accept_word("encap")? {
                    self.psp(&mut foreign)?;
                }
                let tcp = self.tcp(direction, ip, &mut foreign)?;
                if foreign.is_none() {
                    return Ok(Action::Packet(Box::new(PacketSpec::Tcp(tcp))));
                }
            }
        }
        // An encapsulation says more than what is unusual within it.
        let kind = other.or(foreign).unwrap_or("packet");
        let text = self.lexer.text[start.start..self.lexer.offset()].trim_end().to_owned();
        Ok(Action::Packet(Box::new(PacketSpec::Unsupported { direction, kind, text })))
    }

    /// `icmp type [code] [mtu N] [id N] [[what it quotes]]`; `None` if it is about something else
    /// than a segment.
    fn icmp(&mut self) -> Result<Option<IcmpSpec>, ParseError> {
        self.next()?;
        let token = self.next()?;
        let Kind::Word(kind) = token.kind else {
            return Err(self.unexpected(&token, "an ICMP message without a type", "its type"));
        };
        let mut icmp = IcmpSpec { kind: kind.to_owned(), code: None, mtu: None, quoted: None };
        let mut is_error = true;
        while let Kind::Word(word) = self.peek()?.kind {
            let token = self.next()?;
            match word {
                "mtu" if icmp.mtu.is_none() => icmp.mtu = Some(self.number_u32(word)?.0),
                "id" => {
                    self.number_u32(word)?;
                    is_error = false;
                }
                _ if icmp.code.is_none() && icmp.mtu.is_none() => icmp.code = Some(word.to_owned()),
                _ => return Err(self.unexpected(&token, "more than a type and a code", "`mtu`, `id` or `[`")),
            }
        }
        let open = self.peek()?;
        if open.kind == Kind::Sign('[') {
            self.next()?;
            if let Kind::Integer(_) = self.peek()?.kind {
                let (seq, payload, ..) = self.sequence()?;
                icmp.quoted = Some((seq, payload));
                if self.accept('/')? {
                    self.encapsulation()?;
                    is_error = false;
                }
                self.expect(']', "a bracket that is not closed")?;
            } else {
                self.skip_to_close(&open, '[', ']')?;
                is_error = false;
            }
        }
        Ok(is_error.then_some(icmp))
    }

    /// `udp [sport > dport] (length)`, `udplite ... (length, coverage)`.
    fn udp(&mut self) -> Result<(), ParseError> {
        self.next()?;
        self.ports()?;
        self.expect('(', "no length")?;
        self.number_u16("length")?;
        if self.accept(',')? {
            self.number_u16("checksum coverage")?;
        }
        self.expect(')', "a length that does not end")?;
        Ok(())
    }

    /// `encap psp spi N`.
    fn psp(&mut self, foreign: &mut Foreign) -> Result<(), ParseError> {
        for word in ["psp", "spi"] {
            let token = self.next()?;
            if token.kind != Kind::Word(word) {
                return Err(self.unexpected(&token, "an unknown encapsulation", &format!("`{word}`")));
            }
        }
        let token = self.next()?;
        let (Kind::Integer(_) | Kind::Hex(_)) = token.kind else {
            return Err(self.unexpected(&token, "no security parameter index", "a number"));
        };
        *foreign = Some("psp");
        Ok(())
    }

    /// Goes on to the end of the line, and further while brackets are open or the line ends with a
    /// colon.
    fn rest_of_line(&mut self) -> Result<(), ParseError> {
        let mut colon = false;
        loop {
            let token = self.peek()?;
            if token.kind == Kind::End || (token.first && !colon) {
                return Ok(());
            }
            self.next()?;
            colon = token.kind == Kind::Sign(':');
            match token.kind {
                Kind::Sign('(') => drop(self.skip_to_close(&token, '(', ')')?),
                Kind::Sign('[') => drop(self.skip_to_close(&token, '[', ']')?),
                Kind::Sign('{') => drop(self.skip_to_close(&token, '{', '}')?),
                _ => {}
            }
        }
    }

    /// Goes past the bracket that closes `open`, which was taken; gives the text between.
    pub(super) fn skip_to_close(&mut self, open: &Token<'a>, left: char, right: char) -> Result<String, ParseError> {
        let mut depth = 1;
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::Sign(sign) if sign == left => depth += 1,
                Kind::Sign(sign) if sign == right => depth -= 1,
                Kind::End => {
                    return Err(self.unexpected(open, "a bracket that is not closed", &format!("`{right}` after it")));
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(self.lexer.text[open.end..token.start].trim().to_owned());
            }
        }
    }

    /// Reads the brackets before the flags.
    fn ip_info(&mut self, direction: Direction, foreign: &mut Foreign) -> Result<IpInfo, ParseError> {
        let close = if self.next()?.kind == Kind::Sign('(') { ')' } else { ']' };
        let mut ip = IpInfo::default();
        loop {
            let token = self.next()?;
            let Kind::Word(word) = token.kind else {
                return Err(self.unexpected(&token, "nothing known of the IP header", IP_WORDS));
            };
            let twice = |is: bool| {
                if is { Err(self.error(&token, format!("`{word}` contradicts the preceding words"))) } else { Ok(()) }
            };
            match word {
                "tos" | "class" => {
                    twice(ip.tos.is_some() || ip.ecn.is_some())?;
                    ip.tos = Some(self.hex(word, 0xff)? as u8);
                }
                "flowlabel" => {
                    twice(ip.flow_label.is_some())?;
                    // 20 bits (RFC 8200 section 3).
                    ip.flow_label = Some(self.hex(word, 0xf_ffff)?);
                }
                "ttl" | "hlim" => {
                    twice(ip.ttl.is_some())?;
                    ip.ttl = Some(self.number_u8(word)?.0);
                }
                "dscp" => {
                    self.next()?;
                    // Six bits of the byte, of which the rest may be anything: no field says so.
                    *foreign = Some("dscp");
                }
                _ => {
                    twice(ip.tos.is_some() || ip.ecn.is_some())?;
                    let token = if word == "ecn" { self.next()? } else { token };
                    ip.ecn = Some(self.codepoint(&token, direction)?);
                }
            }
            let token = self.next()?;
            match token.kind {
                Kind::Sign(',') => {}
                Kind::Sign(sign) if sign == close => return Ok(ip),
                _ => return Err(self.unexpected(&token, "a bracket that is not closed", &format!("`,` or `{close}`"))),
            }
        }
    }

    fn codepoint(&self, token: &Token<'a>, direction: Direction) -> Result<EcnSpec, ParseError> {
        match token.kind {
            Kind::Word("noecn") => Ok(EcnSpec::Is(Ecn::NotEct)),
            Kind::Word("ect0") => Ok(EcnSpec::Is(Ecn::Ect0)),
            Kind::Word("ect1") => Ok(EcnSpec::Is(Ecn::Ect1)),
            Kind::Word("ce") => Ok(EcnSpec::Is(Ecn::Ce)),
            Kind::Word("ect01") if direction == Direction::Outbound => Ok(EcnSpec::Ect01),
            Kind::Word("ect01") => Err(self.error(token, "`ect01` is only for outbound packets")),
            _ => Err(self.unexpected(token, "nothing known of the IP header", IP_WORDS)),
        }
    }

    /// A number with `0x`, up to `most`; a decimal one is taken too.
    fn hex(&mut self, what: &str, most: u32) -> Result<u32, ParseError> {
        let token = self.next()?;
        let number = match token.kind {
            Kind::Hex(digits) => u32::from_str_radix(digits, 16).ok(),
            Kind::Integer(digits) => digits.parse().ok(),
            _ => return Err(self.unexpected(&token, &format!("{what} is missing"), "a number such as 0x10")),
        };
        number.filter(|&number| number <= most).ok_or_else(|| {
            self.unexpected(&token, &format!("{what} is out of range"), &format!("a number from 0 to {most:#x}"))
        })
    }

    /// `sport > dport`.
    fn ports(&mut self) -> Result<Option<(u16, u16)>, ParseError> {
        let Kind::Integer(_) = self.peek()?.kind else { return Ok(None) };
        let (source, token) = self.number_u16("source port")?;
        if !self.accept('>')? {
            return Err(self.unexpected(&token, "a packet without flags", "flags such as `S.`, or ports `1 > 2`"));
        }
        Ok(Some((source, self.number_u16("destination port")?.0)))
    }

    /// A TCP segment, from its ports on.
    fn tcp(&mut self, direction: Direction, ip: IpInfo, foreign: &mut Foreign) -> Result<TcpSpec, ParseError> {
        let addresses = self.address_names()?;
        let ports = self.ports()?;
        let (flags, ace) = self.flags()?;
        let (seq, payload, seq_form, place) = self.sequence()?;
        if seq_form == SeqForm::Any && direction == Direction::Inbound {
            return Err(self.lexer.error(place, "`...` as a sequence number is only for outbound packets"));
        }
        let ack = if self.accept_word("ack")? { Some(self.number_u32("acknowledgment number")?.0) } else { None };
        let window = if self.accept_word("win")? { Some(self.number_u16("window")?.0) } else { None };
        let urgent = if self.accept_word("urg")? { Some(self.number_u16("urgent pointer")?.0) } else { None };
        if window.is_none() && direction == Direction::Inbound {
            let token = self.peek()?;
            return Err(self.unexpected(&token, "an inbound packet without a window", "`win`"));
        }
        let options = if self.peek()?.kind == Kind::Sign('<') {
            self.tcp_options(direction, foreign)?
        } else {
            Options::List(Vec::new())
        };
        let open = self.peek()?;
        if open.kind == Kind::Sign('[') {
            self.next()?;
            self.skip_to_close(&open, '[', ']')?;
            *foreign = Some("payload of a reset");
        }
        if self.accept('/')? {
            self.encapsulation()?;
            *foreign = Some("udp encapsulation");
        }
        Ok(TcpSpec {
            direction,
            ip,
            ports,
            addresses,
            flags,
            ace,
            seq,
            seq_form,
            payload,
            ack,
            window,
            urgent,
            options,
        })
    }

    /// `/udp(sport > dport)`, after the slash.
    fn encapsulation(&mut self) -> Result<(), ParseError> {
        if !self.accept_word("udp")? {
            let token = self.next()?;
            return Err(self.unexpected(&token, "an unknown encapsulation", "`udp`"));
        }
        self.expect('(', "an encapsulation without ports")?;
        self.number_u16("source port")?;
        self.expect('>', "an encapsulation without ports")?;
        self.number_u16("destination port")?;
        self.expect(')', "an encapsulation that does not end")?;
        Ok(())
    }

    /// Control bits, and the AccECN counter where one is written.
    fn flags(&mut self) -> Result<(Flags, Option<u8>), ParseError> {
        let lexer = self.raw();
        lexer.next_byte()?;
        let start = lexer.offset();
        let rest = &lexer.text[start..];
        let length = rest.bytes().take_while(|&byte| is_word(byte) || byte == b'.').count();
        let run = &rest[..length];
        let run = &run[..run.find("...").unwrap_or(length)];
        if run.is_empty() {
            let token = self.next()?;
            if token.kind == Kind::Sign('-') {
                return Ok((Flags::NONE, None));
            }
            return Err(self.unexpected(&token, "a packet without flags", "flags such as `S`, `.`, `P.` or `-`"));
        }
        lexer.take(run.len());
        let mut flags = Flags::NONE;
        let mut ae = false;
        let mut ace = None;
        for (index, letter) in run.char_indices() {
            let place = start + index..start + index + 1;
            let flag = match letter {
                'F' => Flags::FIN,
                'S' => Flags::SYN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                '.' => Flags::ACK,
                'U' => Flags::URG,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                'A' if ae => return Err(self.lexer.error(place, "a flag written twice")),
                'A' => {
                    ae = true;
                    continue;
                }
                '0'..='7' if ace.is_none() => {
                    ace = Some(letter as u8 - b'0');
                    continue;
                }
                '0'..='7' => return Err(self.lexer.error(place, "a second AccECN counter")),
                _ => {
                    return Err(self
                        .lexer
                        .error(place, "an unknown flag")
                        .expected("`S F R P . E W U`, or `-` for none")
                        .found(format!("`{letter}`")));
                }
            };
            if flags.contains(flag) {
                return Err(self.lexer.error(place, "a flag written twice"));
            }
            flags |= flag;
        }
        let ecn = ae || flags.contains(Flags::ECE) || flags.contains(Flags::CWR);
        if ace.is_some() && ecn {
            let place = start..start + run.len();
            return Err(self.lexer.error(place, "an AccECN counter together with the bits that form it"));
        }
        if ae {
            // The counter is AE, CWR, ECE, from the highest bit (RFC 9768 section 3.2.2).
            let bits = flags.bits();
            let (ece, cwr) = (flags.contains(Flags::ECE), flags.contains(Flags::CWR));
            ace = Some(4 | u8::from(cwr) << 1 | u8::from(ece));
            flags = Flags::from_bits(bits & !(Flags::ECE | Flags::CWR).bits());
        }
        Ok((flags, ace))
    }

    /// `first:end(length)`, `first:end(length)!`, `...(length)`; with the place of all of it.
    fn sequence(&mut self) -> Result<(u32, u32, SeqForm, std::ops::Range<usize>), ParseError> {
        let token = self.peek()?;
        if token.kind == Kind::Ellipsis {
            self.next()?;
            self.expect('(', "no length")?;
            let length = self.number_u16("payload length")?.0;
            let end = self.expect(')', "a length that does not end")?.end;
            return Ok((0, u32::from(length), SeqForm::Any, token.start..end));
        }
        let (first, start) = self.number_u32("sequence number")?;
        self.expect(':', "a sequence number alone")?;
        let (end, _) = self.number_u32("sequence number after the last byte")?;
        self.expect('(', "no length")?;
        let (length, _) = self.number_u16("payload length")?;
        let close = self.expect(')', "a length that does not end")?;
        let place = start.start..close.end;
        if first.wrapping_add(u32::from(length)) != end {
            return Err(self
                .lexer
                .error(place, "sequence numbers and length contradict each other")
                .expected(format!("a length of {}", end.wrapping_sub(first)))
                .found(format!("{length}")));
        }
        let form = if self.accept('!')? { SeqForm::Absolute } else { SeqForm::Relative };
        Ok((first, u32::from(length), form, place))
    }
}

const IP_WORDS: &str = "`noecn`, `ect0`, `ect1`, `ect01`, `ce`, `tos`, `ttl`, `class`, `hlim` or `flowlabel`";
