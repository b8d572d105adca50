//! Scripts with one thing changed, by kind.
//!
//! Changes that cannot be mistakes are not made. These changes leave a script that says the same,
//! or nothing about the point:
//! - a flag PSH that the settings leave out of the comparison;
//! - the number that `socket`, `accept` and the like return: it is a name that the script gives;
//! - TSval, which is the host's clock and not compared;
//! - two packets that change places and are equal in what is compared, or of which one is the other
//!   with any options, or of different subflows;
//! - the sequence number of the first SYN: later numbers count from it, whatever the script calls
//!   it;
//! - a sequence number of which the script says that it may be any;
//! - a value of a range `a~b` or of `*`: only a whole range moves, by more than its length;
//! - a time before the start, or before that of the event before it.

use ackclock_packet::{Flags, SackBlocks};
use ackclock_packetdrill::ast::{
    Action, Call, Direction, Event, EventTime, Expr, IcmpSpec, OptionSpec, Options, PacketSpec,
};
use ackclock_packetdrill::ast::{Script, SeqForm, TcpSpec};
use ackclock_units::Span;

use super::mptcp;

/// The largest segment over Ethernet: how far off a sequence number is that belongs to the next
/// segment.
const MSS: u32 = 1460;

/// RFC 9293 section 3.1: what a data offset of 15 leaves for options.
const OPTION_SPACE: usize = 40;

/// The kind of a script that lacks an expectation.
pub(crate) const REMOVED: &str = "packet removed";

/// The freedom that a comparison leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Tolerance of times.
    pub(crate) tolerance: Span,
    /// `true` if PSH is not compared.
    pub(crate) ignore_psh: bool,
}

/// A script with one mistake.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// The mistake.
    pub(crate) kind: &'static str,
    /// Where.
    pub(crate) line: u32,
    /// `true` if the host's input has changed; otherwise an expectation has.
    pub(crate) stimulus: bool,
    /// The result.
    pub(crate) script: Script,
}

/// Every mutant of a script, to `sink` one after the other.
pub(crate) fn each(script: &Script, terms: Terms, sink: &mut impl FnMut(Mutant)) {
    for (index, event) in script.events.iter().enumerate() {
        let mut give = |kind, stimulus, change: &dyn Fn(&mut Vec<Event>)| {
            let mut script = script.clone();
            change(&mut script.events);
            sink(Mutant { kind, line: event.line, stimulus, script });
        };
        match &event.action {
            Action::Packet(packet) => match packet.as_ref() {
                PacketSpec::Tcp(tcp) if tcp.direction == Direction::Outbound => {
                    let mut replace = |kind, tcp: TcpSpec| {
                        give(kind, false, &|events| {
                            events[index].action = Action::Packet(Box::new(PacketSpec::Tcp(tcp.clone())));
                        });
                    };
                    numbers(tcp, names_first_number(&script.events[..index], tcp), &mut replace);
                    flags(tcp, terms, &mut replace);
                    options(tcp, &mut replace);
                    times(script, index, terms, &mut give);
                    places(script, index, terms, &mut give);
                }
                PacketSpec::Tcp(tcp) => inbound(script, index, tcp, &mut give),
                PacketSpec::Icmp(icmp) => message(index, icmp, &mut give),
                PacketSpec::Unsupported { .. } => {}
            },
            Action::Call(call) => calls(event, index, call, terms, &mut give),
            Action::Code(code) => {
                for code in assertions(code) {
                    give("assertion", false, &|events| events[index].action = Action::Code(code.clone()));
                }
            }
            Action::Shell(_) => {}
        }
    }
}

