//! Replaying a capture in virtual time.

use std::path::Path;

use ackclock_sim::Recorders;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::{ChangeSummary, LiveHost, LiveSummary};
use ackclock_units::{Span, Time};

use crate::capture::{CaptureDirection, CaptureReader, Captured, Changes, fingerprint};
use crate::devices;
use crate::router::{Discard, Header, set_checksum};
use crate::stacks::Stacks;
use crate::{ChangeReader, Engine, LiveError, Outcome};
use check::{ComparedRun, OutputCheck};

mod check;
#[cfg(test)]
mod tests;

/// Virtual time between two calls of the recorders.
const STRIDE: Span = Span::from_millis(100);

/// Runs `spec` with the arrivals of a capture: packets that hosts sent enter at their time; packets
/// to hosts are counted and discarded. The replay ends no later than the recorded run did.
///
/// Hosts with stacks take part as in the recorded run, and the packets that they sent in it are not
/// needed.
///
/// A capture of the same scenario also contains the packets to hosts, and those of stacks. If the
/// replay sends anything else or at another time, it reports this and is not valid.
///
/// # Errors
/// The file cannot be opened, or is no capture. An error further into the file ends the run early.
pub(crate) fn run(
    spec: &RunSpec,
    recorders: Recorders<'_>,
    capture: &Path,
    changes: Option<&ChangeReader>,
) -> Result<Outcome, LiveError> {
    let nodes = spec.live.as_deref().map_or(&[][..], |live| &live.nodes);
    let reader = CaptureReader::open(capture, Some(nodes))?;
    let same = reader.scenario() == Some(fingerprint(spec));
    let mut engine = Engine::new(spec);
    engine.world().start(&recorders);
    let check = || OutputCheck::new(nodes.iter().map(|node| node.name.clone()).collect());
    let mut replay = Replay {
        engine,
        stacks: Stacks::new(spec, &recorders),
        has_stack: nodes.iter().map(|node| node.stack.is_some()).collect(),
        recorders,
        check: same.then(|| [check(), check()]),
        done: Time::ZERO,
        recorded: None,
        first: None,
        changes: changes.cloned(),
        made: Vec::new(),
    };
    let end = Time::ZERO + spec.duration;
    let failure = replay.play(reader, capture, end).err();
    Ok(replay.finish(end, failure))
}

/// A replay in progress.
#[derive(Debug)]
struct Replay<'a> {
    engine: Engine,
    stacks: Stacks,
    /// By host.
    has_stack: Vec<bool>,
    recorders: Recorders<'a>,
    /// Compare the packets to devices, and those to and from stacks, with the recorded ones, if the
    /// scenario is the same. The order of one kind relative to the other depends on lateness.
    check: Option<[OutputCheck; 2]>,
    /// Everything before this time has been done.
    done: Time,
    /// The end of the recorded run.
    recorded: Option<Time>,
    /// A description of the first packet.
    first: Option<String>,
    /// Reads the changes of the recorded run.
    changes: Option<ChangeReader>,
    made: Vec<ChangeSummary>,
}

