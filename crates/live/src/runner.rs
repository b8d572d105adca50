//! Runs by the machine's clock: packets of devices pass through the engine in real time.

mod clock;
mod delays;
mod drive;
mod listener;
mod punctuality;
mod scheduling;
mod spin;
mod steering;
#[cfg(test)]
mod tests;
mod waiter;
mod watched;

use std::io;
use std::sync::Arc;

use ackclock_sim::Recorders;
use ackclock_sim::spec::{LiveSpec, NodeSpec, Priority, RunSpec, Scheduling, Spin};
use ackclock_trace::{LiveHost, LiveSummary};
use ackclock_units::{Span, Time};
use tokio::runtime::Runtime;

use crate::capture::CaptureWriter;
use crate::commands::Commands;
use crate::stacks::Stacks;
use crate::testbed::{Testbed, TunDevice, check};
use crate::{Engine, LiveError, Offload, Options, Outcome, Outgoing};
use drive::{Drive, Driven, LoopEnd, Port};
use listener::SignalListener;
pub(crate) use listener::{have_programs_heed_interrupts, interrupt, interrupted, listen};
use punctuality::{Processor, Punctuality};
use scheduling::Scheduled;

/// The time that draining may take beyond the longest delay of a path, for its queues.
const QUEUES: Span = Span::from_secs(5);

/// A longer spin than this compensates for no late wakeup.
const LONG_SPIN: Span = Span::from_micros(200);

impl Port for TunDevice {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        TunDevice::read(self, buffer)
    }

    fn offloads(&self) -> bool {
        TunDevice::offloads(self)
    }

    fn read_offloaded(&self, buffers: [&mut [u8]; 2]) -> io::Result<(usize, Offload)> {
        TunDevice::read_offloaded(self, buffers)
    }

    fn write(&self, packet: &Outgoing<'_>) -> io::Result<()> {
        TunDevice::write(self, packet.bytes, packet.rest, packet.offload)
    }

    fn check(&self) -> io::Result<()> {
        TunDevice::check(self)
    }
}

