//! The classes of a tree of queues (`queue.classes`): a table for each, with the class above it, the
//! packets that belong to it, its own queue, and what its scheduler wants to know.

use std::sync::Arc;

use ackclock_aqm::{
    Class, Filter, HfscClass, HfscConfig, HtbClass, HtbConfig, QfqClass, QfqConfig, SeriesConfig, ServiceCurve, Stage,
};
use ackclock_sim::spec::QueueSpec;
use ackclock_units::{Rate, Span};

use crate::document::{Entry, Node, Value};
use crate::dscp::Codepoint;
use crate::extent::Extent;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Bytes, Flag, Kind, PlainRate, Problem, Text, Time, Whole, is_name};
use crate::{disciplines, overhead};

/// No larger length of a packet, size of a bucket or quantum.
const MOST: u64 = u32::MAX as u64;

/// The weights of `tc`'s QFQ classes, and their longest packets.
const WEIGHT: Whole = Whole(1, 1024);
const MAXPKT: Bytes = Bytes(512, 1 << 16);

/// Reads the classes of a queue that has any.
pub(crate) fn read(fields: &mut Fields<'_>, extent: &Extent, queue: &mut QueueSpec) {
    match queue {
        QueueSpec::Htb(HtbConfig { default, classes, .. }) => {
            read_default(fields, default);
            read_all(fields, extent, classes, htb);
        }
        QueueSpec::Hfsc(HfscConfig { default, classes, .. }) => {
            read_default(fields, default);
            read_all(fields, extent, classes, hfsc);
        }
        QueueSpec::Qfq(QfqConfig { default, classes, .. }) => {
            read_default(fields, default);
            read_all(fields, extent, classes, qfq);
        }
        QueueSpec::Series(config) => read_stages(fields, extent, config),
        _ => {}
    }
}

/// Reads the queues of a series; what is not said of one that is there stays.
fn read_stages(fields: &mut Fields<'_>, extent: &Extent, config: &mut SeriesConfig) {
    fields
        .declare(("stages", "queues in series by name; each feeds the next, and all but the last are shapers"), || {
            Domain::Table
        });
    let Some(entry) = fields.get("stages") else { return };
    let expected =
        "a table for each queue, such as { shaper = { queue = { kind = \"tbf\", rate = \"1mbit\" } }, modem = {} }";
    let Some(table) = entry.node.table() else {
        return fields.reject("stages", &entry.node, Problem::new("not a table", expected));
    };
    if *config == SeriesConfig::default() {
        config.stages.clear();
    }
    for entry in &table.0 {
        let Some(mut fields) = fields.named("stages", entry, "a table, such as { queue = \"pfifo\" }") else {
            continue;
        };
        if !is_name(&entry.key) {
            let problem = Problem::new("not a valid name of a queue", "a letter, then letters, digits, `-` and `_`");
            fields.reject("", &entry.node, problem);
        }
        let place = config.stages.iter().position(|stage| *stage.name == *entry.key);
        let there = place.map_or_else(disciplines::default, |place| config.stages[place].queue.clone());
        let queue = disciplines::stage(&mut fields, extent, &there);
        fields.finish();
        match place {
            Some(place) => config.stages[place].queue = queue,
            None => config.stages.push(Stage { name: entry.key.as_str().into(), queue }),
        }
    }
}

fn read_default(fields: &mut Fields<'_>, default: &mut Option<Arc<str>>) {
    const KEY: (&str, &str) = ("default", "class of unmatched packets; without it they are sent at once");
    if let Some(name) = fields.maybe(KEY, Text) {
        *default = Some(name.into());
    }
}

