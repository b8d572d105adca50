//! Hosts outside of a run: what the live clock, or a replay of what it recorded, adds to a run.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ackclock_stack::OwnStackConfig;
use ackclock_units::Span;

use super::split::SplitSpec;

/// The clock that drives a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The machine's monotonic clock; packets come from devices and stacks.
    Real,
    /// Time jumps; packets come from a capture, at the times that it has, and from stacks.
    Replay(PathBuf),
    /// Time jumps; packets come from network stacks in this process ([`NodeSpec::stack`]).
    Virtual,
}

/// The hosts outside of a run, and the paths between them.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSpec {
    /// The source of time and packets.
    pub clock: Clock,
    /// Hosts, those behind devices and our own.
    pub nodes: Vec<NodeSpec>,
    /// The paths between hosts. Two hosts have at most one.
    pub pipes: Vec<PipeSpec>,
    /// Programs that run beside.
    pub commands: Vec<CommandSpec>,
    /// Scheduling of the loop's thread.
    pub scheduling: Scheduling,
    /// Devices exchange segments of several packets (GSO), if the kernel supports it.
    pub offload: bool,
    /// The 99th percentile of lateness beyond which the run is not valid.
    pub lateness_limit: Option<Span>,
    /// Packets on their way at the end are still delivered.
    pub drain: bool,
}

/// The scheduling of a real-time run's loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// The time before a deadline that is spent without sleeping.
    pub spin: Spin,
    /// Scheduling class of the loop's thread.
    pub priority: Priority,
    /// The processors that it runs on, by number; `None` is any.
    pub affinity: Option<Vec<usize>>,
}

/// The scheduling class of the loop's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// The default of programs.
    #[default]
    Normal,
    /// Real-time (`SCHED_FIFO`): before all programs without real-time priority, which still get a
    /// part of its processor.
    Realtime,
}

/// The time before a deadline that is spent without sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spin {
    /// Adjusted to the lateness of wakeups, within a share of a processor.
    #[default]
    Auto,
    /// A fixed time; zero always sleeps.
    Fixed(Span),
}

/// A host by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Name in the scenario.
    pub name: String,
    /// The device by which its packets come; `None` for a host in this process, which our endpoints
    /// are on.
    pub tun: Option<String>,
    /// The network stack that its packets come from, without a device.
    pub stack: Option<OwnStackConfig>,
    /// Addresses with their prefix lengths, at least one; a host in this process has one, IPv4.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The network namespace that the device is in; `None` is the one that we are in.
    pub netns: Option<String>,
    /// The most bytes of a packet.
    pub mtu: u16,
    /// Prefixes of what is reached through it, beside its own addresses: its kernel forwards. Only
    /// of one with a device.
    pub routes: Vec<(IpAddr, u8)>,
    /// Packets forwarded by the host's kernel leave with an address of the machine (masquerading).
    pub nat: bool,
    /// An interface of the machine that is in the host's namespace as long as the run lasts.
    pub interface: Option<String>,
}

impl NodeSpec {
    /// Returns true if its packets come from a device or a stack, not from our endpoints.
    pub fn is_outside(&self) -> bool {
        self.tun.is_some() || self.stack.is_some()
    }

    /// The first IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|(address, _)| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }
}

/// The way between two hosts: everything that one sends to the other takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeSpec {
    /// The hosts, by number.
    pub between: [usize; 2],
    /// Indices of the links from the first to the second, in order; the way back takes their other
    /// directions.
    pub path: Vec<usize>,
    /// Further paths, and what takes which, from the first host to the second and back; `None` if
    /// there is `path` alone.
    pub split: Option<SplitSpec>,
    /// The router at the entry of the path; `None` for a wire.
    pub router: Option<RouterSpec>,
}

impl PipeSpec {
    /// Returns true if the path is between these two hosts, in either order.
    pub fn joins(&self, one: usize, other: usize) -> bool {
        [[one, other], [other, one]].contains(&self.between)
    }
}

/// A router that decrements the hop limit of the packets that it forwards and enforces the next
/// link's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSpec {
    /// Source address of its ICMP messages.
    pub address: Ipv4Addr,
    /// Source address of its `ICMPv6` messages.
    pub address6: Ipv6Addr,
    /// The most bytes of a packet that it forwards, if less than what the host at the other end
    /// takes.
    pub mtu: Option<u16>,
}

/// The hosts of a flow, and how its packets are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndsSpec {
    /// Sender and receiver, by number in [`LiveSpec::nodes`].
    pub nodes: [usize; 2],
    /// Port of the receiver.
    pub port: u16,
    /// Port of the sender; `None` is any, for an ackclock endpoint one that no other flow has.
    pub source_port: Option<u16>,
    /// Bytes that an ackclock endpoint receives from outside must match
    /// [`ackclock_packet::pattern`].
    pub check: bool,
}

/// A program that runs on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// Name of the command and of its output.
    pub id: String,
    /// The host, one behind a device.
    pub node: usize,
    /// The command, run by `/bin/sh -c`.
    pub run: String,
    /// Variables of its environment, by their names.
    pub env: Vec<(String, String)>,
    /// Time of the start.
    pub at: Span,
    /// Time at which SIGINT is sent if the command has not ended; `None` is the end of the run.
    pub until: Option<Span>,
    /// The measure read from its standard output.
    pub measure: Option<CommandMeasure>,
    /// The command has the terminal, or whatever standard input and output are, and its end ends
    /// the run.
    pub terminal: bool,
}

/// Kinds of output that numbers are read out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandMeasure {
    /// A JSON document, as `iperf3 -J` writes it.
    Json,
    /// The lines of `ping`, each with a `time=`.
    Ping,
}
