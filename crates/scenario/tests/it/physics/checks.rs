//! The laws that every run obeys: those of physics and arithmetic, and the agreement of two
//! accounts of the same thing.

use std::collections::BTreeMap;

use ackclock_sim::spec::{DATAGRAM_HEADERS, DirectionSpec, FlowSpec, HostSpec, QueueSpec, RunSpec, WayBack};
use ackclock_tcp::EcnFeedback;
use ackclock_units::{Rate, Span, Time};
use serde_json::Value as Json;

use crate::physics::outcome::{Outcome, Row};

/// A packet of TCP is no shorter: both headers without options.
const HEADERS: u64 = 40;

/// The headers of a flow's packets, without options.
fn headers(flow: &FlowSpec) -> u64 {
    if let HostSpec::Datagrams(_) = flow.sender { DATAGRAM_HEADERS.into() } else { HEADERS }
}

/// A broken law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Its name.
    pub law: &'static str,
    /// The found values.
    pub found: String,
}

/// Collects violations.
#[derive(Debug, Default)]
pub(crate) struct Laws(pub Vec<Violation>);

impl Laws {
    pub(crate) fn hold(&mut self, law: &'static str, holds: bool, found: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation { law, found: found() });
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, law: &'static str, what: &str, left: T, right: T) {
        self.hold(law, left == right, || format!("{what}: {left:?} against {right:?}"));
    }
}

/// The directions of a path for data, or, against it, for ACKs.
pub(crate) fn directions<'a>(
    spec: &'a RunSpec,
    path: &[usize],
    with_data: bool,
    flow: &FlowSpec,
) -> Vec<(usize, &'a DirectionSpec)> {
    let forward = with_data != flow.reverse;
    let at = |&link: &usize| match forward {
        true => (2 * link, &spec.links[link].forward),
        false => (2 * link + 1, &spec.links[link].reverse),
    };
    path.iter().map(at).collect()
}

/// The paths of a flow's data.
pub(crate) fn paths(flow: &FlowSpec) -> impl Iterator<Item = &[usize]> {
    [flow.path.as_slice()].into_iter().chain(flow.split.iter().flat_map(|split| split.others.iter().map(Vec::as_slice)))
}

/// The highest rate that a direction ever has; `None` if it is unlimited.
fn fastest(direction: &DirectionSpec) -> Option<u64> {
    let changes = direction.course.schedule.iter().filter_map(|change| change.rate);
    changes.chain([direction.rate]).map(|rate| rate.map(Rate::as_bps)).reduce(|a, b| Some(a?.max(b?))).flatten()
}

/// Least time of a packet with these headers in a direction, ns: for transmission, and the delay.
fn least_time(headers: u64, direction: &DirectionSpec) -> u64 {
    let bits = 8 * u64::from(direction.overhead.of(headers as u32));
    let sending = match (fastest(direction), direction.burst) {
        (Some(rate), None) => bits * 1_000_000_000 / rate,
        _ => 0,
    };
    let delays = direction.course.schedule.iter().filter_map(|change| change.delay);
    let least = delays.fold(direction.delay, Span::min);
    let jitters = direction.course.schedule.iter().filter_map(|change| change.jitter);
    let jitter = jitters.fold(direction.impairments.jitter, Span::max);
    direction.impairments.least_delay_with(least, jitter).as_nanos() + sending
}

/// The queues that a direction has, one after the other.
pub(crate) fn queues(direction: &DirectionSpec) -> impl Iterator<Item = &QueueSpec> {
    let changes = direction.course.schedule.iter().filter_map(|change| change.queue.as_ref());
    [&direction.queue].into_iter().chain(changes)
}

