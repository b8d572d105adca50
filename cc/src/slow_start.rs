//! Slow start as a choice for any controller: standard, or with a rule for leaving it before the
//! queue overflows.
//!
//! A controller whose configuration embeds [`NewRenoConfig`] keeps a [`SlowStart`] and calls
//! [`SlowStart::restart`] when the connection is established and at a timeout,
//! [`SlowStart::observe`] for every ACK and [`SlowStart::grow`] for those with which slow start may
//! grow the window.

use ackclock_units::Span;

use crate::hystart::Hystart;
use crate::hystart_plus_plus::HystartPlusPlus;
use crate::reactions::{NewRenoConfig, SlowStartRules, slow_start, slow_start_applies};
use crate::{Flight, Window};

/// The slow start of one connection.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart(ExitObserver);

#[derive(Clone, Debug)]
enum ExitObserver {
    Standard,
    Hystart(Hystart),
    HystartPlusPlus(HystartPlusPlus),
}

impl SlowStart {
    pub(crate) fn new(rules: SlowStartRules) -> SlowStart {
        SlowStart(match rules {
            SlowStartRules::Standard => ExitObserver::Standard,
            SlowStartRules::Hystart(config) => ExitObserver::Hystart(Hystart::new(config)),
            SlowStartRules::HystartPlusPlus(config) => ExitObserver::HystartPlusPlus(HystartPlusPlus::new(config)),
        })
    }

    /// Slow start begins: with the connection, and after a timeout.
    pub(crate) fn restart(&mut self, f: &Flight) {
        match &mut self.0 {
            ExitObserver::Standard => {}
            ExitObserver::Hystart(hystart) => hystart.restart(f),
            ExitObserver::HystartPlusPlus(hystart) => hystart.restart(f),
        }
    }

    /// An ACK with its sample, before it grows the window and whether or not it may; `shortest` is
    /// the least round-trip time known. Returns `true` if slow start is over by it: the threshold is
    /// then the window.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        window: &mut Window,
        f: &Flight,
        rtt: Option<Span>,
        shortest: Option<Span>,
        config: &NewRenoConfig,
    ) -> bool {
        let watched = !matches!(self.0, ExitObserver::Standard) && slow_start_applies(window, config);
        watched && self.watch(window, f, rtt, shortest)
    }

    fn watch(&mut self, window: &mut Window, f: &Flight, rtt: Option<Span>, shortest: Option<Span>) -> bool {
        let over = match &mut self.0 {
            ExitObserver::Standard => false,
            ExitObserver::Hystart(hystart) => match (rtt, shortest) {
                (Some(delay), Some(shortest)) => hystart.sample(f, window.cwnd, delay, shortest),
                _ => false,
            },
            ExitObserver::HystartPlusPlus(hystart) => hystart.observe(window, f, rtt),
        };
        if over {
            // A window of one segment, after a timeout, does not end it below two.
            window.ssthresh = window.cwnd.max(2 * f.segment());
        }
        over
    }

    /// Slow start grows the window by what was acknowledged. Returns the bytes of the ACK that lie
    /// beyond the threshold, for congestion avoidance.
    pub(crate) fn grow(&mut self, window: &mut Window, f: &Flight, acked: u64, config: &NewRenoConfig) -> u64 {
        match &mut self.0 {
            ExitObserver::Standard => {}
            ExitObserver::Hystart(hystart) => hystart.growing(f),
            ExitObserver::HystartPlusPlus(hystart) => {
                if hystart.grow(window, f, acked) {
                    return 0;
                }
            }
        }
        slow_start(window, f, acked, config)
    }
}
