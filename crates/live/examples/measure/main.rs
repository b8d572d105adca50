//! Measures a link between two kernels on this machine, as root, with iproute2, iperf3 and ping:
//!
//!     cargo run --release -p ackclock-live --example measure -- capacity
//!     cargo run --release -p ackclock-live --example measure -- accuracy
//!     cargo run --release -p ackclock-live --example measure -- recording
//!     cargo run --release -p ackclock-live --example measure -- forwarding
//!
//! `capacity` compares an unlimited link with a loop that only copies packets between two devices:
//! packets of 64 bytes per second, TCP at an MTU of 1500 bytes, processor time per packet.
//! `accuracy` compares delays and rates with the configured ones. `recording` is TCP over an
//! unlimited link, with and without a capture; each capture is replayed. `forwarding` compares a
//! byte FIFO, RED and BLUE with packets of 64, 512 and 1518 bytes. Options: `--spin 200us` (or
//! `auto`), `--rounds 3`, `--seconds 5`, `--busy 1` (processors that are kept busy meanwhile),
//! `--file FILE` (the path of the capture).

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

mod accuracy;
mod bare;
mod capacity;
mod forwarding;
mod lab;
mod live;
mod load;
mod recording;
#[path = "../../src/testbed/tun.rs"]
mod tun;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::Lab;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// The settings of the measurements.
#[derive(Clone, Copy)]
pub(crate) struct MeasureSettings {
    /// `None` is what the loop finds out by itself.
    pub(crate) spin: Option<Duration>,
    /// Repetitions of each measurement.
    pub(crate) rounds: usize,
    /// For how long each time.
    pub(crate) seconds: u64,
    /// Threads that compute without end.
    pub(crate) busy: usize,
}

/// Time of a processor.
pub(crate) type CpuTime = Duration;

/// Processor time of the calling thread.
pub(crate) fn thread_time() -> CpuTime {
    let of = |time: TimeVal| Duration::from_micros(time.num_microseconds() as u64);
    getrusage(UsageWho::RUSAGE_THREAD).map_or(Duration::ZERO, |usage| of(usage.user_time()) + of(usage.system_time()))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let mut settings = MeasureSettings { spin: None, rounds: 3, seconds: 5, busy: 0 };
    let mut file = std::env::temp_dir().join(format!("ackclock-measure-{}.pcapng", std::process::id()));
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} takes a value"))?;
        match name.as_str() {
            "--spin" => {
                let micros = (value != "auto").then(|| value.trim_end_matches("us").parse()).transpose()?;
                settings.spin = micros.map(Duration::from_micros);
            }
            "--rounds" => settings.rounds = value.parse()?,
            "--seconds" => settings.seconds = value.parse()?,
            "--file" => file = value.into(),
            "--busy" => settings.busy = value.parse()?,
            _ => bail!("{name} is no option"),
        }
    }
    let lab = Lab::new()?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..settings.busy {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = match what.as_str() {
            "capacity" => capacity::measure(&lab, settings),
            "accuracy" => accuracy::measure(&lab, settings),
            "forwarding" => forwarding::measure(&lab, settings),
            "recording" => recording::measure(&lab, settings, file),
            _ => Err(anyhow::anyhow!("one of: capacity, accuracy, forwarding, recording")),
        };
        stop.store(true, Ordering::Relaxed);
        result
    })
}
