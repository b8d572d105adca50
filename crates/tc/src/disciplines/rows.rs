//! The options of each qdisc.

use self::Unit::{
    Bytes, Count, Flag, LinkLayer, Millis, Names, Number, Packets, PacketsAsSize, Parts256, Percent, Rate32, Seconds,
    Selector, SizeAndCell, Time, TimeOrPackets, Without, Words,
};

/// The notation of a value on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Packets; `get_unsigned`.
    Packets,
    /// Packets that are read as a size: `1k` are 1024.
    PacketsAsSize,
    /// Bytes; `get_size`.
    Size,
    /// Bytes; `get_size_and_cell`.
    SizeAndCell,
    /// Bytes; `get_unsigned`.
    Bytes,
    /// A count.
    Count,
    /// A time in microseconds.
    Time,
    /// A time in plain milliseconds, which JSON has in microseconds.
    Millis,
    /// A time in plain seconds.
    Seconds,
    /// A rate of 64 bits.
    Rate,
    /// A rate of 32 bits.
    Rate32,
    /// A number.
    Number,
    /// A number of which there are parts of 256.
    Parts256,
    /// A percentage that is a whole number in scenarios.
    Percent,
    /// The word alone turns it on, the other one off.
    Flag(&'static str),
    /// Each word alone is a value, with the same name in scenarios.
    Words,
    /// Each word alone is a value: their notations in scenarios, in the order of the words.
    Names(&'static [&'static str]),
    /// A word behind the option is the value.
    LinkLayer,
    /// A time, or packets with a suffix.
    TimeOrPackets,
    /// `VALUE/MASK` for two keys, of which the second is [`MASK`].
    Selector,
    /// So many values, which nothing in a scenario stands for, and why.
    Without(usize, &'static str),
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Its word, and others for the same.
    pub(super) words: &'static [&'static str],
    /// The key in scenarios; in a table, with its name and a dot.
    pub(super) key: &'static str,
    pub(super) unit: Unit,
    /// The value 0 is that of an option that is not given.
    pub(super) zero_is_default: bool,
    /// The key in `tc -j`, where it is not the word.
    pub(super) json: &'static str,
}

/// A row whose word is also the key.
const fn same(words: &'static [&'static str], unit: Unit) -> Row {
    Row { words, key: words[0], unit, zero_is_default: false, json: words[0] }
}

/// A row with a key of its own.
const fn row(words: &'static [&'static str], key: &'static str, unit: Unit) -> Row {
    Row { words, key, unit, zero_is_default: false, json: words[0] }
}

/// An option that `tc` has and a scenario has not; without a reason nothing is lost.
const fn without(words: &'static [&'static str], values: usize, why: &'static str) -> Row {
    Row { words, key: "", unit: Without(values, why), zero_is_default: false, json: words[0] }
}

impl Row {
    const fn zero(self) -> Row {
        Row { zero_is_default: true, ..self }
    }

    const fn json(self, json: &'static str) -> Row {
        Row { json, ..self }
    }

    const fn key(self, key: &'static str) -> Row {
        Row { key, json: key, ..self }
    }

    /// The words that are values, with their notations in scenarios.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, String)> {
        let names = if let Names(names) = self.unit { names } else { &[] };
        let name = |(number, &word): (usize, &&'static str)| match names.get(number) {
            Some(&name) => (word, name.to_owned()),
            None => (word, format!("\"{word}\"")),
        };
        self.words.iter().enumerate().map(name)
    }
}

/// The options of a qdisc.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name on both sides.
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
    /// Words may be cut short (`matches`).
    pub(super) is_prefix: bool,
    /// Keys that `tc` requires.
    pub(super) required: &'static [&'static str],
}

/// A table of which the words are written in full, and no option is required.
const fn table(name: &'static str, rows: &'static [Row]) -> Table {
    Table { name, rows, is_prefix: false, required: &[] }
}

impl Table {
    const fn prefix(self) -> Table {
        Table { is_prefix: true, ..self }
    }

    const fn requires(self, required: &'static [&'static str]) -> Table {
        Table { required, ..self }
    }
}

