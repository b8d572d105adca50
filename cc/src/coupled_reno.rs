//! NewReno with a congestion avoidance that the subflows of a connection have in common (Multipath TCP):
//! [`Lia`](crate::Lia), [`Olia`](crate::Olia) and [`Balia`](crate::Balia) differ in their
//! [`Coupling`] alone.

use std::fmt::Debug;

use crate::coupled::{Coupled, Shared, Subflow};
use crate::{Ack, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Signal, Verdict, Window};

/// The connection's state as seen by a subflow with siblings.
#[derive(Clone, Copy, Debug)]
pub struct Siblings<'a> {
    /// The subflow itself.
    pub(crate) this: &'a Subflow,
    /// Its smoothed RTT, s.
    pub(crate) rtt: f64,
    /// Its rate, bytes per second.
    pub(crate) rate: f64,
    /// The rate of all subflows together, bytes per second.
    pub(crate) total: f64,
    /// All subflows, itself among them.
    pub(crate) subflows: &'a [Subflow],
}

impl Siblings<'_> {
    /// `None` if there is nothing to couple: unless the subflow at `own` and another one have an
    /// RTT.
    pub(crate) fn new(own: usize, subflows: &[Subflow]) -> Option<Siblings<'_>> {
        let this = subflows.get(own).filter(|this| this.cwnd > 0)?;
        let rates = || subflows.iter().filter_map(Subflow::rate);
        let (rtt, rate) = (this.rtt()?, this.rate()?);
        (rates().count() > 1).then(|| Siblings { this, rtt, rate, total: rates().sum(), subflows })
    }
}

/// An algorithm that couples the congestion avoidance of the subflows of a connection.
pub trait Coupling: Clone + Debug + Default + Send + 'static {
    /// Its name in scenarios.
    const NAME: &'static str;
    /// An ACK or a signal follows, with these siblings or with none.
    fn couple(&mut self, siblings: Option<Siblings<'_>>);
    /// Congestion avoidance of a window after so many bytes were acknowledged.
    fn avoid(&mut self, reno: &mut NewReno, f: &Flight, acked: u64) -> Verdict;
    /// The connection is established, or an ACK comes in.
    fn on_progress(&mut self, _f: &Flight, _established: bool) {}
    /// NewReno, whose window was `before`, has answered a signal.
    fn on_signal(&mut self, _reno: &mut NewReno, _before: Window, _f: &Flight, _signal: Signal) {}
    /// The state that the siblings may read.
    fn shared(&self) -> Shared {
        Shared::default()
    }
}

/// NewReno with a congestion avoidance that is coupled.
#[derive(Clone, Debug)]
pub struct CoupledReno<C> {
    pub(crate) reno: NewReno,
    pub(crate) coupling: C,
}

impl<C: Coupling> CoupledReno<C> {
    /// A controller of a connection that is not established yet. Everything but what the algorithm
    /// couples is NewReno's, with these settings.
    pub fn new(reno: NewRenoConfig) -> CoupledReno<C> {
        CoupledReno { reno: NewReno::new(reno), coupling: C::default() }
    }
}

impl<C: Coupling> CongestionControl for CoupledReno<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { siblings: true, ..Needs::default() }
    }

    fn on_established(&mut self, f: &Flight) {
        self.reno.on_established(f);
        self.coupling = C::default();
        self.coupling.on_progress(f, true);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.coupling.on_progress(f, false);
        match self.reno.slow_start(f, ack) {
            0 => Verdict::Continue,
            acked => self.coupling.avoid(&mut self.reno, f, acked),
        }
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        let before = self.window();
        self.reno.on_signal(f, signal);
        self.coupling.on_signal(&mut self.reno, before, f, signal);
    }

    fn coupled(&mut self) -> Option<&mut dyn Coupled> {
        Some(self)
    }
}

impl<C: Coupling> Coupled for CoupledReno<C> {
    fn shared(&self) -> Shared {
        self.coupling.shared()
    }

    fn couple(&mut self, own: usize, subflows: &[Subflow]) {
        self.coupling.couple(Siblings::new(own, subflows));
    }
}
