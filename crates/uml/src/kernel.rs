//! A kernel as a host: it boots before the run, in a time of its own, and then does the job of its
//! host in the run's time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use ackclock_stack::{OwnStack, RecoveryEvent, RecoveryMetrics, Stack, StackHost, TcpSample};
use ackclock_units::outside::Failure;
use ackclock_units::{Random, Span, Time};

use crate::guest::{Boot, Guest};
use crate::image::{self, Image};

const SECOND: u64 = 1_000_000_000;

/// Time of its own in which a kernel must have booted.
const BOOT: u64 = 100 * SECOND;

/// The longest time for which a guest goes ahead by itself: its clock is signed.
const AHEAD: Span = Span::from_secs(1);

/// The most bytes of a message to the first process, which every frame holds.
const MESSAGE: usize = 1200;

/// Applications of the first process.
const APPS: [&str; 5] = ["sink", "send", "request", "serve", "command"];

/// The stack `kernel`.
pub(crate) fn stack() -> OwnStack {
    OwnStack::new("kernel", |host, values, random| Box::new(KernelHost::new(host, values, random)))
        .text("image", "", |_| None)
        .text("app", "sink", |app| {
            let expected = "\"sink\", which receives; \"send\"; \"request\", a client; \"serve\"; or \"command\"";
            (!APPS.contains(&app)).then(|| expected.to_owned())
        })
        .text("cc", "cubic", |name| {
            (!is_word(name)).then(|| "a congestion controller of the kernel, such as \"cubic\"".to_owned())
        })
        .text("sysctl", "", |text| {
            let expected =
                "settings separated by `;`, such as \"net.ipv4.tcp_ecn=1; net.ipv4.tcp_rmem=4096 8192 16384\"";
            match settings(text) {
                None => Some(expected.to_owned()),
                // The interface is up before.
                Some(all) if all.iter().any(|(name, _)| *name == "net.core.default_qdisc") => {
                    Some("`qdisc = \"...\"`, which sets the queue of the guest's interface".to_owned())
                }
                Some(_) => None,
            }
        })
        .text("command", "", |text| {
            (text.len() > MESSAGE - 100 || text.contains('\n'))
                .then(|| "a line for `/bin/sh`, of at most 1,100 bytes".to_owned())
        })
        .text("root", "", |path| {
            let is_path = path.is_empty() || (path.starts_with('/') && path.len() < 500 && !path.contains([',', '\n']));
            (!is_path).then(|| "the absolute path of a directory, without commas".to_owned())
        })
        .text("qdisc", "", |name| {
            (!name.is_empty() && !is_word(name)).then(|| "a queue discipline of the kernel, such as \"fq\"".to_owned())
        })
        .text("append", "", |text| {
            text.contains('\n').then(|| "arguments of the kernel, separated by spaces".to_owned())
        })
        .text("samples", "", |_| None)
        .parameter("bytes", 0.0, 0.0..=1e15)
        .parameter("start_s", 0.0, 0.0..=1e6)
        .parameter("duration_s", 0.0, 0.0..=1e6)
        .parameter("port", 5001.0, 1.0..=65_535.0)
        .parameter("source_port", 5001.0, 0.0..=65_535.0)
        .parameter("buffer", 0.0, 0.0..=1e9)
        .parameter("sample_ms", 50.0, 1.0..=1e6)
        .parameter("gso_max_segs", 0.0, 0.0..=65_535.0)
        .parameter("stop_s", 0.0, 0.0..=1e6)
        .parameter("ecn", 0.0, 0.0..=1.0)
        .parameter("segmentation_offload", 1.0, 0.0..=1.0)
        .parameter("request_bytes", 100.0, 1.0..=1e15)
        .parameter("response_bytes", 10_000.0, 1.0..=1e15)
        .parameter("think_s", 0.0, 0.0..=1e6)
        .parameter("requests", 0.0, 0.0..=1e15)
        .parameter("connections", 1.0, 1.0..=256.0)
        .parameter("memory_mb", 64.0, 32.0..=4096.0)
        .parameter("patience_s", 60.0, 1.0..=3600.0)
        .only_with(&["bytes", "connections"], "app", &["send"])
        .only_with(&["start_s", "stop_s", "duration_s", "source_port", "samples"], "app", &["send", "request"])
        .only_with(&["cc", "port", "buffer"], "app", &["send", "sink", "request", "serve"])
        .only_with(&["sample_ms"], "app", &["send", "sink", "request"])
        .only_with(&["request_bytes", "response_bytes"], "app", &["request", "serve"])
        .only_with(&["think_s", "requests"], "app", &["request"])
        .only_with(&["command", "root"], "app", &["command"])
        .requires(image::lack)
        .carries_flows()
        .virtual_only()
        .observable()
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() < 16
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The settings of a `sysctl`; `None` if one is malformed.
fn settings(text: &str) -> Option<Vec<(&str, &str)>> {
    let setting = |text: &'_ str| {
        let (name, value) = text.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_right = !name.is_empty() && name.len() < 200 && name.bytes().all(is_name) && !name.contains("..");
        (is_right && !value.is_empty() && value.len() < 200 && !value.contains('\n')).then_some(())
    };
    let parts = || text.split(';').map(str::trim).filter(|part| !part.is_empty());
    if parts().any(|part| setting(part).is_none()) {
        return None;
    }
    Some(parts().filter_map(|part| part.split_once('=')).map(|(name, value)| (name.trim(), value.trim())).collect())
}

