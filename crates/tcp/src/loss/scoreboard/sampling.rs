//! The scoreboard's delivery rates, for a controller that asks for them.

use ackclock_cc::{Lost, RateSample};
use ackclock_units::{Span, Time};

use super::rates::{DeliveryRate, Rates};
use super::{Progress, Scoreboard, Sent};

impl Scoreboard {
    /// Samples delivery rates from now on, or no longer.
    pub(crate) fn sample_rates(&mut self, on: bool) {
        if on != self.rates.is_some() {
            self.rates = on.then(|| Box::new(Rates::new(self.entries.len())));
        }
    }

    /// Returns `true` if delivery rates are sampled.
    #[inline]
    pub(crate) fn samples_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// The sample of the ACK in hand, once what it proves lost is marked; `None` if it delivers
    /// nothing. `repairing` while a timeout is not repaired.
    pub(crate) fn rate_sample(&mut self, now: Time, min_rtt: Option<Span>, repairing: bool) -> Option<RateSample> {
        self.rates.as_mut()?.sample(now, min_rtt, repairing)
    }

    /// The application has left the pipe unfilled, with `in_flight` bytes in it
    /// (`MarkConnectionAppLimited`).
    pub(crate) fn ran_dry(&mut self, in_flight: u64) {
        if let Some(rates) = &mut self.rates {
            rates.app_limited = (rates.delivered + in_flight).max(1);
        }
    }

    /// Returns `true` if data sent now gives samples that the application limits.
    #[inline]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.rates.as_ref().is_some_and(|rates| rates.app_limited > 0)
    }

    /// The delivery rate that a socket reports, if rates are sampled.
    pub(crate) fn delivery_rate(&self) -> Option<DeliveryRate> {
        self.rates.as_ref().map(|rates| rates.reported)
    }

    /// Takes the segments marked lost since the last call. The vector is to be given back, so that
    /// its memory is used again.
    pub(crate) fn take_lost(&mut self) -> Vec<Lost> {
        self.rates.as_mut().map(|rates| std::mem::take(&mut rates.waiting)).unwrap_or_default()
    }

    /// Takes back what [`Scoreboard::take_lost`] gave.
    pub(crate) fn give_back(&mut self, mut lost: Vec<Lost>) {
        if let Some(rates) = &mut self.rates {
            lost.clear();
            rates.waiting = lost;
        }
    }

    /// The first segment, or the `taken` part of it, is acknowledged cumulatively.
    #[inline(never)]
    pub(super) fn rate_acknowledged(&mut self, taken: &Sent, whole: bool, progress: &Progress) {
        if let Some(rates) = &mut self.rates {
            rates.acknowledged(progress.now, taken, whole);
        }
    }

    /// A segment was sent for the first time at `now`.
    #[inline(never)]
    pub(super) fn rate_sent(&mut self, now: Time) {
        let pipe = self.pipe();
        if let Some(rates) = &mut self.rates {
            rates.sent(now, pipe);
        }
    }
}
