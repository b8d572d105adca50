//! The summary of a run.

use ackclock_trace::{FlowSummary, Summary, jain};
use ackclock_units::{Random, Time};

use super::World;
use crate::spec::Clock;

impl World {
    /// The summary, at the end of the run.
    ///
    /// # Panics
    /// If the books of a queue do not balance.
    pub fn summary(&mut self) -> Summary<()> {
        let end = self.end;
        self.finish();
        self.pass_edges(end);
        self.windows.break_off(end, &self.flows, &self.hosts, &self.directions);
        let directions = &self.directions;
        let flows: Vec<FlowSummary> = (self.flows.iter_mut().zip(self.hosts.pairs()))
            .map(|(flow, (sender, receiver))| flow.summary(end, sender, receiver, |link| &directions[link].id))
            .collect();
        let way = |reverse: bool| flows.iter().zip(self.flows.iter()).filter(move |(_, flow)| flow.reverse == reverse);
        let jain_of = |reverse| jain(way(reverse).map(|(flow, _)| flow.goodput_bps));
        Summary {
            schema: 1,
            title: self.spec.title.clone(),
            seed: self.spec.seed,
            run: self.spec.run,
            index: self.spec.run,
            run_seed: format!("{:016x}", Random::seed_of_run(self.spec.seed, self.spec.run)),
            clock: match self.spec.live.as_deref().map(|live| &live.clock) {
                None => "virtual",
                Some(Clock::Real) => "live",
                Some(Clock::Replay(_)) => "replay",
            },
            partial: end < Time::ZERO + self.spec.duration,
            live: None,
            commands: Vec::new(),
            duration_s: end.as_secs_f64(),
            params: (),
            events: self.handled,
            packets: flows.iter().map(|flow| flow.sent_packets).sum(),
            links: self.directions.iter_mut().map(|direction| direction.summary(end)).collect(),
            fairness_jain: jain(flows.iter().map(|flow| flow.goodput_bps)),
            fairness_jain_forward: jain_of(false),
            fairness_jain_reverse: jain_of(true),
            flows,
            windows: self.windows.take(),
        }
    }
}
