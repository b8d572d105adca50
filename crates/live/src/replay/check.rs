//! Comparing the packets that a replay sends with those that the recorded run sent.

use std::collections::VecDeque;

use ackclock_units::Time;

/// The most bytes of packets that wait for their counterpart. In a faithful replay these are the
/// packets sent between two arrivals, and more where the recorded run was late.
const ROOM: usize = 64 << 20;

/// Compares packets to hosts one by one: times, hosts and bytes.
#[derive(Debug)]
pub(super) struct OutputCheck {
    names: Vec<String>,
    /// Packets that only one of the two runs has sent so far.
    waiting: VecDeque<ComparedPacket>,
    /// The run that sent the waiting packets.
    ahead: ComparedRun,
    /// The bytes of the waiting packets, from `begin` on.
    bytes: Vec<u8>,
    begin: usize,
    compared: u64,
    differences: u64,
    /// The first difference.
    first: Option<String>,
    /// The runs differ so much that the rest is not compared.
    lost: bool,
}

/// One of the two runs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedRun {
    Recorded,
    Replay,
}

#[derive(Clone, Copy, Debug)]
struct ComparedPacket {
    at: Time,
    node: usize,
    len: usize,
    /// Bytes that are known: a capture may be limited to the beginning of packets.
    known: usize,
}

impl OutputCheck {
    /// A comparison of packets to hosts with these names.
    pub(super) fn new(names: Vec<String>) -> OutputCheck {
        OutputCheck {
            names,
            waiting: VecDeque::new(),
            ahead: ComparedRun::Recorded,
            bytes: Vec::new(),
            begin: 0,
            compared: 0,
            differences: 0,
            first: None,
            lost: false,
        }
    }

    /// Adds a packet of `len` bytes that one of the runs sent, and that begins with `bytes`.
    pub(super) fn sent(&mut self, run: ComparedRun, at: Time, node: usize, len: usize, bytes: &[u8]) {
        if self.lost {
            return;
        }
        let packet = ComparedPacket { at, node, len, known: bytes.len() };
        if self.waiting.is_empty() {
            self.ahead = run;
            self.bytes.clear();
            self.begin = 0;
        }
        if self.ahead == run {
            if self.bytes.len() + bytes.len() > ROOM {
                self.make_room(bytes.len());
            }
            if self.lost {
                return;
            }
            self.waiting.push_back(packet);
            self.bytes.extend_from_slice(bytes);
            return;
        }
        let Some(other) = self.waiting.pop_front() else { return };
        self.compared += 1;
        let theirs = &self.bytes[self.begin..self.begin + other.known];
        self.begin += other.known;
        if (packet.at, packet.node, packet.len) == (other.at, other.node, other.len) {
            if let Some(byte) = theirs.iter().zip(bytes).position(|(one, two)| one != two) {
                let what = self.describe(packet);
                self.differ(format!("{what} is not the recorded one from byte {byte} on"));
            }
        } else {
            let [recorded, replay] = if run == ComparedRun::Replay { [other, packet] } else { [packet, other] };
            self.differ(format!("{} was recorded, and {} replayed", self.describe(recorded), self.describe(replay)));
        }
    }

