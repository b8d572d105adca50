//! What the network shows of an interval, beyond what its sender sees: the columns of
//! `series.csv`, of every flow and link direction, and a learner's share.

use ackclock_sim::spec::RunSpec;
use ackclock_sim::{Lookout, World};
use ackclock_trace::{FLOW_NUMBERS, LINK_NUMBERS, SeriesOf};
use ackclock_units::Time;

/// Bytes that arrived at a learner's receiver over those that arrived at any flow's.
const SHARE: &str = "share";

/// The flows and link directions of all runs, and where the values of each are.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkFeatures {
    /// Flows and links in order; links come after flows.
    all: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Flow,
    Link,
}

impl Kind {
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Kind::Flow => &FLOW_NUMBERS,
            Kind::Link => &LINK_NUMBERS,
        }
    }

    const fn list(self) -> &'static str {
        match self {
            Kind::Flow => "flows",
            Kind::Link => "links",
        }
    }
}

/// Returns true if a feature of this name belongs to the network.
pub(crate) fn has(name: &str) -> bool {
    name == SHARE || name.starts_with("flows.") || name.starts_with("links.")
}

impl NetworkFeatures {
    /// Adds the flows and links of a run.
    pub(crate) fn add(&mut self, run: &RunSpec) {
        let flows = run.flows.iter().map(|flow| flow.id.to_string()).chain(run.sums.iter().map(|sum| sum.id.clone()));
        let directions = |name: &str| ["forward", "reverse"].map(|direction| format!("{name}.{direction}"));
        let links = run.links.iter().flat_map(|link| directions(&link.name));
        self.all.extend(flows.map(|id| (Kind::Flow, id)).chain(links.map(|id| (Kind::Link, id))));
        self.all.sort_unstable();
        self.all.dedup();
    }

    /// The names of all values, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let of = |(kind, id): &(Kind, String)| {
            let name = |column: &&str| format!("{}.{id}.{column}", kind.list());
            kind.columns().iter().map(name).collect::<Vec<_>>()
        };
        std::iter::once(SHARE.to_owned()).chain(self.all.iter().flat_map(of)).collect()
    }

    /// The place of a value. A link without a direction is its forward one.
    ///
    /// # Errors
    /// There is none of this name; which there are.
    pub(crate) fn find(&self, name: &str) -> Result<usize, String> {
        if name == SHARE {
            return Ok(0);
        }
        let kind = if name.starts_with("links.") { Kind::Link } else { Kind::Flow };
        let (list, columns) = (kind.list(), kind.columns());
        let (id, column) = name[list.len() + 1..].rsplit_once('.').unwrap_or_default();
        let entity = self.entity(kind, id).or_else(|| self.entity(kind, &format!("{id}.forward")));
        match (entity, columns.iter().position(|known| *known == column)) {
            (Some(entity), Some(column)) => Ok(self.base(entity) + column),
            (None, _) => {
                let known = self.all.iter().filter(|(other, _)| *other == kind).map(|(_, id)| &**id);
                let known: Vec<&str> = known.take(50).collect();
                Err(format!("`{name}`: expected {list}.ID.COLUMN with ID one of {}", known.join(", ")))
            }
            (_, None) => Err(format!("`{name}`: unknown column `{column}`; expected one of {}", columns.join(", "))),
        }
    }

    fn entity(&self, kind: Kind, id: &str) -> Option<usize> {
        self.all.binary_search_by(|(other, known)| (*other, known.as_str()).cmp(&(kind, id))).ok()
    }

    fn base(&self, entity: usize) -> usize {
        let flows = self.all.partition_point(|(kind, _)| *kind == Kind::Flow);
        1 + entity.min(flows) * FLOW_NUMBERS.len() + entity.saturating_sub(flows) * LINK_NUMBERS.len()
    }

    /// Nothing yet, seen by the learner of this flow.
    pub(crate) fn view(&self, lookout: Lookout) -> NetworkView {
        NetworkView { lookout, values: vec![0.0; self.base(self.all.len())] }
    }
}

/// The network's features in the last interval.
#[derive(Debug)]
pub(crate) struct NetworkView {
    lookout: Lookout,
    pub(crate) values: Vec<f64>,
}

impl NetworkView {
    /// An interval of the learner of flow `own` ends: the values are those of it. One without
    /// length leaves them as they are.
    pub(crate) fn look(&mut self, now: Time, world: &mut World, network: &NetworkFeatures, own: &str) {
        let NetworkView { lookout, values } = self;
        let (mut mine, mut all, mut is_first) = (0, 0, true);
        world.look(now, lookout, |record| {
            // Flows to which nothing happened have no record.
            if std::mem::take(&mut is_first) {
                values.fill(0.0);
            }
            let (kind, flow, link);
            let numbers: &[Option<f64>] = match &record.of {
                SeriesOf::Flow(point) | SeriesOf::Group(point) => {
                    all += record.bytes;
                    mine += if record.id == own { record.bytes } else { 0 };
                    (kind, flow) = (Kind::Flow, record.flow_numbers(point));
                    &flow
                }
                SeriesOf::Link(point) => {
                    (kind, link) = (Kind::Link, record.link_numbers(point));
                    &link
                }
                SeriesOf::Subflow(..) | SeriesOf::Class(_) => return,
            };
            if let Some(entity) = network.entity(kind, record.id) {
                let base = network.base(entity);
                for (value, number) in values[base..].iter_mut().zip(numbers) {
                    *value = number.unwrap_or(0.0);
                }
            }
        });
        if !is_first {
            values[0] = if all > 0 { mine as f64 / all as f64 } else { 0.0 };
        }
    }
}
