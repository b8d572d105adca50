//! The board in Prometheus's text format.
//!
//! # Source
//! Prometheus, "Exposition formats", text format 0.0.4, and "Metric and label naming": base units,
//! `_total` for counters, one group of lines for each metric.

use std::fmt::{self, Write};

use ackclock_trace::metrics;
use ackclock_units::Span;

use super::board::{Board, Flow, Kind, Link};

/// The type of what [`text`] writes.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric: one that only grows, or any.
#[derive(Clone, Copy, Debug)]
enum Type {
    Counter,
    Gauge,
}

/// A metric of links, flows or hosts: name, type, what it means if a summary has no such key, and
/// its value where there is one.
type Metric<T> = (&'static str, Type, &'static str, fn(&T) -> Option<f64>);

const LINKS: &[Metric<Link>] = &[
    ("link_bytes_total", Type::Counter, "Bytes that left the queue, framing included.", |link| {
        Some(link.totals.bytes as f64)
    }),
    ("link_packets_total", Type::Counter, "Packets that left the queue.", |link| Some(link.totals.packets as f64)),
    ("link_dropped_packets_total", Type::Counter, "Packets that the queue dropped.", |link| {
        Some(link.totals.dropped as f64)
    }),
    ("link_lost_packets_total", Type::Counter, "Packets lost on the wire, behind the queue.", |link| {
        Some(link.totals.lost as f64)
    }),
    ("link_marked_packets_total", Type::Counter, "Packets that the queue marked.", |link| {
        Some(link.totals.marked as f64)
    }),
    (
        "link_capacity_bytes_per_second",
        Type::Gauge,
        "Mean rate of the link in the last interval; absent if unlimited.",
        |link| link.point.rate_bps.map(|bps| bps as f64 / 8.0),
    ),
    ("link_utilization_ratio", Type::Gauge, "Share of the rate used in the last interval.", |link| {
        link.point.rate_bps.map(|_| link.point.utilization)
    }),
    ("link_backlog_packets", Type::Gauge, "Packets in the queue.", |link| Some(link.point.backlog_packets as f64)),
    ("link_backlog_bytes", Type::Gauge, "Bytes in the queue.", |link| Some(link.point.backlog_bytes as f64)),
    (
        "link_sojourn_seconds",
        Type::Gauge,
        "Mean time in the queue of the packets that left it in the last interval; absent without any.",
        |link| link.point.sojourn.map(Span::as_secs_f64),
    ),
    ("link_probability_ratio", Type::Gauge, "Drop or mark probability of the queue; absent without one.", |link| {
        link.point.probability
    }),
];

const FLOWS: &[Metric<Flow>] = &[
    ("flow_delivered_bytes_total", Type::Counter, "", |flow| Some(flow.totals.delivered_bytes as f64)),
    ("flow_received_bytes_total", Type::Counter, "Bytes of packets that arrived, headers included.", |flow| {
        Some(flow.totals.received_bytes as f64)
    }),
    ("flow_sent_packets_total", Type::Counter, "", |flow| Some(flow.totals.packets as f64)),
    ("flow_retransmitted_packets_total", Type::Counter, "", |flow| Some(flow.totals.retransmitted as f64)),
    ("flow_timeouts_total", Type::Counter, "", |flow| Some(flow.totals.timeouts as f64)),
    ("flow_srtt_seconds", Type::Gauge, "Smoothed round-trip time; absent if unknown.", |flow| {
        flow.point.srtt.map(Span::as_secs_f64)
    }),
    ("flow_cwnd_bytes", Type::Gauge, "Congestion window; absent if unknown.", |flow| {
        flow.point.cwnd.map(|bytes| bytes as f64)
    }),
    ("flow_ssthresh_bytes", Type::Gauge, "Slow start threshold; absent before the first reduction.", |flow| {
        flow.point.ssthresh.map(|bytes| bytes as f64)
    }),
    ("flow_in_flight_bytes", Type::Gauge, "Bytes in flight, as the sender estimates them.", |flow| {
        flow.point.in_flight.map(|bytes| bytes as f64)
    }),
];

