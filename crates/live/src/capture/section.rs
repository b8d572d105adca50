//! The blocks of a pcapng file other than packets.

use ackclock_sim::spec::NodeSpec;
use pcap_parser::{InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode, PcapNGOption, SectionHeaderBlock};

use super::link::CaptureLinkLayer;
use super::{APPLICATION, CHANGE, SCENARIO};

/// The most interfaces of a section: more than a capture of "any" has on a large machine.
const INTERFACES: usize = 4096;

/// A section with its interfaces.
#[derive(Debug, Default)]
pub(super) struct PcapSection {
    pub(super) big_endian: bool,
    /// ackclock wrote it.
    pub(super) own: bool,
    /// The fingerprint of the recorded scenario.
    pub(super) scenario: Option<u64>,
    pub(super) interfaces: Vec<Interface>,
    /// The changes in the last statistics block: nanoseconds since the epoch, and the texts.
    pub(super) changed: Option<(i128, Vec<String>)>,
}

/// An interface of a section.
#[derive(Debug)]
pub(super) struct Interface {
    /// `if_name`.
    pub(super) name: Option<String>,
    /// `None` for a link layer that is not read.
    pub(super) link: Option<CaptureLinkLayer>,
    pub(super) linktype: i32,
    pub(super) clock: TimestampFormat,
    /// The host with its name.
    pub(super) node: Option<usize>,
    /// Its packets so far.
    pub(super) packets: u64,
    /// `isb_starttime` and `isb_endtime`, in nanoseconds since the epoch.
    pub(super) start: Option<i128>,
    pub(super) end: Option<i128>,
    /// `isb_ifrecv`: the number of packets that it should have.
    pub(super) counted: Option<u64>,
}

/// The timestamp format of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampFormat {
    /// Units in a second.
    per_second: u128,
    /// `if_tsoffset`, in seconds.
    offset: i64,
}

impl TimestampFormat {
    pub(super) fn new(per_second: u32) -> TimestampFormat {
        TimestampFormat { per_second: u128::from(per_second), offset: 0 }
    }

    /// Converts a time in seconds and units to nanoseconds since the epoch.
    pub(super) fn seconds_and(self, seconds: u32, units: u32) -> i128 {
        i128::from(seconds) * 1_000_000_000 + self.nanos(0, units)
    }

    /// Converts a timestamp to nanoseconds since the epoch, rounded down.
    pub(super) fn nanos(self, high: u32, low: u32) -> i128 {
        let units = (u128::from(high) << 32) | u128::from(low);
        // The product is less than 2^64 times 10^9.
        (units * 1_000_000_000 / self.per_second) as i128 + i128::from(self.offset) * 1_000_000_000
    }
}

impl PcapSection {
    pub(super) fn new(block: &SectionHeaderBlock<'_>) -> Result<PcapSection, String> {
        if block.major_version != 1 {
            let (major, minor) = (block.major_version, block.minor_version);
            return Err(format!("it is pcapng version {major}.{minor}; only version 1 is supported"));
        }
        let texts = |code| block.options.iter().filter(move |option| option.code == code).filter_map(text);
        let own = texts(OptionCode::ShbUserAppl).any(|name| name.split(' ').next() == Some(APPLICATION));
        let scenario = texts(OptionCode::Comment)
            .filter_map(|comment| comment.rsplit_once(SCENARIO))
            .find_map(|(_, number)| u64::from_str_radix(number, 16).ok());
        let scenario = scenario.filter(|_| own);
        Ok(PcapSection { big_endian: block.big_endian(), own, scenario, interfaces: Vec::new(), changed: None })
    }

