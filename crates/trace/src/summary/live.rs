//! Results of a run in real time.

use serde::{Deserialize, Serialize};

use super::Name;
use super::distribution::Distribution;
use crate::metrics::metrics;

metrics! {
/// Punctuality of a run on the live clock, and events outside its paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveSummary {
    /// The clock that was read.
    #[serde(deserialize_with = "super::name::one")]
    pub clock: Name,
    /// Time before each deadline that the loop spent spinning, not sleeping, ms.
    pub spin_ms: f64,
    /// Delay between the due time of packets and their writing to the device.
    pub lateness_ms: Lateness => ("lateness", "Lateness", [3, 3]),
    /// Upper bound on the wait of packets in their device: the time since the previous read.
    #[serde(default)]
    pub unread_ms: Lateness,
    /// Time during which due events were not yet handled, s.
    pub behind_s: f64,
    /// The longest interval in which the loop missed its 5 ms poll, ms.
    pub longest_stall_ms: f64,
    /// Time for which the loop was runnable but waited for a processor, ms; null if the kernel does
    /// not report it.
    #[serde(default)]
    pub run_delay_ms: Option<f64>,
    /// Processor time of the loop, system calls included, s; null if the kernel does not report it.
    #[serde(default)]
    pub cpu_s: Option<f64>,
    /// The same as a share of the run's duration.
    #[serde(default)]
    pub cpu_utilization: Option<f64> => ("cpu utilization", "Processor use of the loop", [1, 1]),
    /// Number of times the loop slept.
    pub sleeps: u64,
    /// True if lateness stayed within the limit and no packet was lost outside the paths.
    pub valid: bool,
    /// Reasons why the run is not valid.
    pub invalid: Vec<String>,
    /// In a replay, the number of packets compared with the recorded run; 0 if the scenario
    /// differs, another tool made the capture, or the replay was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_packets: Option<u64>,
    /// The hosts behind devices, or with stacks of their own, in the order of the scenario.
    pub hosts: Vec<LiveHost>,
}

/// Times by which packets were late, ms; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p99_9: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Number of samples.
    pub samples: u64,
}

/// The traffic of a host behind a device, or with a stack of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveHost {
    /// Name of the host.
    pub id: String,
    /// Name of its device; empty without one.
    pub tun: String,
    /// Name of its stack, without a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Results that the stack reports, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<serde_json::Value>,
    /// Packets that were read from the device, or that the stack sent.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets that were written to the device, or that reached the stack.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Segments of several packets that were read, with offload.
    #[serde(default)]
    pub received_segments: u64,
    /// Segments of several packets that were written.
    #[serde(default)]
    pub sent_segments: u64,
    /// Packets that the device dropped because they were not read in time.
    pub device_dropped: u64,
    /// Packets of which only a part was read.
    pub truncated: u64,
    /// Packets that the device refused.
    pub refused: u64,
    /// Packets to hosts without a path, and packets that are not IP.
    pub unroutable: u64,
    /// Packets that a router did not forward (no hops left, too long) or a host in this process
    /// ignores: fragments, ICMP errors, IP options.
    pub discarded: u64,
    /// Segments to ackclock's endpoints with a wrong checksum.
    pub bad_checksums: u64,
}

/// A program that ran on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandSummary {
    /// Name of the command.
    pub id: String,
    /// Host of the command.
    pub host: String,
    /// The command.
    pub run: String,
    /// Time of the start, s; null if it did not start.
    pub started_s: Option<f64>,
    /// Time of the end, s.
    pub ended_s: Option<f64>,
    /// Exit status; null after a signal, or if the command never ran.
    pub exit: Option<i32> => ("exit status", "", [0, 0]),
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if the command was told to stop.
    pub stopped: bool,
    /// Error at the start, or in reading the output.
    pub error: Option<String>,
    /// Round-trip times that it printed, if its output is parsed as that of ping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<RoundTrips> => ("ping", "", [3, 3]),
    /// Output of the command, if it is parsed as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<serde_json::Value>,
}

/// Round-trip times that a program printed; all null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The distribution as of flows; the further percentile follows in JSON.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// 99th percentile.
    pub p99: Option<f64>,
}
}
