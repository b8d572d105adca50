//! A script as it was written: the output of the parser, which the runner executes.
//!
//! The language is packetdrill's (Cardwell et al., "packetdrill: Scriptable Network Stack Testing",
//! USENIX ATC 2013, and the grammar of its `google/packetdrill` and `nplab/packetdrill`
//! implementations). Lines count from 1.

mod mptcp;

use ackclock_packet::{Flags, SackBlocks};
use ackclock_units::{Ecn, Span};

pub use self::mptcp::{
    AddressHmac, AddressNames, AddressSpec, ChecksumSpec, Count, DssSpec, HmacSpec, KeySpec, MptcpSpec, NumberSpec,
    TokenSpec,
};

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` lines at the top.
    pub options: Vec<OptionLine>,
    /// Everything else, in order.
    pub events: Vec<Event>,
    /// The lines that `#ifdef` leaves out.
    pub left_out: Vec<LeftOut>,
}

/// Lines that `#ifdef` leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The line of the `#ifdef`.
    pub line: u32,
    /// The word that is not defined.
    pub name: String,
}

/// A line `--name=value` or `--name`.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionLine {
    /// Where it is.
    pub line: u32,
    /// The name without the dashes.
    pub name: String,
    /// The text after the equals sign; empty without one.
    pub value: String,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it starts.
    pub line: u32,
    /// When.
    pub time: EventTime,
    /// The action.
    pub action: Action,
}

/// When an event happens or is expected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// `t`: seconds since the start.
    Absolute(Span),
    /// `+t`: after the event before.
    Relative(Span),
    /// `a~b`: between two times since the start.
    AbsoluteRange(Span, Span),
    /// `+a~+b` (or `a~+b`): between two times after the event before.
    RelativeRange(Span, Span),
    /// `*`: any time.
    Any,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A packet that arrives (`<`) or is expected to leave (`>`).
    Packet(Box<PacketSpec>),
    /// A system call.
    Call(Call),
    /// A shell command in backquotes, also the one before the first event and the one after the
    /// last.
    Shell(String),
    /// Code between `%{` and `}%`.
    Code(String),
}

/// The direction of a packet, as seen from the endpoint under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`
    Inbound,
    /// `>`
    Outbound,
}

/// A packet.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketSpec {
    /// A TCP segment.
    Tcp(TcpSpec),
    /// An ICMP message that arrives.
    Icmp(IcmpSpec),
    /// Something the language knows and this runner does not: UDP, encapsulations. Kept to be
    /// reported.
    Unsupported {
        /// The direction.
        direction: Direction,
        /// The kind: `icmp` (outbound, or about something else than TCP), `udp`, `gre`, `mpls`,
        /// `psp`, ...
        kind: &'static str,
        /// The text of the line.
        text: String,
    },
}

/// An ICMP message that arrives. The numbers of type and code depend on the version of IP.
#[derive(Clone, Debug, PartialEq)]
pub struct IcmpSpec {
    /// Its type, such as `unreachable` or `type_3`.
    pub kind: String,
    /// Its code, such as `frag_needed` or `code_4`; 0 without one.
    pub code: Option<String>,
    /// The MTU of the next hop, where written.
    pub mtu: Option<u32>,
    /// First sequence number and payload length of the segment that it quotes, relative to the
    /// initial number; the SYN without them.
    pub quoted: Option<(u32, u32)>,
}

/// A TCP segment; numbers are relative to the initial sequence numbers, as scripts write them.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSpec {
    /// The direction.
    pub direction: Direction,
    /// The specification of the IP header, in square brackets or parentheses, if there is one.
    pub ip: IpInfo,
    /// `sport > dport`, where written.
    pub ports: Option<(u16, u16)>,
    /// `addr[a] > addr[b]`, where written.
    pub addresses: AddressNames,
    /// Control bits.
    pub flags: Flags,
    /// The AccECN counter `0` to `7` in the place of flags, where written.
    pub ace: Option<u8>,
    /// First sequence number; 0 where [`SeqForm::Any`].
    pub seq: u32,
    /// The form of the sequence number.
    pub seq_form: SeqForm,
    /// Payload length.
    pub payload: u32,
    /// Acknowledgment number, where written.
    pub ack: Option<u32>,
    /// Window field, where written.
    pub window: Option<u16>,
    /// Urgent pointer, where written.
    pub urgent: Option<u16>,
    /// The options.
    pub options: Options,
}

/// The form of a segment's sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeqForm {
    /// `1:1001(1000)`: relative to the initial sequence number.
    #[default]
    Relative,
    /// `0:0(0)!`: the number in the header itself.
    Absolute,
    /// `...(0)`: whatever it is.
    Any,
}

/// The specification of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpInfo {
    /// The ECN codepoint, where written.
    pub ecn: Option<EcnSpec>,
    /// The whole TOS byte, where written.
    pub tos: Option<u8>,
    /// Time to live, where written.
    pub ttl: Option<u8>,
    /// IPv6 flow label, where written.
    pub flow_label: Option<u32>,
}

/// An ECN codepoint or a choice of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnSpec {
    /// Exactly this one: `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`.
    Is(Ecn),
    /// `[ect01]`: either.
    Ect01,
}

/// TCP options of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Options {
    /// `<...>`: whatever they are. Only outbound.
    Any,
    /// These, in this order; without any, none.
    List(Vec<OptionSpec>),
}

/// One TCP option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionSpec {
    /// `nop`
    Nop,
    /// `eol`
    Eol,
    /// `mss N`
    Mss(u16),
    /// `wscale N`
    WindowScale(u8),
    /// `sackOK`
    SackPermitted,
    /// `sack a:b c:d ...`
    Sack(SackBlocks),
    /// `TS val N ecr M`
    Timestamps {
        /// TSval.
        value: u32,
        /// TSecr.
        echo: u32,
    },
    /// `mpcapable`, `dss` and the like.
    Mptcp(Box<MptcpSpec>),
    /// Another option: its kind and the bytes after its length byte (`FO`, `FOEXP`, `md5`, AccECN).
    Other {
        /// The name as written, for reports.
        name: String,
        /// Option kind.
        kind: u8,
        /// Data bytes.
        data: Vec<u8>,
    },
}

/// A system call with what it is expected to return.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// `t...end`: it blocks until then. The end is of the same kind (absolute or relative) as the
    /// start: an absolute start has an absolute end, a relative one an end relative to the event
    /// before.
    pub until: Option<Span>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub args: Vec<Expr>,
    /// The value returned; [`Expr::Ellipsis`] for any.
    pub result: Expr,
    /// `EAGAIN` and the like.
    pub errno: Option<String>,
    /// The remark in parentheses after it.
    pub note: Option<String>,
}

/// An argument or result.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `...`
    Ellipsis,
    /// A number, decimal or hexadecimal.
    Integer(i64),
    /// A string.
    Text(String),
    /// A name.
    Symbol(String),
    /// `a | b`
    Or(Box<Expr>, Box<Expr>),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `{name=value, ...}`; a positional part has an empty name.
    Struct(Vec<(String, Expr)>),
    /// `name(argument)`, such as `inet_addr("1.2.3.4")` or `msg_name(...)`.
    Function(String, Vec<Expr>),
}
