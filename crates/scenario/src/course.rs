//! Links that change: the keys `schedule` and `trace` of a direction.

use std::io;
use std::sync::Arc;

use ackclock_aqm::{Drops, QueueSpec};
use ackclock_emulator::{Change, Format, Framed, OPPORTUNITY, Trace, TraceError, Up};
use ackclock_units::parameter::Configurable;
use ackclock_units::{Random, Rate, Span, Time as Instant};

use crate::document::Entry;
use crate::extent::Extent;
use crate::fields::Fields;
use crate::inputs::Inputs;
use crate::keys;
use crate::quantity::{Bytes, Flag, Number, OneOf, Problem, RateOrUnlimited, Text, Time};
use crate::queue;

/// The most changes of a direction.
const MAX_CHANGES: usize = 10_000;

/// The largest trace, in bytes.
pub(crate) const MAX_TRACE: u64 = 64 << 20;

/// The most bytes of an opportunity: a packet of any size.
const MAX_OPPORTUNITY: u64 = 1 << 20;

const FORMATS: OneOf = OneOf { what: "format of traces", names: &["mahimahi", "rates", "path"] };

/// The expected form of a schedule.
const A_CHANGE: &str = "a list of changes in order of time, such as [{ at = \"10s\", rate = \"5mbit\" }]";

/// The keys of a trace's files.
const FILES: [(&str, &str); 3] = [
    ("file", "file of the trace, relative to the scenario"),
    ("delay_file", "file of delays over time, which start with the trace"),
    ("loss_file", "file of probabilities of independent losses over time, which start with the trace"),
];

/// Reads the key `trace`: `None` without one, `Some(None)` if something is wrong with it.
pub(crate) fn trace(fields: &mut Fields<'_>) -> Option<Option<Arc<Trace>>> {
    fields.get("trace")?;
    let Some(mut table) = fields.table(
        ("trace", "time-varying rate, delay and loss from files, in place of those keys"),
        "a table such as { file = \"lte.trace\", format = \"mahimahi\" }",
    ) else {
        return Some(None);
    };
    let files = FILES.map(|key| table.maybe(key, Text));
    let format = table.or(
        ("format", "delivery opportunities of mahimahi, rates over time, or rates, delays and losses over time"),
        "mahimahi",
        FORMATS,
    );
    let repeats = table.or(("loop", "restart the trace at its end"), true, Flag);
    let format = match format {
        "mahimahi" => {
            let bytes = table.or(
                ("opportunity", "bytes of a delivery opportunity"),
                u64::from(OPPORTUNITY),
                Bytes(1, MAX_OPPORTUNITY),
            );
            Format::Mahimahi { bytes: bytes as u32 }
        }
        "rates" => Format::Rates,
        _ => Format::Path,
    };
    if files[0].is_none() {
        match ["format", "opportunity"].into_iter().find_map(|key| Some((key, table.peek(key)?))) {
            Some((key, node)) => table.reject(key, node, Problem::new("has no effect", "`file` beside it")),
            None if files[1..].iter().all(Option::is_none) => {
                table.missing("file", "the path of the trace, relative to the scenario");
            }
            None => {}
        }
    }
    let (traces, inputs) = (table.traces(), table.inputs());
    let read = || load(inputs, &files, format, repeats);
    let read = match traces {
        _ if files.iter().all(Option::is_none) => None,
        Some(traces) => {
            let paths = files.each_ref().map(|file| file.as_ref().map(|file| inputs.path(file)));
            Some(traces.get((paths, format, repeats), read))
        }
        None => Some(read().map(Arc::new)),
    };
    let read = match read {
        Some(Ok(trace)) => Some(trace),
        Some(Err((key, problem))) => {
            if let Some(entry) = table.get(key) {
                table.reject(key, &entry.node, problem);
            }
            None
        }
        None => None,
    };
    table.finish();
    Some(read)
}

