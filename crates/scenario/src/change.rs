//! Changes of links while a run goes on: what an item of a `schedule` may say, as `KEY=VALUE`, and
//! the present values of these keys.

use ackclock_aqm::QueueSpec;
use ackclock_emulator::{Change, Loss, Trace, Up};
use ackclock_sim::DirectionId;
use ackclock_sim::spec::{DirectionSpec, LinkSpec};
use ackclock_units::parameter::{self, Configurable, Parameter, Setting, Visitor};
use ackclock_units::{Rate, Span, Time as Instant};

use crate::course::{self, Base};
use crate::document::{Node, Table, Value};
use crate::extent::Extent;
use crate::fields::{Context, Fields};
use crate::overrides;
use crate::quantity::{Kind, Problem, RateOrUnlimited};
use crate::report::{Diagnostic, Place, Report, Sources, did_you_mean, listed};
use crate::{classes, link, write};

/// The names of the two directions of a link.
const WAYS: [&str; 2] = ["forward", "reverse"];

/// The names of the keys that may be changed.
const EXPECTED: &str = "expected links.NAME.KEY with a key of a `schedule`: `rate`, `delay`, `jitter`, `loss`, \
     `up`, `drop`, `until`, `queue` or `queue.PARAMETER`; links.NAME.forward.KEY and links.NAME.reverse.KEY are those of one direction";

const EXAMPLE: &str = "links.bottleneck.rate=5mbit";

/// The directions of one link that a key is of, and the key itself.
struct ChangeTarget {
    link: usize,
    sides: Vec<usize>,
    path: overrides::Path,
    /// The link, or the direction, as it was named.
    shown: String,
}

/// A change of a direction.
struct Item {
    link: usize,
    side: usize,
    shown: String,
    place: Place,
    table: Node,
}

/// Reads changes that are to be made together at `at`, behind those that were made before. One
/// change for each direction; `None` if anything is wrong, which is reported.
pub(crate) fn read(
    links: &[LinkSpec],
    cx: &Context<'_>,
    sources: &mut Sources,
    texts: &[&str],
    at: Instant,
    made: &[(DirectionId, Change)],
) -> Option<Vec<(DirectionId, Change)>> {
    let mut items: Vec<Item> = Vec::new();
    for text in texts {
        let source = sources.add("change", *text);
        let (key, place, node) = overrides::pair(text, source, EXAMPLE, cx.report)?;
        let ChangeTarget { link, sides, path, shown } = target(links, &key, &place, cx.report)?;
        for side in sides {
            let known = items.iter().position(|item| (item.link, item.side) == (link, side));
            let at = known.unwrap_or_else(|| {
                let table = Node::new(Table::default(), place.clone());
                items.push(Item { link, side, shown: shown.clone(), place: place.clone(), table });
                items.len() - 1
            });
            overrides::set(&mut items[at].table, &path, &place, node.clone(), cx.report);
        }
    }
    let mut changes = Vec::new();
    for item in &items {
        let spec = &links[item.link];
        let id = direction(item.link, item.side);
        let errors = cx.report.len();
        let change = one(spec, item, cx, at, &passed(spec, item.link, item.side, made, at));
        // The other direction would say the same once more.
        if cx.report.len() > errors {
            return None;
        }
        changes.push((id, change?));
    }
    Some(changes)
}

/// The change of one direction.
fn one(link: &LinkSpec, item: &Item, cx: &Context<'_>, at: Instant, before: &[Change]) -> Option<Change> {
    let spec = side(link, item.side);
    let mut fields = Fields::new(cx, item.table.table()?, &*item.shown, &item.place).without_defaults();
    if let Some(Problem { title, expected, .. }) = constant(link, spec) {
        let title = format!("{}: {title}", item.shown);
        cx.report.push(Diagnostic::new(title, &item.place, "cannot change").note(format!("expected {expected}")));
        return None;
    }
    let extent = Extent { link: link.name.clone(), rate: spec.rate, overhead: spec.overhead };
    let trace = spec.course.trace.as_deref();
    let rate = if trace.is_some_and(Trace::has_rate) { None } else { Some(spec.rate) };
    let change = course::change(&mut fields, Base { rate, trace, queue: &spec.queue, extent }, before, at);
    fields.finish();
    change
}

