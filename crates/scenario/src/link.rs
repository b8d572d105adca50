//! Links: rate, delay, queue and impairments of each direction.

use std::sync::Arc;

use ackclock_emulator::{Course, HoldBack, Impairments, Reorder, Trace};
use ackclock_sim::spec::{DirectionSpec, LinkLayer, LinkSpec, Overhead};
use ackclock_units::parameter::Named;
use ackclock_units::{Rate, Span};

use crate::document::{Entry, Table, Value};
use crate::extent::Extent;
use crate::fields::{Context, Fields};
use crate::keys::Domain;
use crate::overhead::{LINK_LAYERS, MAX_OVERHEAD, overhead};
use crate::quantity::{Bytes, Kind, Number, Problem, RateOrUnlimited, Time, Whole, is_name};
use crate::report::Diagnostic;
use crate::{course, disciplines, medium, queue};
pub use burst::htb as htb_bucket;
pub(crate) use loss::LOSSES;

mod autorate;
mod burst;
mod device;
mod jitter;
mod loss;
pub(crate) mod slots;

/// The most links of a run.
pub(crate) const MAX_LINKS: usize = 10_000;

/// Reads `[links.NAME]`.
pub(crate) fn read<'a>(cx: &'a Context<'a>, entry: &'a Entry) -> Option<LinkSpec> {
    let path = format!("links.{}", entry.key);
    if !is_name(&entry.key) {
        let label = "found this name";
        let error = Diagnostic::new("not a valid link name", &entry.key_place, label);
        cx.report.push(error.note("expected a letter, then letters, digits, `-` and `_`"));
        return None;
    }
    let Some(table) = entry.node.table() else {
        let error =
            Diagnostic::new(format!("{path}: not a table"), &entry.node.place, format!("found {}", entry.node.found()));
        cx.report.push(error.note(format!("expected a section `[{path}]` with at least `rate`")));
        return None;
    };
    let mut fields = Fields::new(cx, table, &path, &entry.key_place);
    let (forward, schedule) = direction(&mut fields, &entry.key, None);
    let sizes = fields.has_converted().then_some(table);
    let is_htb = fields.peek("burst").is_some_and(burst::is_htb);
    let mut back = fields.table(
        ("reverse", "keys of the reverse direction that differ"),
        "the keys that differ on the way back, such as { rate = \"1gbit\" }",
    );
    let reverse = match &mut back {
        Some(back) => direction(back, &entry.key, Some(Forward { spec: &forward, schedule, sizes, is_htb })).0,
        None => forward.clone(),
    };
    let medium = medium::read(&mut fields, [&forward, &reverse]);
    fields.finish();
    if let Some(back) = back {
        back.finish();
    }
    Some(LinkSpec { name: entry.key.clone(), forward, reverse, medium, is_interface: false })
}

/// The properties that the way back takes from the other direction.
#[derive(Clone, Copy)]
struct Forward<'f, 'a> {
    spec: &'f DirectionSpec,
    /// Its schedule as it stands in the file.
    schedule: Option<&'a Entry>,
    /// Its keys, if sizes of its queue follow from its rate.
    sizes: Option<&'a Table>,
    /// Its bucket follows from its rate.
    is_htb: bool,
}

/// The reference of sizes of a direction's queue, in other units.
fn extent(fields: &Fields<'_>, link: &str, rate: Option<Option<Rate>>, base: &DirectionSpec) -> Extent {
    let bytes = |key| fields.peek(key).and_then(|node| Bytes(0, MAX_OVERHEAD).read(node).ok());
    let layer = fields.peek("linklayer").and_then(|node| LINK_LAYERS.read(node).ok().and_then(LinkLayer::by_name));
    let overhead = Overhead {
        bytes: bytes("overhead").map_or(base.overhead.bytes, |bytes| bytes as i32),
        mpu: bytes("mpu").map_or(base.overhead.mpu, |bytes| bytes as u32),
        layer: layer.unwrap_or(base.overhead.layer),
    };
    // Nothing is said of sizes at a rate that is wrong.
    let rate = rate.unwrap_or(Rate::from_bps(1));
    Extent { link: link.to_owned(), rate, overhead }
}

