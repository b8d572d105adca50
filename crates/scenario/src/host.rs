//! Hosts: a profile by name, and every setting of it by its own key.

use ackclock_sim::spec::{CcSpec, EndpointSpec, HostSpec, SmoltcpCc, SmoltcpSpec};
pub(crate) use ackclock_tcp::MIN_MSS;
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{
    AccEcnOption, AccEcnRules, Config, Controller, CwndValidation, DetectorKind, LossDetector, MinRto, Pacing,
    PacingWhen, Prr, Ticks,
};
use ackclock_units::parameter::{Choice as _, Named as _};

use crate::document::Node;
use crate::fields::Fields;
use crate::keys;
use crate::quantity::{Bytes, Flag, Kind, OneOf, OrOff, Problem, Time};
use crate::report::Diagnostic;
use crate::{cc, hystart, parameters};

mod buffers;
mod names;

pub(crate) use names::{Hosts, NamedHost};

/// The key, with its meaning.
pub(crate) const HOST: (&str, &str) = ("host", "profile of both ends: timers, options and rules of a system");

/// A host of this program: its specification, with the profile that it started from.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    Endpoint(Box<EndpointSpec>, Box<Profile>),
    Smoltcp(SmoltcpSpec),
}

impl Host {
    pub(crate) fn spec(self) -> HostSpec {
        match self {
            Host::Endpoint(endpoint, _) => HostSpec::Endpoint(*endpoint),
            Host::Smoltcp(stock) => HostSpec::Smoltcp(stock),
        }
    }
}

/// Bytes of an IPv4 and a TCP header without options.
pub(crate) const HEADERS: u64 = 40;

/// The least MTU of a smoltcp host.
const MIN_STOCK_MTU: u64 = 576;

/// smoltcp allocates its buffers in full.
const MAX_STOCK_BUFFER: u64 = 64 << 20;

/// Where an end of a flow stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The MTU of the host that it is on, if it is on one in particular.
    pub(crate) mtu: Option<u16>,
}

impl Place {
    /// The largest MSS here.
    fn mss(self) -> Option<u16> {
        self.mtu.map(|mtu| mtu.saturating_sub(HEADERS as u16).max(MIN_MSS as u16))
    }

    /// A host as large as its MTU.
    fn filled(self, mut host: Host) -> Host {
        if let (Some(mss), Host::Endpoint(endpoint, _)) = (self.mss(), &mut host) {
            endpoint.config.mss = mss;
        }
        self.fitted(host)
    }

    /// A host no larger than its MTU.
    pub(crate) fn fitted(self, mut host: Host) -> Host {
        match (self.mtu, self.mss(), &mut host) {
            (_, Some(mss), Host::Endpoint(endpoint, _)) => endpoint.config.mss = endpoint.config.mss.min(mss),
            (Some(mtu), _, Host::Smoltcp(stock)) => stock.mtu = stock.mtu.min(mtu).max(MIN_STOCK_MTU as u16),
            _ => {}
        }
        host
    }

    /// Checks what the file says of a host's size.
    fn check(self, fields: &mut Fields<'_>, host: &Host) {
        let (Some(mtu), Some(mss)) = (self.mtu, self.mss()) else { return };
        let (key, found, most) = match host {
            Host::Endpoint(endpoint, _) => ("mss", endpoint.config.mss, mss),
            Host::Smoltcp(stock) => ("mtu", stock.mtu, mtu.max(MIN_STOCK_MTU as u16)),
        };
        if let Some(entry) = fields.get(key).filter(|_| found > most) {
            let expected = format!("at most {most}B: the MTU of its host is {mtu}B");
            fields.reject(key, &entry.node, Problem::new("too large", expected));
        }
    }
}

