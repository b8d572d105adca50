use super::*;
use crate::coupled::network::subflow;
use crate::fixture::{MSS, cwnd, flight, ssthresh};

/// A sender whose window is full, and where it is in the stream.
struct Sender {
    cc: Wvegas,
    una: u64,
}

impl Sender {
    /// With `segments` of window, a threshold of `ssthresh` segments, and a shortest RTT of 100 ms.
    fn new(segments: u64, ssthresh: u64) -> Sender {
        let mut cc = Wvegas::new(WvegasConfig::default());
        cc.on_established(&flight(0, 0));
        cc.take_over(Window { cwnd: segments * MSS, ssthresh: ssthresh * MSS });
        let mut sender = Sender { cc, una: 0 };
        let _ = sender.acked(100);
        sender.cc.take_over(Window { cwnd: segments * MSS, ssthresh: ssthresh * MSS });
        sender
    }

    fn flight(&self) -> Flight {
        let in_flight = self.cc.window().cwnd;
        Flight { in_flight, snd_una: self.una, snd_nxt: self.una + in_flight, ..flight(0, 0) }
    }

    fn acked(&mut self, rtt: u64) -> Verdict {
        self.acked_after(Span::from_millis(rtt))
    }

    fn acked_after(&mut self, rtt: Span) -> Verdict {
        self.una += MSS;
        let ack = Ack { acked: MSS, delivered: MSS, rtt: Some(rtt), ..Ack::default() };
        self.cc.on_ack(&self.flight(), &ack)
    }

    /// A round trip in which every RTT is `rtt` milliseconds, and what its end comes to.
    fn round(&mut self, rtt: u64) -> Verdict {
        self.round_after(Span::from_millis(rtt))
    }

    fn round_after(&mut self, rtt: Span) -> Verdict {
        let ends_at = self.cc.state.expect("it measures").ends_at;
        loop {
            let verdict = self.acked_after(rtt);
            if self.una > ends_at {
                return verdict;
            }
        }
    }

    fn window(&self) -> (u64, u64) {
        (cwnd(&self.cc), ssthresh(&self.cc))
    }
}

#[test]
fn it_keeps_its_part_of_the_segments_in_the_queue() {
    let mut s = Sender::new(60, 2);
    // 60 * 10 / 110 = 5.5 wait: not less than 2, so that its part is set. It is alone: 10.
    assert_eq!(s.round(110), Verdict::Continue);
    assert_eq!((cwnd(&s.cc), s.cc.state.unwrap().alpha), (61, 10));
    assert!((s.cc.shared().rate - 60.0 / 0.11).abs() < 1e-9);
    // 61 * 19.9 / 119.9 = 10.1: ten. It stays.
    assert_eq!(s.round_after(Span::from_micros(119_900)), Verdict::Continue);
    assert_eq!(cwnd(&s.cc), 61);
    // 61 * 18 / 118 = 9.3: it grows. 62 * 19.9 / 119.9 = 10.3.
    assert_eq!(s.round(118), Verdict::Continue);
    assert_eq!(s.round_after(Span::from_micros(119_900)), Verdict::Continue);
    assert_eq!(cwnd(&s.cc), 62);
    // With a sibling that has twice its rate its part is a third: 3. It shrinks.
    let rate = 62.0 / 0.1199;
    let sibling = Subflow { shared: Shared { rate: 2.0 * rate, ..Shared::default() }, ..subflow(10, 100) };
    s.cc.couple(1, &[sibling, Subflow { shared: s.cc.shared(), ..sibling }]);
    assert_eq!(s.round_after(Span::from_micros(119_900)), Verdict::Trimmed);
    assert_eq!(s.cc.state.unwrap().alpha, 3);
    assert_eq!(s.window(), (61, 46));
    // No part is less than two.
    let fast = Subflow { shared: Shared { rate: 99.0 * rate, ..Shared::default() }, ..subflow(10, 100) };
    s.cc.couple(1, &[fast, sibling, fast]);
    assert_eq!(s.round(115), Verdict::Trimmed);
    assert_eq!((s.cc.state.unwrap().alpha, s.window()), (2, (60, 46)));
}

#[test]
fn a_queueing_delay_that_doubles_drains_the_queue() {
    let mut s = Sender::new(20, 2);
    // Nothing waits, and zero is not twice zero.
    assert_eq!(s.round(100), Verdict::Continue);
    assert_eq!(s.window(), (21, 15));
    // 21 * 5 / 105 = 1.
    assert_eq!(s.round(105), Verdict::Continue);
    assert_eq!(s.window(), (22, 16));
    // 22 * 10 / 110 = 2 of 10: 23. 10 ms are twice 5 ms: 23 * 100 / 110 / 2 = 10.45.
    assert_eq!(s.round(110), Verdict::Trimmed);
    assert_eq!(s.window(), (10, 16));
    // Slow start brings it back to the threshold, three quarters of 22, and a segment is added.
    assert_eq!(s.round(100), Verdict::Continue);
    assert_eq!(s.window(), (17, 16));
    // The next delay is the first again.
    assert_eq!(s.round(110), Verdict::Continue);
    assert_eq!(s.window(), (18, 16));
}

#[test]
fn slow_start_ends_when_more_than_gamma_wait() {
    let mut s = Sender::new(20, 1000);
    // The window doubles twice; 84 * 2 / 102 = 1.6 are no more than one segment.
    let _ = s.round(100);
    let _ = s.round(102);
    let reached = cwnd(&s.cc);
    assert!((80..=90).contains(&reached), "{reached}");
    // Then a quarter of each RTT is the queue: to reached * 3 / 4 and one.
    let sent = (s.cc.state.unwrap().ends_at - s.una) / MSS;
    for _ in 0..sent {
        s.acked_after(Span::from_nanos(133_333_333)).assert_continues();
    }
    let before = cwnd(&s.cc);
    assert_eq!(s.acked_after(Span::from_nanos(133_333_333)), Verdict::Trimmed);
    let expected = before * 3 / 4 + 1;
    assert_eq!(s.window(), (expected, expected - 1));
    // The threshold is below: it avoids.
    assert_eq!(s.acked(133), Verdict::Continue);
    assert_eq!(cwnd(&s.cc), expected);
}