    pub(super) fn add(&mut self, block: &InterfaceDescriptionBlock<'_>, nodes: &[NodeSpec]) -> Result<(), String> {
        if self.interfaces.len() == INTERFACES {
            return Err(format!("it has more than {INTERFACES} interfaces"));
        }
        let find = |code| block.options.iter().find(|option| option.code == code);
        let name = find(OptionCode::IfName).and_then(text);
        let node = name.and_then(|name| {
            let known = |node: &NodeSpec| match &node.tun {
                Some(tun) => node.name == name || tun == name,
                // A capture of other tools has none of their packets.
                None => self.own && node.stack.is_some() && node.name == name,
            };
            nodes.iter().position(known)
        });
        if self.own && node.is_none() {
            let name = name.unwrap_or("without a name");
            return Err(format!("interface {name} is no host of the scenario that has a device or a stack"));
        }
        if let Some(first) = node.and_then(|_| self.interfaces.iter().position(|other| other.node == node)) {
            return Err(format!("interfaces {first} and {} are of the same host", self.interfaces.len()));
        }
        let per_second = match find(OptionCode::IfTsresol).and_then(|option| option.value().first().copied()) {
            None => 1_000_000,
            // Negative powers of 2 if the first bit is set, of 10 otherwise, down to the smallest
            // unit that fits a timestamp.
            Some(power @ 0..=19) => 10u128.pow(u32::from(power)),
            Some(power @ 0x80..=0xbf) => 1 << (power & 0x7f),
            Some(other) => return Err(format!("if_tsresol of an interface is {other:#04x}, which makes no sense")),
        };
        let offset = match find(OptionCode::IfTsoffset) {
            Some(option) => self.number(option).ok_or("if_tsoffset of an interface has not 8 bytes")? as i64,
            None => 0,
        };
        self.interfaces.push(Interface {
            name: name.map(str::to_owned),
            link: CaptureLinkLayer::new(block.linktype.0),
            linktype: block.linktype.0,
            clock: TimestampFormat { per_second, offset },
            node,
            packets: 0,
            start: None,
            end: None,
            counted: None,
        });
        Ok(())
    }

    pub(super) fn statistics(&mut self, block: &InterfaceStatisticsBlock<'_>) -> Result<(), String> {
        if !self.own {
            return Ok(());
        }
        let find = |code| block.options.iter().find(|option| option.code == code);
        let time = |code| {
            let number = self.number(find(code)?)?;
            // The upper half comes first in either byte order.
            let halves = [number as u32, (number >> 32) as u32];
            let [high, low] = if self.big_endian { [halves[1], halves[0]] } else { halves };
            Some(self.interfaces.get(block.if_id as usize)?.clock.nanos(high, low))
        };
        let mut set = (block.options.iter().filter(|option| option.code == OptionCode::Comment).map(text))
            .filter_map(|text| text.and_then(|text| text.strip_prefix(CHANGE)));
        if let (Some(first), Some(interface)) = (set.next(), self.interfaces.get(block.if_id as usize)) {
            let at = interface.clock.nanos(block.ts_high, block.ts_low);
            let set = [first].into_iter().chain(set).map(str::to_owned).collect();
            self.changed = Some((at, set));
            return Ok(());
        }
        let (start, end) = (time(OptionCode::IsbStartTime), time(OptionCode::IsbEndTime));
        let counted = find(OptionCode::IsbIfRecv).and_then(|option| self.number(option));
        let many = self.interfaces.len();
        let Some(interface) = self.interfaces.get_mut(block.if_id as usize) else {
            return Err(format!("statistics of interface {}, but there are {many}", block.if_id));
        };
        interface.start = interface.start.or(start);
        interface.end = end;
        interface.counted = counted;
        Ok(())
    }

    fn number(&self, option: &PcapNGOption<'_>) -> Option<u64> {
        let bytes = <[u8; 8]>::try_from(option.as_bytes().ok()?).ok()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// `epb_flags` of a packet (s4.3.1).
    pub(super) fn flags(&self, options: &[PcapNGOption<'_>]) -> Option<u32> {
        let flags = options.iter().take_while(|option| option.code.0 != 0).find(|option| option.code.0 == 2)?;
        let bytes = <[u8; 4]>::try_from(flags.as_bytes().ok()?).ok()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }
}

fn text<'a>(option: &'a PcapNGOption<'_>) -> Option<&'a str> {
    option.as_str().ok().map(|text| text.trim_end_matches('\0'))
}
