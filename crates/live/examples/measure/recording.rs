//! The cost of a capture for an unlimited link, and the speed of its replay.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ackclock_live::{LiveError, Options};
use ackclock_sim::Recorders;
use ackclock_sim::spec::Clock;
use anyhow::{Result, bail};

use crate::lab::Lab;
use crate::live::{self, Path};
use crate::{MeasureSettings, load};

/// By turns without a capture and with one, in `file`; each capture is replayed.
pub(crate) fn measure(lab: &Lab, settings: MeasureSettings, file: PathBuf) -> Result<()> {
    println!("TCP of the two kernels (CUBIC), MTU 1500 bytes, {} s, without a capture and with one", settings.seconds);
    println!("                             Gbit/s    CPU us   MB written   replay: packets/s   Gbit/s");
    let path = Path::free(true);
    let mut ratios = Vec::new();
    for _ in 0..settings.rounds {
        let mut rates = [0.0, 0.0];
        for (recorded, measured) in [false, true].into_iter().zip(&mut rates) {
            let options = Options { capture: recorded.then(|| file.clone()), ..Options::default() };
            let ran = live::run_with(lab, &path, settings, &options, || load::tcp(lab, settings.seconds, "cubic"));
            let (rate, outcome, time) = match ran {
                Ok(ran) => ran,
                Err(error) if recorded => {
                    println!("  with a capture        {error}");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let packets: u64 =
                outcome.summary.live.iter().flat_map(|live| &live.hosts).map(|host| host.sent_packets).sum();
            let cost = time.as_secs_f64() * 1e6 / packets as f64;
            let name = if recorded { "with a capture" } else { "without one" };
            print!("  {name:<22}{:>11.3}   {cost:>9.2}", rate / 1e9);
            if recorded {
                let (replayed, bytes, took) = replay(lab, &path, settings, &file)?;
                let seconds = took.as_secs_f64();
                let written = fs::metadata(&file)?.len() as f64 / 1e6;
                let gbits = bytes as f64 * 8.0 / 1e9 / seconds;
                print!(" {written:>12.0} {:>19.0} {gbits:>8.2}", replayed as f64 / seconds);
            }
            println!();
            *measured = rate;
        }
        ratios.push(rates[1] / rates[0]);
    }
    fs::remove_file(&file)?;
    ratios.sort_by(f64::total_cmp);
    println!(
        "  with to without: {:.2} at the median, {:.2} at best",
        ratios[ratios.len() / 2],
        ratios[ratios.len() - 1]
    );
    Ok(())
}

/// Packets and bytes that hosts have sent, and how long their replay took.
fn replay(lab: &Lab, path: &Path, settings: MeasureSettings, file: &std::path::Path) -> Result<(u64, u64, Duration)> {
    let mut spec = live::spec(lab, path, settings)?;
    if let Some(live) = &mut spec.live {
        live.clock = Clock::Replay(file.to_owned());
    }
    #[expect(clippy::disallowed_methods, reason = "what it costs is what is asked for")]
    let begin = Instant::now();
    let outcome = ackclock_live::run(&spec, Recorders::default(), &Options::default())?;
    let took = begin.elapsed();
    if !matches!(outcome.broken_off, None | Some(LiveError::Interrupted)) {
        bail!("the replay ended early: {:?}", outcome.broken_off);
    }
    let Some(live) = outcome.summary.live else { bail!("it was no replay") };
    if !live.valid {
        bail!("the replay went another way: {}", live.invalid.join("; "));
    }
    let sum = |of: fn(&ackclock_trace::LiveHost) -> u64| live.hosts.iter().map(of).sum();
    Ok((sum(|host| host.received_packets), sum(|host| host.received_bytes), took))
}
