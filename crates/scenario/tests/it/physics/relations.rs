//! The relations between two runs: changes that change nothing, or a known thing.

use ackclock_emulator::{Change, Loss, Reorder, SplitRule};
use ackclock_scenario::{Domain, Override, Scenario};
use ackclock_sim::spec::{
    Application, CcSpec, DirectionSpec, FlowSpec, HostSpec, LinkSpec, QueueSpec, RunSpec, Starts, SumSpec, Ties,
    WayBack,
};
use ackclock_units::{Span, Time, parse_rate, parse_span};
use serde_json::{Value as Json, json};
use toml::de::{DeTable, DeValue};

use crate::effects::others;
use crate::physics::checks::{Laws, Violation, queues};
use crate::physics::document::Document;
use crate::physics::draw;
use crate::physics::outcome::{Outcome, Row, plain, run, spec, summary};

/// A relation: what it is called, and what breaks it. Nothing where it does not apply.
pub(crate) type Relation = fn(&Document, &Outcome, u64, &mut Laws);

pub(crate) const RELATIONS: &[(&str, Relation)] = &[
    ("recording", recording),
    ("halves", halves),
    ("resolved", resolved),
    ("unused link", unused_link),
    ("names", names),
    ("prefix", prefix),
    ("disjoint", disjoint),
    ("scaled", scaled),
];

/// Checks one of them.
pub(crate) fn check(number: usize, document: &Document, outcome: &Outcome, most: u64) -> Vec<Violation> {
    let mut laws = Laws::default();
    RELATIONS[number % RELATIONS.len()].1(document, outcome, most, &mut laws);
    laws.0
}

/// Where two values differ first.
fn difference(path: &str, left: &Json, right: &Json) -> Option<String> {
    match (left, right) {
        (Json::Object(a), Json::Object(b)) if a.len() == b.len() => a
            .iter()
            .find_map(|(key, value)| difference(&format!("{path}.{key}"), value, b.get(key).unwrap_or(&Json::Null))),
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(n, (a, b))| difference(&format!("{path}.{n}"), a, b))
        }
        (a, b) => (a != b).then(|| format!("{path}: {a} against {b}")),
    }
}

fn equal(laws: &mut Laws, law: &'static str, left: &Json, right: &Json) {
    if let Some(found) = difference("", left, right) {
        laws.hold(law, false, || found);
    }
}

/// A record changes nothing, and a second run is like the first; with windows too, that begin and
/// end where nothing else does.
fn recording(_: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    if let Ok(plain) = plain(&outcome.spec) {
        equal(laws, "a record changes nothing", &plain, &outcome.json);
    }
    let mut spec = outcome.spec.clone();
    let at = |part: u64| Time::from_nanos(spec.duration.as_nanos() / 100 * part);
    spec.windows = vec![(at(31), at(73)), (at(0), at(97)), (at(50), at(100))];
    if let (Ok(plain), Ok(recorded)) = (plain(&spec), run(&spec, 4 * most)) {
        equal(laws, "a record changes no window", &plain, &recorded.json);
    }
}

/// Number of arguments tried in a scenario.
const ARGUMENTS: usize = 8;

