use super::*;
use crate::messages::trace::Message;

fn rate(bits: u64) -> Rate {
    Rate::from_bps(bits).unwrap()
}

fn random() -> Random {
    Random::for_component(1, 0, "messages")
}

/// The messages until `end`.
fn until(pattern: &Pattern, start: Time, end: Time) -> Vec<Message> {
    let mut messages = Messages::new(pattern, random(), start);
    std::iter::from_fn(|| messages.take(end)).collect()
}

/// Bit/s over a long time.
fn rate_over(pattern: &Pattern, length: Span) -> f64 {
    let start = Time::from_secs(3);
    let bytes: u64 = until(pattern, start, start + length).iter().map(|message| message.bytes).sum();
    bytes as f64 * 8.0 / length.as_secs_f64()
}

#[test]
fn a_constant_rate_keeps_its_times_exactly() {
    // 1000 bytes at 3 Mbit/s take 2,666,666.67 ns; three of them 8 ms.
    let messages = until(&Pattern::cbr(rate(3_000_000), 1000), Time::from_millis(5), Time::from_millis(21));
    let times: Vec<u64> = messages.iter().map(|message| message.at.as_nanos()).collect();
    assert_eq!(times, [5_000_000, 7_666_666, 10_333_333, 13_000_000, 15_666_666, 18_333_333, 21_000_000]);
    assert!(messages.iter().all(|message| message.bytes == 1000));
}

#[test]
fn messages_wait_for_their_time() {
    let mut messages = Messages::new(&Pattern::cbr(rate(8_000), 100), random(), Time::from_secs(1));
    assert_eq!((messages.next_at(), messages.take(Time::from_millis(999))), (Time::from_secs(1), None));
    assert_eq!(messages.take(Time::from_secs(1)), Some(Message { at: Time::from_secs(1), bytes: 100 }));
    assert_eq!((messages.next_at(), messages.take(Time::from_secs(1))), (Time::from_millis(1100), None));
}

#[test]
fn mean_rates_are_the_closed_forms() {
    let second = |mean: f64| Distribution::exponential(mean * 1e9).unwrap();
    let constant = |value: f64| Distribution::constant(value).unwrap();
    let pareto = Distribution::pareto_with_mean(0.5e9, 1.9, Some(50e9)).unwrap();
    let on_off = |on, off| Pattern::OnOff(OnOff::new(rate(1_000_000), 1000, on, off).unwrap());
    for (pattern, mean) in [
        (Pattern::cbr(rate(7_000_000), 1461), 7e6),
        (Pattern::Paced { rate: rate(2_000_000), size: Distribution::uniform(10.0, 3000.0).unwrap() }, 2e6),
        // On for a third of the time.
        (on_off(second(0.5), second(1.0)), 1e6 / 3.0),
        (on_off(constant(0.25e9), constant(0.75e9)), 250_000.0),
        (on_off(pareto, constant(0.5e9)), 500_000.0),
        // On for 7 ms at a time, with a message each 8 ms.
        (on_off(constant(7e6), constant(7e6)), 500_000.0),
        // 500 of 1250 bytes in a second.
        (Pattern::renewal(second(0.002), constant(1250.0)).unwrap(), 5e6),
        (Pattern::renewal(constant(2e6), Distribution::exponential(1250.0).unwrap()).unwrap(), 5e6),
        // 400 + 600 bytes in 5 ms.
        (Pattern::Trace(Trace::parse("0 400\n2ms 600").unwrap().repeated(Span::from_millis(5)).unwrap().into()), 1.6e6),
    ] {
        assert!((pattern.mean_rate().unwrap() / mean - 1.0).abs() < 1e-9, "{pattern:?}");
        let found = rate_over(&pattern, Span::from_secs(40_000));
        assert!((found / mean - 1.0).abs() < 0.01, "{pattern:?}: {found}");
    }
}