impl Verdict {
    fn assert_continues(self) {
        assert_eq!(self, Verdict::Continue);
    }
}

#[test]
fn with_few_samples_it_is_reno() {
    let mut s = Sender::new(20, 2);
    // The first ACK of two in the round trip has no RTT: 20 ACKs, of which 2 measure 150 ms, grow
    // nothing until the round trip is over; that ACK is 1/20 of a segment, as was the connection's
    // first.
    let ends_at = s.cc.state.unwrap().ends_at;
    for number in 0.. {
        s.una += MSS;
        let rtt = (number < 2).then(|| Span::from_millis(150));
        let _ = s.cc.on_ack(&s.flight(), &Ack { acked: MSS, delivered: MSS, rtt, ..Ack::default() });
        if s.una > ends_at {
            break;
        }
    }
    assert_eq!((cwnd(&s.cc), s.cc.rate), (20, 0.0));
    assert!(format!("{:?}", s.cc.reno).contains(&format!("credit: {}", 2 * MSS)), "{:?}", s.cc.reno);
}

#[test]
fn it_begins_anew_after_a_loss_a_timeout_and_idle_time() {
    let mut s = Sender::new(60, 2);
    let _ = s.round(110);
    assert!(s.cc.shared().rate > 0.0);
    s.cc.on_signal(&s.flight(), Signal::Loss);
    assert_eq!((s.window(), s.cc.state), ((30, 30), None));
    assert!(s.cc.shared().rate > 0.0, "as in the kernel, until recovery is over");
    s.cc.on_signal(&s.flight(), Signal::RecoveryEnd);
    let state = s.cc.state.unwrap();
    assert_eq!((state.alpha, state.weight, s.cc.shared().rate), (2, 1.0, 0.0));

    let mut s = Sender::new(60, 2);
    let _ = s.round(110);
    s.cc.on_signal(&s.flight(), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((s.window(), s.cc.state, s.cc.shared().rate), ((1, 30), None, 0.0));
    // Until all is repaired it is Reno's slow start.
    s.una += MSS;
    let rebuilding = Flight { after_timeout: true, ..s.flight() };
    let _ = s.cc.on_ack(&rebuilding, &Ack { acked: MSS, delivered: MSS, ..Ack::default() });
    assert_eq!((s.window(), s.cc.state), ((2, 30), None));
    let _ = s.acked(100);
    assert!(s.cc.state.is_some());

    assert_eq!(s.cc.base, Some(Span::from_millis(100)));
    s.cc.on_signal(&s.flight(), Signal::IdleRestart);
    assert_eq!(s.cc.base, None);
}

/// Two subflows with 100 segments to wait, each on a link of `capacity` segments per second and 100
/// ms, and `noise` microseconds in every RTT but the first: in the end the part of each, and the
/// queueing delay in milliseconds without the noise.
fn queues(capacity: [u64; 2], noise: u64, couples: bool) -> [(u64, f64); 2] {
    let mut senders = capacity.map(|capacity| Sender::new(capacity / 12, 2));
    for sender in &mut senders {
        sender.cc.config.total_alpha = 100;
    }
    let path = Span::from_micros(100_000 + noise);
    let queueing = |s: &Sender, capacity: u64| Span::from_nanos(cwnd(&s.cc) * 1_000_000_000 / capacity) - path;
    for _ in 0..600 {
        for own in 0..2 {
            if couples {
                let subflows = [0, 1].map(|n| Subflow { shared: senders[n].cc.shared(), ..subflow(10, 100) });
                senders[own].cc.couple(own, &subflows);
            }
            let rtt = path + queueing(&senders[own], capacity[own]);
            let _ = senders[own].round_after(rtt);
        }
    }
    let state = |n: usize| senders[n].cc.state.expect("it measures");
    [0, 1].map(|n| (state(n).alpha, queueing(&senders[n], capacity[n]).as_millis_f64()))
}

#[test]
fn parts_converge_to_equal_queueing_delays() {
    // 6000 and 4000 segments per second: parts of 60 and 40, which wait for 10 ms each. RTTs are
    // longer by 9.5 ms than the shortest; 0.5 ms are queue, within two segments of 0.17 and 0.25
    // ms. Parts are rounded down.
    let [first, second] = queues([6000, 4000], 9500, true);
    assert!((59..=60).contains(&first.0) && (39..=40).contains(&second.0), "{first:?} {second:?}");
    assert!((first.1 - 0.5).abs() <= 0.4 && (second.1 - 0.5).abs() <= 0.5, "{first:?} {second:?}");
    // On their own they have 100 each: 100 / 6000 and 100 / 4000 s, less the noise of 13 ms.
    let [first, second] = queues([6000, 4000], 13_000, false);
    assert_eq!((first.0, second.0), (100, 100));
    assert!((first.1 - 3.7).abs() <= 0.4 && (second.1 - 12.0).abs() <= 0.5, "{first:?} {second:?}");
}

#[test]
fn without_noise_it_drains_again_and_again() {
    // One segment waits, then two, which is twice the delay: neither window ever has its part in
    // the queue.
    let [first, second] = queues([6000, 4000], 0, true);
    assert!(first.1 <= 0.34 && second.1 <= 0.5, "{first:?} {second:?}");
}