/// The arguments, some of several with another number, that neither change the run nor are refused.
pub(crate) fn idle_arguments(document: &Document) -> Vec<String> {
    let text = document.text();
    // Between hosts there are keys of the live clock.
    if text.contains("\n[hosts.") {
        return Vec::new();
    }
    let plain = Scenario::parse("drawn", text.as_bytes(), &[]).expect("it was read before");
    let shown = plain.resolved();
    let root = DeTable::parse(&shown).expect("a resolved scenario is TOML");
    let mut leaves = Vec::new();
    for section in ["links", "flows", "workloads"] {
        if let Some(value) = root.get_ref().get(section) {
            collect(section.to_owned(), value.get_ref(), &mut leaves);
        }
    }
    let mut draw = draw::Draw::new(shown.len() as u64);
    let mut idle = Vec::new();
    for _ in 0..leaves.len().min(ARGUMENTS) {
        let (path, others) = draw.of(&leaves);
        // The flows that start within a run may be the same at other times.
        let of_start = ["start", "start_jitter", "restart_every", "arrival_rate"];
        if others.is_empty() || path.rsplit('.').next().is_some_and(|key| of_start.contains(&key)) {
            continue;
        }
        let set = format!("{path}={}", draw.of(others));
        let argument = Override { flag: "--set".to_owned(), text: set.clone() };
        let Ok(with) = Scenario::parse("drawn", text.as_bytes(), &[argument]) else { continue };
        if with.spec(0) == plain.spec(0) {
            idle.push(set);
        }
    }
    idle
}

/// The numbers in a table, each with others of its kind.
fn collect(path: String, value: &DeValue<'_>, leaves: &mut Vec<(String, Vec<String>)>) {
    match value {
        DeValue::Table(table) => {
            for (key, value) in table {
                collect(format!("{path}.{}", key.get_ref()), value.get_ref(), leaves);
            }
        }
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                collect(format!("{path}.{number}"), item.get_ref(), leaves);
            }
        }
        DeValue::Boolean(_) => {}
        _ => {
            let same = |other: &String| !shown_same(value, other);
            leaves.push((path, others(value).into_iter().filter(same).collect()));
        }
    }
}

/// Returns `true` if a text is the number that is there.
fn shown_same(value: &DeValue<'_>, text: &str) -> bool {
    match value {
        DeValue::String(found) => text.trim_matches('"') == &**found,
        DeValue::Integer(number) => number.as_str() == text,
        DeValue::Float(number) => number.as_str().parse::<f64>().ok() == text.parse().ok(),
        _ => false,
    }
}

/// Two windows that share a run have its counts between them.
fn halves(_: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let mut spec = outcome.spec.clone();
    let (middle, end) = (Time::from_nanos(spec.duration.as_nanos() / 2), Time::ZERO + spec.duration);
    spec.windows = vec![(Time::ZERO, middle), (middle, end)];
    let Ok(mut both) = summary(&spec, 4 * most) else { return };
    let windows = both["windows"].take();
    for (part, keys) in [
        (
            "flows",
            ["sent_packets", "retransmitted_packets", "timeouts", "delivered_bytes", "acked_bytes", "ece_acks"]
                .as_slice(),
        ),
        ("links", &["offered", "enqueued", "dequeued", "marked"]),
    ] {
        for (number, whole) in outcome.json[part].as_array().into_iter().flatten().enumerate() {
            // The counts of a client's connections come when they are over.
            let is_client = part == "flows" && outcome.spec.flows[number].application.connections().is_some();
            for key in keys.iter().filter(|_| !is_client) {
                let of = |window: usize| windows[window][part][number][key].as_u64().unwrap_or(0);
                laws.hold("windows add up to the run", Some(of(0) + of(1)) == whole[key].as_u64(), || {
                    format!("{}.{key}: {} and {} of {}", whole["id"], of(0), of(1), whole[key])
                });
            }
        }
    }
    if let Json::Object(entries) = &mut both {
        entries.remove("windows");
    }
    equal(laws, "windows change nothing", &both, &outcome.json);
}

/// The file with its defaults gives the same run.
fn resolved(document: &Document, _: &Outcome, _: u64, laws: &mut Laws) {
    let scenario = Scenario::parse("drawn", document.text().as_bytes(), &[]).expect("it was read before");
    let again = Scenario::parse("resolved", scenario.resolved().as_bytes(), &[]);
    match again {
        Ok(again) => {
            laws.hold("the resolved file is the same", again.spec(0) == scenario.spec(0), || scenario.resolved());
        }
        Err(error) => laws.hold("the resolved file is the same", false, || error.to_string()),
    }
}

