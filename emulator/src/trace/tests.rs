use proptest::prelude::*;

use super::*;

const MAHIMAHI: Format = Format::Mahimahi { bytes: OPPORTUNITY };

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn problem(text: &str, format: Format, repeats: bool) -> String {
    Trace::parse(text, format, repeats).unwrap_err().to_string()
}

#[test]
fn opportunities_repeat_after_the_last_one() {
    // Four in 5 ms, two of them at once; the last one of a round is at the time of no other.
    let trace = Trace::parse("1\n3\n3\n5\n", MAHIMAHI, true).unwrap();
    let times: Vec<_> = std::iter::successors(Some(trace.next_after(ms(0))), |&at| Some(trace.next_after(at)))
        .take(7)
        .map(|at| (at.as_nanos() / 1_000_000, trace.opportunities_at(at), trace.opportunities_by(at)))
        .collect();
    assert_eq!(times, [(1, 1, 1), (3, 2, 3), (5, 1, 4), (6, 1, 5), (8, 2, 7), (10, 1, 8), (11, 1, 9)]);
    // 4 * 1504 * 8 bits in 5 ms.
    assert_eq!((trace.mean_bps(), trace.lines(), trace.length()), (9_625_600, 4, Span::from_millis(5)));
}

#[test]
fn an_opportunity_at_time_0_coincides_with_the_last_one_of_the_round_before() {
    let trace = Trace::parse("0\n4", MAHIMAHI, true).unwrap();
    assert_eq!([0, 4, 8].map(|at| trace.opportunities_at(ms(at))), [1, 2, 2]);
    assert_eq!(trace.opportunities_by(ms(8)), 5);
    assert_eq!((trace.next_after(ms(0)), trace.next_after(ms(4))), (ms(4), ms(8)));
}

#[test]
fn without_repetition_there_are_no_more() {
    let trace = Trace::parse("2\n4", MAHIMAHI, false).unwrap();
    assert_eq!((trace.next_after(ms(3)), trace.next_after(ms(4))), (ms(4), Time::NEVER));
    assert_eq!(trace.opportunities_by(ms(1000)), 2);
    let trace = Trace::parse("0s 1mbit\n1s 2mbit", Format::Rates, false).unwrap();
    assert_eq!((trace.rate_at(ms(999)), trace.rate_at(ms(5000))), (Some(1_000_000), Some(2_000_000)));
    assert_eq!((trace.next_after(ms(0)), trace.next_after(ms(1000))), (ms(1000), Time::NEVER));
}

#[test]
fn rates_have_units_of_their_own_or_those_of_a_header() {
    let expected = Trace::parse("0s 1mbit\n500ms 0bit\n2s 3mbit", Format::Rates, true).unwrap();
    for text in [
        "time_ms,rate_kbit\n0,1000\n500,0\n2000,3000\n",
        "# a comment\n\n0s, 1 mbit\n0.5s, 0mbit # nothing\n2s, 3mbit",
        "time_s\trate_mbit\r\n0\t1\r\n0.5\t0\r\n2\t3\r\n",
        "time_s;rate_mbit\n0;1\n500ms;0\n2;3mbit",
    ] {
        assert_eq!(Trace::parse(text, Format::Rates, true).as_ref(), Ok(&expected), "{text}");
    }
    assert_eq!(
        [0, 499, 500, 1999, 2000, 2500].map(|at| expected.rate_at(ms(at)).unwrap()),
        [1_000_000, 1_000_000, 0, 0, 1_000_000, 0]
    );
    assert_eq!([0, 500, 2000].map(|at| expected.next_after(ms(at))), [ms(500), ms(2000), ms(2500)]);
    // Half a second of 1 Mbit/s in two.
    assert_eq!(expected.mean_bps(), 250_000);
}

#[test]
fn what_programs_write_is_rounded() {
    let text = "time_s rate_mbit\n0.0 2.52118518519\n0.810000181198 2.76248188976\n1.95000004768 1e-9\n2e1 0\n";
    let steps = [(0, 2_521_185), (810_000_181, 2_762_482), (1_950_000_048, 0), (20_000_000_000, 0)];
    let steps = steps.map(|(at, rate)| (Span::from_nanos(at), rate)).to_vec();
    let trace = Trace { kind: Kind::Rates(steps), ..Trace::constant(true) };
    assert_eq!(Trace::parse(text, Format::Rates, true), Ok(trace));
    let times = [1_500_000, 2_000_000_333_333].map(Span::from_nanos).to_vec();
    let trace = Trace { kind: Kind::Opportunities { times, bytes: 1504 }, ..Trace::constant(true) };
    assert_eq!(Trace::parse("1.5\n2000000.3333333333\n", MAHIMAHI, true), Ok(trace));
}

