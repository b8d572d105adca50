//! A script's numbers and the wire's: one connection as the script sees it.
//!
//! In packets with SYN, sequence and acknowledgment numbers are the wire's for the remote side, and
//! count from the initial number that the script writes for the local side. In all others both
//! count from the initial sequence numbers. SACK blocks go like the acknowledgment numbers of the
//! packet that they are in. TSval of outbound packets is whatever the host's clock says; the
//! script's value for it is remembered, so that its echo arrives as the host expects it.
//!
//! # Source
//! packetdrill's `socket.h` and `run_packet.c` (google/packetdrill).

use std::collections::BTreeMap;

use ackclock_packet::{
    AccEcn, AccEcnOrder, FastOpen, Flags, OptionLayout, Payload, SackBlocks, Segment, TcpOption, Timestamps, options,
};
use ackclock_tcp::Ports;

use crate::ast::{AddressNames, Direction, IpInfo, OptionSpec, Options, SeqForm, TcpSpec};
use crate::mptcp::{self, Subflow};
use crate::sockets::SocketId;

/// Kinds of options (IANA registry "TCP Option Kind Numbers"): the MD5 signature, Fast Open,
/// experiments.
const MD5: u8 = 19;
/// The kinds of the AccECN option (RFC 9768 section 3.2.3).
pub(crate) const ACC_ECN_0: u8 = 172;
pub(crate) const ACC_ECN_1: u8 = 174;
const FAST_OPEN: u8 = 34;
const EXPERIMENT: u8 = 254;

/// The phase of a connection, as far as the script shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A socket, not used yet.
    New,
    /// A listening socket: the next packet that arrives opens a connection.
    Listening,
    /// connect() was called, no SYN expected yet.
    Connecting,
    /// The SYN was expected.
    SynSent,
    /// A packet has arrived from somebody.
    PacketReceived,
    /// The SYN/ACK was expected, or an answer to the host's SYN has arrived.
    Shaken,
}

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) phase: Phase,
    pub(crate) ports: Ports,
    /// The socket, once the application has it.
    pub(crate) socket: Option<SocketId>,
    /// Added to the script's numbers of the local side: of packets without SYN the first.
    local_isn: Option<u32>,
    script_local_isn: u32,
    remote_isn: u32,
    /// The names for a subflow of an MPTCP connection.
    pub(crate) subflow: Subflow,
    /// TSval in the script and on the wire.
    ts_values: BTreeMap<u32, u32>,
    first_ts: Option<(u32, u32)>,
}

/// Why a packet of the script cannot be put on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MappingError {
    /// An echo of a timestamp that was not expected before.
    UnknownEcho(u32),
    /// Something that segments do not carry here.
    Unsupported(String),
}

impl Connection {
    pub(crate) fn new(phase: Phase, ports: Ports, socket: Option<SocketId>) -> Connection {
        Connection {
            phase,
            ports,
            socket,
            local_isn: None,
            script_local_isn: 0,
            remote_isn: 0,
            subflow: Subflow::default(),
            ts_values: BTreeMap::new(),
            first_ts: None,
        }
    }

    /// Notes that the script's next inbound packet is `spec`: takes over the remote side's initial
    /// number.
    pub(crate) fn note_inbound(&mut self, spec: &TcpSpec) {
        let (syn, ack) = (spec.flags.contains(Flags::SYN), spec.flags.contains(Flags::ACK));
        match self.phase {
            Phase::PacketReceived if syn && !ack => self.remote_isn = spec.seq,
            Phase::SynSent | Phase::Connecting if syn => {
                self.remote_isn = spec.seq;
                if ack {
                    self.phase = Phase::Shaken;
                }
            }
            _ => {}
        }
    }

    /// The first packet from a stranger.
    pub(crate) fn open_passively(&mut self, spec: &TcpSpec) {
        self.phase = Phase::PacketReceived;
        self.remote_isn = spec.seq;
    }

    /// An expectation: takes over the script's initial number of the local side.
    pub(crate) fn note_expected(&mut self, spec: &TcpSpec) {
        let (syn, ack) = (spec.flags.contains(Flags::SYN), spec.flags.contains(Flags::ACK));
        if !syn || spec.seq_form != SeqForm::Relative {
            return;
        }
        match (self.phase, ack) {
            (Phase::Connecting, false) => {
                self.phase = Phase::SynSent;
                self.script_local_isn = spec.seq;
            }
            (Phase::PacketReceived, true) => {
                self.phase = Phase::Shaken;
                self.script_local_isn = spec.seq;
            }
            _ => {}
        }
    }