/// Runs `spec` in real time.
///
/// # Errors
/// A requirement is missing, or something could not be created; nothing has run then.
pub(crate) fn run(spec: &RunSpec, mut recorders: Recorders<'_>, options: &Options) -> Result<Outcome, LiveError> {
    let live = spec.live.as_deref().expect("a run with hosts outside");
    check(live)?;
    Scheduled::check(&live.scheduling)?;
    // A signal from here on leaves nothing behind.
    let mut listener = SignalListener::take().map_err(here("event loop"))?;
    // Ctrl-C is meant for the program that has the terminal.
    listener.leave_interrupts(live.commands.iter().any(|command| command.terminal)).map_err(here("signals"))?;
    if listener.heard() {
        return Err(LiveError::Interrupted);
    }
    let SignalListener { runtime, signals } = listener;
    let inside = runtime.enter();
    // Hosts with stacks alone need nothing of the machine.
    let has_devices = live.nodes.iter().any(|node| node.tun.is_some());
    let testbed = has_devices.then(|| Testbed::set_up(live).map(Arc::new)).transpose()?;
    let mut engine = Engine::new(spec);
    engine.world().start(&recorders);
    let stacks = Stacks::new(spec, &recorders);
    let capture = options.capture.as_deref().map(|path| CaptureWriter::create(path, spec, options.snap)).transpose()?;
    let ports: Vec<_> =
        (0..live.nodes.len()).filter_map(|node| Some((node, testbed.as_deref()?.device(node)?))).collect();
    let dropped_before: Vec<u64> = ports.iter().map(|&(node, _)| dropped(testbed.as_deref(), node)).collect();

    // Time 0 of both programs and loop.
    let commands = Commands::start(live, testbed.clone(), options.commands.clone())?;
    let mut drive = Drive::start((engine, stacks), ports, signals, capture, spec.duration, &live.scheduling)
        .map_err(here("timer"))?;
    drive.ends_with(commands.over());
    if let Some(watch) = &options.watch {
        drive.be_watched(watch.clone());
    }
    drive.takes_changes(options.control.clone());
    let (mut end, processor) = go(&mut drive, &runtime, &mut recorders, &live.scheduling)?;
    let ended = drive.now().min(Time::ZERO + spec.duration);
    let (changes, longest) = drive.no_more_changes();
    // Packets that arrive later are dropped unread.
    let dropped_until: Vec<u64> = drive.nodes().map(|node| dropped(testbed.as_deref(), node)).collect();
    if !matches!(end, LoopEnd::Over) {
        // Everything due by then counts as done, as in a replay, even if a device is gone.
        if let (Err(error), false) = (drive.pass(ended, &mut recorders), matches!(end, LoopEnd::Run(_))) {
            end = LoopEnd::Run(error);
        }
        drive.engine().world().end_at(ended);
    }
    let engine = drive.engine();
    if let (Err(error), false) = (engine.complete(&mut recorders), matches!(end, LoopEnd::Run(_))) {
        end = LoopEnd::Run(error);
    }
    let mut summary = engine.world().summary();
    summary.changes = changes;
    if live.drain && matches!(end, LoopEnd::Over | LoopEnd::Interrupted | LoopEnd::Program) {
        let _scheduled = Scheduled::set(&live.scheduling).ok();
        let drained = runtime.block_on(drive.drain(longest_delay(spec) + longest + QUEUES));
        if !matches!(drained, LoopEnd::Over | LoopEnd::Interrupted) {
            end = drained;
        }
    }
    summary.commands = commands.stop();
    let Driven { engine, mut stacks, ports, capture, punctuality, sleeps, spin, mut signals } = drive.finish();
    if matches!(end, LoopEnd::Interrupted) {
        signals.forget();
    }
    drop(inside);
    SignalListener { runtime, signals }.keep();
    let captured = capture.map_or(Ok(()), |capture| capture.finish(ended));
    let dropped = dropped_until.iter().zip(&dropped_before).map(|(until, before)| until.saturating_sub(*before));
    let mut hosts = counted(&engine, ports.iter().map(|port| port.refused).zip(dropped));
    stacks.report(ended, &mut hosts);
    summary.live =
        Some(live_summary(live, &punctuality, (sleeps, spin, processor), hosts, &engine, summary.duration_s));
    let broken_off = why(end, |index| &live.nodes[ports[index].node]).or(captured.err());
    summary.partial = broken_off.is_some();
    Ok(Outcome { summary, broken_off })
}

/// The counts of hosts, those behind devices combined with the packets that each device refused and
/// its kernel dropped.
fn counted(engine: &Engine, lost: impl Iterator<Item = (u64, u64)>) -> Vec<LiveHost> {
    let with = |(host, (refused, device_dropped)): (&LiveHost, (u64, u64))| LiveHost {
        refused,
        sent_packets: host.sent_packets.saturating_sub(refused),
        device_dropped,
        ..host.clone()
    };
    with_ports(engine.hosts(), lost).map(with).collect()
}

/// Hosts with what `ports` has, in order, for those behind devices.
fn with_ports<'h, T: Default>(
    hosts: impl Iterator<Item = &'h LiveHost>,
    mut ports: impl Iterator<Item = T>,
) -> impl Iterator<Item = (&'h LiveHost, T)> {
    hosts.map(move |host| (host, if host.tun.is_empty() { None } else { ports.next() }.unwrap_or_default()))
}

/// Runs the loop, with its thread's priority, and measures the processor time of the thread.
fn go(
    drive: &mut Drive<'_, TunDevice>,
    runtime: &Runtime,
    recorders: &mut Recorders<'_>,
    scheduling: &Scheduling,
) -> Result<(LoopEnd, Option<Processor>), LiveError> {
    // Threads that already exist keep their scheduling.
    let scheduled = Scheduled::set(scheduling)?;
    let before = Processor::of_this_thread();
    let end = runtime.block_on(drive.run(recorders));
    drop(scheduled);
    let processor = Processor::of_this_thread().zip(before).map(|(until, before)| until.since(before));
    Ok((end, processor))
}