/// Everything that is checked of one run.
pub(crate) fn all(outcome: &Outcome) -> Vec<Violation> {
    let mut laws = Laws::default();
    numbers(&mut laws, "", &outcome.json);
    for (number, flow) in outcome.spec.flows.iter().enumerate() {
        let json = &outcome.json["flows"][number];
        round_trips(&mut laws, outcome, flow, json);
        transfer(&mut laws, outcome, flow, json);
        tcp(&mut laws, outcome, flow, json);
    }
    for (number, link) in outcome.spec.links.iter().flat_map(|link| [&link.forward, &link.reverse]).enumerate() {
        let json = &outcome.json["links"][number];
        let id = json["id"].as_str().unwrap_or("");
        let rows: Vec<&Row> = outcome.queue.iter().filter(|row| row.str("link") == id).collect();
        queue(&mut laws, link, json, &rows);
        let shared = outcome.spec.links[number / 2].medium.is_some();
        transmitter(&mut laws, outcome, (link, shared), json, &rows);
        capacity(&mut laws, outcome, number, link, json);
    }
    sums(&mut laws, outcome);
    laws.0
}

/// Shares are from 0 to 1, quantiles in order, nothing is negative or no number.
fn numbers(laws: &mut Laws, path: &str, json: &Json) {
    match json {
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| numbers(laws, &format!("{path}.{n}"), item));
        }
        Json::Object(entries) => {
            let values: Vec<f64> = ["min", "p5", "p25", "p50", "p75", "p95", "max"]
                .iter()
                .filter_map(|&key| entries.get(key)?.as_f64())
                .collect();
            laws.hold("quantiles are in order", values.is_sorted(), || format!("{path}: {json}"));
            if let (Some(samples), Some(max)) = (entries.get("samples"), entries.get("max")) {
                let has = samples.as_u64().is_some_and(|samples| samples > 0);
                laws.hold("quantiles exist with samples alone", has != max.is_null(), || format!("{path}: {json}"));
            }
            for share in
                ["utilization", "bucket_empty", "fairness_jain", "fairness_jain_forward", "fairness_jain_reverse"]
            {
                let Some(value) = entries.get(share).and_then(Json::as_f64) else { continue };
                let law = if share == "utilization" { "busy at most all the time" } else { "shares are at most 1" };
                laws.hold(law, (0.0..=1.0 + 1e-9).contains(&value), || format!("{path}.{share} = {value}"));
            }
            if path.ends_with("displacement") {
                let shares: f64 =
                    ["early", "on_time", "late"].iter().filter_map(|&key| entries.get(key)?.as_f64()).sum();
                laws.hold("shares are at most 1", shares <= 1.0 + 1e-9, || format!("{path}: {json}"));
            }
            entries.iter().for_each(|(key, value)| numbers(laws, &format!("{path}.{key}"), value));
        }
        Json::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            // R of the E-model has no lower bound; densities of displacement begin with early
            // packets.
            let signed = ["displacement", "density.from", "late_ms", "r_factor"].iter().any(|part| path.contains(part));
            laws.hold("nothing is negative", value.is_finite() && (value >= 0.0 || signed), || {
                format!("{path} = {value}")
            });
        }
        _ => {}
    }
}

fn round_trips(laws: &mut Laws, outcome: &Outcome, flow: &FlowSpec, json: &Json) {
    let time = |path: &[usize], with_data| -> u64 {
        let directions = directions(&outcome.spec, path, with_data, flow);
        directions.iter().map(|(_, direction)| least_time(headers(flow), direction)).sum()
    };
    let out = paths(flow).map(|path| time(path, true)).min().unwrap_or(0);
    if let Some(min) = json["datagrams"]["delay_ms"]["min"].as_f64() {
        laws.hold("no packet is faster than its path", min * 1e6 >= out as f64 * (1.0 - 1e-9), || {
            format!("{}: {min} ms, the path takes {out} ns", flow.id)
        });
    }
    let back = match flow.split.as_ref().map(|split| (split, &split.back)) {
        None => time(&flow.path, false),
        Some((split, WayBack::Over(path))) => time(split.path(&flow.path, *path), false),
        Some((_, WayBack::Split(_))) => paths(flow).map(|path| time(path, false)).min().unwrap_or(0),
    };
    let least = out + back;
    if let Some(min) = json["rtt_ms"]["min"].as_f64() {
        // The summary rounds to twelve digits or so.
        let found = min * 1e6;
        // A timestamp's echo counts milliseconds: it may be short by the part of one that had
        // passed when it was sent.
        let stamps = |host: &HostSpec| matches!(host, HostSpec::Endpoint(endpoint) if endpoint.config.timestamps);
        let echoed = stamps(&flow.sender) && stamps(&flow.receiver) && found % 1e6 == 0.0;
        let least = if echoed { least.saturating_sub(1_000_000) } else { least };
        laws.hold("no round trip is shorter than its path", found >= least as f64 * (1.0 - 1e-9), || {
            format!("{}: {found} ns, the path takes {least} ns", flow.id)
        });
    }
}