/// The document of the same run, of the length that the outcome has.
fn as_long_as(document: &Document, outcome: &Outcome) -> Document {
    let mut same = document.clone();
    same.put("run.duration", format!("\"{}ns\"", outcome.spec.duration.as_nanos()));
    same
}

/// A file's run for as long as the outcome's.
fn run_of(document: &Document, outcome: &Outcome) -> Option<RunSpec> {
    draw::is_good(&document.text()).then(|| RunSpec { duration: outcome.spec.duration, ..spec(&document.text()) })
}

/// A link that nobody takes: after the others, by whose numbers the order of simultaneous events is
/// drawn, or before them where that order is fixed.
fn unused_link(document: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let is_first = outcome.spec.ties == Ties::Fixed;
    let mut more = Document::default();
    let mut sections = document.sections.iter();
    let before = if is_first { 2 } else { document.sections.len() };
    more.sections.extend(sections.by_ref().take(before).cloned());
    more.add("links.unused", "[links.unused]");
    more.put("links.unused.rate", "\"1mbit\"");
    more.put("links.unused.queue.kind", "\"pie\"");
    more.sections.extend(sections.cloned());
    let Some(spec) = run_of(&more, outcome) else { return };
    let Ok(mut with) = summary(&spec, 4 * most) else { return };
    if let Some(links) = with["links"].as_array_mut() {
        let is_unused = |link: &Json| link["id"].as_str().is_some_and(|id| id.starts_with("unused."));
        links.retain(|link| !is_unused(link));
    }
    equal(laws, "an unused link changes nothing", &with, &outcome.json);
}

/// Returns `true` if a direction draws random numbers, which depend on its name.
fn draws(direction: &DirectionSpec) -> bool {
    let wire = &direction.impairments;
    let queue = queues(direction).any(|queue| match queue {
        QueueSpec::Pfifo(_) | QueueSpec::Bfifo(_) | QueueSpec::Codel(_) => false,
        QueueSpec::FqCodel(config) => config.hash_seed.is_none(),
        _ => true,
    });
    let held = matches!(wire.reorder, Reorder::HoldBack(hold) if hold.probability > 0.0);
    let changes = |change: &Change| change.loss.is_some() || change.jitter.is_some();
    let loses = direction.course.schedule.iter().any(changes) || !matches!(wire.loss, Loss::None | Loss::List(_));
    queue || held || loses || wire.duplicate > 0.0 || wire.corrupt > 0.0 || wire.jitter > Span::ZERO
}

/// Returns `true` if the flow itself draws random numbers: for a packet's path, and for the time of
/// the first probe between load.
fn chooses_itself(flow: &FlowSpec) -> bool {
    let random = |rule: &SplitRule| matches!(rule, SplitRule::Random(_));
    let split = flow
        .split
        .as_ref()
        .is_some_and(|split| random(&split.along) || matches!(&split.back, WayBack::Split(rule) if random(rule)));
    split || matches!(flow.application, Application::Load(_))
}

/// Other names, where no random number depends on them: not with start jitter, random splits,
/// probes between load, BBR, CDG, HD and CHD, nor a stock host, whose first sequence number matters
/// to it alone.
fn names(document: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let chooses = |cc: &CcSpec| {
        matches!(
            cc,
            CcSpec::Bbr(_) | CcSpec::Cdg(_) | CcSpec::LinuxCdg(_) | CcSpec::Hd(_) | CcSpec::Chd(_) | CcSpec::Own(..)
        )
    };
    let jitter = document.sections.iter().any(|section| section.entries.iter().any(|(key, _)| key == "start_jitter"));
    let draws = |link: &LinkSpec| link.medium.is_some() || draws(&link.forward) || draws(&link.reverse);
    let random = outcome.spec.links.iter().any(draws)
        || outcome.spec.flows.iter().any(|flow| {
            let host = |host: &HostSpec| matches!(host, HostSpec::Endpoint(endpoint) if chooses(&endpoint.cc));
            host(&flow.sender)
                || host(&flow.receiver)
                || flow.schedule.iter().any(|change| chooses(&change.cc))
                || chooses_itself(flow)
        });
    if jitter || random {
        return;
    }
    let mut spec = outcome.spec.clone();
    for link in &mut spec.links {
        link.name.insert_str(0, "other-");
    }
    for flow in &mut spec.flows {
        flow.id = format!("other-{}", flow.id).into();
    }
    let Ok(renamed) = summary(&spec, 4 * most) else { return };
    equal(laws, "names change nothing", &named_back(renamed), &outcome.json);
}

