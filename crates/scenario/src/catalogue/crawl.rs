//! Every key that a scenario can have.
//!
//! The parser asks for keys by what a document says ([`Scenario::keys`]), so it is given documents
//! that select everything there is: for each key it has asked for, a document with each of the
//! values that may lead to further keys, until no document leads to a new one.
//!
//! [`Scenario::keys`]: crate::Scenario::keys

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;
use std::sync::OnceLock;

use crate::document::{self, Node, Table, Value};
use crate::expect;
use crate::fields::{Context, Fields};
use crate::keys::{Domain, Key};
use crate::measurement::Subject;
use crate::overrides;
use crate::own::Own;
use crate::plan::Plan;
use crate::report::{Place, Report};
use crate::{sweep, until};

/// A document of one link, and this.
macro_rules! one_link {
    ($rest:literal) => {
        concat!("schema = 1\n[run]\nduration = \"1s\"\n[links.NAME]\nrate = \"10mbit\"\ndelay = \"10ms\"\n", $rest)
    };
}

/// Documents with nothing in their sections: what has to be there.
const BARE: [&str; 5] = [
    "",
    "schema = 1\n[run]\n[links.NAME]\n",
    one_link!("[[flows]]\n[[workloads]]\n"),
    one_link!("[[expect]]\n"),
    r#"
schema = 1
[run]
duration = "1s"
[links.NAME]
rate = "10mbit"
[topology]
"#,
];

/// The sections that a document can have, each with what the parser demands before it reads on. The
/// name of a link, host or class, which may be any, is NAME. A varied section is read again with the rest
/// of its document, so that there are several.
const BASES: [&str; 11] = [
    one_link!(
        r#"
[links.NAME.queue]
kind = "htb"
[links.NAME.queue.classes.NAME]
rate = "1mbit"
[[flows]]
id = "flow"
path = ["NAME"]
"#
    ),
    one_link!(
        r#"
[links.NAME.queue]
kind = "hfsc"
[links.NAME.queue.classes.NAME]
ls = { m2 = "1mbit" }
[[flows]]
id = "flow"
path = ["NAME"]
"#
    ),
    one_link!(
        r#"
[links.NAME.queue]
kind = "qfq"
[links.NAME.queue.classes.NAME]
weight = 2
[[flows]]
id = "flow"
path = ["NAME"]
"#
    ),
    one_link!(
        r#"
[links.NAME.queue]
kind = "series"
[links.NAME.queue.stages.NAME]
queue = "pfifo"
[[flows]]
id = "flow"
path = ["NAME"]
"#
    ),
    one_link!(
        r#"
schedule = [{ at = "0s" }]
[sweep]
"#
    ),
    one_link!(
        r#"
[[flows]]
id = "flow"
path = ["NAME"]
schedule = [{ at = "0s" }]
"#
    ),
    one_link!(
        r#"
[[workloads]]
id = "short"
path = ["NAME"]
size = "10kB"
load = 0.1
"#
    ),
    one_link!(
        r#"
[[flows]]
id = "flow"
path = ["NAME"]
[sweep]
repeat = { max = 9, until = { metric = "flows.flow.0.goodput_bps", ci95 = 0.1 } }
[[expect]]
metric = "flows.flow.0.goodput_bps"
at_least = 0
"#
    ),
    one_link!(
        r#"
[hosts.NAME]
tun = "tun0"
address = "10.0.0.1/24"
[hosts.other]
address = "10.1.0.1/24"
[[paths]]
between = ["NAME", "other"]
path = ["NAME"]
[[flows]]
id = "flow"
from = "NAME"
to = "other"
port = 5001
[[commands]]
host = "NAME"
run = "true"
"#
    ),
    r#"
schema = 1
[run]
duration = "1s"
[links.NAME]
delay = "10ms"
trace = { file = "link.trace" }
queue = "pie"
schedule = [{ at = "0s", queue = { target = "5ms" } }]
reverse = { trace = { file = "link.trace" }, schedule = [{ at = "0s", queue = { target = "5ms" } }] }
[links.other]
rate = "10mbit"
delay = "10ms"
[[flows]]
id = "flow"
paths = [["NAME"], ["other"]]
choice = { kind = "weighted", weights = [2, 1] }
[[flows]]
id = "multipath"
transport = "mptcp"
subflows = [["NAME"], ["other"]]
path_changes = [{ at = "1s", subflow = 1, up = false }]
[[workloads]]
id = "answers"
path = ["other"]
size = "10kB"
arrivals = { kind = "incast", senders = 4, every = "100ms" }
[[expect]]
metric = { metric = "flows.*.goodput_bps", reduce = "sum" }
ratio_to = { metric = "flows.*.goodput_bps", reduce = "sum" }
at_least = 0
"#,
    r#"
schema = 1
[run]
duration = "1s"
[links.wire]
rate = "10mbit"
delay = "10ms"
[topology]
kind = "dumbbell"
sessions = 2
access = "wire"
bottleneck = "wire"
[[flows]]
id = "flow"
pairs = "sessions"
[[workloads]]
id = "short"
pairs = "sessions"
size = "10kB"
load = 0.1
"#,
];

