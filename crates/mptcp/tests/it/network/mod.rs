//! Two connections and a network of several paths between them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ackclock_cc::{CongestionControl, NewReno, NewRenoConfig};
use ackclock_mptcp::{Connection, MptcpConfig, Path};
use ackclock_packet::{DataNumber, Dss, Flags, Mapping, MptcpOption, MptcpOptions, Segment};
use ackclock_tcp::{Config, Ports};
use ackclock_units::{Ecn, Random, Span, Time};

/// The segments whose options a middlebox removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strips {
    Nothing,
    Everything,
    /// SYNs only.
    Syns,
    /// All but SYNs.
    Data,
    /// From this time on, milliseconds.
    From(u64),
}

/// One path, both ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Span,
    /// Bytes per second.
    pub(crate) rate: u64,
    /// The longest queueing delay.
    pub(crate) queue: Span,
    /// One packet in so many is lost; 0 for none.
    pub(crate) loses_one_of: u64,
    pub(crate) strips: Strips,
    /// Nothing passes between these times, milliseconds.
    pub(crate) down: (u64, u64),
    /// So many packets of the server are lost, the first ones behind its SYN.
    pub(crate) mute: usize,
    /// The client's data is acknowledged by the subflow and missing in the connection between these
    /// times, milliseconds, as with a kernel without memory: its mapping says that it is old.
    pub(crate) forgotten: (u64, u64),
}

impl Default for Wire {
    fn default() -> Wire {
        Wire {
            delay: Span::from_millis(10),
            rate: 625_000,
            queue: Span::from_millis(200),
            loses_one_of: 0,
            strips: Strips::Nothing,
            down: (0, 0),
            mute: 0,
            forgotten: (0, 0),
        }
    }
}

/// The client is 0, the server 1.
pub(crate) struct Network {
    pub(crate) ends: [Connection; 2],
    pub(crate) now: Time,
    pub(crate) wires: Vec<Wire>,
    /// Until when each wire is busy, by direction.
    busy: Vec<[Time; 2]>,
    flying: BTreeMap<(Time, u64), (usize, usize, Segment)>,
    sent: u64,
    random: Random,
    /// Bytes of data carried, by path.
    pub(crate) carried: Vec<u64>,
    /// The time at which the server begins to read, and bytes per second; without, it reads
    /// immediately.
    pub(crate) reads: Option<(Span, u64)>,
    read: u64,
    /// The window that each end has granted: by path the scale of its window field, and where what
    /// it has granted ends, in data sequence numbers.
    granted: [(Vec<u8>, Option<u32>); 2],
    /// Everything that was sent, with the direction and the path, if it is to be kept.
    pub(crate) log: Option<Vec<(Time, usize, usize, Segment)>>,
}

pub(crate) fn paths(count: usize, is_client: bool) -> Vec<Path> {
    (0..count)
        .map(|path| {
            let [client, server] = [1, 2].map(|host| IpAddr::from([10, path as u8, 0, host]));
            let (local, remote) = if is_client { (client, server) } else { (server, client) };
            Path { local, remote, backup: false }
        })
        .collect()
}

pub(crate) fn newreno(_: usize) -> Box<dyn CongestionControl> {
    Box::new(NewReno::new(NewRenoConfig::default()))
}