impl Replay<'_> {
    /// The whole run, up to `end` or the end of the recorded run.
    fn play(&mut self, mut reader: CaptureReader, path: &Path, end: Time) -> Result<(), LiveError> {
        let own = reader.scenario().is_some();
        while let Some(Captured { at, node, way, bytes, len, changes }) = reader.next()? {
            self.make(changes, path, end)?;
            match way {
                _ if self.has_stack[node] => {
                    // Without packets of devices nothing else would make the replay follow.
                    self.advance(at.min(end))?;
                    if let Some([_, check]) = &mut self.check {
                        check.sent(ComparedRun::Recorded, at, node, len, bytes);
                    }
                }
                CaptureDirection::ToHost => {
                    if let Some([check, _]) = &mut self.check {
                        check.sent(ComparedRun::Recorded, at, node, len, bytes);
                    }
                }
                CaptureDirection::FromHost if at >= end => break,
                CaptureDirection::FromHost => {
                    self.advance(after(at))?;
                    self.settle(at)?;
                    let room = self.engine.buffer();
                    let most = room.len().saturating_sub(1);
                    let Some(room) = room.get_mut(..len) else {
                        let seconds = at.as_secs_f64();
                        let problem = format!(
                            "the packet at {seconds} s has {len} bytes, and hosts of the scenario send up to {most}; segments \
                             that were captured before they were cut into packets cannot be replayed"
                        );
                        return Err(LiveError::Capture { path: path.to_owned(), problem });
                    };
                    let (known, unknown) = room.split_at_mut(bytes.len());
                    known.copy_from_slice(bytes);
                    unknown.fill(0);
                    // In a capture of another tool, a zero checksum is left to a network card.
                    if !own && lacks_checksum(room) {
                        let header = usize::from(room[0] & 0xf) * 4;
                        room.get_mut(..header).into_iter().for_each(set_checksum);
                    }
                    self.first.get_or_insert_with(|| described(room));
                    if bytes.len() < len && !self.engine.passes_unread(node, len, bytes.len()) {
                        let (seconds, captured) = (at.as_secs_f64(), bytes.len());
                        let problem = format!(
                            "{captured} of {len} bytes of the packet at {seconds} s were captured, and all of them are \
                             needed; the beginning suffices for what passes whole from one host with a device to another"
                        );
                        return Err(LiveError::Capture { path: path.to_owned(), problem });
                    }
                    self.engine.arrive(at, node, len);
                }
            }
        }
        self.make(reader.last_changes(), path, end)?;
        self.recorded = reader.end();
        match self.recorded {
            // The recorded run was interrupted after doing everything that was due.
            Some(recorded) if recorded < end => self.advance(after(recorded)),
            _ => self.advance(end),
        }?;
        match self.without_way() {
            Some(problem) => Err(LiveError::Capture { path: path.to_owned(), problem }),
            None => Ok(()),
        }
    }

    /// The error if packets arrived, and none of them was forwarded.
    fn without_way(&self) -> Option<String> {
        let arrived: u64 = self.engine.hosts().map(|host| host.received_packets).sum();
        let refused = |host: &LiveHost| host.unroutable + host.truncated + host.discarded + host.bad_checksums;
        if arrived == 0 || self.engine.hosts().map(refused).sum::<u64>() < arrived {
            return None;
        }
        let first = self.first.as_deref().unwrap_or_default();
        Some(format!(
            "none of its {arrived} packets has a way in the scenario; expected packets between hosts that a path joins, \
             and found one {first}"
        ))
    }

    /// Makes the changes of the recorded run.
    fn make(&mut self, changes: &[Changes], path: &Path, end: Time) -> Result<(), LiveError> {
        for (at, set) in changes.iter().filter(|(at, _)| *at < end) {
            let wrong = |problem: String| {
                let problem = format!("the change at {} s: {problem}", at.as_secs_f64());
                LiveError::Capture { path: path.to_owned(), problem }
            };
            let texts: Vec<&str> = set.iter().map(String::as_str).collect();
            let reader = self.changes.as_ref().ok_or_else(|| wrong("there is nothing that reads it".to_owned()))?;
            let read = reader.read(*at, &texts).map_err(wrong)?;
            if *at < self.done {
                return Err(wrong("a packet after it comes before it in the file".to_owned()));
            }
            // A packet read a nanosecond earlier may follow: the recorders are called later.
            let before = Time::from_nanos(at.as_nanos().saturating_sub(1));
            self.advance(before)?;
            self.settle(before)?;
            self.engine.change(*at, &read);
            self.made.extend(set.iter().map(|set| ChangeSummary { at_ns: at.as_nanos(), set: set.clone() }));
        }
        Ok(())
    }

    /// Calls stacks for what is due by `until`.
    fn settle(&mut self, until: Time) -> Result<(), LiveError> {
        let check = &mut self.check;
        self.stacks.settle(&mut self.engine, until, &mut self.recorders, &mut |at, node, _, bytes| {
            if let Some([_, check]) = check {
                check.sent(ComparedRun::Replay, at, node, bytes.len(), bytes);
            }
        })?;
        Ok(())
    }

    /// Does everything due before `until`.
    fn advance(&mut self, until: Time) -> Result<(), LiveError> {
        while self.done < until {
            // Skips idle time in one step, and passes busy time in several.
            let from = self.engine.next_due().min(self.stacks.next_deadline()).max(self.done);
            let next = Time::from_nanos(from.as_nanos().saturating_add(STRIDE.as_nanos())).min(until);
            let last = Time::from_nanos(next.as_nanos() - 1);
            self.settle(last)?;
            while let Some(packet) = self.engine.advance(last) {
                if let Some([check, _]) = &mut self.check {
                    check.sent(ComparedRun::Replay, packet.at, packet.node, packet.bytes.len(), packet.bytes);
                }
            }
            self.done = next;
            if devices::interrupted() {
                return Err(LiveError::Interrupted);
            }
            self.engine.world().keep_up(last, &mut self.recorders)?;
            if let Some(error) = self.engine.error() {
                return Err(error.clone().into());
            }
        }
        Ok(())
    }

    /// Completes the run, whole or in part.
    fn finish(mut self, end: Time, failure: Option<LiveError>) -> Outcome {
        let ended = match (&failure, self.recorded) {
            (Some(_), _) => self.done,
            (None, recorded) => recorded.map_or(end, |recorded| recorded.min(end)),
        };
        self.engine.world().end_at(ended);
        let complete = self.engine.complete(&mut self.recorders).err();
        let mut summary = self.engine.world().summary();
        summary.changes = self.made;
        let mut checks = self.check.filter(|_| failure.is_none());
        let told = checks.iter_mut().flatten().filter_map(|check| check.finish(ended, ended < end));
        let invalid: Vec<String> = told.chain(self.engine.faults()).collect();
        let mut hosts: Vec<LiveHost> = self.engine.hosts().cloned().collect();
        self.stacks.report(ended, &mut hosts);
        let broken_off = failure.or(complete.map(LiveError::Run));
        summary.partial = broken_off.is_some() || ended < end;
        summary.live = Some(LiveSummary {
            clock: "capture",
            valid: invalid.is_empty(),
            invalid,
            compared_packets: Some(checks.iter().flatten().map(OutputCheck::compared).sum()),
            hosts,
            ..LiveSummary::default()
        });
        Outcome { summary, broken_off }
    }
}

/// Returns `true` if a packet is IPv4 with a zero header checksum, which is left to a network card.
fn lacks_checksum(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4) && packet.get(10..12) == Some(&[0, 0])
}

/// Describes a packet, for messages.
fn described(packet: &[u8]) -> String {
    match Header::read(packet) {
        Ok(header) => format!("from {} to {}", header.source, header.destination),
        Err(Discard::Checksum) => "whose IPv4 header has a wrong checksum".to_owned(),
        Err(Discard::Version) => "that is neither IPv4 nor IPv6".to_owned(),
        Err(_) => "whose lengths contradict each other".to_owned(),
    }
}

/// The nanosecond after `at`.
fn after(at: Time) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add(1))
}
