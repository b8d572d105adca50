//! Probes of responsiveness on connections of their own.

use ackclock_trace::{ApplicationSummary, Histogram, ProbesSummary, Spread};
use ackclock_traffic::{Exchange, ProbePattern, ProbeTicks, ProbeTimes};
use ackclock_units::{Span, Time};

/// Times at which a connection's steps were done: its request, the TCP handshake at the client, the
/// first of two exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    pub(super) asked: Option<Time>,
    pub(super) open: Option<Time>,
    pub(super) secure: Option<Time>,
}

/// The client of such probes.
#[derive(Debug)]
pub(super) struct Probes {
    pattern: ProbePattern,
    ticks: ProbeTicks,
    skipped: u64,
    samples: ProbeTimes,
}

impl Probes {
    pub(super) fn new(pattern: &ProbePattern, start: Time) -> Probes {
        let ticks = ProbeTicks::new(start, pattern.interval);
        Probes { pattern: pattern.clone(), ticks, skipped: 0, samples: ProbeTimes::default() }
    }

    pub(super) fn next_at(&self) -> Time {
        self.ticks.next_at()
    }

    /// The first exchange of a probe, if one is due.
    pub(super) fn make(&mut self, now: Time) -> Option<Exchange> {
        self.ticks.take(now).then(|| self.pattern.tls.unwrap_or(self.pattern.http))
    }

    /// Leaves out what is due: too many are open.
    pub(super) fn skip(&mut self, now: Time) {
        while self.ticks.take(now) {
            self.skipped += 1;
        }
    }

    /// The second exchange.
    pub(super) fn then(&self) -> Option<Exchange> {
        self.pattern.tls.map(|_| self.pattern.http)
    }

    /// A probe has its response.
    pub(super) fn answered(&mut self, now: Time, steps: Steps) {
        let (Some(asked), Some(open)) = (steps.asked, steps.open) else { return };
        self.samples.tcp.push(open.since(asked));
        if let Some(secure) = steps.secure {
            self.samples.tls.push(secure.since(open));
        }
        self.samples.http.push(now.since(steps.secure.unwrap_or(open)));
    }

    /// Times of the probes.
    pub(super) fn samples(&self) -> &ProbeTimes {
        &self.samples
    }

    pub(super) fn summary(&self) -> ApplicationSummary {
        let spread = |samples: &[Span]| {
            let mut times = Histogram::new();
            samples.iter().for_each(|span| times.add(span.as_nanos()));
            Spread::of(&times, 1e-6)
        };
        let probes = ProbesSummary {
            made: self.ticks.made() - self.skipped,
            answered: self.samples.http.len() as u64,
            skipped: self.skipped,
            tcp_ms: spread(&self.samples.tcp),
            tls_ms: spread(&self.samples.tls),
            http_ms: spread(&self.samples.http),
        };
        ApplicationSummary { kind: "probe", probes: Some(probes), ..ApplicationSummary::default() }
    }
}
