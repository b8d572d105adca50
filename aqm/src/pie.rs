//! PIE, Proportional Integral controller Enhanced: drops arrivals at random, with a probability
//! that a controller adjusts every `tupdate` so that the queueing delay settles at `target`.
//!
//! The law is in `pie_law`; this file has its parameters and the queue.
//!
//! # Source
//! RFC 8033; parameters and defaults of `tc-pie(8)`.
//!
//! # Departures
//! None beyond those of the law.
//!
//! [`QueueDisc::probe`] shows the state as of the last call: updates that are due are applied by
//! the next one.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, Time, configuration, named};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, MTU, POSITIVE};
use crate::pie_law::{Admission, DqRateEstimator, PieLaw, PieState};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

/// Up to this probability packets that can carry a mark are marked (RFC 8033 section 5.1,
/// `MARK_ECNTH`).
const MARK_UP_TO: f64 = 0.1;

configuration! { self:
/// Parameters of a PIE queue.
#[derive(Clone, Debug, PartialEq)]
pub struct PieConfig {
    /// The most packets that wait; further ones are refused. Default: 1000.
    pub limit: u64 = 1000 => (with |v| {
        let mut preset = Preset::Tc;
        v.parameter("preset", Domain::named::<Preset>("preset"), "CAIA TR 140516A", &mut preset);
        if preset == Preset::Teacup {
            *self = PieConfig::teacup();
        }
        v.parameter("limit", Domain::Packets(1, MAX), "tc-pie(8)", &mut self.limit);
    });
    /// The queueing delay to settle at. Default: 15 ms (RFC 8033 section 4.2, `QDELAY_REF`).
    pub target: Span = Span::from_millis(15) => (POSITIVE, "RFC 8033 s4.2; tc-pie(8)");
    /// Time between two updates of the probability. Default: 15 ms (RFC 8033 section 4.2,
    /// `T_UPDATE`).
    pub tupdate: Span = Span::from_millis(15) => (POSITIVE, "RFC 8033 s4.2; tc-pie(8)");
    /// Weight of the delay's distance from `target`, in 1/16 Hz as in tc. Default: 2, that is 0.125
    /// Hz (RFC 8033 section 4.2).
    pub alpha: u32 = 2 => (Domain::Whole(0, 32, "1/16 Hz"), "RFC 8033 s4.2; tc-pie(8)");
    /// Weight of the delay's change since the last update, in 1/16 Hz as in tc. Default: 20, that
    /// is 1.25 Hz (RFC 8033 section 4.2).
    pub beta: u32 = 20 => (Domain::Whole(0, 32, "1/16 Hz"), "RFC 8033 s4.2; tc-pie(8)");
    /// Mark packets that can carry a mark instead of dropping them, up to a probability of 10 %
    /// (RFC 8033 section 5.1). Default: off.
    pub ecn: bool = false => (Domain::Flag, "RFC 8033 s5.1; tc-pie(8)");
    /// Scale the probability with the size of the packet over `mtu`. Default: off.
    pub bytemode: bool = false => (Domain::Flag, "tc-pie(8)");
    /// Estimate the delay as backlog over departure rate (RFC 8033 section 5.2; Linux before 5.5)
    /// instead of the last packet's sojourn time, and how the rate is measured. Default: off.
    pub dq_rate_estimator: Option<DqRateEstimator> = None => (DqRateEstimator::DOMAIN, "RFC 8033 s5.2; tc-pie(8)");
    /// Space drops out: none before the probabilities since the last one sum up to 0.85, one for
    /// sure at 8.5 (RFC 8033 section 5.4; Linux since 5.1). Default: on.
    pub derandomize: bool = true => (Domain::Flag, "RFC 8033 s5.4");
    /// Bytes of the largest packet: no early drops below a backlog of two of them (RFC 8033 section
    /// 4.1). Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "RFC 8033 s4.1; an Ethernet frame");
}
}

/// The set of defaults for parameters that are not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preset {
    Tc,
    Teacup,
}

named! { Preset: Tc = "tc", Teacup = "teacup" }