/// The delay in ms and the loss at a time in ms, and the time of the next step.
fn wire(trace: &Trace, at: u64) -> (Option<u64>, Option<f64>, Time) {
    let (delay, loss, next) = trace.wire_at(ms(at));
    (delay.map(|delay| delay.as_nanos() / 1_000_000), loss, next)
}

#[test]
fn a_path_has_rate_delay_and_loss() {
    let expected = Trace::parse("0s, 1mbit, 20ms, 0\n1s, 2mbit, 30ms, 0.25\n4s, 9mbit, 99ms, 1", Format::Path, true);
    let expected = expected.unwrap();
    for text in [
        "time_ms,rate_kbit,delay_ms,loss\n0,1000,20,0\n1000,2000,30,0.25\n4000,9000,99,1\n",
        "loss_percent;delay_s;rate_mbit;time_s # in another order\n0;0.02;1;0\n25;0.03;2;1\n100;0.099;9;4\n",
        "0s 1mbit 20ms 0%\n1s 2mbit 30ms 25%\n4s 9mbit 99ms 100%\n",
    ] {
        assert_eq!(Trace::parse(text, Format::Path, true).as_ref(), Ok(&expected), "{text}");
    }
    assert!(expected.has_rate() && expected.has_delay() && expected.has_loss());
    assert_eq!([0, 1000, 4000].map(|at| expected.rate_at(ms(at))), [Some(1_000_000), Some(2_000_000), Some(1_000_000)]);
    assert_eq!(wire(&expected, 999), (Some(20), Some(0.0), ms(1000)));
    assert_eq!(wire(&expected, 1000), (Some(30), Some(0.25), ms(4000)));
    assert_eq!(wire(&expected, 4500), (Some(20), Some(0.0), ms(5000)));
    // 20 ms for a second and 30 for three, and 1 Mbit/s and 2.
    assert_eq!((expected.mean_delay(), expected.mean_bps()), (Some(Span::from_micros(27_500)), 1_750_000));
    // A header may name fewer.
    let delays = Trace::parse("time_s delay_ms\n0 20\n1 30\n", Format::Path, false).unwrap();
    assert!(!delays.has_rate() && !delays.has_loss() && delays.least_delay() == Some(Span::from_millis(20)));
    assert_eq!(wire(&delays, 5000), (Some(30), None, Time::NEVER));
}

/// Rates of 2 s, delays of 3 and losses of 5 start together, and each begins again by itself.
#[test]
fn files_repeat_by_themselves() {
    let trace = Trace::parse("0s 1mbit\n1s 2mbit\n2s 1mbit", Format::Rates, true).unwrap();
    let trace = trace.with_delays("0s 10ms\n1s 20ms\n3s 10ms").unwrap();
    let trace = trace.with_losses("time_s,loss\n0,0\n4,0.5\n5,0\n").unwrap();
    assert_eq!([0, 1000, 3000].map(|at| trace.rate_at(ms(at))), [Some(1_000_000), Some(2_000_000), Some(2_000_000)]);
    assert_eq!(wire(&trace, 2500), (Some(20), Some(0.0), ms(3000)));
    assert_eq!(wire(&trace, 4000), (Some(20), Some(0.5), ms(5000)));
    assert_eq!(wire(&trace, 9500), (Some(10), Some(0.5), ms(10_000)));
    assert_eq!(trace.mean_delay(), Some(Span::from_nanos(50_000_000 / 3)));
    let constant = Trace::constant(false).with_delays("0s 10ms").unwrap();
    assert_eq!(
        (constant.mean_delay(), wire(&constant, 7)),
        (Some(Span::from_millis(10)), (Some(10), None, Time::NEVER))
    );
}

