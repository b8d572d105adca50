//! Filters, as conditions of classes.
//!
//! # Source
//! iproute2 7.1: `tc/f_u32.c` (selectors, and where in a header they look), `f_fw.c`, `f_flower.c`,
//! `f_matchall.c`, `f_basic.c`; Linux `sch_htb.c` (`htb_classify`).
//!
//! # Departures
//! - Headers have codepoints, lengths and ACKs here; for ports, addresses and marks stands a flow.
//! - A filter that leads to an inner class, whose filters go on, is left over.

use std::collections::BTreeMap;

use crate::source::{ImportError, Read, wrong};
use crate::tree::{Device, Filter, Parent};
use crate::units;

/// All codepoints.
pub(crate) const ALL: u64 = u64::MAX;

/// The packets of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Codepoints, a bit each.
    pub(crate) dscp: u64,
    /// The greatest length.
    pub(crate) max_length: Option<u32>,
    /// Pure ACKs.
    pub(crate) acks: bool,
    /// The packets that a flow stands for.
    pub(crate) stand_in: Option<String>,
}

impl Condition {
    /// Returns `true` if some packets are of the class by themselves.
    pub(crate) fn is_any(&self) -> bool {
        self.dscp != 0 || self.max_length.is_some() || self.acks
    }
}

/// The conditions of all classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classified {
    pub(crate) conditions: BTreeMap<u32, Condition>,
    /// The class of packets that no filter knows.
    pub(crate) default: Option<u32>,
}

/// The conditions of a filter.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Codepoints, if it asks for some.
    dscp: Option<u64>,
    max_length: Option<u32>,
    acks: bool,
    /// Ports, addresses, marks and the like.
    others: Vec<String>,
    target: Option<u32>,
    /// The codepoint includes bits of ECN.
    has_ecn: bool,
}

/// Reads the filters of a qdisc, in the order in which they are asked; `leaves` are its classes
/// without others below.
pub(crate) fn classify(
    device: &Device,
    handle: u32,
    leaves: &[u32],
    report: &mut Read,
) -> Result<Classified, ImportError> {
    let mut classified = Classified::default();
    let mut filters: Vec<&Filter> = device.filters.iter().filter(|filter| is_of(filter.parent, handle)).collect();
    filters.sort_by_key(|filter| filter.priority);
    let mut taken = 0u64;
    for filter in filters {
        let what = || format!("filter {} {}", filter.kind, filter.options.join(" "));
        let place = &filter.place;
        if let Parent::Class(parent) = filter.parent
            && parent & 0xffff != 0
        {
            report.leave(place, what(), "filters of inner classes do not exist here");
            continue;
        }
        if let Some(protocol @ ("arp" | "802.1q" | "802.1Q" | "802.1ad" | "0x0806")) = filter.protocol.as_deref() {
            report.leave(place, what(), format!("there are no packets of `{protocol}` here"));
            continue;
        }
        let asked = asked(filter)?;
        let Some(target) = asked.target else {
            report.leave(place, what(), "it leads to no class");
            continue;
        };
        // Without the number of a qdisc it is that of the parent.
        let target = if target >> 16 == 0 { target | handle } else { target };
        if !leaves.contains(&target) {
            let why = match device.classes.iter().any(|class| class.id == target) {
                true => "it leads to a class with others below it, whose filters do not exist here",
                false => "there is no such class",
            };
            report.leave(place, what(), why);
            continue;
        }
        if asked.has_ecn {
            report.leave(place, what(), "the bits of ECN in the mask are not looked at");
        }
        if !asked.others.is_empty() {
            let condition = classified.conditions.entry(target).or_default();
            let why = match &condition.stand_in {
                _ if condition.is_any() => "its class has packets by codepoint or length already",
                // Such as the same for IPv6.
                Some(before) if *before == asked.others.join("-") => continue,
                Some(_) => "the flow of another filter of its class stands for it, too",
                None => {
                    condition.stand_in = Some(asked.others.join("-"));
                    "packets have no ports, addresses or marks here: a flow stands for it"
                }
            };
            report.leave(place, what(), why);
            continue;
        }
        let is_all = asked.dscp.is_none_or(|dscp| dscp == ALL) && asked.max_length.is_none() && !asked.acks;
        if is_all {
            // Later filters are never asked.
            classified.default = Some(target);
            break;
        }
        let condition = classified.conditions.entry(target).or_default();
        match asked.dscp {
            Some(dscp) if asked.max_length.is_none() && !asked.acks => {
                if condition.max_length.is_some() || condition.acks {
                    report.leave(place, what(), "conditions of a class hold together: it has another one");
                } else {
                    condition.dscp |= dscp & !taken;
                    taken |= dscp;
                }
            }
            None if !condition.is_any() => {
                condition.max_length = asked.max_length;
                condition.acks = asked.acks;
            }
            _ => report.leave(place, what(), "conditions of a class hold together: it has another one"),
        }
    }
    // A stand-in would have to meet the other conditions, too.
    for condition in classified.conditions.values_mut().filter(|condition| condition.is_any()) {
        condition.stand_in = None;
    }
    Ok(classified)
}