impl Discipline for PieConfig {
    fn marks(&self) -> bool {
        self.ecn
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl PieConfig {
    /// The settings of the TEACUP testbed's router (CAIA TR 140516A), a Linux 3.x with the PIE of
    /// 2013: target 20 ms, `tupdate` 30 ms, the delay from the departure rate, drops not spaced
    /// out. The limit is the trial's: 50, 90 or 180.
    ///
    /// That code (`sch_pie` of Linux 3.14) also differs in constants, which stay those of RFC 8033
    /// here: a burst allowance of 100 ms, rates measured over 10,000 bytes, no smaller steps than
    /// 1/8 below a probability of 1 %, and a decay of 2 % per update.
    pub fn teacup() -> PieConfig {
        PieConfig {
            target: Span::from_millis(20),
            tupdate: Span::from_millis(30),
            dq_rate_estimator: Some(DqRateEstimator::Linux),
            derandomize: false,
            ..PieConfig::default()
        }
    }

    fn law(&self) -> PieLaw {
        let &PieConfig { limit: _, target, tupdate, alpha, beta, ecn, bytemode, dq_rate_estimator, derandomize, mtu } =
            self;
        let mark_up_to = ecn.then_some(MARK_UP_TO);
        PieLaw { target, tupdate, alpha, beta, mark_up_to, bytemode, dq_rate_estimator, derandomize, mtu }
    }
}

/// A PIE queue.
#[derive(Debug)]
pub struct Pie<P> {
    limit: u64,
    law: PieLaw,
    state: PieState,
    /// The time of the next update.
    next_update: Time,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Pie<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If `tupdate` is zero.
    pub fn new(config: PieConfig, random: Random) -> Pie<P> {
        assert!(config.tupdate > Span::ZERO, "tupdate must not be zero");
        Pie {
            limit: config.limit,
            law: config.law(),
            state: PieState::new(),
            next_update: Time::ZERO + config.tupdate,
            random,
            store: Store::new(),
        }
    }

    #[inline(always)]
    fn catch_up(&mut self, now: Time) {
        if now < self.next_update {
            return;
        }
        self.next_update = self.state.catch_up(&self.law, self.next_update, now, self.store.backlog().bytes);
    }
}

impl<P: Queued + Send> QueueDisc<P> for Pie<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        let backlog = self.store.backlog();
        if backlog.packets >= self.limit {
            self.state.overflowed();
            self.store.refuse(packet, DropReason::Limit, drops);
            return;
        }
        match self.state.arrived(&self.law, backlog.bytes, packet.wire_len(), &mut self.random) {
            Admission::Admit => {}
            Admission::Mark if self.store.mark(&mut packet) => {}
            Admission::Mark | Admission::Drop => {
                self.store.refuse(packet, DropReason::Early, drops);
                return;
            }
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.catch_up(now);
        let Some(entry) = self.store.take() else { return Dequeue::Empty };
        let backlog = self.store.backlog().bytes;
        self.state.departed(&self.law, now, entry.enqueued_at, entry.packet.wire_len(), backlog);
        Dequeue::Packet(self.store.release(entry))
    }

    fn passes(&self) -> bool {
        self.limit > 0
    }

    fn pass(&mut self, bytes: u32) {
        self.store.pass(bytes);
    }

    /// Other parameters at run time. The state stays, and the next update is due when it was; heads
    /// beyond the new limit are discarded, and the law does not see them leave (Linux
    /// `pie_change`).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<PieConfig>(config)?.clone();
        valid((config.tupdate == Span::ZERO).then_some("tupdate must not be zero"))?;
        self.catch_up(now);
        self.limit = config.limit;
        self.state.estimates_by(&self.law, config.dq_rate_estimator);
        self.law = config.law();
        self.store.trim(drops, |store| store.backlog().packets > config.limit);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    fn probe(&self) -> Probe {
        Probe { probability: Some(self.state.probability), delay: Some(self.state.delay), ..Probe::default() }
    }
}

#[cfg(test)]
mod tests;
