//! The segment size of local endpoints.

use ackclock_sim::spec::{FlowSpec, HostSpec, LiveSpec, RunSpec};

/// Bytes of the headers of a segment without options, which the MSS does not include.
const HEADERS: u16 = 40;

/// The same run, with the MSS of local endpoints limited to the MTU of their own host's device.
/// They discover the path MTU; smoltcp sockets do not, and are given it.
pub(super) fn with_path_mtu(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    let Some(live) = spec.live.clone() else { return spec };
    for flow in &mut spec.flows {
        let Some(ends) = flow.ends else { continue };
        let others = flow.mptcp.iter().flat_map(|mptcp| &mptcp.hosts).skip(1).map(|hosts| hosts.nodes);
        let pairs: Vec<[usize; 2]> = [ends.nodes].into_iter().chain(others).collect();
        for nodes in pairs {
            limit(flow, &live, nodes);
        }
    }
    spec
}

/// Limits the segments of a flow's endpoints to those that fit between two hosts.
fn limit(flow: &mut FlowSpec, live: &LiveSpec, nodes: [usize; 2]) {
    let path = path_mtu(live, nodes);
    let has_router = live.pipes.iter().any(|pipe| pipe.joins(nodes[0], nodes[1]) && pipe.router.is_some());
    let group = &mut **flow;
    for (end, node) in [&mut group.sender, &mut group.receiver].into_iter().zip(nodes) {
        match end {
            HostSpec::Endpoint(endpoint) => {
                // Without a router no message reports the path MTU.
                let mtu = if has_router { live.nodes[node].mtu } else { path };
                endpoint.config.mss = endpoint.config.mss.min(mtu.saturating_sub(HEADERS)).max(1);
            }
            HostSpec::Smoltcp(stock) => stock.mtu = stock.mtu.min(path),
            HostSpec::Outside | HostSpec::Datagrams(_) => {}
        }
    }
}

/// The MTU of the path between two hosts, in bytes.
fn path_mtu(live: &LiveSpec, [first, second]: [usize; 2]) -> u16 {
    let ends = live.nodes[first].mtu.min(live.nodes[second].mtu);
    let routers = live.pipes.iter().filter(|pipe| pipe.joins(first, second)).filter_map(|pipe| pipe.router?.mtu);
    routers.min().map_or(ends, |router| router.min(ends))
}