/// A host that is a kernel.
struct KernelHost {
    /// `None` if it could not boot.
    guest: Option<Guest>,
    failure: Option<Failure>,
    /// Time 0 of the run on the guest's clock.
    origin: u64,
    quiet_until: Time,
    start: Time,
    report: Report,
}

/// What the first process has reported.
#[derive(Default)]
struct Report {
    samples: Option<Samples>,
    /// Observations that nobody has seen yet, if they are kept.
    observed: Option<Vec<(Time, RecoveryEvent)>>,
    /// Smoothed round-trip times, in us.
    rtts: Vec<u32>,
    senders: BTreeMap<u64, Sender>,
    received: Option<(u64, Time, Time)>,
    completed: Option<Span>,
    /// Times from requests to the ends of their responses.
    responses: Vec<Span>,
    exited: Option<i32>,
}

/// The last report of a connection that sends.
struct Sender {
    min_rtt_us: u32,
    cwnd: u64,
    retransmitted: u64,
    acked: u64,
    at: Time,
}

impl KernelHost {
    fn new(host: &StackHost, values: &[f64], random: Random) -> KernelHost {
        let mut kernel = KernelHost {
            guest: None,
            failure: None,
            origin: 0,
            quiet_until: Time::ZERO,
            start: values.get(1).map_or(Time::ZERO, |start_s| Time::from_nanos((start_s * 1e9) as u64)),
            report: Report::default(),
        };
        if let Err(what) = kernel.boot(host, values, random) {
            kernel.failure = Some(Failure::new(Time::ZERO, what));
        }
        kernel
    }

    /// Boots the kernel and gives it its job, in a time of its own.
    fn boot(&mut self, host: &StackHost, values: &[f64], mut random: Random) -> Result<(), String> {
        let job = job(host, values, &mut random)?;
        let ([image, .., append, samples], [.., memory_mb, patience]) = (host.texts.as_slice(), values) else {
            return Err("values are missing".to_owned());
        };
        let Image { kernel, initrd } = Image::find(image)?;
        if !samples.is_empty() {
            self.report.samples = Some(Samples::create(samples)?);
        }
        let mut guest = Guest::start(&Boot {
            kernel,
            initrd,
            append: append.clone(),
            memory_mb: *memory_mb as u64,
            mtu: host.mtu,
            patience: Duration::from_secs_f64(*patience),
        })?;
        let mut is_ready = false;
        let mut at = 0;
        while !is_ready {
            guest.drive(at, at)?;
            while let Some(said) = guest.said() {
                match said.split_once(' ') {
                    None if said == "hello" => job.iter().for_each(|message| guest.tell(message)),
                    None if said == "ready" => is_ready = true,
                    Some(("failed", what)) if what.starts_with("job ") => {
                        let expected = "an image of this version, by `crates/uml/build-image DIR`";
                        return Err(format!("its first process does not know the {what}: expected {expected}"));
                    }
                    Some(("failed", what)) => return Err(format!("the guest cannot do its job: {what}")),
                    _ => return Err(format!("its first process says `{said}`: expected that of `build-image`")),
                }
            }
            // Packets before the run are for nobody.
            guest.packets().clear();
            // What was told is taken at once.
            at = if guest.has_waiting() { at } else { guest.requested().unwrap_or(u64::MAX).max(at) };
            if at > BOOT && !is_ready {
                return Err(format!("the guest does not boot{}", guest.console()));
            }
        }
        let origin = (guest.clock() / SECOND + 1) * SECOND;
        while let Some(at) = guest.requested().filter(|&at| at < origin) {
            guest.drive(at, at)?;
        }
        guest.packets().clear();
        guest.tell("go\n");
        self.origin = origin;
        self.guest = Some(guest);
        Ok(())
    }

