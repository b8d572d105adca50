//! The order of `scenario`: documents and errors, kinds of values, tables of names and keys, the
//! sections of a file, what is made of them all.

use crate::arrows::{Allowed, Layers};

pub(crate) const LAYERS: Layers = Layers {
    folder: "crates/scenario",
    order: &[
        // Places, errors, the document, values.
        "report",
        "document",
        "keys",
        "quantity",
        "dscp",
        "write",
        "values",
        "traces",
        "fields",
        // Kinds with their parameters.
        "extent",
        "parameters",
        "hystart",
        "queue",
        "clock",
        "course",
        "distribution",
        "video",
        "web",
        "probe",
        "medium",
        "application",
        "link",
        "cc",
        // Hosts, the paths between them, and who talks over these.
        "host",
        "hosts",
        "schedule",
        "paths",
        "command",
        "mptcp",
        "ends",
        "datagrams",
        "flow",
        "workload",
        "record",
        // Sweeps and expectations over all of it.
        "overrides",
        "show",
        "sweep",
        "metric",
        "measurement",
        "until",
        "evaluation",
        "expect",
        "plan",
        "points",
        "change",
        "notes",
        "scenario",
        "catalogue",
    ],
    composes: &[],
    allowed: Allowed::Listed(&[]),
};
