//! A queue discipline of one's own: PI2 for flows that expect drops or classic marks, from outside
//! of ackclock.
//!
//!     cargo run --release --example own_queue -- --scenario crates/cli/examples/own_queue.toml

use std::process::ExitCode;

use ackclock::OwnQueue;
use ackclock::aqm::{Books, Dequeue, Described, DropReason, Drops, Entry, Probe, QueueDisc, Store};
use ackclock::units::{Random, Span, Time};

/// PI2 (De Schepper et al., CoNEXT 2016; RFC 9332 appendix A): every `UPDATE` a linear law moves a
/// probability by how far the delay is from the target and by how much it has changed. Packets are
/// marked or dropped with its square, which is what makes the gains right for Reno and CUBIC.
#[derive(Debug)]
struct OwnPi2 {
    target: Span,
    limit: u64,
    store: Store<Described>,
    random: Random,
    probability: f64,
    /// The delay at the last update.
    before: Span,
    next_update: Time,
}

const UPDATE: Span = Span::from_millis(16);
/// Per second of delay and update (RFC 9332 figure 2).
const ALPHA: f64 = 0.16;
const BETA: f64 = 3.2;

impl OwnPi2 {
    fn new(target: Span, limit: u64, random: Random) -> OwnPi2 {
        let next_update = Time::ZERO + UPDATE;
        OwnPi2 { target, limit, store: Store::new(), random, probability: 0.0, before: Span::ZERO, next_update }
    }

    /// There is no timer: updates that were due are made up for, each at its own time.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let delay = self.store.front().map_or(Span::ZERO, |head| at.since(head.enqueued_at));
            let (delay_s, before_s) = (delay.as_secs_f64(), self.before.as_secs_f64());
            let step = ALPHA * (delay_s - self.target.as_secs_f64()) + BETA * (delay_s - before_s);
            self.probability = (self.probability + step).clamp(0.0, 1.0);
            self.before = delay;
            self.next_update += UPDATE;
            if delay == Span::ZERO && self.probability == 0.0 {
                // Nothing changes until a packet comes.
                let idle = now.since(self.next_update).as_nanos() / UPDATE.as_nanos();
                self.next_update += UPDATE * idle;
            }
        }
    }
}

impl QueueDisc<Described> for OwnPi2 {
    fn enqueue(&mut self, now: Time, mut packet: Described, drops: &mut Drops<Described>) {
        self.catch_up(now);
        if self.store.backlog().packets >= self.limit {
            return self.store.refuse(packet, DropReason::Limit, drops);
        }
        let probability = self.probability * self.probability;
        if self.random.unit() < probability && !self.store.mark(&mut packet) {
            return self.store.refuse(packet, DropReason::Early, drops);
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<Described>) -> Dequeue<Described> {
        self.catch_up(now);
        self.store.send()
    }

    fn peek(&self) -> Option<&Entry<Described>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    fn probe(&self) -> Probe {
        Probe { probability: Some(self.probability * self.probability), delay: Some(self.before), ..Probe::default() }
    }
}

/// The queue of scenarios with `queue = "my_pi2"`, or `queue = { kind = "my_pi2", target_ms = 5 }`.
fn pi2() -> OwnQueue {
    let build = |values: &[f64], random| -> Box<dyn QueueDisc<Described>> {
        Box::new(OwnPi2::new(Span::from_nanos((values[0] * 1e6) as u64), values[1] as u64, random))
    };
    OwnQueue::new("my_pi2", build).parameter("target_ms", 15.0, 0.001..=10_000.0).parameter("limit", 1000.0, 1.0..=1e6)
}

fn main() -> ExitCode {
    ackclock::main_with(pi2())
}