type Host = ackclock_trace::LiveHost;

const HOSTS: &[Metric<Host>] = &[
    ("host_received_packets_total", Type::Counter, "Packets read from the device.", |host| {
        Some(host.received_packets as f64)
    }),
    ("host_received_bytes_total", Type::Counter, "Bytes read from the device.", |host| {
        Some(host.received_bytes as f64)
    }),
    ("host_sent_packets_total", Type::Counter, "Packets written to the device.", |host| Some(host.sent_packets as f64)),
    ("host_sent_bytes_total", Type::Counter, "Bytes written to the device.", |host| Some(host.sent_bytes as f64)),
    ("host_refused_packets_total", Type::Counter, "Packets that the device refused.", |host| Some(host.refused as f64)),
    (
        "host_unroutable_packets_total",
        Type::Counter,
        "Packets to hosts without a path, and packets that are not IP.",
        |host| Some(host.unroutable as f64),
    ),
    (
        "host_discarded_packets_total",
        Type::Counter,
        "Packets that a router did not forward or a host ignored.",
        |host| Some(host.discarded as f64),
    ),
];

/// All metrics of a board.
pub(crate) fn text(board: &Board) -> String {
    let mut out = Out(String::new());
    out.run(board);
    for &(name, kind, help, value) in LINKS {
        // The counts of classes are in those of their links.
        let links = board.links.iter().filter(|link| link.class.is_empty());
        let samples = links.map(|link| (vec![("link", &*link.link), ("direction", &*link.direction)], value(link)));
        out.metric(name, kind, help, samples);
    }
    // The counts of subflows are in those of their flows.
    let flows: Vec<&Flow> = board.flows.iter().filter(|flow| !matches!(flow.kind, Kind::Subflow(_))).collect();
    let info = flows.iter().map(|flow| {
        let kind = if flow.kind == Kind::Group { "group" } else { "flow" };
        (vec![("flow", flow.id.as_str()), ("cc", flow.cc.as_str()), ("kind", kind)], Some(1.0))
    });
    out.metric("flow_info", Type::Gauge, "Always 1; labels give the controller and the kind, flow or group.", info);
    for &(name, kind, help, value) in FLOWS {
        out.metric(name, kind, help, flows.iter().map(|flow| (vec![("flow", flow.id.as_str())], value(flow))));
    }
    if let Some(live) = &board.live {
        out.live(board);
        out.all(HOSTS, &live.hosts, |host| vec![("host", &host.id)]);
    }
    out.0
}

/// Lines, all of whose names begin with `ackclock_`.
#[derive(Debug)]
struct Out(String);

impl Out {
    fn run(&mut self, board: &Board) {
        let about = vec![("title", board.title.as_str()), ("clock", board.clock)];
        let help = "Always 1; labels give the scenario's title and the clock.";
        self.metric("run_info", Type::Gauge, help, [(about, Some(1.0))].into_iter());
        let of_run = [
            ("run_time_seconds", Type::Gauge, "Time on the run's clock.", board.now.as_secs_f64()),
            ("run_duration_seconds", Type::Gauge, "Duration of the run.", board.duration.as_secs_f64()),
            (
                "run_lost_records_total",
                Type::Counter,
                "Records of intervals that were discarded because the machine was overloaded; counts lack them.",
                board.lost as f64,
            ),
        ];
        for (name, kind, help, value) in of_run {
            self.metric(name, kind, help, [(Vec::new(), Some(value))].into_iter());
        }
    }