type Replace<'a> = &'a mut dyn FnMut(&'static str, TcpSpec);
type Give<'a> = &'a mut dyn FnMut(&'static str, bool, &dyn Fn(&mut Vec<Event>));

/// A message that tells another MTU, or is about what is not in flight.
fn message(index: usize, icmp: &IcmpSpec, give: Give<'_>) {
    let mut replace = |kind, icmp: IcmpSpec| {
        give(kind, true, &|events| {
            events[index].action = Action::Packet(Box::new(PacketSpec::Icmp(icmp.clone())));
        });
    };
    if let Some(mtu) = icmp.mtu {
        replace("told mtu", IcmpSpec { mtu: Some(mtu + 8), ..icmp.clone() });
    }
    if let Some((seq, payload)) = icmp.quoted {
        let far = seq.wrapping_add(1 << 20);
        replace("quoted seq", IcmpSpec { quoted: Some((far, payload)), ..icmp.clone() });
    }
}

/// Returns `true` if the segment is a SYN, and not one that is resent: that has to have the number
/// of the first.
fn names_first_number(before: &[Event], tcp: &TcpSpec) -> bool {
    let sent_last = before.iter().rev().find_map(outbound);
    let is_again = |last: &TcpSpec| last.flags.contains(Flags::SYN) && mptcp::joins(last) == mptcp::joins(tcp);
    tcp.flags.contains(Flags::SYN) && !sent_last.is_some_and(is_again)
}

fn numbers(tcp: &TcpSpec, free: bool, replace: Replace<'_>) {
    if tcp.seq_form != SeqForm::Any && !free {
        replace("seq + 1", TcpSpec { seq: tcp.seq.wrapping_add(1), ..tcp.clone() });
        replace("seq + mss", TcpSpec { seq: tcp.seq.wrapping_add(MSS), ..tcp.clone() });
    }
    if tcp.payload > 0 {
        replace("length - 1", TcpSpec { payload: tcp.payload - 1, ..tcp.clone() });
    }
    replace("length + 1", TcpSpec { payload: tcp.payload + 1, ..tcp.clone() });
    if let Some(ack) = tcp.ack {
        replace("ack + 1", TcpSpec { ack: Some(ack.wrapping_add(1)), ..tcp.clone() });
        replace("ack - 1", TcpSpec { ack: Some(ack.wrapping_sub(1)), ..tcp.clone() });
    }
    if let Some(window) = tcp.window {
        let window = if window == u16::MAX { window - 1 } else { window + 1 };
        replace("window", TcpSpec { window: Some(window), ..tcp.clone() });
    }
}

fn flags(tcp: &TcpSpec, terms: Terms, replace: Replace<'_>) {
    // A counter in the place of flags says nothing of ECE and CWR.
    let ecn: &[Flags] = if tcp.ace.is_some() { &[] } else { &[Flags::ECE, Flags::CWR] };
    let psh: &[Flags] = if terms.ignore_psh { &[] } else { &[Flags::PSH] };
    for &flag in [Flags::FIN, Flags::SYN, Flags::RST, Flags::URG].iter().chain(ecn).chain(psh) {
        let kind = if tcp.flags.contains(flag) { "flag removed" } else { "flag added" };
        replace(kind, TcpSpec { flags: Flags::from_bits(tcp.flags.bits() ^ flag.bits()), ..tcp.clone() });
    }
    if let Some(counter) = tcp.ace {
        replace("AccECN counter changed", TcpSpec { ace: Some(counter ^ 1), ..tcp.clone() });
        replace("AccECN counter changed", TcpSpec { ace: Some(counter ^ 4), ..tcp.clone() });
    }
    for (from, to) in [(Flags::FIN, Flags::RST), (Flags::SYN, Flags::FIN), (Flags::RST, Flags::FIN)] {
        if tcp.flags.contains(from) && !tcp.flags.contains(to) {
            let bits = tcp.flags.bits() & !from.bits() | to.bits();
            replace("flag changed", TcpSpec { flags: Flags::from_bits(bits), ..tcp.clone() });
        }
    }
}

fn options(tcp: &TcpSpec, replace: Replace<'_>) {
    let Options::List(list) = &tcp.options else { return };
    let mut with = |kind, list: Vec<OptionSpec>| {
        replace(kind, TcpSpec { options: Options::List(list), ..tcp.clone() });
    };
    let used: usize = list.iter().map(length).sum();
    for (at, option) in list.iter().enumerate() {
        let changed = |option| {
            let mut list = list.clone();
            list[at] = option;
            list
        };
        let mut without = list.clone();
        without.remove(at);
        with("option removed", without);
        match option {
            OptionSpec::Mss(mss) => with("option value", changed(OptionSpec::Mss(mss ^ 1))),
            OptionSpec::WindowScale(shift) => with("option value", changed(OptionSpec::WindowScale(shift ^ 1))),
            OptionSpec::Timestamps { value, echo } => {
                let echo = echo.wrapping_add(1);
                with("TS ecr", changed(OptionSpec::Timestamps { value: *value, echo }));
            }
            OptionSpec::Sack(blocks) => {
                let room = used + 8 <= OPTION_SPACE;
                for (kind, blocks) in sacks(blocks.as_slice(), room) {
                    with(kind, changed(OptionSpec::Sack(blocks)));
                }
            }
            OptionSpec::Other { name, kind: kind @ (172 | 174), data } if !data.is_empty() => {
                let option = |kind, data| changed(OptionSpec::Other { name: name.clone(), kind, data });
                with("AccECN in the other order", option(kind ^ 172 ^ 174, data.clone()));
                let mut counted = data.clone();
                counted[data.len() - 1] ^= 1;
                with("AccECN bytes changed", option(*kind, counted));
            }
            OptionSpec::Mptcp(option) => {
                for (kind, option) in mptcp::changed(option) {
                    with(kind, changed(OptionSpec::Mptcp(Box::new(option))));
                }
            }
            OptionSpec::Nop | OptionSpec::Eol | OptionSpec::SackPermitted | OptionSpec::Other { .. } => {}
        }
    }
    for option in [OptionSpec::Nop, OptionSpec::SackPermitted, OptionSpec::Timestamps { value: 1, echo: 1 }] {
        let is_there = list.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&option));
        if used + length(&option) <= OPTION_SPACE && (option == OptionSpec::Nop || !is_there) {
            with("option added", list.iter().cloned().chain([option]).collect());
        }
    }
}

