//! Shapers whose rate follows the delay of probes.

use std::ops::Range;

use ackclock_emulator::{Autorate, Change};
use ackclock_units::{Span, Time};

use super::World;
use crate::index::{DirectionId, FlowId};
use crate::spec::{QueueSpec, RunSpec};

/// The largest packet of IP.
const MTU: u32 = 1500;

/// The shapers of a run.
#[derive(Debug)]
pub(super) struct Autorates(Vec<Shaper>);

#[derive(Debug)]
struct Shaper {
    direction: DirectionId,
    /// The numbers of its flows of probes.
    probes: Range<usize>,
    law: Autorate,
    /// Its queue with the present rate.
    queue: QueueSpec,
}

impl Autorates {
    /// The shapers of a run; `None` without any.
    pub(super) fn new(spec: &RunSpec) -> Option<Box<Autorates>> {
        let links = spec.links.iter().enumerate();
        let directions = links.flat_map(|(number, link)| {
            [(DirectionId::forward(number), &link.forward), (DirectionId::reverse(number), &link.reverse)]
        });
        let shapers = directions.filter_map(|(direction, way)| {
            let autorate = way.course.autorate.as_ref()?;
            let mut queue = way.queue.clone();
            let base = *queue.shaped()?;
            // The flows of a group are numbered one after the other.
            let is_probe = |id: &str| {
                id.strip_prefix(&*autorate.probes).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let first = spec.flows.iter().position(|flow| is_probe(&flow.id))?;
            let number = spec.flows[first..].iter().take_while(|flow| is_probe(&flow.id)).count();
            let mtu = way.overhead.of(MTU);
            let law = Autorate::new(autorate.config.clone(), base, number, mtu);
            Some(Shaper { direction, probes: first..first + number, law, queue })
        });
        let shapers: Vec<Shaper> = shapers.collect();
        (!shapers.is_empty()).then(|| Box::new(Autorates(shapers)))
    }
}

impl World {
    /// A probe has returned after `rtt`. Shapers change a nanosecond later, behind all that happens
    /// now.
    #[cold]
    pub(super) fn adapt_shapers(&mut self, now: Time, flow: FlowId, rtt: Span) {
        let Some(mut autorates) = self.autorates.take() else { return };
        for Shaper { direction, probes, law, queue } in &mut autorates.0 {
            if !probes.contains(&flow.index()) {
                continue;
            }
            self.catch_up_direction(now, *direction);
            let bytes = self.directions[*direction].link().counters().dequeued.bytes;
            let Some(rate) = law.response(now, flow.index() - probes.start, rtt, bytes) else { continue };
            if let Some(shaped) = queue.shaped() {
                *shaped = rate;
            }
            let at = now + Span::from_nanos(1);
            self.directions[*direction].change(Change { at, queue: Some(queue.clone()), ..Change::default() });
            self.rearm_direction(*direction);
        }
        self.autorates = Some(autorates);
    }
}
