//! Estimates of the resources that runs need, before they begin.

use std::collections::BTreeMap;

use ackclock_sim::Memory;

use super::Scenario;
use crate::plan::Plan;

impl Scenario {
    /// The memory that a run of each point read in advance takes, with the number of the point and
    /// the keys that set the numbers of its flows.
    pub fn memory(&self) -> Vec<(usize, Memory, Vec<String>)> {
        let of = |(point, plan): (usize, &Plan)| {
            let (memory, keys) = plan.memory();
            (point, memory, keys)
        };
        self.points.numbered().map(of).collect()
    }

    /// The most packets that these runs send together, without ACKs; `None` where nothing limits
    /// them.
    pub fn packets(&self, runs: impl IntoIterator<Item = usize>) -> Option<f64> {
        self.sum(runs, Plan::packets)
    }

    /// The time that these runs cover together, s.
    pub fn seconds(&self, runs: impl IntoIterator<Item = usize>) -> f64 {
        self.sum(runs, |plan| Some(plan.duration.as_secs_f64())).unwrap_or(0.0)
    }

    /// The bytes that the summaries and the records of these runs take on the disk, roughly; `None`
    /// where nothing limits the packets that are recorded.
    pub fn bytes(&self, runs: impl IntoIterator<Item = usize>) -> Option<f64> {
        self.sum(runs, |plan| plan.bytes(self.windows.len()))
    }

    /// The sum over runs. Points that were not read in advance count as the mean of the others.
    fn sum(&self, runs: impl IntoIterator<Item = usize>, of: impl Fn(&Plan) -> Option<f64>) -> Option<f64> {
        let known = self.points.numbered().map(|(point, plan)| Some((point, of(plan)?)));
        let known = known.collect::<Option<BTreeMap<usize, f64>>>()?;
        let mean = known.values().sum::<f64>() / known.len() as f64;
        Some(runs.into_iter().map(|run| known.get(&(run / self.repeat())).unwrap_or(&mean)).sum())
    }
}
