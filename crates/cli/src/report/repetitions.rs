//! The test whether the repetitions of a point differ at all.

use ackclock_trace::Summary;

/// The values that distinguish the runs of a point, if anything does: the amount of events in them,
/// and their results.
#[derive(Clone, Debug, PartialEq)]
struct Trail {
    events: u64,
    packets: u64,
    starts: Vec<Option<f64>>,
    goodputs: Vec<f64>,
    sojourns: Vec<[Option<f64>; 3]>,
}

/// Finds points whose repetitions are all the same.
#[derive(Debug, Default)]
pub(super) struct Repetitions {
    first: Option<Trail>,
    runs: usize,
    differ: bool,
    same_points: usize,
    points: usize,
}

impl Repetitions {
    /// Adds a run of the point at hand.
    pub(super) fn add<P>(&mut self, summary: &Summary<P>) {
        let goodputs = summary.flows.iter().map(|flow| flow.goodput_bps);
        let goodputs = goodputs.chain(summary.groups.iter().map(|group| group.goodput_bps)).collect();
        let of = |values: &ackclock_trace::Distribution| [values.quantiles.p50, values.quantiles.p95, values.max];
        let sojourns = summary.links.iter().map(|link| of(&link.load.sojourn_ms)).collect();
        let starts = summary.flows.iter().map(|flow| flow.start_s).collect();
        let trail = Trail { events: summary.events, packets: summary.packets, starts, goodputs, sojourns };
        self.runs += 1;
        self.differ |= *self.first.get_or_insert_with(|| trail.clone()) != trail;
    }

    /// Every run of the point at hand has been added.
    pub(super) fn end_point(&mut self) {
        if self.runs > 1 {
            self.points += 1;
            self.same_points += usize::from(!self.differ);
        }
        (self.first, self.runs, self.differ) = (None, 0, false);
    }

    /// The note about it.
    pub(super) fn note(&self) -> Option<String> {
        let points = match (self.same_points, self.points) {
            (0, _) => return None,
            (same, all) if same == all => String::new(),
            (same, all) => format!(" of {same} of {all} points"),
        };
        Some(format!("note: the repetitions{points} are all the same: nothing in them is random (see `start_jitter`)"))
    }
}
