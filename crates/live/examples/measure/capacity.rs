//! The capacity of an unlimited link, compared with that of a loop that only copies packets, in
//! alternation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lab::Lab;
use crate::live::{self, Path};
use crate::load::{self, PacketStream, Streamed};
use crate::{CpuTime, MeasureSettings, bare, thread_time};

/// Packets that a device keeps for us, as on the live clock.
const DEVICE_QUEUE: u32 = 16_384;

/// Packets of 64 bytes per second that are tried, in thousands; from the first one that loses
/// packets on, no further.
const RATES: &[u32] = &[50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 350, 400, 450, 500];

/// The longest packet or segment, and the header before it.
const LONGEST: usize = 65_535 + 10;

#[derive(Clone, Copy, PartialEq)]
enum Loop {
    Bare,
    Ours,
}

/// Loops, each with and without offloads; the ratio is of one to the one before.
const LOOPS: [(Loop, bool); 4] = [(Loop::Bare, false), (Loop::Ours, false), (Loop::Bare, true), (Loop::Ours, true)];

/// The result of a loop under a load.
pub(crate) struct Done<T> {
    load: T,
    packets: u64,
    time: CpuTime,
}

impl<T> Done<T> {
    /// Time of a processor for each packet, us.
    fn cost(&self) -> f64 {
        self.time.as_secs_f64() * 1e6 / self.packets as f64
    }
}

pub(crate) fn measure(lab: &Lab, settings: MeasureSettings) -> Result<()> {
    println!("A link without limits beside a loop that copies packets; {} rounds by turns.", settings.rounds);
    println!("\n64 bytes by UDP, 2 s each: the highest rate without a loss, and the rate at the highest load");
    println!("                        without loss   at most    CPU us");
    let mut udp: [Vec<f64>; 4] = Default::default();
    for _ in 0..settings.rounds {
        for (&kind, results) in LOOPS.iter().zip(&mut udp) {
            let Lossless { lossless, most, cost } =
                lossless(64, |stream| run(lab, kind, settings, || load::udp(lab, stream)))?;
            println!("{} {lossless:>12.0}/s {most:>9.0}/s {cost:>9.2}", name(kind));
            results.push(lossless);
        }
    }
    ratios(&udp);
    for congestion in ["cubic", "bbr"] {
        println!("\nTCP of the two kernels, {congestion}, MTU 1500 bytes, {} s", settings.seconds);
        println!("                             Gbit/s    CPU us");
        let mut tcp: [Vec<f64>; 4] = Default::default();
        for _ in 0..settings.rounds {
            for (&kind, results) in LOOPS.iter().zip(&mut tcp) {
                let done = run(lab, kind, settings, || load::tcp(lab, settings.seconds, congestion))?;
                println!("{} {:>14.3}   {:>9.2}", name(kind), done.load / 1e9, done.cost());
                results.push(done.load);
            }
        }
        ratios(&tcp);
    }
    Ok(())
}

/// The throughput of packets of one length, in packets per second.
pub(crate) struct Lossless {
    /// The highest rate without a loss.
    pub(crate) lossless: f64,
    /// The highest of all.
    pub(crate) most: f64,
    /// Time of a processor for each packet at the last rate, us.
    pub(crate) cost: f64,
}

/// Tries rates, 2 s each, until packets are lost.
pub(crate) fn lossless(bytes: usize, mut load: impl FnMut(PacketStream) -> Result<Done<Streamed>>) -> Result<Lossless> {
    let mut result = Lossless { lossless: 0.0, most: 0.0, cost: 0.0 };
    for &rate in RATES {
        let done = load(PacketStream { bytes, rate: f64::from(rate) * 1e3, time: Duration::from_secs(2) })?;
        result.most = result.most.max(done.load.rate());
        result.cost = done.cost();
        if done.load.received < done.load.sent {
            break;
        }
        result.lossless = result.lossless.max(done.load.rate());
    }
    Ok(result)
}

/// A load over a path of ackclock's.
pub(crate) fn over<T: Send>(
    lab: &Lab,
    path: &Path,
    settings: MeasureSettings,
    load: impl FnOnce() -> Result<T> + Send,
) -> Result<Done<T>> {
    let (load, outcome, time) = live::run(lab, path, settings, load)?;
    let packets = outcome.summary.live.iter().flat_map(|live| &live.hosts).map(|host| host.sent_packets).sum();
    Ok(Done { load, packets, time })
}

fn name((kind, offload): (Loop, bool)) -> &'static str {
    match (kind, offload) {
        (Loop::Bare, false) => "  copy                ",
        (Loop::Ours, false) => "  link                ",
        (Loop::Bare, true) => "  copy, with offloads ",
        (Loop::Ours, true) => "  link, with offloads ",
    }
}

fn ratios(results: &[Vec<f64>; 4]) {
    for (index, with) in [(0, ""), (2, ", with offloads")] {
        let [bare, ours] = [&results[index], &results[index + 1]];
        println!(
            "  link to copy{with}: {:.2} of the medians, {:.2} of the best",
            median(ours) / median(bare),
            best(ours) / best(bare)
        );
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn run<T: Send>(
    lab: &Lab,
    (kind, offload): (Loop, bool),
    settings: MeasureSettings,
    load: impl FnOnce() -> Result<T> + Send,
) -> Result<Done<T>> {
    match (kind, offload) {
        (Loop::Ours, _) => over(lab, &Path::free(offload), settings, load),
        (Loop::Bare, false) => {
            let devices = [lab.device(0, 1500, DEVICE_QUEUE)?, lab.device(1, 1500, DEVICE_QUEUE)?];
            beside(load, |stop| bare::copy(&devices, 2048, stop))
        }
        (Loop::Bare, true) => {
            let device = |host| lab.device_with_offloads(host, 1500, DEVICE_QUEUE);
            let devices = [device(0)?, device(1)?];
            beside(load, |stop| bare::copy(&devices, LONGEST, stop))
        }
    }
}

/// Copies while there is a load.
fn beside<T: Send>(
    load: impl FnOnce() -> Result<T> + Send,
    copy: impl FnOnce(&AtomicBool) -> std::io::Result<u64> + Send,
) -> Result<Done<T>> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let copies = scope.spawn(|| {
            let before = thread_time();
            copy(&stop).map(|packets| (packets, thread_time() - before))
        });
        let load = load();
        stop.store(true, Ordering::Relaxed);
        let Ok(copied) = copies.join() else { bail!("the loop failed") };
        let (packets, time) = copied?;
        Ok(Done { load: load?, packets, time })
    })
}
