//! The cost of queues in a router: packets of three lengths through a byte FIFO, RED and BLUE, in
//! alternation.

use ackclock_aqm::{BlueConfig, FifoConfig, Limit, QueueSpec, RedConfig};
use anyhow::Result;

use crate::capacity::{Lossless, lossless, median, over};
use crate::lab::Lab;
use crate::live::Path;
use crate::{MeasureSettings, load};

/// Ethernet frames, of which 18 bytes are header and check sequence.
const FRAMES: [usize; 3] = [64, 512, 1518];

/// Faster than any packets come, so that the queue is passed through and never long.
const RATE: u64 = 40_000_000_000;

/// Nothing is dropped below this.
const LIMIT: u64 = 16 << 20;

pub(crate) fn measure(lab: &Lab, settings: MeasureSettings) -> Result<()> {
    let limit = Limit::Bytes(LIMIT);
    let red = RedConfig { limit: LIMIT, min: Some(LIMIT / 4), max: Some(LIMIT / 2), ..RedConfig::default() };
    let queues = [
        ("bfifo", QueueSpec::Bfifo(FifoConfig { limit })),
        ("red", QueueSpec::Red(red)),
        ("blue", QueueSpec::Blue(BlueConfig { limit, ..BlueConfig::default() })),
    ];
    println!("Queues that are passed through, UDP without offloads; {} rounds by turns.\n", settings.rounds);
    println!("  bytes  queue  without loss  CPU us at the highest load");
    for bytes in FRAMES {
        let (mut rates, mut costs): ([Vec<f64>; 3], [Vec<f64>; 3]) = Default::default();
        for _ in 0..settings.rounds {
            for (at, (name, queue)) in queues.iter().enumerate() {
                let path = Path { rate: Some(RATE), queue: queue.clone(), ..Path::free(false) };
                let Lossless { lossless, cost, .. } =
                    lossless(bytes - 18, |stream| over(lab, &path, settings, || load::udp(lab, stream)))?;
                println!("  {bytes:>5}  {name:<5}  {lossless:>10.0}/s  {cost:>6.2}");
                rates[at].push(lossless);
                costs[at].push(cost);
            }
        }
        for at in [1, 2] {
            let to_fifo = |values: &[Vec<f64>; 3]| median(&values[at]) / median(&values[0]);
            println!(
                "  {bytes:>5}  {} to bfifo, medians: {:.2} of the rate, {:.2} of the time",
                queues[at].0,
                to_fifo(&rates),
                to_fifo(&costs)
            );
        }
    }
    Ok(())
}