    /// Moves the waiting bytes to the beginning of the buffer, and gives up if they fill it.
    #[cold]
    fn make_room(&mut self, len: usize) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        if self.bytes.len() + len > ROOM {
            self.lost = true;
            let which = if self.ahead == ComparedRun::Recorded { "only recorded" } else { "only replayed" };
            self.differ(format!("a long time of packets that were {which}"));
        }
    }

    /// The number of packets compared.
    pub(super) fn compared(&self) -> u64 {
        self.compared
    }

    #[cold]
    fn differ(&mut self, what: String) {
        self.differences += 1;
        self.first.get_or_insert(what);
    }

    fn describe(&self, packet: ComparedPacket) -> String {
        let ComparedPacket { at, node, len, .. } = packet;
        let [seconds, nanos] = [at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000];
        let name = self.names.get(node).map_or("?", String::as_str);
        format!("a packet of {len} bytes to {name} at {seconds}.{nanos:09} s")
    }

    /// The report of differences at the end of both runs, at `end`; `None` if there are none.
    /// Packets that are due later are not compared: only the recorded run drained its queues. A
    /// recorded run that was interrupted may not have sent everything that was due.
    pub(super) fn finish(&mut self, end: Time, broken_off: bool) -> Option<String> {
        let left = self.waiting.iter().filter(|packet| packet.at <= end).count() as u64;
        let excused = self.lost || (broken_off && self.ahead == ComparedRun::Replay);
        if left > 0 && !excused {
            let which = if self.ahead == ComparedRun::Recorded { "recorded" } else { "replayed" };
            let packet = self.describe(self.waiting[0]);
            self.differ(format!("{packet} was {which} alone"));
            self.differences += left - 1;
            self.compared += left;
        }
        let first = self.first.take()?;
        let (differences, compared) = (self.differences, self.compared);
        Some(format!(
            "what it sends differs from what the recorded run sent, in {differences} of {compared} packets; first: {first}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> OutputCheck {
        OutputCheck::new(vec!["left".to_owned(), "right".to_owned()])
    }

    /// Sends packets of 10 bytes with these times, in milliseconds, and values to `right`.
    fn send(check: &mut OutputCheck, run: ComparedRun, packets: &[(u64, u8)]) {
        packets.iter().for_each(|&(at, value)| check.sent(run, Time::from_millis(at), 1, 10, &[value; 10]));
    }

    #[test]
    fn equal_packets_are_equal_whoever_is_first() {
        let mut check = check();
        send(&mut check, ComparedRun::Recorded, &[(1, 1), (2, 2)]);
        send(&mut check, ComparedRun::Replay, &[(1, 1), (2, 2), (2, 3), (5, 4)]);
        send(&mut check, ComparedRun::Recorded, &[(2, 3), (5, 4)]);
        assert_eq!(check.compared, 4);
        assert_eq!(check.finish(Time::from_secs(1), false), None);
    }

    #[test]
    fn every_difference_counts_and_the_first_is_told() {
        let mut check = check();
        send(&mut check, ComparedRun::Recorded, &[(1, 1), (2, 2), (3, 3), (4, 4)]);
        send(&mut check, ComparedRun::Replay, &[(1, 1), (2, 9), (2, 3)]);
        let told = check.finish(Time::from_secs(1), false).unwrap();
        assert!(told.contains("in 3 of 4 packets"), "{told}");
        assert!(told.contains("10 bytes to right at 0.002000000 s is not the recorded one from byte 0 on"), "{told}");
    }

    #[test]
    fn the_bytes_that_a_capture_has_are_compared() {
        let mut check = check();
        let (at, begins) = (Time::from_millis(1), &[1, 2, 3]);
        for (len, bytes) in [(5, [1, 2, 3, 4, 5]), (6, [1, 2, 3, 4, 5]), (5, [1, 9, 3, 4, 5])] {
            check.sent(ComparedRun::Recorded, at, 1, 5, begins);
            check.sent(ComparedRun::Replay, at, 1, len, &bytes);
        }
        // A packet of another length is another packet, as is one that differs in a known byte.
        let told = check.finish(Time::from_secs(1), false).unwrap();
        assert!(told.contains("in 2 of 3 packets") && told.contains("a packet of 6 bytes"), "{told}");
    }

    #[test]
    fn a_packet_at_another_time_is_another_one() {
        let mut check = check();
        send(&mut check, ComparedRun::Replay, &[(2, 2)]);
        send(&mut check, ComparedRun::Recorded, &[(3, 2)]);
        let told = check.finish(Time::from_secs(1), false).unwrap();
        assert!(told.contains("at 0.003000000 s was recorded, and a packet of 10 bytes to right at 0.002"), "{told}");
    }

    #[test]
    fn what_was_drained_or_left_undone_is_no_difference() {
        let mut drained = check();
        send(&mut drained, ComparedRun::Recorded, &[(1500, 2)]);
        assert_eq!(drained.finish(Time::from_secs(1), false), None);
        let undone = || {
            let mut check = check();
            send(&mut check, ComparedRun::Replay, &[(999, 2)]);
            check
        };
        assert_eq!(undone().finish(Time::from_secs(1), true), None);
        assert!(undone().finish(Time::from_secs(1), false).unwrap().contains("was replayed alone"));
    }

    #[test]
    fn what_goes_too_far_apart_is_not_kept() {
        let mut check = check();
        let packet = vec![0; 1 << 20];
        (0..100).for_each(|at| check.sent(ComparedRun::Replay, Time::from_secs(at), 0, packet.len(), &packet));
        assert!(check.bytes.len() <= ROOM);
        assert!(check.finish(Time::NEVER, false).unwrap().contains("packets that were only replayed"));
    }
}