/// A key, wherever it is in lists and below names: `flows[].cc.beta`, `links.NAME.rate`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) path: String,
    /// The domains, in every document in which the key was found.
    pub(crate) domains: Vec<Domain>,
    /// Its defaults, as TOML; more than one if they depend on other keys.
    pub(crate) defaults: Vec<String>,
    /// `true` if the key is required in every document that has its section.
    pub(crate) required: bool,
    /// `true` if some kinds demand it.
    pub(crate) demanded: bool,
    /// The meaning; empty for a parameter of an algorithm.
    pub(crate) meaning: &'static str,
}

impl Found {
    /// Returns `true` if other keys decide its default. Where it stands for a table, the default is
    /// that of `kind`, and what it has is that of a document in which it is a name alone.
    pub(crate) fn varies(&self) -> bool {
        let is_kind = self.domains.iter().any(|domain| matches!(domain, Domain::Kind(_)));
        self.defaults.len() > usize::from(!is_kind)
    }

    /// All that it may hold: the names of every document together.
    pub(crate) fn domain(&self) -> Domain {
        let mut parts: Vec<Domain> = Vec::new();
        let mut open: VecDeque<&Domain> = self.domains.iter().collect();
        while let Some(domain) = open.pop_front() {
            let same = parts.iter().position(|part| discriminant(part) == discriminant(domain));
            let known = parts.contains(domain);
            match (domain, same.map(|at| &mut parts[at])) {
                (Domain::Either(domains), _) => domains.iter().rev().for_each(|domain| open.push_front(domain)),
                (Domain::Name(names), Some(Domain::Name(known))) | (Domain::Kind(names), Some(Domain::Kind(known))) => {
                    let new: Vec<&'static str> = names.iter().filter(|name| !known.contains(name)).copied().collect();
                    known.extend(new);
                }
                (Domain::Time { positive }, Some(Domain::Time { positive: known })) => *known &= positive,
                _ if known => {}
                _ => parts.push(domain.clone()),
            }
        }
        if parts.len() > 1 {
            parts.retain(|part| *part != Domain::Structure);
        }
        if parts.len() > 1 { Domain::Either(parts) } else { parts.pop().unwrap_or(Domain::Structure) }
    }
}

/// All keys, with those of stacks from outside, in the order in which they are first asked for.
pub(crate) fn all(own: &Own) -> Cow<'static, [Found]> {
    static ALL: OnceLock<Vec<Found>> = OnceLock::new();
    if own.is_empty() { Cow::Borrowed(ALL.get_or_init(|| crawl(Own::NONE))) } else { Cow::Owned(crawl(own)) }
}

fn crawl(own: &Own) -> Vec<Found> {
    // A catalogue is that of any machine.
    let own = own.for_results();
    let mut crawl = Crawl { own, ..Crawl::default() };
    for base in BASES {
        if let Some(root) = document::parse_document(base, 0, &Report::default()) {
            crawl.visit(&root);
        }
    }
    for bare in BARE {
        for key in document::parse_document(bare, 0, &Report::default()).iter().flat_map(|root| read(root, &crawl.own))
        {
            if let Some(found) = crawl.found.get_mut(&generic(&key.path)) {
                found.required |= key.required;
            }
        }
    }
    let Crawl { order, mut found, own: _ } = crawl;
    order.iter().filter_map(|path| found.remove(path)).collect()
}

#[derive(Default)]
struct Crawl {
    own: Own,
    order: Vec<String>,
    found: BTreeMap<String, Found>,
}

impl Crawl {
    /// Notes the keys of a document, and reads it with each value of those that are new.
    fn visit(&mut self, root: &Node) {
        let keys = read(root, &self.own);
        let new: Vec<Key> = keys.iter().filter(|key| self.note(key)).cloned().collect();
        self.vary(root, &new);
    }

