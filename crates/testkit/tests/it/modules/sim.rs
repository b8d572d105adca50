//! The order of `sim`: what a run consists of, hosts, what is measured on the way, and the loop.

use crate::modules::arrows::{Allowed, Layers};

pub(crate) const LAYERS: Layers = Layers {
    folder: "crates/sim",
    order: &[
        // What a run consists of, and what is recorded of it.
        "index",
        "spec",
        "record",
        // What became of every transmission; ends of connections; links.
        "truth",
        "stock",
        "error",
        "watch",
        "datagrams",
        "host",
        "direction",
        // Measures of flows and of parts of a run.
        "flow",
        "window",
        "series",
        "memory",
        "effort",
        // From specifications to components, and the loop over them.
        "build",
        "log",
        "capture",
        "reordering",
        "world",
    ],
    composes: &[],
    allowed: Allowed::Listed(&[]),
};