/// The largest payload of a packet of this host.
fn payload(host: &HostSpec) -> u64 {
    match host {
        HostSpec::Endpoint(endpoint) => endpoint.config.mss.into(),
        HostSpec::Smoltcp(stock) => u64::from(stock.mtu) - HEADERS,
        HostSpec::Outside => u16::MAX.into(),
        HostSpec::Datagrams(spec) => u64::from(spec.mtu) - u64::from(DATAGRAM_HEADERS),
    }
}

fn transfer(laws: &mut Laws, outcome: &Outcome, flow: &FlowSpec, json: &Json) {
    let count = |key: &str| json[key].as_u64().unwrap_or(0);
    let (sent, delivered, acked) = (count("sent_packets"), count("delivered_bytes"), count("acked_bytes"));
    let most = payload(&flow.sender);
    laws.hold("delivered is at most sent", delivered <= sent.saturating_mul(most), || {
        format!("{}: {delivered} bytes in {sent} packets of at most {most}", flow.id)
    });
    laws.hold("delivered is at most the transfer", delivered <= flow.bytes.unwrap_or(u64::MAX), || {
        format!("{}: {delivered} of {:?}", flow.id, flow.bytes)
    });
    laws.hold("acknowledged is at most delivered", acked <= delivered, || {
        format!("{}: {acked} of {delivered}", flow.id)
    });
    let (again, spurious) = (count("retransmitted_packets"), count("spurious_retransmits"));
    laws.hold("spurious is at most retransmitted", spurious <= again, || format!("{}: {spurious} of {again}", flow.id));
    let end = Time::ZERO + outcome.spec.duration;
    let completed = json["completed_s"].as_f64();
    if let Some(at) = completed {
        let whole = flow.bytes == Some(delivered);
        laws.hold("completed is a whole transfer", whole, || {
            format!("{}: at {at} s with {delivered} of {:?}", flow.id, flow.bytes)
        });
        let within = at >= flow.start.as_secs_f64() && at <= end.as_secs_f64();
        laws.hold("completed within its time", within, || format!("{}: at {at} s", flow.id));
        let took = json["start_s"].as_f64().zip(json["fct_s"].as_f64());
        let right = took.is_some_and(|(start, took)| (start + took - at).abs() < 1e-9);
        laws.hold("completed within its time", right, || format!("{}: at {at} s, {took:?}", flow.id));
    }
    let lived = (end.since(flow.start)).as_secs_f64();
    let limited: f64 =
        json["limited_s"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_f64()).sum();
    laws.hold("held back for at most its life", limited <= lived + 1e-9, || {
        format!("{}: {limited} of {lived}", flow.id)
    });
    let states = json["ca_state_s"].as_object().into_iter().flatten();
    let in_states: f64 = states.filter_map(|(_, value)| value.as_f64()).sum();
    laws.hold("in congestion states for at most its life", in_states <= lived + 1e-9, || {
        format!("{}: {in_states} of {lived}", flow.id)
    });
    let goodput = json["goodput_bps"].as_f64().unwrap_or(0.0);
    // The goodput is taken over the flow's time, whatever that is here.
    let lasted = if goodput > 0.0 { delivered as f64 * 8.0 / goodput } else { 0.0 };
    if let Some(most) = most_bits(&outcome.spec, flow, lasted).filter(|_| lasted > 0.0) {
        laws.hold("goodput is at most the rate", goodput * lasted <= most * (1.0 + 1e-9), || {
            format!("{}: {goodput} bit/s for {lasted} s, {most} bits of payload fit", flow.id)
        });
    }
    if !has_ecn(flow) {
        laws.same("marks with ECN alone", &format!("{}: ECE", flow.id), count("ece_acks"), 0);
    }
}

