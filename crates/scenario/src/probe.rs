//! `application = { kind = "probe", ... }` and `{ kind = "load", ... }`: probes of responsiveness,
//! on connections of their own and between load.

use ackclock_sim::spec::Application;
use ackclock_traffic::{Exchange, LoadPattern, ProbePattern, Transfer};
use ackclock_units::Span;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::quantity::{Bytes, Flag, Kind, OneOf, OrOff, Problem, Time};

/// 100 probes a second are the most of the draft (`MPS`).
const LEAST_INTERVAL: Span = Span::from_millis(10);
const INTERVAL: Span = Span::from_millis(100);
/// The draft's recommendation for TCP_REPLENISH_TIME.
const REPLENISH: Span = Span::from_millis(5);
/// The most bytes of a part of a probe.
const MOST_BYTES: u64 = 1_000_000;

/// A time between two probes.
struct ProbeInterval;

impl Kind for ProbeInterval {
    type Held = Span;

    fn read(&self, node: &Node) -> Result<Span, Problem> {
        let span = Time::Positive.read(node)?;
        if span < LEAST_INTERVAL {
            return Err(Problem::new("too short", format!("at least {LEAST_INTERVAL}")));
        }
        Ok(span)
    }

    fn show(&self, held: &Span) -> Value {
        Time::Positive.show(held)
    }

    fn domain(&self) -> Domain {
        Time::Positive.domain()
    }
}

const TRANSFERS: OneOf<'_> = OneOf { what: "transfer", names: &["download", "upload", "idle"] };

/// The sizes of a request and of a response with one byte, with headers of HTTP.
fn http(fields: &mut Fields<'_>) -> Exchange {
    Exchange {
        request: fields.or(keys::REQUEST_SIZE, 100, Bytes(1, MOST_BYTES)),
        response: fields.or(keys::RESPONSE, 100, Bytes(1, MOST_BYTES)),
    }
}

/// Reads the keys of probes on connections of their own.
pub(crate) fn foreign(fields: &mut Fields<'_>) -> Application {
    let interval = fields.or(keys::INTERVAL, INTERVAL, ProbeInterval);
    let http = http(fields);
    let tls = fields.or(("tls", "probes include a TLS handshake"), true, Flag).then(|| Exchange {
        request: fields.or(("client_hello", "bytes of the client's part of it"), 517, Bytes(1, MOST_BYTES)),
        response: fields.or(("server_hello", "bytes of the server's part of it"), 3500, Bytes(1, MOST_BYTES)),
    });
    Application::Probe(ProbePattern { interval, tls, http })
}

/// Reads the keys of a connection with load.
pub(crate) fn load(fields: &mut Fields<'_>) -> Application {
    let transfer = match fields.or(("transfer", "direction of the load"), "download", TRANSFERS) {
        "upload" => Transfer::Upload,
        "idle" => Transfer::Idle,
        _ => Transfer::Download,
    };
    let interval = fields.or(keys::INTERVAL, INTERVAL, ProbeInterval);
    let replenish = fields.or(
        ("replenish", "data that the loaded side buffers beyond the window, as time"),
        Some(REPLENISH),
        OrOff(Time::Any),
    );
    let warmup = fields.or(("warmup", "load without probes"), Span::ZERO, Time::Any);
    Application::Load(LoadPattern { transfer, interval, replenish, warmup, http: http(fields) })
}
