//! The keys of `[run]` that select the clock of a scenario, and those for the punctuality of a live
//! run.

use std::path::PathBuf;

use ackclock_sim::spec::{Clock, NodeSpec, Priority, Scheduling, Spin, Ties};
use ackclock_units::Span;

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Flag, Kind, OneOf, OrOff, Problem, Text, Time, Whole};
use crate::report::Diagnostic;

const CLOCKS: OneOf = OneOf { what: "clock", names: &["virtual", "live", "replay"] };

const TIES: OneOf = OneOf { what: "order of equal times", names: &["random", "fixed"] };

/// Time before a deadline at which the loop stops sleeping: a time, or "auto".
struct Spins;

impl Kind for Spins {
    type Held = Spin;

    fn read(&self, node: &Node) -> Result<Spin, Problem> {
        if node.str() == Some("auto") {
            return Ok(Spin::Auto);
        }
        let read = Time::Any.read(node).map(Spin::Fixed);
        read.map_err(|problem| Problem { expected: format!("{}, or \"auto\"", problem.expected), ..problem })
    }

    fn show(&self, held: &Spin) -> Value {
        match held {
            Spin::Auto => "auto".into(),
            Spin::Fixed(span) => Time::Any.show(span),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Name(vec!["auto"]), Time::Any.domain()])
    }
}

const PRIORITIES: OneOf = OneOf { what: "priority", names: &["normal", "realtime"] };

const OFFLOADS: OneOf = OneOf { what: "offload", names: &["auto"] };

/// The most processors of a machine.
const MOST_PROCESSORS: u64 = 1024;

/// Processors by number.
struct Processors;

impl Kind for Processors {
    type Held = Vec<usize>;

    fn read(&self, node: &Node) -> Result<Vec<usize>, Problem> {
        let expected = "a list of processors by number, such as [1] or [2, 3]";
        let items = node.array().filter(|items| !items.is_empty() && items.len() as u64 <= MOST_PROCESSORS);
        let items = items.ok_or_else(|| Problem::of_type(expected))?;
        items.iter().map(|item| Whole(0, MOST_PROCESSORS - 1).read(item).map(|number| number as usize)).collect()
    }

    fn show(&self, held: &Vec<usize>) -> Value {
        let place = crate::report::Place::new(0, 0..0);
        Value::Array(
            held.iter()
                .map(|&number| Node::new(Whole(0, MOST_PROCESSORS).show(&(number as u64)), place.clone()))
                .collect(),
        )
    }

    fn domain(&self) -> Domain {
        Domain::List(Box::new(Whole(0, MOST_PROCESSORS - 1).domain()))
    }
}

const SPIN: (&str, &str) =
    ("spin", "time before an event in which a live run busy-waits; `\"auto\"`: while wakeups are late");
const PRIORITY: (&str, &str) = ("priority", "scheduling class of the live loop's thread");
const AFFINITY: (&str, &str) = ("affinity", "processors for the live loop, by number");
const OFFLOAD: (&str, &str) = ("offload", "devices pass segments of several packets, which are split before the queue");
const LATENESS_LIMIT: (&str, &str) =
    ("lateness_limit", "99th percentile of lateness, or of unread time, above which a live run is not valid");
const DRAIN: (&str, &str) = ("drain", "deliver packets in transit when a live run ends");

/// Reads the scheduling of the loop. Settings that are missing may be filled in.
fn scheduling(run: &mut Fields<'_>, fills_in: bool) -> Scheduling {
    let priority = |name: &str| if name == "realtime" { Priority::Realtime } else { Priority::Normal };
    if fills_in {
        return Scheduling {
            spin: run.or(SPIN, Spin::Auto, Spins),
            priority: priority(run.or(PRIORITY, "normal", PRIORITIES)),
            affinity: run.or(AFFINITY, None, OrOff(Processors)),
        };
    }
    Scheduling {
        spin: run.maybe(SPIN, Spins).unwrap_or_default(),
        priority: run.maybe(PRIORITY, PRIORITIES).map(priority).unwrap_or_default(),
        affinity: run.maybe(AFFINITY, OrOff(Processors)).flatten(),
    }
}

/// The clock by which a scenario runs, with its settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timing {
    /// `None` is the virtual clock.
    pub(crate) clock: Option<Clock>,
    pub(crate) ties: Ties,
    pub(crate) scheduling: Scheduling,
    pub(crate) offload: bool,
    pub(crate) lateness_limit: Option<Span>,
    pub(crate) drain: bool,
}

impl Timing {
    /// Returns `true` if packets come from outside.
    pub(crate) fn is_outside(&self) -> bool {
        self.clock.is_some()
    }

    /// Returns `true` if time is the machine's.
    pub(crate) fn is_live(&self) -> bool {
        self.clock == Some(Clock::Real)
    }

    /// Returns true if kernels or stacks send packets while it runs, so that expectations may be
    /// about hosts.
    pub(crate) fn has_hosts(&self) -> bool {
        matches!(self.clock, Some(Clock::Real | Clock::Virtual))
    }
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            clock: None,
            ties: Ties::default(),
            scheduling: Scheduling::default(),
            offload: true,
            lateness_limit: Some(Span::from_millis(1)),
            drain: false,
        }
    }
}