/// Reads the files; a problem comes with the key of its file.
fn load(
    inputs: &Inputs,
    files: &[Option<String>; 3],
    format: Format,
    repeats: bool,
) -> Result<Trace, (&'static str, Problem)> {
    let mut trace = Trace::constant(repeats);
    for ((key, _), file) in FILES.into_iter().zip(files) {
        let Some(name) = file else { continue };
        let problem = |problem: Problem| (key, problem);
        let parse = |text: &str| match key {
            "file" => Trace::parse(text, format, repeats),
            "delay_file" => trace.clone().with_delays(text),
            _ => trace.clone().with_losses(text),
        };
        let has = (trace.has_delay(), trace.has_loss());
        if let ("delay_file", (true, _)) | ("loss_file", (_, true)) = (key, has) {
            let expected = format!("either that column of `file` or `{key}`");
            return Err(problem(Problem::new("`file` has such a column", expected)));
        }
        trace = text(inputs, name, parse).map_err(problem)?;
        if key == "file" && trace.has_rate() && trace.mean_bps() == 0 {
            return Err(problem(Problem::new(format!("{name}: every rate is 0"), "a rate above 0")));
        }
    }
    Ok(trace)
}

/// Parses the text of a file, which errors call `name`.
fn text(inputs: &Inputs, name: &str, parse: impl FnOnce(&str) -> Result<Trace, TraceError>) -> Result<Trace, Problem> {
    let unreadable = |error: io::Error| {
        Problem::new(format!("cannot read {name}: {error}"), "a file, by its path relative to the scenario")
    };
    let bytes = inputs.read(name, MAX_TRACE).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_TRACE {
        return Err(Problem::new(format!("{name} is larger than {MAX_TRACE} bytes"), "a shorter trace"));
    }
    let text = str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let byte = bytes.get(before.len()).copied().unwrap_or(0);
        Problem::new(format!("{name}, line {line}: the byte 0x{byte:02x} is not UTF-8"), "a trace, which is text")
    })?;
    // A byte order mark is no part of the text.
    parse(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| {
        let line = error.line.map(|line| format!(", line {line}")).unwrap_or_default();
        Problem::new(format!("{name}{line}: {}", error.problem), error.expected)
    })
}

/// The mean rate of a trace.
pub(crate) fn mean(trace: &Trace) -> Option<Rate> {
    Rate::from_bps(trace.mean_bps().min(Rate::MAX.as_bps()))
}

/// The values that a schedule changes.
#[derive(Debug)]
pub(crate) struct Base<'a> {
    /// The rate at the start; `Some(None)` is unlimited. `None` if a trace sets it.
    pub(crate) rate: Option<Option<Rate>>,
    /// The trace of the direction, which may set the delay and the losses, too.
    pub(crate) trace: Option<&'a Trace>,
    pub(crate) queue: &'a QueueSpec,
    /// The reference of its sizes in other units.
    pub(crate) extent: Extent,
}

/// Reads the key `schedule`, or that of the other direction, which has been read there.
pub(crate) fn schedule(fields: &mut Fields<'_>, entry: Option<&Entry>, base: Base<'_>) -> Vec<Change> {
    let own = fields.get(("schedule", "changes during the run, in order of time")).is_some();
    let Some(entry) = entry else { return Vec::new() };
    let items = match entry.node.array() {
        Some(items) if items.len() <= MAX_CHANGES => items,
        Some(items) => {
            let found = format!("{} changes are too many", items.len());
            fields.reject("schedule", &entry.node, Problem::new(found, format!("at most {MAX_CHANGES}")));
            return Vec::new();
        }
        None => {
            fields.reject("schedule", &entry.node, Problem::new("not a list of changes", A_CHANGE));
            return Vec::new();
        }
    };
    let mut reading = Reading::new(base);
    for (index, node) in items.iter().enumerate() {
        if let Some(item) = fields.item("schedule", index, node, A_CHANGE) {
            let mut item = if own { item } else { item.without_defaults() };
            let expected = "when it changes, such as \"10s\" from the start of the run";
            let at = item.required(keys::AT, Time::Any, expected);
            reading.change(&mut item, at.map(|at| Instant::ZERO + at));
            item.finish();
        }
    }
    reading.changes
}