    /// Adds a key; returns `true` if it was unknown, or has further values here.
    fn note(&mut self, key: &Key) -> bool {
        let path = generic(&key.path);
        let known = self.found.contains_key(&path);
        if !known {
            self.order.push(path.clone());
        }
        let found = self.found.entry(path.clone()).or_insert_with(|| Found {
            path,
            domains: Vec::new(),
            defaults: Vec::new(),
            required: false,
            demanded: false,
            meaning: "",
        });
        if found.meaning.is_empty() {
            found.meaning = key.meaning;
        }
        found.demanded |= key.required;
        if let Some(default) = key.default.as_ref().filter(|default| !found.defaults.contains(default)) {
            found.defaults.push(default.clone());
        }
        let further = !found.domains.contains(&key.domain);
        if further {
            found.domains.push(key.domain.clone());
        }
        !known || further
    }

    fn vary(&mut self, root: &Node, keys: &[Key]) {
        for key in keys {
            for value in values(&key.domain) {
                let mut varied = root.clone();
                put(&mut varied, &key.path, value);
                let keys = complete(&mut varied, &self.own);
                let new: Vec<Key> = keys.iter().filter(|key| self.note(key)).cloned().collect();
                if !new.is_empty() {
                    self.vary(&varied, &new);
                }
            }
        }
    }
}

/// The path without numbers.
fn generic(path: &str) -> String {
    let mut out = String::new();
    for part in path.split('.') {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str("[]");
            continue;
        }
        if !out.is_empty() {
            out.push('.');
        }
        let is_name = matches!(out.as_str(), "hosts." | "links.")
            || [".classes.", ".stages."].iter().any(|table| out.ends_with(table));
        out.push_str(if is_name { "NAME" } else { part });
    }
    out
}

/// Gives a document what it has to have for the keys that it selects; its keys.
fn complete(root: &mut Node, own: &Own) -> Vec<Key> {
    for _ in 0..4 {
        let keys = read(root, own);
        let missing: Vec<&Key> = keys.iter().filter(|key| key.required).collect();
        let before = missing.len();
        for key in missing {
            if let Some(value) = values(&key.domain).into_iter().next() {
                put(root, &key.path, value);
            }
        }
        if before == 0 {
            return keys;
        }
    }
    read(root, own)
}

/// The keys of a document, those of `[sweep]` and `[[expect]]` included.
fn read(root: &Node, own: &Own) -> Vec<Key> {
    let report = Report::default();
    let cx = Context { keys: Some(RefCell::default()), document: root.table(), ..Context::new(&report, own) };
    let plan = Plan::read(root, &cx);
    if let Some(table) = root.table() {
        let mut fields = Fields::new(&cx, table, "", &root.place);
        let sweep = sweep::read(root, &mut fields, &cx, &[]);
        let subject =
            |plan: Plan| Subject { shape: plan.shape(), duration: plan.duration, live: plan.timing.has_hosts() };
        let subjects: Vec<_> = plan.map(|plan| (0, subject(plan))).into_iter().collect();
        let mut windows = Vec::new();
        expect::read_all(&mut fields, &cx, &sweep, &subjects, &mut windows);
        until::read(table, &cx, &subjects, &mut windows);
    }
    cx.keys.map(|keys| keys.into_inner().finish()).unwrap_or_default()
}

fn put(root: &mut Node, path: &str, value: Value) {
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    let nowhere = Place::new(0, 0..0);
    overrides::set(root, &path, &nowhere, Node::new(value, nowhere.clone()), &Report::default());
}

/// One value of every sort that a key may hold, and every name.
fn values(domain: &Domain) -> Vec<Value> {
    let text = |text: &str| vec![Value::from(text)];
    match domain {
        Domain::Flag => vec![true.into(), false.into()],
        Domain::Time { .. } => text("100ms"),
        Domain::Rate => text("1mbit"),
        Domain::Bytes(least, most) => vec![format!("{}B", 3000.clamp(*least, *most)).as_str().into()],
        Domain::Packets(least, most) => vec![format!("{}p", 10.clamp(*least, *most)).as_str().into()],
        Domain::Whole(least, most) => vec![2.clamp(*least, *most).into()],
        Domain::PowerOfTwo(most) => vec![2.min(*most).into()],
        Domain::Number(least, most) => vec![0.5_f64.clamp(*least, *most).into()],
        Domain::Name(names) => names.iter().map(|name| Value::from(*name)).collect(),
        Domain::Off => vec![false.into()],
        Domain::Text(form) => text(form),
        Domain::Kind(names) => names.iter().map(|name| kind(name)).collect(),
        Domain::Table => vec![Table::default().into()],
        Domain::List(_) | Domain::Structure => Vec::new(),
        Domain::Either(domains) => domains.iter().flat_map(values).collect(),
    }
}

/// A table that selects a kind.
fn kind(name: &str) -> Value {
    let nowhere = Place::new(0, 0..0);
    let mut table = Table::default();
    table.set("kind", nowhere.clone(), Node::new(name, nowhere));
    table.into()
}
