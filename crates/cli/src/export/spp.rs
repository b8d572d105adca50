//! Round-trip times by synthetic packet pairs (SPP), from the captures at both ends of a flow.
//!
//! A packet towards the receiver and one back make a pair. The time between them at the sender,
//! less the time between them at the receiver, is the round trip of the path, without the time that
//! the receiver took to answer.
//!
//! # Source
//! S. Zander, G. Armitage, "Minimally-intrusive frequent round trip time measurements using
//! synthetic packet-pairs", LCN 2013; `pair.c` of CAIA's spp 0.3.6. A pair is a packet back and the
//! last one before it towards the receiver, by the receiver's clock; each packet is in one pair at
//! most. The time of a round trip is the middle of the pair at the sender.
//!
//! # Departures
//! - A packet is recognized by what routers leave alone of its headers and first bytes, not by a
//!   checksum of some fields: our packets have no identification. Of equal packets the first that
//!   was sent is taken to be the first that arrived.
//! - Times have nanoseconds; spp prints microseconds.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::Path;

use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};

use super::run::Run;
use super::sheet;

/// Size of one read, and of the longest block.
const PIECE: usize = 1 << 20;
/// `epb_flags` (pcapng, section 4.3.1): the option and its directions.
const FLAGS: u16 = 2;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A packet that both ends have seen: nanoseconds at each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Passed {
    receiver: u64,
    sender: u64,
}

/// A pair of packets: nanoseconds of its middle and of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    at: u64,
    rtt: u64,
}

/// Writes a line for each pair: seconds, and the round trip in seconds.
pub(super) fn write(run: &Run, flow: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    run.knows_flow(flow)?;
    let capture = |end: &str| match run.record(&format!("{flow}.{end}.pcapng")) {
        Some(path) => Ok(path),
        None => sheet::missing(&format!("pcap = [\"{flow}\"]"), &run.dir),
    };
    let (sender, receiver) = (capture("sender")?, capture("receiver")?);
    let (mut towards, mut back) = both(&sender, &receiver)?;
    towards.sort_unstable();
    back.sort_unstable();
    for pair in pairs(&towards, &back) {
        let seconds = |nanos: u64| (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let ((at, at_nanos), (rtt, rtt_nanos)) = (seconds(pair.at), seconds(pair.rtt));
        writeln!(out, "{at}.{at_nanos:09} {rtt}.{rtt_nanos:09}")?;
    }
    Ok(())
}

/// The pairs of packets towards the receiver and back, each in order of the receiver's clock.
pub(super) fn pairs(towards: &[Passed], back: &[Passed]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut next = 0;
    for answer in back {
        let before = towards[next..].partition_point(|packet| packet.receiver <= answer.receiver);
        let Some(packet) = before.checked_sub(1).map(|last| towards[next + last]) else {
            continue;
        };
        next += before;
        let total = answer.sender.saturating_sub(packet.sender);
        let rtt = total.saturating_sub(answer.receiver - packet.receiver);
        pairs.push(Pair { at: answer.sender - total / 2, rtt });
    }
    pairs
}

/// The packets that both captures have, towards the receiver and back.
fn both(sender: &Path, receiver: &Path) -> anyhow::Result<(Vec<Passed>, Vec<Passed>)> {
    let mut known = BTreeMap::<(bool, Box<[u8]>), VecDeque<u64>>::new();
    read(sender, |at, inbound, key| known.entry((inbound, key)).or_default().push_back(at))?;
    let (mut towards, mut back) = (Vec::new(), Vec::new());
    read(receiver, |at, inbound, key| {
        // A packet that arrives at one end has left the other.
        if let Some(sent) = known.get_mut(&(!inbound, key)).and_then(VecDeque::pop_front) {
            let passed = Passed { receiver: at, sender: sent };
            if inbound { towards.push(passed) } else { back.push(passed) }
        }
    })?;
    Ok((towards, back))
}

/// Hands on each packet of a capture: nanoseconds, whether it arrives, and what identifies it.
fn read(path: &Path, mut packet: impl FnMut(u64, bool, Box<[u8]>)) -> anyhow::Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let file = open_regular(path).with_context(cannot)?;
    let failed = |error: PcapError<&[u8]>| anyhow::anyhow!("{}: {error:?}", cannot());
    let mut reader = PcapNGReader::new(PIECE, file).map_err(failed)?;
    loop {
        match reader.next() {
            Ok((size, block)) => {
                if let PcapBlockOwned::NG(Block::EnhancedPacket(block)) = &block {
                    let flags = block.options.iter().find(|option| option.code.0 == FLAGS);
                    let bytes = flags.and_then(|option| <[u8; 4]>::try_from(option.as_bytes().ok()?).ok());
                    let inbound = match bytes.map(u32::from_le_bytes) {
                        Some(INBOUND) => true,
                        Some(OUTBOUND) => false,
                        _ => bail!("{}: a packet has no direction; expected a capture of ackclock", cannot()),
                    };
                    let at = (u64::from(block.ts_high) << 32) | u64::from(block.ts_low);
                    packet(at, inbound, identity(block.packet_data()));
                }
                reader.consume(size);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The part of a packet that is the same at both ends: all but ECN and DSCP, TTL and the checksum
/// of IPv4.
fn identity(packet: &[u8]) -> Box<[u8]> {
    let mut key = Box::<[u8]>::from(packet);
    for place in [1, 8, 10, 11] {
        if let Some(byte) = key.get_mut(place) {
            *byte = 0;
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(sender: u64, receiver: u64) -> Passed {
        Passed { receiver, sender }
    }

    #[test]
    fn a_pair_is_an_answer_and_the_last_packet_before_it() {
        // Clocks that differ by 1000; 20 there, 10 back; the answers leave 0 and 7 later.
        let towards = [passed(0, 1020), passed(5, 1025), passed(8, 1028), passed(40, 1060)];
        let back = [passed(9, 999), passed(35, 1025), passed(45, 1035), passed(46, 1036)];
        let expected = [Pair { at: 20, rtt: 30 }, Pair { at: 27, rtt: 30 }];
        assert_eq!(pairs(&towards, &back), expected);
    }

    #[test]
    fn packets_are_the_same_whatever_routers_change() {
        let mut there = vec![0x45; 60];
        let here = there.clone();
        (there[1], there[8], there[10]) = (3, 63, 9);
        assert_eq!(identity(&here), identity(&there));
        there[24] = 1;
        assert_ne!(identity(&here), identity(&there));
        assert!(identity(&[]).is_empty());
    }
}
