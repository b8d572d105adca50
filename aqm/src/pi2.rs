//! PI2: a single queue whose delay a linear controller keeps at a target, with a probability that
//! is squared for classic traffic and used as it is for scalable traffic.
//!
//! Every `tupdate` the controller moves a probability p with the delay's distance from `target` and
//! its change, as DualPI2 does. An arrival of classic traffic is dropped or marked with (p /
//! `coupling_factor`)^2, one of scalable traffic marked with p, so that flows of both have about
//! the same rate; they share the queue and its delay.
//!
//! # Source
//! De Schepper, Bondarenko, Tsang, Briscoe 2016, "PI2: A Linearized AQM for both Classic and
//! Scalable TCP" (CoNEXT); its authors' `sch_pi2` of 2015, with its parameters and defaults:
//! `alpha` and `beta` are 10 and 100 sixteenths of 1 Hz there.
//!
//! # Departures
//! - The delay is how long the head has waited, as in the authors' later `sch_dualpi2`; `sch_pi2`
//!   divides the backlog by a measured departure rate.
//! - Scalable traffic is ECT(1) and CE (RFC 9331 section 5.1); `sch_pi2` takes ECT(0) as well, for
//!   the time before there was a codepoint for it, as `any_ect` does here.
//! - The second queue that `sch_pi2` has as an option is `dualpi2`.
//! - There is no timer. Updates that were due are applied, each with the delay at its time, before
//!   a packet is considered. The probability is a floating-point number.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Ecn, Random, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, MTU, POSITIVE};
use crate::dualpi2::{DualPi2Config, State};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

const SOURCE: &str = "De Schepper et al. 2016; `sch_pi2`";

configuration! {
/// Parameters of a PI2 queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Pi2Config {
    /// The most packets that wait; further ones are refused. Default: 1000.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), SOURCE);
    /// The queueing delay to settle at. Default: 20 ms.
    pub target: Span = Span::from_millis(20) => (POSITIVE, SOURCE);
    /// Time between two updates of the probability. Default: 30 ms.
    pub tupdate: Span = Span::from_millis(30) => (POSITIVE, SOURCE);
    /// Weight of the delay's distance from `target`, in Hz. Default: 10/16.
    pub alpha: f64 = 10.0 / 16.0 => (Domain::Number(0.0, 256.0, "Hz"), SOURCE);
    /// Weight of the delay's change since the last update, in Hz. Default: 100/16.
    pub beta: f64 = 100.0 / 16.0 => (Domain::Number(0.0, 256.0, "Hz"), SOURCE);
    /// The ratio of the probability of scalable traffic to the root of that of classic traffic.
    /// Default: 2.
    pub coupling_factor: u32 = 2 => (Domain::Whole(1, 255, ""), SOURCE);
    /// Mark packets that can carry a mark instead of dropping them. Default: on.
    pub ecn: bool = true => (Domain::Flag, SOURCE);
    /// With `ecn`: ECT(0) is scalable traffic too. Default: off.
    pub any_ect: bool = false => (Domain::Flag, SOURCE);
    /// Scale the probability with the size of the packet over `mtu`. Default: off.
    pub bytemode: bool = false => (Domain::Flag, SOURCE);
    /// Bytes of the largest packet: nothing is dropped or marked while less than twice this waits.
    /// Default: 1514, an Ethernet frame.
    pub mtu: u32 = 1514 => (MTU, "an Ethernet frame");
} problem
}

impl Discipline for Pi2Config {
    fn marks(&self) -> bool {
        self.ecn
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl Pi2Config {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if self.any_ect && !self.ecn { Some("any_ect needs ecn") } else { self.controller().problem() }
    }

    /// The parameters of the controller.
    fn controller(&self) -> DualPi2Config {
        let &Pi2Config { target, tupdate, alpha, beta, coupling_factor, .. } = self;
        DualPi2Config { target, tupdate, alpha, beta, coupling_factor, ..DualPi2Config::default() }
    }

    /// Returns `true` if a packet of this codepoint is scalable traffic.
    fn is_scalable(&self, ecn: Ecn) -> bool {
        self.ecn && (matches!(ecn, Ecn::Ect1 | Ecn::Ce) || self.any_ect && ecn == Ecn::Ect0)
    }
}

/// A PI2 queue.
#[derive(Debug)]
pub struct Pi2<P> {
    config: Pi2Config,
    controller: DualPi2Config,
    state: State,
    next_update: Time,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Pi2<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`Pi2Config::problem`].
    pub fn new(config: Pi2Config, random: Random) -> Pi2<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        Pi2 {
            controller: config.controller(),
            state: State::START,
            next_update: Time::ZERO + config.tupdate,
            config,
            random,
            store: Store::new(),
        }
    }

    fn catch_up(&mut self, now: Time) {
        if self.next_update <= now {
            let oldest = self.store.front().map(|head| head.enqueued_at);
            self.next_update = self.state.catch_up(&self.controller, self.next_update, now, oldest);
        }
    }

    /// The probability of classic traffic before it is squared.
    fn root(&self) -> f64 {
        self.state.probability / f64::from(self.config.coupling_factor)
    }

    /// Whether an arrival is to be marked or dropped (`drop_early`).
    fn objects(&mut self, packet: &P) -> bool {
        if self.store.backlog().bytes < 2 * u64::from(self.config.mtu) {
            return false;
        }
        let (bytes, mtu) = (packet.wire_len(), self.config.mtu);
        let scale = if self.config.bytemode && bytes <= mtu { f64::from(bytes) / f64::from(mtu) } else { 1.0 };
        if self.config.is_scalable(packet.ecn()) {
            return self.random.chance(scale * self.state.probability);
        }
        let root = scale * self.root();
        self.random.chance(root) && self.random.chance(root)
    }
}