/// Reads a change that comes at `at`, while the run goes on, behind those before. Values that it
/// changes stop their current course at once.
pub(crate) fn change(fields: &mut Fields<'_>, base: Base<'_>, before: &[Change], at: Instant) -> Option<Change> {
    let mut reading = Reading::new(base);
    before.iter().for_each(|change| reading.pass(change));
    reading.goes_on = true;
    reading.change(fields, Some(at));
    reading.changes.pop()
}

/// A schedule while it is read.
struct Reading {
    changes: Vec<Change>,
    rate: Option<Option<Rate>>,
    /// A trace sets the delay, and the losses.
    traced: [bool; 2],
    /// Until when ramps of the rate and of the delay go on.
    ramps: [Instant; 2],
    queue: Queue,
    /// The run goes on, and a change comes now.
    goes_on: bool,
}

/// The queue with the parameters that it has in the end so far.
struct Queue {
    spec: QueueSpec,
    /// One that has been through all changes.
    tried: Option<Box<dyn ackclock_aqm::QueueDisc<Framed>>>,
    extent: Extent,
}

impl Reading {
    fn new(Base { rate, trace, queue, extent }: Base<'_>) -> Reading {
        let traced = trace.map_or([false; 2], |trace| [trace.has_delay(), trace.has_loss()]);
        let queue = Queue { spec: queue.clone(), tried: tried(queue), extent };
        Reading { changes: Vec::new(), rate, traced, ramps: [Instant::ZERO; 2], queue, goes_on: false }
    }

    /// Takes in a change that has been made.
    fn pass(&mut self, change: &Change) {
        if let Some(rate) = change.rate {
            (self.rate, self.queue.extent.rate) = (Some(rate), rate);
        }
        if let Some(spec) = &change.queue {
            if spec.name() != self.queue.spec.name() {
                self.queue.tried = tried(spec);
            } else if let Some(queue) = &mut self.queue.tried {
                let changed = queue.change(change.at, spec.config(), &mut Drops::new());
                debug_assert!(changed.is_ok(), "a queue has changed so before: {changed:?}");
            }
            self.queue.spec = spec.clone();
        }
    }

    fn change(&mut self, item: &mut Fields<'_>, at: Option<Instant>) {
        let until =
            item.maybe(("until", "end of a linear transition of rate and delay that begins at `at`"), Time::Positive);
        let rate = item.maybe(("rate", "the new rate"), RateOrUnlimited);
        let delay = item.maybe(("delay", "the new delay"), Time::Any);
        let jitter = item.maybe(("jitter", "the new jitter, of the same distribution"), Time::Any);
        let loss = item.maybe(("loss", "the new probability of independent losses"), Number(0.0, 1.0));
        let up = item.maybe(("up", "`false`: the link is down"), Flag);
        let drops = item.maybe(("drop", "with `up = false`: the link loses packets instead of queueing them"), Flag);
        let Some(at) = at else { return };
        if let (Some(rate), Some(_)) = (rate, self.rate) {
            self.queue.extent.rate = rate;
        }
        let queue = self.queue.change(item, at);
        let until = until.map(|until| Instant::ZERO + until);
        if let Some(before) = self.changes.last().map(|change| change.at)
            && at <= before
        {
            let found = format!("not after the change before it, which is at {}", before.since(Instant::ZERO));
            refuse(item, "at", found, "changes in order of time");
        }
        if self.rate.is_none() && rate.is_some() {
            refuse(item, "rate", "the rate is that of the trace", "a schedule of other keys, or no `trace`");
        }
        let keys = [("delay", delay.is_some()), ("loss", loss.is_some())];
        for ((key, is_there), traced) in keys.into_iter().zip(self.traced) {
            if is_there && traced {
                refuse(
                    item,
                    key,
                    format!("the {key} is that of the trace"),
                    "a schedule of other keys, or no such trace",
                );
            }
        }
        self.ramp(item, at, until, rate, delay);
        if let (Some(_), None | Some(true)) = (drops, up) {
            refuse(item, "drop", "says what becomes of packets while the link is down", "`up = false` beside it");
        }
        if ["rate", "delay", "jitter", "loss", "up", "drop", "queue"].into_iter().all(|key| item.get(key).is_none()) {
            let expected = "`rate`, `delay`, `jitter`, `loss`, `up` or `queue`, to be changed at that time";
            refuse(item, "at", "nothing changes", expected);
        }
        let up = up.map(|up| match (up, drops) {
            (true, _) => Up::Passes,
            (false, Some(true)) => Up::Loses,
            (false, _) => Up::Holds,
        });
        self.changes.push(Change { at, until, rate, delay, jitter, loss, up, queue });
    }