/// Why a direction cannot change, if it cannot.
fn constant(link: &LinkSpec, spec: &DirectionSpec) -> Option<Problem> {
    match &link.medium {
        Some(_) => {
            let title = "a link with a shared medium cannot change by a schedule";
            Some(Problem::new(title, "a link without `medium`"))
        }
        None => link::constant(spec),
    }
}

/// The target that a key names.
fn target(links: &[LinkSpec], key: &str, place: &Place, report: &Report) -> Option<ChangeTarget> {
    let parts = overrides::split(key);
    let shown = parts.join(".");
    let [section, name, path @ ..] = &parts[..] else {
        let error = Diagnostic::new(format!("`{shown}` cannot be changed"), place, "no key of a link");
        report.push(error.note(EXPECTED));
        return None;
    };
    if section != "links" || path.is_empty() || path.iter().any(String::is_empty) {
        let title = format!("`{shown}` cannot be changed while the run goes on");
        report.push(Diagnostic::new(title, place, "no key of a link").note(EXPECTED));
        return None;
    }
    let names = || links.iter().map(|link| link.name.as_str());
    let Some(link) = names().position(|known| known == name) else {
        let error = Diagnostic::new(format!("`{shown}`: there is no link `{name}`"), place, "names no link");
        let error = error.note(format!("the links are {}", listed(names())));
        report.push(error.help(did_you_mean(name, names())));
        return None;
    };
    let way = WAYS.iter().position(|way| path[0] == *way).filter(|_| path.len() > 1);
    Some(match way {
        Some(side) => {
            let shown = format!("links.{name}.{}", WAYS[side]);
            ChangeTarget { link, sides: vec![side], path: path[1..].to_vec(), shown }
        }
        None => ChangeTarget { link, sides: vec![0, 1], path: path.to_vec(), shown: format!("links.{name}") },
    })
}

fn side(link: &LinkSpec, side: usize) -> &DirectionSpec {
    if side == 0 { &link.forward } else { &link.reverse }
}

fn direction(link: usize, side: usize) -> DirectionId {
    if side == 0 { DirectionId::forward(link) } else { DirectionId::reverse(link) }
}

/// The changes of a direction until `at`: those of its schedule, and those that were made, in order
/// of time.
fn passed(link: &LinkSpec, number: usize, of: usize, made: &[(DirectionId, Change)], at: Instant) -> Vec<Change> {
    let id = direction(number, of);
    let made = made.iter().filter(|(of, _)| *of == id).map(|(_, change)| change);
    let schedule = side(link, of).course.schedule.iter();
    let mut all: Vec<Change> = schedule.chain(made).filter(|change| change.at <= at).cloned().collect();
    all.sort_by_key(|change| change.at);
    all
}

/// The keys that can be changed, with their values at `at`, as a scenario has them.
pub(crate) fn values(links: &[LinkSpec], made: &[(DirectionId, Change)], at: Instant) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (number, link) in links.iter().enumerate() {
        for (of, way) in WAYS.iter().enumerate() {
            let spec = side(link, of);
            if constant(link, spec).is_some() {
                continue;
            }
            let present = Present::of(spec, &passed(link, number, of, made, at), at);
            all.extend(present.keys().into_iter().map(|(key, value)| {
                let value = match value {
                    Value::String(text) => text,
                    value => write::inline(&Node::new(value, Place::new(0, 0..0))),
                };
                (format!("links.{}.{way}.{key}", link.name), value)
            }));
        }
    }
    all
}

/// The values of a direction at a time.
struct Present {
    /// `None` if it follows a trace.
    rate: Option<Option<Rate>>,
    delay: Span,
    jitter: Span,
    /// A probability, or the name of a model.
    loss: Value,
    up: bool,
    queue: QueueSpec,
}