/// Reads the keys; `nodes` are the hosts, if they could be read, and `carried` is `true` if there are
/// flows between stacks.
pub(crate) fn read(run: &mut Fields<'_>, nodes: Option<&[NodeSpec]>, carried: bool) -> Timing {
    let mut timing = Timing::default();
    let devices = nodes.is_none_or(|nodes| nodes.iter().any(|node| node.tun.is_some()));
    let replay = run.maybe(("replay", "capture of a live run to replay"), OrOff(Text)).flatten();
    let default = match (&replay, devices) {
        (Some(_), _) => "replay",
        (None, true) => "live",
        (None, false) => "virtual",
    };
    let clock =
        run.or(("clock", "the clock that drives the run; by default `live` if hosts have devices"), default, CLOCKS);
    if let Some(entry) = run.get("replay")
        && let Some(replay) = &replay
    {
        if clock != "replay" {
            let title = format!("run.replay: a capture with the {clock} clock");
            let error = Diagnostic::new(title, &entry.key_place, "conflicts with `clock`");
            run.push(
                error.note("expected `replay = false`, or `clock = \"replay\"`, which is the default with `replay`"),
            );
        } else if replay.is_empty() || replay.contains('\0') {
            run.reject("replay", &entry.node, Problem::new("not a path", "the path of a capture, or `false`"));
        }
    } else if clock == "replay" {
        run.missing("replay", "the path of a capture that `--record` has written");
    }
    let has_stacks = nodes.is_some_and(|nodes| nodes.iter().any(|node| node.stack.is_some()));
    if clock != "virtual" && !devices && !has_stacks && !carried {
        let place = ["clock", "replay"].into_iter().find_map(|key| run.get(key)).map(|entry| entry.node.place.clone());
        let place = place.unwrap_or(run.place().clone());
        let label = "packets have no source";
        let error =
            Diagnostic::new(format!("the {clock} clock requires a host with a device or a stack"), &place, label);
        run.push(error.note("expected a section `[hosts.NAME]` with a `tun` or a `stack`"));
    }
    let virtual_only = |node: &&NodeSpec| node.stack.as_ref().is_some_and(|stack| stack.is_virtual_only());
    let host = nodes.into_iter().flatten().find(virtual_only);
    if let (Some(NodeSpec { name, stack: Some(stack), .. }), true) = (host, clock != "virtual") {
        let title = format!("hosts.{name}: the stack `{}` on the {clock} clock", stack.name());
        let error = Diagnostic::new(title, run.place(), "it does not keep up with the machine's clock");
        run.push(error.note("expected the virtual clock, without hosts that have a `tun`, or another stack"));
    } else if carried && (clock != "virtual" || devices) {
        let title = "flows whose hosts are stacks, off the virtual clock";
        let error = Diagnostic::new(title, run.place(), "they run on the virtual clock alone");
        run.push(error.note("expected the virtual clock, without hosts that have a `tun`"));
    } else if has_stacks && devices && clock == "virtual" {
        let title = "hosts with a `tun` beside hosts with a `stack`, on the virtual clock";
        let error = Diagnostic::new(title, run.place(), "nothing stands in for a kernel that talks to a stack");
        run.push(error.note("expected the clock `live` or a replay of it, or hosts of one of the two kinds"));
    }
    timing.clock = match (clock, replay) {
        ("virtual", _) if has_stacks || carried => Some(Clock::Virtual),
        ("live", _) => Some(Clock::Real),
        ("replay", Some(path)) => Some(Clock::Replay(PathBuf::from(path))),
        _ => None,
    };
    if !timing.is_outside() {
        if run.or(
            ("ties", "order of simultaneous events of several links or hosts: random, or that of the file"),
            "random",
            TIES,
        ) == "fixed"
        {
            timing.ties = Ties::Fixed;
        }
    } else if let Some(entry) = run.get("ties") {
        run.reject("ties", &entry.node, Problem::new("packets from outside come in their own order", "no `ties`"));
    }
    if nodes.is_some_and(<[NodeSpec]>::is_empty) {
        // Without hosts they mean nothing, and are not filled in.
        timing.scheduling = scheduling(run, false);
        timing.offload = run.maybe(OFFLOAD, OrOff(OFFLOADS)).is_none_or(|held| held.is_some());
        timing.lateness_limit = run.maybe(LATENESS_LIMIT, OrOff(Time::Positive)).unwrap_or(timing.lateness_limit);
        timing.drain = run.maybe(DRAIN, Flag).unwrap_or(timing.drain);
    } else {
        timing.scheduling = scheduling(run, true);
        timing.offload = run.or(OFFLOAD, Some("auto"), OrOff(OFFLOADS)).is_some();
        timing.lateness_limit = run.or(LATENESS_LIMIT, timing.lateness_limit, OrOff(Time::Positive));
        timing.drain = run.or(DRAIN, timing.drain, Flag);
    }
    timing
}