/// Reads the keys of a direction, and its schedule as it stands in the file; what the way back does
/// not say is as in `forward`.
fn direction<'a>(
    fields: &mut Fields<'a>,
    link: &str,
    forward: Option<Forward<'_, 'a>>,
) -> (DirectionSpec, Option<&'a Entry>) {
    // The way back takes these from the other direction without reading them.
    if forward.is_some() {
        queue::declare(fields, queue::QUEUE);
        fields.declare(loss::LOSS, || LOSSES.kinds());
    }
    let base = forward.map_or_else(bare, |forward| forward.spec.clone());
    let way_back = forward.is_some();
    let errors = fields.errors();
    let (rate, trace) = pace(fields, forward.map(|forward| forward.spec));
    let extent = extent(fields, link, (fields.errors() == errors).then_some(rate), &base);
    let queue = match forward.and_then(|forward| forward.sizes) {
        _ if !way_back || fields.get("queue").is_some() => queue::read(fields, &extent),
        // Its sizes are those at the rate of this direction, if it has one.
        Some(table) if extent.rate.is_some() => queue::read(&mut fields.silent(table), &extent),
        _ => base.queue,
    };
    let bucket = match (forward, extent.rate) {
        (Some(Forward { is_htb: true, .. }), Some(rate)) => Some(burst::htb(rate)),
        _ => base.burst,
    };
    let wire = base.impairments;
    let loss = if trace.as_deref().is_some_and(Trace::has_loss) {
        fields.declare(loss::LOSS, || LOSSES.kinds());
        refuse_traced(fields, "loss");
        wire.loss
    } else if way_back && fields.get("loss").is_none() {
        wire.loss
    } else {
        loss::read(fields)
    };
    let jitter = (wire.jitter_distribution, wire.jitter_table);
    let jitter_table;
    let mut spec = DirectionSpec {
        rate,
        burst: fields.or(
            (
                "burst",
                "size of a token bucket that replaces the transmitter; `htb`: `tc`'s default for an HTB class of \
                 this rate",
            ),
            bucket,
            burst::BurstSize(extent.rate),
        ),
        device: device::read(fields, base.device),
        delay: delay(fields, trace.as_deref(), base.delay),
        overhead: overhead(fields, base.overhead),
        queue,
        impairments: Impairments {
            loss,
            duplicate: fields.or(
                ("duplicate", "probability that a packet is delivered twice"),
                wire.duplicate,
                Number(0.0, 1.0),
            ),
            corrupt: fields.or(("corrupt", "probability of a bit error in a packet"), wire.corrupt, Number(0.0, 1.0)),
            jitter: fields.or(
                (
                    "jitter",
                    "spread of the delay: `uniform` adds 0 to `jitter` (netem: minus to plus); others vary \
                     around `delay`, in multiples of it",
                ),
                wire.jitter,
                Time::Any,
            ),
            jitter_distribution: {
                let distribution;
                (distribution, jitter_table) = jitter::distribution(fields, jitter);
                distribution
            },
            jitter_table,
            jitter_correlation: fields.or(
                ("jitter_correlation", "correlation of a packet's jitter with the previous packet's"),
                wire.jitter_correlation,
                Number(0.0, 1.0),
            ),
            reorder: reorder(fields, wire.reorder),
        },
        course: Course::default(),
    };
    let schedule = fields.get("schedule").or(forward.and_then(|forward| forward.schedule));
    let rate = if trace.as_ref().is_some_and(|trace| trace.has_rate()) { None } else { Some(rate) };
    let errors = fields.errors();
    let base_of = course::Base { rate, trace: trace.as_deref(), queue: &spec.queue, extent };
    let changes = course::schedule(fields, schedule, base_of);
    let slots = slots::read(fields, slots::SLOTS, base.course.slots);
    let autorate = autorate::read(fields, base.course.autorate, &spec.queue);
    spec.course = Course { schedule: changes, trace, slots, autorate };
    check_course(fields, &spec);
    check_device(fields, &spec);
    // Errors of a schedule are not reported for the way back once more.
    let right = fields.errors() == errors;
    (spec, schedule.filter(|_| right))
}