impl Present {
    /// The values after these changes, which are in order.
    fn of(spec: &DirectionSpec, changes: &[Change], at: Instant) -> Present {
        let loss = match &spec.impairments.loss {
            Loss::None => Value::from(0.0),
            Loss::Iid(probability) => (*probability).into(),
            Loss::List(_) => "list".into(),
            Loss::GilbertElliott(_) => "gilbert-elliott".into(),
            Loss::Markov(_) => "markov".into(),
        };
        let (jitter, queue) = (spec.impairments.jitter, spec.queue.clone());
        let mut present = Present { rate: None, delay: spec.delay, jitter, loss, up: true, queue };
        let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
        let (mut rate, mut delay) = (Linear::constant(bps(spec.rate)), Linear::constant(Some(spec.delay.as_nanos())));
        for change in changes {
            if let Some(to) = change.rate {
                rate = rate.towards(bps(to), change);
            }
            if let Some(to) = change.delay {
                delay = delay.towards(Some(to.as_nanos()), change);
            }
            present.jitter = change.jitter.unwrap_or(present.jitter);
            if let Some(probability) = change.loss {
                present.loss = probability.into();
            }
            present.up = change.up.map_or(present.up, |up| up == Up::Passes);
            if let Some(queue) = &change.queue {
                present.queue = queue.clone();
            }
        }
        if !spec.course.trace.as_deref().is_some_and(Trace::has_rate) {
            present.rate = Some(rate.at(at).and_then(Rate::from_bps));
        }
        present.delay = Span::from_nanos(delay.at(at).unwrap_or(0));
        present
    }

    fn keys(mut self) -> Vec<(String, Value)> {
        let rate = self.rate.map(|rate| ("rate".to_owned(), RateOrUnlimited.show(&rate)));
        let mut keys: Vec<(String, Value)> = rate.into_iter().collect();
        keys.push(("delay".to_owned(), self.delay.into()));
        keys.push(("jitter".to_owned(), self.jitter.into()));
        keys.push(("loss".to_owned(), self.loss));
        keys.push(("up".to_owned(), self.up.into()));
        keys.push(("queue.kind".to_owned(), self.queue.name().into()));
        self.queue.parameters(&mut ChangeListing { prefix: "queue.".to_owned(), keys: &mut keys });
        classes::list(&self.queue, &mut |key, value| keys.push((format!("queue.{key}"), value)));
        keys
    }
}

/// A value that may change little by little; `None` is unlimited.
#[derive(Clone, Copy)]
struct Linear {
    from: Option<u64>,
    to: Option<u64>,
    start: Instant,
    end: Instant,
}

impl Linear {
    fn constant(value: Option<u64>) -> Linear {
        Linear { from: value, to: value, start: Instant::ZERO, end: Instant::ZERO }
    }

    fn towards(self, to: Option<u64>, change: &Change) -> Linear {
        match change.until {
            Some(end) => Linear { from: self.at(change.at), to, start: change.at, end },
            None => Linear::constant(to),
        }
    }

    fn at(self, now: Instant) -> Option<u64> {
        let (Some(from), Some(to)) = (self.from, self.to) else { return self.to };
        if now >= self.end {
            return Some(to);
        }
        let nanos = |time: Instant| u128::from(time.since(self.start).as_nanos());
        let change = (u128::from(to.abs_diff(from)) * nanos(now) / nanos(self.end).max(1)) as u64;
        Some(if to >= from { from + change } else { from - change })
    }
}

/// Lists parameters with their values.
struct ChangeListing<'a> {
    prefix: String,
    keys: &'a mut Vec<(String, Value)>,
}

impl Visitor for ChangeListing<'_> {
    fn visit<T: Setting>(&mut self, of: Parameter, at: &mut T) {
        let value = at.value();
        // One that follows from others has no value of its own.
        if of.derived.is_none() || value != parameter::Value::Off {
            self.keys.push((format!("{}{}", self.prefix, of.name), of.domain.show(&value)));
        }
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, _: &'static str, at: &mut Option<T>) {
        if let Some(on) = at {
            on.parameters(&mut ChangeListing { prefix: format!("{}{name}.", self.prefix), keys: self.keys });
        }
    }
}
