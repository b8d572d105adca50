//! Measured delays and rates, compared with the configured ones.

use std::time::Duration;

use ackclock_trace::{Histogram, Lateness, LiveSummary};
use anyhow::{Context, Result};

use crate::MeasureSettings;
use crate::lab::Lab;
use crate::live::{self, Path};
use crate::load::{self, PacketStream};

const DELAY: Duration = Duration::from_millis(10);
/// Bytes of a packet, those of IP included.
const BYTES: usize = 1250;
/// Bytes of a packet of `ping`.
const PING: f64 = 84.0;

pub(crate) fn measure(lab: &Lab, settings: MeasureSettings) -> Result<()> {
    println!(
        "{} ms each way, spin {:?}, {} busy threads, {} s each; ms",
        DELAY.as_millis(),
        settings.spin,
        settings.busy,
        settings.seconds
    );
    println!("                             expected    p50      p99    late p50    p99    p99.9      max   sleeps");
    for rate in [1_000_000_u64, 10_000_000, 100_000_000] {
        let path = Path { rate: Some(rate), delay: DELAY, ..Path::free(true) };
        println!("{} Mbit/s", rate / 1_000_000);
        let time = Duration::from_secs(settings.seconds);
        let (times, outcome, _) = live::run(lab, &path, settings, || load::ping(lab, 100, time))?;
        let expected = 2.0 * (10.0 + PING * 8e3 / rate as f64);
        line("ping, 100 a second", expected, &times, outcome.summary.live.as_ref())?;

        // At half the rate no packet waits for another one.
        let half = rate as f64 / 2.0 / (BYTES as f64 * 8.0);
        let stream = PacketStream { bytes: BYTES, rate: half, time };
        let (streamed, outcome, _) = live::run(lab, &path, settings, || load::udp(lab, stream))?;
        let expected = 10.0 + BYTES as f64 * 8e3 / rate as f64;
        line("UDP, one way, half the rate", expected, &streamed.delay, outcome.summary.live.as_ref())?;

        let stream = PacketStream { rate: 2.4 * half, time: Duration::from_secs(settings.seconds.max(10)), ..stream };
        let (streamed, outcome, _) = live::run(lab, &path, settings, || load::udp(lab, stream))?;
        let got = streamed.rate() * BYTES as f64 * 8.0;
        println!(
            "  UDP, 1.2 times the rate: {:.5} Mbit/s arrive, {:+.4} %; {}",
            got / 1e6,
            (got / rate as f64 - 1.0) * 100.0,
            lateness(outcome.summary.live.as_ref())?
        );
    }
    Ok(())
}

fn line(what: &str, expected: f64, times: &Histogram, live: Option<&LiveSummary>) -> Result<()> {
    let at = |q| times.quantile(q).map_or(f64::NAN, |nanos| nanos / 1e6);
    println!("  {what:<27} {expected:>7.3} {:>8.3} {:>8.3} {}", at(0.5), at(0.99), lateness(live)?);
    Ok(())
}

fn lateness(live: Option<&LiveSummary>) -> Result<String> {
    let LiveSummary { lateness_ms: Lateness { p50, p99, p99_9, max, .. }, sleeps, .. } = live.context("no lateness")?;
    let of = |value: &Option<f64>| value.unwrap_or(f64::NAN);
    Ok(format!("{:>8.3} {:>8.3} {:>8.3} {:>8.3} {sleeps:>8}", of(p50), of(p99), of(p99_9), of(max)))
}