/// The error that ended a run early.
fn why<'n>(end: LoopEnd, host: impl Fn(usize) -> &'n NodeSpec) -> Option<LiveError> {
    match end {
        LoopEnd::Over | LoopEnd::Program | LoopEnd::Capture => None,
        LoopEnd::Interrupted => Some(LiveError::Interrupted),
        LoopEnd::Gone(index, source) => Some(gone(host(index), source)),
        LoopEnd::Run(error) => Some(LiveError::Run(error)),
        LoopEnd::Sleep(source) => Some(here("event loop")(source)),
    }
}

/// The punctuality of the run, its hosts' counts, and its validity.
fn live_summary(
    live: &LiveSpec,
    punctuality: &Punctuality,
    (sleeps, spin, processor): (u64, Span, Option<Processor>),
    hosts: Vec<LiveHost>,
    engine: &Engine,
    duration_s: f64,
) -> LiveSummary {
    let cpu_s = processor.map(|processor| processor.used.as_secs_f64());
    let waited = processor.map(|processor| processor.waited);
    let advice = advice(&live.scheduling, waited, punctuality.behind());
    let mut invalid = punctuality.faults(live.lateness_limit, advice, &hosts);
    invalid.extend(engine.faults());
    LiveSummary {
        clock: clock::NAME,
        spin_ms: spin.as_millis_f64(),
        lateness_ms: punctuality.lateness(),
        unread_ms: punctuality.unread(),
        behind_s: punctuality.behind().as_secs_f64(),
        longest_stall_ms: punctuality.longest_stall().as_millis_f64(),
        sleeps,
        run_delay_ms: waited.map(Span::as_millis_f64),
        cpu_s,
        cpu_utilization: cpu_s.filter(|_| duration_s > 0.0).map(|used| used / duration_s),
        valid: invalid.is_empty(),
        invalid,
        hosts,
        ..LiveSummary::default()
    }
}

/// Advice for a run that was `behind` for so long and `waited` for a processor.
fn advice(scheduling: &Scheduling, waited: Option<Span>, behind: Span) -> &'static str {
    let crowded = waited.is_some_and(|waited| waited * 2 >= behind);
    match (crowded, scheduling) {
        (true, Scheduling { priority: Priority::Normal, .. }) => {
            "other programs had its processor: run.priority = \"realtime\" puts it before them, run.affinity elsewhere"
        }
        (true, _) => "other programs of real-time priority had its processor: run.affinity puts it elsewhere",
        (false, Scheduling { spin: Spin::Fixed(spin), .. }) if *spin < LONG_SPIN => {
            "it did not have to wait for a processor, but woke late: run.spin = \"auto\" makes up for that"
        }
        (false, Scheduling { spin: Spin::Auto, .. }) => {
            "it did not have to wait for a processor: have less traffic, or set run.spin = \"200us\" if it sleeps in between"
        }
        (false, _) => "it did not have to wait for a processor: have less traffic",
    }
}

/// The error of setting up something that belongs to no single host.
fn here(what: &str) -> impl Fn(io::Error) -> LiveError + use<> {
    let what = what.to_owned();
    move |source| LiveError::SetUp { host: "(all)".to_owned(), what: what.clone(), source }
}

/// An upper bound of the delay of any path, without queues: the sum over all links.
fn longest_delay(spec: &RunSpec) -> Span {
    let delays = spec.links.iter().map(|link| link.forward.delay.max(link.reverse.delay));
    delays.fold(Span::ZERO, |sum, delay| sum + delay)
}

/// Packets that the device of a host has dropped so far; 0 if the device is gone.
fn dropped(testbed: Option<&Testbed>, node: usize) -> u64 {
    testbed.and_then(|testbed| testbed.dropped(node).ok()).unwrap_or(0)
}

fn gone(node: &NodeSpec, source: io::Error) -> LiveError {
    LiveError::Device { host: node.name.clone(), tun: node.tun.clone().unwrap_or_default(), source }
}
