//! Packets of a script: what arrives, what is expected, and what is left over.

use ackclock_packet::{FastOpen, Flags};
use ackclock_units::{Ecn, Time};

use super::{MOST_PACKETS, Run, Stop, TimeWindow, Unexpected};
use crate::ast::{EcnSpec, IcmpSpec, IpInfo, OptionSpec, Options, TcpSpec};
use crate::compare::{self, Strictness};
use crate::icmp::{self, IcmpMistake};
use crate::mptcp;
use crate::numbers::{ACC_ECN_0, ACC_ECN_1, MappingError};
use crate::report::{Failure, Seconds, TraceKind};
use crate::sockets::Sent;

impl Run<'_> {
    /// Asks the sockets for what they have to send.
    pub(super) fn collect(&mut self, line: u32) -> Result<(), Stop> {
        self.kernel.flush(self.now);
        self.kernel.epoll_note();
        while let Some(packet) = self.kernel.sent.pop_front() {
            self.packets += 1;
            let Some(index) = self.sender_of(&packet) else { continue };
            self.connections[index].note_sent(&packet.segment);
            self.names.note_sent(&packet.segment);
            let text = self.text_of(index, &self.spec_of(index, &packet));
            let trace = self.trace.len();
            self.push_trace(None, TraceKind::Outbound, text);
            self.outgoing.push_back(Unexpected { time: self.now, connection: index, packet, trace });
        }
        if self.kernel.runaway || self.packets > MOST_PACKETS {
            return Err(self.failed(line, format!("more than {MOST_PACKETS} packets were sent")));
        }
        Ok(())
    }

    /// A sent packet with the script's numbers, except for timestamps.
    fn spec_of(&self, index: usize, packet: &Sent) -> TcpSpec {
        let ip = IpInfo {
            ecn: Some(EcnSpec::Is(packet.ecn)),
            tos: Some(packet.tos | packet.ecn.bits()),
            ttl: Some(packet.ttl),
            flow_label: None,
        };
        self.connections[index].to_script(&packet.segment, ip, self.kernel.layout())
    }

    /// A sent packet for people: in the notation of scripts, without its sign, of the IP header an
    /// ECN codepoint alone.
    fn text_of(&self, index: usize, spec: &TcpSpec) -> String {
        let mut spec = spec.clone();
        let ecn = spec.ip.ecn.filter(|ecn| *ecn != EcnSpec::Is(Ecn::NotEct));
        spec.ip = IpInfo { ecn, ..IpInfo::default() };
        if let Options::List(list) = &mut spec.options {
            for option in list {
                if let OptionSpec::Timestamps { value, .. } = option {
                    *value = self.connections[index].script_timestamp(*value);
                }
            }
        }
        self.names.describe(&mut spec, &self.connections[index].subflow);
        let text = spec.to_string();
        text.strip_prefix("> ").unwrap_or(&text).to_owned()
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, line: u32, spec: &TcpSpec) -> Result<(), Stop> {
        let spec = &counter_as_flags(spec);
        if let Some(what) = mptcp::unsupported(spec) {
            return Err(Stop::Unsupported(line, what.to_owned()));
        }
        let index = self.connection_for(line, spec)?;
        let scaled = self.kernel.host.ts_ecr_scaled;
        let connection = &mut self.connections[index];
        connection.note_inbound(spec);
        let mut segment = match connection.to_wire(spec, scaled) {
            Ok(segment) => segment,
            Err(MappingError::Unsupported(what)) => return Err(Stop::Unsupported(line, what)),
            Err(MappingError::UnknownEcho(echo)) => {
                let reason = format!("TS ecr {echo} echoes no TS val that was expected before");
                return Err(self.failed(line, reason));
            }
        };
        let connection = &mut self.connections[index];
        let ends = connection.subflow.ends.unwrap_or(self.kernel.host.ends());
        if let Err(reason) = self.names.add_options(spec, &mut connection.subflow, &mut segment) {
            return Err(self.failed(line, reason));
        }
        let ecn = match (spec.ip.ecn, spec.ip.tos) {
            (Some(EcnSpec::Is(ecn)), _) => ecn,
            (Some(EcnSpec::Ect01), _) => Ecn::Ect0,
            (None, Some(tos)) => Ecn::from_bits(tos),
            (None, None) => Ecn::NotEct,
        };
        let text = spec.to_string();
        let text = text.strip_prefix("< ").unwrap_or(&text).to_owned();
        self.push_trace(Some(line), TraceKind::Inbound, text);
        self.kernel.input(self.now, ends, &segment, ecn);
        self.settle(line)
    }

    /// An ICMP message arrives, about the connection under test.
    pub(super) fn arrive_icmp(&mut self, line: u32, spec: &IcmpSpec) -> Result<(), Stop> {
        let Some(index) = self.under_test else {
            return Err(self.failed(line, "there is no socket that this message could be about".to_owned()));
        };
        let connection = &self.connections[index];
        let (ports, ends) = (connection.ports, connection.subflow.ends.unwrap_or(self.kernel.host.ends()));
        let error = match icmp::error_of(spec, self.kernel.host.ipv6, connection.first_number()) {
            Ok(error) => error,
            Err(IcmpMistake::Invalid(reason)) => return Err(Stop::Invalid(line, reason)),
            Err(IcmpMistake::Unsupported(what)) => return Err(Stop::Unsupported(line, what)),
        };
        self.push_trace(Some(line), TraceKind::Inbound, spec.to_string());
        self.kernel.icmp(self.now, ends, ports, &error);
        self.settle(line)
    }

    /// Waits for the packet `expected`, which may be several segments.
    pub(super) fn expect(&mut self, line: u32, window: TimeWindow, expected: &TcpSpec) -> Result<(), Stop> {
        let expected = &counter_as_flags(expected);
        if expected.ip.flow_label.is_some_and(|label| label != 0) {
            return Err(Stop::Unsupported(line, "IPv6 flow labels".to_owned()));
        }
        if let Some(option) = unknown_option(expected) {
            return Err(Stop::Unsupported(line, format!("the option `{option}`")));
        }
        if let Some(what) = mptcp::unsupported(expected) {
            return Err(Stop::Unsupported(line, what.to_owned()));
        }
        let index = if mptcp::is_join(expected) {
            self.await_subflow(line, window, expected)?
        } else {
            self.connection_for(line, expected)?
        };
        self.connections[index].note_expected(expected);
        // The first segment and the last one so far.
        let mut joined: Option<(TcpSpec, TcpSpec)> = None;
        let mut payload = 0u32;
        loop {
            let sent = match (self.next_packet(line, window, expected, index), &joined) {
                (Ok(sent), _) => sent,
                (Err(Stop::Failed(_)), Some((first, last))) => {
                    let actual = compare::joined(first, last.clone(), payload);
                    let reason = format!("length: expected {}, got {payload}", expected.payload);
                    return Err(self.mismatch(line, index, reason, expected, &actual));
                }
                (Err(stop), _) => return Err(stop),
            };
            self.trace[sent.trace].line = Some(line);
            let spec = self.spec_of(index, &sent.packet);
            payload = payload.saturating_add(spec.payload);
            let (first, is_short) = match &joined {
                None => (spec.clone(), spec.payload == 0),
                Some((first, before)) => {
                    if let Some(reason) = compare::continues(before, &spec) {
                        return Err(self.mismatch(line, index, reason, expected, &spec));
                    }
                    // Only the last segment may be shorter than the others.
                    (first.clone(), spec.payload < before.payload)
                }
            };
            if payload >= expected.payload || is_short || self.kernel.host.strict_segments {
                let actual = compare::joined(&first, spec, payload);
                self.compare(line, index, expected, &actual)?;
                // Its timestamp has a name in the script from now on.
                let spec = self.spec_of(index, &sent.packet);
                self.trace[sent.trace].text = self.text_of(index, &spec);
                return self.check_time(line, index, window, sent.time, expected, &actual);
            }
            self.check_time(line, index, window, sent.time, expected, &spec)?;
            joined = Some((first, spec));
        }
    }

    /// The next packet of the connection, once it is sent.
    fn next_packet(
        &mut self,
        line: u32,
        window: TimeWindow,
        expected: &TcpSpec,
        index: usize,
    ) -> Result<Unexpected, Stop> {
        let limit = self.limit(window);
        loop {
            // Packets of other connections are not looked at, unless they are subflows of one of
            // MPTCP, of which nothing gets lost. Their packets have no order among them.
            self.outgoing.retain(|sent| sent.connection == index || sent.packet.ends.is_some());
            let at = self.outgoing.iter().position(|sent| sent.connection == index);
            if let Some(sent) = at.and_then(|at| self.outgoing.remove(at)) {
                self.now = self.now.max(sent.time);
                return Ok(sent);
            }
            let next = self.next_deadline();
            if next > limit {
                let reason = if window.any {
                    "no packet was sent, and no timer runs that could send one".to_owned()
                } else {
                    format!("no packet was sent until {}", Seconds(limit))
                };
                self.now = if window.any { self.now } else { self.now.max(limit) };
                return Err(Stop::Failed(Box::new(Failure {
                    line,
                    time: self.now,
                    reason,
                    expected: Some(self.expected_text(expected)),
                    actual: None,
                })));
            }
            self.expire(line, next)?;
        }
    }

    fn compare(&mut self, line: u32, index: usize, expected: &TcpSpec, actual: &TcpSpec) -> Result<(), Stop> {
        let host = &self.kernel.host;
        let strictness = Strictness {
            ignore_psh: host.ignore_psh,
            ts_tick: host.ts_tick,
            ts_echo: host.check_ts_ecr,
            tolerance: self.tolerance(self.now, Time::ZERO),
        };
        let resolved = self.names.resolve(expected, actual, &mut self.connections[index].subflow);
        let mut named = actual.clone();
        self.names.describe(&mut named, &self.connections[index].subflow);
        match compare::difference(&resolved, &named, &mut self.connections[index], strictness) {
            None => Ok(()),
            Some(reason) => Err(self.mismatch(line, index, reason, expected, actual)),
        }
    }

    fn check_time(
        &self,
        line: u32,
        index: usize,
        window: TimeWindow,
        sent_at: Time,
        expected: &TcpSpec,
        actual: &TcpSpec,
    ) -> Result<(), Stop> {
        let tolerance = self.tolerance(window.to, self.last);
        if window.any || sent_at + tolerance >= window.from && sent_at <= window.to + tolerance {
            return Ok(());
        }
        let at = Seconds(sent_at);
        let reason = if window.from == window.to {
            format!("time: expected at {}, sent at {at}", Seconds(window.from))
        } else {
            format!("time: expected from {} to {}, sent at {at}", Seconds(window.from), Seconds(window.to))
        };
        Err(self.mismatch(line, index, reason, expected, actual))
    }

    fn expected_text(&self, expected: &TcpSpec) -> String {
        let text = expected.to_string();
        text.strip_prefix("> ").unwrap_or(&text).to_owned()
    }

    fn mismatch(&self, line: u32, index: usize, reason: String, expected: &TcpSpec, actual: &TcpSpec) -> Stop {
        Stop::Failed(Box::new(Failure {
            line,
            time: self.now,
            reason,
            expected: Some(self.expected_text(expected)),
            actual: Some(self.text_of(index, actual)),
        }))
    }

    /// A packet of the connection under test that was sent up to now, and that nobody expected.
    pub(super) fn check_end(&mut self, line: u32) -> Result<(), Stop> {
        if !self.kernel.host.check_end {
            return Ok(());
        }
        let is_left = |sent: &&Unexpected| self.is_tested(sent) && sent.time <= self.now;
        let left = self.outgoing.iter().find(is_left);
        let Some(sent) = left else { return Ok(()) };
        let actual = self.text_of(sent.connection, &self.spec_of(sent.connection, &sent.packet));
        Err(Stop::Failed(Box::new(Failure {
            line,
            time: self.now,
            reason: format!("a packet that was sent at {} was never expected", Seconds(sent.time)),
            expected: None,
            actual: Some(actual),
        })))
    }
}

/// The AccECN counter as the flags that it is made of.
fn counter_as_flags(spec: &TcpSpec) -> TcpSpec {
    TcpSpec { flags: spec.flags | Flags::from_ace(spec.ace.unwrap_or(0)), ace: None, ..spec.clone() }
}

/// The first option that the endpoint does not implement.
fn unknown_option(spec: &TcpSpec) -> Option<&str> {
    let Options::List(list) = &spec.options else { return None };
    list.iter().find_map(|option| match option {
        OptionSpec::Other { kind: ACC_ECN_0 | ACC_ECN_1, .. } => None,
        // Kind 34, and 254 with its identifier.
        OptionSpec::Other { kind: 34, .. } => None,
        OptionSpec::Other { kind: 254, data, .. } if data.starts_with(&FastOpen::EXPERIMENT) => None,
        OptionSpec::Other { name, .. } => Some(name.as_str()),
        _ => None,
    })
}