    /// The guest does what is due, and its reports are read.
    fn drive(&mut self, now: Time) {
        let Some(guest) = &mut self.guest else { return };
        let until = self.quiet_until.min(now + AHEAD).max(now);
        // From its first packet on, the network may answer.
        self.quiet_until = now;
        let driven = guest.drive(self.origin + now.as_nanos(), self.origin + until.as_nanos());
        let mut failed = driven.err();
        while let Some(said) = guest.said() {
            if let Err(what) = self.report.read(&said, self.start) {
                failed.get_or_insert(format!("{what}{}", guest.console()));
            }
        }
        if let Some(what) = failed {
            self.failure.get_or_insert_with(|| Failure::new(now, what));
        }
    }
}

impl Stack for KernelHost {
    fn input(&mut self, _now: Time, packet: &[u8]) {
        if let Some(guest) = &mut self.guest {
            guest.deliver(packet);
        }
    }

    fn output(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        if self.failure.is_some() {
            return None;
        }
        self.drive(now);
        let guest = self.guest.as_mut()?;
        let at = self.origin + now.as_nanos();
        let sent = if guest.packets().front()?.at <= at { guest.packets().pop_front()? } else { return None };
        let len = sent.packet().len();
        match buffer.get_mut(..len) {
            Some(room) => room.copy_from_slice(sent.packet()),
            None => {
                let what = format!("the guest sends a packet of {len} bytes, of {} at most", buffer.len());
                self.failure = Some(Failure::new(now, what));
                return None;
            }
        }
        guest.recycle(sent);
        Some(len)
    }

    fn quiet_until(&mut self, until: Time) {
        self.quiet_until = until;
    }

    fn next_deadline(&self) -> Time {
        let Some(guest) = &self.guest else { return Time::NEVER };
        let next = guest.requested().into_iter().chain(guest.next_packet()).min();
        next.map_or(Time::NEVER, |next| Time::from_nanos(next.saturating_sub(self.origin)))
    }

    fn on_deadline(&mut self, _now: Time) {}

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn results(&self, _now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.report.results(self.start, see);
    }

    fn observe(&mut self) {
        self.report.observed.get_or_insert_default();
    }

    fn observed(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        let observed = self.report.observed.iter_mut().flat_map(|events| events.drain(..));
        observed.for_each(|(at, event)| see(at, event));
    }
}

/// Linux's states of congestion control (`enum tcp_ca_state`).
const CA_STATES: [&str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];

/// Numbers of a report on a sender, before that of its connection.
const NUMBERS: usize = 19;

/// The threshold before there is one (`TCP_INFINITE_SSTHRESH`).
const INFINITE: u64 = 0x7fff_ffff;

/// The observations in a report with all its numbers, of which a log has those of the first
/// connection.
fn events(numbers: &[u64]) -> Option<impl Iterator<Item = RecoveryEvent>> {
    let &[_, _, state, cwnd, ssthresh, srtt, rttvar, min_rtt, unacked, _, acked, _, rto, pacing, ref more @ ..] =
        numbers
    else {
        return None;
    };
    let &[mss, sacked, lost, retransmitted, reordering, ref connection @ ..] = more else { return None };
    let connection = connection.first().copied().unwrap_or(0);
    let ca_state = CA_STATES.get(usize::try_from(state).ok()?)?;
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let us = |number: u64| Span::from_micros(number);
    let bytes = |segments: u64| segments.saturating_mul(mss);
    let (srtt, min_rtt) = (Some(us(srtt)).filter(|_| srtt > 0), Some(us(min_rtt)).filter(|_| srtt > 0));
    let ssthresh = (ssthresh < INFINITE).then(|| bytes(ssthresh));
    // `tcp_packets_in_flight`.
    let in_flight = bytes((unacked + retransmitted).saturating_sub(sacked + lost));
    let sample = TcpSample {
        connection: narrow(connection),
        acked,
        sacked: narrow(sacked),
        lost: narrow(lost),
        retransmitted: narrow(retransmitted),
        reordering: narrow(reordering),
        ca_state,
        cwnd: bytes(cwnd),
        ssthresh,
        in_flight,
        srtt,
        rto: us(rto),
    };
    let metrics = RecoveryMetrics {
        min_rtt,
        smoothed_rtt: srtt,
        latest_rtt: None,
        rtt_variance: srtt.map(|_| us(rttvar)),
        pto_count: None,
        congestion_window: Some(bytes(cwnd)),
        bytes_in_flight: Some(in_flight),
        ssthresh,
        // Bytes/s; without pacing the greatest number.
        pacing_rate: (pacing < u64::MAX).then(|| pacing.saturating_mul(8)),
    };
    let events = [RecoveryEvent::State(ca_state), RecoveryEvent::Metrics(metrics), RecoveryEvent::Sampled(sample)];
    Some(events.into_iter().skip(if connection > 0 { 2 } else { 0 }))
}

