//! The log of mahimahi's mm-link for a link direction.
//!
//! # Source
//! mahimahi, `src/frontend/link_queue.cc` (`record_arrival`, `record_departure_opportunity`,
//! `record_departure`, `record_drop`), `scripts/mm-throughput-graph`, `scripts/mm-delay-graph`.
//!
//! # Departures
//! - mm-link logs a packet when an opportunity sends its last byte. Here it departs when it leaves
//!   the queue, so that delays are the sojourn times of all other records.
//! - Opportunities of 1504 bytes are spread evenly at the link's rate, or at that of each interval
//!   of `series.csv`. A link without a rate has none.
//! - Drops have lines on request alone: mm-throughput-graph refuses them.
//! - Sizes are those in the queue's books. mm-link's are of IP packets with the 4 bytes of the TUN
//!   device before them.

use std::io::{self, Write};

use ackclock_run::output::{QUEUE, SERIES};
use anyhow::bail;
use serde_json::Value;

use super::run::Run;
use super::sheet::{Sheet, missing};

/// Bytes of an opportunity.
const OPPORTUNITY: u64 = 1504;

/// The bits of one, in units of a bit per second times a nanosecond.
const WHOLE: u128 = OPPORTUNITY as u128 * 8 * 1_000_000_000;

/// Writes the log.
pub(super) fn write(run: &Run, link: &str, drops: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let ids = || run.list("links").iter().filter_map(|link| link["id"].as_str());
    let Some(summary) = run.list("links").iter().find(|found| found["id"] == link) else {
        let known: Vec<&str> = ids().collect();
        bail!("--link {link}: there is no such link direction; expected one of {}", known.join(", "));
    };
    let Some(mut queue) = run.sheet(QUEUE)? else { return missing("queue = true", &run.dir) };
    let [time, of, size, action, sojourn] = queue.columns(["time_s", "link", "size_bytes", "action", "sojourn_ms"])?;
    let mut has_row = seek(&mut queue, of, link)?;
    if !has_row && summary["offered"] != 0 {
        return missing(&format!("queue = [\"{link}\"]"), &run.dir);
    }
    let mut opportunities = Opportunities::new(rates(run, link, summary)?);
    header(run, link, summary, out)?;
    while has_row {
        let at = queue.required(time, 9)?;
        while let Some(opportunity) = opportunities.next_until(at) {
            writeln!(out, "{} # {OPPORTUNITY}", millis(opportunity))?;
        }
        let (now, bytes, waited) = (millis(at), queue.required(size, 0)?, queue.fixed(sojourn, 6)?);
        match queue.text(action) {
            "enqueue" => writeln!(out, "{now} + {bytes}")?,
            "dequeue" => {
                let arrived = millis(at.saturating_sub(waited.unwrap_or(0)));
                writeln!(out, "{now} - {bytes} {}", now - arrived)?;
            }
            "drop" => {
                // The dropped packet has arrived before, or does now.
                if waited.is_none() {
                    writeln!(out, "{now} + {bytes}")?;
                }
                if drops {
                    writeln!(out, "{now} d 1 {bytes}")?;
                }
            }
            "mark" => {}
            _ => return Err(queue.wrong(action, "`enqueue`, `dequeue`, `mark` or `drop`")),
        }
        has_row = seek(&mut queue, of, link)?;
    }
    while let Some(opportunity) = opportunities.next_until(u64::MAX) {
        writeln!(out, "{} # {OPPORTUNITY}", millis(opportunity))?;
    }
    Ok(())
}

/// Goes to the next row of a link; whether there is one.
fn seek(queue: &mut Sheet, column: usize, link: &str) -> anyhow::Result<bool> {
    while queue.next()? {
        if queue.text(column) == link {
            return Ok(true);
        }
    }
    Ok(false)
}

fn header(run: &Run, link: &str, summary: &Value, out: &mut dyn Write) -> io::Result<()> {
    let plain = |text: &str| text.replace(char::is_control, " ");
    writeln!(out, "# mahimahi mm-link ({link}) [{}]", plain(&run.title()))?;
    writeln!(out, "# command line: {}", plain(&run.origin()))?;
    writeln!(out, "# queue: {}", plain(summary["queue"].as_str().unwrap_or_default()))?;
    writeln!(out, "# init timestamp: 0\n# base timestamp: 0")
}