/// Most bits of payload that pass in a time; `None` without a rate on some path. A busy
/// period ends up to a nanosecond early, as its end is rounded down, and the next one begins a
/// nanosecond later at least, or is the same one: over all of them a nanosecond is gained.
fn most_bits(spec: &RunSpec, flow: &FlowSpec, seconds: f64) -> Option<f64> {
    let of_path = |path: &[usize]| {
        let share = |(_, direction): (usize, &DirectionSpec)| {
            let rate = fastest(direction)? as f64;
            let payload = payload(&flow.sender) as f64;
            // Cells can only add to this.
            let share = payload / (payload + headers(flow) as f64 + f64::from(direction.overhead.bytes));
            Some(
                (rate * (seconds + 1e-9)
                    + 8.0 * f64::from(direction.burst.unwrap_or(0))
                    + 8.0 * most_at_once(direction))
                    * share,
            )
        };
        directions(spec, path, true, flow).into_iter().filter_map(share).reduce(f64::min)
    };
    paths(flow).map(of_path).sum()
}

/// A bucket that is above nothing lets a whole packet pass.
fn most_at_once(direction: &DirectionSpec) -> f64 {
    if direction.burst.is_some() { f64::from(direction.overhead.of(u16::MAX.into())) } else { 0.0 }
}

/// Returns `true` if the flow's ends may agree on ECN.
pub(crate) fn has_ecn(flow: &FlowSpec) -> bool {
    let hosts = [&flow.sender, &flow.receiver];
    // FreeBSD and Linux agree to what the other side asks for.
    let agrees = |host: &HostSpec, asks: bool| match host {
        HostSpec::Endpoint(endpoint) => {
            let accepted = if asks { EcnFeedback::None } else { endpoint.config.transfer.accept_ecn };
            endpoint.config.ecn.max(accepted) != EcnFeedback::None
        }
        HostSpec::Smoltcp(_) | HostSpec::Datagrams(_) => false,
        HostSpec::Outside => true,
    };
    hosts.iter().any(|host| agrees(host, true)) && hosts.iter().all(|host| agrees(host, false))
}

/// Returns `true` if packets of a flow may be marked: the SYN of a controller that wants all
/// packets ECT (`dctcp`, `prague`) is sent before anything is agreed on.
fn may_be_marked(flow: &FlowSpec) -> bool {
    let sends_capable_syn = |host: &HostSpec| match host {
        HostSpec::Endpoint(endpoint) => matches!(endpoint.config.ecn, EcnFeedback::Dctcp | EcnFeedback::Accurate),
        HostSpec::Datagrams(spec) => spec.ecn.is_capable(),
        HostSpec::Smoltcp(_) | HostSpec::Outside => false,
    };
    has_ecn(flow) || sends_capable_syn(&flow.sender) || sends_capable_syn(&flow.receiver)
}

