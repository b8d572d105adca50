//! The path of a group's packets.

use crate::paths::Links;
use ackclock_sim::spec::LinkSpec;
use ackclock_sim::spec::SplitSpec;
use ackclock_sim::spec::Topology;
use ackclock_units::Span;
use std::sync::Arc;

use super::CarriedFlows;
use crate::ends::{self, Ends};
use crate::fields::Fields;
use crate::host::Place;
use crate::keys;
use crate::mptcp;
use crate::paths;
use crate::paths::Network;
use crate::quantity::OneOf;
use crate::topology::{self, Among};

pub(super) const DIRECTIONS: OneOf = OneOf { what: "direction", names: &["forward", "reverse"] };

/// The surroundings of flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) links: &'a [LinkSpec],
    pub(crate) names: &'a Links<'a>,
    pub(crate) network: &'a Network,
    /// The hosts of flows between stacks.
    pub(crate) carried: &'a CarriedFlows,
    /// The network of many links, if there is one.
    pub(crate) topology: Option<&'a Arc<Topology>>,
    /// `true` if packets come from outside.
    pub(crate) outside: bool,
    pub(crate) duration: Span,
}

/// The path of a group's packets, and the places of its ends.
pub(super) struct GroupRoute {
    pub(super) ends: Option<Ends>,
    pub(super) among: Option<Among>,
    pub(super) path: Vec<usize>,
    pub(super) split: Option<SplitSpec>,
    /// The paths of further subflows, of a flow over MPTCP.
    pub(super) subflows: Option<Vec<Vec<usize>>>,
    pub(super) reverse: bool,
    pub(super) places: [Place; 2],
}

impl GroupRoute {
    /// The hosts of the subflows, if the flow names them.
    pub(super) fn between(&self) -> &[mptcp::Subflow] {
        self.ends.as_ref().map_or(&[], |ends| &ends.subflows)
    }
}

pub(super) fn route(fields: &mut Fields<'_>, setting: Setting<'_>) -> GroupRoute {
    let places = [Place { mtu: None }; 2];
    if topology::is_named(fields, setting.topology) {
        let among = setting.topology.and_then(|topology| topology::among(fields, topology));
        let path = among.as_ref().map(Among::example).unwrap_or_default();
        return GroupRoute { ends: None, among, path, split: None, subflows: None, reverse: false, places };
    }
    let named = ends::are_named(fields);
    let ends = if named { ends::read(fields, setting.network) } else { None };
    let (path, split, subflows, reverse) = match &ends {
        Some(ends) => {
            let others = ends.subflows.iter().skip(1).map(|subflow| subflow.path.clone());
            let subflows = mptcp::is_asked_for(fields).then(|| others.collect());
            (ends.path.clone(), ends.split.clone(), subflows, ends.reverse)
        }
        None if named => (Vec::new(), None, None, false),
        None => {
            let (path, split, subflows) = if mptcp::is_asked_for(fields) {
                let (path, others) = mptcp::subflows(fields, setting.names);
                (path, None, Some(others))
            } else {
                let (path, split) = paths::of(fields, keys::PATH, setting.names);
                (path, split, None)
            };
            (path, split, subflows, fields.or(keys::DIRECTION, "forward", DIRECTIONS) == "reverse")
        }
    };
    let places = match &ends {
        Some(ends) => ends.mtus.map(|mtu| Place { mtu: Some(mtu) }),
        None => places,
    };
    GroupRoute { ends, among: None, path, split, subflows, reverse, places }
}