/// The job of a guest, as messages to its first process.
fn job(host: &StackHost, values: &[f64], random: &mut Random) -> Result<Vec<String>, String> {
    let [_, app, cc, sysctl, command, root, qdisc, ..] = host.texts.as_slice() else {
        return Err("texts are missing".to_owned());
    };
    let mut lines = Vec::new();
    let mut seed = "seed ".to_owned();
    for _ in 0..4 {
        // Writing to a string does not fail.
        let _ = write!(seed, "{:016x}", random.bits());
    }
    lines.push(seed);
    lines.push(format!("mtu {}", host.mtu));
    lines.extend(host.addresses.iter().map(|address| format!("address {address}")));
    lines.extend(settings(sysctl).into_iter().flatten().map(|(name, value)| format!("sysctl {name} {value}")));
    let [bytes, start, duration, port, source_port, buffer, sample, gso_segments, ref more @ ..] = *values else {
        return Err("parameters are missing".to_owned());
    };
    let [stop, ecn, offload, request, response, think, requests, connections, ..] = *more else {
        return Err("parameters are missing".to_owned());
    };
    if source_port + connections - 1.0 > f64::from(u16::MAX) {
        return Err(format!(
            "the ports of {connections} connections from `source_port = {source_port}` on exceed 65535"
        ));
    }
    if ecn > 0.0 {
        lines.push("sysctl net.ipv4.tcp_ecn 1".to_owned());
    }
    let peer = host.neighbours.first().and_then(|peer| {
        let is_four = host.addresses.iter().any(|address| address.is_ipv4());
        peer.addresses.iter().find(|address| address.is_ipv4() == is_four).or(peer.addresses.first())
    });
    match (app.as_str(), peer) {
        ("send" | "request", None) => {
            return Err(format!("`app = \"{app}\"` without a path to a host that receives"));
        }
        ("command", _) if command.is_empty() || root.is_empty() => {
            return Err("`app = \"command\"` needs a `command`, and `root`, a directory with `/bin/sh`".to_owned());
        }
        _ => {}
    }
    lines.extend(peer.map(|peer| format!("peer {peer}")));
    // Linux calls it `reno`.
    let cc = if cc == "newreno" { "reno" } else { cc };
    for (key, value) in [("app", app.as_str()), ("cc", cc), ("root", root), ("command", command), ("qdisc", qdisc)] {
        if !value.is_empty() {
            lines.push(format!("{key} {value}"));
        }
    }
    let numbers = [
        ("bytes", bytes),
        ("start_ns", start * 1e9),
        ("duration_ns", duration * 1e9),
        ("port", port),
        ("source_port", source_port),
        ("buffer", buffer),
        ("sample_ms", sample),
    ];
    let mut number = |(key, value): (&str, f64)| lines.push(format!("{key} {}", value.round() as u64));
    numbers.into_iter().for_each(&mut number);
    // An image without these needs none.
    if ["request", "serve"].contains(&app.as_str()) {
        let of_requests =
            [("request", request), ("response", response), ("think_ns", think * 1e9), ("requests", requests)];
        of_requests.into_iter().for_each(&mut number);
    }
    let whole = if offload <= 0.0 && gso_segments <= 0.0 { 1.0 } else { gso_segments };
    let connections = if connections > 1.0 { connections } else { 0.0 };
    let further = [("stop_ns", stop * 1e9), ("gso_max_segs", whole), ("connections", connections)];
    further.into_iter().filter(|&(_, value)| value > 0.0).for_each(number);
    lines.push("end".to_owned());
    let mut messages = vec![String::new()];
    for line in lines {
        let last = messages.len() - 1;
        if messages[last].len() + line.len() + 1 > MESSAGE {
            messages.push(String::new());
        }
        let last = messages.len() - 1;
        messages[last].push_str(&line);
        messages[last].push('\n');
    }
    Ok(messages)
}

/// Columns of samples: `TCP_INFO` of the kernel.
const COLUMNS: &str = "time_s,state,ca_state,cwnd_segments,ssthresh_segments,srtt_us,rttvar_us,min_rtt_us,unacked_segments,\
                       retransmitted_segments,acked_bytes,delivered_ce_segments,rto_us,pacing_rate_Bps,mss_bytes,sacked_segments,\
                       lost_segments,retrans_out_segments,reordering_segments,connection";

