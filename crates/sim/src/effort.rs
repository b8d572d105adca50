//! The number of packets that a run will send, estimated from its specification.

use std::collections::BTreeMap;

use ackclock_units::Span;

use crate::index::DirectionId;
use crate::memory::Population;
use crate::spec::{Application, FlowGroup, HostSpec, LinkSpec};

/// A full packet.
const MTU: f64 = 1500.0;

/// The most packets that a run sends over these links in `duration`: full ones of transfers, which
/// ask for so many, as far as the slowest link of their paths carries them, and the datagrams of
/// patterns. ACKs are not counted, nor what other applications send, which is mostly little. `None`
/// if nothing limits a transfer. On a link that changes, the rate is the one before or the mean of
/// its trace.
pub fn most_packets(links: &[LinkSpec], groups: &[Population<'_>], duration: Span) -> Option<f64> {
    let mut total = 0.0;
    // What is asked of each link that is the slowest of a path.
    let mut asked: BTreeMap<Option<DirectionId>, f64> = BTreeMap::new();
    for of in groups {
        if matches!(of.group.sender, HostSpec::Datagrams(_)) {
            total += of.datagrams(duration);
            continue;
        }
        match (of.arrivals, of.mean_bytes) {
            // Arrivals above what is carried end a run by their number.
            (Some(per_second), Some(bytes)) => {
                let flows = (of.count as f64).min(per_second * duration.as_secs_f64());
                total += flows * bytes as f64 / MTU;
            }
            (_, bytes) if of.group.application == Application::Bulk => {
                let packets = bytes.map_or(f64::INFINITY, |bytes| of.count as f64 * bytes as f64 / MTU);
                for direction in slowest(links, of.group) {
                    *asked.entry(direction).or_default() += packets;
                }
            }
            _ => {}
        }
    }
    for (direction, packets) in asked {
        let carried = direction
            .and_then(|direction| rate(links, direction))
            .map(|bps| bps as f64 * duration.as_secs_f64() / (8.0 * MTU));
        total += carried.map_or(packets, |carried| packets.min(carried));
    }
    total.is_finite().then_some(total)
}

/// The slowest link direction of each way that the data of a flow takes; `None` without a rate.
fn slowest(links: &[LinkSpec], group: &FlowGroup) -> Vec<Option<DirectionId>> {
    let least = |path: &[usize], back: bool| {
        let directions =
            path.iter().map(|&link| if back { DirectionId::reverse(link) } else { DirectionId::forward(link) });
        directions.filter(|&direction| rate(links, direction).is_some()).min_by_key(|&direction| rate(links, direction))
    };
    let mut ways = vec![least(&group.path, group.reverse)];
    let others = group.split.iter().flat_map(|split| &split.others);
    ways.extend(others.map(|path| least(path, group.reverse)));
    ways
}

/// The rate of a link direction, bit/s.
fn rate(links: &[LinkSpec], direction: DirectionId) -> Option<u64> {
    let link = links.get(direction.link())?;
    let side = if direction.side() == 0 { &link.forward } else { &link.reverse };
    Some(side.rate?.as_bps())
}

#[cfg(test)]
mod tests {
    use ackclock_traffic::Pattern;
    use ackclock_units::{Ecn, Rate};

    use super::*;
    use crate::spec::DatagramApplication;
    use crate::tests::datagrams::datagrams;
    use crate::tests::{flow, link, pfifo};

    #[test]
    fn flows_share_the_slowest_link_of_their_paths() {
        let links = [link("a", pfifo(100)), link("b", pfifo(100))];
        let bps = rate(&links, DirectionId::forward(0)).expect("it has a rate") as f64;
        let (bulk, mut file) = (flow("f", vec![0, 1], false), flow("g", vec![1], false));
        file.bytes = Some(1_500_000);
        let population = |group, count, arrivals, mean_bytes| Population {
            group,
            count,
            arrivals,
            mean_bytes,
            most_alive: u64::MAX,
        };
        let most = |groups: &[Population<'_>]| most_packets(&links, groups, Span::from_secs(1000)).expect("a rate");
        let full = bps * 1000.0 / 12_000.0;
        let (bulk, file) = (&*bulk.group, &*file.group);
        // Two flows have no more room than one.
        assert_eq!(most(&[population(bulk, 2, None, None)]), full);
        assert_eq!(most(&[population(bulk, 2, None, None), population(bulk, 1, None, None)]), full);
        assert_eq!(most(&[population(file, 3, None, Some(1_500_000))]), 3000.0);
        // 20 a second for 1000 s, of which 15,000 are asked for.
        assert_eq!(most(&[population(file, 15_000, Some(20.0), Some(3000))]), 30_000.0);
        assert_eq!(most(&[population(file, 30_000, Some(20.0), Some(3000))]), 40_000.0);
        let mut free = links.clone();
        free.iter_mut().for_each(|link| link.forward.rate = None);
        assert_eq!(most_packets(&free, &[population(bulk, 1, None, None)], Span::from_secs(1)), None);
    }

    #[test]
    fn datagrams_are_sent_whether_the_link_carries_them_or_not() {
        let links = [link("a", pfifo(100))];
        let most = |size: u64| {
            let pattern = Pattern::cbr(Rate::from_bps(1_000_000_000).expect("a rate"), size);
            let application = DatagramApplication::Messages { kind: "cbr", pattern };
            let flow = datagrams(application, Ecn::NotEct);
            let population =
                Population { group: &flow.group, count: 2, arrivals: None, mean_bytes: None, most_alive: u64::MAX };
            most_packets(&links, &[population], Span::from_secs(10))
        };
        // 10^10 bits of 80 each, twice; 3000 bytes are two packets of at most 1500.
        assert_eq!(most(10), Some(250e6));
        assert_eq!(most(3000), Some(2.0 * 2.0 * 1e10 / 24_000.0));
    }
}
