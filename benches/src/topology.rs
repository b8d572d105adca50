//! Scenarios that are measured.

use std::fmt::{self, Write};

/// Bulk flows over links. ACKs come back over links without a rate.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// The number of flows.
    pub flows: u64,
    /// Stack and congestion controller of all of them.
    pub host: (&'static str, &'static str),
    /// Delay of a path in each direction, in microseconds.
    pub delay_us: u64,
    /// Rate of a link in Mbit/s.
    pub mbit: u64,
    /// Queue of a link in a scenario's notation.
    pub queue: Queue,
    /// The links, and how the flows use them.
    pub links: Links,
}

/// The links of a scenario.
#[derive(Clone, Copy, Debug)]
pub enum Links {
    /// One, which all flows share.
    Shared,
    /// A chain of so many links, which all flows take.
    Chain(u64),
    /// Parallel links, each with its share of the flows.
    Parallel(u64),
}

/// A queue with its defaults, or with a limit.
#[derive(Clone, Copy, Debug)]
pub enum Queue {
    /// Drop-tail with so many packets.
    DropTail(u64),
    /// Another discipline, by its name in scenarios.
    Named(&'static str),
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::DropTail(limit) => write!(f, "{{ kind = \"pfifo\", limit = \"{limit}p\" }}"),
            Queue::Named(name) => write!(f, "{{ kind = \"{name}\" }}"),
        }
    }
}

/// NewReno of FreeBSD 9.2.
pub const NEWRENO: (&str, &str) = ("freebsd-9.2", "newreno");

/// CUBIC of Linux 6.1, with RACK.
pub const CUBIC: (&str, &str) = ("linux-6.1", "cubic");

impl Bulk {
    /// Flows over one link with a delay of 10 ms.
    pub const fn shared(flows: u64, host: (&'static str, &'static str), mbit: u64, queue: Queue) -> Bulk {
        Bulk { flows, host, delay_us: 10_000, mbit, queue, links: Links::Shared }
    }

    /// The scenario file of a run of this duration.
    pub fn scenario(&self, duration: &str) -> String {
        let (links, paths, delay_us) = match self.links {
            Links::Shared => (1, 1, self.delay_us),
            Links::Chain(links) => (links, 1, self.delay_us / links),
            Links::Parallel(links) => (links, links, self.delay_us),
        };
        let mut text = format!("schema = 1\nrun = {{ duration = \"{duration}\" }}\n");
        let Bulk { mbit, queue, host: (host, cc), .. } = self;
        for link in 0..links {
            let _ = write!(
                text,
                "\n[links.link{link}]\nrate = \"{mbit}mbit\"\ndelay = \"{delay_us}us\"\nqueue = {queue}\n\
                 reverse = {{ rate = \"unlimited\", queue = \"pfifo\" }}\n"
            );
        }
        for path in 0..paths {
            let names: Vec<String> = match self.links {
                Links::Chain(links) => (0..links).map(|link| format!("\"link{link}\"")).collect(),
                Links::Shared | Links::Parallel(_) => vec![format!("\"link{path}\"")],
            };
            let (count, path_of) = (self.flows / paths, names.join(", "));
            let _ = write!(
                text,
                "\n[[flows]]\nid = \"flow{path}\"\ncount = {count}\npath = [{path_of}]\nhost = \"{host}\"\ncc = \"{cc}\"\n"
            );
        }
        text
    }
}

/// NewReno's slow start into a queue of half the window, which loses about every second packet of a
/// window of `segments`.
pub fn overshoot(host: &str, segments: u64, duration: &str) -> String {
    let (rate, buffer, limit) = (segments * 1514 * 8 * 20, 4 * segments * 1460, segments / 2);
    format!(
        r#"
schema = 1
run    = {{ duration = "{duration}" }}

[links.bottleneck]
rate  = "{rate}bit"
delay = "25ms"
queue = {{ kind = "pfifo", limit = "{limit}p" }}

[[flows]]
id             = "flow"
path           = ["bottleneck"]
host           = "{host}"
cc             = "newreno"
send_buffer    = "{buffer}B"
receive_buffer = "{buffer}B"
"#
    )
}
