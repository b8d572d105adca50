//! `*.sqlog`: what a sender's loss recovery and congestion control did, as qlog.
//!
//! # Source
//! draft-ietf-quic-qlog-main-schema-13, sections 5 and 11.2 (a log as JSON text sequences, RFC 7464),
//! and draft-ietf-quic-qlog-quic-events-13, section 7 (recovery events).
//!
//! # Departures
//! - The events of a TCP sender are those of QUIC: RFC 9002 defines its variables as RFC 6298, 5681
//!   and 6675 do for TCP, no schema exists for TCP, and tools know these.
//! - A lost segment of TCP, which has no packet number, is a frame of stream 0.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_stack::{LostPacket, RecoveryEvent, RecoveryMetrics, SentPacket};
use ackclock_units::{Span, Time};
use serde_json::json;

use crate::rows::{CsvRows, millis, whole};

/// The schema of events: that of a draft, by its number, until there is an RFC.
const EVENTS: &str = "urn:ietf:params:qlog:events:quic-13";

/// Begins a text of a sequence (RFC 7464 section 2.2).
const SEPARATOR: char = '\u{1e}';

/// An event of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QlogRecord {
    /// Time of the event.
    pub at: Time,
    /// Index of the log, in the order in which they were requested.
    pub log: usize,
    /// Number of the subflow, from 1; `None` for a flow of one path.
    pub subflow: Option<u16>,
    /// The event.
    pub event: RecoveryEvent,
}

/// The destination of a run's records, those of one log in order of time.
pub trait QlogSink: fmt::Debug {
    /// Takes a record; may break the run off.
    fn record(&mut self, record: &QlogRecord) -> ControlFlow<()>;
}

/// Writes the log of a flow: a text for each event that changes something. Values of time are exact,
/// in ms; time 0 of a run is the epoch, as in captures. Events of a subflow belong to a group.
#[derive(Debug)]
pub struct QlogSeq<W> {
    out: CsvRows<W>,
    flow: String,
    /// The last values, by the number of the subflow, 0 of a flow of one path.
    known: Vec<Known>,
}

/// The last values of a sender that were written.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    metrics: RecoveryMetrics,
    state: Option<&'static str>,
}

impl<W: Write> QlogSeq<W> {
    /// A log of the sender of `flow` that contains only its header.
    pub fn new(out: W, flow: &str) -> QlogSeq<W> {
        let trace = json!({
            "vantage_point": { "name": flow, "type": "client" },
            "common_fields": {
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z" },
            },
            "event_schemas": [EVENTS],
        });
        // The schema comes first: tools look for it in the first 256 bytes.
        let header = format!(
            "{SEPARATOR}{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\"title\":{},\"trace\":{trace}}}",
            json!(flow)
        );
        QlogSeq { out: CsvRows::new(out, &header), flow: flow.to_owned(), known: Vec::new() }
    }