/// The key of a selector's mask.
pub(super) const MASK: &str = "ce_threshold_mask";
/// The table of an HTB class.
pub(crate) const HTB_CLASS: &str = "htb class";

/// The table of a QFQ class.
pub(crate) const QFQ_CLASS: &str = "qfq class";

const OFFLOAD: &str = "hardware has no queues of its own here";
const NO_EFFECT: &str = "it changes the speed of the kernel, not its decisions";

const FIFO: &[Row] = &[same(&["limit"], PacketsAsSize)];

const RED_PART: [Row; 4] = [
    same(&["burst"], Count).zero(),
    same(&["probability"], Number),
    same(&["ecn"], Flag("")),
    without(&["ewma"], 1, "`tc` shows the weight, not `burst` and `avpkt`, of which it is made"),
];

const FQ_ONLY: &str = "fq's bands and horizon are not modelled";

pub(super) const TABLES: &[Table] = &[
    table("pfifo", FIFO),
    table("bfifo", &[same(&["limit"], Unit::Size)]),
    table("pfifo_head_drop", FIFO),
    table(
        "red",
        &[
            same(&["limit"], Unit::Size),
            same(&["min"], Unit::Size).zero(),
            same(&["max"], Unit::Size).zero(),
            same(&["avpkt"], Unit::Size),
            same(&["bandwidth"], Rate32).zero(),
            RED_PART[0],
            RED_PART[1],
            RED_PART[2],
            RED_PART[3],
            same(&["harddrop"], Flag("")),
            same(&["nodrop"], Flag("")),
            same(&["adaptive", "adaptative"], Flag("")),
            without(&["qevent"], 4, "there are no events of packets"),
        ],
    )
    .requires(&["limit", "avpkt"]),
    table(
        "choke",
        &[
            same(&["limit"], Packets),
            same(&["bandwidth"], Rate32),
            same(&["min"], Packets).zero(),
            same(&["max"], Packets).zero(),
            same(&["avpkt"], Unit::Size),
            RED_PART[0],
            RED_PART[1],
            RED_PART[2],
            RED_PART[3],
        ],
    )
    .requires(&["limit", "bandwidth"]),
    table(
        "sfb",
        &[
            same(&["rehash"], Millis),
            same(&["db"], Millis),
            same(&["limit"], Packets).zero(),
            same(&["max"], Packets).zero(),
            same(&["target"], Packets).zero(),
            same(&["increment"], Number),
            same(&["decrement"], Number),
            same(&["penalty_rate"], Count),
            same(&["penalty_burst"], Count),
        ],
    ),
    table(
        "sfq",
        &[
            same(&["limit"], Packets),
            same(&["flows"], Count).zero(),
            same(&["depth"], Packets).zero(),
            same(&["divisor"], Count).zero(),
            same(&["quantum"], Unit::Size).zero(),
            same(&["perturb"], Seconds),
            same(&["headdrop"], Flag("")),
            row(&["redflowlimit"], "flow_red.redflowlimit", Bytes),
            row(&["min"], "flow_red.min", Bytes).zero(),
            row(&["max"], "flow_red.max", Bytes).zero(),
            row(&["avpkt"], "flow_red.avpkt", Unit::Size),
            row(&["burst"], "flow_red.burst", Count).zero(),
            row(&["probability"], "flow_red.probability", Number),
            row(&["ecn"], "flow_red.ecn", Flag("")),
            row(&["harddrop"], "flow_red.harddrop", Flag("")),
            RED_PART[3],
        ],
    ),
    table(
        "fq",
        &[
            same(&["limit"], Packets),
            same(&["flow_limit"], Packets),
            same(&["quantum"], Bytes),
            same(&["initial_quantum"], Bytes),
            same(&["maxrate"], Rate32),
            same(&["low_rate_threshold"], Rate32),
            same(&["refill_delay"], Time),
            same(&["orphan_mask"], Count),
            same(&["ce_threshold"], Time),
            without(&["buckets"], 1, NO_EFFECT),
            without(&["timer_slack"], 1, NO_EFFECT),
            without(&["defrate"], 1, "it has no effect in the kernel either"),
            without(&["pacing"], 0, ""),
            without(&["nopacing"], 0, "a sender's pacing is a key of its flow: `pacing`"),
            without(&["horizon"], 1, FQ_ONLY),
            without(&["horizon_drop"], 0, FQ_ONLY),
            without(&["horizon_cap"], 0, FQ_ONLY),
            without(&["offload_horizon"], 1, OFFLOAD),
            without(&["bands"], 18, FQ_ONLY),
            without(&["priomap"], 16, FQ_ONLY),
            without(&["weights"], 3, FQ_ONLY),
        ],
    ),
    table(
        "codel",
        &[
            same(&["limit"], Packets).zero(),
            same(&["target"], Time).zero(),
            same(&["ce_threshold"], Time),
            same(&["interval"], Time).zero(),
            same(&["ecn"], Flag("noecn")),
        ],
    ),
    table(
        "fq_codel",
        &[
            same(&["limit"], Packets).zero(),
            same(&["flows"], Count).zero(),
            same(&["quantum"], Bytes).zero(),
            same(&["target"], Time).zero(),
            same(&["ce_threshold"], Time),
            row(&["ce_threshold_selector"], "ce_threshold_selector", Selector),
            same(&["interval"], Time).zero(),
            same(&["memory_limit"], Unit::Size),
            same(&["drop_batch"], Count).zero(),
            same(&["ecn"], Flag("noecn")),
        ],
    ),
    table(
        "pie",
        &[
            same(&["limit"], Packets).zero(),
            same(&["target"], Time).zero(),
            same(&["tupdate"], Time).zero(),
            same(&["alpha"], Count).zero(),
            same(&["beta"], Count).zero(),
            same(&["ecn"], Flag("noecn")),
            same(&["bytemode"], Flag("nobytemode")),
            same(&["dq_rate_estimator"], Flag("no_dq_rate_estimator")),
        ],
    ),
    table(
        "fq_pie",
        &[
            same(&["limit"], Packets).zero(),
            same(&["flows"], Count).zero(),
            same(&["target"], Time).zero(),
            same(&["tupdate"], Time).zero(),
            same(&["alpha"], Count).zero(),
            same(&["beta"], Count).zero(),
            same(&["quantum"], Unit::Size).zero(),
            same(&["memory_limit"], Unit::Size).zero(),
            same(&["ecn_prob"], Count).zero(),
            same(&["ecn"], Flag("noecn")),
            same(&["bytemode"], Flag("nobytemode")),
            same(&["dq_rate_estimator"], Flag("no_dq_rate_estimator")),
        ],
    ),
    table(
        "dualpi2",
        &[
            same(&["limit"], Packets).zero(),
            same(&["memlimit"], Bytes).zero().json("memory-limit"),
            same(&["target"], Time).zero(),
            same(&["tupdate"], Time).zero(),
            same(&["alpha"], Parts256),
            same(&["beta"], Parts256),
            same(&["coupling_factor"], Count).json("coupling"),
            row(&["any_ect", "l4s_ect"], "any_ect", Names(&["true", "false"])).json("ecn-mask"),
            same(&["step_thresh"], TimeOrPackets).zero().json("step-thresh-us"),
            same(&["min_qlen_step"], Packets).json("min-qlen-step"),
            row(&["drop_on_overload", "overflow"], "drop_on_overload", Names(&["true", "false"])).json("drop-overload"),
            row(&["drop_enqueue", "drop_dequeue"], "drop_enqueue", Names(&["true", "false"])).json("drop-early"),
            same(&["classic_protection"], Percent).json("c-protection"),
            without(&["split_gso"], 0, "").json("split-gso"),
            without(&["no_split_gso"], 0, "packets are not longer than the MTU here"),
            without(&["max_rtt"], 1, "`target`, `tupdate`, `alpha` and `beta` are not derived from it"),
            without(&["typical_rtt"], 1, "`target`, `tupdate`, `alpha` and `beta` are not derived from it"),
        ],
    ),
    table(
        "tbf",
        &[
            same(&["limit"], Unit::Size),
            same(&["latency"], Time).json("lat"),
            same(&["burst", "buffer", "maxburst"], SizeAndCell),
            row(&["minburst", "mtu"], "mtu", SizeAndCell),
            same(&["mpu"], Unit::Size),
            same(&["rate"], Unit::Rate),
            same(&["peakrate"], Unit::Rate),
            same(&["overhead"], Bytes),
            same(&["linklayer"], LinkLayer),
        ],
    )
    .prefix()
    .requires(&["rate", "burst"]),
    table(
        "cake",
        &[
            same(&["bandwidth"], Unit::Rate).zero(),
            same(&["rtt"], Time).zero(),
            row(&["unlimited"], "bandwidth", Names(&["false"])),
            row(
                &["datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite", "interplanetary"],
                "rtt",
                Words,
            ),
            same(
                &["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence", "diffserv"],
                Names(&[
                    "\"diffserv3\"",
                    "\"diffserv4\"",
                    "\"diffserv8\"",
                    "\"besteffort\"",
                    "\"precedence\"",
                    "\"diffserv4\"",
                ]),
            )
            .key("diffserv"),
            same(
                &[
                    "triple-isolate",
                    "flowblind",
                    "srchost",
                    "dsthost",
                    "hosts",
                    "flows",
                    "dual-srchost",
                    "dual-dsthost",
                ],
                Words,
            )
            .key("flowmode"),
            same(&["wash"], Flag("nowash")),
            same(&["ingress"], Flag("egress")),
            same(
                &["ack-filter", "ack-filter-aggressive", "no-ack-filter"],
                Names(&["\"enabled\"", "\"aggressive\"", "false"]),
            )
            .key("ack_filter")
            .json("ack-filter"),
            same(
                &[
                    "conservative",
                    "pppoa-vcmux",
                    "pppoa-llc",
                    "pppoe-vcmux",
                    "pppoe-llcsnap",
                    "bridged-vcmux",
                    "bridged-llcsnap",
                    "ipoa-vcmux",
                    "ipoa-llcsnap",
                    "pppoe-ptm",
                    "bridged-ptm",
                    "docsis",
                    "ethernet",
                ],
                Words,
            )
            .key("framing"),
            same(&["noatm", "atm", "ptm"], Words).key("atm"),
            same(&["overhead"], Number),
            same(&["mpu"], Bytes),
            same(&["memlimit"], Unit::Size).zero(),
            without(&["nat"], 0, "addresses are not translated here"),
            without(&["nonat"], 0, ""),
            without(&["split-gso"], 0, "").json("split_gso"),
            without(&["no-split-gso"], 0, "packets are not longer than the MTU here"),
            without(&["fwmark"], 1, "packets have no marks of the firewall"),
            without(&["autorate-ingress"], 0, "the rate is not estimated; `bandwidth` holds").json("autorate"),
            without(&["via-ethernet"], 0, ""),
        ],
    ),
    table(
        "htb",
        &[
            same(&["r2q"], Count),
            same(&["default"], Count),
            same(&["direct_qlen"], Packets),
            without(&["debug"], 1, NO_EFFECT),
            without(&["offload"], 0, OFFLOAD),
        ],
    )
    .prefix(),
    table("hfsc", &[same(&["default"], Count)]).prefix(),
    table("qfq", &[]),
    table(QFQ_CLASS, &[same(&["weight"], Count), same(&["maxpkt"], Bytes)]).prefix(),
    table(
        HTB_CLASS,
        &[
            same(&["prio"], Count),
            without(&["mtu"], 1, "rates have no tables since Linux 3.8; only the default `burst` depends on it"),
            same(&["mpu"], Bytes).json("mpu_rate"),
            same(&["overhead"], Bytes),
            same(&["linklayer"], LinkLayer),
            same(&["quantum"], Bytes).zero(),
            same(&["burst", "buffer", "maxburst"], SizeAndCell).zero(),
            same(&["cburst", "cbuffer", "cmaxburst"], SizeAndCell).zero(),
            same(&["ceil"], Unit::Rate).zero(),
            same(&["rate"], Unit::Rate),
        ],
    )
    .prefix()
    .requires(&["rate"]),
];
