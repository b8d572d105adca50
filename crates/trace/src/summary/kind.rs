//! The flows of a run by kind of traffic and direction.

use serde::{Deserialize, Serialize};

use super::Name;
use super::fairness::jain;
use super::flow::FlowSummary;
use crate::metrics::metrics;

metrics! {
/// Flows of one kind and direction of data. The data of clients (`request`, `web`, `video`, `load`
/// with a download) is the responses, against the direction of the flow. Flows that are not listed
/// (`results = "sum"`, workloads) are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindSummary {
    /// Transport, kind and direction, `udp.voip.forward`.
    pub id: String,
    /// `tcp` or `udp`.
    #[serde(deserialize_with = "super::name::one")]
    pub transport: Name,
    /// The kind of application.
    #[serde(deserialize_with = "super::name::one")]
    pub kind: Name,
    /// Direction of the data: `forward` or `reverse`.
    #[serde(deserialize_with = "super::name::one")]
    pub direction: Name,
    /// Number of flows.
    pub flows: u64,
    /// Sum of their goodputs.
    pub goodput_bps: f64,
    /// Jain's fairness index of these; null when nothing was delivered.
    pub fairness_jain: Option<f64>,
    /// Median over the flows of the median delay: one-way for datagrams, the round trip for `ping`
    /// and connections; null without samples.
    pub delay_p50_ms: Option<f64>,
    /// The same of 95th percentiles.
    pub delay_p95_ms: Option<f64>,
    /// Share of lost packets: of datagrams with a known fate; for connections, packets lost and
    /// declared lost, of those sent. Null for responses.
    pub loss_ratio: Option<f64> => ("lost", ""),
}
}

/// A flow's share in the totals of its kind.
struct Share {
    key: (&'static str, &'static str, &'static str),
    goodput: f64,
    delay: [Option<f64>; 2],
    /// Lost packets, and of how many.
    loss: Option<[u64; 2]>,
}

impl Share {
    fn of(flow: &FlowSummary) -> Share {
        if let Some(datagrams) = flow.datagrams.as_deref() {
            let quantiles = datagrams.delay_ms.distribution.quantiles;
            return Share {
                key: ("udp", datagrams.application, flow.direction),
                goodput: flow.goodput_bps,
                delay: [quantiles.p50, quantiles.p95],
                loss: Some([datagrams.lost, datagrams.lost + datagrams.received]),
            };
        }
        let kind = flow.application.as_ref().map_or("bulk", |application| application.kind);
        let delay = [flow.rtt_ms.quantiles.p50, flow.rtt_ms.quantiles.p95];
        let Some(bytes) = answers(flow) else {
            let loss = [flow.loss_declarations.right, flow.sent.sent_packets];
            return Share { key: ("tcp", kind, flow.direction), goodput: flow.goodput_bps, delay, loss: Some(loss) };
        };
        let way = if flow.direction == "forward" { "reverse" } else { "forward" };
        // Both are over the time of the flow.
        let asked = flow.progress.delivered_bytes as f64;
        let goodput = if asked > 0.0 { bytes as f64 / asked * flow.goodput_bps } else { 0.0 };
        Share { key: ("tcp", kind, way), goodput, delay, loss: None }
    }
}

/// The bytes that a client has received, if its flow carries answers.
fn answers(flow: &FlowSummary) -> Option<u64> {
    let of = flow.application.as_deref()?;
    let requests = of.requests.as_ref().map(|requests| requests.response_bytes);
    let pages = of.pages.as_ref().map(|pages| pages.response_bytes);
    let video = of.video.as_ref().map(|video| video.response_bytes);
    let load = of.load.as_ref().filter(|load| load.transfer == "download").map(|load| load.bytes);
    requests.or(pages).or(video).or(load)
}

/// The flows by kind and direction in the order of their first ones; nothing if all are of one
/// kind.
pub fn kinds(flows: &[FlowSummary]) -> Vec<KindSummary> {
    let shares: Vec<Share> = flows.iter().map(Share::of).collect();
    let mut keys: Vec<(&str, &str, &str)> = Vec::new();
    for share in &shares {
        if !keys.contains(&share.key) {
            keys.push(share.key);
        }
    }
    if keys.iter().all(|key| (key.0, key.1) == (keys[0].0, keys[0].1)) {
        return Vec::new();
    }
    let row = |key: (&'static str, &'static str, &'static str)| {
        let alike = || shares.iter().filter(move |share| share.key == key);
        let delay = |which: usize| median(alike().filter_map(|share| share.delay[which]).collect());
        let [lost, known] = alike().filter_map(|share| share.loss).fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let (transport, kind, direction) = key;
        KindSummary {
            id: format!("{transport}.{kind}.{direction}"),
            transport,
            kind,
            direction,
            flows: alike().count() as u64,
            goodput_bps: alike().map(|share| share.goodput).sum(),
            fairness_jain: jain(alike().map(|share| share.goodput)),
            delay_p50_ms: delay(0),
            delay_p95_ms: delay(1),
            loss_ratio: (known > 0).then(|| lost as f64 / known as f64),
        }
    };
    keys.into_iter().map(row).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApplicationSummary, DatagramSummary, PagesSummary, Quantiles, Spread};