/// The queue's rows are its books.
fn queue(laws: &mut Laws, spec: &DirectionSpec, json: &Json, rows: &[&Row]) {
    let id = json["id"].as_str().unwrap_or("");
    let mut waiting: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
    let (mut enqueued, mut dequeued, mut marked, mut refused, mut last) = (0, 0, 0, 0, 0);
    let several = |queue: &QueueSpec| {
        matches!(
            queue,
            QueueSpec::FqCodel(_)
                | QueueSpec::FqPie(_)
                | QueueSpec::DualPi2(_)
                | QueueSpec::CurvyRed(_)
                | QueueSpec::Prio(_)
                | QueueSpec::Cake(_)
                | QueueSpec::Drr(_)
                | QueueSpec::Ets(_)
                | QueueSpec::Sfq(_)
                | QueueSpec::Fq(_)
                | QueueSpec::Htb(_)
                | QueueSpec::Hfsc(_)
                | QueueSpec::Qfq(_)
                | QueueSpec::Series(_)
        )
    };
    let one_line = !queues(spec).any(several);
    for row in rows {
        let (at, packet) = (row.nanos("time_s").unwrap_or(0), row.number("packet").unwrap_or(0));
        let size = row.number("size_bytes").unwrap_or(0);
        laws.hold("rows are in order of time", at >= last, || format!("{id}: {row:?}"));
        last = at;
        let action = row.str("action");
        match action {
            "enqueue" => {
                enqueued += 1;
                laws.hold("a packet is taken in once", waiting.insert(packet, (at, size)).is_none(), || {
                    format!("{id}: {row:?}")
                });
            }
            "mark" => marked += 1,
            "drop" if row.str("sojourn_ms").is_empty() => refused += 1,
            _ => {
                dequeued += u64::from(action == "dequeue");
                if action == "dequeue" && one_line {
                    laws.hold("first come, first served", waiting.keys().next() == Some(&packet), || {
                        format!("{id}: {row:?}")
                    });
                }
                let since = waiting.remove(&packet);
                let waited = since.map(|(since, _)| at - since);
                laws.hold("sojourn is the time in the queue", waited == row.nanos("sojourn_ms"), || {
                    format!("{id}: {waited:?} ns, {row:?}")
                });
            }
        }
        if action == "drop" {
            *dropped.entry(row.str("reason").to_owned()).or_default() += 1;
        }
        if action != "mark" {
            let bytes: u64 = if waiting.len() < 64 { waiting.values().map(|&(_, size)| size).sum() } else { 0 };
            let right = row.number("backlog_packets") == Some(waiting.len() as u64)
                && (waiting.len() >= 64 || row.number("backlog_bytes") == Some(bytes));
            laws.hold("backlog is what came less what went", right, || {
                format!("{id}: {}, {bytes} bytes, {row:?}", waiting.len())
            });
        }
    }
    let count = |key: &str| json[key].as_u64().unwrap_or(0);
    let of_queue: BTreeMap<String, u64> = json["dropped"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(reason, _)| *reason != ackclock_sim::LOST_ON_LINK)
        .map(|(reason, packets)| (reason.clone(), packets.as_u64().unwrap_or(0)))
        .collect();
    laws.same("queue.csv adds up to the summary", id, dropped, of_queue);
    let counted = [enqueued + refused, enqueued, dequeued, marked];
    laws.same(
        "queue.csv adds up to the summary",
        id,
        counted,
        ["offered", "enqueued", "dequeued", "marked"].map(count),
    );
    let lost = json["dropped"][ackclock_sim::LOST_ON_LINK].as_u64().unwrap_or(0);
    let doubled = count("duplicated");
    laws.hold("lost is at most transmitted", lost + doubled <= dequeued, || {
        format!("{id}: {lost}, {doubled} of {dequeued}")
    });
    laws.same("queue.csv adds up to the summary", id, json["sojourn_ms"]["samples"].as_u64(), Some(dequeued));
    let left = rows.iter().filter(|row| row.str("action") == "dequeue");
    for (key, found) in [
        ("min", left.clone().filter_map(|row| row.nanos("sojourn_ms")).min()),
        ("max", left.filter_map(|row| row.nanos("sojourn_ms")).max()),
    ] {
        let summed = json["sojourn_ms"][key].as_f64().map(|ms| (ms * 1e6).round());
        laws.hold("queue.csv adds up to the summary", near(summed, found), || {
            format!("{id}: sojourn {key} {summed:?}, {found:?}")
        });
    }
}

/// Equal to a summary's digits.
fn near(rounded: Option<f64>, exact: Option<u64>) -> bool {
    match (rounded, exact) {
        (Some(rounded), Some(exact)) => (rounded - exact as f64).abs() <= 1.0 + 1e-9 * exact as f64,
        (rounded, exact) => rounded.is_none() == exact.is_none(),
    }
}

