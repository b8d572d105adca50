//! Keys that change no result, with the reason.

use super::stages::QFQ;

const IDLE: &str = "on these stages its window is not a third above the threshold when the application pauses";
const CREDIT: &str = "on these stages what was counted before a pause makes no segment sooner";
const KEYS: &str = "it is tried with keys that another kind does not have, or lacks";
const OUTSIDE: &str = "of hosts outside: tried by crates/live/tests and by crates/scenario/tests/it/live.rs";
const LIVE: &str = "of the live clock";
const KIND: &str = "each kind wants keys of its own; another `loss` is tried as a key of the link";
const MARKS: &str = "its reaction to marks is its own";
const FLIGHT: &str = "it reduces its window, whatever of it is in flight";

const RECORD: &str = "a record changes no result";

const LINUX_CDG: &str = "flows.0.cc={kind=\"cdg\", variant=\"linux\"}";
const LINUX_VEGAS: &str = "flows.0.cc={kind=\"vegas\", variant=\"linux\"}";

/// Tables, or all below a path with a point at its end, whose keys are not tried here; reason.
pub(crate) const UNTRIED: &[(&str, &str)] = &[
    ("links.wire.reverse.", "they are those of the forward direction"),
    ("links.wire.jitter_distribution", "a file: impairments.rs has one"),
    ("links.wire.slots.jitter_distribution", "likewise"),
    ("links.wire.queue.classes", "its keys are the names of classes, of which `first` is tried"),
    ("links.wire.queue.stages", "its keys are the names of queues"),
    ("links.wire.queue.stages.", "they have the keys of a link's queue"),
    ("links.wire.queue.classes.", "the queues of classes have the keys of a link's"),
    ("links.wire.medium", "in scenarios of its own: medium.rs"),
    ("flows.0.receiver", "they are those of the flow"),
    ("flows.0.interrupts", "in scenarios of its own: interrupts.rs"),
    ("flows.0.application.", "distributions of a number: applications.rs and workloads.rs have some"),
];

