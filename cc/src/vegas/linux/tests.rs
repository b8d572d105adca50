use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

/// Established, with `segments` of window and a threshold of `ssthresh` segments; 0 is none.
fn vegas(segments: u64, ssthresh: u64) -> LinuxVegas {
    let mut vegas = LinuxVegas::new(LinuxVegasConfig::default());
    vegas.on_established(&Flight { snd_nxt: 0, ..flight(0, 10) });
    let ssthresh = if ssthresh == 0 { Window::INFINITE } else { ssthresh * MSS };
    vegas.reno.set_window(Window { cwnd: segments * MSS, ssthresh });
    vegas
}

/// The sender at the ACK that ends round trip `number`.
fn at(number: u64, segments: u64) -> Flight {
    Flight { snd_una: number * 1000 * MSS, snd_nxt: number * 1000 * MSS + 999 * MSS, ..flight(number, segments) }
}

fn sample(micros: u64) -> Arrival {
    Arrival { acked: MSS, delivered: MSS, rtt: Some(Span::from_nanos(micros * 1000)), ..Arrival::default() }
}

/// A round trip with these samples, in microseconds, the last of which ends it.
fn round(vegas: &mut LinuxVegas, number: u64, samples: &[u64]) -> Verdict {
    let f = at(number, cwnd(vegas));
    for &micros in samples {
        vegas.on_arrival(&f, &sample(micros));
    }
    vegas.on_ack(&f, &ack(1, 100))
}

/// 40 ms, with the microsecond that `tcp_vegas_pkts_acked` adds.
const BASE: u64 = 39_999;

#[test]
fn the_window_moves_by_a_segment_outside_the_band() {
    // tcp_vegas_cong_avoid: diff = 20 * (rtt - 40) / 40 segments: 1 at 43.999 ms, below alpha.
    let mut v = vegas(20, 2);
    assert_eq!(round(&mut v, 1, &[BASE, 60_000, 60_000]), Verdict::Continue);
    assert_eq!((cwnd(&v), ssthresh(&v)), (21, 15)); // tcp_current_ssthresh: 10 + 5
    assert_eq!(round(&mut v, 2, &[43_799, 44_000, 43_900]), Verdict::Continue);
    assert_eq!(cwnd(&v), 22);
    // 22 * 3.637 / 40 = 2.0003: alpha is reached. 22 * 9.09 / 40 = 4.9995 is still 4.
    let _ = round(&mut v, 3, &[43_637, 43_637, 43_637]);
    let _ = round(&mut v, 4, &[49_089, 49_089, 49_089]);
    assert_eq!(cwnd(&v), 22);
    // 22 * 9.1 / 40 = 5.005: more than beta.
    assert_eq!(round(&mut v, 5, &[49_099, 49_099, 49_099]), Verdict::Trimmed);
    assert_eq!((cwnd(&v), ssthresh(&v)), (21, 16));
}

#[test]
fn slow_start_ends_at_what_the_path_holds() {
    // 40 segments: diff = 40 * 2 / 40 = 2 at 42 ms, more than gamma; the path holds
    // 40 * 40 / 42 = 38, and one is added.
    let mut v = vegas(40, 0);
    assert_eq!(round(&mut v, 1, &[BASE, 50_000, 50_000]), Verdict::Continue);
    assert_eq!(cwnd(&v), 41); // diff is 0: tcp_slow_start
    v.reno.set_window(Window { cwnd: 40 * MSS, ssthresh: Window::INFINITE });
    assert_eq!(round(&mut v, 2, &[41_999, 41_999, 41_999]), Verdict::Trimmed);
    assert_eq!((cwnd(&v), ssthresh(&v)), (39, 39));
    // Where slow start acts at the threshold, tcp_vegas_ssthresh leaves it a segment below; three
    // quarters of 39 are less.
    let mut v = vegas(40, 0);
    v.config.reno.past_ssthresh = true;
    let _ = round(&mut v, 1, &[BASE, 41_999, 41_999]);
    v.reno.set_window(Window { cwnd: 40 * MSS, ssthresh: Window::INFINITE });
    let _ = round(&mut v, 2, &[41_999, 41_999, 41_999]);
    assert_eq!((cwnd(&v), ssthresh(&v)), (39, 38));
}