/// Bytes of an option on the wire.
fn length(option: &OptionSpec) -> usize {
    match option {
        OptionSpec::Nop | OptionSpec::Eol => 1,
        OptionSpec::SackPermitted => 2,
        OptionSpec::WindowScale(_) => 3,
        OptionSpec::Mss(_) => 4,
        OptionSpec::Timestamps { .. } => 10,
        OptionSpec::Sack(blocks) => 2 + 8 * blocks.as_slice().len(),
        OptionSpec::Mptcp(option) => option.encoded_len(),
        OptionSpec::Other { data, .. } => 2 + data.len(),
    }
}

fn sacks(blocks: &[(u32, u32)], room: bool) -> Vec<(&'static str, SackBlocks)> {
    let collect = |blocks: Vec<(u32, u32)>| {
        let mut out = SackBlocks::default();
        blocks.into_iter().for_each(|(left, right)| assert!(out.push(left, right), "blocks that were there"));
        out
    };
    let mut out = Vec::new();
    for at in 0..blocks.len() {
        let moved = |left: u32, right: u32| {
            let mut blocks = blocks.to_vec();
            blocks[at] = (blocks[at].0.wrapping_add(left), blocks[at].1.wrapping_add(right));
            collect(blocks)
        };
        for (left, right) in [(1, 0), (0, 1), (MSS, MSS), (MSS.wrapping_neg(), MSS.wrapping_neg())] {
            out.push(("SACK block shifted", moved(left, right)));
        }
        if blocks.len() > 1 {
            let mut fewer = blocks.to_vec();
            fewer.remove(at);
            out.push(("SACK block removed", collect(fewer)));
        }
    }
    for (first, second) in (0..blocks.len()).zip(1..blocks.len()) {
        if blocks[first] != blocks[second] {
            let mut swapped = blocks.to_vec();
            swapped.swap(first, second);
            out.push(("SACK blocks swapped", collect(swapped)));
        }
    }
    if let Some(&(_, right)) = blocks.last().filter(|_| blocks.len() < 4 && room) {
        let more = blocks.iter().copied().chain([(right.wrapping_add(MSS), right.wrapping_add(2 * MSS))]);
        out.push(("SACK block added", collect(more.collect())));
    }
    out
}

/// More than a tolerance to each side.
fn far(terms: Terms) -> Span {
    terms.tolerance + terms.tolerance + Span::from_millis(1)
}

