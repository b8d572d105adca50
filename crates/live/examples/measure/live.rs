//! Two kernels with a link of ackclock's between them.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_emulator::Impairments;
use ackclock_live::{LiveError, Options, Outcome};
use ackclock_sim::Recorders;
use ackclock_sim::spec::{
    Clock, DirectionSpec, LinkSpec, LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RouterSpec, RunSpec, Scheduling,
    Spin, Ties,
};
use ackclock_units::{Rate, Span};
use anyhow::{Result, bail};
use nix::sys::signal::{Signal, raise};

use crate::lab::{ADDRESSES, Lab, PREFIX};
use crate::{CpuTime, MeasureSettings, thread_time};

/// A link, the same both ways.
pub(crate) struct Path {
    /// Without, packets are sent at once.
    pub(crate) rate: Option<u64>,
    pub(crate) delay: Duration,
    /// Its devices have offloads.
    pub(crate) offload: bool,
    pub(crate) queue: QueueSpec,
}

impl Path {
    /// One without a rate, a delay and, in effect, a queue.
    pub(crate) fn free(offload: bool) -> Path {
        let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(1000) });
        Path { rate: None, delay: Duration::ZERO, offload, queue }
    }
}

pub(crate) fn spec(lab: &Lab, path: &Path, settings: MeasureSettings) -> Result<RunSpec> {
    let direction = DirectionSpec {
        rate: path.rate.and_then(Rate::from_bps),
        delay: Span::from_nanos(path.delay.as_nanos() as u64),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: path.queue.clone(),
        impairments: Impairments::default(),
        course: Default::default(),
    };
    let node = |host: usize| -> Result<NodeSpec> {
        Ok(NodeSpec {
            name: ["left", "right"][host].to_owned(),
            tun: Some(Lab::tun(host)),
            addresses: vec![(ADDRESSES[host].parse::<Ipv4Addr>()?.into(), PREFIX)],
            netns: Some(lab.name(host).to_owned()),
            mtu: 1500,
            ..Default::default()
        })
    };
    let router = RouterSpec { address: "192.0.0.8".parse()?, address6: "fd00::8".parse()?, mtu: None };
    Ok(RunSpec {
        title: String::new(),
        duration: Span::from_secs(3600),
        seed: 1,
        run: 0,
        ties: Ties::default(),
        links: vec![LinkSpec {
            name: "link".to_owned(),
            forward: direction.clone(),
            reverse: direction,
            medium: None,
            is_interface: false,
        }],
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node(0)?, node(1)?],
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0], split: None, router: Some(router) }],
            commands: Vec::new(),
            scheduling: Scheduling {
                spin: settings.spin.map_or(Spin::Auto, |spin| Spin::Fixed(Span::from_nanos(spin.as_nanos() as u64))),
                ..Scheduling::default()
            },
            offload: path.offload,
            lateness_limit: None,
            drain: false,
        })),
    })
}

/// Runs until `load` is over. Also gives what the loop took of a processor.
pub(crate) fn run<T: Send>(
    lab: &Lab,
    path: &Path,
    settings: MeasureSettings,
    load: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, Outcome, CpuTime)> {
    run_with(lab, path, settings, &Options::default(), load)
}

/// The same with these options.
pub(crate) fn run_with<T: Send>(
    lab: &Lab,
    path: &Path,
    settings: MeasureSettings,
    options: &Options,
    load: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, Outcome, CpuTime)> {
    let spec = spec(lab, path, settings)?;
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| -> Result<(Outcome, CpuTime), LiveError> {
            let before = thread_time();
            let outcome = ackclock_live::run(&spec, Recorders::default(), options)?;
            Ok((outcome, thread_time() - before))
        });
        let result = load();
        if !runs.is_finished() {
            raise(Signal::SIGTERM).map_err(io::Error::from)?;
        }
        let Ok(ran) = runs.join() else { bail!("the run failed") };
        let (outcome, time) = ran?;
        match &outcome.broken_off {
            Some(LiveError::Interrupted) => {}
            Some(error) => bail!("the run ended early: {error}"),
            None => bail!("the run was too short"),
        }
        Ok((result?, outcome, time))
    })
}
