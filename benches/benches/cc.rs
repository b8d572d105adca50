//! The cost of an ACK in each congestion controller: the hooks that it asked for, those of one
//! segment sent after it, and the pacing rate.

use std::hint::black_box;

use ackclock_cc::{
    Ack, Arrival, CongestionControl, EcnFeedback, Flight, Needs, RateSample, Sent, Signal, Verdict, Window,
};
use ackclock_tcp::CONTROLLERS;
use ackclock_tcp::profile::Profile;
use ackclock_units::{Random, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

const MSS: u64 = 1448;
/// Segments at which a queue overflows, and a loss brings the window down.
const FULL: u64 = 120;

/// A sender whose window is always full, on a path of 50 ms with a queue that its window fills.
struct Sender {
    cc: Box<dyn CongestionControl>,
    needs: Needs,
    flight: Flight,
    delivered: u64,
    round: u64,
    round_end: u64,
}

impl Sender {
    fn new(mut cc: Box<dyn CongestionControl>) -> Sender {
        let needs = cc.needs();
        let flight = Flight {
            now: Time::from_secs(1),
            mss: MSS as u32,
            in_flight: 0,
            cwnd_limited: true,
            snd_una: 0,
            snd_nxt: 60 * MSS,
            srtt: Some(Span::from_millis(60)),
            latest_rtt: Some(Span::from_millis(60)),
            min_rtt: Some(Span::from_millis(50)),
            after_timeout: false,
            initial_window: 10 * MSS,
            paced: false,
            app_limited: false,
        };
        cc.on_established(&flight);
        cc.on_ecn(EcnFeedback::Accurate);
        cc.take_over(Window { cwnd: 60 * MSS, ssthresh: 60 * MSS });
        let flight = Flight { paced: cc.pacing_rate(&flight).is_some(), ..flight };
        Sender { cc, needs, flight, delivered: 0, round: 0, round_end: 0 }
    }

    /// An ACK of a segment, and a segment after it.
    fn ack(&mut self) {
        let f = &mut self.flight;
        let window = self.cc.window();
        // A round trip is a window of ACKs; the queue is what exceeds 50 segments.
        let rtt = Span::from_millis(50 + (window.cwnd / MSS).saturating_sub(50).min(70));
        f.now += rtt / (window.cwnd / MSS).max(1);
        f.snd_una += MSS;
        f.in_flight = (f.snd_nxt - f.snd_una).min(window.cwnd);
        (f.srtt, f.latest_rtt) = (Some(rtt), Some(rtt));
        self.delivered += MSS;
        if self.needs.arrivals {
            let begins_round = f.snd_una >= self.round_end;
            if begins_round {
                self.round += 1;
                self.round_end = f.snd_nxt;
            }
            let arrival = Arrival {
                ack: f.snd_una,
                acked: MSS,
                delivered: MSS,
                echoed: Some(rtt),
                rtt: Some(rtt),
                round: begins_round.then_some(self.round),
                ..Arrival::default()
            };
            self.cc.on_arrival(f, &arrival);
        }
        let rate = self.needs.delivery_rate.then(|| RateSample {
            total_delivered: self.delivered,
            prior_delivered: self.delivered.saturating_sub(window.cwnd),
            delivered: window.cwnd.min(self.delivered),
            interval: Some(rtt),
            app_limited: false,
            in_flight_when_sent: window.cwnd,
            lost: 0,
        });
        let ack = Ack { acked: MSS, delivered: MSS, rtt: Some(rtt), rate, ..Ack::default() };
        let reduced = self.cc.on_ack(f, black_box(&ack)) == Verdict::Reduced;
        let full = window.cwnd > FULL * MSS && !self.needs.whole_control;
        if full {
            self.cc.on_signal(f, Signal::Loss);
        }
        if full || reduced {
            self.cc.on_signal(f, Signal::RecoveryEnd);
        }
        if self.needs.departures {
            self.cc.on_sent(f, &Sent { seq: f.snd_nxt, bytes: MSS as u32 });
        }
        if f.paced {
            black_box(self.cc.pacing_rate(f));
        }
        f.snd_nxt = (f.snd_una + self.cc.window().cwnd).max(f.snd_nxt + MSS);
    }
}

fn acks(c: &mut Criterion) {
    let hosts = Profile::all();
    let host = hosts.iter().find(|host| host.name == "rfc").expect("a profile of the RFCs");
    for controller in &CONTROLLERS {
        let mut sender = Sender::new(controller.build(host, Random::for_component(1, 0, "bench")));
        c.bench_function(&format!("ack/{}", controller.name), |b| b.iter(|| sender.ack()));
    }
}

criterion_group!(benches, acks);
criterion_main!(benches);