    /// Checks what has an extent in time.
    fn ramp(
        &mut self,
        item: &mut Fields<'_>,
        at: Instant,
        until: Option<Instant>,
        rate: Option<Option<Rate>>,
        delay: Option<Span>,
    ) {
        if until.is_some() && rate.is_none() && delay.is_none() {
            refuse(item, "until", "only rate and delay change little by little", "`rate` or `delay` beside it");
        }
        if until.is_some_and(|until| until <= at) {
            let found =
                if self.goes_on { format!("not after {}", at.since(Instant::ZERO)) } else { "not after `at`".into() };
            refuse(item, "until", found, "the time at which the new value is reached");
        }
        if until.is_some() && rate.is_some() && (rate == Some(None) || self.rate == Some(None)) {
            let expected = "a rate before and after, or no `until`";
            refuse(item, "until", "the rate cannot change little by little from or to \"unlimited\"", expected);
        }
        let changed = [("rate", rate.is_some()), ("delay", delay.is_some())];
        for ((key, changes), ramp) in changed.into_iter().zip(&mut self.ramps) {
            if !changes {
                continue;
            }
            if at < *ramp {
                let found = format!("the change before it goes on until {}", ramp.since(Instant::ZERO));
                refuse(item, "at", format!("{key}: {found}"), "a time that is no earlier");
            }
            *ramp = until.unwrap_or(at);
        }
        if rate.is_some() && self.rate.is_some() {
            self.rate = rate;
        }
    }
}

/// An empty queue, unless it is not made before its run or cannot be made.
fn tried(spec: &QueueSpec) -> Option<Box<dyn ackclock_aqm::QueueDisc<Framed>>> {
    let is_tried = spec.problem().is_none() && !matches!(spec, QueueSpec::Own(_));
    is_tried.then(|| spec.build(Random::for_component(0, 0, "schedule")))
}

impl Queue {
    /// Reads the key `queue` of a change at `at`.
    fn change(&mut self, item: &mut Fields<'_>, at: Instant) -> Option<QueueSpec> {
        let meaning = "new parameters of the queue, or a new discipline; a change of discipline drops waiting packets";
        queue::declare(item, ("queue", meaning));
        let entry = item.get("queue")?;
        let errors = item.errors();
        let spec = queue::change(item, &self.extent, &self.spec);
        if item.errors() > errors {
            return None;
        }
        let name = self.spec.name();
        if spec.name() != name {
            (self.tried, self.spec) = (tried(&spec), spec.clone());
            return Some(spec);
        }
        let tried = match (&spec, &mut self.tried) {
            (QueueSpec::Own(config), _) => config.fixed().map(Err),
            (_, tried) => tried.as_mut().map(|queue| queue.change(at, spec.config(), &mut Drops::new())),
        };
        if let Some(Err(error)) = tried {
            let expected = format!("parameters that `{name}` changes while it is in use");
            item.reject("queue", &entry.node, Problem::new(error.to_string(), expected));
            return None;
        }
        self.spec = spec.clone();
        Some(spec)
    }
}

/// Reports the value of a key that is there, or of `at`.
fn refuse(item: &mut Fields<'_>, key: &'static str, found: impl Into<String>, expected: &str) {
    if let Some(entry) = item.get(key) {
        item.reject(key, &entry.node, Problem::new(found, expected));
    }
}
