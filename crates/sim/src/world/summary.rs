//! The summary of a run.

use std::collections::BTreeMap;

use ackclock_tcp::TcpInfo;
use ackclock_trace::{FlowSummary, ResponsivenessSummary, Summary, fairness, kinds};
use ackclock_traffic::{ProbeTimes, Responsiveness};
use ackclock_units::{Random, Time};

use super::World;
use super::turnover::Passed;
use crate::flow::{FORWARD, REVERSE};
use crate::host::Host;
use crate::index::FlowId;

impl World {
    /// The numbers of segments that arrived at endpoints as predicted
    /// ([`ackclock_tcp::Config::header_prediction`]), and of all that arrived.
    pub fn predicted_segments(&self) -> [u64; 2] {
        let endpoints = self.hosts.iter().filter_map(|host| match host {
            Host::Endpoint(endpoint) => Some(endpoint),
            Host::Smoltcp(_) | Host::Mptcp(_) | Host::Outside(_) | Host::Datagrams(_) => None,
        });
        endpoints.fold([0, 0], |[predicted, arrived], endpoint| {
            [
                predicted + endpoint.sender().predicted_segments(),
                arrived + u64::from(TcpInfo::of(endpoint, self.end).segs_in),
            ]
        })
    }

    /// The summary, at the end of the run.
    ///
    /// # Panics
    /// If the books of a queue do not balance.
    pub fn summary(&mut self) -> Summary<()> {
        let end = self.pass_end();
        let (listed, passed) = self.take_groups();
        let responsiveness = self.responsiveness(listed);
        let directions = &self.directions;
        let flows = (self.flows.iter_mut().zip(self.hosts.pairs()).take(listed))
            .map(|(flow, (sender, receiver))| flow.summary(end, sender, receiver, |link| &directions[link].id))
            .collect();
        self.summarize(flows, passed, responsiveness)
    }

    /// The summary, at the end of a run that nothing else is asked of. Each flow's state goes when
    /// its summary is there, so that the results take no memory beside the run's.
    ///
    /// # Panics
    /// If the books of a queue do not balance.
    pub fn into_summary(mut self) -> Summary<()> {
        let end = self.pass_end();
        let (listed, passed) = self.take_groups();
        let responsiveness = self.responsiveness(listed);
        let (flows, hosts) = (std::mem::take(&mut self.flows), std::mem::take(&mut self.hosts));
        let directions = &self.directions;
        let flows = (flows.into_iter().zip(hosts.into_pairs()).take(listed))
            .map(|(mut flow, [sender, receiver])| flow.summary(end, &sender, &receiver, |link| &directions[link].id))
            .collect();
        self.summarize(flows, passed, responsiveness)
    }

    /// Everything is done and measured that is so before the end of the run.
    fn pass_end(&mut self) -> Time {
        let end = self.end;
        self.finish_reordering();
        self.end_decisions();
        while self.next_edge <= end {
            self.pass_edges(end);
        }
        self.finish();
        let passing = self.passing_packets();
        self.windows.break_off(end, &self.flows, &self.hosts, &self.directions, passing);
        end
    }

    /// The responsiveness from all probes; `None` if no flow sends any.
    fn responsiveness(&self, listed: usize) -> Option<Responsiveness> {
        let mut probing = self.flows.iter().take(listed).filter_map(|flow| flow.probe_times()).peekable();
        probing.peek()?;
        let mut all = ProbeTimes::default();
        probing.for_each(|times| all.absorb(times));
        Some(all.responsiveness())
    }

    /// The summary of a run with these flows.
    fn summarize(
        &mut self,
        mut flows: Vec<FlowSummary>,
        passed: Passed,
        responsiveness: Option<Responsiveness>,
    ) -> Summary<()> {
        let (groups, workloads) = passed;
        if let Some(places) = &self.records.reordering {
            for (flow, id) in flows.iter_mut().zip((0..).map(FlowId::new)) {
                flow.reordering = places.summary(id, |link| &self.directions[link].id);
            }
        }
        let (end, listed) = (self.end, self.windows.listed_directions());
        let shares = |way: Option<&'static str>| {
            let alike = flows.iter().filter(move |flow| way.is_none_or(|way| flow.direction == way));
            fairness(alike.map(|flow| (flow.goodput_bps, flow.datagrams.is_none())))
        };
        Summary {
            schema: 1,
            title: self.about.title.clone(),
            seed: self.about.seed,
            run: self.about.run,
            index: self.about.run,
            run_seed: format!("{:016x}", Random::seed_of_run(self.about.seed, self.about.run)),
            clock: self.about.clock,
            partial: end < Time::ZERO + self.about.duration,
            live: None,
            commands: Vec::new(),
            changes: Vec::new(),
            duration_s: end.as_secs_f64(),
            params: (),
            labels: BTreeMap::new(),
            events: self.handled,
            packets: (flows.iter().map(|flow| flow.sent.sent_packets))
                .chain(groups.iter().map(|group| group.sent.sent_packets))
                .sum(),
            links: self.directions.iter_mut().take(listed).map(|direction| direction.summary(end)).collect(),
            fairness_jain: shares(None),
            fairness_jain_forward: shares(Some(FORWARD)),
            fairness_jain_reverse: shares(Some(REVERSE)),
            kinds: kinds(&flows),
            responsiveness_rpm: responsiveness.and_then(|of| of.rpm),
            responsiveness: responsiveness.map(|of| ResponsivenessSummary {
                foreign_rpm: of.foreign_rpm,
                loaded_rpm: of.loaded_rpm,
                tcp_ms: of.tcp,
                tls_ms: of.tls,
                http_ms: of.http,
                loaded_ms: of.loaded,
                foreign_probes: of.foreign_probes,
                self_probes: of.self_probes,
            }),
            flows,
            windows: self.windows.take(),
            groups,
            workloads,
        }
    }
}
