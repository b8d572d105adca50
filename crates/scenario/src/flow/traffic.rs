//! The traffic of a group of flows, and its hosts.

use ackclock_emulator::Slots;
use ackclock_sim::spec::{Application, DatagramSpec, FlowSpec, HostSpec};

use super::interrupts::{FlowInterrupts, INTERRUPTS};
use super::route::GroupRoute;
use crate::application;
use crate::datagrams;
use crate::document::Table;
use crate::fields::Fields;
use crate::host::{self, Host, Place};
use crate::keys::{self, Domain};
use crate::link::slots;
use crate::quantity::{Bytes, Kind as _, Problem};

/// The traffic of a group, and its hosts.
pub(super) enum Traffic {
    Connection {
        sender: Host,
        receiver: Host,
        interrupts: Box<FlowInterrupts>,
        bytes: Option<u64>,
        write_size: u64,
        application: Application,
    },
    Datagrams(DatagramSpec),
}

/// The traffic as the flows of the group hold it.
pub(super) struct Load {
    pub(super) sender: HostSpec,
    pub(super) receiver: HostSpec,
    pub(super) interrupts: FlowInterrupts,
    pub(super) bytes: Option<u64>,
    pub(super) write_size: u64,
    pub(super) application: Application,
}

impl Traffic {
    pub(super) fn read(fields: &mut Fields<'_>, table: &Table, route: &GroupRoute, outside: bool) -> Traffic {
        let mtu = route.places.iter().filter_map(|place| place.mtu).min();
        let kernels = outside && route.ends.as_ref().is_some_and(|ends| ends.kernels.contains(&true));
        match datagrams::read(fields, table, mtu, kernels) {
            Some(datagrams) => Traffic::Datagrams(datagrams),
            None => Traffic::connection(fields, route),
        }
    }

    fn connection(fields: &mut Fields<'_>, route: &GroupRoute) -> Traffic {
        let ([sender, receiver], interrupts) = hosts(fields, route);
        let interrupts = interrupts.into();
        let bytes = fields.maybe(
            ("bytes", "size of the transfer; by default the flow sends until it is stopped"),
            Bytes(1, u64::MAX >> 8),
        );
        let write_size = fields.or(keys::WRITE_SIZE, FlowSpec::WRITE_SIZE, Bytes(1, u64::MAX >> 8));
        let application = application::read(fields);
        Traffic::Connection { sender, receiver, interrupts, bytes, write_size, application }
    }

    pub(super) fn load(self) -> Load {
        match self {
            Traffic::Connection { sender, receiver, interrupts, bytes, write_size, application } => {
                let (sender, receiver) = (sender.spec(), receiver.spec());
                Load { sender, receiver, interrupts: *interrupts, bytes, write_size, application }
            }
            Traffic::Datagrams(spec) => Load {
                sender: HostSpec::Datagrams(spec.clone()),
                receiver: HostSpec::Datagrams(spec),
                interrupts: FlowInterrupts::default(),
                bytes: None,
                write_size: FlowSpec::WRITE_SIZE,
                application: Application::Bulk,
            },
        }
    }
}

/// Sender and receiver of connections over a path that is theirs alone.
pub(crate) fn hosts_over_path(fields: &mut Fields<'_>) -> [Host; 2] {
    let place = Place { mtu: None };
    let sender = host::read(fields, None, place);
    let receiver = receiver(fields, &sender, place, false, None);
    [sender, receiver]
}

/// Sender and receiver, with their interrupts.
fn hosts(fields: &mut Fields<'_>, route: &GroupRoute) -> ([Host; 2], FlowInterrupts) {
    let mut sender = host::read(fields, None, route.places[0]);
    if let (Some(_), Host::Endpoint(endpoint, _)) = (&route.split, &mut sender) {
        // The path of the first data depends on it.
        endpoint.config.transfer.bare_handshake_ack = true;
    }
    let facing_kernel = route.ends.as_ref().is_some_and(|ends| ends.kernels == [false, true]);
    let of_sender = slots::read(fields, INTERRUPTS, None);
    let mut of_receiver = of_sender.clone();
    let receiver = receiver(fields, &sender, route.places[1], facing_kernel, Some(&mut of_receiver));
    ([sender, receiver], FlowInterrupts([of_sender, of_receiver]))
}

/// The receiving end: a host of its own if it names one, else the sender's with the keys that it
/// changes. A kernel that an endpoint of ours sends to is not like it. `interrupts` are the
/// sender's, and then the receiver's; `None` where hosts have none.
fn receiver(
    fields: &mut Fields<'_>,
    sender: &Host,
    place: Place,
    facing_kernel: bool,
    interrupts: Option<&mut Option<Slots>>,
) -> Host {
    fields.declare(("receiver", "another profile for the receiver, or keys of it that differ"), || {
        Domain::Either(vec![host::Hosts(fields.own()).domain(), Domain::Table])
    });
    let Some(entry) = fields.get("receiver") else {
        return if facing_kernel {
            host::left_out(&mut fields.bare("receiver"), sender, place)
        } else {
            place.fitted(sender.clone())
        };
    };
    if entry.node.table().is_none() && entry.node.str().is_some() {
        if let Some(interrupts) = interrupts {
            *interrupts = None;
        }
        return host::named(fields, "receiver", &entry.node, sender, place).unwrap_or_else(|| sender.clone());
    }
    let Some(mut section) = fields.table("receiver", "the name of a host, or a table of knobs") else {
        return sender.clone();
    };
    let receiver = host::read(&mut section, Some(sender), place);
    if let Some(interrupts) = interrupts {
        let inherited = interrupts.take().filter(|_| section.get("host").is_none());
        *interrupts = slots::read(&mut section, INTERRUPTS, inherited);
    }
    section.finish();
    receiver
}

/// Checks what an application that is no bulk transfer cannot go with.
pub(super) fn check(fields: &mut Fields<'_>, table: &Table, application: &Application, hosts: [&HostSpec; 2]) {
    let Some(entry) = table.get("application").filter(|_| *application != Application::Bulk) else { return };
    let refuse = |key: &'static str, title: &str, expected: &str| {
        let node = table.get(key).map_or(&entry.node, |entry| &entry.node);
        fields.reject(key, node, Problem::new(title, expected));
    };
    if let Some((kind, own)) = application::of_client(application) {
        if hosts.iter().any(|host| !matches!(host, HostSpec::Endpoint(_))) {
            let title = format!("`{kind}` not with a kernel or a smoltcp host");
            refuse("application", &title, "another application, or a host with an endpoint of ackclock at both ends");
        }
        if table.get("bytes").is_some() {
            refuse("bytes", &format!("not with `{kind}`, which has `{own}`"), "one of the two");
        }
    } else if *hosts[0] == HostSpec::Outside {
        refuse("application", "not where the sender is a kernel", "`bulk`, or a sender of our own");
    }
    if table.get("results").and_then(|entry| entry.node.str()) == Some("sum") {
        refuse("results", "not with this application, whose results are those of each flow", "`each`");
    }
}