/// A transmitter sends one packet after another, and is busy for as long as that takes; on a shared
/// medium, one aggregate after another.
fn transmitter(laws: &mut Laws, outcome: &Outcome, (spec, shared): (&DirectionSpec, bool), json: &Json, rows: &[&Row]) {
    let id = json["id"].as_str().unwrap_or("");
    let Some(rate) = fastest(spec) else { return };
    let mut sent: Vec<(u64, u64)> = (rows.iter().filter(|row| row.str("action") == "dequeue"))
        .filter_map(|row| Some((row.nanos("time_s")?, row.number("size_bytes")?)))
        .collect();
    if shared {
        sent.dedup_by(|next, sum| {
            let together = next.0 == sum.0;
            sum.1 += if together { next.1 } else { 0 };
            together
        });
    }
    let nanos = |bytes: u64| u128::from(bytes) * 8_000_000_000 / u128::from(rate);
    let bytes: u64 = sent.iter().map(|&(_, bytes)| bytes).sum();
    let end = u128::from(outcome.spec.duration.as_nanos());
    let Some(&(last_at, last_bytes)) = sent.last() else { return };
    if let Some(burst) = spec.burst {
        // Each time that it is full it drops the fraction of a nanosecond.
        let before_last = nanos(bytes - last_bytes);
        laws.hold(
            "a bucket lets pass what it holds and the rate",
            before_last <= u128::from(last_at) + nanos(burst.into()) + sent.len() as u128,
            || format!("{id}: {bytes} bytes by {last_at} ns, burst {burst}"),
        );
        return;
    }
    if spec.device.is_some() {
        // Packets leave the queue for the device's ring, up to so many at once.
        return;
    }
    for pair in sent.windows(2) {
        let [(at, bytes), (next, _)] = pair else { continue };
        laws.hold("one packet after another", u128::from(*next) >= u128::from(*at) + nanos(*bytes), || {
            format!("{id}: {bytes} bytes at {at} ns, the next one at {next} ns")
        });
    }
    if !spec.course.is_constant() {
        return;
    }
    // The last one may be cut off by the end of the run.
    let cut = (u128::from(last_at) + nanos(last_bytes)).saturating_sub(end);
    let busy = nanos(bytes).saturating_sub(cut) as f64;
    let found = json["utilization"].as_f64().unwrap_or(0.0) * end as f64;
    // Each busy period drops the fraction of a nanosecond.
    let slack = sent.len() as f64 + 2.0 + 1e-9 * end as f64;
    laws.hold("busy for as long as packets take", (busy - found).abs() <= slack, || {
        format!("{id}: {found} ns, packets take {busy} ns")
    });
}

/// The bytes that flows have delivered together have passed their common link.
fn capacity(laws: &mut Laws, outcome: &Outcome, number: usize, link: &DirectionSpec, json: &Json) {
    let passes = |flow: &FlowSpec, any: bool| {
        let mut on =
            paths(flow).map(|path| directions(&outcome.spec, path, true, flow).iter().any(|&(n, _)| n == number));
        if any { on.any(|on| on) } else { on.all(|on| on) }
    };
    let flows = || outcome.spec.flows.iter().zip(outcome.json["flows"].as_array().into_iter().flatten());
    if let Some(rate) = fastest(link) {
        let delivered = |(flow, json): (&FlowSpec, &Json)| {
            passes(flow, false).then(|| json["delivered_bytes"].as_u64().unwrap_or(0))
        };
        let bits = 8.0 * flows().filter_map(delivered).sum::<u64>() as f64;
        let most = rate as f64 * outcome.spec.duration.as_secs_f64()
            + 8.0 * (f64::from(link.burst.unwrap_or(0)) + most_at_once(link));
        laws.hold("flows share the rate", bits <= most * (1.0 + 1e-9), || {
            format!("{}: {bits} of {most} bits", json["id"])
        });
    }
    let backward =
        |flow: &FlowSpec| directions(&outcome.spec, &flow.path, false, flow).iter().any(|&(n, _)| n == number);
    // A flow of each group that is not listed stands for all of them.
    let summed = outcome.spec.sums.iter().map(|of| {
        let (id, group) = (of.id.as_str().into(), of.group.clone());
        FlowSpec { id, group, start: Time::ZERO, stop: None, ends: None, via: None }
    });
    let mut all = outcome.spec.flows.iter().cloned().chain(summed);
    let may = all.any(|flow| may_be_marked(&flow) && (passes(&flow, true) || backward(&flow)));
    if !may {
        laws.same("marks with ECN alone", &json["id"].to_string(), json["marked"].as_u64(), Some(0));
    }
}

