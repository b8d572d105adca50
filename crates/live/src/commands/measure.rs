//! Numbers parsed from the output of programs.

use ackclock_sim::spec::CommandMeasure;
use ackclock_trace::{CommandSummary, Histogram, RoundTrips};

/// Parses a program's standard output.
///
/// # Errors
/// The reason why the output cannot be read.
pub(super) fn measure(kind: CommandMeasure, stdout: &[u8], summary: &mut CommandSummary) -> Result<(), String> {
    match kind {
        CommandMeasure::Json => {
            let value = serde_json::from_slice(stdout).map_err(|error| format!("its output is not JSON: {error}"))?;
            summary.json = Some(value);
        }
        CommandMeasure::Ping => {
            let rtt = ping(&String::from_utf8_lossy(stdout));
            // Six decimals, as in the distribution.
            let p99 = rtt.quantile(0.99).map(|nanos| nanos.round() / 1e6);
            summary.rtt_ms = Some(RoundTrips { distribution: rtt.distribution(1e-6), p99 });
            if rtt.samples() == 0 {
                return Err(String::from("its output has no round-trip times"));
            }
        }
    }
    Ok(())
}

/// The round-trip times in the output of `ping`, in nanoseconds, one for each answered request.
///
/// A second answer to a request (`(DUP!)`) is no sample; neither is a damaged one, which belongs to
/// another packet. `time<1 ms` counts as 1 ms, the bound that it states. Lines without a time (no
/// answer, unreachable, the closing statistics) and an incomplete last line are ignored.
fn ping(stdout: &str) -> Histogram {
    let mut rtt = Histogram::new();
    let answers = stdout.lines().filter(|line| !line.contains("(DUP!)") && !line.contains("(BAD CHECKSUM!)"));
    answers.filter_map(round_trip).for_each(|nanos| rtt.add(nanos));
    rtt
}

/// The time of `time=20.1 ms` in a line, in nanoseconds.
fn round_trip(line: &str) -> Option<u64> {
    let (before, after) = line.split_once("time=").or_else(|| line.split_once("time<"))?;
    if !before.ends_with(|c: char| c.is_whitespace()) {
        return None;
    }
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = after.split_at(end);
    let unit = unit.trim_start();
    // No ping prints any other unit; an incomplete line has none.
    if !unit.starts_with("ms") {
        return None;
    }
    let millis: f64 = number.parse().ok()?;
    // The conversion saturates.
    Some((millis * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stdout: &str) -> (u64, Option<f64>, Option<f64>) {
        let rtt = ping(stdout).distribution(1e-6);
        (rtt.samples, rtt.min, rtt.max)
    }

    #[test]
    fn a_round_trip_is_what_the_line_says() {
        assert_eq!(round_trip("64 bytes from 10.0.0.2: icmp_seq=1 ttl=63 time=20.1 ms"), Some(20_100_000));
        assert_eq!(
            round_trip("[1700000000.123456] 64 bytes from fd00::2: icmp_seq=1 ttl=64 time=0.045 ms"),
            Some(45_000)
        );
        assert_eq!(round_trip("64 bytes from 10.0.0.2: seq=0 ttl=64 time=1012 ms"), Some(1_012_000_000));
        assert_eq!(round_trip("Reply from 10.0.0.2: bytes=32 time<1ms TTL=128"), Some(1_000_000));
        assert_eq!(
            round_trip("64 bytes from 10.0.0.2: icmp_seq=2 ttl=63 time=99999999999999999999999999 ms"),
            Some(u64::MAX)
        );
    }

    #[test]
    fn lines_without_a_round_trip_are_left_out() {
        for line in [
            "",
            "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.",
            "no answer yet for icmp_seq=5",
            "From 10.0.0.1 icmp_seq=3 Destination Host Unreachable",
            "5 packets transmitted, 5 received, 0% packet loss, time 4005ms",
            "rtt min/avg/max/mdev = 20.0/20.1/20.3/0.1 ms",
            "uptime=5 ms",
            "time= ms",
            "64 bytes from 10.0.0.2: icmp_seq=9 ttl=63 time=2",
            "64 bytes from 10.0.0.2: icmp_seq=9 ttl=63 time=1.2.3 ms",
            "64 bytes from 10.0.0.2: icmp_seq=9 ttl=63 time=-5 ms",
        ] {
            assert_eq!(round_trip(line), None, "{line}");
        }
    }

    #[test]
    fn a_duplicate_is_no_sample_of_its_own() {
        let stdout = "64 bytes from 10.0.0.2: icmp_seq=1 ttl=63 time=20.0 ms\n\
                      64 bytes from 10.0.0.2: icmp_seq=1 ttl=63 time=40.0 ms (DUP!)\n\
                      64 bytes from 10.0.0.2: icmp_seq=3 ttl=63 time=24.0 ms\n\
                      64 bytes from 10.0.0.2: icmp_seq=4 ttl=63 time=9.0 ms (BAD CHECKSUM!)\n";
        assert_eq!(of(stdout), (2, Some(20.0), Some(24.0)));
    }

    #[test]
    fn the_99th_percentile_is_that_of_the_answers() {
        // The 99th percentile of 200 samples is the 198th, the smallest of three late ones. The
        // 95th is 20.
        let late = |n: usize| if n < 197 { 20.0 } else { 30.0 + n as f64 };
        let lines = (0..200).map(|n| format!("64 bytes from 10.0.0.2: icmp_seq={n} ttl=63 time={} ms\n", late(n)));
        let mut summary = CommandSummary::default();
        measure(CommandMeasure::Ping, lines.collect::<String>().as_bytes(), &mut summary).expect("round trips");
        let rtt = summary.rtt_ms.expect("measured");
        // Buckets are 0.2 % wide.
        let [p95, p99] = [rtt.distribution.quantiles.p95, rtt.p99].map(|value| value.expect("samples"));
        assert!((p95 - 20.0).abs() < 0.04 && (p99 - 227.0).abs() < 0.5, "{p95} {p99}");
        let json = serde_json::to_value(rtt).expect("JSON");
        assert_eq!((&json["p99"], &json["samples"]), (&p99.into(), &200.into()));
    }

    #[test]
    fn output_that_says_nothing_is_an_error() {
        let mut summary = CommandSummary::default();
        assert!(measure(CommandMeasure::Ping, b"ping: unknown host\n", &mut summary).is_err());
        assert_eq!(summary.rtt_ms.map(|rtt| (rtt.distribution.samples, rtt.p99)), Some((0, None)));
        assert!(measure(CommandMeasure::Json, b"{ \"end\": ", &mut summary).is_err());
        assert_eq!(summary.json, None);
        measure(CommandMeasure::Json, b" { \"end\": { \"bits_per_second\": 9.5e6 } }\n", &mut summary).expect("JSON");
        assert_eq!(summary.json, Some(serde_json::json!({ "end": { "bits_per_second": 9.5e6 } })));
    }
}
