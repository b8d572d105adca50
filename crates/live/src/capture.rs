//! Captures: pcapng with nanosecond timestamps, one interface per host with a device or a stack.
//!
//! # The file
//! [pcapng](https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcapng/) in one section,
//! little-endian, which Wireshark and tcpdump read:
//! - a section header (s4.1) with `shb_userappl` ([`APPLICATION`] and the version) and a comment:
//!   title, seed, run and the [`fingerprint`] of the scenario;
//! - for each host with a device or a stack an interface (s4.2) of raw IP packets: `if_name` is the
//!   host's name, `if_description` its device or stack;
//! - interface statistics (s4.6) with `isb_starttime`: time 0 of the run;
//! - all packets that passed the devices, in enhanced packet blocks (s4.3). `epb_flags` has the
//!   direction as in a capture on the host's own device: outbound packets were sent by the host. A
//!   packet from a host has the time at which the run accepted it. A packet to a host has the time
//!   at which it was due there, with which a replay can be compared; it was written then or, by the
//!   run's lateness, after that, and has the corresponding position in the file;
//! - for changes made while the run went on, statistics of the first interface with nothing but
//!   their time and a comment for each, [`CHANGE`] and `KEY=VALUE`, which other tools show or skip.
//!   They have their place among the packets that hosts have sent;
//! - for each interface statistics again, with `isb_endtime`, the end of the run, and `isb_ifrecv`,
//!   the number of its packets: a file without them was cut.
//!
//! Time 0 of a run in virtual time is the epoch. Timestamps count nanoseconds since the epoch, as all tools read them, without `if_tsoffset`; the
//! run's time is the difference to `isb_starttime`, exactly.

use std::fmt::{self, Write};

use ackclock_sim::spec::{Clock, RunSpec};

mod failure;
mod link;
mod reader;
mod salvage;
mod section;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{CapturePacket, CapturePackets};
pub(crate) use reader::{CaptureReader, Captured, Changes};
pub(crate) use writer::CaptureWriter;

/// The beginning of `shb_userappl` in ackclock's own captures.
const APPLICATION: &str = "ackclock";

/// The beginning of the comment that records a change.
const CHANGE: &str = "set ";

/// Introduces the scenario's fingerprint in the comment of a section.
const SCENARIO: &str = "scenario ";

/// Link type of packets that begin with their IP header: `DLT_RAW`, which libpcap and Wireshark
/// read as LINKTYPE_RAW (101). With 101 itself, libpcap reads only the first interface of a file:
/// it maps that interface's type to `DLT_RAW` and then refuses the others, whose type seems to
/// differ.
const RAW_IP: u16 = 12;

/// `epb_flags`, bits 0 and 1: received by the host.
const INBOUND: u32 = 1;
/// `epb_flags`, bits 0 and 1: sent by the host.
const OUTBOUND: u32 = 2;

/// The direction in which a packet passed its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureDirection {
    /// Read from the device: sent by the host.
    FromHost,
    /// Written to the device: sent to the host.
    ToHost,
}

/// A hash of everything that determines the course of a run, apart from arrivals: the version, and
/// the scenario without the parts that only measure. With a controller from outside it is specific
/// to one process.
pub(crate) fn fingerprint(spec: &RunSpec) -> u64 {
    let mut spec = spec.clone();
    spec.title.clear();
    spec.windows.clear();
    if let Some(live) = &mut spec.live {
        live.clock = Clock::Real;
        live.commands.clear();
        live.scheduling = Default::default();
        live.offload = false;
        live.lateness_limit = None;
    }
    let mut hash = FingerprintHasher(0xcbf2_9ce4_8422_2325);
    let written = write!(hash, "{} {spec:?}", env!("CARGO_PKG_VERSION"));
    debug_assert!(written.is_ok(), "it takes everything");
    hash.0
}

/// FNV-1a, the same on every machine.
struct FingerprintHasher(u64);

impl Write for FingerprintHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}
