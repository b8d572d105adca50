//! From specifications to components.

use std::net::IpAddr;
use std::sync::Arc;

use ackclock_cc::CongestionControl;
use ackclock_emulator::{Link, LinkConfig};
use ackclock_mptcp::{Connection, MptcpConfig, Path};
use ackclock_packet::flow_hash;
use ackclock_tcp::{Config, Endpoint, Metrics, Ports};
use ackclock_units::{Random, Time};

use crate::datagrams::Datagrams;
use crate::direction::LinkDirection;
use crate::flow::{ApplicationState, Flow, SenderNames};
use crate::host::Host;
use crate::index::{FlowId, IndexVec};
use crate::spec::{
    self, CcChange, DirectionSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec, MptcpSpec, QueueSpec, RunSpec,
};
use crate::stock::{ConnectionEnd, Stock};
use crate::watch::{HeaderWatch, Peer};

/// Every connection goes from this port, its sender's; each has its two hosts to itself. Where a
/// peer outside knows it by other ports, they are exchanged at the border.
pub const SENDER_PORT: u16 = 40_000;
/// Every connection goes to this port, its receiver's.
pub const RECEIVER_PORT: u16 = 5_001;

/// The two directions of a link, forward first.
pub(crate) fn directions(run: &RunSpec, link: &LinkSpec) -> [LinkDirection; 2] {
    [("forward", &link.forward), ("reverse", &link.reverse)].map(|(way, spec)| direction(run, link, way, spec))
}

fn direction(run: &RunSpec, link: &LinkSpec, way: &str, spec: &DirectionSpec) -> LinkDirection {
    let id = format!("{}.{way}", link.name);
    let random = |part| Random::for_component(run.seed, run.run, &format!("links.{id}.{part}"));
    let config = LinkConfig {
        rate: spec.rate,
        delay: spec.delay,
        burst: spec.burst,
        overhead: spec.overhead,
        impairments: spec.impairments.clone(),
    };
    let mut course = spec.course.clone();
    let mut queue = spec.queue.clone();
    let changed = course.schedule.iter_mut().filter_map(|change| change.queue.as_mut());
    changed.chain([&mut queue]).for_each(|queue| resolve(queue, run.flows.iter().map(|flow| &*flow.id)));
    let queue = queue.build(random("queue"));
    let link = match &link.medium {
        Some(_) => Link::on_medium(config, queue, random("wire")),
        None => Link::with_course(config, queue, random("wire"), course),
    };
    let link = match spec.device {
        Some(device) => link.with_device(device),
        None => link,
    };
    LinkDirection::new(id, spec.queue.name(), link)
}

/// Sets the hashes of the flows that the classes of a queue name, in both directions: of the flow
/// with this id, or of all flows of a group. `ids` are those of all flows, in their order.
pub(crate) fn resolve<'a>(queue: &mut QueueSpec, ids: impl Iterator<Item = &'a str> + Clone) {
    queue.resolve(&|name| {
        let is_of = |id: &str| id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let numbers = ids.clone().enumerate().filter(|(_, id)| is_of(id)).map(|(number, _)| number as u64);
        numbers.flat_map(|number| [false, true].map(|reverse| flow_hash(number, reverse))).collect()
    });
}

/// The source of the random streams of a run's components.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streams {
    seed: u64,
    run: u64,
}

impl Streams {
    pub(crate) fn of(spec: &RunSpec) -> Streams {
        Streams { seed: spec.seed, run: spec.run }
    }

    pub(crate) fn random(self, name: &str) -> Random {
        Random::for_component(self.seed, self.run, name)
    }
}

/// The controllers that a sender is to have later, the last one first.
pub(crate) fn schedule(streams: Streams, flow: &FlowSpec) -> Vec<(Time, Box<dyn CongestionControl>)> {
    let build = |(number, change): (usize, &CcChange)| {
        // A controller of its own draws from a stream of its own, so that none changes another's
        // numbers.
        let id = format!("flows.{}.sender.cc.{}", flow.id, number + 1);
        (change.at, change.cc.build(streams.random(&id)))
    };
    flow.schedule.iter().enumerate().map(build).rev().collect()
}

/// The application of a flow, if it is no bulk transfer.
pub(crate) fn application(streams: Streams, flow: &FlowSpec) -> Option<Box<ApplicationState>> {
    ApplicationState::new(flow, || streams.random(&format!("flows.{}.application", flow.id)))
}

/// The settings of the hosts built so far: equal ones are shared.
#[derive(Debug, Default)]
pub(crate) struct SharedConfigs {
    recent: Vec<Arc<Config>>,
}

impl SharedConfigs {
    /// The most settings that are kept: neighbouring flows are mostly of few kinds.
    const MOST: usize = 8;

    fn share(&mut self, config: Config) -> Arc<Config> {
        if let Some(known) = self.recent.iter().find(|known| ***known == config) {
            return Arc::clone(known);
        }
        let shared = Arc::new(config);
        if self.recent.len() == SharedConfigs::MOST {
            self.recent.remove(0);
        }
        self.recent.push(Arc::clone(&shared));
        shared
    }
}