#[test]
fn slow_start_and_growth_do_not_ask_for_the_use_of_the_window() {
    let mut v = vegas(10, 0);
    let unused = |number| Flight { cwnd_limited: false, ..at(number, 10) };
    // Within the round trip tcp_slow_start adds what is acknowledged.
    let _ = v.on_ack(&Flight { snd_una: 0, ..unused(1) }, &ack(2, 40));
    assert_eq!(cwnd(&v), 12);
    let mut v = vegas(10, 2);
    for _ in 0..3 {
        v.on_arrival(&unused(1), &sample(BASE));
    }
    let _ = v.on_ack(&unused(1), &ack(1, 40));
    assert_eq!(cwnd(&v), 11);
    // In congestion avoidance nothing grows before the round trip is over.
    let _ = v.on_ack(&Flight { snd_una: 1000 * MSS, ..unused(1) }, &ack(2, 40));
    assert_eq!(cwnd(&v), 11);
}

#[test]
fn with_two_samples_it_is_newreno() {
    // Reno asks whether the window was used.
    let mut v = vegas(10, 0);
    let f = Flight { cwnd_limited: false, ..at(1, 10) };
    for _ in 0..2 {
        v.on_arrival(&f, &sample(BASE));
    }
    let _ = v.on_ack(&f, &ack(1, 40));
    assert_eq!(cwnd(&v), 10);
    // The samples of the next round trip are counted anew.
    assert_eq!((v.samples, v.least, v.base), (0, u64::MAX, BASE + 1));
}

#[test]
fn it_measures_in_the_open_state_alone() {
    // tcp_vegas_state. A SACK block is Disorder: Reno's slow start, and no decision.
    let mut v = vegas(10, 0);
    let f = at(1, 10);
    v.on_arrival(&f, &Arrival { sacked_to: Some(2000 * MSS), ..sample(80_000) });
    let _ = v.on_ack(&f, &ack(1, 80));
    assert!(!v.enabled);
    assert_eq!(cwnd(&v), 11);
    // The next ACK reports none: a round trip begins.
    let f = at(2, 11);
    v.on_arrival(&f, &sample(BASE));
    let _ = v.on_ack(&f, &ack(1, 40));
    assert!(v.enabled);
    assert_eq!((v.round_end, v.samples), (f.snd_nxt, 0));
    // A loss and a mark stop it until the window has come down, a timeout until its repair is over.
    for signal in [Signal::Loss, Signal::Ecn] {
        v.on_signal(&f, signal);
        assert!(!v.enabled);
        v.on_signal(&f, Signal::RecoveryEnd);
        assert!(v.enabled);
    }
    v.on_signal(&f, Signal::Timeout { repeated: false, kept: 0 });
    let _ = v.on_ack(&Flight { after_timeout: true, ..f }, &ack(1, 40));
    assert!(!v.enabled);
    let _ = v.on_ack(&f, &ack(1, 40));
    assert!(v.enabled);
}

#[test]
fn an_empty_path_is_measured_anew() {
    // tcp_vegas_cwnd_event: CA_EVENT_TX_START, CA_EVENT_CWND_RESTART.
    let mut v = vegas(10, 2);
    v.on_arrival(&at(1, 10), &sample(BASE));
    v.on_sent(&at(1, 10), &Sent { seq: 0, bytes: MSS as u32 });
    assert_eq!((v.base, v.least, v.samples, v.round_end), (u64::MAX, u64::MAX, 0, at(1, 10).snd_nxt));
    v.on_arrival(&at(1, 10), &sample(BASE));
    v.on_signal(&at(2, 10), Signal::IdleRestart);
    assert_eq!((v.base, v.samples, v.round_end), (u64::MAX, 0, at(2, 10).snd_nxt));
}

#[test]
fn the_window_is_never_below_two_segments() {
    let mut v = vegas(2, 2);
    let _ = round(&mut v, 1, &[BASE, BASE, BASE]);
    v.reno.set_window(Window { cwnd: 2 * MSS, ssthresh: 2 * MSS });
    // 2 * 360 / 40 = 18 wait.
    assert_eq!(round(&mut v, 2, &[400_000, 400_000, 400_000]), Verdict::Continue);
    assert_eq!((cwnd(&v), ssthresh(&v)), (2, 1));
}