/// Reads a host and its knobs. Without the key `host` it is `base`, the other end's, or the
/// default.
pub(crate) fn read(fields: &mut Fields<'_>, base: Option<&Host>, place: Place) -> Host {
    let host = match (fields.maybe(HOST, Hosts(fields.own())), base) {
        (None, Some(base)) => with_knobs(fields, place.fitted(base.clone()), true),
        (None, None) => {
            if fields.get("host").is_none() {
                fields.fill("host", names::DEFAULT.name);
            }
            with_knobs(fields, place.filled(names::DEFAULT.host()), false)
        }
        (Some(name), base) => with_knobs(fields, place.filled(facing(name.host(), base)), false),
    };
    place.check(fields, &host);
    host
}

/// An end that the file says nothing of, out of the box. `other` is the other end.
pub(crate) fn left_out(fields: &mut Fields<'_>, other: &Host, place: Place) -> Host {
    fields.fill("host", names::DEFAULT.name);
    with_knobs(fields, place.filled(facing(names::DEFAULT.host(), Some(other))), false)
}

/// A host with the feedback of ECN that the other end's controller takes, if it takes one in
/// particular.
fn facing(mut host: Host, other: Option<&Host>) -> Host {
    if let (Host::Endpoint(endpoint, _), Some(Host::Endpoint(other, _))) = (&mut host, other)
        && Controller::by_name(other.cc.name()).is_some_and(|cc| cc.feedback.is_some())
    {
        endpoint.config.ecn = other.config.ecn;
    }
    host
}

/// Reads the name of a host, which is its whole specification; an unknown one is reported. `other`
/// is the other end.
pub(crate) fn named(
    fields: &mut Fields<'_>,
    key: &'static str,
    node: &Node,
    other: &Host,
    place: Place,
) -> Option<Host> {
    let name = Hosts(fields.own()).read(node).map_err(|problem| fields.reject(key, node, problem)).ok()?;
    Some(with_knobs(&mut fields.bare(key), place.filled(facing(name.host(), Some(other))), false))
}

/// Reads the knobs; `inherited` ones are those of the other end.
fn with_knobs(fields: &mut Fields<'_>, mut host: Host, inherited: bool) -> Host {
    match &mut host {
        Host::Endpoint(endpoint, profile) => {
            cc::declare(fields);
            if let Some(feedback) = cc::feedback(fields) {
                endpoint.config.ecn = feedback;
            }
            knobs(fields, &mut endpoint.config, profile);
            let said = fields.get("hystart").is_some();
            if !inherited || fields.get("cc").is_some() {
                let before = std::mem::replace(&mut endpoint.cc, cc::read(fields, profile));
                if inherited && !said {
                    hystart::inherit(before, &mut endpoint.cc);
                }
            }
            hystart::read(fields, &mut endpoint.cc, profile);
        }
        Host::Smoltcp(stock) => stock_knobs(fields, stock),
    }
    host
}

/// Reads the keys `cc` and `hystart` of a controller that takes over on this host.
pub(crate) fn controller(fields: &mut Fields<'_>, host: &EndpointSpec, profile: &Profile) -> CcSpec {
    let mut cc = cc::read(fields, profile);
    hystart::inherit(host.cc.clone(), &mut cc);
    hystart::read(fields, &mut cc, profile);
    cc
}

impl NamedHost {
    /// The host as it is out of the box.
    pub(crate) fn host(self) -> Host {
        let Some(profile) = self.profile else { return Host::Smoltcp(SmoltcpSpec::default()) };
        let profile = profile();
        let cc = CcSpec::by_name(profile.cc, &profile.stack());
        let cc = cc.unwrap_or_else(|| unreachable!("`{}` is in the table of names", profile.cc));
        let endpoint = EndpointSpec { profile: profile.name.to_owned(), config: profile.endpoint.clone(), cc };
        Host::Endpoint(Box::new(endpoint), Box::new(profile))
    }
}

fn knobs(fields: &mut Fields<'_>, config: &mut Config, profile: &Profile) {
    config.handshake(&mut parameters::reader(fields));
    buffers::read(fields, config, profile);
    buffers::read_offload(fields, config, profile);
    config.behaviour(&mut parameters::reader(fields));
    check_detector(fields, config);
    check_tick(fields);

    let (MinRto::OfTotal(least) | MinRto::OfVariance(least)) = config.min_rto;
    for (key, time) in [("min_rto", least), ("initial_rto", config.initial_rto)] {
        if time > config.max_rto {
            let place =
                ["max_rto", key].into_iter().find_map(|key| fields.get(key)).map(|entry| entry.node.place.clone());
            let title = format!("{}: `max_rto` is less than `{key}`", fields.shown());
            let label = format!("max_rto is {} and {key} is {time}", config.max_rto);
            fields.push(Diagnostic::new(title, &place.unwrap_or(fields.place().clone()), label));
        }
    }
}