    /// A SYN that the host sent gives the initial number of the local side.
    pub(crate) fn note_sent(&mut self, segment: &Segment) {
        self.subflow.note_sent(segment);
        if segment.flags.contains(Flags::SYN) && self.local_isn.is_none() {
            self.local_isn = Some(segment.seq);
        }
    }

    /// The connection's numbers are those of another one from now on: its SYN was answered with a
    /// new initial number.
    fn local_offset(&self, syn: bool) -> u32 {
        let isn = self.local_isn.unwrap_or(0);
        if syn && self.local_isn.is_some() {
            isn.wrapping_sub(self.script_local_isn)
        } else if syn {
            0
        } else {
            isn
        }
    }

    /// The initial number of the local side on the wire, that of the SYN.
    pub(crate) fn first_number(&self) -> u32 {
        self.local_isn.unwrap_or(0)
    }

    fn remote_offset(&self, syn: bool) -> u32 {
        if syn { 0 } else { self.remote_isn }
    }

    /// The segment that arrives where the script says `spec`.
    pub(crate) fn to_wire(&self, spec: &TcpSpec, scaled_echo: bool) -> Result<Segment, MappingError> {
        let syn = spec.flags.contains(Flags::SYN);
        let has_ack = spec.flags.contains(Flags::ACK);
        let remote = if spec.seq_form == SeqForm::Absolute { 0 } else { self.remote_offset(syn) };
        let local = self.local_offset(syn);
        let mut segment = Segment {
            source_port: spec.ports.map_or(self.ports.remote, |(source, _)| source),
            destination_port: spec.ports.map_or(self.ports.local, |(_, destination)| destination),
            seq: spec.seq.wrapping_add(remote),
            ack: if has_ack { spec.ack.unwrap_or(0).wrapping_add(local) } else { 0 },
            flags: spec.flags,
            window: spec.window.unwrap_or(0),
            ..Segment::default()
        };
        // Where the payload lies in the stream follows from the sequence number; the first byte
        // comes after the SYN.
        let offset = segment.seq.wrapping_sub(self.remote_isn).wrapping_sub(u32::from(!syn));
        segment.payload = Payload { offset: u64::from(offset), len: spec.payload };
        let Options::List(list) = &spec.options else {
            return Err(MappingError::Unsupported("any options on a packet that arrives".to_owned()));
        };
        for option in list {
            match option {
                OptionSpec::Nop => {}
                OptionSpec::Eol => break,
                OptionSpec::Mss(mss) => segment.mss = Some(*mss),
                OptionSpec::WindowScale(shift) => segment.window_scale = Some(*shift),
                OptionSpec::SackPermitted => segment.sack_permitted = true,
                OptionSpec::Sack(blocks) => {
                    for &(left, right) in blocks.as_slice() {
                        segment.sack.push(left.wrapping_add(local), right.wrapping_add(local));
                    }
                }
                OptionSpec::Timestamps { value, echo } => {
                    let echo = if has_ack { self.wire_echo(*echo, scaled_echo)? } else { *echo };
                    segment.timestamps = Some(Timestamps { value: *value, echo });
                }
                OptionSpec::Other { kind: ACC_ECN_0, data, .. } => {
                    segment.acc_ecn = Some(AccEcn::from_bytes(AccEcnOrder::Zero, data));
                }
                OptionSpec::Other { kind: ACC_ECN_1, data, .. } => {
                    segment.acc_ecn = Some(AccEcn::from_bytes(AccEcnOrder::One, data));
                }
                // A host looks for the key of a signed segment.
                OptionSpec::Other { name, kind: MD5, .. } => {
                    return Err(MappingError::Unsupported(format!("the option `{name}`")));
                }
                OptionSpec::Other { kind: FAST_OPEN, data, .. } => segment.fast_open = Some(FastOpen::new(data)),
                OptionSpec::Other { kind: EXPERIMENT, data, .. } if data.starts_with(&FastOpen::EXPERIMENT) => {
                    segment.fast_open = Some(FastOpen::new(&data[2..]).in_form(true));
                }
                // Their numbers are those of the connection, which is more than this subflow.
                OptionSpec::Mptcp(_) => {}
                // Skipped by a host that has not implemented it (RFC 9293 section 3.1, MUST-6).
                OptionSpec::Other { .. } => {}
            }
        }
        Ok(segment)
    }

