//! Response functions: the average window that a controller reaches with one loss in every 1/p
//! packets, held against the formulas of the literature.
//!
//! The model is the one that the formulas assume: losses are deterministic, one after every 1/p
//! packets; the round-trip time is constant; ACKs arrive evenly over it; the window is always full;
//! recovery takes no time. The average window is what was sent per round-trip time.

use ackclock_cc::{
    Ack, CongestionControl, Cubic, CubicConfig, Flight, NewReno, NewRenoConfig, Signal, Verdict, Window,
};
use ackclock_units::{Span, Time};

const MSS: u64 = 1448;

/// The path, and how its receiver acknowledges.
#[derive(Clone, Copy)]
struct Model {
    /// Seconds.
    rtt: f64,
    /// Packets from one loss to the next.
    per_loss: u64,
    /// Segments that an ACK covers while the window is small.
    each: u64,
    /// A large window is acknowledged in so many parts: a finer grain changes nothing, and 10^8
    /// ACKs take their time.
    parts: u64,
    now: f64,
    una: u64,
}

impl Model {
    fn new(p: f64, rtt: f64) -> Model {
        Model { rtt, per_loss: (1.0 / p).round() as u64, each: 1, parts: 50, now: 0.0, una: 0 }
    }

    fn flight(&self, in_flight: u64) -> Flight {
        let rtt = Some(Span::from_secs_f64(self.rtt));
        Flight {
            now: Time::ZERO + Span::from_secs_f64(self.now),
            mss: MSS as u32,
            in_flight,
            cwnd_limited: true,
            snd_una: self.una,
            snd_nxt: self.una + in_flight,
            srtt: rtt,
            latest_rtt: rtt,
            min_rtt: rtt,
            after_timeout: false,
            initial_window: 10 * MSS,
            paced: false,
            app_limited: false,
        }
    }

    fn lose(&mut self, cc: &mut dyn CongestionControl) {
        let in_flight = cc.window().cwnd;
        cc.on_signal(&self.flight(in_flight), Signal::Loss);
        cc.on_signal(&self.flight(in_flight), Signal::RecoveryEnd);
    }

    /// From one loss to the next: packets and round-trip times.
    fn cycle(&mut self, cc: &mut dyn CongestionControl) -> (u64, f64) {
        let rtt = Some(Span::from_secs_f64(self.rtt));
        let (mut left, mut rounds) = (self.per_loss, 0.0);
        while left > 0 {
            let cwnd = cc.window().cwnd;
            let segments = self.each.max(cwnd / MSS / self.parts).min(left);
            let acked = segments * MSS;
            left -= segments;
            self.una += acked;
            rounds += acked as f64 / cwnd as f64;
            self.now += acked as f64 / cwnd as f64 * self.rtt;
            let ack = Ack { acked, delivered: acked, rtt, ..Ack::default() };
            assert_eq!(cc.on_ack(&self.flight(cwnd), &ack), Verdict::Continue);
        }
        self.lose(cc);
        (self.per_loss, rounds)
    }

    /// The average window in segments over `counted` cycles, after `skipped` that begin with a loss
    /// at `start` segments.
    fn average_window(mut self, cc: &mut dyn CongestionControl, start: f64, skipped: u32, counted: u32) -> f64 {
        let cwnd = (start * MSS as f64) as u64;
        cc.on_established(&self.flight(0));
        cc.take_over(Window { cwnd, ssthresh: cwnd });
        self.lose(cc);
        for _ in 0..skipped {
            self.cycle(cc);
        }
        let (packets, rounds) = (0..counted)
            .map(|_| self.cycle(cc))
            .fold((0, 0.0), |(packets, rounds), cycle| (packets + cycle.0, rounds + cycle.1));
        packets as f64 / rounds
    }
}

#[track_caller]
fn within(found: f64, expected: f64, share: f64, what: &str) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= share, "{what}: {found:.1}, expected {expected:.1} ({:+.1} %)", off * 100.0);
}

/// Mathis et al. 1997: per loss the window goes from W / 2 to W, one segment every `b` round-trip
/// times. It sends b * 3/8 * W^2 packets in b * W / 2 round trips, 3/4 W each; with 1/p packets
/// that is sqrt(3 / (2 b)) / sqrt(p). `b` is 1 without delayed ACKs, and where bytes are counted
/// with them, too; it is 2 where ACKs are counted that cover two segments.
fn square_root_law(b: f64, p: f64) -> f64 {
    (1.5 / b / p).sqrt()
}