/// A direction of which the file says nothing.
pub(crate) fn bare() -> DirectionSpec {
    DirectionSpec {
        rate: None,
        burst: None,
        device: None,
        delay: Span::ZERO,
        overhead: Overhead::default(),
        queue: disciplines::default(),
        impairments: Impairments::default(),
        course: Course::default(),
    }
}

/// Rejects other features beside schedules, traces and slots, which need a transmitter.
fn check_course(fields: &Fields<'_>, spec: &DirectionSpec) {
    let Course { schedule, trace, autorate, .. } = &spec.course;
    let changes = !schedule.is_empty() || trace.is_some() || autorate.is_some();
    let found = if spec.burst.is_some() && spec.course.slots.is_some() {
        let expected = "one of `burst` and `slots`; the other is `false`";
        (Problem::new("a token bucket (`burst`) has no slots", expected), "has `slots`")
    } else if let (Some(problem), true) = (constant(spec), changes) {
        (problem, "has a `schedule`, a `trace` or `autorate`")
    } else if autorate.is_some() && schedule.iter().any(|change| change.queue.is_some()) {
        let expected = "a schedule of other keys, or `autorate = false`";
        (Problem::new("the queue is that of `autorate`", expected), "has a `schedule` with `queue`")
    } else {
        return;
    };
    let (Problem { title, expected, .. }, label) = found;
    let error = Diagnostic::new(format!("{}: {title}", fields.shown()), fields.place(), label);
    fields.push(error.note(format!("expected {expected}")));
}

/// A device transmits at a constant rate, and does nothing else.
fn check_device(fields: &Fields<'_>, spec: &DirectionSpec) {
    let unlike = if spec.device.is_none() {
        return;
    } else if spec.burst.is_some() {
        "has a token bucket (`burst`)"
    } else if spec.course.slots.is_some() {
        "has `slots`"
    } else if spec.rate.is_none() && spec.course.trace.is_none() {
        "has no limited `rate`"
    } else {
        return;
    };
    let title = format!("{}: a device (`device_limit`) is below a transmitter of constant rate", fields.shown());
    let expected = "expected a limited `rate` without `burst` and `slots`, or `device_limit = false`";
    fields.push(Diagnostic::new(title, fields.place(), unlike).note(expected));
}

/// Why a direction cannot change, if it cannot.
pub(crate) fn constant(spec: &DirectionSpec) -> Option<Problem> {
    if spec.burst.is_some() {
        let expected = "a transmitter, which is `burst = false`";
        Some(Problem::new("a token bucket (`burst`) does not change", expected))
    } else if spec.course.slots.is_some() {
        let expected = "a constant `rate`, or `slots = false`";
        Some(Problem::new("a link with `slots` does not change", expected))
    } else if spec.device.is_some() {
        let expected = "a transmitter by itself, which is `device_limit = false`";
        Some(Problem::new("a link with a device (`device_limit`) does not change", expected))
    } else {
        None
    }
}

/// The delay of a direction, which is the mean of a trace if there is one.
fn delay(fields: &mut Fields<'_>, trace: Option<&Trace>, base: Span) -> Span {
    const KEY: (&str, &str) = ("delay", "one-way propagation delay, after transmission");
    match trace.and_then(Trace::mean_delay) {
        Some(mean) => {
            fields.declare(KEY, || Time::Any.domain());
            refuse_traced(fields, KEY.0);
            mean
        }
        None => fields.or(KEY, base, Time::Any),
    }
}