/// The millisecond in which a time is, as mahimahi's clock tells it.
fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}

/// A rate in bit/s, and from when until when it was, in ns.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    rate: u64,
}

/// The rate of a link over time: that of the intervals of a series, or one for the whole run.
fn rates(run: &Run, link: &str, summary: &Value) -> anyhow::Result<Vec<Stretch>> {
    let series = run.sheet(SERIES)?.map(|series| in_intervals(series, link)).transpose()?;
    let series = series.unwrap_or_default();
    if !series.is_empty() {
        return Ok(series);
    }
    let to = (run.summary["duration_s"].as_f64().unwrap_or(0.0) * 1e9) as u64;
    Ok(summary["rate_bps"].as_u64().map(|rate| Stretch { from: 0, to, rate }).into_iter().collect())
}

fn in_intervals(mut series: Sheet, link: &str) -> anyhow::Result<Vec<Stretch>> {
    let [from, to, kind, id, rate] = series.columns(["from_s", "to_s", "kind", "id", "rate_bps"])?;
    let mut stretches = Vec::new();
    while series.next()? {
        if (series.text(kind), series.text(id)) == ("link", link)
            && let Some(rate) = series.fixed(rate, 0)?
        {
            stretches.push(Stretch { from: series.required(from, 9)?, to: series.required(to, 9)?, rate });
        }
    }
    Ok(stretches)
}

/// When a link of these rates has sent another 1504 bytes' time.
#[derive(Debug)]
struct Opportunities {
    /// In reverse order; the last one from the time that was reached.
    stretches: Vec<Stretch>,
    /// The part of the next opportunity that has gathered.
    gathered: u128,
}

impl Opportunities {
    fn new(mut stretches: Vec<Stretch>) -> Opportunities {
        stretches.reverse();
        Opportunities { stretches, gathered: 0 }
    }

    /// The next one in ns, if it is not later than `until`.
    fn next_until(&mut self, until: u64) -> Option<u64> {
        while let Some(stretch) = self.stretches.last_mut() {
            let rate = u128::from(stretch.rate);
            let whole = rate * u128::from(stretch.to.saturating_sub(stretch.from));
            let lacking = WHOLE.saturating_sub(self.gathered);
            if whole < lacking || rate == 0 {
                self.gathered += whole;
                self.stretches.pop();
                continue;
            }
            let time = lacking.div_ceil(rate);
            // The time is not longer than the stretch, which has 64 bits.
            let at = stretch.from + time as u64;
            if at > until {
                return None;
            }
            self.gathered = rate * time - lacking;
            stretch.from = at;
            return Some(at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12.032 Mbit/s are an opportunity per ms; half of that is one in 2 ms, whenever it begins.
    #[test]
    fn opportunities_follow_the_rate() {
        let rate = 12_032_000;
        let stretch = |from: u64, to: u64, rate| Stretch { from: from * 1_000_000, to: to * 1_000_000, rate };
        let stretches = vec![stretch(0, 3, rate), stretch(3, 4, 0), stretch(4, 9, rate / 2), stretch(9, 10, rate)];
        let mut opportunities = Opportunities::new(stretches);
        let mut times = Vec::new();
        for until in 0..20 {
            while let Some(at) = opportunities.next_until(until * 500_000) {
                assert!(at <= until * 500_000);
                times.push(at);
            }
        }
        // At 9 ms half of one has gathered, and 9.5 ms completes it.
        assert_eq!(times, [1, 2, 3, 6, 8].map(|ms| ms * 1_000_000).into_iter().chain([9_500_000]).collect::<Vec<_>>());
        assert_eq!(opportunities.next_until(u64::MAX), None);
    }

    /// No time is lost to rounding: as many as the bits are worth, after any time.
    #[test]
    fn opportunities_add_up() {
        let seconds = 3600u64;
        for rate in [999_983, 7_654_321, 99_999_989] {
            let mut opportunities = Opportunities::new(vec![Stretch { from: 0, to: seconds * 1_000_000_000, rate }]);
            let count = std::iter::from_fn(|| opportunities.next_until(u64::MAX)).count() as u64;
            assert_eq!(count, rate * seconds / (OPPORTUNITY * 8), "{rate}");
        }
    }
}