/// Rules of recovery that know neither SACK nor what came after it, or that alone know `peer`.
fn check_detector(fields: &mut Fields<'_>, config: &mut Config) {
    let berkeley = matches!(config.loss_detector, LossDetector::Tahoe(_) | LossDetector::Reno(_));
    if berkeley || config.loss_detector == LossDetector::FreeBsd9 {
        let others = [
            ("prr", config.prr != Prr::Off),
            ("undo", config.undo),
            ("frto", config.frto),
            ("tlp", config.tlp),
            ("sack", berkeley && config.sack),
        ];
        let why = format!("does not go with `loss_detector = \"{}\"`", config.loss_detector.name());
        for (key, _) in others.into_iter().filter(|&(_, on)| on) {
            refuse(fields, key, &why, "`false`");
        }
    }
    if config.cwnd_validation == CwndValidation::Peer && config.loss_detector != LossDetector::FreeBsd9 {
        refuse(fields, "cwnd_validation", "goes with `loss_detector = \"freebsd-9\"` alone", "\"growth\"");
    }
}

/// `key` has a value that the other settings of the host do not allow.
fn refuse(fields: &mut Fields<'_>, key: &'static str, why: &str, instead: &str) {
    let place =
        [key, "loss_detector"].into_iter().find_map(|key| fields.get(key)).map(|entry| entry.node.place.clone());
    let title = format!("{}: `{key}` {why}", fields.shown());
    let label = format!("expected {instead}, or another `loss_detector`");
    fields.push(Diagnostic::new(title, &place.unwrap_or(fields.place().clone()), label));
}

fn check_tick(fields: &Fields<'_>) {
    let Some(node) = fields.peek("timer_tick") else { return };
    if let Some(length) = Time::Any.read(node).ok().filter(|&length| length > Ticks::LONGEST) {
        let title = format!("{}: `timer_tick` is too long", fields.shown());
        let label = format!("it is {length}; expected {} at most", Ticks::LONGEST);
        fields.push(Diagnostic::new(title, &node.place, label));
    }
}

pub(crate) const DETECTORS: OneOf = OneOf { what: LossDetector::WHAT, names: DetectorKind::NAMES };
pub(crate) const ACC_ECN_OPTION: OneOf = OneOf { what: AccEcnRules::WHAT, names: AccEcnOption::NAMES };
pub(crate) const PACING: OneOf = OneOf { what: Pacing::WHAT, names: PacingWhen::NAMES };

fn stock_knobs(fields: &mut Fields<'_>, stock: &mut SmoltcpSpec) {
    let of = OneOf { what: "congestion control of smoltcp", names: SmoltcpCc::NAMES };
    stock.cc = SmoltcpCc::by_name(fields.or(keys::CC, stock.cc.name(), of)).unwrap_or(stock.cc);
    stock.mtu = fields.or(keys::MTU, stock.mtu.into(), Bytes(MIN_STOCK_MTU, 65_535)) as u16;
    stock.send_buffer = fields.or(keys::SEND_BUFFER, stock.send_buffer, Bytes(1, MAX_STOCK_BUFFER));
    stock.receive_buffer = fields.or(keys::RECEIVE_BUFFER, stock.receive_buffer, Bytes(1, MAX_STOCK_BUFFER));
    stock.ack_delay =
        fields.or(("ack_delay", "delay of acknowledgments of a stock socket"), stock.ack_delay, OrOff(Time::Positive));
    stock.nagle = fields.or("nagle", stock.nagle, Flag);
    stock.timestamps = fields.or("timestamps", stock.timestamps, Flag);
}
