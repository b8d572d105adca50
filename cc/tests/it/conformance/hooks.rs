//! The requests of each controller, and the results of undone reductions and idle times: the same
//! for all, by the numbers.

use ackclock_cc::{
    Ack, Arrival, CcSpec, CongestionControl, EcnFeedback, EcnUse, Flight, Needs, Sent, Signal, Verdict, Window,
};
use ackclock_units::{Span, Time};

use super::all;

const MSS: u64 = 1448;

/// At `millis`, with a window's worth in flight; round trips of 100 ms; an initial window of 10
/// segments.
fn flight(millis: u64, in_flight: u64) -> Flight {
    Flight {
        now: Time::from_millis(millis),
        mss: MSS as u32,
        in_flight: in_flight * MSS,
        cwnd_limited: true,
        snd_una: 0,
        snd_nxt: in_flight * MSS,
        srtt: Some(Span::from_millis(100)),
        latest_rtt: Some(Span::from_millis(100)),
        min_rtt: Some(Span::from_millis(100)),
        after_timeout: false,
        initial_window: 10 * MSS,
        paced: false,
        app_limited: false,
    }
}

/// All of them on a connection with a window of 40 segments, above its threshold of 30.
fn avoiding() -> impl Iterator<Item = Box<dyn CongestionControl>> {
    all().into_iter().map(|mut cc| {
        cc.on_established(&flight(0, 0));
        cc.take_over(Window { cwnd: 40 * MSS, ssthresh: 30 * MSS });
        cc
    })
}

fn timeout(repeated: bool) -> Signal {
    Signal::Timeout { repeated, kept: 0 }
}

/// A controller that measures by ACKs has to see them, one that measures enhanced RTTs the
/// departures as well; the codepoint is RFC 8257's and RFC 9331's; a controller that rules the
/// window says so.
#[test]
fn each_asks_for_what_it_uses() {
    let arrivals = Needs { arrivals: true, ..Needs::default() };
    let enhanced = Needs { arrivals: true, departures: true, ..Needs::default() };
    let mut names = Vec::new();
    for cc in all() {
        let expected = match cc.name() {
            "htcp" | "westwood" => arrivals,
            "cdg" if cc.inspect().enhanced_rtt.is_none() => arrivals,
            "cdg" => Needs { recovery_acks: true, ..enhanced },
            "hd" | "chd" => enhanced,
            "vegas" if cc.inspect().enhanced_rtt.is_none() => Needs { reno_halving: true, ..arrivals },
            "vegas" => Needs { reno_halving: true, ..enhanced },
            "dctcp" => Needs { ecn: EcnUse::All, ..arrivals },
            "prague" => Needs { whole_control: true, ecn: EcnUse::Scalable, ..Needs::default() },
            "bbr" => Needs { delivery_rate: true, departures: true, whole_control: true, ..Needs::default() },
            "lia" | "olia" | "balia" | "wvegas" => Needs { siblings: true, ..Needs::default() },
            "newreno" | "scalable" => Needs { reno_halving: true, ..Needs::default() },
            // The others are called for their reactions alone.
            _ => Needs::default(),
        };
        assert_eq!(cc.needs(), expected, "{}", cc.name());
        names.push(cc.name());
    }
    names.sort_unstable();
    names.dedup();
    let mut table = CcSpec::NAMES.to_vec();
    table.sort_unstable();
    assert_eq!(names, table);
}

/// A segment sent at 1000 ms and acknowledged at 1100 ms: 101 ticks of a millisecond (ertt counts
/// both ends).
#[test]
fn enhanced_round_trips_are_shown_by_those_that_measure_them() {
    for mut cc in avoiding() {
        cc.on_sent(&flight(1000, 0), &Sent { seq: 0, bytes: MSS as u32 });
        let arrival = Arrival { ack: MSS, acked: MSS, delivered: MSS, ..Arrival::default() };
        cc.on_arrival(&flight(1100, 1), &arrival);
        let measures = cc.needs().arrivals && cc.needs().departures;
        let Some(measured) = cc.inspect().enhanced_rtt else {
            assert!(!measures, "{}", cc.name());
            continue;
        };
        assert!(measures, "{}", cc.name());
        assert_eq!(measured.measurements, 1, "{}", cc.name());
        // One configuration has the finest of clocks, on which there is no tick to multiply.
        assert!([Span::from_millis(101), Span::ZERO].contains(&measured.rtt), "{}: {:?}", cc.name(), measured.rtt);
    }
}

/// A timeout takes away the window that was there then: not the window before an earlier loss, and
/// not the one that a second timeout finds.
#[test]
fn an_undo_puts_back_what_the_last_reduction_took() {
    for mut cc in avoiding().filter(|cc| cc.name() != "bbr") {
        cc.on_signal(&flight(1000, 40), Signal::Loss);
        cc.on_signal(&flight(1100, 40), Signal::RecoveryEnd);
        let before = cc.window();
        cc.on_signal(&flight(2000, 20), timeout(false));
        assert_eq!(cc.window().cwnd, MSS, "{}", cc.name());
        cc.on_signal(&flight(2500, 20), timeout(true));
        cc.on_signal(&flight(2600, 20), Signal::Spurious);
        assert_eq!(cc.window(), before, "{}", cc.name());
        // The window is put back once.
        cc.on_signal(&flight(2700, 20), timeout(false));
        cc.on_signal(&flight(2800, 20), Signal::Spurious);
        assert_eq!(cc.window(), before, "{}", cc.name());
        cc.on_signal(&flight(2900, 20), Signal::Ecn);
        let reduced = cc.window();
        cc.on_signal(&flight(3000, 20), Signal::Spurious);
        assert_eq!(cc.window(), reduced, "{}: a mark is not undone", cc.name());
    }
}

/// RFC 5681 section 4.1: the restart window is the initial window. Controllers that rule their
/// window keep it (Linux does nothing for them then).
#[test]
fn idle_time_brings_the_window_down_to_the_initial_one() {
    for mut cc in avoiding() {
        let rules = cc.needs().whole_control;
        cc.on_signal(&flight(10_000, 0), Signal::IdleRestart);
        let expected = if rules { 40 } else { 10 };
        assert_eq!(cc.window().cwnd, expected * MSS, "{}", cc.name());
    }
}

/// Prague without Accurate ECN is Reno in everything, idle time and recovery as well.
#[test]
fn prague_that_falls_back_is_reno() {
    for mut cc in avoiding().filter(|cc| cc.name() == "prague") {
        cc.on_ecn(EcnFeedback::Classic);
        assert_eq!(cc.needs(), Needs::default());
        cc.on_signal(&flight(1000, 40), Signal::Loss);
        assert_eq!(cc.window(), Window { cwnd: 20 * MSS, ssthresh: 20 * MSS });
        cc.on_signal(&flight(1100, 20), Signal::RecoveryEnd);
        let ack = Ack { acked: 20 * MSS, delivered: 20 * MSS, ..Ack::default() };
        assert_eq!(cc.on_ack(&flight(1200, 20), &ack), Verdict::Continue);
        assert_eq!(cc.window().cwnd, 21 * MSS);
        cc.on_signal(&flight(10_000, 0), Signal::IdleRestart);
        // Three quarters of 21, which Linux remembers (`tcp_current_ssthresh`), are less than the
        // threshold.
        assert_eq!(cc.window(), Window { cwnd: 10 * MSS, ssthresh: 20 * MSS });
        assert_eq!(cc.pacing_rate(&flight(10_000, 0)), None);
    }
}
