//! The results of applications that are no bulk transfers.

use serde::{Deserialize, Serialize};

use super::{Name, Spread};
use crate::metrics::metrics;

metrics! {
/// The application of a flow: its kind, and the part for that kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApplicationSummary {
    /// `cbr`, `on_off` and so on.
    #[serde(deserialize_with = "super::name::one")]
    pub kind: Name,
    /// Measures of an application that writes on its own; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
    /// Measures of a client that waits for answers; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestsSummary>,
    /// Measures of a video player; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSummary>,
    /// Measures of a browser; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesSummary>,
    /// Measures of netperf's stream test; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netperf: Option<NetperfSummary>,
    /// Measures of probes of responsiveness; left out without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbesSummary>,
    /// Measures of a connection with load and probes; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadSummary>,
}

/// Responsiveness under working conditions, from all probes of a run. Times are trimmed means, ms;
/// null without samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponsivenessSummary {
    /// Round trips per minute on new connections.
    pub foreign_rpm: Option<f64>,
    /// Responsiveness of connections with load.
    pub loaded_rpm: Option<f64>,
    /// TCP handshake of a foreign probe.
    pub tcp_ms: Option<f64>,
    /// Time of the TLS handshake.
    pub tls_ms: Option<f64>,
    /// Time of the request.
    pub http_ms: Option<f64>,
    /// Request on a connection with load.
    pub loaded_ms: Option<f64>,
    /// Foreign probes that were answered.
    pub foreign_probes: u64,
    /// Self probes that were answered.
    pub self_probes: u64,
}

/// Outcomes of probes of responsiveness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbesSummary {
    /// Probes that were sent.
    pub made: u64,
    /// Probes whose response has arrived completely.
    pub answered: u64,
    /// Probes skipped because too many were unanswered.
    pub skipped: u64,
    /// TCP handshakes, of new connections.
    pub tcp_ms: Spread,
    /// Handshakes of TLS, of new connections.
    pub tls_ms: Spread,
    /// Time from a request until its response has arrived.
    pub http_ms: Spread,
}

/// The load of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// `download`, `upload` or `idle`.
    #[serde(deserialize_with = "super::name::one")]
    pub transfer: Name,
    /// Bytes that have arrived in order that way, with requests or responses between them.
    pub bytes: u64,
    /// Load bytes over the time of the flow.
    pub goodput_bps: f64,
}

/// Outcomes of a browser's pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagesSummary {
    /// Pages requested.
    pub begun: u64,
    /// Pages that have arrived with all of their objects.
    pub loaded: u64,
    /// Base documents and objects that have arrived completely.
    pub objects: u64,
    /// Bytes of them that have arrived in order.
    pub response_bytes: u64,
    /// Time from the request of a page until all of it has arrived.
    pub load_ms: Spread,
}

/// Outcomes of the tries of netperf's stream test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetperfSummary {
    /// Tries that have started.
    pub tries: u64,
    /// Tries whose data and report have arrived completely.
    pub completed: u64,
    /// Tries that were given up: no connection, or no response.
    pub failed: u64,
    /// The rate that netperf reports for completed tries: bytes received over the time from opening
    /// the data connection until both ends closed it.
    pub goodput_bps: Spread,
}

/// The playback quality of a video.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoSummary {
    /// Segments that have arrived completely.
    pub segments: u64,
    /// Changes of the bitrate from one of them to the next.
    pub switches: u64,
    /// Mean bitrate of the segments, weighted by their durations, bit/s.
    pub bitrate_bps: f64,
    /// Time from the start of the flow until playback began, s; `None` if it has not.
    pub startup_s: Option<f64>,
    /// Number of times the buffer was empty during playback.
    pub rebuffers: u64,
    /// Time for which playback paused with an empty buffer, s.
    pub rebuffering_s: f64,
    /// Share of rebuffering in the time from the start of playback to its end.
    pub rebuffering_ratio: f64,
    /// Length of video played, s.
    pub played_s: f64,
    /// Bytes of segments that have arrived in order.
    pub response_bytes: u64,
    /// Time from the request of a segment until it has arrived completely; for the first one
    /// including connection setup.
    pub download_ms: Spread,
}

/// Outcomes of a client's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsSummary {
    /// Requests that were made.
    pub made: u64,
    /// Requests whose response has arrived completely.
    pub answered: u64,
    /// Answered requests over the time of the flow.
    pub per_second: f64,
    /// Bytes of responses that have arrived in order at the client.
    pub response_bytes: u64,
    /// Time from a request until the client has all of the response; for the first one including
    /// connection setup.
    pub completion_ms: Spread,
}

/// Outcomes of the messages of an application that writes without waiting for an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagesSummary {
    /// Messages that the sender's socket has accepted completely.
    pub written: u64,
    /// Messages that the receiving application has received completely.
    pub delivered: u64,
    /// Time from the application's attempt to write a message until the receiving application has
    /// all of it, waits for a full send buffer included.
    pub latency_ms: Spread,
    /// Time in which the application had data and the send buffer was full, s.
    pub blocked_s: f64,
}
}
