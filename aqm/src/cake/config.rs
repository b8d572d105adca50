//! CAKE's parameters, and what follows from them.

use ackclock_units::parameter::{Domain, Named as _, Setting, Value};
use ackclock_units::{Rate, Span, configuration, named};

use crate::books::PACKET_OVERHEAD;
use crate::discipline::{Discipline, HASH_SEED, MAX, MTU, OWN_SALT};
use crate::overhead::{LinkLayer, Overhead};
use crate::prio::PrioMap;

/// The packets of the largest size whose memory is the most by default (`cake_init`).
const LIMIT: u64 = 10_240;
/// The least memory for a rate (`cake_reconfigure`).
const LEAST_MEMORY: u64 = 4 << 20;

/// The round-trip time for which CAKE's laws are tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeRtt {
    /// 100 us.
    Datacentre,
    /// 1 ms.
    Lan,
    /// 10 ms.
    Metro,
    /// 30 ms.
    Regional,
    /// 100 ms.
    Internet,
    /// 300 ms.
    Oceanic,
    /// 1 s.
    Satellite,
    /// 1000 s, as in tc's source; its manual page says an hour.
    Interplanetary,
    /// Another one.
    Of(Span),
}

impl CakeRtt {
    const KEYWORDS: [(&'static str, CakeRtt); 8] = [
        ("datacentre", CakeRtt::Datacentre),
        ("lan", CakeRtt::Lan),
        ("metro", CakeRtt::Metro),
        ("regional", CakeRtt::Regional),
        ("internet", CakeRtt::Internet),
        ("oceanic", CakeRtt::Oceanic),
        ("satellite", CakeRtt::Satellite),
        ("interplanetary", CakeRtt::Interplanetary),
    ];

    const DOMAIN: Domain = Domain::OrName("datacentre", &{
        const LAN: Domain = Domain::OrName("lan", &METRO);
        const METRO: Domain = Domain::OrName("metro", &REGIONAL);
        const REGIONAL: Domain = Domain::OrName("regional", &INTERNET);
        const INTERNET: Domain = Domain::OrName("internet", &OCEANIC);
        const OCEANIC: Domain = Domain::OrName("oceanic", &SATELLITE);
        const SATELLITE: Domain = Domain::OrName("satellite", &INTERPLANETARY);
        const INTERPLANETARY: Domain = Domain::OrName("interplanetary", &Domain::Time { positive: true });
        LAN
    });

    /// The time.
    pub const fn span(self) -> Span {
        match self {
            CakeRtt::Datacentre => Span::from_micros(100),
            CakeRtt::Lan => Span::from_millis(1),
            CakeRtt::Metro => Span::from_millis(10),
            CakeRtt::Regional => Span::from_millis(30),
            CakeRtt::Internet => Span::from_millis(100),
            CakeRtt::Oceanic => Span::from_millis(300),
            CakeRtt::Satellite => Span::from_secs(1),
            CakeRtt::Interplanetary => Span::from_secs(1000),
            CakeRtt::Of(span) => span,
        }
    }
}

impl Setting for CakeRtt {
    fn value(&self) -> Value {
        let keyword = CakeRtt::KEYWORDS.iter().find(|(_, rtt)| rtt == self);
        keyword.map_or(Value::Time(self.span()), |(name, _)| Value::Name(name))
    }

    fn from_value(value: Value) -> Option<CakeRtt> {
        match value {
            Value::Time(span) => Some(CakeRtt::Of(span)),
            Value::Name(name) => CakeRtt::KEYWORDS.iter().find(|(known, _)| *known == name).map(|(_, rtt)| *rtt),
            _ => None,
        }
    }
}

/// The assignment of packets to tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diffserv {
    /// One tin.
    Besteffort,
    /// Eight, by the three bits of the former IP precedence.
    Precedence,
    /// Best effort, bulk and voice.
    Diffserv3,
    /// Best effort, bulk, video and voice.
    Diffserv4,
    /// Eight classes.
    Diffserv8,
}

named! {
    Diffserv:
    Besteffort = "besteffort",
    Precedence = "precedence",
    Diffserv3 = "diffserv3",
    Diffserv4 = "diffserv4",
    Diffserv8 = "diffserv8",
}

