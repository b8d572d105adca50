//! A congestion controller of one's own, run from a scenario: the guide in docs/extending.md quotes
//! this file.
//!
//!     cargo run --release --example own_controller -- --scenario crates/cli/examples/own_controller.toml

use std::process::ExitCode;

use ackclock::OwnController;
use ackclock::cc::{Ack, Arrival, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Signal, Verdict, Window};
use ackclock::units::Span;

/// Additive increase, multiplicative decrease by delay: once in a round trip, if even its shortest
/// RTT was longer than the shortest of the connection by more than `target`, the window is
/// multiplied by `beta`. All else is NewReno's.
#[derive(Debug)]
struct Aimd {
    target: Span,
    beta: f64,
    /// Owns the window and reacts to losses, marks, timeouts and idle times.
    reno: NewReno,
    /// The shortest RTT of the round trip that goes on.
    shortest: Option<Span>,
    /// The last round trip was too long; the next ACK is to act on it.
    too_long: bool,
    /// Until the last back-off is over there is no other.
    backing_off: bool,
}

impl Aimd {
    fn new(target: Span, beta: f64) -> Aimd {
        let reno = NewReno::new(NewRenoConfig::default());
        Aimd { target, beta, reno, shortest: None, too_long: false, backing_off: false }
    }
}

impl CongestionControl for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        // Without this, `on_arrival` is not called.
        Needs { arrivals: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        *self = Aimd::new(self.target, self.beta);
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_arrival(&mut self, f: &Flight, arrival: &Arrival) {
        if arrival.round.is_some()
            && let (Some(shortest), Some(base)) = (self.shortest.take(), f.min_rtt)
        {
            self.too_long = shortest > base + self.target;
        }
        self.shortest = self.shortest.into_iter().chain(arrival.rtt).min();
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if !std::mem::take(&mut self.too_long) || self.backing_off {
            return self.reno.on_ack(f, ack);
        }
        let reduced = (self.window().cwnd as f64 * self.beta) as u64;
        let reduced = reduced.max(2 * f.segment()).min(self.window().cwnd);
        self.reno.set_window(Window { cwnd: reduced, ssthresh: reduced.max(2 * f.segment()) });
        // The endpoint lets the window come down in step with the ACKs, and tells when it has.
        self.backing_off = true;
        Verdict::Reduced
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        // A loss, a mark or a timeout ends it as well as its own end.
        self.backing_off = false;
        self.reno.on_signal(f, signal);
    }
}

/// What scenarios may say: `cc = "aimd"`, or `cc = { kind = "aimd", target_ms = 5 }`.
fn main() -> ExitCode {
    let build = |values: &[f64], _random| -> Box<dyn CongestionControl> {
        Box::new(Aimd::new(Span::from_nanos((values[0] * 1e6) as u64), values[1]))
    };
    let aimd = OwnController::new("aimd", build).parameter("target_ms", 10.0, 0.001..=10_000.0).parameter(
        "beta",
        0.8,
        0.1..=0.99,
    );
    ackclock::main_with(aimd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_every_promise() {
        ackclock_testkit::keeps_every_promise(|| Box::new(Aimd::new(Span::from_millis(10), 0.8)));
    }
}