#[test]
fn newreno_has_the_square_root_law() {
    for p in [1e-2, 1e-3, 1e-4] {
        for (abc, each, b) in [(true, 1, 1.0), (true, 2, 1.0), (false, 1, 1.0), (false, 2, 2.0)] {
            let law = square_root_law(b, p);
            let mut cc = NewReno::new(NewRenoConfig { abc, ..NewRenoConfig::default() });
            let found =
                Model { each, parts: u64::MAX, ..Model::new(p, 0.1) }.average_window(&mut cc, 2.0 * law, 50, 40);
            let what = format!("p {p}, ABC {abc}, {each} segments per ACK");
            if (abc, each, p) == (false, 2, 1e-2) {
                // The law takes a large window for granted; this one has 8 segments, and Linux 3.9
                // needs an ACK more than the window has segments for one of growth. With 100
                // packets a cycle goes from 5 to 11 segments: 2 * (6 + 7 + ... + 11) = 102 packets,
                // in 2 * (6/5 + 7/6 + ... + 11/10) = 13.69 round trips. That is 7.45, not 8.66.
                within(found, 102.0 / 13.69, 0.05, &what);
            } else {
                within(found, law, 0.1, &what);
            }
        }
    }
}

/// RFC 9438 section 5.1, tables 1 and 2: the average window of CUBIC, for each loss rate that of
/// C = 0.04, 0.4 and 4.
const C: [f64; 3] = [0.04, 0.4, 4.0];
const RTT_100_MS: [(f64, [f64; 3]); 7] = [
    (1e-2, [12.0, 12.0, 12.0]),
    (1e-3, [38.0, 38.0, 59.0]),
    (1e-4, [120.0, 187.0, 333.0]),
    (1e-5, [593.0, 1054.0, 1874.0]),
    (1e-6, [3332.0, 5926.0, 10_538.0]),
    (1e-7, [18_740.0, 33_325.0, 59_261.0]),
    (1e-8, [105_383.0, 187_400.0, 333_250.0]),
];
const RTT_10_MS: [(f64, [f64; 3]); 7] = [
    (1e-2, [12.0, 12.0, 12.0]),
    (1e-3, [38.0, 38.0, 38.0]),
    (1e-4, [120.0, 120.0, 120.0]),
    (1e-5, [379.0, 379.0, 379.0]),
    (1e-6, [1200.0, 1200.0, 1874.0]),
    (1e-7, [3795.0, 5926.0, 10_538.0]),
    (1e-8, [18_740.0, 33_325.0, 59_261.0]),
];

/// RFC 9438 section 5, the average window of CUBIC, with beta 0.7.
fn cubic_law(c: f64, rtt: f64, p: f64) -> f64 {
    (c * 3.7 / 1.2 * (rtt / p) * (rtt / p) * (rtt / p)).sqrt().sqrt()
}

/// The tables take the larger of CUBIC's law and Reno's, 1.2 / sqrt(p), for a whole cycle. CUBIC's
/// law is that of a window which the loss finds at W_max; then nothing is left for fast convergence
/// to act upon, which is therefore off, and the model starts there, at W_max = AVG / 0.925. In the
/// Reno-friendly region, where W_max does not matter, CUBIC is as by default.
///
/// CUBIC's among the 42 entries are met within 0.5 %. Reno's are 2 % higher here, because sqrt(1.5)
/// = 1.2247 and not 1.2, and up to 5 % in the last row before CUBIC's begin: there a cycle begins
/// on the curve and ends on Reno's line, above either law.
#[test]
fn the_average_windows_of_rfc_9438() {
    for (rtt, table) in [(0.1, RTT_100_MS), (0.01, RTT_10_MS)] {
        for (p, row) in table {
            for (c, expected) in C.into_iter().zip(row) {
                let (reno, cubic) = (1.2 / p.sqrt(), cubic_law(c, rtt, p));
                let on_the_curve = cubic > reno;
                let start = f64::max(reno / 0.85, cubic / 0.925);
                let mut cc = Cubic::new(CubicConfig { c, fast_convergence: !on_the_curve, ..CubicConfig::default() });
                let found = Model::new(p, rtt).average_window(&mut cc, start, 12, 8);
                let share = if on_the_curve { 0.01 } else { 0.05 };
                within(found, expected, share, &format!("RTT {rtt}, p {p}, C {c}"));
            }
        }
    }
}

/// Around W_max the curve is flat, so that a window that is off by x comes nearer by a multiple of
/// x^3 only: off by 1/sqrt(n) after n losses, from either side. With fast convergence it is always
/// from below, since a window below W_max is sent further down. That is why CUBIC, as it is by
/// default, has 8 % less than the tables say after 60 losses, and 2 % less after 2000.
#[test]
fn the_average_windows_of_rfc_9438_are_reached_slowly() {
    let (rtt, p) = (0.1, 1e-5);
    let law = cubic_law(0.4, rtt, p);
    let model = Model { parts: 20, ..Model::new(p, rtt) };
    for (fast_convergence, start, skipped, off) in
        [(true, 1.0, 40, -0.08), (true, 1.0, 2000, -0.015), (false, 1.2, 40, 0.10), (false, 1.2, 2000, 0.02)]
    {
        let mut cc = Cubic::new(CubicConfig { fast_convergence, ..CubicConfig::default() });
        let found = model.average_window(&mut cc, start * law / 0.925, skipped, 40);
        within(found, law * (1.0 + off), 0.01, &format!("fast convergence {fast_convergence}, after {skipped}"));
    }
}