    fn live(&mut self, board: &Board) {
        let Some(live) = &board.live else { return };
        let moment = &live.moment;
        for (name, help, late) in [
            ("live_lateness_seconds", "Delay of packets after their due time, in the last interval.", &moment.lateness),
            (
                "live_unread_seconds",
                "Upper bound on the wait of packets in their device, in the last interval.",
                &moment.unread,
            ),
        ] {
            let quantiles = [("0.5", late.p50), ("0.99", late.p99), ("1", late.max)];
            let samples =
                quantiles.map(|(quantile, value)| (vec![("quantile", quantile)], value.map(Span::as_secs_f64)));
            self.metric(name, Type::Gauge, help, samples.into_iter());
        }
        let behind = "Time during which due events were not yet handled.";
        let stall = "Longest interval in which the loop missed its 5 ms poll.";
        for (name, kind, help, value) in [
            ("live_behind_seconds_total", Type::Counter, behind, moment.behind.as_secs_f64()),
            ("live_longest_stall_seconds", Type::Gauge, stall, moment.longest_stall.as_secs_f64()),
        ] {
            self.metric(name, kind, help, [(Vec::new(), Some(value))].into_iter());
        }
        let valid = board.is_late().map(|late| if late { 0.0 } else { 1.0 });
        let help = "1 if the run is valid so far, otherwise 0; absent without a limit of lateness.";
        self.metric("live_valid", Type::Gauge, help, [(Vec::new(), valid)].into_iter());
    }

    /// Metrics of all of these.
    fn all<T>(&mut self, metrics: &[Metric<T>], of: &[T], labels: impl Fn(&T) -> Vec<(&str, &str)>) {
        for &(name, kind, help, value) in metrics {
            self.metric(name, kind, help, of.iter().map(|item| (labels(item), value(item))));
        }
    }

    /// A metric with all its samples; nothing if there are none.
    fn metric<'l>(
        &mut self,
        name: &str,
        kind: Type,
        help: &str,
        samples: impl Iterator<Item = (Vec<(&'l str, &'l str)>, Option<f64>)>,
    ) {
        let mut samples = samples.filter_map(|(labels, value)| Some((labels, value?))).peekable();
        if samples.peek().is_some() {
            self.family(name, kind, help);
        }
        samples.for_each(|(labels, value)| self.sample(name, &labels, value));
    }

    fn family(&mut self, name: &str, kind: Type, help: &str) {
        let kind = match kind {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
        };
        let key = || name.trim_start_matches("flow_").trim_end_matches("_total");
        let help = if help.is_empty() { metrics::meaning(key()) } else { help };
        self.write(format_args!("# HELP ackclock_{name} {help}\n# TYPE ackclock_{name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.write(format_args!("ackclock_{name}"));
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            self.write(format_args!("{before}{label}=\"{}\"", Escaped(text)));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{after} {value}\n"));
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // A string takes all.
        let _ = self.0.write_fmt(text);
    }
}

/// The value of a label.
#[derive(Debug)]
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match char {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            char => f.write_char(char),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ackclock_live::Moment;

    use super::super::view::tests::filled;
    use super::*;

    #[test]
    fn every_metric_is_in_the_book() {
        let mut board = filled();
        board.take_live(Moment::default(), &[Host::default()]);
        let text = text(&board);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/watch.md");
        let page = fs::read_to_string(path).unwrap();
        let written = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        // Metrics without a value here are in the tables all the same.
        let listed = LINKS.iter().map(|metric| metric.0).chain(FLOWS.iter().map(|metric| metric.0));
        let names = written.map(str::to_owned).chain(listed.map(|name| format!("ackclock_{name}")));
        let missing: Vec<String> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn labels_are_escaped_and_counts_of_subflows_are_in_their_flows_alone() {
        let mut board = filled();
        board.title = "a \"b\" \\ c\nd".to_owned();
        let key = super::super::board::Key { kind: Kind::Subflow(1), id: "bulk.0".to_owned() };
        board.add([key].into_iter());
        let text = text(&board);
        assert!(text.contains(r#"title="a \"b\" \\ c\nd""#), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("ackclock_flow_timeouts_total{flow=\"bulk.0\"}")).count(),
            1
        );
        // No interval of a link without limit: no capacity.
        board.links[1].point.rate_bps = None;
        let text = super::text(&board);
        assert_eq!(text.lines().filter(|line| line.starts_with("ackclock_link_capacity_bytes_per_second{")).count(), 1);
    }
}