    fn bulk(direction: &'static str, goodput: f64, rtt: f64, lost: u64) -> FlowSummary {
        let mut flow = FlowSummary { direction, goodput_bps: goodput, ..FlowSummary::default() };
        flow.sent.sent_packets = 1000;
        flow.rtt_ms.quantiles = Quantiles { p50: Some(rtt), p95: Some(2.0 * rtt), ..Quantiles::default() };
        flow.loss_declarations.right = lost;
        flow
    }

    fn voice(direction: &'static str, goodput: f64, lost: u64) -> FlowSummary {
        let mut delay_ms = Spread::default();
        delay_ms.distribution.quantiles.p50 = Some(30.0);
        let datagrams = DatagramSummary { application: "voip", lost, received: 90, delay_ms, ..Default::default() };
        FlowSummary { datagrams: Some(datagrams.into()), ..bulk(direction, goodput, 1.0, 7) }
    }

    #[test]
    fn each_kind_has_a_row_for_each_direction() {
        let pages = PagesSummary { response_bytes: 50_000, ..PagesSummary::default() };
        let web = ApplicationSummary { kind: "web", pages: Some(pages), ..ApplicationSummary::default() };
        let mut client = bulk("forward", 1e3, 40.0, 3);
        (client.application, client.progress.delivered_bytes) = (Some(web.into()), 1000);
        let flows = [
            bulk("forward", 1e6, 20.0, 5),
            voice("forward", 64e3, 10),
            bulk("forward", 3e6, 30.0, 15),
            bulk("reverse", 2e6, 50.0, 0),
            voice("forward", 64e3, 0),
            client,
        ];
        let rows = kinds(&flows);
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["tcp.bulk.forward", "udp.voip.forward", "tcp.bulk.reverse", "tcp.web.reverse"]);
        // (1 + 3)^2 / (2 (1 + 9)); 20 of 2000 packets.
        let bulk = &rows[0];
        assert_eq!((bulk.flows, bulk.goodput_bps, bulk.fairness_jain), (2, 4e6, Some(0.8)));
        assert_eq!([bulk.delay_p50_ms, bulk.delay_p95_ms, bulk.loss_ratio], [Some(25.0), Some(50.0), Some(0.01)]);
        // 10 of 190 datagrams.
        assert_eq!((rows[1].loss_ratio, rows[1].delay_p50_ms), (Some(10.0 / 190.0), Some(30.0)));
        assert_eq!((rows[1].delay_p95_ms, rows[1].fairness_jain), (None, Some(1.0)));
        // 50 times as much as was asked with comes back.
        assert_eq!((rows[3].goodput_bps, rows[3].loss_ratio), (50e3, None));
        // One kind is no table, however many directions it has.
        assert_eq!(kinds(&[flows[0].clone(), flows[3].clone()]), []);
        assert_eq!(kinds(&[]), []);
    }
}