impl Network {
    pub(crate) fn with(wires: &[Wire], seed: u64, set: impl Fn(&mut MptcpConfig, &mut Config)) -> Network {
        let ends = [true, false].map(|is_client| {
            let mut config = MptcpConfig { paths: paths(wires.len(), is_client), ..MptcpConfig::default() };
            let ports = if is_client { (5000, 80) } else { (80, 5000) };
            let random = Random::for_component(seed, u64::from(is_client), "ends");
            let mut tcp = Config { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..Config::default() };
            set(&mut config, &mut tcp);
            Connection::new(config, tcp, Box::new(newreno), Ports { local: ports.0, remote: ports.1 }, random)
        });
        let mut network = Network {
            ends,
            now: Time::ZERO,
            wires: wires.to_vec(),
            busy: vec![[Time::ZERO; 2]; wires.len()],
            flying: BTreeMap::new(),
            sent: 0,
            random: Random::for_component(seed, 2, "wires"),
            carried: vec![0; wires.len()],
            granted: [(vec![0; wires.len()], None), (vec![0; wires.len()], None)],
            reads: None,
            read: 0,
            log: None,
        };
        network.ends[1].listen();
        network.ends[0].connect();
        network.pump();
        network
    }

    /// Both ends send what they have.
    pub(crate) fn pump(&mut self) {
        for end in 0..2 {
            let mut segment = Segment::default();
            while self.ends[end].transmit(self.now, &mut segment).is_some() {
                assert!(segment.header_len() <= 60, "{segment:?}");
                self.send(end, segment);
            }
        }
    }

    fn send(&mut self, from: usize, mut segment: Segment) {
        let path = self.ends[from].last_path();
        if let Some(log) = &mut self.log {
            log.push((self.now, from, path, segment));
        }
        self.check_window(from, path, &segment);
        let wire = self.wires[path];
        let ms = self.now.as_nanos() / 1_000_000;
        let is_syn = segment.flags.contains(Flags::SYN);
        let strips = match wire.strips {
            Strips::Nothing => false,
            Strips::Everything => true,
            Strips::Syns => is_syn,
            Strips::Data => !is_syn,
            Strips::From(time) => ms >= time,
        };
        if strips {
            segment.mptcp = MptcpOptions::default();
        }
        if from == 0 && (wire.forgotten.0..wire.forgotten.1).contains(&ms) && segment.payload.len > 0 {
            make_old(&mut segment);
        }
        let lost = wire.loses_one_of > 0 && self.random.below(wire.loses_one_of) == 0;
        let muted = from == 1 && !is_syn && wire.mute > 0;
        self.wires[path].mute -= usize::from(muted);
        let lost = lost || muted;
        let start = self.busy[path][from].max(self.now);
        if lost || (wire.down.0..wire.down.1).contains(&ms) || start.since(self.now) > wire.queue {
            return;
        }
        if from == 0 {
            self.carried[path] += u64::from(segment.payload.len);
        }
        let end = start + Span::from_nanos(u64::from(segment.wire_len()) * 1_000_000_000 / wire.rate);
        self.busy[path][from] = end;
        self.sent += 1;
        self.flying.insert((end + wire.delay, self.sent), (1 - from, path, segment));
    }

    /// The application of an end reads what it can at this time.
    fn read(&mut self, end: usize) {
        let most = match self.reads.filter(|_| end == 1) {
            Some((after, rate)) => {
                let seconds = (self.now.as_secs_f64() - after.as_secs_f64()).max(0.0);
                ((seconds * rate as f64) as u64).saturating_sub(self.read)
            }
            None => u64::MAX,
        };
        let taken = self.ends[end].read(most);
        self.read += if end == 1 { taken } else { 0 };
    }

    /// No data goes beyond what the other end has ever granted.
    fn check_window(&mut self, from: usize, path: usize, segment: &Segment) {
        let (scales, granted) = &mut self.granted[from];
        scales[path] = segment.window_scale.unwrap_or(scales[path]);
        let Some(dss) = segment.mptcp.dss() else { return };
        if let Some(DataNumber::Short(ack)) = dss.ack {
            let end = ack.wrapping_add(u32::from(segment.window) << scales[path]);
            *granted = Some(granted.filter(|&known| end.wrapping_sub(known).cast_signed() <= 0).unwrap_or(end));
        }
        let (_, Some(granted)) = self.granted[1 - from] else { return };
        if let Some(Mapping { sequence: DataNumber::Long(number), .. }) = dss.mapping {
            let end = (number as u32).wrapping_add(segment.payload.len);
            assert!(end.wrapping_sub(granted).cast_signed() <= 0, "{end} of {granted}: {segment:?}");
        }
    }