fn times(script: &Script, index: usize, terms: Terms, give: Give<'_>) {
    let far = far(terms);
    let before = script.events[..index].iter().rev().find_map(|event| match event.time {
        EventTime::Absolute(time) | EventTime::AbsoluteRange(time, _) => Some(time),
        _ => None,
    });
    let (late, early) = match script.events[index].time {
        EventTime::Absolute(time) => (
            EventTime::Absolute(time + far),
            (time >= before.unwrap_or(Span::ZERO) + far).then(|| EventTime::Absolute(time - far)),
        ),
        EventTime::Relative(time) => {
            (EventTime::Relative(time + far), (time >= far).then(|| EventTime::Relative(time - far)))
        }
        EventTime::AbsoluteRange(from, to) => {
            let by = (to - from) + far;
            let early = from >= before.unwrap_or(Span::ZERO) + by;
            (EventTime::AbsoluteRange(from + by, to + by), early.then(|| EventTime::AbsoluteRange(from - by, to - by)))
        }
        EventTime::RelativeRange(from, to) => {
            let by = (to - from) + far;
            (
                EventTime::RelativeRange(from + by, to + by),
                (from >= by).then(|| EventTime::RelativeRange(from - by, to - by)),
            )
        }
        EventTime::Any => return,
    };
    // Later events stay where they were.
    let moved = |events: &mut Vec<Event>, time| events[index].time = time;
    give("time: too late", false, &|events| moved(events, late));
    if let Some(early) = early {
        give("time: too early", false, &|events| moved(events, early));
    }
}

fn places(script: &Script, index: usize, terms: Terms, give: Give<'_>) {
    let events = &script.events;
    give(REMOVED, false, &|events| remove(events, index));
    give("packet twice", false, &|events| {
        let mut again = events[index].clone();
        again.time = EventTime::Relative(Span::ZERO);
        events.insert(index + 1, again);
    });
    let Some(next) = events.get(index + 1) else { return };
    if let (Some(first), Some(second)) = (expected(&events[index], terms), expected(next, terms))
        && first.addresses == second.addresses
        && !covers(&first, &second)
        && !covers(&second, &first)
    {
        give("packets swapped", false, &|events| {
            let (front, back) = events.split_at_mut(index + 1);
            std::mem::swap(&mut front[index].action, &mut back[0].action);
        });
    }
}

/// A packet that is expected.
fn outbound(event: &Event) -> Option<&TcpSpec> {
    let Action::Packet(packet) = &event.action else { return None };
    let PacketSpec::Tcp(tcp) = packet.as_ref() else { return None };
    (tcp.direction == Direction::Outbound).then_some(tcp)
}

/// The compared part of an event.
fn expected(event: &Event, terms: Terms) -> Option<TcpSpec> {
    let tcp = outbound(event)?;
    let mask = if terms.ignore_psh { !Flags::PSH.bits() } else { u16::MAX };
    let mut tcp = TcpSpec { flags: Flags::from_bits(tcp.flags.bits() & mask), ..tcp.clone() };
    if let Options::List(list) = &mut tcp.options {
        for option in list {
            if let OptionSpec::Timestamps { value, .. } = option {
                *value = 0;
            }
        }
    }
    Some(tcp)
}

/// Returns `true` if the compared part of `first` equals that of `second` too.
fn covers(first: &TcpSpec, second: &TcpSpec) -> bool {
    let options = if first.options == Options::Any { &Options::Any } else { &second.options };
    *first == TcpSpec { options: options.clone(), ..second.clone() }
}

/// Takes an event out; the next one keeps its time where it was told by this one's.
fn remove(events: &mut Vec<Event>, index: usize) {
    let removed = events.remove(index);
    // A removed range counts as a whole: an event that was to happen in it still does, before the
    // next event.
    let (EventTime::Relative(gap) | EventTime::RelativeRange(_, gap), Some(next)) =
        (removed.time, events.get_mut(index))
    else {
        return;
    };
    if let Action::Call(Call { until: Some(until), .. }) = &mut next.action
        && matches!(next.time, EventTime::Relative(_))
    {
        *until += gap;
    }
    next.time = match next.time {
        EventTime::Relative(time) => EventTime::Relative(time + gap),
        EventTime::RelativeRange(from, to) => EventTime::RelativeRange(from + gap, to + gap),
        other => other,
    };
}

