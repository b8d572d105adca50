//! The results of applications that are no bulk transfers.

use serde::{Deserialize, Serialize};

use super::{Name, Spread};
use crate::metrics::metrics;

metrics! {
/// What the application of a flow measures: its kind, and the part that belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApplicationSummary {
    /// `cbr`, `on_off` and so on.
    #[serde(deserialize_with = "super::name::one")]
    pub kind: Name,
    /// Of an application that writes on its own; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
    /// Of a client that waits for answers; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestsSummary>,
    /// Of a player of video; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSummary>,
    /// Of a browser; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PagesSummary>,
    /// Of netperf's stream test; left out for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netperf: Option<NetperfSummary>,
    /// Of probes of responsiveness; left out where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbesSummary>,
    /// Of a connection with load and probes; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadSummary>,
}

/// Responsiveness under working conditions: what all probes of a run come to
/// (draft-ietf-ippm-responsiveness). Times are trimmed means, ms; null without samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponsivenessSummary {
    /// Round trips per minute on new connections.
    pub foreign_rpm: Option<f64>,
    /// Those on connections with load.
    pub loaded_rpm: Option<f64>,
    /// TCP handshake of a foreign probe.
    pub tcp_ms: Option<f64>,
    /// Its handshake of TLS.
    pub tls_ms: Option<f64>,
    /// Its request.
    pub http_ms: Option<f64>,
    /// Request on a connection with load.
    pub loaded_ms: Option<f64>,
    /// Foreign probes that were answered.
    pub foreign_probes: u64,
    /// Self probes that were answered.
    pub self_probes: u64,
}

/// What became of probes of responsiveness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbesSummary {
    /// Probes that were sent.
    pub made: u64,
    /// Those whose response has arrived as a whole.
    pub answered: u64,
    /// Those that were left out because too many were unanswered.
    pub skipped: u64,
    /// TCP handshakes, of new connections.
    pub tcp_ms: Spread,
    /// Handshakes of TLS, of new connections.
    pub tls_ms: Spread,
    /// From a request until its response has arrived.
    pub http_ms: Spread,
}

/// The load that a connection has carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// `download`, `upload` or `idle`.
    #[serde(deserialize_with = "super::name::one")]
    pub transfer: Name,
    /// Bytes that have arrived in order that way, with requests or responses between them.
    pub bytes: u64,
    /// Those, over the time of the flow.
    pub goodput_bps: f64,
}

/// What became of the pages of a browser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagesSummary {
    /// Pages that were asked for.
    pub begun: u64,
    /// Pages that have arrived with all of their objects.
    pub loaded: u64,
    /// Base documents and objects that have arrived as a whole.
    pub objects: u64,
    /// Bytes of them that have arrived in order.
    pub response_bytes: u64,
    /// From the request of a page until all of it has arrived.
    pub load_ms: Spread,
}

/// What became of the tries of netperf's stream test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetperfSummary {
    /// Tries that have started.
    pub tries: u64,
    /// Those whose data and report have arrived as a whole.
    pub completed: u64,
    /// Those that were given up: no connection, or no response.
    pub failed: u64,
    /// What netperf reports of those that completed: the bytes that have arrived over the time
    /// since the data connection was open, until both ends had closed it.
    pub goodput_bps: Spread,
}

/// What the viewer of a video has seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoSummary {
    /// Segments that have arrived as a whole.
    pub segments: u64,
    /// Changes of the bitrate from one of them to the next.
    pub switches: u64,
    /// Their mean bitrate, by their durations, bit/s.
    pub bitrate_bps: f64,
    /// From the start of the flow until playback began, s; `None` if it has not.
    pub startup_s: Option<f64>,
    /// How often the buffer was empty during playback.
    pub rebuffers: u64,
    /// How long playback has paused for that, s.
    pub rebuffering_s: f64,
    /// The share of this in the time since playback began, what followed the end left out.
    pub rebuffering_ratio: f64,
    /// How much of the video has been played, s.
    pub played_s: f64,
    /// Bytes of segments that have arrived in order.
    pub response_bytes: u64,
    /// From the request of a segment until it has arrived as a whole; the first one waits for the
    /// connection.
    pub download_ms: Spread,
}

/// What became of the requests of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsSummary {
    /// Requests that were made.
    pub made: u64,
    /// Requests whose response has arrived as a whole.
    pub answered: u64,
    /// Those, over the time of the flow.
    pub per_second: f64,
    /// Bytes of responses that have arrived in order at the client.
    pub response_bytes: u64,
    /// From a request until the client has all of the response; the first one waits for the
    /// connection.
    pub completion_ms: Spread,
}

/// What became of the messages of an application that writes without waiting for an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagesSummary {
    /// Messages that the socket of the sender has taken as a whole.
    pub written: u64,
    /// Messages that have reached the receiving application as a whole.
    pub delivered: u64,
    /// From the time at which the application has a message to write until the receiving
    /// application has all of it. A full send buffer does not change the former.
    pub latency_ms: Spread,
    /// How long the application had something to write, and the send buffer was full, s.
    pub blocked_s: f64,
}
}