#[test]
fn errors_of_a_path_name_the_line() {
    let path = "a time, a rate, a delay and a loss from 0 to 1, such as `1.5s, 12mbit, 20ms, 0.01`, or a header such as \
                `time_ms,rate_kbit,delay_ms,loss` and numbers";
    for (text, message) in [
        ("0s, 1mbit", format!("line 1: `0s, 1mbit` has not four columns; expected {path}")),
        (
            "time_s,rate_mbit,loss\n0,1,0,0\n",
            format!("line 2: `0,1,0,0` has not the columns of the header; expected {path}"),
        ),
        ("0s 1mbit 2ms 1.5", format!("line 1: `1.5` is no probability; expected {path}")),
        ("0s 1mbit 2ms NaN", format!("line 1: `NaN` is no probability; expected {path}")),
        ("0s 1mbit 2ms 101%", format!("line 1: `101%` is no probability; expected {path}")),
        (
            "0s 1mbit 2 0",
            format!("line 1: `2`: the unit is missing; expected one of ns, us, ms, s, min, h; expected {path}"),
        ),
        ("1s 1mbit 2ms 0", "line 1: the first line is that from 1s on; expected a first line at time 0".to_owned()),
    ] {
        assert_eq!(problem(text, Format::Path, true), message, "{text}");
    }
    let refused = Trace::constant(true).with_delays("0s 10ms").unwrap_err();
    assert_eq!((refused.line, &*refused.problem), (Some(1), "the trace has no length"));
    let refused = Trace::constant(true).with_losses("0s 0\n1s -0.1").unwrap_err();
    assert_eq!((refused.line, &*refused.problem), (Some(2), "`-0.1` is no probability"));
}

#[test]
fn errors_name_the_line() {
    let rates = "a time and a rate, such as `1.5s, 12mbit`, or a header such as `time_ms,rate_kbit` and numbers";
    for (text, format, message) in [
        ("", MAHIMAHI, "the trace is empty; expected a line for each opportunity, with its time in milliseconds"),
        ("1\n\n2", MAHIMAHI, "line 2: an empty line; expected a time in milliseconds, such as `12`"),
        ("1\nx", MAHIMAHI, "line 2: `x` is not a number; expected a time in milliseconds, such as `12`"),
        ("3\n2", MAHIMAHI, "line 2: 2 ms is before the time of the line above; expected times in order"),
        (
            "99999999999999999999",
            MAHIMAHI,
            "line 1: `99999999999999999999` is too large; expected a time in milliseconds, such as `12`",
        ),
        (
            "0\n0",
            MAHIMAHI,
            "line 2: the trace has no length; expected a last time above 0, after which the trace starts again, or \
             `loop = false`",
        ),
        ("# none", Format::Rates, &format!("the trace is empty; expected {rates}")),
        ("0s", Format::Rates, &format!("line 1: `0s` has not two columns; expected {rates}")),
        ("0s, 1mbit, 2", Format::Rates, &format!("line 1: `0s, 1mbit, 2` has not two columns; expected {rates}")),
        (
            "0 1mbit",
            Format::Rates,
            &format!("line 1: `0`: the unit is missing; expected one of ns, us, ms, s, min, h; expected {rates}"),
        ),
        ("1s 1mbit", Format::Rates, "line 1: the first rate is that from 1s on; expected a first line at time 0"),
        (
            "0s 1mbit\n2s 1mbit\n2s 2mbit",
            Format::Rates,
            "line 3: 2s is not after the time of the line above, which is 2s; expected times in ascending order",
        ),
    ] {
        assert_eq!(problem(text, format, true), message, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*", repeats: bool) {
        let _ = (Trace::parse(&text, MAHIMAHI, repeats), Trace::parse(&text, Format::Rates, repeats));
        let _ = Trace::parse(&text, Format::Path, repeats);
        let _ = (Trace::constant(repeats).with_delays(&text), Trace::constant(repeats).with_losses(&text));
    }

    /// Arithmetic finds the same as going through the trace.
    #[test]
    fn any_time_is_found(gaps in prop::collection::vec(0u64..4, 1..20), now in 0u64..100) {
        let times: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let length = times[times.len() - 1];
        prop_assume!(length > 0);
        let text: String = times.iter().map(|at| format!("{at}\n")).collect();
        let trace = Trace::parse(&text, MAHIMAHI, true).unwrap();
        let all: Vec<u64> = (0..200).flat_map(|round| times.iter().map(move |at| round * length + at)).collect();
        prop_assert_eq!(trace.opportunities_by(ms(now)), all.iter().filter(|&&at| at <= now).count() as u64);
        prop_assert_eq!(trace.opportunities_at(ms(now)), all.iter().filter(|&&at| at == now).count() as u64);
        let next = all.iter().copied().filter(|&at| at > now).min().unwrap();
        prop_assert_eq!(trace.next_after(ms(now)), ms(next));
    }
}
