//! The tables of keys, and the small scenarios in which each is tried.

/// A table of keys.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Where it is.
    pub(crate) path: &'static str,
    /// Settings that make it what it is. With `kinds`, those of one kind begin with `KIND:`.
    pub(crate) settings: &'static [&'static str],
    /// The subject has a `kind`: each is a table of its own.
    pub(crate) kinds: bool,
}

const fn table(path: &'static str, settings: &'static [&'static str]) -> Subject {
    Subject { path, settings, kinds: false }
}

const fn kinds(path: &'static str, settings: &'static [&'static str]) -> Subject {
    Subject { path, settings, kinds: true }
}

/// Returns `true` if a setting of a subject with kinds belongs to this kind.
pub(crate) fn is_for(setting: &str, kind: &str) -> bool {
    setting.split_once(':').is_none_or(|(of, _)| of == kind)
}

/// The setting itself.
pub(crate) fn bare(setting: &'static str) -> &'static str {
    setting.split_once(':').map_or(setting, |(_, bare)| bare)
}

/// A tree whose class `first` has each of the curves.
const HFSC: &str = "links.wire.queue={kind=\"hfsc\", default=\"bulk\", classes={top={ls={m2=\"4mbit\"}}, first={parent=\"top\", rt={m1=\"3mbit\", d=\"20ms\", m2=\"1mbit\"}, ls={m1=\"3mbit\", d=\"20ms\", m2=\"1mbit\"}, ul={m1=\"3mbit\", d=\"20ms\", m2=\"2mbit\"}, flows=[\"f\"]}, bulk={parent=\"top\", ls={m2=\"3mbit\"}}}}";

/// Classes by weight.
pub(crate) const QFQ: &str =
    "links.wire.queue={kind=\"qfq\", default=\"bulk\", classes={first={weight=3, flows=[\"f\"]}, bulk={}}}";

/// All tables.
pub(crate) const SUBJECTS: &[Subject] = &[
    table("run", &[]),
    table("record", &[]),
    table("links.wire", &[]),
    table("links.wire.reverse", &["links.wire.reverse={}"]),
    table("links.wire.device_limit", &["links.wire.device_limit={}", "links.wire.device_completion=\"10ms\""]),
    table("links.wire.reorder", &["links.wire.reorder={}"]),
    table("links.wire.autorate", &["links.wire.autorate={probes=\"p\", min_rate=\"1mbit\", max_rate=\"10mbit\"}"]),
    table("links.wire.slots", &["links.wire.slots={delay=\"5ms\", jitter=\"2ms\"}"]),
    kinds(
        "links.wire.queue",
        &[
            "avq:links.wire.queue.bandwidth=\"5mbit\"",
            "rem:links.wire.queue.bandwidth=\"5mbit\"",
            "drr:links.wire.queue.map=\"diffserv4\"",
            "ets:links.wire.queue.map=\"diffserv4\"",
            "curvy_red:links.wire.queue.min_th=\"20ms\"",
            "curvy_red:links.wire.queue.tshift=false",
            "blue:links.wire.queue.limit=\"20p\"",
            "sfb:links.wire.queue.increment=0.2",
            "sfb:links.wire.queue.target=\"2p\"",
            "sfb:links.wire.queue.max=\"60p\"",
            "sfb:links.wire.queue.rehash=\"2s\"",
            "sfb:links.wire.queue.db=\"1s\"",
            "sfb:links.wire.queue.penalty_rate=1000",
            "sfb:links.wire.queue.penalty_burst=100",
            "hfsc:links.wire.queue.default=\"bulk\"",
            "hfsc:links.wire.queue.classes={top={ls={m2=\"4mbit\"}}, first={parent=\"top\", ls={m2=\"1mbit\"}, flows=[\"f\"]}, bulk={parent=\"top\", ls={m2=\"3mbit\"}}}",
            "series:links.wire.queue.stages={first={queue={kind=\"tbf\", rate=\"2mbit\", burst=\"5kB\", limit=\"30kB\"}}, last={}}",
            "qfq:links.wire.queue.default=\"bulk\"",
            "qfq:links.wire.queue.classes={first={weight=3, flows=[\"f\"], queue={kind=\"pfifo\", limit=\"5p\"}}, bulk={}}",
            "htb:links.wire.queue.default=\"bulk\"",
            "htb:links.wire.queue.classes={top={rate=\"4mbit\"}, other={rate=\"2mbit\"}, first={parent=\"top\", rate=\"1mbit\", ceil=\"4mbit\", flows=[\"f\"]}, bulk={parent=\"top\", rate=\"500kbit\", ceil=\"4mbit\"}}",
        ],
    ),
    table("links.wire.queue.adaptive", &["links.wire.queue={kind=\"red\", adaptive={}}"]),
    table(
        "links.wire.queue.medium",
        &["flows.0.dscp=\"af12\"", "links.wire.queue={kind=\"wred\", ecn=true, medium={}}"],
    ),
    table("links.wire.queue.high", &["flows.0.dscp=\"af13\"", "links.wire.queue={kind=\"wred\", ecn=true, high={}}"]),
    table("links.wire.queue.flow_red", &["links.wire.queue={kind=\"sfq\", flow_red={ecn=true}}"]),
    table("links.wire.queue.floyd", &["links.wire.queue={kind=\"red\", ecn=true, floyd={}}"]),
    table(
        "links.wire.queue.classes.first",
        &[
            "links.wire.queue={kind=\"htb\", default=\"bulk\", classes={top={rate=\"4mbit\"}, other={rate=\"2mbit\"}, first={parent=\"top\", rate=\"1mbit\", ceil=\"4mbit\", flows=[\"f\"]}, bulk={parent=\"top\", rate=\"500kbit\", ceil=\"4mbit\"}}}",
        ],
    ),
    table("links.wire.queue.classes.first", &[QFQ]),
    table("links.wire.queue.classes.first.rt", &[HFSC]),
    table("links.wire.queue.classes.first.ls", &[HFSC]),
    table("links.wire.queue.classes.first.ul", &[HFSC]),
    kinds(
        "links.wire.loss",
        &[
            "iid:links.wire.loss.probability=0.02",
            "list:links.wire.loss.packets=[30, 31, 90]",
            "gilbert-elliott:links.wire.loss.p=0.02",
            "gilbert-elliott:links.wire.loss.r=0.4",
            "markov:links.wire.loss.p13=0.02",
            "markov:links.wire.loss.p31=0.4",
            "markov:links.wire.loss.p32=0.3",
            "markov:links.wire.loss.p23=0.3",
        ],
    ),
    table("flows.0", &[]),
    table("flows.0", &["flows.0.host=\"smoltcp\""]),
    table("flows.0", &["flows.0.transport=\"udp\""]),
    table("flows.0.application", &["flows.0.application.kind=\"cbr\"", "flows.0.transport=\"udp\""]),
    table("flows.0.application", &["flows.0.application.kind=\"voip\"", "flows.0.transport=\"udp\""]),
    table("flows.0.application", &["flows.0.application.kind=\"ping\"", "flows.0.transport=\"udp\""]),
    table("flows.0.delayed_ack", &[]),
    table("flows.0.tcp_rmem", &["flows.0.host=\"linux-6.1\"", "flows.0.receive_buffer=\"auto\""]),
    table("flows.0.tcp_wmem", &["flows.0.host=\"linux-6.1\"", "flows.0.send_buffer=\"auto\""]),
    table("flows.0.min_rto", &["flows.0.min_rto={}"]),
    kinds("flows.0.loss_detector", &[]),
    kinds("flows.0.pacing", &[]),
    kinds("flows.0.accecn_option", &["flows.0.ecn=\"accecn\""]),
    kinds("flows.0.cc", &["policy:flows.0.cc.file=\"tests/it/effects/policy.json\""]),
    table("flows.0.cc", &["flows.0.cc={kind=\"cdg\", variant=\"linux\"}"]),
    table("flows.0.cc", &["flows.0.cc={kind=\"vegas\", variant=\"linux\"}"]),
    kinds(
        "flows.0.application",
        &[
            "cbr:flows.0.application.rate=\"1mbit\"",
            "cbr:flows.0.application.size=\"1000B\"",
            "on_off:flows.0.application.rate=\"1mbit\"",
            "on_off:flows.0.application.size=\"1000B\"",
            "on_off:flows.0.application.on=\"300ms\"",
            "on_off:flows.0.application.off=\"300ms\"",
            "poisson:flows.0.application.rate=\"1mbit\"",
            "poisson:flows.0.application.size=\"1000B\"",
            "request:flows.0.application.size=\"300B\"",
            "request:flows.0.application.response=\"9kB\"",
            "trace:flows.0.application.file=\"tests/it/effects/writes.txt\"",
            "web:flows.0.application.page=\"20kB\"",
            "web:flows.0.application.objects=8",
            "web:flows.0.application.object=\"10kB\"",
            "load:flows.0.application.interval=\"50ms\"",
            "video:flows.0.application.ladder=[\"200kbit\", \"500kbit\", \"1mbit\"]",
            "video:flows.0.application.segment=\"500ms\"",
            "video:flows.0.application.buffer=\"4s\"",
        ],
    ),
    table(
        "flows.0.application.algorithm",
        &[
            "flows.0.application.algorithm.kind=\"bba\"",
            "flows.0.application.kind=\"video\"",
            "flows.0.application.ladder=[\"200kbit\", \"500kbit\", \"1mbit\"]",
            "flows.0.application.segment=\"500ms\"",
            "flows.0.application.buffer=\"4s\"",
        ],
    ),
    table(
        "flows.0.application.algorithm",
        &[
            "flows.0.application.algorithm.kind=\"bola\"",
            "flows.0.application.kind=\"video\"",
            "flows.0.application.ladder=[\"200kbit\", \"500kbit\", \"1mbit\"]",
            "flows.0.application.segment=\"500ms\"",
            "flows.0.application.buffer=\"4s\"",
        ],
    ),
    table("flows.0.hystart", &["flows.0.hystart={rules=\"linux-6.1\"}"]),
    table("flows.0.hystart", &["flows.0.hystart={rules=\"rfc9406\"}"]),
];

/// Small scenarios: each key is tried in them in this order. The table in question is that of the
/// link `wire` or of the first flow.
pub(crate) const STAGES: &[(&str, &str)] = &[
    (
        "one flow",
        r#"
            schema = 1
            run.duration = "3s"
            links.wire = { rate = "5mbit", delay = "20ms", queue = { kind = "pfifo", limit = "20p" } }
            links.far = { rate = "4mbit", delay = "10ms" }
            flows = [{ id = "f", path = ["wire"] }]
        "#,
    ),
    (
        "a device's ring",
        r#"
            schema = 1
            run.duration = "3s"
            links.wire = { rate = "5mbit", delay = "20ms", queue = { kind = "pfifo", limit = "20p" }, device_limit = 4 }
            flows = [{ id = "f", path = ["wire"] }, { id = "g", path = ["wire"], direction = "reverse" }]
        "#,
    ),
    (
        "a shaper and pings, before a link that is slow, then fast",
        r#"
            schema = 1
            run.duration = "30s"
            links.wire = { rate = "100mbit", delay = "2ms", queue = { kind = "cake", bandwidth = "5mbit" } }
            links.far = { rate = "3mbit", delay = "10ms", queue = { kind = "pfifo", limit = "300p" }, schedule = [{ at = "12s", rate = "20mbit" }] }
            flows = [
                { id = "f", path = ["wire", "far"], bytes = "2MB", restart_every = "6s" },
                { id = "p", path = ["wire", "far"], transport = "udp", application = { kind = "ping", interval = "50ms" } },
                { id = "q", path = ["wire", "far"], transport = "udp", application = { kind = "ping", interval = "300ms" } },
            ]
        "#,
    ),
    (
        "short transfers and a flow on the way back, with losses",
        r#"
            schema = 1
            run.duration = "6s"
            links.wire = { rate = "5mbit", delay = "20ms", jitter = "2ms", loss = { kind = "iid", probability = 0.05 } }
            flows = [
                { id = "f", path = ["wire"], bytes = "100kB", restart_every = "700ms" },
                { id = "g", path = ["wire"], direction = "reverse" },
            ]
        "#,
    ),
    (
        "marks, beside a flow that cannot carry them",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = { kind = "codel", ecn = true } }
            flows = [
                { id = "f", path = ["wire"], ecn = true },
                { id = "g", path = ["wire"], ecn = true },
                { id = "h", path = ["wire"] },
            ]
        "#,
    ),
    (
        "marks told exactly",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = { kind = "codel", ecn = true } }
            flows = [
                { id = "f", path = ["wire"], ecn = "accecn" },
                { id = "g", path = ["wire"], ecn = "accecn", host = "linux-7.3" },
                { id = "h", path = ["wire"] },
            ]
        "#,
    ),
    (
        "marks as DCTCP has them",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = { kind = "codel", ecn = true, target = "1ms" } }
            flows = [{ id = "f", path = ["wire"], ecn = "dctcp", cc = "dctcp" }, { id = "g", path = ["wire"] }]
        "#,
    ),
    (
        "L4S beside classic traffic",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = "dualpi2" }
            flows = [
                { id = "f", path = ["wire"], ecn = "accecn", cc = "prague" },
                { id = "g", path = ["wire"], ecn = true, count = 3 },
                { id = "h", path = ["wire"], count = 2 },
            ]
        "#,
    ),
    (
        "a crowd",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "5mbit", delay = "20ms" }
            flows = [
                { id = "f", path = ["wire"], count = 60, ecn = true },
                { id = "g", path = ["wire"], count = 4, mss = "500B" },
            ]
        "#,
    ),
    (
        "bursts of losses, the first of a SYN",
        r#"
            schema = 1
            run.duration = "30s"
            links.wire = { rate = "5mbit", delay = "20ms", loss = { kind = "list", packets = [
                1, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86,
                400, 600, 601, 602, 603, 604, 605, 606, 607, 608, 609, 610, 611, 612, 613, 614, 615, 616, 617, 618, 619, 620,
                621, 622, 623, 624, 625, 626, 627, 628, 629, 630, 631, 632, 633, 634, 635, 636, 637, 638, 639, 640, 641, 642,
            ] } }
            flows = [{ id = "f", path = ["wire"], ecn = true, prr = false }]
        "#,
    ),
    (
        "order changed",
        r#"
            schema = 1
            run.duration = "6s"
            links.wire = { rate = "5mbit", delay = "20ms", reorder = { probability = 0.1, extent = 6, timeout = "50ms" } }
            flows = [{ id = "f", path = ["wire"], count = 2 }, { id = "g", path = ["wire"], host = "linux-6.1" }]
        "#,
    ),
    (
        "small buffers and transfers over a long path",
        r#"
            schema = 1
            run.duration = "12s"
            links.wire = { rate = "20mbit", delay = "100ms" }
            flows = [
                { id = "f", path = ["wire"], send_buffer = "10kB", write_size = "700B", bytes = "50001B", restart_every = "2s" },
                { id = "g", path = ["wire"], receive_buffer = "40kB" },
            ]
        "#,
    ),
    (
        "order changed, for Linux",
        r#"
            schema = 1
            run.duration = "10s"
            links.wire = { rate = "5mbit", delay = "20ms", reorder = { probability = 0.1, extent = 20, timeout = "90ms" } }
            flows = [{ id = "f", path = ["wire"], host = "linux-4.0" }]
        "#,
    ),
    (
        "a long and fast path, to Linux",
        r#"
            schema = 1
            run.duration = "6s"
            links.wire = { rate = "50mbit", delay = "60ms" }
            flows = [{ id = "f", path = ["wire"], host = "linux-6.1", pacing = "off", write_size = "900B" }]
        "#,
    ),
    (
        "three segments at a time, with losses",
        r#"
            schema = 1
            run.duration = "20s"
            links.wire = { rate = "5mbit", delay = "20ms", loss = { kind = "iid", probability = 0.1 } }
            flows = [{ id = "f", path = ["wire"], bytes = "4380B", restart_every = "400ms", host = "linux-4.0" }]
        "#,
    ),
    (
        "a window that the buffer does not fill, lost as a whole",
        r#"
            schema = 1
            run.duration = "10s"
            links.wire = { rate = "5mbit", delay = "20ms", reverse = { loss = "none" }, loss = { kind = "list", packets = [
                4, 5, 6, 7, 8, 9, 10,
            ] } }
            flows = [{ id = "f", path = ["wire"], send_buffer = "10kB", initial_window = "40p" }]
        "#,
    ),
    (
        "a SYN that asks for ECN is lost, and marks",
        r#"
            schema = 1
            run.duration = "6s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = { kind = "codel", ecn = true }, loss = { kind = "list", packets = [1] } }
            flows = [{ id = "f", path = ["wire"], ecn = true }]
        "#,
    ),
    (
        "windows of a segment or two by marks",
        r#"
            schema = 1
            run.duration = "12s"
            links.wire = { rate = "5mbit", delay = "5ms", reverse = { queue = "pfifo", loss = "none" }, queue = { kind = "blue", ecn = true, init = 0.1, inc = 0.0, dec = 0.0 }, loss = { kind = "list", packets = [3, 4, 5, 200, 300, 400] } }
            flows = [{ id = "f", path = ["wire"], ecn = true, host = "linux-2.4", delayed_ack = { quick = 1, growth_from = "1GiB", quick_mark = 2, quick_cwr = true } }]
        "#,
    ),
    (
        "many losses of a window, without SACK",
        r#"
            schema = 1
            run.duration = "5s"
            links.wire = { rate = "800kbit", delay = "100ms", reverse = { loss = "none" }, loss = { kind = "list", packets = [12, 13, 14, 15, 17, 18, 19, 20] } }
            flows = [{ id = "f", path = ["wire"], host = "rfc", prr = false, mss = "1000B", initial_window = "2p", delayed_ack = { segments = 1 }, limited_transmit = false, receive_buffer = "28kB" }]
        "#,
    ),
    (
        "netperf's stream test, with what hosts remember",
        r#"
            schema = 1
            run.duration = "9s"
            links.wire = { rate = "5mbit", delay = "5ms", queue = { kind = "pfifo", limit = "10p" }, loss = { kind = "list", packets = [3, 40] } }
            flows = [{ id = "f", path = ["wire"], application = { kind = "netperf", length = "2s" }, metrics_cache = true, host = "linux-2.4" }]
        "#,
    ),
    (
        "datagrams that are marked",
        r#"
            schema = 1
            run.duration = "8s"
            links.wire = { rate = "2mbit", delay = "5ms", queue = { kind = "codel", ecn = true } }
            flows = [{ id = "f", path = ["wire"], transport = "udp", application = { rate = "3mbit" } }]
        "#,
    ),
    (
        "classes",
        r#"
            schema = 1
            run.duration = "4s"
            links.wire = { rate = "3mbit", delay = "5ms", queue = { kind = "prio", map = "diffserv3", limit = "50p" } }
            flows = [{ id = "f", path = ["wire"] }, { id = "g", path = ["wire"], dscp = "cs2" }, { id = "h", path = ["wire"], dscp = "cs1" }, { id = "v", path = ["wire"], dscp = 46, transport = "udp", application = { rate = "500kbit" } }]
        "#,
    ),
    (
        "classes through two queues",
        r#"
            schema = 1
            run.duration = "4s"
            links.wire = { rate = "3mbit", delay = "5ms" }
            links.far = { rate = "1900kbit", delay = "5ms", queue = { kind = "prio", map = "diffserv3", limit = "50p" } }
            flows = [{ id = "f", path = ["wire", "far"] }, { id = "h", path = ["wire", "far"], dscp = "cs1" }, { id = "v", path = ["wire", "far"], dscp = 46, transport = "udp", application = { rate = "500kbit" } }]
        "#,
    ),
    (
        "half a minute",
        r#"
            schema = 1
            run.duration = "32s"
            links.wire = { rate = "5mbit", delay = "20ms", queue = { kind = "pfifo", limit = "200p" } }
            flows = [
                { id = "f", path = ["wire"] },
                { id = "g", path = ["wire"], start = "5s", stop = "20s" },
            ]
        "#,
    ),
    (
        "an application that pauses",
        r#"
            schema = 1
            run.duration = "40s"
            links.wire = { rate = "5mbit", delay = "20ms", queue = { kind = "pfifo", limit = "20p" } }
            flows = [{ id = "f", path = ["wire"], slow_start_after_idle = true, application = {
                kind = "on_off", rate = "6mbit", size = "1400B", on = { distribution = "uniform", min = "500ms", max = "3s" }, off = "2s",
            } }]
        "#,
    ),
    (
        "ACKs that wait",
        r#"
            schema = 1
            run.duration = "3s"
            links.wire = { rate = "200kbit", delay = "20ms", reverse = { rate = "10mbit" } }
            flows = [{ id = "f", path = ["wire"] }, { id = "g", path = ["wire"], direction = "reverse" }]
        "#,
    ),
];
