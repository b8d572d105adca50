//! The ends of flows.

use ackclock_cc::CcSpec;
use ackclock_tcp::Config;
use ackclock_units::parameter::Named;
use ackclock_units::{Span, named};

use crate::spec::DatagramSpec;

/// An end of a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are two of them for each group of flows")]
pub enum HostSpec {
    /// An ackclock endpoint.
    Endpoint(EndpointSpec),
    /// A stock smoltcp socket.
    Smoltcp(SmoltcpSpec),
    /// An end outside: a kernel behind a device.
    Outside,
    /// An end of a flow of datagrams; then both are, with the same specification.
    Datagrams(DatagramSpec),
}

impl HostSpec {
    /// The name of the congestion control; `None` for an end outside, or without one.
    pub fn cc(&self) -> Option<&str> {
        match self {
            HostSpec::Endpoint(endpoint) => Some(endpoint.cc.name()),
            HostSpec::Smoltcp(smoltcp) => Some(smoltcp.cc.name()),
            HostSpec::Outside | HostSpec::Datagrams(_) => None,
        }
    }
}

/// An ackclock endpoint with its congestion control.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointSpec {
    /// The profile's name, for the summary.
    pub profile: String,
    /// The knobs.
    pub config: Config,
    /// The congestion control.
    pub cc: CcSpec,
}

/// A stock smoltcp socket.
#[derive(Clone, Debug, PartialEq)]
pub struct SmoltcpSpec {
    /// The congestion control.
    pub cc: SmoltcpCc,
    /// MTU of its interface, bytes.
    pub mtu: u16,
    /// Send buffer, bytes.
    pub send_buffer: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Delay of its acknowledgments; `None` acknowledges at once.
    pub ack_delay: Option<Span>,
    /// Nagle's algorithm.
    pub nagle: bool,
    /// Timestamps option.
    pub timestamps: bool,
}

impl Default for SmoltcpSpec {
    /// smoltcp's own defaults, where it has them: no congestion control, acknowledgments after 10
    /// ms, Nagle.
    fn default() -> SmoltcpSpec {
        SmoltcpSpec {
            cc: SmoltcpCc::None,
            mtu: 1500,
            send_buffer: 64 << 10,
            receive_buffer: 64 << 10,
            ack_delay: Some(Span::from_millis(10)),
            nagle: true,
            timestamps: false,
        }
    }
}

/// The congestion controllers that smoltcp has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmoltcpCc {
    /// No window at all.
    None,
    /// smoltcp's Reno.
    Reno,
    /// smoltcp's CUBIC.
    Cubic,
}

impl SmoltcpCc {
    /// The controller's name.
    pub fn name(self) -> &'static str {
        Named::name(&self)
    }
}

named! { SmoltcpCc: None = "none", Reno = "reno", Cubic = "cubic" }