fn named_back(json: Json) -> Json {
    let short = |text: String| text.strip_prefix("other-").map_or(text.clone(), str::to_owned);
    match json {
        Json::String(text) => Json::String(short(text)),
        Json::Array(items) => items.into_iter().map(named_back).collect(),
        Json::Object(entries) => entries.into_iter().map(|(key, value)| (short(key), named_back(value))).collect(),
        other => other,
    }
}

/// A longer run begins like the shorter one. Flows that are cut at the end of a run
/// (`restart_every`) are others in a longer one.
fn prefix(document: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let mut longer = as_long_as(document, outcome);
    longer.put("run.duration", format!("\"{}ns\"", outcome.spec.duration.as_nanos().saturating_mul(2)));
    if !draw::is_good(&longer.text()) {
        return;
    }
    let spec = spec(&longer.text());
    if spec.flows != outcome.spec.flows
        || starts_differ(&outcome.spec.sums, &spec.sums)
        || numbers_differ(&outcome.spec, &spec)
    {
        return;
    }
    let Ok(longer) = run(&spec, 6 * most) else { return };
    let end = outcome.spec.duration.as_nanos();
    for (file, short, long) in [("queue.csv", &outcome.queue, &longer.queue), ("tcp.csv", &outcome.tcp, &longer.tcp)] {
        let before =
            |rows: &[Row]| rows.iter().filter(|row| row.nanos("time_s") < Some(end)).cloned().collect::<Vec<_>>();
        let (short, long) = (before(short), before(long));
        let first = (0..short.len().max(long.len())).find(|&n| short.get(n) != long.get(n));
        laws.hold("a longer run begins like a shorter one", first.is_none(), || {
            let n = first.unwrap_or(0);
            format!("{file}, row {n}: {:?} against {:?}", short.get(n), long.get(n))
        });
    }
}

/// Returns `true` if the summed flows of the shorter run with given times are others in the longer
/// one: numbers go round by round (`restart_every`), and the end of the run decides who is in a
/// round.
fn starts_differ(short: &[SumSpec], long: &[SumSpec]) -> bool {
    short.iter().zip(long).any(|(short, long)| match (&short.starts, &long.starts) {
        (Starts::Listed(short), Starts::Listed(long)) => !long.starts_with(short),
        _ => false,
    })
}

/// Whether flows behind a summed group with given times have other numbers in the longer run, which
/// has more of these times; so do flows behind a listed one, which are others then.
fn numbers_differ(short: &RunSpec, long: &RunSpec) -> bool {
    let clients = short.flows.iter().any(|flow| flow.application.connections().is_some());
    let last = short.sums.len().saturating_sub(1);
    short.sums.iter().zip(&long.sums).enumerate().any(|(number, (sum, longer))| {
        sum.count() != longer.count() && (clients || number < last || sum.before < short.flows.len())
    })
}

