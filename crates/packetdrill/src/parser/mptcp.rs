//! MPTCP options, and the names of addresses.

use std::net::IpAddr;

use super::Parser;
use crate::ast::{
    AddressHmac, AddressNames, AddressSpec, ChecksumSpec, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec,
    TokenSpec,
};
use crate::error::ParseError;
use crate::format::CAPABLE_FLAGS;
use crate::lexer::Kind;

/// Addresses that one REMOVE_ADDR names at most (as many as fit into a header).
const MOST_ADDRESSES: usize = 8;

impl Parser<'_> {
    /// An MPTCP option whose name was read; `None` if it is none.
    pub(super) fn mptcp_option(&mut self, name: &str) -> Result<Option<MptcpSpec>, ParseError> {
        Ok(Some(match name {
            "mpcapable" => self.mp_capable()?,
            "mp_join_syn" => {
                let (backup, address_id) = self.backup_and_id()?;
                let token = self.token()?;
                MptcpSpec::JoinSyn { backup, address_id, token, nonce: self.rand()? }
            }
            "mp_join_syn_ack" => {
                let (backup, address_id) = self.backup_and_id()?;
                let hmac = self.sender_hmac()?;
                MptcpSpec::JoinSynAck { backup, address_id, hmac, nonce: self.rand()? }
            }
            "mp_join_ack" => MptcpSpec::JoinAck { hmac: self.sender_hmac()? },
            "dss" => MptcpSpec::Dss(self.dss()?),
            "add_address" => self.add_address()?,
            "remove_address" => self.remove_address()?,
            "mp_prio" => {
                let (backup, address_id) = self.backup_and_id()?;
                MptcpSpec::Priority { backup, address_id }
            }
            "mp_fail" => {
                self.expect_word("dsn8", "mp_fail without a data sequence number")?;
                MptcpSpec::Fail(self.count(u64::MAX)?)
            }
            "mp_fastclose" => MptcpSpec::FastClose(match self.peek()?.kind {
                Kind::Word(_) | Kind::Integer(_) | Kind::Hex(_) => Some(self.key()?),
                _ => None,
            }),
            "mp_reset" => {
                let reason = self.number_u8("reason")?.0;
                MptcpSpec::Reset { transient: self.reset_flags()?, reason }
            }
            _ => return Ok(None),
        }))
    }

    fn expect_word(&mut self, word: &str, title: &str) -> Result<(), ParseError> {
        let token = self.next()?;
        if token.kind == Kind::Word(word) {
            return Ok(());
        }
        Err(self.unexpected(&token, title, &format!("`{word}`")))
    }

    /// A decimal or hexadecimal number up to `most`.
    fn any_number(&mut self, what: &str, most: u64) -> Result<u64, ParseError> {
        let Kind::Hex(digits) = self.peek()?.kind else { return Ok(self.number(what, most)?.0) };
        let token = self.next()?;
        u64::from_str_radix(digits, 16).ok().filter(|&number| number <= most).ok_or_else(|| {
            self.unexpected(&token, &format!("{what} is out of range"), &format!("a number from 0 to {most:#x}"))
        })
    }

    /// `name=`, if it is next.
    fn accept_field(&mut self, name: &str) -> Result<bool, ParseError> {
        let is_next = self.accept_word(name)?;
        if is_next {
            self.expect('=', "a field without a value")?;
        }
        Ok(is_next)
    }

    /// A name of a variable.
    fn variable(&mut self, what: &str) -> Result<String, ParseError> {
        let token = self.next()?;
        match token.kind {
            Kind::Word(name) => Ok(name.to_owned()),
            _ => Err(self.unexpected(&token, &format!("{what} is missing"), "the name of a variable")),
        }
    }

    fn mp_capable(&mut self) -> Result<MptcpSpec, ParseError> {
        // Version 1 also where nothing is written, as in packetdrill.
        let version = u8::from(!self.accept_word("v0")?);
        if version == 1 {
            self.accept_word("v1")?;
        }
        let flags = self.capable_flags()?;
        let keys = self.capable_keys()?;
        let data_len = if let Kind::Word("mpcdatalen") = self.peek()?.kind {
            let word = self.next()?;
            if keys.len() < 2 {
                return Err(self.error(&word, "a length of data without both keys"));
            }
            Some(self.number_u16("mpcdatalen")?.0)
        } else {
            None
        };
        Ok(MptcpSpec::Capable { version, flags, keys, data_len })
    }

    /// `flags[flag_a, flag_h]`, `flags 0x81`
    fn capable_flags(&mut self) -> Result<u8, ParseError> {
        self.expect_word("flags", "mpcapable without flags")?;
        if !self.accept('[')? {
            return Ok(self.any_number("flags", 0xff)? as u8);
        }
        let mut flags = 0;
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::Word("no_flags") => {}
                Kind::Word(word) if CAPABLE_FLAGS.contains(&word) => {
                    let bit = CAPABLE_FLAGS.iter().position(|&flag| flag == word).unwrap_or(0);
                    flags |= 0x80 >> bit;
                }
                _ => return Err(self.unexpected(&token, "an unknown flag", "`flag_a` to `flag_h` or `no_flags`")),
            }
            if self.closes_list("flags that do not end")? {
                return Ok(flags);
            }
        }
    }

    /// `]` or `,`: whether it was the end.
    fn closes_list(&mut self, title: &str) -> Result<bool, ParseError> {
        let token = self.next()?;
        match token.kind {
            Kind::Sign(']') => Ok(true),
            Kind::Sign(',') => Ok(false),
            _ => Err(self.unexpected(&token, title, "`,` or `]`")),
        }
    }

    /// `nokey`, `key[a]`, `key[a=1, b]`
    fn capable_keys(&mut self) -> Result<Vec<KeySpec>, ParseError> {
        if self.accept_word("nokey")? {
            return Ok(Vec::new());
        }
        self.expect_word("key", "mpcapable that does not say which keys")?;
        self.expect('[', "keys without a bracket")?;
        let mut keys = vec![self.key()?];
        while !self.closes_list("keys that do not end")? {
            let third = self.peek()?;
            if keys.len() == 2 {
                return Err(self.error(&third, "more than two keys"));
            }
            keys.push(self.key()?);
        }
        Ok(keys)
    }

    fn key(&mut self) -> Result<KeySpec, ParseError> {
        if let Kind::Integer(_) | Kind::Hex(_) = self.peek()?.kind {
            return Ok(KeySpec::Number(self.any_number("key", u64::MAX)?));
        }
        let name = self.variable("key")?;
        if !self.accept('=')? {
            return Ok(KeySpec::Named(name));
        }
        Ok(KeySpec::Assigned(name, self.any_number("key", u64::MAX)?))
    }

    /// `backup=1 address_id=2`
    fn backup_and_id(&mut self) -> Result<(bool, Option<u8>), ParseError> {
        let backup = self.accept_field("backup")? && self.number("backup", 1)?.0 == 1;
        Ok((backup, self.address_id()?))
    }

    fn address_id(&mut self) -> Result<Option<u8>, ParseError> {
        if !self.accept_field("address_id")? || self.accept_word("auto")? {
            return Ok(None);
        }
        Ok(Some(self.number_u8("address_id")?.0))
    }

    fn rand(&mut self) -> Result<Option<u32>, ParseError> {
        Ok(if self.accept_field("rand")? { Some(self.number_u32("rand")?.0) } else { None })
    }

    /// `token=auto`, `token=N`, `token=sha256_32(a)`
    fn token(&mut self) -> Result<TokenSpec, ParseError> {
        if !self.accept_field("token")? {
            let token = self.next()?;
            return Err(self.unexpected(&token, "mp_join_syn without a token", "`token=`"));
        }
        if self.accept_word("auto")? {
            return Ok(TokenSpec::Auto);
        }
        if !self.accept_word("sha256_32")? {
            return Ok(TokenSpec::Number(self.any_number("token", u32::MAX.into())? as u32));
        }
        self.expect('(', "a function without an argument")?;
        let name = self.variable("key")?;
        self.expect(')', "an argument that does not end")?;
        Ok(TokenSpec::OfKey(name))
    }

    /// `sender_hmac=auto`, `sender_hmac=full_160_hmac(a b)`
    fn sender_hmac(&mut self) -> Result<HmacSpec, ParseError> {
        if !self.accept_field("sender_hmac")? {
            let token = self.next()?;
            return Err(self.unexpected(&token, "no proof of the keys", "`sender_hmac=`"));
        }
        let token = self.next()?;
        match token.kind {
            Kind::Word("auto") => return Ok(HmacSpec::Auto),
            Kind::Word("trunc_l64_hmac" | "full_160_hmac") => {}
            _ => {
                return Err(self.unexpected(&token, "an unknown proof", "`auto`, `trunc_l64_hmac` or `full_160_hmac`"));
            }
        }
        self.expect('(', "a function without an argument")?;
        let hmac = match self.peek()?.kind {
            Kind::Integer(_) | Kind::Hex(_) => HmacSpec::Number(self.any_number("HMAC", u64::MAX)?),
            _ => HmacSpec::OfKeys(self.variable("the sender's key")?, self.variable("the receiver's key")?),
        };
        self.expect(')', "an argument that does not end")?;
        Ok(hmac)
    }

    fn dss(&mut self) -> Result<DssSpec, ParseError> {
        let mut dss = DssSpec::default();
        while let Kind::Word(word) = self.peek()?.kind {
            let token = self.next()?;
            match word {
                "dack4" | "dack8" if dss.ack.is_none() => dss.ack = Some(self.data_number(word)?),
                "dsn4" | "dsn8" if dss.sequence.is_none() => dss.sequence = Some(self.data_number(word)?),
                "ssn" if dss.subflow_sequence.is_none() => {
                    self.expect('=', "a field without a value")?;
                    dss.subflow_sequence = Some(self.number_u32("ssn")?.0);
                }
                "dll" if dss.len.is_none() => {
                    self.expect('=', "a field without a value")?;
                    dss.len = Some(self.number_u16("dll")?.0);
                }
                "nocs" if dss.checksum == ChecksumSpec::Auto => dss.checksum = ChecksumSpec::None,
                "cksum" if dss.checksum == ChecksumSpec::Auto => {
                    self.expect('=', "a field without a value")?;
                    dss.checksum = ChecksumSpec::Number(self.any_number("cksum", 0xffff)? as u16);
                }
                "fin" => dss.fin = true,
                _ => {
                    return Err(self.unexpected(
                        &token,
                        "a field that dss does not have, or has already",
                        "`dack4`, `dack8`, `dsn4`, `dsn8`, `ssn`, `dll`, `nocs`, `cksum` or `fin`",
                    ));
                }
            }
        }
        Ok(dss)
    }

    fn data_number(&mut self, word: &str) -> Result<NumberSpec, ParseError> {
        let long = word.ends_with('8');
        let most = if long { u64::MAX } else { u32::MAX.into() };
        Ok(NumberSpec { long, count: self.count(most)? })
    }

    /// `=N`, `=trunc_r64_hmac(a) + N` or nothing.
    fn count(&mut self, most: u64) -> Result<Count, ParseError> {
        if !self.accept('=')? {
            return Ok(Count::Auto);
        }
        if !self.accept_word("trunc_r64_hmac")? {
            return Ok(Count::Relative(self.any_number("data sequence number", most)?));
        }
        self.expect('(', "a function without an argument")?;
        let name = self.variable("key")?;
        self.expect(')', "an argument that does not end")?;
        let more = if self.accept('+')? { self.any_number("what is added", u64::MAX)? } else { 0 };
        Ok(Count::OfKey(name, more))
    }

    fn add_address(&mut self) -> Result<MptcpSpec, ParseError> {
        let address_id = self.address_id()?;
        self.expect_word("addr", "add_address without an address")?;
        self.expect('[', "an address without a bracket")?;
        let name = self.variable("address")?;
        let value = if self.accept('=')? { Some(self.address_value()?) } else { None };
        self.expect(']', "an address that does not end")?;
        let address = AddressSpec { name, value };
        let port = if self.accept_field("port")? { Some(self.number_u16("port")?.0) } else { None };
        let hmac = if self.accept_word("addr_echo")? {
            AddressHmac::Echo
        } else if !self.accept_field("hmac")? {
            let token = self.next()?;
            return Err(self.unexpected(&token, "add_address without a proof", "`hmac=` or `addr_echo`"));
        } else if self.accept_word("auto")? {
            AddressHmac::Auto
        } else {
            AddressHmac::Number(self.any_number("hmac", u64::MAX)?)
        };
        Ok(MptcpSpec::AddAddress { address_id, address, port, hmac })
    }

    /// `inet_addr("198.51.100.2")`
    fn address_value(&mut self) -> Result<IpAddr, ParseError> {
        let token = self.next()?;
        let wants_v6 = match token.kind {
            Kind::Word("inet_addr") => false,
            Kind::Word("inet6_addr") => true,
            _ => return Err(self.unexpected(&token, "no address", "`inet_addr(\"...\")` or `inet6_addr(\"...\")`")),
        };
        self.expect('(', "a function without an argument")?;
        let text = self.next()?;
        let address = match text.kind {
            Kind::Text(address) => address.parse::<IpAddr>().ok().filter(|address| address.is_ipv6() == wants_v6),
            _ => None,
        };
        let address = address.ok_or_else(|| self.unexpected(&text, "no address", "an address in quotation marks"))?;
        self.expect(')', "an argument that does not end")?;
        Ok(address)
    }

    fn remove_address(&mut self) -> Result<MptcpSpec, ParseError> {
        if !self.accept_field("address_id")? {
            let token = self.next()?;
            return Err(self.unexpected(&token, "remove_address without an address", "`address_id=`"));
        }
        let open = self.expect('[', "numbers without a bracket")?;
        let mut ids = Vec::new();
        loop {
            ids.push(self.number_u8("address_id")?.0);
            if self.closes_list("numbers that do not end")? {
                break;
            }
        }
        if ids.len() > MOST_ADDRESSES {
            return Err(self.error(&open, format!("more than {MOST_ADDRESSES} addresses")));
        }
        Ok(MptcpSpec::RemoveAddress(ids))
    }

    /// `flags[flag_t]` or nothing.
    fn reset_flags(&mut self) -> Result<bool, ParseError> {
        if !self.accept_word("flags")? {
            return Ok(false);
        }
        self.expect('[', "flags without a bracket")?;
        let token = self.next()?;
        let transient = match token.kind {
            Kind::Word("flag_t") => true,
            Kind::Word("no_flags") => false,
            _ => return Err(self.unexpected(&token, "an unknown flag", "`flag_t` or `no_flags`")),
        };
        self.expect(']', "flags that do not end")?;
        Ok(transient)
    }

    /// `addr[a] > addr[b]`, either of which may be missing.
    pub(super) fn address_names(&mut self) -> Result<AddressNames, ParseError> {
        let mut names = AddressNames::default();
        let next = self.peek()?;
        if !matches!(next.kind, Kind::Word("addr") | Kind::Sign('>')) {
            return Ok(names);
        }
        names.source = self.address_name()?;
        self.expect('>', "an address that leads nowhere")?;
        names.destination = self.address_name()?;
        if names == AddressNames::default() {
            return Err(self.unexpected(&next, "neither of two addresses", "`addr[name]` on a side of `>`"));
        }
        Ok(names)
    }

    fn address_name(&mut self) -> Result<Option<String>, ParseError> {
        if !self.accept_word("addr")? {
            return Ok(None);
        }
        self.expect('[', "an address without a bracket")?;
        let name = self.variable("address")?;
        self.expect(']', "an address that does not end")?;
        Ok(Some(name))
    }
}
