//! Socket buffers: of a fixed size, or tuned by the host.

use ackclock_tcp::profile::Profile;
use ackclock_tcp::{BufferTuning, Config, MAX_BUFFER, OffloadRule, SpaceRule};

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::quantity::{Bytes, Flag, Kind, OneOf, Problem};

/// The name of a buffer that is tuned.
const AUTO: &str = "auto";
const SPACES: OneOf = OneOf { what: "rule for the send buffer", names: &["bytes", "segments"] };
/// The least buffer of a socket of Linux (`SOCK_MIN_RCVBUF`), rounded up.
const LEAST: u64 = 4096;

/// Bytes, or `"auto"` on a host whose tuning is modelled.
struct BufferSize {
    tunes: bool,
}

/// `None` for a buffer that is tuned.
type Held = Option<u64>;

impl Kind for BufferSize {
    type Held = Held;

    fn read(&self, node: &Node) -> Result<Held, Problem> {
        if node.str() != Some(AUTO) {
            let read = Bytes(1, MAX_BUFFER).read(node).map(Some);
            let auto = if self.tunes { ", or \"auto\"" } else { "" };
            return read.map_err(|problem| Problem { expected: format!("{}{auto}", problem.expected), ..problem });
        }
        if self.tunes {
            return Ok(None);
        }
        let hosts = Profile::all().into_iter().filter(|host| host.tuning.is_some());
        let hosts = hosts.map(|host| host.name).collect::<Vec<_>>();
        Err(Problem::new(
            "the tuning of this host is not modelled",
            format!("a size, or one of the hosts {}", hosts.join(", ")),
        ))
    }

    fn show(&self, held: &Held) -> Value {
        held.map_or(AUTO.into(), |bytes| Bytes(1, MAX_BUFFER).show(&bytes))
    }

    fn domain(&self) -> Domain {
        match self.tunes {
            true => Domain::Either(vec![Domain::Name(vec![AUTO]), Domain::Bytes(1, MAX_BUFFER)]),
            false => Domain::Bytes(1, MAX_BUFFER),
        }
    }
}

/// `true` on a host whose segmentation offload is modelled.
struct OffloadUnits(Option<OffloadRule>);

impl Kind for OffloadUnits {
    type Held = bool;

    fn read(&self, node: &Node) -> Result<bool, Problem> {
        let held = Flag.read(node)?;
        if !held || self.0.is_some() {
            return Ok(held);
        }
        let hosts = Profile::all().into_iter().filter(|host| host.offload.is_some());
        let hosts = hosts.map(|host| host.name).collect::<Vec<_>>();
        Err(Problem::new(
            "the segmentation offload of this host is not modelled",
            format!("`false`, or one of the hosts {}", hosts.join(", ")),
        ))
    }

    fn show(&self, held: &bool) -> Value {
        Flag.show(held)
    }

    fn domain(&self) -> Domain {
        if self.0.is_some() { Domain::Flag } else { Domain::Off }
    }
}

/// Reads whether a host hands segments down in units, and what fills its send buffer then.
pub(super) fn read_offload(fields: &mut Fields<'_>, config: &mut Config, profile: &Profile) {
    let rule = profile.offload;
    let on = fields.or(
        (
            "segmentation_offload",
            "segmentation offload: the sender decides on units of several segments, by the kernel's rules",
        ),
        config.transfer.offload.is_on(),
        OffloadUnits(rule),
    );
    config.hand_down_units(rule.filter(|_| on).unwrap_or_default());
}

/// Reads both buffers of a host, and the sysctls of those that are tuned.
pub(super) fn read(fields: &mut Fields<'_>, config: &mut Config, profile: &Profile) {
    let tuning = profile.tuning;
    let size = || BufferSize { tunes: tuning.is_some() };

    let before = config.transfer.send_tuning;
    let held = before.map_or(Some(config.send_buffer), |_| None);
    match (fields.or(keys::SEND_BUFFER, held, size()), tuning) {
        (None, Some(tuning)) => {
            let numbers = sysctl(fields, WMEM, before.unwrap_or(tuning.send));
            config.tune_send_buffer(numbers);
        }
        (held, _) => {
            config.transfer.send_tuning = None;
            if before.is_some() {
                config.transfer.send_space = profile.endpoint.transfer.send_space;
            }
            config.send_buffer = held.unwrap_or(config.send_buffer);
            config.transfer.send_space = match fields.or(
                ("send_space", "free space at which a full send buffer wakes its writer"),
                config.transfer.send_space.name(),
                SPACES,
            ) {
                "segments" => SpaceRule::Segments,
                _ => SpaceRule::Bytes,
            };
        }
    }

    let before = config.transfer.receive_tuning;
    let held = before.map_or(Some(config.receive_space()), |_| None);
    match (fields.or(keys::RECEIVE_BUFFER, held, size()), tuning) {
        (None, Some(tuning)) => {
            let numbers = sysctl(fields, RMEM, before.unwrap_or(tuning.receive));
            config.tune_receive_buffer(numbers);
        }
        (held, _) => {
            if before.is_some() {
                config.transfer.window = profile.endpoint.transfer.window;
            }
            config.transfer.receive_tuning = None;
            config.set_receive_space(held.unwrap_or(config.receive_space()));
        }
    }
}

const WMEM: [(&str, &str); 3] = [
    ("tcp_wmem", "auto-tuned send buffer, in memory: `net.ipv4.tcp_wmem`"),
    ("default", "size before the connection is established"),
    ("max", "largest size"),
];
const RMEM: [(&str, &str); 3] = [
    ("tcp_rmem", "auto-tuned receive buffer, in memory: `net.ipv4.tcp_rmem`"),
    ("default", "initial size"),
    ("max", "largest size, which determines the window scale"),
];

/// The second and the third number of a sysctl; the first plays a part only when memory is short.
fn sysctl(
    fields: &mut Fields<'_>,
    [key, default, max]: [(&'static str, &'static str); 3],
    before: BufferTuning,
) -> BufferTuning {
    let mut numbers = fields.section(key, "a table such as { default = \"128KiB\", max = \"6MiB\" }");
    let default = numbers.or(default, before.default, Bytes(LEAST, MAX_BUFFER));
    let most = numbers.or(max, before.most.max(default), Bytes(LEAST, MAX_BUFFER));
    if let Some(entry) = numbers.get("max").filter(|_| most < default) {
        numbers.reject("max", &entry.node, Problem::new("less than `default`", format!("at least {default}B")));
    }
    numbers.finish();
    BufferTuning { default, most, ..before }
}