impl Diffserv {
    /// The number of the tin of a codepoint.
    const fn tin(self, dscp: u8) -> u8 {
        match self {
            Diffserv::Besteffort => 0,
            Diffserv::Precedence => dscp >> 3,
            Diffserv::Diffserv3 => [2, 0, 1][PrioMap::Diffserv3.band(dscp)],
            Diffserv::Diffserv4 => [3, 2, 0, 1][PrioMap::Diffserv4.band(dscp)],
            Diffserv::Diffserv8 => match dscp {
                1 => 0,
                2 | 8 | 10 | 12 | 14 => 1,
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | 44 | 46 => 6,
                48 | 56 => 7,
                _ => 2,
            },
        }
    }

    /// The tins of all codepoints.
    pub(super) fn index(self) -> [u8; 64] {
        std::array::from_fn(|dscp| self.tin(dscp as u8))
    }

    /// The share of each tin: its threshold for a `rate` in bytes per second, and its quantum.
    pub(super) fn shares(self, rate: u64) -> Vec<(u64, u32)> {
        let halved = |by: &[u32]| by.iter().map(|by| (rate >> by, 1024 >> by)).collect();
        match self {
            Diffserv::Besteffort => vec![(rate, 65_535)],
            Diffserv::Diffserv3 => halved(&[0, 4, 2]),
            Diffserv::Diffserv4 => halved(&[0, 4, 1, 2]),
            // Seven eighths of the one before.
            Diffserv::Precedence | Diffserv::Diffserv8 => {
                let less = |&(rate, quantum): &(u64, u32)| Some(((rate * 7) >> 3, (quantum * 7) >> 3));
                std::iter::successors(Some((rate, 256)), less).take(8).collect()
            }
        }
    }

    /// The place of a tin in tc's order.
    pub(super) fn place(self, tin: usize) -> usize {
        match (self, tin) {
            (Diffserv::Diffserv3 | Diffserv::Diffserv4, 0 | 1) => 1 - tin,
            _ => tin,
        }
    }
}

/// The flows that are told apart, and the fairness among hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowMode {
    /// All packets of a tin are one flow.
    Flowblind,
    /// Packets of a sending host are a flow.
    Srchost,
    /// Packets to a receiving host are a flow.
    Dsthost,
    /// Packets between two hosts are a flow.
    Hosts,
    /// Packets of a connection are a flow.
    Flows,
    /// The same, fair among sending hosts first.
    DualSrchost,
    /// The same, fair among receiving hosts first.
    DualDsthost,
    /// The same, fair among the hosts of both sides.
    TripleIsolate,
}

named! {
    FlowMode:
    Flowblind = "flowblind",
    Srchost = "srchost",
    Dsthost = "dsthost",
    Hosts = "hosts",
    Flows = "flows",
    DualSrchost = "dual-srchost",
    DualDsthost = "dual-dsthost",
    TripleIsolate = "triple-isolate",
}

impl FlowMode {
    /// Connections are told apart.
    pub(super) const fn flows(self) -> bool {
        matches!(self, FlowMode::Flows | FlowMode::DualSrchost | FlowMode::DualDsthost | FlowMode::TripleIsolate)
    }

    /// Sending and receiving hosts count: as flows, or for the fairness among hosts.
    pub(super) const fn hosts(self) -> [bool; 2] {
        [
            matches!(self, FlowMode::Srchost | FlowMode::Hosts | FlowMode::DualSrchost | FlowMode::TripleIsolate),
            matches!(self, FlowMode::Dsthost | FlowMode::Hosts | FlowMode::DualDsthost | FlowMode::TripleIsolate),
        ]
    }

    /// Flows of a host share its turns, on the sending and on the receiving side.
    pub(super) const fn shared(self) -> [bool; 2] {
        let [source, destination] = self.hosts();
        [self.flows() && source, self.flows() && destination]
    }
}

/// The cells of the link layer, for which a packet's length is rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atm {
    /// None.
    Noatm,
    /// ATM: 48 bytes in each cell of 53.
    Atm,
    /// PTM: a byte more for each 64, or part of 64.
    Ptm,
}

named! { Atm: Noatm = "noatm", Atm = "atm", Ptm = "ptm" }