/// Rejects a key that a trace takes the place of.
fn refuse_traced(fields: &mut Fields<'_>, key: &'static str) {
    if let Some(entry) = fields.get(key) {
        let expected = format!("either `{key}` or a trace of it");
        fields.reject(key, &entry.node, Problem::new(format!("the {key} is that of the trace"), expected));
    }
}

/// The rate of a direction, which is the mean of a trace if there is one.
fn pace(fields: &mut Fields<'_>, forward: Option<&DirectionSpec>) -> (Option<Rate>, Option<Arc<Trace>>) {
    fields.declare(("rate", "rate of the transmitter"), || RateOrUnlimited.domain());
    fields.get("rate");
    let own = course::trace(fields);
    // Nothing is said of the rate beside a trace that is wrong.
    if own.as_ref().is_some_and(|trace| trace.as_ref().is_none_or(|trace| trace.has_rate())) {
        let trace = own.flatten();
        if let Some(entry) = fields.get("rate") {
            let problem = Problem::new("the rate is that of the trace", "either `rate` or `trace`");
            fields.reject("rate", &entry.node, problem);
        }
        return (trace.as_ref().and_then(|trace| course::mean(trace)), trace);
    }
    let trace = own.flatten();
    match forward {
        Some(forward) => {
            let given = fields.maybe("rate", RateOrUnlimited);
            // A key of its own takes the place of that part of a trace.
            let own = [given.is_some(), fields.peek("delay").is_some(), fields.peek("loss").is_some()];
            let inherited = || match &forward.course.trace {
                Some(trace) if own == [false; 3] => Some(Arc::clone(trace)),
                Some(trace) => trace.without(own).map(Arc::new),
                None => None,
            };
            (given.unwrap_or(forward.rate), trace.or_else(inherited))
        }
        None => {
            let expected = "a rate such as \"10mbit\", \"unlimited\", or a `trace`";
            (fields.required("rate", RateOrUnlimited, expected).flatten(), trace)
        }
    }
}

/// Most packets by which one may be held back: more than any sender has in flight.
const MAX_EXTENT: u64 = 1 << 20;

/// Reads the permission for jitter to change the order, or a table for packets that are held back.
fn reorder(fields: &mut Fields<'_>, base: Reorder) -> Reorder {
    fields.declare(("reorder", "reordering, by jitter or by the table"), || {
        Domain::Either(vec![Domain::Flag, Domain::Table])
    });
    match fields.get("reorder").map(|entry| &entry.node) {
        None => {
            match base {
                Reorder::Never | Reorder::ByJitter => fields.fill("reorder", base == Reorder::ByJitter),
                Reorder::HoldBack(hold) => {
                    hold_back(&mut fields.section("reorder", ""), hold);
                }
            }
            base
        }
        Some(node) => match &node.value {
            Value::Boolean(false) => Reorder::Never,
            Value::Boolean(true) => Reorder::ByJitter,
            Value::Table(_) => {
                let mut section = fields.section("reorder", "");
                let base = match base {
                    Reorder::HoldBack(hold) => hold,
                    Reorder::Never | Reorder::ByJitter => HoldBack::default(),
                };
                let hold = hold_back(&mut section, base);
                section.finish();
                Reorder::HoldBack(hold)
            }
            _ => {
                let expected = "`true` if jitter may change the order, `false`, or a table such as \
                                { extent = 8, probability = 0.01 }";
                fields.reject("reorder", node, Problem::new("not the right type", expected));
                base
            }
        },
    }
}

fn hold_back(section: &mut Fields<'_>, base: HoldBack) -> HoldBack {
    HoldBack {
        probability: section.or(
            ("probability", "probability that a packet is held back"),
            base.probability,
            Number(0.0, 1.0),
        ),
        extent: section.or(
            ("extent", "number of later packets that overtake it"),
            base.extent.into(),
            Whole(0, MAX_EXTENT),
        ) as u32,
        timeout: section.or(("timeout", "longest time that it is held back"), base.timeout, Time::Any),
    }
}
