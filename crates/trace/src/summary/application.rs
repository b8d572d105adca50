//! The results of applications that are no bulk transfers.

use serde::Serialize;

use super::Spread;

/// What the application of a flow measures: its kind, and the part that belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ApplicationSummary {
    /// `cbr`, `on_off` and so on.
    pub kind: &'static str,
    /// Of an application that writes on its own; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesSummary>,
    /// Of a client that waits for answers; left out for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestsSummary>,
}

/// What became of the requests of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
