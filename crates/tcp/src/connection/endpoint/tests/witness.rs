//! A controller that does nothing of its own and remembers what it is told.

use std::sync::{Arc, Mutex};

use ackclock_cc::{Ack, CongestionControl, Flight, Lost, Needs, Sent, Signal, Verdict, Window};
use ackclock_units::{Rate, Span};

use super::*;

/// The calls that the controller received.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) acks: Vec<Ack>,
    pub(super) losses: Vec<Lost>,
    pub(super) sent: Vec<Sent>,
    /// For each sample the number of calls before it.
    pub(super) samples: Vec<usize>,
    /// `L` for a loss told, `S` for a signal, `A` for an ACK.
    pub(super) order: String,
}

#[derive(Debug)]
struct Shared {
    window: Window,
    rate: Option<Rate>,
    log: Log,
}

/// The test's hold on it.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    shared: Arc<Mutex<Shared>>,
    needs: Needs,
}

impl Witness {
    /// A window of `cwnd` bytes that stays as it is.
    pub(super) fn new(cwnd: u64, needs: Needs) -> Witness {
        let window = Window { cwnd, ssthresh: Window::INFINITE };
        Witness { shared: Arc::new(Mutex::new(Shared { window, rate: None, log: Log::default() })), needs }
    }

    /// A controller that samples rates and rules the window.
    pub(super) fn ruling(cwnd: u64) -> Witness {
        Witness::new(cwnd, Needs { delivery_rate: true, whole_control: true, ..Needs::default() })
    }

    pub(super) fn set_window(&self, window: Window) {
        self.shared.lock().unwrap().window = window;
    }

    pub(super) fn set_cwnd(&self, cwnd: u64) {
        self.shared.lock().unwrap().window.cwnd = cwnd;
    }

    /// Sets the pacing rate from now on.
    pub(super) fn set_rate(&self, bytes_per_second: u64) {
        self.shared.lock().unwrap().rate = Rate::from_bps(8 * bytes_per_second);
    }

    /// The calls received since the last look.
    pub(super) fn take(&self) -> Log {
        std::mem::take(&mut self.shared.lock().unwrap().log)
    }

    /// The one ACK since the last look.
    pub(super) fn ack(&self) -> Ack {
        let acks = self.take().acks;
        assert_eq!(acks.len(), 1, "{acks:?}");
        acks[0]
    }

    /// A connection that it controls.
    pub(super) fn open(&self, config: Config) -> Script {
        Script::controlled(config, Box::new(self.clone())).connected()
    }
}

impl CongestionControl for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn window(&self) -> Window {
        self.shared.lock().unwrap().window
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        self.shared.lock().unwrap().rate
    }

    fn on_established(&mut self, _f: &Flight) {}

    fn take_over(&mut self, window: Window) {
        self.set_window(window);
    }

    fn on_ack(&mut self, _f: &Flight, ack: &Ack) -> Verdict {
        let mut shared = self.shared.lock().unwrap();
        shared.log.acks.push(*ack);
        shared.log.order.push('A');
        Verdict::Continue
    }

    fn on_signal(&mut self, _f: &Flight, signal: Signal) {
        if !matches!(signal, Signal::RecoveryEnd | Signal::IdleRestart) {
            self.shared.lock().unwrap().log.order.push('S');
        }
    }

    fn on_sample(&mut self, _f: &Flight, _rtt: Span, _cwnd: u64) {
        let mut shared = self.shared.lock().unwrap();
        let before = shared.log.order.len();
        shared.log.samples.push(before);
    }

    fn on_lost(&mut self, _f: &Flight, lost: &Lost) {
        let mut shared = self.shared.lock().unwrap();
        shared.log.losses.push(*lost);
        shared.log.order.push('L');
    }

    fn on_sent(&mut self, _f: &Flight, sent: &Sent) {
        self.shared.lock().unwrap().log.sent.push(*sent);
    }
}