/// Table, or the setting that chooses its kind; key; reason.
pub(crate) const WITHOUT: &[(&str, &str, &str)] = &[
    ("run", "clock", LIVE),
    ("run", "replay", LIVE),
    ("run", "spin", LIVE),
    ("run", "priority", LIVE),
    ("run", "affinity", LIVE),
    ("run", "offload", LIVE),
    ("run", "lateness_limit", LIVE),
    ("run", "drain", LIVE),
    ("record", "series", RECORD),
    ("record", "series_window", RECORD),
    ("record", "queue", RECORD),
    ("record", "pcap", RECORD),
    ("record", "pcap_snaplen", RECORD),
    ("record", "tcp", RECORD),
    ("record", "qlog", RECORD),
    ("record", "siftr", RECORD),
    ("record", "ertt", RECORD),
    ("record", "flows", RECORD),
    ("record", "reordering_every", RECORD),
    ("flows.0", "id", "a name"),
    ("flows.0", "paths", "stands in the place of `path`: scenarios/reordering/two-paths.toml and crates/sim/src/tests"),
    ("flows.0.cc.kind=\"policy\"", "kind", KEYS),
    ("flows.0", "from", OUTSIDE),
    ("flows.0", "to", OUTSIDE),
    ("flows.0", "port", OUTSIDE),
    ("flows.0", "source_port", OUTSIDE),
    ("flows.0", "data", OUTSIDE),
    ("flows.0.application.kind=\"on_off\"", "kind", KEYS),
    ("flows.0.application.kind=\"request\"", "kind", KEYS),
    ("flows.0.application.kind=\"trace\"", "kind", KEYS),
    ("flows.0.application.kind=\"video\"", "kind", KEYS),
    ("flows.0.application.kind=\"web\"", "kind", KEYS),
    ("flows.0.cc.kind=\"chd\"", "idle_keeps_credit", CREDIT),
    ("flows.0.cc.kind=\"cubic\"", "idle_keeps_credit", CREDIT),
    ("flows.0.cc.kind=\"vegas\"", "idle_keeps_credit", CREDIT),
    ("flows.0.cc.kind=\"cdg\"", "remember_idle", IDLE),
    ("flows.0.cc.kind=\"scalable\"", "remember_idle", IDLE),
    ("flows.0.cc.kind=\"vegas\"", "remember_idle", IDLE),
    ("flows.0.transport=\"udp\"", "results", "sums are kept of connections"),
    ("flows.0.transport=\"udp\"", "metrics_cache", "`true` is refused: datagrams have no connection"),
    ("flows.0.cc.kind=\"chd\"", "beta_ecn", MARKS),
    ("flows.0.cc.kind=\"dctcp\"", "beta_ecn", MARKS),
    ("flows.0.cc.kind=\"htcp\"", "beta_ecn", MARKS),
    ("flows.0.cc.kind=\"cubic\"", "halve_flight", FLIGHT),
    (
        "flows.0.cc.kind=\"cdg\"",
        "timeout_flight",
        "the round trip of the segment that timed out makes it back off at once, down to two segments",
    ),
    ("flows.0.cc.kind=\"westwood\"", "timeout_flight", "a timeout sets the threshold to the estimate"),
    ("flows.0.cc.kind=\"wvegas\"", "initial_alpha", "a subflow that is alone has its part as soon as as many wait"),
    ("flows.0.cc.kind=\"wvegas\"", "remember_idle", "its threshold is three quarters of its window at least"),
    ("flows.0.cc.kind=\"westwood\"", "limit_burst", "the end of recovery sets the window to the estimate"),
    ("flows.0.host=\"smoltcp\"", "schedule", "smoltcp keeps the controller that it starts with"),
    ("flows.0.host=\"smoltcp\"", "write_size", "a source writes until the buffer is full, all at one time"),
    ("flows.0.host=\"smoltcp\"", "metrics_cache", "`true` is refused: smoltcp remembers nothing"),
    ("flows.0.host=\"smoltcp\"", "transport", "datagrams have no host of TCP"),
    (LINUX_CDG, "beta_ecn", MARKS),
    (LINUX_CDG, "halve_flight", FLIGHT),
    (LINUX_CDG, "timeout_flight", FLIGHT),
    (LINUX_VEGAS, "idle_keeps_credit", CREDIT),
    (LINUX_VEGAS, "remember_idle", "its threshold is three quarters of its window at least"),
    ("links.wire", "trace", "stands in the place of `rate`, and is a file: crates/scenario/tests/it/course.rs"),
    ("links.wire.reverse", "trace", "as that of the way there"),
    ("links.wire.loss", "kind", KIND),
    ("links.wire.queue.kind=\"wred\"", "medium", "no stage has assured forwarding: aqm/src/wred.rs"),
    ("links.wire.queue.kind=\"wred\"", "high", "as `medium`"),
    ("links.wire.queue.kind=\"choke\"", "harddrop", "is refused without `ecn`: aqm/src/choke.rs"),
    ("links.wire.queue.kind=\"fq\"", "low_rate_threshold", "is refused without `maxrate`: aqm/src/fq/tests.rs"),
    (
        "links.wire.queue.kind=\"fq_codel\"",
        "ce_threshold_mask",
        "is refused without `ce_threshold`: aqm/src/fq_codel/tests.rs",
    ),
    ("links.wire.queue.kind=\"fq_codel\"", "ce_threshold_selector", "is refused without `ce_threshold_mask`"),
    ("links.wire.queue.kind=\"drr\"", "quantum1", "no queue waits in the band of voice: aqm/src/ets.rs"),
    ("links.wire.queue.kind=\"ets\"", "quantum1", "as with `drr`"),
    ("links.wire.queue.kind=\"htb\"", "direct_qlen", "no packet is without a class: aqm/src/htb/tests.rs"),
    ("links.wire.queue.kind=\"tbf\"", "mtu", "is refused without `peakrate`: aqm/src/tbf.rs"),
    ("links.wire.queue.classes.first.rt", "umax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.classes.first.rt", "dmax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.classes.first.ls", "umax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.classes.first.ls", "dmax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.classes.first.ul", "umax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.classes.first.ul", "dmax", "is refused beside `m1`: queue.rs"),
    ("links.wire.queue.kind=\"hfsc\"", "direct_qlen", "as with `htb`"),
    ("links.wire.queue.kind=\"hfsc\"", "kind", "it is tried with keys that no other kind has"),
    (QFQ, "parent", "is refused: aqm/src/qfq/tests.rs"),
    ("links.wire.queue.kind=\"qfq\"", "direct_qlen", "as with `htb`"),
    ("links.wire.queue.kind=\"series\"", "kind", "it is tried with keys that no other kind has"),
    ("links.wire.queue.kind=\"qfq\"", "kind", "it is tried with keys that no other kind has"),
    ("links.wire.queue.kind=\"curvy_red\"", "kind", "it is tried with keys that no other kind has"),
    ("links.wire.queue.kind=\"htb\"", "kind", "it is tried with keys that no other kind has"),
    ("links.wire.queue.kind=\"sfb\"", "kind", "it is tried with keys that no other kind has"),
];