/// The file of a sender's samples.
struct Samples {
    path: String,
    file: File,
}

impl Samples {
    /// A new file: runs of a sweep do not write over each other's.
    fn create(path: &str) -> Result<Samples, String> {
        let file = File::create_new(path).map_err(|error| format!("cannot write samples to {path}: {error}"))?;
        let mut samples = Samples { path: path.to_owned(), file };
        samples.line(&format!("{COLUMNS}\n"))?;
        Ok(samples)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        self.file.write_all(line.as_bytes()).map_err(|error| format!("cannot write samples to {}: {error}", self.path))
    }
}

impl Report {
    /// Something that the first process says; an error ends the run.
    fn read(&mut self, said: &str, start: Time) -> Result<(), String> {
        let (kind, rest) = said.split_once(' ').unwrap_or((said, ""));
        let malformed = || format!("its first process says `{said}`: expected that of `build-image`");
        let numbers: Option<Vec<u64>> = rest.split(' ').map(|word| word.parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            ("began", _) => {}
            ("failed", _) => return Err(format!("the guest cannot do its job: {rest}")),
            ("info", Some(&[at, _, _, cwnd, _, srtt, _, min_rtt, _, retransmitted, acked, ..])) => {
                let at = Time::from_nanos(at);
                let connection = numbers.as_deref().and_then(|numbers| numbers.get(NUMBERS)).copied();
                if let Some(samples) = &mut self.samples {
                    let columns = rest.split_once(' ').map_or("", |(_, columns)| columns).replace(' ', ",");
                    // The first connection says no number.
                    let first = if connection.is_some() { "" } else { ",0" };
                    samples.line(&format!("{:.6},{columns}{first}\n", at.since(Time::ZERO).as_secs_f64()))?;
                }
                if let (Some(observed), Some(numbers)) = (&mut self.observed, numbers.as_deref())
                    && let Some(events) = events(numbers)
                {
                    observed.extend(events.map(|event| (at, event)));
                }
                let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
                if srtt > 0 {
                    self.rtts.push(narrow(srtt));
                }
                let sender = Sender { min_rtt_us: narrow(min_rtt), cwnd, retransmitted, acked, at: at.max(start) };
                self.senders.insert(connection.unwrap_or(0), sender);
            }
            ("got", Some(&[bytes, first, last])) => {
                self.received = Some((bytes, Time::from_nanos(first), Time::from_nanos(last.max(first))));
            }
            ("answered", Some(&[_, after])) => self.responses.push(Span::from_nanos(after)),
            ("completed", Some(&[after])) => self.completed = Some(Span::from_nanos(after)),
            ("exited", Some(&[status])) => self.exited = i32::try_from(status).ok(),
            _ => return Err(malformed()),
        }
        Ok(())
    }

    fn results(&self, start: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let rate = |bytes: u64, lasted: Span| {
            let lasted = lasted.as_secs_f64();
            if lasted > 0.0 { 8.0 * bytes as f64 / lasted } else { 0.0 }
        };
        if let Some((bytes, first, last)) = self.received {
            see("received_bytes", bytes as f64);
            see("goodput_bps", rate(bytes, last.since(first)));
        }
        let senders = || self.senders.values();
        if let (Some(at), Some(min_rtt)) = (senders().map(|of| of.at).max(), senders().map(|of| of.min_rtt_us).min()) {
            let bytes = senders().map(|of| of.acked).sum();
            see("acked_bytes", bytes as f64);
            see("acked_bps", rate(bytes, at.since(start)));
            see("retransmitted_segments", senders().map(|of| of.retransmitted).sum::<u64>() as f64);
            see("cwnd_segments", senders().map(|of| of.cwnd).sum::<u64>() as f64);
            see("min_rtt_ms", f64::from(min_rtt) / 1e3);
        }
        let mut rtts = self.rtts.clone();
        rtts.sort_unstable();
        if let Some(median) = rtts.get(rtts.len() / 2) {
            see("srtt_p50_ms", f64::from(*median) / 1e3);
        }
        let mut responses = self.responses.clone();
        responses.sort_unstable();
        let quantile = |percent: usize| responses.get(responses.len().saturating_mul(percent) / 100);
        if let (Some(median), Some(high)) = (quantile(50), quantile(95)) {
            see("responses", responses.len() as f64);
            see("response_p50_ms", median.as_secs_f64() * 1e3);
            see("response_p95_ms", high.as_secs_f64() * 1e3);
        }
        if let Some(after) = self.completed {
            see("completed_s", after.as_secs_f64());
        }
        if let Some(status) = self.exited {
            see("exit_status", f64::from(status));
        }
    }
}