/// `tcp.csv` adds up to the flow's summary.
fn tcp(laws: &mut Laws, outcome: &Outcome, flow: &FlowSpec, json: &Json) {
    const LAW: &str = "tcp.csv adds up to the summary";
    // Connections of a client's own have rows under names of their own.
    if !matches!(flow.sender, HostSpec::Endpoint(_)) || flow.application.connections().is_some() {
        return;
    }
    let rows = || outcome.tcp.iter().filter(|row| row.str("flow") == &*flow.id);
    let count = |event: &str, verdict: &str| {
        rows().filter(|row| row.str("event") == event && (verdict.is_empty() || row.str("verdict") == verdict)).count()
            as u64
    };
    let kinds = ["needed", "spurious_reordering", "spurious_delay"]
        .map(|key| json["retransmissions"][key].as_u64().unwrap_or(0));
    laws.same(
        LAW,
        &format!("{}: retransmissions", flow.id),
        ["lost", "reordered", "delayed"].map(|verdict| count("retransmission", verdict)),
        kinds,
    );
    let declared = ["right", "wrong"].map(|key| json["loss_declarations"][key].as_u64().unwrap_or(0));
    let right = count("declaration", "lost");
    laws.same(LAW, &format!("{}: declarations", flow.id), [right, count("declaration", "") - right], declared);
    let acks = || rows().filter(|row| row.str("event") == "ack");
    let acked: u64 = acks().filter_map(|row| row.number("acked_bytes")).sum();
    // The FIN counts as a byte of the stream, and comes after all others.
    let summed = json["acked_bytes"].as_u64().unwrap_or(0);
    let fin = acked == summed + 1 && json["delivered_bytes"].as_u64() == Some(summed);
    laws.hold(LAW, acked == summed || fin, || format!("{}: acked bytes {acked}, {summed}", flow.id));
    let round_trips: Vec<u64> =
        acks().filter_map(|row| row.nanos("rtt_ms").filter(|_| !row.str("rtt_ms").is_empty())).collect();
    laws.same(
        LAW,
        &format!("{}: RTT samples", flow.id),
        Some(round_trips.len() as u64),
        json["rtt_ms"]["samples"].as_u64(),
    );
    for (key, found) in [("min", round_trips.iter().min()), ("max", round_trips.iter().max())] {
        let summed = json["rtt_ms"][key].as_f64().map(|ms| (ms * 1e6).round());
        laws.hold(LAW, near(summed, found.copied()), || format!("{}: RTT {key} {summed:?}, {found:?}", flow.id));
    }
    let mut by_link: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in rows().filter(|row| row.str("event") == "retransmission" && row.str("verdict") == "lost") {
        *by_link.entry((row.str("link").to_owned(), row.str("reason").to_owned())).or_default() += 1;
    }
    let mut summed = BTreeMap::new();
    for (link, reasons) in json["retransmissions"]["by_queue"].as_object().into_iter().flatten() {
        for (reason, packets) in reasons.as_object().into_iter().flatten() {
            summed.insert((link.clone(), reason.clone()), packets.as_u64().unwrap_or(0));
        }
    }
    laws.same(LAW, &format!("{}: by queue", flow.id), by_link, summed);
}

/// Totals, and Jain's index.
fn sums(laws: &mut Laws, outcome: &Outcome) {
    let listed = |key: &str| outcome.json[key].as_array().into_iter().flatten();
    let flows = || listed("flows");
    let sent: u64 = flows().chain(listed("groups")).filter_map(|flow| flow["sent_packets"].as_u64()).sum();
    laws.same("packets are those of the flows", "packets", outcome.json["packets"].as_u64(), Some(sent));
    // Connections compete with each other; datagrams where there is nothing else.
    let any = flows().any(|flow| flow["datagrams"].is_null());
    let flows = || flows().filter(|flow| flow["datagrams"].is_null() == any);
    let delivered = flows().any(|flow| flow["goodput_bps"].as_f64().is_some_and(|rate| rate > 0.0));
    let jain = outcome.json["fairness_jain"].as_f64();
    laws.hold("fairness is of what was delivered", jain.is_some() == delivered, || {
        format!("{jain:?}, delivered: {delivered}")
    });
    if let Some(jain) = jain.filter(|_| delivered) {
        let least = 1.0 / flows().count() as f64;
        laws.hold("fairness is at least 1/n", jain >= least - 1e-9, || format!("{jain} of {} flows", flows().count()));
    }
}