/// A second, disjoint half in the same file: each is as it is alone. The numbers of the second
/// one's flows move, and with them the hashes by which queues tell flows apart, and splits, and the
/// order of equal times if it is drawn.
fn disjoint(document: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let Some(seed) = outcome.json["events"].as_u64() else { return };
    let mut other = draw::scenario(seed);
    if [document, &other].iter().any(|half| half.sections.iter().any(|section| section.path.starts_with("hosts."))) {
        return;
    }
    let moved = other.sections.iter_mut().filter(|section| !section.path.is_empty() && section.path != "run");
    for section in moved {
        let rename = |text: &str| {
            ["a", "b", "c"]
                .iter()
                .fold(text.to_owned(), |text, name| text.replace(&format!("\"{name}\""), &format!("\"z{name}\"")))
        };
        if let Some(name) = section.path.strip_prefix("links.") {
            let name = format!("links.z{name}");
            *section = renamed(section, &name);
        }
        for (key, value) in &mut section.entries {
            match value {
                crate::physics::document::Value::Text(text) if key == "path" || key == "paths" => *text = rename(text),
                crate::physics::document::Value::Text(text) if key == "id" => text.insert(1, 'z'),
                _ => {}
            }
        }
    }
    let root = |half: &Document| {
        half.sections
            .iter()
            .filter(|section| section.path.is_empty() || section.path == "run")
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut both = Document { sections: document.sections.clone() };
    let alone = Document {
        sections: root(document)
            .into_iter()
            .chain(other.sections.iter().filter(|section| !section.path.is_empty() && section.path != "run").cloned())
            .collect(),
    };
    both.append(&Document {
        sections: alone.sections.iter().filter(|section| section.path != "run").cloned().collect(),
    });
    let (Some(both), Some(alone)) = (run_of(&both, outcome), run_of(&alone, outcome)) else { return };
    let (Ok(both), Ok(second)) = (summary(&both, 6 * most), summary(&alone, 4 * most)) else { return };
    for part in ["flows", "links"] {
        let list = |json: &Json| json[part].as_array().cloned().unwrap_or_default();
        let (first, all) = (list(&outcome.json), list(&both));
        let (left, right) = all.split_at(first.len().min(all.len()));
        // Flows of sums are numbered after all others, and so are connections that applications open: by
        // numbers the order of simultaneous events is drawn.
        let is_fixed = outcome.spec.ties == Ties::Fixed || !opens_connections(&outcome.spec);
        if is_fixed && (outcome.spec.sums.is_empty() || !goes_by_number(&outcome.spec)) {
            equal(laws, "disjoint halves change nothing", &json!(left), &json!(first));
        }
        if alone.ties == Ties::Fixed && !goes_by_number(&alone) {
            equal(laws, "disjoint halves change nothing", &json!(right), &json!(list(&second)));
        }
    }
}

/// Returns `true` if an application may open connections.
fn opens_connections(spec: &RunSpec) -> bool {
    let keeps_one = |flow: &FlowSpec| matches!(flow.application, Application::Bulk | Application::Messages { .. });
    !spec.flows.iter().all(keeps_one)
}

/// Returns `true` if a queue or a split distinguishes flows by a hash of their numbers.
fn goes_by_number(spec: &RunSpec) -> bool {
    let of = |queue: &QueueSpec| {
        matches!(queue, QueueSpec::FqCodel(_) | QueueSpec::FqPie(_) | QueueSpec::Sfb(_) | QueueSpec::Afd(_))
    };
    let hashes = |queue: &QueueSpec| of(queue) || queue.leaves().any(of);
    let groups = spec.flows.iter().map(|flow| &flow.group).chain(spec.sums.iter().map(|sum| &sum.group));
    let by_hash = |rule: &SplitRule| matches!(rule, SplitRule::FlowHash(_));
    spec.links.iter().flat_map(|link| [&link.forward, &link.reverse]).flat_map(queues).any(hashes)
        || groups
            .filter_map(|group| group.split.as_ref())
            .any(|split| by_hash(&split.along) || matches!(&split.back, WayBack::Split(rule) if by_hash(rule)))
}

fn renamed(section: &crate::physics::document::Section, path: &str) -> crate::physics::document::Section {
    let mut one = Document::default();
    one.add(path, format!("[{path}]"));
    one.sections[0].entries.clone_from(&section.entries);
    one.sections.remove(0)
}

/// Time scaled by two: every time of the file, defaults included, twice as long, every rate half.
/// That holds where nothing but the file says how long something takes: for hosts by the RFCs with
/// NewReno on drop-tail links, without timestamps (which count milliseconds), and where a byte
/// takes whole nanoseconds. It does not hold for the profiles of kernels (granularities, TLP, RACK,
/// pacing by the millisecond), for CUBIC (C is per cubic second), for delay-based control and AQMs
/// in fixed point.
fn scaled(document: &Document, outcome: &Outcome, most: u64, laws: &mut Laws) {
    let whole = |direction: &DirectionSpec| {
        queues(direction).all(|queue| matches!(queue, QueueSpec::Pfifo(_) | QueueSpec::Bfifo(_)))
            && direction.course.schedule.iter().all(|change| change.jitter.is_none())
            && direction.rate.is_none_or(|rate| 8_000_000_000 % rate.as_bps() == 0)
            && direction.impairments.jitter == Span::ZERO
            && direction.burst.is_none()
    };
    let simple = |host: &HostSpec| {
        matches!(host, HostSpec::Endpoint(endpoint) if endpoint.profile == "rfc" && !endpoint.config.timestamps
            && matches!(&endpoint.cc, CcSpec::NewReno(config) if *config == ackclock_cc::NewRenoConfig::default()))
    };
    let fits =
        outcome.spec.links.iter().all(|link| whole(&link.forward) && whole(&link.reverse) && link.medium.is_none())
            && outcome
                .spec
                .flows
                .iter()
                .all(|flow| simple(&flow.sender) && simple(&flow.receiver) && flow.schedule.is_empty());
    // Arrivals at random are so many in a second.
    let arrives = document.sections.iter().any(|section| section.entries.iter().any(|(key, _)| key == "arrival_rate"));
    if !fits || arrives || !outcome.spec.sums.is_empty() {
        return;
    }
    let Some(slow) = twice(&as_long_as(document, outcome)) else { return };
    let Ok(slow) = summary(&slow, 4 * most) else { return };
    for key in
        ["sent_packets", "retransmitted_packets", "delivered_bytes", "acked_bytes", "timeouts", "fast_recoveries"]
    {
        for (fast, slow) in
            outcome.json["flows"].as_array().into_iter().flatten().zip(slow["flows"].as_array().into_iter().flatten())
        {
            laws.hold("twice the time, half the rate, the same run", fast[key] == slow[key], || {
                format!("{}.{key}: {} against {}", fast["id"], fast[key], slow[key])
            });
        }
    }
}

/// The run with every time twice as long and every rate half; `None` if that cannot be said.
fn twice(document: &Document) -> Option<RunSpec> {
    let mut slow = document.clone();
    for key in Scenario::keys(&document.text()) {
        let domains = match &key.domain {
            Domain::Either(domains) => domains.as_slice(),
            domain => std::slice::from_ref(domain),
        };
        let text = document.text_of(&key.path).or(key.default.as_deref())?.trim_matches('"').to_owned();
        for domain in domains {
            match domain {
                Domain::Time { .. } => {
                    if let Ok(time) = parse_span(&text) {
                        slow.put(&key.path, format!("\"{}ns\"", time.as_nanos().checked_mul(2)?));
                    }
                }
                Domain::Rate => {
                    if let Ok(rate) = parse_rate(&text) {
                        slow.put(
                            &key.path,
                            format!("\"{}bit\"", (rate.as_bps() % 2 == 0).then_some(rate.as_bps() / 2)?),
                        );
                    }
                }
                _ => {}
            }
        }
    }
    draw::is_good(&slow.text()).then(|| spec(&slow.text()))
}