/// Reads the tables of all classes; what they do not say of one that is there stays.
fn read_all<S: Clone>(
    fields: &mut Fields<'_>,
    extent: &Extent,
    classes: &mut Vec<Class<S>>,
    settings: impl Fn(&mut Fields<'_>, Option<&S>) -> Option<S>,
) {
    fields.declare(("classes", "classes by name"), || Domain::Table);
    let Some(entry) = fields.get("classes") else { return };
    let Some(table) = entry.node.table() else {
        let expected = "a table for each class, such as { web = { rate = \"1mbit\" } }";
        return fields.reject("classes", &entry.node, Problem::new("not a table", expected));
    };
    for entry in &table.0 {
        let place = classes.iter().position(|class| *class.name == *entry.key);
        let class = read_class(fields, extent, entry, place.map(|place| &classes[place]), &settings);
        match (class, place) {
            (Some(class), Some(place)) => classes[place] = class,
            (Some(class), None) => classes.push(class),
            (None, _) => {}
        }
    }
}

fn read_class<S: Clone>(
    fields: &Fields<'_>,
    extent: &Extent,
    entry: &Entry,
    base: Option<&Class<S>>,
    settings: impl Fn(&mut Fields<'_>, Option<&S>) -> Option<S>,
) -> Option<Class<S>> {
    let mut fields = fields.named("classes", entry, "a table, such as { rate = \"1mbit\" }")?;
    if !is_name(&entry.key) {
        let problem = Problem::new("not a valid name of a class", "a letter, then letters, digits, `-` and `_`");
        fields.reject("", &entry.node, problem);
    }
    let parent = fields.maybe(("parent", "parent class; without it the class is at the top"), Text).map(Arc::from);
    let settings = settings(&mut fields, base.map(|base| &base.settings));
    let filter = filter(&mut fields, base.map(|base| base.filter.clone()).unwrap_or_default());
    let there = base.map_or_else(disciplines::default, |base| base.queue.clone());
    let queue = disciplines::leaf(&mut fields, extent, &there);
    fields.finish();
    Some(Class {
        name: entry.key.as_str().into(),
        parent: parent.or_else(|| base.and_then(|base| base.parent.clone())),
        filter,
        queue,
        settings: settings?,
    })
}

/// The packets that belong to a class.
fn filter(fields: &mut Fields<'_>, mut filter: Filter) -> Filter {
    fields.declare(("dscp", "codepoint that selects packets of the class, or a list"), || {
        Domain::Either(vec![Codepoint.domain(), Domain::List(Box::new(Codepoint.domain()))])
    });
    if let Some(entry) = fields.get("dscp") {
        filter.dscp = 0;
        for node in items(&entry.node) {
            match Codepoint.read(node) {
                Ok(dscp) => filter.dscp |= 1 << dscp,
                Err(problem) => fields.reject("dscp", node, problem),
            }
        }
    }
    fields.declare(("flows", "flows that the class serves: an id, or a list"), || Domain::Structure);
    if let Some(entry) = fields.get("flows") {
        filter.flows.clear();
        for node in items(&entry.node) {
            match node.str() {
                Some(id) if is_flow(fields, id) => filter.flows.push(id.into()),
                _ => {
                    let expected = "the `id` of a flow, or such an id with a number: `web.0`";
                    fields.reject("flows", node, Problem::new("there is no such flow", expected));
                }
            }
        }
    }
    let (least, most) = filter.length.unwrap_or((0, u32::MAX));
    let from = fields.maybe(("min_length", "length of its shortest packets, with the link's framing"), Bytes(0, MOST));
    let to = fields.maybe(("max_length", "length of its longest packets"), Bytes(0, MOST));
    if from.is_some() || to.is_some() {
        let of = |given: Option<u64>, there: u32| given.map_or(there, |bytes| bytes as u32);
        filter.length = Some((of(from, least), of(to, most)));
    }
    let acks = fields.maybe(("acks", "`true`: pure ACKs only; `false`: everything else"), Flag);
    filter.acks = acks.or(filter.acks);
    filter
}

/// The items of a list, or the only one.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Returns `true` if a flow, or one of the flows of a group, has this id.
fn is_flow(fields: &Fields<'_>, id: &str) -> bool {
    let flows = fields.document().and_then(|root| root.get("flows")?.node.array()).unwrap_or_default();
    let ids = flows.iter().filter_map(|flow| flow.table()?.get("id")?.node.str());
    let is_of = |group: &str| {
        let number = id.strip_prefix(group).and_then(|rest| rest.strip_prefix('.'));
        id == group || number.is_some_and(|number| number.parse::<u64>().is_ok())
    };
    ids.into_iter().any(is_of)
}

/// The settings of an HTB class.
fn htb(fields: &mut Fields<'_>, base: Option<&HtbClass>) -> Option<HtbClass> {
    let rate = rate(fields, base.map(|base| base.rate))?;
    let base = base.cloned().unwrap_or_else(|| HtbClass::new(rate));
    let bucket = |fields: &mut Fields<'_>, key| fields.maybe(key, Bytes(1, MOST));
    Some(HtbClass {
        rate,
        ceil: fields.maybe(("ceil", "rate with borrowing; by default `rate`"), PlainRate).or(base.ceil),
        burst: bucket(fields, ("burst", "bucket of `rate`; by default 1600 bytes")).or(base.burst),
        cburst: bucket(fields, ("cburst", "bucket of `ceil`; by default 1600 bytes")).or(base.cburst),
        quantum: fields
            .maybe(("quantum", "bytes of a turn; by default a second's of `rate` over `r2q`"), Bytes(1, 1 << 30))
            .map(|bytes| bytes as u32)
            .or(base.quantum),
        prio: fields.or(("prio", "priority among classes that borrow; 0 comes first"), base.prio.into(), Whole(0, 7))
            as u8,
        overhead: overhead::overhead(fields, base.overhead),
    })
}

/// The curves of an HFSC class.
fn hfsc(fields: &mut Fields<'_>, base: Option<&HfscClass>) -> Option<HfscClass> {
    let base = base.cloned().unwrap_or_default();
    let rt = curve(fields, ("rt", "real-time curve: service guaranteed to a leaf"), base.rt);
    let ls = curve(fields, ("ls", "link-sharing curve: the share of excess bandwidth"), base.ls);
    let ul = curve(fields, ("ul", "upper-limit curve"), base.ul);
    if rt.is_none() && ls.is_none() {
        fields.missing("ls", "`rt`, `ls` or both, such as ls = { m2 = \"1mbit\" }");
        return None;
    }
    Some(HfscClass { rt, ls, ul })
}

/// The settings of a QFQ class.
fn qfq(fields: &mut Fields<'_>, base: Option<&QfqClass>) -> Option<QfqClass> {
    let base = base.copied().unwrap_or_default();
    let weight =
        fields.or(("weight", "its part of the link beside the weights of the others"), base.weight.into(), WEIGHT);
    let maxpkt =
        fields.or(("maxpkt", "length of its longest packet; a longer one raises it"), base.maxpkt.into(), MAXPKT);
    Some(QfqClass { weight: weight as u32, maxpkt: maxpkt as u32 })
}

/// A service curve, which is `base` where it does not say anything.
fn curve(
    fields: &mut Fields<'_>,
    key: (&'static str, &'static str),
    base: Option<ServiceCurve>,
) -> Option<ServiceCurve> {
    const EXPECTED: &str =
        "a table, such as { m2 = \"1mbit\" } or { umax = \"1500B\", dmax = \"10ms\", m2 = \"1mbit\" }";
    let Some(mut fields) = fields.table(key, EXPECTED) else { return base };
    let m1 = fields.maybe(("m1", "slope during `d`; 0 if omitted"), PlainRate);
    let d = fields.maybe(("d", "duration of `m1`"), Time::Positive);
    let umax = fields.maybe(("umax", "bytes served within `dmax`, in place of `m1`"), Bytes(1, MOST));
    let dmax = fields.maybe(("dmax", "deadline for `umax`, in place of `d`"), Time::Positive);
    let m2 = fields.maybe(("m2", "slope after `d`"), PlainRate).map(Rate::as_bps).or(base.map(|base| base.m2));
    let errors = fields.errors();
    if m2.is_none() {
        fields.missing("m2", "a rate such as \"1mbit\"");
    }
    // A change may set one of the two.
    let d = d.or(base.map(|base| base.d)).filter(|&d| d > Span::ZERO);
    let alone = |key: &'static str, with: &'static str| {
        if let Some(node) = fields.peek(key) {
            fields.reject(key, node, Problem::new("has no effect", with));
        }
    };
    match (m1, d, umax, dmax) {
        (Some(_), None, ..) => alone("m1", "`d` beside it"),
        (Some(_), _, Some(_), _) => alone("umax", "`m1` and `d`, or `umax` and `dmax`"),
        (_, _, Some(_), None) => alone("umax", "`dmax` beside it"),
        (_, _, None, Some(_)) => alone("dmax", "`umax` beside it"),
        _ => {}
    }
    let is_wrong = fields.errors() > errors;
    fields.finish();
    let m2 = m2.filter(|_| !is_wrong)?;
    Some(match (umax, dmax) {
        (Some(umax), Some(dmax)) => ServiceCurve::of_delay(umax, dmax, m2),
        _ => {
            let m1 = m1.map(Rate::as_bps).or(base.map(|base| base.m1));
            ServiceCurve { m1: m1.unwrap_or(0), d: d.unwrap_or(Span::ZERO), m2 }
        }
    })
}

/// Calls `see` for each key of a tree that may change while it is there, with its value.
pub(crate) fn list(queue: &QueueSpec, see: &mut dyn FnMut(String, Value)) {
    if let QueueSpec::Hfsc(HfscConfig { default, classes, .. }) = queue {
        default.iter().for_each(|name| see("default".to_owned(), (&**name).into()));
        for Class { name, settings: HfscClass { rt, ls, ul }, .. } in classes {
            for (key, curve) in [("rt", rt), ("ls", ls), ("ul", ul)] {
                let Some(ServiceCurve { m1, d, m2 }) = curve else { continue };
                let mut see = |part: &str, value: Value| see(format!("classes.{name}.{key}.{part}"), value);
                let rate = |bps: u64| Rate::from_bps(bps).map(|rate| PlainRate.show(&rate));
                rate(*m1).into_iter().for_each(|value| see("m1", value));
                if *d > Span::ZERO {
                    see("d", (*d).into());
                }
                rate(*m2).into_iter().for_each(|value| see("m2", value));
            }
        }
    }
    if let QueueSpec::Qfq(QfqConfig { default, classes, .. }) = queue {
        default.iter().for_each(|name| see("default".to_owned(), (&**name).into()));
        for Class { name, settings: QfqClass { weight, maxpkt }, .. } in classes {
            see(format!("classes.{name}.weight"), u64::from(*weight).into());
            see(format!("classes.{name}.maxpkt"), MAXPKT.show(&u64::from(*maxpkt)));
        }
    }
    let QueueSpec::Htb(HtbConfig { default, classes, .. }) = queue else { return };
    default.iter().for_each(|name| see("default".to_owned(), (&**name).into()));
    for Class { name, settings, .. } in classes {
        let mut see = |key: &str, value: Value| see(format!("classes.{name}.{key}"), value);
        see("rate", PlainRate.show(&settings.rate));
        see("ceil", PlainRate.show(&settings.ceil.unwrap_or(settings.rate)));
        for (key, bytes) in
            [("burst", settings.burst), ("cburst", settings.cburst), ("quantum", settings.quantum.map(u64::from))]
        {
            bytes.iter().for_each(|bytes| see(key, Bytes(1, MOST).show(bytes)));
        }
        see("prio", u64::from(settings.prio).into());
    }
}

fn rate(fields: &mut Fields<'_>, base: Option<Rate>) -> Option<Rate> {
    const KEY: (&str, &str) = ("rate", "rate of the class without borrowing");
    match base {
        Some(rate) => Some(fields.or(KEY, rate, PlainRate)),
        None => fields.required(KEY, PlainRate, "a rate such as \"1mbit\""),
    }
}