impl Atm {
    const fn layer(self) -> LinkLayer {
        match self {
            Atm::Noatm => LinkLayer::Ethernet,
            Atm::Atm => LinkLayer::Atm,
            Atm::Ptm => LinkLayer::Ptm,
        }
    }
}

/// tc's keywords for the overhead of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Framing {
    Conservative,
    PppoaVcmux,
    PppoaLlc,
    PppoeVcmux,
    PppoeLlcsnap,
    BridgedVcmux,
    BridgedLlcsnap,
    IpoaVcmux,
    IpoaLlcsnap,
    PppoePtm,
    BridgedPtm,
    Docsis,
    Ethernet,
}

named! {
    Framing:
    Conservative = "conservative",
    PppoaVcmux = "pppoa-vcmux",
    PppoaLlc = "pppoa-llc",
    PppoeVcmux = "pppoe-vcmux",
    PppoeLlcsnap = "pppoe-llcsnap",
    BridgedVcmux = "bridged-vcmux",
    BridgedLlcsnap = "bridged-llcsnap",
    IpoaVcmux = "ipoa-vcmux",
    IpoaLlcsnap = "ipoa-llcsnap",
    PppoePtm = "pppoe-ptm",
    BridgedPtm = "bridged-ptm",
    Docsis = "docsis",
    Ethernet = "ethernet",
}

impl Framing {
    const fn overhead(self) -> Overhead {
        let (bytes, mpu, atm) = match self {
            Framing::Conservative => (48, 0, Atm::Atm),
            Framing::PppoaVcmux => (10, 0, Atm::Atm),
            Framing::PppoaLlc => (14, 0, Atm::Atm),
            Framing::PppoeVcmux | Framing::BridgedLlcsnap => (32, 0, Atm::Atm),
            Framing::PppoeLlcsnap => (40, 0, Atm::Atm),
            Framing::BridgedVcmux => (24, 0, Atm::Atm),
            Framing::IpoaVcmux => (8, 0, Atm::Atm),
            Framing::IpoaLlcsnap => (16, 0, Atm::Atm),
            Framing::PppoePtm => (30, 0, Atm::Ptm),
            Framing::BridgedPtm => (22, 0, Atm::Ptm),
            Framing::Docsis => (18, 64, Atm::Noatm),
            Framing::Ethernet => (38, 84, Atm::Noatm),
        };
        Overhead { bytes, mpu, layer: atm.layer() }
    }
}

/// The filter of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFilter {
    /// One of the waiting ACKs that a later one makes needless stays beside it.
    Enabled,
    /// None stays.
    Aggressive,
}

named! { AckFilter: Enabled = "enabled", Aggressive = "aggressive" }

const MANUAL: &str = "tc-cake(8)";
const OF_FRAMING: &str = "that of `framing`";
const FRAMING: Domain = Domain::OrOff(&const { Domain::named::<Framing>("kind of link") });
const MEMORY: &str = "4 x `bandwidth` x `rtt`, from 4 MiB to 10,240 packets of `mtu`";
const FILTER: Domain = Domain::FlagOrName { what: "a filter of ACKs", names: AckFilter::NAMES };

