//! The runs of one point of a sweep: everything that the file says of them.

use ackclock_sim::spec::{CommandMeasure, CommandSpec, FlowSpec, LinkSpec, LiveSpec, SumSpec};
use ackclock_sim::{Memory, Population};
use ackclock_units::{Span, Time as Instant};

use crate::clock::Timing;
use crate::document::{Node, Value};
use crate::fields::{Context, Fields};
use crate::flow::{CarriedFlows, Group, Setting};
use crate::measurement::Window;
use crate::metric::Shape;
use crate::paths::Network;
use crate::quantity::{Problem, Text, Time, Whole};
use crate::record::RecordSpec;
use crate::workload::{self, WorkloadEntry};
use crate::{clock, command, flow, hosts, link, paths, record, topology};

/// Bytes of a summary in JSON, and of a flow or a link direction in it.
const BYTES_OF_A_SUMMARY: f64 = 600.0;
const BYTES_OF_AN_OBJECT: f64 = 1500.0;

/// The common properties of the runs of one point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) duration: Span,
    pub(crate) seed: u64,
    pub(crate) links: Vec<LinkSpec>,
    pub(crate) groups: Vec<Group>,
    pub(crate) workloads: Vec<WorkloadEntry>,
    /// The links of the file that a topology leaves, which come first.
    pub(crate) apart: usize,
    pub(crate) recorded: RecordSpec,
    pub(crate) timing: Timing,
    pub(crate) network: Network,
    pub(crate) commands: Vec<CommandSpec>,
}

impl Plan {
    pub(crate) fn read(root: &Node, cx: &Context<'_>) -> Option<Plan> {
        let mut fields = Fields::new(cx, root.table()?, "", &root.place);
        match fields.get(("schema", "version of the format, 1")).map(|entry| &entry.node) {
            None => fields.missing("schema", "`schema = 1`, the version of the format"),
            Some(node) if node.same(&Node::new(1u64, node.place.clone())) => {}
            Some(node) => fields.reject("schema", node, Problem::new("unknown version of the format", "`schema = 1`")),
        }
        fields.or(("title", "name of the scenario, for people"), String::new(), Text);
        let (mut duration, mut seed, mut timing) = (None, 1, Timing::default());
        let nodes = hosts::read_all(&mut fields, cx);
        match fields.table(("run", "settings of the whole run"), "a section `[run]` with `duration`") {
            Some(mut run) => {
                duration = run.required(
                    ("duration", "measured time: simulated, or real in a live run"),
                    Time::Positive,
                    "the simulated time, such as \"90s\"",
                );
                seed = run.or(("seed", "seed of all random numbers"), seed, Whole(0, i64::MAX as u64));
                let carried = flow::are_carried(fields.peek("flows"), cx.own);
                timing = clock::read(&mut run, nodes.as_deref(), carried);
                run.finish();
            }
            None if fields.get("run").is_none() => fields.missing("run", "a section `[run]` with `duration`"),
            None => {}
        }
        let mut links = Vec::new();
        let mut complete = true;
        match fields.get(("links", "links by name")).map(|entry| &entry.node) {
            None => fields.missing("links", "at least one section `[links.NAME]` with `rate`"),
            Some(node @ Node { value: Value::Table(table), .. }) if table.0.len() > link::MAX_LINKS => {
                let expected = format!("at most {} links", link::MAX_LINKS);
                fields.reject("links", node, Problem::new(format!("{} links are too many", table.0.len()), expected));
                complete = false;
            }
            Some(Node { value: Value::Table(table), .. }) => {
                for entry in &table.0 {
                    match link::read(cx, entry) {
                        Some(link) => links.push(link),
                        None => complete = false,
                    }
                }
            }
            Some(node) => fields.reject("links", node, Problem::new("not a table", "sections `[links.NAME]`")),
        }
        // Without all links, one that the network is copies of would be called unknown.
        let topology = match complete.then(|| topology::read(&mut fields, std::mem::take(&mut links))) {
            Some(Some((all, topology))) => {
                links = all;
                topology
            }
            _ => {
                fields.get("topology");
                complete = false;
                None
            }
        };
        let apart = topology.as_ref().map_or(0, |topology| topology.first);
        let names = paths::names(&links);
        // Without all links, a path over a missing one would be called unknown; without all hosts,
        // a host.
        let (groups, workloads, recorded, network, commands) = match nodes.filter(|_| complete) {
            Some(nodes) => {
                let pipes = paths::read_all(&mut fields, &names, &nodes);
                let duration = duration.unwrap_or(Span::ZERO);
                let commands = command::read_all(&mut fields, &nodes, duration);
                let mut network = Network { nodes, pipes };
                let carried = &CarriedFlows::join(&mut network, fields.peek("flows"), cx.own);
                let outside = timing.is_outside();
                let topology = topology.as_ref();
                let (links, names) = (&links, &names);
                let setting = Setting { links, names, network: &network, carried, topology, outside, duration };
                let groups = flow::read_all(&mut fields, cx, setting);
                let workloads = workload::read_all(&mut fields, setting, &groups);
                groups.iter().filter_map(|group| group.carriage.as_ref()).for_each(|of| of.complete(&mut network));
                let recorded =
                    record::read(&mut fields, links, &groups, &network.nodes, duration, timing.clock.as_ref());
                (groups, workloads, recorded, network, commands)
            }
            None => {
                for key in ["flows", "workloads", "record", "paths", "commands"] {
                    fields.get(key);
                }
                Default::default()
            }
        };
        for key in ["sweep", "expect"] {
            fields.get(key);
        }
        fields.finish();
        drop(names);
        Some(Plan { duration: duration?, seed, links, groups, workloads, apart, recorded, timing, network, commands })
    }

