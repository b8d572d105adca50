//! A controller that reduces its window by itself, and what an ACK tells it. Segments of 1000
//! bytes, 100 ms round trips; the expectations follow FreeBSD's `tcp_do_segment` where no PRR
//! shapes the window.

use std::sync::{Arc, Mutex};

use ackclock_cc::{Ack, Arrival, CongestionControl, Flight, Needs, Signal, Verdict, Window};

use super::peer::full;
use super::*;
use crate::CaState;

/// The controller's next answer, and the calls that it received.
#[derive(Debug)]
struct Shared {
    window: Window,
    answer: Verdict,
    /// `A` for an ACK, `L`, `E`, `T` for a loss, an ECN echo, a timeout, `.` for the end of
    /// recovery.
    told: String,
    arrivals: Vec<Arrival>,
}

#[derive(Clone, Debug)]
struct Delay(Arc<Mutex<Shared>>);

impl Delay {
    /// A window of 10,000 bytes.
    fn open(config: Config) -> (Delay, Script) {
        let window = Window { cwnd: 10_000, ssthresh: Window::INFINITE };
        let (answer, told) = (Verdict::Continue, String::new());
        let delay = Delay(Arc::new(Mutex::new(Shared { window, answer, told, arrivals: Vec::new() })));
        let mut script = Script::controlled(config, Box::new(delay.clone())).connected();
        script.write(60_000);
        script.wait(100);
        assert_eq!(script.data().len(), 10);
        (delay, script)
    }

    /// The next ACK brings the window to 7000.
    fn answers(&self, answer: Verdict) {
        self.0.lock().unwrap().answer = answer;
    }

    fn told(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap().told)
    }

    fn tell(&self, what: char) {
        self.0.lock().unwrap().told.push(what);
    }

    fn arrival(&self) -> Arrival {
        self.0.lock().unwrap().arrivals.pop().unwrap()
    }
}

impl CongestionControl for Delay {
    fn name(&self) -> &'static str {
        "delay"
    }

    fn window(&self) -> Window {
        self.0.lock().unwrap().window
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: true, ..Needs::default() }
    }

    fn on_established(&mut self, _f: &Flight) {}

    fn take_over(&mut self, _window: Window) {}

    fn on_ack(&mut self, _f: &Flight, _ack: &Ack) -> Verdict {
        self.tell('A');
        let mut shared = self.0.lock().unwrap();
        if shared.answer != Verdict::Continue {
            shared.window = Window { cwnd: 7000, ssthresh: 7000 };
        }
        std::mem::replace(&mut shared.answer, Verdict::Continue)
    }

    fn on_signal(&mut self, _f: &Flight, signal: Signal) {
        self.tell(match signal {
            Signal::Loss => 'L',
            Signal::Ecn => 'E',
            Signal::Timeout { .. } => 'T',
            Signal::RecoveryEnd => '.',
            Signal::IdleRestart => return,
            _ => '?',
        });
    }

    fn on_arrival(&mut self, _f: &Flight, arrival: &Arrival) {
        self.0.lock().unwrap().arrivals.push(*arrival);
    }
}

fn without_prr() -> Config {
    Config { prr: Prr::Off, ..config() }
}

#[test]
fn without_prr_its_window_counts_at_once_and_acks_go_on() {
    let (delay, mut script) = Delay::open(without_prr());
    delay.answers(Verdict::Reduced);
    script.ack(2001);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Cwr, 7000));
    // 8 in flight, 7 allowed: nothing goes out before two have left the network.
    assert_eq!(script.data(), []);
    script.ack(3001);
    assert_eq!(script.data(), []);
    script.ack(4001);
    assert_eq!(script.data(), full(10_001, 1));
    assert_eq!(delay.told(), "AAA");
    // The data in flight then is acknowledged: the episode is over before the ACK grows the window.
    script.ack(10_001);
    assert_eq!(delay.told(), ".A");
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
}

#[test]
fn with_prr_the_window_comes_down_by_it_and_acks_wait() {
    let (delay, mut script) = Delay::open(Config { prr: Prr::Rfc6937, ..config() });
    delay.answers(Verdict::Reduced);
    script.ack(2001);
    script.ack(3001);
    assert_eq!((script.endpoint.sender().loss().state(), delay.told()), (CaState::Cwr, "A".to_owned()));
    // Rate by rate: an ACK of a segment lets at most one out, and not nothing at all.
    assert!(!script.data().is_empty());
    script.ack(10_001);
    assert_eq!(delay.told(), ".A");
}

#[test]
fn a_loss_in_its_own_reduction_is_no_second_signal() {
    let (delay, mut script) = Delay::open(without_prr());
    delay.answers(Verdict::Reduced);
    script.ack(1001);
    script.sack(1001, &[(2001, 5001)]);
    assert_eq!((script.endpoint.sender().loss().state(), delay.told()), (CaState::Recovery, "A".to_owned()));
    // The lost segment is sent again; ACKs do not go on in fast recovery.
    assert_eq!(script.data()[0], (1001, 2001));
    script.ack(6001);
    assert_eq!(delay.told(), "");
    assert!(delay.arrival().in_recovery);
    script.ack(script.endpoint.sender().sequence().nxt());
    assert_eq!(delay.told(), ".A");
}

#[test]
fn a_window_that_is_only_trimmed_is_no_episode() {
    let (delay, mut script) = Delay::open(without_prr());
    delay.answers(Verdict::Trimmed);
    script.ack(1001);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Open, 7000));
    script.sack(1001, &[(2001, 5001)]);
    assert_eq!((script.endpoint.sender().loss().state(), delay.told()), (CaState::Recovery, "AL".to_owned()));
}

#[test]
fn after_a_timeout_a_reduction_begins_no_other_episode() {
    for prr in [Prr::Off, Prr::Rfc6937] {
        let (delay, mut script) = Delay::open(Config { prr, ..config() });
        script.wait(2 * RTO);
        assert_eq!((script.endpoint.sender().loss().state(), delay.told().as_str()), (CaState::Loss, "T"));
        delay.answers(Verdict::Reduced);
        script.ack(1001);
        assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Loss, 7000));
        script.ack(2001);
        assert_eq!(delay.told(), "AA");
    }
}

#[test]
fn an_arrival_says_how_far_sack_reports() {
    let (delay, mut script) = Delay::open(without_prr());
    script.ack(1001);
    let plain = delay.arrival();
    assert_eq!((plain.ack, plain.acked, plain.sacked_to, plain.duplicate), (1001, 1000, None, false));
    script.sack(1001, &[(3001, 4001), (6001, 7001)]);
    let reported = delay.arrival();
    assert_eq!((reported.acked, reported.sacked_to, reported.duplicate), (0, Some(7001), true));
    // Blocks at or below the acknowledgment, and beyond what was sent, tell nothing.
    script.sack(5001, &[(2001, 3001), (5001, 6001), (90_001, 91_001)]);
    let odd = delay.arrival();
    assert_eq!((odd.ack, odd.sacked_to), (5001, None));
}