configuration! {
/// Parameters of CAKE.
#[derive(Clone, Debug, PartialEq)]
pub struct CakeConfig {
    /// The rate of the shaper. Default: unlimited.
    pub bandwidth: Option<Rate> = None => (Domain::OrOff(&Domain::Rate), MANUAL);
    /// The round-trip time for which the laws are tuned: a twentieth of it is the delay that may
    /// persist. Default: `internet`, 100 ms.
    pub rtt: CakeRtt = CakeRtt::Internet => (CakeRtt::DOMAIN, MANUAL);
    /// The tins. Default: `diffserv3`.
    pub diffserv: Diffserv = Diffserv::Diffserv3 => (Domain::named::<Diffserv>("assignment to tins"), MANUAL);
    /// The flows that are told apart. Default: `triple-isolate`.
    pub flowmode: FlowMode = FlowMode::TripleIsolate => (Domain::named::<FlowMode>("flow isolation"), MANUAL);
    /// Clear the codepoint of packets once they are assigned to a tin. Default: off.
    pub wash: bool = false => (Domain::Flag, MANUAL);
    /// Drop waiting ACKs that a later one makes needless. Default: off.
    pub ack_filter: Option<AckFilter> = None => (FILTER, "tc-cake(8), `ack-filter`");
    /// Count dropped packets as sent, since they have crossed the link that is shaped, and let the
    /// delay grow with the number of flows. Default: off.
    pub ingress: bool = false => (Domain::Flag, MANUAL);
    /// The overhead of a kind of link. Default: none.
    pub framing: Option<Framing> = None => (FRAMING, "tc-cake(8), overhead keywords");
    /// Bytes that each packet has on the link beyond its length, -64 to 256. Default: that of
    /// `framing`.
    pub overhead: Option<f64> = None => (Domain::Number(-64.0, 256.0, "bytes"), MANUAL, derived OF_FRAMING);
    /// The least length of a packet on the link. Default: that of `framing`.
    pub mpu: Option<u32> = None => (Domain::Bytes(0, 256), MANUAL, derived OF_FRAMING);
    /// The cells of the link. Default: that of `framing`.
    pub atm: Option<Atm> = None => (Domain::named::<Atm>("link layer"), MANUAL, derived OF_FRAMING);
    /// The most memory that waiting packets take, in bytes. Default: four times what `bandwidth`
    /// carries in `rtt`, at least 4 MiB, at most 10,240 packets of `mtu` bytes.
    pub memlimit: Option<u64> = None => (Domain::Bytes(1, MAX), MANUAL, derived MEMORY);
    /// Bytes of the largest packet, on which target, interval and `memlimit` depend. Default: 1514,
    /// an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "Linux `psched_mtu`; an Ethernet frame");
    /// The salt of the hash of flows and hosts; `None` draws it from each run's seed. Default:
    /// `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
} problem
}

impl Discipline for CakeConfig {
    fn marks(&self) -> bool {
        true
    }

    fn target(&self) -> Option<Span> {
        Some(self.delay_target())
    }
}

impl CakeConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let whole = |overhead: f64| overhead.fract() == 0.0 && (-64.0..=256.0).contains(&overhead);
        if !self.overhead.is_none_or(whole) {
            return Some("`overhead` is a whole number of bytes from -64 to 256");
        }
        if !(1..=131_072).contains(&self.mtu) {
            return Some("`mtu` is from 1 to 131,072 bytes");
        }
        None
    }

    /// The rate in bytes per second; 0 is unlimited.
    pub(super) fn rate(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| (rate.as_bps() / 8).max(1))
    }

    /// Target and interval before the rate of a tin counts, in whole microseconds as tc has them.
    pub(super) fn delays(&self) -> [Span; 2] {
        let interval = self.rtt.span().as_micros().max(1);
        [(interval / 20).max(1), interval].map(Span::from_micros)
    }

    pub(super) fn overhead(&self) -> Overhead {
        let keyword = self.framing.map_or(Overhead::default(), Framing::overhead);
        Overhead {
            bytes: self.overhead.map_or(keyword.bytes, |bytes| bytes as i32),
            mpu: self.mpu.unwrap_or(keyword.mpu),
            layer: self.atm.map_or(keyword.layer, Atm::layer),
        }
    }

    /// The most memory (`cake_reconfigure`).
    pub(super) fn memory(&self) -> u64 {
        let most = LIMIT * u64::from(self.mtu);
        self.memlimit.unwrap_or_else(|| {
            let [_, interval] = self.delays();
            let in_rtt = u128::from(self.rate()) * u128::from(interval.as_micros()) / 250_000;
            match self.rate() {
                0 => most,
                _ => u64::try_from(in_rtt).unwrap_or(u64::MAX).max(LEAST_MEMORY).min(most),
            }
        })
    }

    /// The most packets that wait: all of no more than 40 bytes.
    pub fn most_packets(&self) -> u64 {
        self.memory() / (PACKET_OVERHEAD + 40)
    }

    /// The target of the tin of best effort.
    fn delay_target(&self) -> Span {
        let [target, _] = self.delays();
        let packet = u64::from(self.mtu) * 1_000_000_000 / self.rate().max(1);
        if self.rate() == 0 { target } else { target.max(Span::from_nanos(packet.saturating_mul(3) / 2)) }
    }
}
