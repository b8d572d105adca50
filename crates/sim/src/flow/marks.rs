//! A flow in a part of a run.

use ackclock_tcp::CaStateTime;
use ackclock_trace::{CaStateSeconds, FlowWindow, Histogram};
use ackclock_units::Time;

use super::Flow;
use super::counts::{EndCounts, bits_per_second, ca_seconds, ca_time, dupthresh};
use crate::host::Host;

/// The measurements of a flow at the start of a window.
#[derive(Debug)]
pub(crate) struct FlowMark {
    at: Time,
    rtt: Histogram,
    cwnd: Histogram,
    counts: EndCounts,
    states: Option<CaStateTime>,
    dupthresh: Option<u64>,
}

impl Flow {
    /// The measurements at the start of a window.
    pub(crate) fn mark(&self, at: Time, sender: &Host, receiver: &Host) -> FlowMark {
        FlowMark {
            at,
            rtt: self.rtt.clone(),
            cwnd: self.cwnd.clone(),
            counts: EndCounts::of(sender, receiver),
            states: ca_time(sender, self.end(at)),
            dupthresh: dupthresh(sender),
        }
    }

    /// The measurements since `mark`, in a window that ends at `to`.
    pub(crate) fn since(&self, mark: &FlowMark, to: Time, sender: &Host, receiver: &Host) -> FlowWindow {
        let EndCounts { sent, recoveries, reactions, progress, .. } =
            EndCounts::of(sender, receiver).since(&mark.counts);
        FlowWindow {
            id: self.id.clone(),
            goodput_bps: bits_per_second(progress.delivered_bytes, to.since(mark.at)),
            rtt_ms: self.rtt.since(&mark.rtt).distribution(1e-6),
            cwnd_bytes: self.cwnd.since(&mark.cwnd).quantiles(1.0),
            sent,
            recoveries,
            reactions,
            progress,
            ca_state_s: self.states_since(mark, to, sender),
            dupthresh: dupthresh(sender),
            dupthresh_start: mark.dupthresh,
        }
    }

    /// The time of the sender in each congestion state since `mark`.
    fn states_since(&self, mark: &FlowMark, to: Time, sender: &Host) -> CaStateSeconds {
        let end = self.end(to);
        let Some(now) = ca_time(sender, end) else { return CaStateSeconds::default() };
        let then = mark.states.unwrap_or_default();
        let time = CaStateTime {
            disorder: now.disorder - then.disorder,
            cwr: now.cwr - then.cwr,
            recovery: now.recovery - then.recovery,
            loss: now.loss - then.loss,
        };
        ca_seconds(time, end.since(mark.at.max(self.start)))
    }
}