    /// Does what is due next; `false` if nothing is until `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let deadlines = [0, 1].map(|end| self.ends[end].next_deadline());
        let mut next = arrival.min(deadlines[0]).min(deadlines[1]);
        if self.reads.is_some() && self.ends[1].unread() > 0 {
            // A reader that is awake looks ten times a second.
            let tick = self.now + Span::from_millis(100);
            if tick < next {
                self.now = tick.min(end);
                self.read(1);
                self.pump();
                return tick < end;
            }
            next = next.min(tick);
        }
        if next > end {
            self.now = end;
            return false;
        }
        self.now = self.now.max(next);
        if next == arrival {
            let (_, (to, path, segment)) = self.flying.pop_first().expect("it is there");
            self.ends[to].input(self.now, path, &segment, Ecn::NotEct);
            self.read(to);
            if self.ends[to].peer_finished() {
                self.ends[to].shutdown(self.now);
            }
        } else {
            let due = usize::from(deadlines[1] == next && deadlines[0] != next);
            self.ends[due].on_deadline(self.now);
        }
        self.pump();
        for connection in &self.ends {
            assert_eq!(connection.integrity_error(), None);
        }
        true
    }

    /// The client writes `bytes` as fast as it can, and closes. Whether both ends finish in time.
    pub(crate) fn transfer(&mut self, bytes: u64, seconds: f64) -> bool {
        let end = self.now + Span::from_secs_f64(seconds);
        let mut left = Some(bytes);
        loop {
            let now = self.now;
            if let Some(more) = left {
                left = Some(more - self.ends[0].write(now, more));
                // A socket that is shut before it is connected gives up.
                if left == Some(0) && self.ends[0].is_open() {
                    self.ends[0].shutdown(now);
                    left = None;
                }
                self.pump();
            }
            if !self.step(end) || self.ends.iter().all(Connection::is_finished) {
                return self.ends.iter().all(Connection::is_finished) && self.ends[1].delivered_bytes() == bytes;
            }
        }
    }

    /// The state of both ends, in a few lines.
    pub(crate) fn describe(&self) -> String {
        let of = |end: &Connection| {
            let subflows = end.subflows().iter().map(|subflow| {
                let tcp = subflow.endpoint();
                let (path, state, sequence) = (subflow.path(), tcp.state(), tcp.sender().sequence().nxt());
                let counts = (tcp.sender().sequence().unacknowledged(), tcp.receiver().delivered(), tcp.error());
                format!("\n  path {path} open {} {state:?} {sequence:?} {counts:?}", subflow.is_open())
            });
            format!(
                "acked {} delivered {} beyond {:?} peer finished {} finished {} over {} {:?} next {}{}\n",
                end.acked_bytes(),
                end.delivered_bytes(),
                end.reordered_bytes(),
                end.peer_finished(),
                end.is_finished(),
                end.is_over(),
                end.error(),
                end.next_deadline().as_secs_f64(),
                subflows.collect::<String>()
            )
        };
        format!("at {}\n{}{}", self.now.as_secs_f64(), of(&self.ends[0]), of(&self.ends[1]))
    }
}

/// Gives the data of a segment the numbers of what lies 2 MB before it.
fn make_old(segment: &mut Segment) {
    let Some(Dss { ack, mapping: Some(mapping), fin: false }) = segment.mptcp.dss() else { return };
    let DataNumber::Long(number) = mapping.sequence else { return };
    let old = Mapping { sequence: DataNumber::Long(number.wrapping_sub(2_000_000)), ..mapping };
    segment.mptcp.clear();
    segment.mptcp.push(&MptcpOption::Dss(Dss { ack, mapping: Some(old), fin: false }));
}