fn inbound(script: &Script, index: usize, tcp: &TcpSpec, give: Give<'_>) {
    // After the last thing that a script looks at, it does not matter what arrives.
    let looked_at = |event: &Event| match &event.action {
        Action::Packet(packet) => {
            matches!(packet.as_ref(), PacketSpec::Tcp(tcp) if tcp.direction == Direction::Outbound)
        }
        Action::Call(call) => call.result != Expr::Ellipsis,
        Action::Code(_) => true,
        Action::Shell(_) => false,
    };
    if !script.events[index + 1..].iter().any(looked_at) {
        return;
    }
    give("arrival removed", true, &|events| remove(events, index));
    let mut replace = |kind, tcp: TcpSpec| {
        give(kind, true, &|events| {
            events[index].action = Action::Packet(Box::new(PacketSpec::Tcp(tcp.clone())));
        });
    };
    if let Options::List(list) = &tcp.options {
        for (at, option) in list.iter().enumerate() {
            let OptionSpec::Mptcp(option) = option else { continue };
            let mut without = list.clone();
            without.remove(at);
            replace("arrival: MPTCP option removed", TcpSpec { options: Options::List(without), ..tcp.clone() });
            for (_, option) in mptcp::changed(option) {
                let mut list = list.clone();
                list[at] = OptionSpec::Mptcp(Box::new(option));
                replace("arrival: MPTCP option changed", TcpSpec { options: Options::List(list), ..tcp.clone() });
            }
        }
    }
    if !tcp.flags.contains(Flags::SYN) {
        replace("arrival: seq", TcpSpec { seq: tcp.seq.wrapping_add(MSS), ..tcp.clone() });
    }
    if let Some(ack) = tcp.ack {
        replace("arrival: ack", TcpSpec { ack: Some(ack.wrapping_sub(1)), ..tcp.clone() });
        replace("arrival: ack", TcpSpec { ack: Some(ack.wrapping_add(MSS)), ..tcp.clone() });
    }
}

/// Calls whose result is a descriptor.
const NAMING: [&str; 7] = ["socket", "accept", "accept4", "dup", "open", "epoll_create", "epoll_create1"];

fn calls(event: &Event, index: usize, call: &Call, terms: Terms, give: Give<'_>) {
    let mut replace = |kind, call: Call| {
        give(kind, false, &|events| events[index].action = Action::Call(call.clone()));
    };
    if let Expr::Integer(result) = call.result {
        if !NAMING.contains(&call.name.as_str()) {
            replace("call: result", Call { result: Expr::Integer(result + 1), errno: None, ..call.clone() });
        }
        if result >= 0 {
            let (result, errno) = (Expr::Integer(-1), Some("EPIPE".to_owned()));
            replace("call: an error", Call { result, errno, ..call.clone() });
        }
    }
    if let Some(errno) = &call.errno {
        let other = if errno == "EINVAL" { "EPIPE" } else { "EINVAL" };
        replace("call: errno", Call { errno: Some(other.to_owned()), ..call.clone() });
    }
    let out = match call.name.as_str() {
        "getsockopt" => Some(3),
        "ioctl" => Some(2),
        _ => None,
    };
    if let Some(out) = out
        && let Some(Expr::Array(values)) = call.args.get(out)
        && let [Expr::Integer(value)] = values[..]
    {
        let mut args = call.args.clone();
        args[out] = Expr::Array(vec![Expr::Integer(value + 1)]);
        replace("call: value given back", Call { args, ..call.clone() });
    }
    // A call that blocks has to return at its time.
    if let Some(until) = call.until
        && matches!(event.time, EventTime::Absolute(_) | EventTime::Relative(_))
    {
        replace("call: returns later", Call { until: Some(until + far(terms)), ..call.clone() });
    }
}

/// The code with one of the numbers that something has to be equal to changed.
fn assertions(code: &str) -> Vec<String> {
    let starts = code.match_indices("==").map(|(at, sign)| at + sign.len());
    let changed = starts.filter_map(|at| {
        let from = at + code[at..].len() - code[at..].trim_start().len();
        let to = from + code[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(code.len() - from);
        let number: u64 = code[from..to].parse().ok()?;
        Some(format!("{}{}{}", &code[..from], number + 1, &code[to..]))
    });
    changed.collect()
}