    fn wire_echo(&self, echo: u32, scaled: bool) -> Result<u32, MappingError> {
        if let Some(&wire) = self.ts_values.get(&echo) {
            return Ok(wire);
        }
        match self.first_ts {
            Some((script, wire)) if scaled => Ok(echo.wrapping_sub(script).wrapping_add(wire)),
            _ => Err(MappingError::UnknownEcho(echo)),
        }
    }

    /// The script's description of a segment that the host sent. Timestamps are the wire's.
    pub(crate) fn to_script(&self, segment: &Segment, ip: IpInfo, layout: OptionLayout) -> TcpSpec {
        let syn = segment.flags.contains(Flags::SYN);
        let has_ack = segment.flags.contains(Flags::ACK);
        let remote = self.remote_offset(syn);
        let mut list = Vec::new();
        for option in options(segment, layout) {
            if let TcpOption::Mptcp(all) = option {
                for bytes in all.encoded() {
                    list.push(mptcp::option_of(bytes));
                    list.extend((bytes.len()..bytes.len().next_multiple_of(4)).map(|_| OptionSpec::Nop));
                }
                continue;
            }
            list.push(match option {
                TcpOption::Mptcp(_) => continue,
                TcpOption::End => OptionSpec::Eol,
                TcpOption::Nop => OptionSpec::Nop,
                TcpOption::Mss(mss) => OptionSpec::Mss(mss),
                TcpOption::WindowScale(shift) => OptionSpec::WindowScale(shift),
                TcpOption::SackPermitted => OptionSpec::SackPermitted,
                TcpOption::Timestamps(Timestamps { value, echo }) => OptionSpec::Timestamps { value, echo },
                TcpOption::Sack(blocks) => {
                    let mut shifted = SackBlocks::default();
                    for &(left, right) in blocks.as_slice() {
                        shifted.push(left.wrapping_sub(remote), right.wrapping_sub(remote));
                    }
                    OptionSpec::Sack(shifted)
                }
                TcpOption::AccEcn(option) => OptionSpec::Other {
                    name: option.to_string(),
                    kind: if option.order() == AccEcnOrder::Zero { ACC_ECN_0 } else { ACC_ECN_1 },
                    data: option.as_bytes().to_vec(),
                },
                TcpOption::FastOpen(fast_open) => {
                    let cookie = fast_open.cookie().to_vec();
                    let (kind, data) = match fast_open.experimental {
                        true => (EXPERIMENT, [&FastOpen::EXPERIMENT[..], &cookie].concat()),
                        false => (FAST_OPEN, cookie),
                    };
                    OptionSpec::Other { name: format!("{fast_open:?}"), kind, data }
                }
            });
        }
        TcpSpec {
            direction: Direction::Outbound,
            ip,
            ports: None,
            addresses: AddressNames::default(),
            flags: segment.flags,
            ace: None,
            seq: segment.seq.wrapping_sub(self.local_offset(syn)),
            seq_form: SeqForm::Relative,
            payload: segment.payload.len,
            ack: has_ack.then(|| segment.ack.wrapping_sub(remote)),
            window: Some(segment.window),
            urgent: None,
            options: Options::List(list),
        }
    }

    /// The wire's sequence number of an outbound packet that the script sees as `seq`.
    pub(crate) fn wire_seq(&self, seq: u32, syn: bool) -> u32 {
        seq.wrapping_add(self.local_offset(syn))
    }

    /// Remembers that the script's TSval `script` is `wire` on the wire; returns the script's name
    /// for `wire` by the first pair that was seen.
    pub(crate) fn pair_timestamps(&mut self, script: u32, wire: u32) -> u32 {
        self.ts_values.insert(script, wire);
        let (first_script, first_wire) = *self.first_ts.get_or_insert((script, wire));
        first_script.wrapping_add(wire.wrapping_sub(first_wire))
    }

