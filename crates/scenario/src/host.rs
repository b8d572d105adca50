//! Hosts: a profile by name, and every setting of it by its own key.

use ackclock_sim::spec::{CcSpec, EndpointSpec, HostSpec, SmoltcpCc, SmoltcpSpec};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{
    AccEcnOption, AccEcnRule, AccEcnRules, Config, Controller, CwndValidation, EcnFeedback, InitialWindow,
    LossDetector, MinRto, Pacing, PacingWhen, Ticks, TimerRules,
};

use crate::document::{Node, Value};
use crate::fields::Fields;
use crate::keys::{self, Domain};
use crate::quantity::{Bytes, Flag, Kind, OneOf, OrOff, Packets, Problem, Time, Whole};
use crate::report::Diagnostic;
use crate::{cc, hystart};

mod buffers;
mod loss;
mod names;

pub(crate) use loss::DETECTORS;
pub(crate) use names::{Hosts, Named};

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

/// The largest window that can be announced (RFC 7323 section 2.3).
const MAX_BUFFER: u64 = 1 << 30;

/// Options take up to 40 bytes of a segment; 88 is also Linux's minimum.
pub(crate) const MIN_MSS: u64 = 88;

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
    let host =
        match (fields.maybe(("host", "profile of both ends: timers, options and rules of a system"), Hosts), base) {
            (None, Some(base)) => with_knobs(fields, place.fitted(base.clone()), true),
            (None, None) => {
                if fields.get("host").is_none() {
                    fields.fill("host", Hosts.show(&names::DEFAULT));
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
    fields.fill("host", Hosts.show(&names::DEFAULT));
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
    let name = Hosts.read(node).map_err(|problem| fields.reject(key, node, problem)).ok()?;
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

impl Named {
    /// The host as it is out of the box.
    fn host(self) -> Host {
        let Some(profile) = self.profile else { return Host::Smoltcp(SmoltcpSpec::default()) };
        let profile = profile();
        let cc = CcSpec::by_name(profile.cc, &profile.stack());
        let cc = cc.unwrap_or_else(|| unreachable!("`{}` is in the table of names", profile.cc));
        let endpoint = EndpointSpec { profile: profile.name.to_owned(), config: profile.endpoint.clone(), cc };
        Host::Endpoint(Box::new(endpoint), Box::new(profile))
    }
}

fn knobs(fields: &mut Fields<'_>, config: &mut Config, profile: &Profile) {
    config.mss =
        fields.or(("mss", "advertised maximum segment size"), config.mss.into(), Bytes(MIN_MSS, 65_495)) as u16;
    config.initial_window =
        fields.or(("initial_window", "initial congestion window"), config.initial_window, InitialWindows);
    config.dsack = fields.or(("dsack", "duplicate SACK (RFC 2883)"), config.dsack, Flag);
    config.timestamps = fields.or(keys::TIMESTAMPS, config.timestamps, Flag);
    config.window_scaling = fields.or(("window_scaling", "window scaling (RFC 7323)"), config.window_scaling, Flag);
    config.ecn = fields.or(keys::ECN, config.ecn, Feedbacks);
    let falls_back = config.states.ecn_syn_retries != u32::MAX;
    if fields.or(("ecn_fallback", "retransmit a lost SYN without ECN"), falls_back, Flag) != falls_back {
        config.states.ecn_syn_retries = if falls_back { u32::MAX } else { 0 };
    }
    acc_ecn(fields, &mut config.transfer.acc_ecn);
    buffers::read(fields, config, profile);
    buffers::read_offload(fields, config, profile);
    let mut ack = fields.section(
        ("delayed_ack", "delayed acknowledgments; `segments = 1` acknowledges every segment"),
        "a table such as { segments = 2, timeout = \"40ms\", quick = 0 }",
    );
    config.delayed_ack.segments =
        ack.or(("segments", "segments per acknowledgment"), config.delayed_ack.segments.into(), Whole(1, 1000)) as u32;
    config.delayed_ack.timeout =
        ack.or(("timeout", "longest delay of an acknowledgment"), config.delayed_ack.timeout, Time::Positive);
    config.delayed_ack.quick = ack.or(
        ("quick", "segments acknowledged immediately at the start (quick ACKs)"),
        config.delayed_ack.quick.into(),
        Whole(0, 1 << 20),
    ) as u32;
    let hurry = &mut config.delayed_ack.hurry;
    for (key, count) in [
        (("quick_gap", "segments acknowledged immediately after out-of-order data; 0 disables it"), &mut hurry.gap),
        (
            ("quick_mark", "segments acknowledged immediately after a CE mark while none is echoed; 0 disables it"),
            &mut hurry.mark,
        ),
        (
            (
                "quick_not_ect",
                "segments acknowledged immediately after not-ECT data on an ECN connection; 0 disables it",
            ),
            &mut hurry.not_ect,
        ),
        (
            (
                "quick_idle",
                "segments acknowledged immediately after a gap longer than the retransmission timeout; 0 disables it",
            ),
            &mut hurry.idle,
        ),
    ] {
        *count = ack.or(key, (*count).into(), Whole(0, 255)) as u8;
    }
    hurry.after_ect = ack.or(("quick_after_ect", "`quick_not_ect` applies only after ECT data"), hurry.after_ect, Flag);
    hurry.cwr = ack.or(("quick_cwr", "acknowledge segments with CWR immediately"), hurry.cwr, Flag);
    hurry.push = ack.or(
        ("quick_push", "acknowledge segments with PSH, or shorter than full, once the application has read all data"),
        hurry.push,
        Flag,
    );
    config.delayed_ack.growth_from = ack.or(
        ("growth_from", "window above which its growth forces no ACK"),
        config.delayed_ack.growth_from,
        Bytes(0, MAX_BUFFER),
    );
    ack.finish();
    let compression = config.transfer.sack_compression;
    config.transfer.sack_compression = fields
        .or(
            ("sack_compression", "Linux's compression of SACKs: fewer ACKs for out-of-order data"),
            compression.is_some(),
            Flag,
        )
        .then(|| compression.unwrap_or_default());
    config.min_rto = min_rto(fields, config.min_rto);
    config.max_rto =
        fields.or(("max_rto", "upper bound of the retransmission timeout"), config.max_rto, Time::Positive);
    config.initial_rto = fields.or(
        ("initial_rto", "retransmission timeout before the first RTT sample"),
        config.initial_rto,
        Time::Positive,
    );
    config.rto_slop = fields.or(
        ("rto_slop", "constant added to every backed-off timeout (FreeBSD's `rexmit_slop`)"),
        config.rto_slop,
        Time::Any,
    );
    config.transfer.timer = timer_rules(fields, config.transfer.timer);
    timer_tick(fields, config);
    config.limited_transmit =
        fields.or(("limited_transmit", "limited transmit (RFC 3042)"), config.limited_transmit, Flag);
    loss::knobs(fields, config);
    config.nagle = fields.or(keys::NAGLE, config.nagle, Flag);
    config.transfer.minshall = fields.or(
        ("minshall", "Minshall's variant of Nagle's algorithm: one small segment may be in flight"),
        config.transfer.minshall,
        Flag,
    );
    config.transfer.push_writes = fields.or(
        ("push_writes", "set PSH at the end of each write, and after half of the peer's largest window"),
        config.transfer.push_writes,
        Flag,
    );
    config.states.fast_open = fields.or(("fast_open", "data with the SYN (RFC 7413)"), config.states.fast_open, Flag);
    config.slow_start_after_idle = fields.or(
        ("slow_start_after_idle", "restart the window after idle periods (RFC 5681)"),
        config.slow_start_after_idle,
        Flag,
    );
    config.cwnd_validation = cwnd_validation(fields, config);
    let pacing = config.pacing;
    config.pacing = fields.choose(
        ("pacing", "spread segments over the round trip"),
        pacing.when.name(),
        &PACING,
        |kind, fields| self::pacing(kind, fields, pacing),
    );
    config.time_wait = fields.or(("time_wait", "duration of TIME-WAIT"), config.time_wait, Time::Any);
    config.max_retries = fields.or(
        ("max_retries", "consecutive timeouts after which the connection is aborted"),
        config.max_retries.into(),
        Whole(0, 255),
    ) as u32;

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

fn timer_tick(fields: &mut Fields<'_>, config: &mut Config) {
    let ticks = &mut config.transfer.ticks;
    let length = fields.or(
        ("timer_tick", "tick of the host's timers, 1 s / HZ, at most 1 s; 0 makes them exact"),
        ticks.length(),
        Time::Any,
    );
    if let Some(known) = ticks.of_length(length) {
        *ticks = known;
    } else {
        let place = fields.get("timer_tick").map(|entry| entry.node.place.clone());
        let title = format!("{}: `timer_tick` is too long", fields.shown());
        let label = format!("it is {length}; expected {} at most", Ticks::LONGEST);
        fields.push(Diagnostic::new(title, &place.unwrap_or(fields.place().clone()), label));
    }
}

const ACC_ECN_RULES: OneOf = OneOf { what: "rules of Accurate ECN", names: &["rfc9768", "linux"] };
pub(crate) const ACC_ECN_OPTION: OneOf = OneOf { what: "AccECN option", names: &["off", "minimum", "full", "persist"] };
pub(crate) const PACING: OneOf = OneOf { what: "pacing", names: &["auto", "on", "off"] };
const VALIDATION: OneOf =
    OneOf { what: "congestion window validation", names: &["off", "peer", "growth", "rfc2861", "rfc7661"] };
const TIMERS: OneOf = OneOf { what: "rules of the timer", names: &["rfc6298", "linux-2.4"] };
const BOUNDED: OneOf = OneOf { what: "bound", names: &["total", "variance"] };

/// What ACKs do to the retransmission timer.
fn timer_rules(fields: &mut Fields<'_>, rules: TimerRules) -> TimerRules {
    let rows = [("rfc6298", TimerRules::default()), ("linux-2.4", TimerRules::linux_2_4())];
    let name = rows.iter().find(|(_, row)| *row == rules).map_or("rfc6298", |(name, _)| name);
    let name = fields.or(("rto_timer", "how ACKs restart the retransmission timer"), name, TIMERS);
    rows.iter().find(|(row, _)| *row == name).map_or(rules, |(_, row)| *row)
}

/// What Accurate ECN does beyond its packet counter.
fn acc_ecn(fields: &mut Fields<'_>, rules: &mut AccEcnRules) {
    let name = match rules.rule {
        AccEcnRule::Rfc9768 => "rfc9768",
        AccEcnRule::Linux => "linux",
    };
    rules.rule = match fields.or(("accecn_rules", "Accurate ECN by RFC 9768 or by Linux"), name, ACC_ECN_RULES) {
        "linux" => AccEcnRule::Linux,
        _ => AccEcnRule::Rfc9768,
    };
    let profile = *rules;
    *rules = fields.choose(
        ("accecn_option", "when the Accurate ECN option carries byte counters"),
        profile.option.name(),
        &ACC_ECN_OPTION,
        |kind, fields| {
            let option = AccEcnOption::by_name(kind).unwrap_or_default();
            let beacon = match option {
                AccEcnOption::Minimum => fields.or(
                    ("beacon", "least number of options per round trip"),
                    profile.beacon.into(),
                    Whole(0, 65_535),
                ) as u32,
                _ => profile.beacon,
            };
            AccEcnRules { option, beacon, ..profile }
        },
    );
}

/// Pacing called `kind`; the ratios are of the window's own rate, in percent.
fn pacing(kind: &str, fields: &mut Fields<'_>, profile: Pacing) -> Pacing {
    match kind {
        "on" => Pacing {
            when: PacingWhen::On,
            ss_ratio: fields.or(
                ("ss_ratio", "pacing rate in slow start relative to the window per round trip, percent"),
                profile.ss_ratio.into(),
                Whole(1, 1000),
            ) as u32,
            ca_ratio: fields.or(
                ("ca_ratio", "the same in congestion avoidance, percent"),
                profile.ca_ratio.into(),
                Whole(1, 1000),
            ) as u32,
        },
        "off" => Pacing { when: PacingWhen::Off, ..profile },
        _ => Pacing { when: PacingWhen::Auto, ..profile },
    }
}

fn cwnd_validation(fields: &mut Fields<'_>, config: &Config) -> CwndValidation {
    let freebsd = config.loss_detector == LossDetector::FreeBsd9;
    let profile = if freebsd { CwndValidation::Peer } else { config.cwnd_validation };
    match fields.or(("cwnd_validation", "growth or decay of an unused congestion window"), profile.name(), VALIDATION) {
        "off" => CwndValidation::Off,
        "peer" if !freebsd => {
            loss::refuse(fields, "cwnd_validation", "goes with `loss_detector = \"freebsd-9\"` alone", "\"growth\"");
            CwndValidation::Growth
        }
        "peer" => CwndValidation::Peer,
        "rfc2861" => CwndValidation::Rfc2861,
        "rfc7661" => CwndValidation::Rfc7661,
        _ => CwndValidation::Growth,
    }
}

/// A time, which bounds what the profile's bounds, or a table that says what it bounds.
fn min_rto(fields: &mut Fields<'_>, base: MinRto) -> MinRto {
    let (of, time) = match base {
        MinRto::OfTotal(time) => ("total", time),
        MinRto::OfVariance(time) => ("variance", time),
    };
    fields.declare(("min_rto", "lower bound of the retransmission timeout"), || {
        Domain::Either(vec![Time::Any.domain(), Domain::Table])
    });
    let (of, time) = match fields.get("min_rto").map(|entry| &entry.node) {
        Some(node) if node.table().is_none() => (of, fields.or("min_rto", time, Time::Any)),
        _ => {
            let mut section = fields.section("min_rto", "");
            let read = (
                section.or(("of", "the bounded quantity: the variance term, or the sum"), of, BOUNDED),
                section.or(("time", "the bound"), time, Time::Any),
            );
            section.finish();
            read
        }
    };
    if of == "variance" { MinRto::OfVariance(time) } else { MinRto::OfTotal(time) }
}

/// `"rfc3390"` or a number of segments.
struct InitialWindows;

impl Kind for InitialWindows {
    type Held = InitialWindow;

    fn read(&self, node: &Node) -> Result<InitialWindow, Problem> {
        if node.str() == Some("rfc3390") {
            return Ok(InitialWindow::Rfc3390);
        }
        match Packets(1, 65_535).read(node) {
            Ok(segments) => Ok(InitialWindow::Segments(segments as u32)),
            Err(mut problem) => {
                problem.expected = "\"rfc3390\" or a number of segments from \"1p\" to \"65535p\"".to_owned();
                Err(problem)
            }
        }
    }

    fn show(&self, held: &InitialWindow) -> Value {
        match held {
            InitialWindow::Rfc3390 => "rfc3390".into(),
            InitialWindow::Segments(segments) => Value::String(format!("{segments}p")),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Name(vec!["rfc3390"]), Domain::Packets(1, 65_535)])
    }
}

/// `true` and `false` for classic ECN and none, or another kind of feedback.
struct Feedbacks;

impl Kind for Feedbacks {
    type Held = EcnFeedback;

    fn read(&self, node: &Node) -> Result<EcnFeedback, Problem> {
        let names = OneOf { what: "feedback of ECN", names: &["dctcp", "accecn"] };
        match (&node.value, names.read(node)) {
            (Value::Boolean(false), _) => Ok(EcnFeedback::None),
            (Value::Boolean(true), _) => Ok(EcnFeedback::Classic),
            (_, Ok("dctcp")) => Ok(EcnFeedback::Dctcp),
            (_, Ok(_)) => Ok(EcnFeedback::Accurate),
            (_, Err(problem)) => {
                Err(Problem { expected: format!("`true`, `false` or {}", problem.expected), ..problem })
            }
        }
    }

    fn show(&self, held: &EcnFeedback) -> Value {
        match held {
            EcnFeedback::None => false.into(),
            EcnFeedback::Classic => true.into(),
            EcnFeedback::Dctcp => "dctcp".into(),
            EcnFeedback::Accurate => "accecn".into(),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Flag, Domain::Name(vec!["dctcp", "accecn"])])
    }
}

fn stock_knobs(fields: &mut Fields<'_>, stock: &mut SmoltcpSpec) {
    const CC: OneOf = OneOf { what: "congestion control of smoltcp", names: &["none", "reno", "cubic"] };
    let name = match stock.cc {
        SmoltcpCc::None => "none",
        SmoltcpCc::Reno => "reno",
        SmoltcpCc::Cubic => "cubic",
    };
    stock.cc = match fields.or(keys::CC, name, CC) {
        "reno" => SmoltcpCc::Reno,
        "cubic" => SmoltcpCc::Cubic,
        _ => SmoltcpCc::None,
    };
    stock.mtu = fields.or(keys::MTU, stock.mtu.into(), Bytes(MIN_STOCK_MTU, 65_535)) as u16;
    stock.send_buffer = fields.or(keys::SEND_BUFFER, stock.send_buffer, Bytes(1, MAX_STOCK_BUFFER));
    stock.receive_buffer = fields.or(keys::RECEIVE_BUFFER, stock.receive_buffer, Bytes(1, MAX_STOCK_BUFFER));
    stock.ack_delay =
        fields.or(("ack_delay", "delay of acknowledgments of a stock socket"), stock.ack_delay, OrOff(Time::Positive));
    stock.nagle = fields.or(keys::NAGLE, stock.nagle, Flag);
    stock.timestamps = fields.or(keys::TIMESTAMPS, stock.timestamps, Flag);
}