impl<P: Queued + Send> QueueDisc<P> for Pi2<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        if self.store.backlog().packets >= self.config.limit {
            self.store.refuse(packet, DropReason::Limit, drops);
        } else if self.objects(&packet) && !(self.config.ecn && self.store.mark(&mut packet)) {
            self.store.refuse(packet, DropReason::Early, drops);
        } else {
            self.store.admit(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.catch_up(now);
        self.store.send()
    }

    /// Other parameters at run time. The probability stays, the next update is due when it was, and
    /// heads beyond the new limit are discarded (`pi2_change`).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<Pi2Config>(config)?.clone();
        valid(config.problem())?;
        self.catch_up(now);
        self.controller = config.controller();
        let limit = config.limit;
        self.config = config;
        self.store.trim(drops, |store| store.backlog().packets > limit);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The probability of classic traffic, and the delay that it was last moved for.
    fn probe(&self) -> Probe {
        let root = self.root();
        Probe { probability: Some(root * root), delay: Some(self.state.delay), ..Probe::default() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("scalable_probability", Variable::Probability(self.state.probability));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Stub, stub};

    fn queue(config: Pi2Config) -> Pi2<Stub> {
        Pi2::new(config, Random::for_component(1, 0, "pi2"))
    }

    /// `calculate_probability`: p grows by alpha (delay - target) + beta (delay - old). A head
    /// waits from 0: at 30 ms 0.625 * 0.010 + 6.25 * 0.030 = 0.19375, at 60 ms 0.625 * 0.040 + 6.25
    /// * 0.030 = 0.2125 more. Classic: (0.40625 / 2)^2.
    #[test]
    fn the_probability_follows_the_delay() {
        let mut queue = queue(Pi2Config::default());
        let mut drops = Drops::new();
        queue.enqueue(Time::ZERO, stub(0, 1000), &mut drops);
        for (millis, expected) in [(29, 0.0), (30, 0.19375), (59, 0.19375), (60, 0.40625)] {
            queue.catch_up(Time::from_millis(millis));
            assert!((queue.state.probability - expected).abs() < 1e-12, "{millis}: {}", queue.state.probability);
        }
        let probability = queue.probe().probability.unwrap();
        assert!((probability - 0.203125 * 0.203125).abs() < 1e-12);
    }

    /// `drop_early`, at p = 0.4 and 10,000 arrivals of each kind: scalable traffic is marked 4000
    /// times (standard deviation 49), classic traffic marked or dropped 0.2^2 * 10,000 = 400 times
    /// (20); with `bytemode` and half an MTU 2000 (40) and 100 (10).
    #[test]
    fn classic_traffic_sees_the_square() {
        for (bytemode, ecn, bytes, expected, deviation) in [
            (false, Ecn::Ect1, 757, 4000, 49),
            (false, Ecn::Ce, 757, 4000, 49),
            (false, Ecn::Ect0, 757, 400, 20),
            (false, Ecn::NotEct, 757, 400, 20),
            (true, Ecn::Ect1, 757, 2000, 40),
            (true, Ecn::NotEct, 757, 100, 10),
            (true, Ecn::NotEct, 1515, 400, 20),
        ] {
            let mut queue = queue(Pi2Config { bytemode, limit: 100_000, ..Pi2Config::default() });
            let mut drops = Drops::new();
            (0..4).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
            queue.state.probability = 0.4;
            for id in 0..10_000 {
                queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id, bytes) }, &mut drops);
            }
            let (marked, dropped) = (queue.counters().marked.packets, drops.len() as u64);
            let (found, none) = if ecn == Ecn::NotEct { (dropped, marked) } else { (marked, dropped) };
            assert!(found.abs_diff(expected) <= 5 * deviation && none == 0, "{ecn:?} {bytes}: {marked} {dropped}");
        }
    }

    /// Less than two packets of 1514 bytes wait: nothing is dropped. Without `ecn` all is classic
    /// traffic and nothing is marked.
    #[test]
    fn short_queues_pass_and_without_ecn_all_is_dropped() {
        let mut queue = queue(Pi2Config { ecn: false, coupling_factor: 1, ..Pi2Config::default() });
        let mut drops = Drops::new();
        queue.state.probability = 1.0;
        for id in 0..5 {
            queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect1, ..stub(id, 1514) }, &mut drops);
        }
        assert_eq!((queue.backlog().packets, drops.len(), queue.counters().marked.packets), (2, 3, 0));
        assert!(Pi2Config { any_ect: true, ecn: false, ..Pi2Config::default() }.problem().is_some());
        assert!(Pi2Config { tupdate: Span::ZERO, ..Pi2Config::default() }.problem().is_some());
    }
}
