//! For the tests of coupled controllers: connections with several subflows over links that lose
//! segments at random or when their windows exceed a capacity. A round trip is one step: all of a
//! window is acknowledged, one segment at a time, and the losses in it are one signal at its end.

use ackclock_units::{Random, Span, Time};

use super::{Shared, Subflow};
use crate::fixture::{MSS, ack, cwnd, flight};
use crate::{CongestionControl, Flight, NewReno, NewRenoConfig, Signal, Window};

/// When a link loses segments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// Each with this probability.
    Random(f64),
    /// The number of segments by which the windows of all flows on the way exceed this many.
    Above(u64),
}

/// A way for subflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Round-trip time, milliseconds.
    pub(crate) rtt: u64,
    pub(crate) loss: Loss,
}

struct Flow {
    cc: Box<dyn CongestionControl>,
    connection: usize,
    link: usize,
    /// When its next round trip ends, milliseconds.
    next: u64,
    una: u64,
    recovering: bool,
    delivered: u64,
}

pub(crate) struct Network {
    links: Vec<Link>,
    flows: Vec<Flow>,
    random: Random,
    now: u64,
}

/// A connection of the controllers that `make` makes, with a subflow over each of `over`, and a TCP
/// on each link: segments per second of the subflows, and of the TCPs.
pub(crate) fn beside_tcp(
    links: &[Link],
    over: &[usize],
    make: impl Fn() -> Box<dyn CongestionControl>,
) -> (Vec<f64>, Vec<f64>) {
    let mut network = Network::new(links);
    for &link in over {
        network.add(0, link, make());
    }
    for link in 0..links.len() {
        network.add(1 + link, link, single());
    }
    network.run(100);
    let mut rates = network.run(1500);
    let tcps = rates.split_off(over.len());
    (rates, tcps)
}

/// A TCP.
pub(crate) fn single() -> Box<dyn CongestionControl> {
    Box::new(NewReno::new(NewRenoConfig::default()))
}

/// Number of segments to be acknowledged until the window of `cc` changes.
pub(crate) fn until_change(cc: &mut dyn CongestionControl) -> u64 {
    let before = cwnd(cc);
    let changed = |_: &u64| {
        let _ = cc.on_ack(&flight(0, before), &ack(1, 100));
        cwnd(cc) != before
    };
    (1..=1_000_000).find(changed).expect("it changes")
}

/// A subflow with a window of `segments` and an RTT of `rtt` milliseconds.
pub(crate) fn subflow(segments: u64, rtt: u64) -> Subflow {
    let span = Some(Span::from_millis(rtt));
    let cwnd = segments * MSS;
    Subflow { cwnd, ssthresh: cwnd, mss: MSS as u32, srtt: span, min_rtt: span, ..Subflow::default() }
}

impl Network {
    pub(crate) fn new(links: &[Link]) -> Network {
        Network { links: links.to_vec(), flows: Vec::new(), random: Random::for_component(1, 0, "network"), now: 0 }
    }

    /// Adds a subflow of `connection` over `link`, in congestion avoidance.
    pub(crate) fn add(&mut self, connection: usize, link: usize, mut cc: Box<dyn CongestionControl>) {
        cc.on_established(&flight(0, 0));
        cc.take_over(Window { cwnd: 10 * MSS, ssthresh: 10 * MSS });
        let next = self.links[link].rtt;
        self.flows.push(Flow { cc, connection, link, next, una: 0, recovering: false, delivered: 0 });
    }

    /// Lets `secs` seconds pass; returns how many segments per second each flow has delivered in
    /// them.
    pub(crate) fn run(&mut self, secs: u64) -> Vec<f64> {
        let over = self.now + secs * 1000;
        for flow in &mut self.flows {
            flow.delivered = 0;
        }
        while let Some(which) = (0..self.flows.len()).min_by_key(|&which| self.flows[which].next) {
            if self.flows[which].next > over {
                break;
            }
            self.now = self.flows[which].next;
            self.round_trip(which);
        }
        self.now = over;
        self.flows.iter().map(|flow| flow.delivered as f64 / secs as f64).collect()
    }

    /// The link loses otherwise from now on.
    pub(crate) fn change(&mut self, link: usize, loss: Loss) {
        self.links[link].loss = loss;
    }

    /// The window of a flow, segments.
    pub(crate) fn cwnd(&self, which: usize) -> u64 {
        self.flows[which].cc.window().cwnd / MSS
    }

    fn round_trip(&mut self, which: usize) {
        let window = self.cwnd(which);
        let lost = self.lost(self.flows[which].link);
        let loses = (0..window).filter(|_| self.random.chance(lost)).count() > 0;
        let f = self.flight(which);
        if std::mem::take(&mut self.flows[which].recovering) {
            self.flows[which].cc.on_signal(&f, Signal::RecoveryEnd);
        }
        for _ in 0..window {
            self.couple(which);
            self.flows[which].una += MSS;
            let f = self.flight(which);
            let rtt = self.links[self.flows[which].link].rtt;
            let _ = self.flows[which].cc.on_ack(&f, &ack(1, rtt));
        }
        if loses {
            self.couple(which);
            let f = self.flight(which);
            self.flows[which].cc.on_signal(&f, Signal::Loss);
        }
        let link = self.links[self.flows[which].link];
        let flow = &mut self.flows[which];
        flow.recovering = loses;
        flow.delivered += window;
        flow.next += link.rtt;
    }

    /// The probability with which a segment on the link is lost.
    fn lost(&self, link: usize) -> f64 {
        match self.links[link].loss {
            Loss::Random(p) => p,
            Loss::Above(capacity) => {
                let on_it = |which: &usize| self.flows[*which].link == link;
                let all: u64 = (0..self.flows.len()).filter(on_it).map(|which| self.cwnd(which)).sum();
                all.saturating_sub(capacity) as f64 / all.max(1) as f64
            }
        }
    }

    fn flight(&self, which: usize) -> Flight {
        let flow = &self.flows[which];
        let rtt = Some(Span::from_millis(self.links[flow.link].rtt));
        let window = flow.cc.window().cwnd;
        Flight {
            now: Time::from_millis(self.now),
            in_flight: window,
            snd_una: flow.una,
            snd_nxt: flow.una + window,
            srtt: rtt,
            latest_rtt: rtt,
            min_rtt: rtt,
            ..flight(0, 0)
        }
    }

    fn couple(&mut self, which: usize) {
        let connection = self.flows[which].connection;
        let siblings: Vec<usize> =
            (0..self.flows.len()).filter(|&other| self.flows[other].connection == connection).collect();
        let subflows: Vec<Subflow> = siblings
            .iter()
            .map(|&other| {
                let Window { cwnd, ssthresh } = self.flows[other].cc.window();
                let rtt = self.links[self.flows[other].link].rtt;
                let shared = self.flows[other].cc.coupled().map_or_else(Shared::default, |cc| cc.shared());
                Subflow { cwnd, ssthresh, shared, ..subflow(0, rtt) }
            })
            .collect();
        let own = siblings.iter().position(|&other| other == which).expect("it is one of them");
        if let Some(cc) = self.flows[which].cc.coupled() {
            cc.couple(own, &subflows);
        }
    }
}