#[test]
fn a_source_is_silent_while_it_is_off() {
    let times = |on: f64, off: f64| -> Vec<u64> {
        let constant = |ms: f64| Distribution::constant(ms * 1e6).unwrap();
        // A message each 10 ms.
        let source = OnOff::new(rate(800_000), 1000, constant(on), constant(off)).unwrap();
        let found = until(&Pattern::OnOff(source), Time::ZERO, Time::from_millis(110));
        found.iter().map(|message| message.at.as_nanos() / 1_000_000).collect()
    };
    // On from 0 to 25 ms and from 55 to 80 ms: the first time leaves 5 ms until the message that is
    // due at 30 ms of the time that is on, 5 ms into the second one.
    assert_eq!(times(25.0, 30.0), [0, 10, 20, 60, 70, 110]);
    // What is due at the end of a time that is on opens the next one.
    assert_eq!(times(20.0, 30.0), [0, 10, 50, 60, 100, 110]);
    // Times that are on shorter than the time between messages: 4 ms of each 14.
    assert_eq!(times(4.0, 10.0), [0, 30, 70, 100]);
    // Never off.
    assert_eq!(times(20.0, 0.0), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110]);
}

#[test]
fn sources_without_progress_are_refused() {
    let constant = |value: f64| Distribution::constant(value).unwrap();
    // A message takes 8 ms, and a thousand times that are on 7.999 ms.
    let refused = OnOff::new(rate(1_000_000), 1000, constant(7_999.0), constant(0.0));
    assert_eq!(refused, Err(PatternError::HardlyOn));
    assert!(OnOff::new(rate(1_000_000), 1000, constant(8_000.0), constant(0.0)).is_ok());
    assert_eq!(Pattern::renewal(constant(0.5), constant(1.0)), Err(PatternError::Endless));
}

#[test]
fn times_between_poisson_messages_are_exponential() {
    let gap = Distribution::exponential(1e6).unwrap();
    let pattern = Pattern::renewal(gap, Distribution::constant(1.0).unwrap()).unwrap();
    let found = until(&pattern, Time::ZERO, Time::from_secs(1000));
    // 10^6 expected, with a standard deviation of 10^3; e^-2 of the gaps are over 2 ms.
    assert!((found.len() as f64 / 1e6 - 1.0).abs() < 0.004, "{}", found.len());
    let long = found.windows(2).filter(|pair| pair[1].at.since(pair[0].at) > Span::from_millis(2)).count();
    assert!((long as f64 / found.len() as f64 / 0.135_335 - 1.0).abs() < 0.01, "{long}");
}

#[test]
fn a_trace_is_played_as_written() {
    let trace = Trace::parse("# time size\n0.5 100\n0.5, 200\n750ms 1kB # the last one\n").unwrap();
    assert_eq!((trace.lasts(), trace.bytes(), trace.mean_rate()), (Span::from_millis(750), 1300, None));
    let played = |trace: Trace| -> Vec<(u64, u64)> {
        let found = until(&Pattern::Trace(trace.into()), Time::from_secs(1), Time::from_secs(3));
        found.iter().map(|message| (message.at.as_nanos() / 1_000_000, message.bytes)).collect()
    };
    let once = vec![(1500, 100), (1500, 200), (1750, 1000)];
    assert_eq!(played(trace.clone()), once);
    let again = trace.repeated(Span::from_secs(1)).unwrap();
    assert_eq!(played(again), [once, vec![(2500, 100), (2500, 200), (2750, 1000)]].concat());
}

#[test]
fn traces_say_what_is_wrong_with_them() {
    for (text, message) in [
        ("", "has no messages; expected lines of a time and a size, such as `0.02 1000` or `20ms 1kB`"),
        ("1\n", "line 1: expected a time and a size, such as `0.02 1000` or `20ms 1kB`"),
        ("0 1\nsoon 1\n", "line 2: `soon` is not a time: expected seconds, or a number with a unit such as `20ms`"),
        ("-1 1\n", "line 1: `-1` is not a time: expected seconds, or a number with a unit such as `20ms`"),
        ("1 0\n", "line 1: `0` is not a size: expected a number of bytes from 1, or one with a unit such as `1kB`"),
        ("1 3p\n", "line 1: `3p` is not a size: expected a number of bytes from 1, or one with a unit such as `1kB`"),
        ("2 1\n\n1 1\n", "line 3: the time is before that of the line above"),
    ] {
        assert_eq!(Trace::parse(text).unwrap_err().to_string(), message, "{text:?}");
    }
    let refused = Trace::parse("0 1\n2 1").unwrap().repeated(Span::from_secs(2));
    assert_eq!(refused, Err(MessageTraceError::Period { lasts: Span::from_secs(2) }));
}