fn is_of(parent: Parent, handle: u32) -> bool {
    match parent {
        Parent::Root => true,
        Parent::Class(id) => id & 0xffff_0000 == handle,
        Parent::Ingress => false,
    }
}

fn asked(filter: &Filter) -> Result<Asked, ImportError> {
    let mut asked = Asked::default();
    let place = &filter.place;
    match filter.kind.as_str() {
        "u32" => u32_filter(filter, &mut asked)?,
        "fw" => {
            let mark = filter.handle.as_deref().unwrap_or("any");
            asked.others.push(format!("mark-{}", mark.split('/').next().unwrap_or(mark)));
        }
        "matchall" => {}
        "flower" => flower(filter, &mut asked)?,
        "basic" if !filter.options.iter().any(|word| word == "match") => {}
        other => asked.others.push(if other.is_empty() { "filter".to_owned() } else { other.to_owned() }),
    }
    if let Some(at) = filter.options.iter().position(|word| word == "flowid" || word == "classid") {
        let text = filter.options.get(at + 1).map_or("", String::as_str);
        asked.target = Some(units::class_id(text).map_err(|expected| wrong(place, "flowid", text, expected))?);
    }
    Ok(asked)
}

/// The codepoints of a TOS byte under a mask.
fn codepoints(value: u32, mask: u32) -> u64 {
    let fits = |dscp: &u32| (dscp << 2) & mask & 0xfc == value & mask & 0xfc;
    (0..64).filter(fits).fold(0, |all, dscp| all | 1 << dscp)
}

/// Reads the selectors of `u32`: each to a word of a header at a multiple of four bytes.
fn u32_filter(filter: &Filter, asked: &mut Asked) -> Result<(), ImportError> {
    let words: Vec<&str> = filter.options.iter().map(String::as_str).collect();
    let place = &filter.place;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if *word != "match" {
            if ["police", "action"].contains(word) {
                break;
            }
            continue;
        }
        let rest = words.get(at..).unwrap_or_default();
        let expected = "a selector, such as ip dsfield 0xb8 0xfc, ip dport 80 0xffff, or u32 0 0";
        let wrong = || {
            ImportError::at(
                place,
                format!("`match {}`", rest.iter().take(4).copied().collect::<Vec<_>>().join(" ")),
                expected,
            )
        };
        let number = |text: Option<&&str>, base: u32| {
            text.and_then(|text| units::unsigned(text, base).ok()).map(|number| number as u32).ok_or_else(wrong)
        };
        let (width, offset, name, taken) = match rest {
            ["u32", ..] => (4, 0, None, 1),
            ["u16", ..] => (2, 0, None, 1),
            ["u8", ..] => (1, 0, None, 1),
            ["ip", "tos" | "dsfield" | "precedence", ..] => (1, 1, None, 2),
            ["ip", "ihl", ..] => (1, 0, None, 2),
            ["ip", "protocol", ..] => (1, 9, Some("protocol"), 2),
            ["ip" | "ip6", "icmp_type" | "icmp_code", ..] => (1, 20, Some("icmp"), 2),
            ["ip" | "ip6", "dport", ..] | ["tcp" | "udp", "dst", ..] => (2, 22, Some("dport"), 2),
            ["ip" | "ip6", "sport", ..] | ["tcp" | "udp", "src", ..] => (2, 20, Some("sport"), 2),
            ["ip6", "priority", ..] => {
                take_tos(asked, number(rest.get(2), 0)?, number(rest.get(3), 16)?);
                at += 4;
                continue;
            }
            ["ip6", "protocol", ..] => (1, 6, Some("protocol"), 2),
            ["ip6", "flowlabel", ..] => (4, 0, Some("flowlabel"), 2),
            ["mark", value, _mask, ..] => {
                asked.others.push(format!("mark-{value}"));
                at += 3;
                continue;
            }
            ["ip" | "ip6" | "ether", "src" | "dst", address, ..] => {
                asked.others.push(format!("{}-{address}", rest[1]));
                at += 3;
                at += skip_at(&words, at);
                continue;
            }
            ["ip" | "ip6", flag @ ("nofrag" | "firstfrag" | "df" | "mf"), ..] => {
                asked.others.push((*flag).to_owned());
                at += 2;
                continue;
            }
            _ => return Err(wrong()),
        };
        let value = number(rest.get(taken), 0)?;
        let mask = number(rest.get(taken + 1), 16)?;
        at += taken + 2;
        let given = words.get(at).filter(|word| **word == "at").and_then(|_| words.get(at + 1)).copied();
        at += skip_at(&words, at);
        if mask == 0 {
            // It fits everything.
            continue;
        }
        if let Some(name) = name {
            let label = match (name, value & mask) {
                // Pure ACKs are TCP, too: with the flags, this is no condition of its own.
                ("protocol", 6) => continue,
                (name, value) => format!("{name}-{value}"),
            };
            asked.others.push(label);
            continue;
        }
        let offset = match given {
            Some(text) => match text.strip_prefix("nexthdr+") {
                // The header of IPv4 without options has 20 bytes.
                Some(behind) => 20 + units::signed(behind).map_err(|_| wrong())?,
                None => units::signed(text).map_err(|_| wrong())?,
            },
            None => offset,
        };
        take_word(asked, offset, width, value, mask);
    }
    Ok(())
}