    /// Adds an event, unless it changes nothing.
    pub fn add(&mut self, at: Time, subflow: Option<u16>, event: &RecoveryEvent) -> ControlFlow<()> {
        let number = subflow.map_or(0, usize::from);
        if self.known.len() <= number {
            self.known.resize(number + 1, Known::default());
        }
        let (known, flow) = (&mut self.known[number], &*self.flow);
        match *event {
            RecoveryEvent::Metrics(new) => {
                let old = std::mem::replace(&mut known.metrics, new);
                if old == new {
                    return ControlFlow::Continue(());
                }
                self.out.add(|out| {
                    text(out, at, (flow, subflow), "recovery_metrics_updated", |out| changes(out, &old, &new))
                })
            }
            RecoveryEvent::State(new) => {
                let old = known.state.replace(new);
                if old == Some(new) {
                    return ControlFlow::Continue(());
                }
                self.out.add(|out| {
                    text(out, at, (flow, subflow), "congestion_state_updated", |out| {
                        if let Some(old) = old {
                            out.extend(["\"old\":\"", old, "\","]);
                        }
                        out.extend(["\"new\":\"", new, "\""]);
                    })
                })
            }
            // `tcp.csv` has them.
            RecoveryEvent::Sampled(_) => ControlFlow::Continue(()),
            RecoveryEvent::Sent(SentPacket { kind, number, bytes }) => self.out.add(|out| {
                text(out, at, (flow, subflow), "packet_sent", |out| {
                    out.extend(["\"header\":{\"packet_type\":\"", kind, "\",\"packet_number\":"]);
                    whole(out, number);
                    out.push_str("},\"raw\":{\"length\":");
                    whole(out, bytes);
                    out.push('}');
                })
            }),
            RecoveryEvent::Lost(LostPacket { number, data, by_timeout }) => self.out.add(|out| {
                text(out, at, (flow, subflow), "packet_lost", |out| {
                    let mut comma = "";
                    if let Some(number) = number {
                        out.push_str("\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":");
                        whole(out, number);
                        out.push('}');
                        comma = ",";
                    }
                    if let Some((offset, bytes)) = data {
                        out.push_str(comma);
                        out.push_str("\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":");
                        whole(out, offset);
                        out.push_str(",\"raw\":{\"payload_length\":");
                        whole(out, bytes);
                        out.push_str("}}]");
                        comma = ",";
                    }
                    if by_timeout {
                        out.push_str(comma);
                        out.push_str("\"trigger\":\"pto_expired\"");
                    }
                })
            }),
        }
    }

    /// Writes what is left, and gives the writer back.
    ///
    /// # Errors
    /// The first error of the writer, whenever it happened. It has broken the run off then.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

/// An event with its data.
fn text(
    out: &mut String,
    at: Time,
    (flow, subflow): (&str, Option<u16>),
    name: &str,
    data: impl FnOnce(&mut String),
) -> fmt::Result {
    out.push(SEPARATOR);
    out.push_str("{\"time\":");
    millis(out, Some(at.since(Time::ZERO)));
    out.extend([",\"name\":\"quic:", name, "\""]);
    if let Some(subflow) = subflow {
        // The name that a summary has for it, which needs no escapes.
        out.extend([",\"group_id\":\"", flow, ".subflow"]);
        whole(out, subflow.into());
        out.push('"');
    }
    out.push_str(",\"data\":{");
    data(out);
    out.push_str("}}\n");
    Ok(())
}

/// The variables that have another value than before. One that is gone has no text in this schema.
fn changes(out: &mut String, old: &RecoveryMetrics, new: &RecoveryMetrics) {
    let mut separator = "";
    let mut begin = |out: &mut String, name: &str| {
        out.extend([separator, "\"", name, "\":"]);
        separator = ",";
    };
    for (name, old, new) in [
        ("min_rtt", old.min_rtt, new.min_rtt),
        ("smoothed_rtt", old.smoothed_rtt, new.smoothed_rtt),
        ("latest_rtt", old.latest_rtt, new.latest_rtt),
        ("rtt_variance", old.rtt_variance, new.rtt_variance),
    ] {
        if let (Some(rtt), true) = (new, old != new) {
            begin(out, name);
            millis(out, Some::<Span>(rtt));
        }
    }
    for (name, old, new) in [
        ("pto_count", old.pto_count.map(u64::from), new.pto_count.map(u64::from)),
        ("congestion_window", old.congestion_window, new.congestion_window),
        ("bytes_in_flight", old.bytes_in_flight, new.bytes_in_flight),
        ("ssthresh", old.ssthresh, new.ssthresh),
        ("pacing_rate", old.pacing_rate, new.pacing_rate),
    ] {
        if let (Some(value), true) = (new, old != new) {
            begin(out, name);
            whole(out, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn written(events: &[(u64, Option<u16>, RecoveryEvent)]) -> Vec<String> {
        let mut log = QlogSeq::new(Vec::new(), "bulk.0");
        for (ms, subflow, event) in events {
            assert!(log.add(Time::from_millis(*ms), *subflow, event).is_continue());
        }
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        // RFC 7464 section 2.2: RS, a JSON text, LF.
        let texts = text.strip_suffix('\n').unwrap().split('\n');
        texts.map(|text| text.strip_prefix(SEPARATOR).unwrap().to_owned()).collect()
    }

    #[test]
    fn the_header_says_what_it_is_in_256_bytes() {
        let [header] = &written(&[])[..] else { panic!("one text") };
        assert!(header.find("application/qlog+json-seq").is_some_and(|at| at < 200), "{header}");
        let header: Value = serde_json::from_str(header).unwrap();
        assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(header["trace"]["event_schemas"][0], "urn:ietf:params:qlog:events:quic-13");
    }

    #[test]
    fn an_event_says_what_has_changed() {
        let first = RecoveryMetrics {
            smoothed_rtt: Some(Span::from_micros(40_250)),
            congestion_window: Some(14_480),
            ..RecoveryMetrics::default()
        };
        let second = RecoveryMetrics { ssthresh: Some(7240), congestion_window: Some(7240), ..first };
        let lost = |data, by_timeout| RecoveryEvent::Lost(LostPacket { number: None, data, by_timeout });
        let texts = written(&[
            (1500, None, RecoveryEvent::Metrics(first)),
            (1500, None, RecoveryEvent::State("Open")),
            (1501, None, RecoveryEvent::Metrics(first)),
            (1501, None, RecoveryEvent::State("Open")),
            (1502, None, lost(Some((2896, 1448)), true)),
            (1502, None, lost(None, false)),
            (1502, None, RecoveryEvent::Lost(LostPacket { number: Some(9), data: None, by_timeout: true })),
            (1502, None, RecoveryEvent::State("Loss")),
            (1502, None, RecoveryEvent::Metrics(second)),
            (1503, Some(2), RecoveryEvent::Metrics(first)),
            (1504, None, RecoveryEvent::Sent(SentPacket { kind: "1RTT", number: 7, bytes: 1200 })),
        ]);
        let event = |time: &str, name: &str, data: &str| {
            format!("{{\"time\":{time},\"name\":\"quic:{name}\",\"data\":{{{data}}}}}")
        };
        let all = "\"smoothed_rtt\":40.250000,\"congestion_window\":14480";
        let frame = "\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":2896,\"raw\":\
                     {\"payload_length\":1448}}],\"trigger\":\"pto_expired\"";
        let numbered = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":9},\"trigger\":\"pto_expired\"";
        let header = "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":7},\"raw\":{\"length\":1200}";
        let expected = [
            event("1500.000000", "recovery_metrics_updated", all),
            event("1500.000000", "congestion_state_updated", "\"new\":\"Open\""),
            event("1502.000000", "packet_lost", frame),
            event("1502.000000", "packet_lost", ""),
            event("1502.000000", "packet_lost", numbered),
            event("1502.000000", "congestion_state_updated", "\"old\":\"Open\",\"new\":\"Loss\""),
            event("1502.000000", "recovery_metrics_updated", "\"congestion_window\":7240,\"ssthresh\":7240"),
            event("1503.000000", "recovery_metrics_updated\",\"group_id\":\"bulk.0.subflow2", all),
            event("1504.000000", "packet_sent", header),
        ];
        assert_eq!(texts[1..], expected);
        assert!(texts.iter().all(|text| serde_json::from_str::<Value>(text).is_ok()), "{texts:?}");
    }
}
