//! The writes of a flow's sender, with their times.

use ackclock_sim::spec::Application;
use ackclock_traffic::{Distribution, OnOff, Pattern, RequestPattern, Trace};

use crate::distribution::{self, Unit};
use crate::fields::Fields;
use crate::keys;
use crate::quantity::{Bytes, Flag, OneOf, OrOff, PlainRate, Problem, Time, Whole};
use crate::{netperf, probe, video, web};

pub(crate) const KINDS: OneOf<'_> = OneOf {
    what: "application",
    names: &["bulk", "cbr", "on_off", "poisson", "trace", "request", "web", "video", "load", "probe", "netperf"],
};

/// Applications over UDP.
pub(crate) const OVER_UDP: OneOf<'_> =
    OneOf { what: "application over UDP", names: &["cbr", "on_off", "poisson", "trace", "voip", "ping"] };

/// Reads `application`.
pub(crate) fn read(fields: &mut Fields<'_>) -> Application {
    if let Some(node) = fields.peek("application") {
        let kind = node.table().map_or(node.str(), |table| table.get("kind")?.node.str());
        if let Some(kind) = kind.filter(|kind| OVER_UDP.names.contains(kind) && !KINDS.names.contains(kind)) {
            let found = "an application over UDP";
            let problem = Problem::new(format!("`{kind}` is {found}"), "`transport = \"udp\"` beside it");
            fields.reject("application", node, problem);
            fields.get("application");
            return Application::default();
        }
    }
    let application = fields.choose(keys::APPLICATION, "bulk", &KINDS, |kind, fields| match kind {
        "cbr" => messages(kind, cbr(fields)),
        "on_off" => messages(kind, on_off(fields)),
        "poisson" => messages(kind, poisson(fields)),
        "trace" => messages(kind, trace(fields)),
        "request" => request(fields),
        "web" => web::read(fields),
        "video" => video::read(fields),
        "load" => Some(probe::load(fields)),
        "probe" => Some(probe::foreign(fields)),
        "netperf" => Some(netperf::read(fields)),
        _ => None,
    });
    application.unwrap_or_default()
}

/// The name of an application that asks for responses, and its own key for how much it asks for.
pub(crate) fn of_client(application: &Application) -> Option<(&'static str, &'static str)> {
    match application {
        Application::Requests(_) => Some(("request", "requests")),
        Application::Video(_) => Some(("video", "length")),
        Application::Web(_) => Some(("web", "pages")),
        Application::Load(_) => Some(("load", "stop")),
        Application::Probe(_) => Some(("probe", "stop")),
        Application::Netperf(_) => Some(("netperf", "stop")),
        Application::Bulk | Application::Messages { .. } | Application::Connection => None,
    }
}

fn messages(kind: &'static str, pattern: Option<Pattern>) -> Option<Application> {
    Some(Application::Messages { kind, pattern: pattern? })
}

const RATE: &str = "a rate with its unit, such as \"1mbit\"";

fn cbr(fields: &mut Fields<'_>) -> Option<Pattern> {
    let rate = fields.required(keys::RATE, PlainRate, RATE);
    let size = distribution::read(fields, keys::SIZE, Unit::Bytes);
    Some(Pattern::Paced { rate: rate?, size: size? })
}

pub(crate) fn on_off(fields: &mut Fields<'_>) -> Option<Pattern> {
    let rate = fields.required(keys::RATE, PlainRate, RATE);
    let size = fields.required(keys::SIZE, Bytes(1, Distribution::MOST_BYTES), "a size, such as \"1000B\"");
    let on = distribution::read(fields, ("on", "length of a period with data"), Unit::Time);
    let off = distribution::read(fields, ("off", "length of a pause"), Unit::TimeOrNone);
    match OnOff::new(rate?, size?, on?, off?) {
        Ok(source) => Some(Pattern::OnOff(source)),
        Err(error) => {
            let node = &fields.get("on")?.node;
            fields.reject(
                "on",
                node,
                Problem::new(error.to_string(), "longer times, smaller messages or a higher rate"),
            );
            None
        }
    }
}

/// Messages at independent, exponentially distributed times, at a rate on average.
pub(crate) fn poisson(fields: &mut Fields<'_>) -> Option<Pattern> {
    let rate = fields.required(keys::RATE, PlainRate, RATE);
    let size = distribution::read(fields, keys::SIZE, Unit::Bytes);
    let (rate, size) = (rate?, size?);
    let gap = Distribution::exponential(size.mean() * 8e9 / rate.as_bps() as f64).ok()?;
    match Pattern::renewal(gap, size) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let node = &fields.get("rate")?.node;
            fields.reject("rate", node, Problem::new(error.to_string(), "a lower rate or larger messages"));
            None
        }
    }
}

/// A closed loop over one connection, or with one for each request.
fn request(fields: &mut Fields<'_>) -> Option<Application> {
    let request = distribution::read(fields, keys::SIZE, Unit::Bytes);
    let response = distribution::read(fields, keys::RESPONSE, Unit::Bytes);
    let think = distribution::read_or(fields, keys::THINK, Unit::TimeOrNone, 0.0);
    let count = fields.or(("requests", "how many requests"), None, OrOff(Whole(1, u64::MAX >> 8)));
    let persistent = fields.or(keys::PERSISTENT, true, Flag);
    let pattern = RequestPattern { request: request?, response: response?, think: think?, count, persistent };
    Some(Application::Requests(pattern))
}

pub(crate) fn trace(fields: &mut Fields<'_>) -> Option<Pattern> {
    let repeat = fields.maybe(("repeat", "period after which a trace begins again"), Time::Positive);
    let (text, node) = distribution::file(fields, "file of the trace, relative to the scenario")?;
    let trace = match Trace::parse(&text) {
        Ok(trace) => trace,
        Err(error) => {
            fields.reject("file", node, Problem::new(format!("cannot be used: {error}"), ""));
            return None;
        }
    };
    let Some(period) = repeat else { return Some(Pattern::Trace(trace.into())) };
    match trace.repeated(period) {
        Ok(trace) => Some(Pattern::Trace(trace.into())),
        Err(error) => {
            let node = &fields.get("repeat")?.node;
            fields.reject("repeat", node, Problem::new(error.to_string(), "a longer time"));
            None
        }
    }
}