/// The words of `at OFFSET`, if they are next.
fn skip_at(words: &[&str], at: usize) -> usize {
    if words.get(at) == Some(&"at") { 2 } else { 0 }
}

/// Takes a condition on a TOS byte.
fn take_tos(asked: &mut Asked, value: u32, mask: u32) {
    asked.has_ecn |= mask & 3 != 0;
    let fits = codepoints(value, mask);
    asked.dscp = Some(asked.dscp.unwrap_or(ALL) & fits);
}

/// Takes a condition on some bytes of a header of IPv4.
fn take_word(asked: &mut Asked, offset: i32, width: i32, value: u32, mask: u32) {
    let value = value & mask;
    // The bytes within the word at a multiple of four (`pack_key8`, `pack_key16`).
    let shift = 8 * (4 - width - offset.rem_euclid(4)).clamp(0, 3) as u32;
    let (start, value, mask) = (offset - offset.rem_euclid(4), value << shift, mask << shift);
    match start {
        // Version and length of the header, which has no options here.
        0 if mask & 0x00ff_ffff == 0 => {}
        0 if mask & !0x00ff_0000 == 0 => take_tos(asked, value >> 16, mask >> 16),
        // No bits from some power of two on: shorter than it.
        0 if mask & 0xffff_0000 == 0 && value == 0 && (mask | (mask - 1)) == 0xffff => {
            asked.max_length = Some(mask.trailing_zeros()).map(|bits| (1 << bits) - 1);
        }
        8 if mask == 0x00ff_0000 && value == 0x0006_0000 => {}
        // The flags of a header of TCP behind one of IPv4 with 20 bytes: ACK alone.
        32 if mask == 0x00ff_0000 && value == 0x0010_0000 => asked.acks = true,
        _ => asked.others.push(format!("at-{start}-{value:x}")),
    }
    // A short packet with nothing but an ACK is a pure one.
    if asked.acks {
        asked.max_length = None;
    }
}

/// Reads the keys of `flower`.
fn flower(filter: &Filter, asked: &mut Asked) -> Result<(), ImportError> {
    let mut words = filter.options.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "classid" | "flowid" | "eth_type" | "indev" => {
                words.next();
            }
            "action" => break,
            "skip_hw" | "skip_sw" | "verbose" => {}
            "ip_tos" => {
                let text = words.next().map_or("", String::as_str);
                let (value, mask) = text.split_once('/').unwrap_or((text, "0xff"));
                let byte = |text: &str| units::unsigned(text, 16).ok().filter(|&byte| byte < 256);
                let (Some(value), Some(mask)) = (byte(value), byte(mask)) else {
                    return Err(wrong(&filter.place, word, text, "VALUE/MASK, in hexadecimal"));
                };
                take_tos(asked, value as u32, mask as u32);
            }
            "ip_proto" => {
                let protocol = words.next().map_or("", String::as_str);
                // A port says which one.
                if !filter.options.iter().any(|word| word == "dst_port" || word == "src_port") {
                    asked.others.push(format!("protocol-{protocol}"));
                }
            }
            "dst_port" => asked.others.push(format!("dport-{}", words.next().map_or("", String::as_str))),
            "src_port" => asked.others.push(format!("sport-{}", words.next().map_or("", String::as_str))),
            "dst_ip" | "src_ip" => {
                asked.others.push(format!("{}-{}", &word[..3], words.next().map_or("", String::as_str)));
            }
            other => {
                asked.others.push(other.to_owned());
                words.next();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_selects_codepoints() {
        // 0xb8 is EF (46) with the two bits of ECN behind it.
        assert_eq!(codepoints(0xb8, 0xfc), 1 << 46);
        // The precedence alone, 5: 40 to 47.
        assert_eq!(codepoints(0xa0, 0xe0), 0xff << 40);
        assert_eq!(codepoints(0, 0), ALL);
    }
}