    /// The script's name for a TSval of the wire, where there is one.
    pub(crate) fn script_timestamp(&self, wire: u32) -> u32 {
        self.first_ts.map_or(wire, |(script, first)| script.wrapping_add(wire.wrapping_sub(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { local: 8080, remote: 40_000 };

    fn packet(text: &str) -> TcpSpec {
        let script = crate::parse(&format!("0 {text}")).unwrap();
        match &script.events[0].action {
            crate::ast::Action::Packet(packet) => match &**packet {
                crate::ast::PacketSpec::Tcp(spec) => spec.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// A connection from outside: our number on the wire is 5000 and 77 in the script, theirs 900
    /// in both.
    fn passive() -> Connection {
        let syn = packet("< S 900:900(0) win 100 <mss 1000>");
        let mut connection = Connection::new(Phase::New, PORTS, None);
        connection.open_passively(&syn);
        connection.note_inbound(&syn);
        connection.note_sent(&Segment { seq: 5000, flags: Flags::SYN | Flags::ACK, ..Segment::default() });
        connection.note_expected(&packet("> S. 77:77(0) ack 901"));
        connection
    }

    #[test]
    fn a_syn_has_the_numbers_of_the_wire_for_the_remote_side() {
        let connection = passive();
        let wire = connection.to_wire(&packet("< S. 900:900(0) ack 78 win 100"), false).unwrap();
        // 78 - 77 + 5000.
        assert_eq!((wire.seq, wire.ack), (900, 5001));
        let sent = Segment { seq: 5000, ack: 901, flags: Flags::SYN | Flags::ACK, ..Segment::default() };
        let spec = connection.to_script(&sent, IpInfo::default(), OptionLayout::Linux);
        assert_eq!((spec.seq, spec.ack), (77, Some(901)));
    }

    #[test]
    fn other_packets_count_from_the_initial_numbers() {
        let connection = passive();
        let wire = connection.to_wire(&packet("< . 11:21(10) ack 31 win 100 <nop,nop,sack 41:51>"), false).unwrap();
        assert_eq!((wire.seq, wire.ack, wire.sack.as_slice()), (911, 5031, &[(5041, 5051)][..]));
        assert_eq!((wire.payload.offset, wire.payload.len), (10, 10));
        let mut sent = Segment { seq: 5031, ack: 911, flags: Flags::ACK, ..Segment::default() };
        sent.sack.push(921, 931);
        let spec = connection.to_script(&sent, IpInfo::default(), OptionLayout::Linux);
        assert_eq!(spec.to_string(), "> . 31:31(0) ack 11 win 0 <nop,nop,sack 21:31>");
    }

    #[test]
    fn an_absolute_number_is_that_of_the_header() {
        let connection = passive();
        assert_eq!(connection.to_wire(&packet("< R 7:7(0)! win 0"), false).unwrap().seq, 7);
        assert_eq!(connection.wire_seq(31, false), 5031);
    }

    #[test]
    fn echoes_are_of_what_was_expected() {
        let mut connection = passive();
        let echo = |connection: &Connection, echo: u32, scaled: bool| {
            let spec = packet(&format!("< . 1:1(0) ack 1 win 100 <nop,nop,TS val 1 ecr {echo}>"));
            connection.to_wire(&spec, scaled).map(|segment| segment.timestamps.map(|timestamps| timestamps.echo))
        };
        assert_eq!(echo(&connection, 100, true), Err(MappingError::UnknownEcho(100)));
        assert_eq!(connection.pair_timestamps(100, 4000), 100);
        // Later ones are named by the first pair: 4030 is 130 there, although the script says 140.
        assert_eq!(connection.pair_timestamps(140, 4030), 130);
        assert_eq!(echo(&connection, 100, false), Ok(Some(4000)));
        assert_eq!(echo(&connection, 140, false), Ok(Some(4030)));
        assert_eq!(echo(&connection, 150, false), Err(MappingError::UnknownEcho(150)));
        assert_eq!(echo(&connection, 150, true), Ok(Some(4050)));
    }

    #[test]
    fn options_end_at_their_end() {
        let wire = passive().to_wire(&packet("< . 1:1(0) ack 1 win 100 <nop,eol,eol,eol>"), false).unwrap();
        assert_eq!((wire.mss, wire.timestamps), (None, None));
    }
}