    /// The outside of a run, if there is any.
    pub(crate) fn live(&self) -> Option<LiveSpec> {
        Some(LiveSpec {
            clock: self.timing.clock.clone()?,
            nodes: self.network.nodes.clone(),
            pipes: self.network.pipes.clone(),
            commands: self.commands.clone(),
            scheduling: self.timing.scheduling.clone(),
            offload: self.timing.offload,
            lateness_limit: self.timing.lateness_limit,
            drain: self.timing.drain,
        })
    }

    /// The links of a run, and its flows that are listed, where the seed is `seed`.
    pub(crate) fn links_and_flows(&self, seed: u64, run: u64) -> (Vec<LinkSpec>, Vec<FlowSpec>) {
        let (mut links, mut flows) = (self.links.clone(), Vec::new());
        for group in &self.groups {
            let first = flows.len();
            flows.extend(group.flows(seed, run));
            flows[first..].iter_mut().for_each(|flow| group.interrupts.attach(flow, &mut links));
        }
        (links, flows)
    }

    /// The flows of repetition `run` of which only sums are kept.
    pub(crate) fn sums(&self, run: u64) -> Vec<SumSpec> {
        self.sums_of(self.seed, run)
    }

    /// The sums with another seed.
    pub(crate) fn sums_of(&self, seed: u64, run: u64) -> Vec<SumSpec> {
        let mut before = 0;
        let groups = self.groups.iter().filter_map(|group| {
            let sum = group.summed(seed, run, before);
            before += if sum.is_none() { group.count() as usize } else { 0 };
            sum
        });
        let mut sums: Vec<SumSpec> = groups.collect();
        sums.extend(self.workloads.iter().map(|workload| workload.summed(seed, run, before)));
        sums
    }

    /// A window within the run; at a point where the expectation does not apply it may be empty.
    pub(crate) fn window(&self, (from, to): Window) -> (Instant, Instant) {
        let at = |span: Span| Instant::ZERO + span.min(self.duration);
        (at(from), at(to.unwrap_or(self.duration)))
    }

    /// The memory that a run takes, with the keys that set the numbers of its flows.
    pub(crate) fn memory(&self) -> (Memory, Vec<String>) {
        let keys = self.groups.iter().map(|group| format!("flows.{}.count", group.id));
        let keys = keys.chain(self.workloads.iter().map(|workload| format!("workloads.{}.max_alive", workload.id)));
        (Memory::of(&self.links, &self.populations(), self.duration), keys.collect())
    }

    fn populations(&self) -> Vec<Population<'_>> {
        let listed = self.groups.iter().map(Group::population);
        listed.chain(self.workloads.iter().map(WorkloadEntry::population)).collect()
    }

    /// The most packets that a run sends.
    pub(crate) fn packets(&self) -> Option<f64> {
        ackclock_sim::most_packets(&self.links, &self.populations(), self.duration)
    }

    /// The bytes of the summary, with so many windows, and the records of a run, roughly.
    pub(crate) fn bytes(&self, windows: usize) -> Option<f64> {
        let flows = self.groups.iter().map(|group| if group.arrivals.sums { 1 } else { group.count() }).sum::<u64>();
        let objects = flows as f64 + self.workloads.len() as f64 + 2.0 * self.links.len() as f64;
        let rows = self.recorded.rows(self.duration) * objects;
        let each = self.recorded.bytes_of_a_packet();
        let packets = if each > 0.0 { self.packets()? * each } else { 0.0 };
        // In a window they have a third of what they have in all.
        let objects = objects * (1.0 + windows as f64 / 3.0);
        Some(BYTES_OF_A_SUMMARY + BYTES_OF_AN_OBJECT * objects + rows + packets)
    }

    pub(crate) fn shape(&self) -> Shape {
        let listed = |sums| self.groups.iter().filter(move |group| group.arrivals.sums == sums);
        let mptcp = self.groups.iter().filter_map(|group| group.alike.mptcp.as_ref());
        let subflows = mptcp.map(|mptcp| mptcp.others.len() + 1);
        Shape {
            flows: listed(false).map(|group| (group.id.clone(), group.count())).collect(),
            groups: listed(true)
                .map(|group| group.id.clone())
                .chain(self.workloads.iter().map(|of| of.id.clone()))
                .collect(),
            workloads: self.workloads.iter().flat_map(WorkloadEntry::rows).collect(),
            links: self.links.iter().map(|link| link.name.clone()).collect(),
            subflows: subflows.max().unwrap_or(0),
            places: self.recorded.places(&self.links),
            hosts: self.network.nodes.iter().filter(|node| node.is_outside()).map(|node| node.name.clone()).collect(),
            commands: self
                .commands
                .iter()
                .map(|command| {
                    let measure = command.measure.map(|measure| match measure {
                        CommandMeasure::Json => "json",
                        CommandMeasure::Ping => "ping",
                    });
                    (command.id.clone(), measure)
                })
                .collect(),
        }
    }
}