/// The flows. Those of a group share what it calls its senders.
pub(crate) fn flows(run: &RunSpec) -> IndexVec<FlowId, Flow> {
    let (mut flows, mut last) = (IndexVec::new(), None);
    for (number, flow) in run.flows.iter().enumerate() {
        let known = last.take().filter(|(group, _): &(Arc<FlowGroup>, SenderNames)| Arc::ptr_eq(group, &flow.group));
        let (_, names) = last.insert(known.unwrap_or_else(|| (Arc::clone(&flow.group), SenderNames::new(&flow.group))));
        let streams = Streams::of(run);
        let (schedule, application) = (schedule(streams, flow), application(streams, flow));
        let carried = names.carried(run, flow);
        let names = carried.as_ref().unwrap_or(names);
        flows.push(Flow::new(FlowId::new(number), flow, names, schedule, application));
    }
    flows
}

/// An empty memory of metrics for each index that flows use.
pub(crate) fn memories(spec: &RunSpec) -> Vec<Metrics> {
    let of_flows = spec.flows.iter().map(|flow| flow.metrics);
    let of_groups = spec.sums.iter().map(|sum| sum.group.metrics);
    let count = of_flows.chain(of_groups).flatten().map(|number| number + 1).max();
    vec![Metrics::default(); count.unwrap_or(0)]
}

/// The settings of one end of several subflows. Addresses that no host has are made up: path by
/// path, those of a client and of a server.
fn mptcp_config(spec: &MptcpSpec, side: ConnectionEnd, foreign_peer: bool) -> MptcpConfig {
    let path = |number: usize| {
        let [client, server] = match spec.hosts.get(number) {
            Some(hosts) => hosts.addresses,
            None => [1, 2].map(|host| IpAddr::from([10, number as u8, 0, host])),
        };
        let (local, remote) = match side {
            ConnectionEnd::Sender => (client, server),
            ConnectionEnd::Receiver => (server, client),
        };
        Path { local, remote, backup: spec.backups.contains(&number) }
    };
    MptcpConfig {
        paths: (0..=spec.others.len()).map(path).collect(),
        scheduler: spec.scheduler,
        opportunistic_retransmission: spec.opportunistic_retransmission,
        penalization: spec.penalization,
        foreign_peer,
        ..MptcpConfig::default()
    }
}

/// Returns true if the application writes as much as its socket accepts,
/// [`spec::FlowGroup::write_size`] bytes at a time.
fn writes_alike(application: &spec::Application) -> bool {
    use spec::Application as App;
    matches!(application, App::Bulk | App::Load(_) | App::Connection)
}

/// The two ends of a flow, sender first.
pub(crate) fn hosts(streams: Streams, flow: &FlowSpec, settings: &mut SharedConfigs) -> [Host; 2] {
    let outside = [&flow.sender, &flow.receiver].map(|end| matches!(end, HostSpec::Outside));
    [(ConnectionEnd::Sender, &flow.sender), (ConnectionEnd::Receiver, &flow.receiver)].map(|(side, spec)| {
        let part = match side {
            ConnectionEnd::Sender => "sender",
            ConnectionEnd::Receiver => "receiver",
        };
        let mut random = streams.random(&format!("flows.{}.{part}", flow.id));
        let (local, remote) = match side {
            ConnectionEnd::Sender => (SENDER_PORT, RECEIVER_PORT),
            ConnectionEnd::Receiver => (RECEIVER_PORT, SENDER_PORT),
        };
        match spec {
            HostSpec::Endpoint(endpoint) => {
                let ports = Ports { local, remote };
                let mut config = endpoint.config.clone();
                if config.transfer.push_writes && writes_alike(&flow.application) {
                    config.transfer.write_size = u32::try_from(flow.write_size).unwrap_or(u32::MAX);
                }
                if let Some(mptcp) = &flow.mptcp {
                    let cc = endpoint.cc.clone();
                    let stream = format!("flows.{}.{part}.cc", flow.id);
                    let make = move |path| cc.build(streams.random(&format!("{stream}.{path}")));
                    let settings = mptcp_config(mptcp, side, outside != [false, false]);
                    return Host::Mptcp(Box::new(Connection::new(settings, config, Box::new(make), ports, random)));
                }
                let draw = random.bits();
                let (isn, ts_offset) = (draw as u32, (draw >> 32) as u32);
                let cc = streams.random(&format!("flows.{}.{part}.cc", flow.id));
                Host::Endpoint(Box::new(Endpoint::new(
                    settings.share(config),
                    endpoint.cc.build(cc),
                    ports,
                    isn,
                    ts_offset,
                )))
            }
            HostSpec::Outside => Host::Outside(Box::new(HeaderWatch::new(match (outside, &flow.mptcp) {
                (_, Some(_)) => Peer::Subflows,
                ([true, true], None) => Peer::Outside,
                (_, None) => Peer::Ours,
            }))),
            HostSpec::Datagrams(datagrams) => {
                let random = streams.random(&format!("flows.{}.messages", flow.id));
                Host::Datagrams(Box::new(Datagrams::new(datagrams, side, random)))
            }
            HostSpec::Smoltcp(smoltcp) => {
                Host::Smoltcp(Box::new(Stock::new(smoltcp, side, local, remote, random.bits())))
            }
        }
    })
}
