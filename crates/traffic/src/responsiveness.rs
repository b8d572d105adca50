//! Responsiveness under working conditions, in round trips per minute.
//!
//! # Source
//! - draft-ietf-ippm-responsiveness-09, "Aggregating the Measurements": the one-sided trimmed mean
//!   at the 95th percentile, the formulas with and without TLS.
//!
//! # Departures
//! - All probes of a run are aggregated, not those of the last four intervals, and nothing judges
//!   whether the result is stable: the length of a run, and when load and probes begin, are given.
//! - The draft does not say how the percentile is found: here by the nearest rank, so that of `n`
//!   samples the `ceil(0.95 n)` shortest are kept.

use ackclock_units::Span;

/// The share of the samples that the trimmed mean keeps, percent (`TMP`).
pub const TRIMMED_MEAN_PERCENT: u64 = 95;

/// The times of the parts of probes.
#[derive(Clone, Debug, Default)]
pub struct ProbeTimes {
    /// TCP handshakes of foreign probes.
    pub tcp: Vec<Span>,
    /// TLS handshakes, by round trips.
    pub tls: Vec<Span>,
    /// HTTP requests.
    pub http: Vec<Span>,
    /// Requests on connections with load.
    pub loaded: Vec<Span>,
}

/// The responsiveness that probes measured. Times are trimmed means; `None` is without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Responsiveness {
    /// Responsiveness, round trips per minute.
    pub rpm: Option<f64>,
    /// Responsiveness of new connections.
    pub foreign_rpm: Option<f64>,
    /// Responsiveness of connections with load.
    pub loaded_rpm: Option<f64>,
    /// TCP handshake, ms.
    pub tcp: Option<f64>,
    /// Handshake of TLS, ms.
    pub tls: Option<f64>,
    /// Request on a new connection, ms.
    pub http: Option<f64>,
    /// Request on a connection with load, ms.
    pub loaded: Option<f64>,
    /// Foreign probes that were answered.
    pub foreign_probes: u64,
    /// Self probes that were answered.
    pub self_probes: u64,
}

impl ProbeTimes {
    /// Adds those of another flow.
    pub fn absorb(&mut self, other: &ProbeTimes) {
        self.tcp.extend_from_slice(&other.tcp);
        self.tls.extend_from_slice(&other.tls);
        self.http.extend_from_slice(&other.http);
        self.loaded.extend_from_slice(&other.loaded);
    }

    /// The responsiveness from these times.
    pub fn responsiveness(&self) -> Responsiveness {
        let [tcp, tls, http, loaded] = [&self.tcp, &self.tls, &self.http, &self.loaded].map(|of| trimmed_mean(of));
        // Without TLS there is no time of it: the others count for more instead.
        let parts = || [tcp, tls, http].into_iter().flatten();
        let mean = parts().sum::<f64>() / parts().count() as f64;
        let foreign_rpm = tcp.and(http).and_then(|_| per_minute(mean));
        let loaded_rpm = loaded.and_then(per_minute);
        Responsiveness {
            rpm: foreign_rpm.zip(loaded_rpm).map(|(foreign, loaded)| (foreign + loaded) / 2.0),
            foreign_rpm,
            loaded_rpm,
            tcp,
            tls,
            http,
            loaded,
            foreign_probes: self.http.len() as u64,
            self_probes: self.loaded.len() as u64,
        }
    }
}

/// Round trips per minute, each of `millis` milliseconds.
fn per_minute(millis: f64) -> Option<f64> {
    (millis > 0.0).then(|| 60_000.0 / millis)
}

/// The mean of the samples up to the 95th percentile, ms.
pub fn trimmed_mean(samples: &[Span]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let kept = (sorted.len() as u64 * TRIMMED_MEAN_PERCENT).div_ceil(100);
    sorted.truncate(kept as usize);
    let sum: u128 = sorted.iter().map(|span| u128::from(span.as_nanos())).sum();
    (kept > 0).then(|| sum as f64 / kept as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(millis: &[u64]) -> Vec<Span> {
        millis.iter().map(|&millis| Span::from_millis(millis)).collect()
    }

    #[test]
    fn the_longest_twentieth_is_left_out() {
        // 19 of 20 stay: 1 + ... + 19 over 19.
        let shuffled: Vec<u64> = (0..20).map(|n| n * 7 % 20 + 1).collect();
        assert_eq!(trimmed_mean(&spans(&shuffled)), Some(10.0));
        // 95 % of 39 are 37.05: by rank, 38 stay.
        let mut many = vec![10; 38];
        many.push(5000);
        assert_eq!(trimmed_mean(&spans(&many)), Some(10.0));
        assert_eq!(trimmed_mean(&spans(&[3, 9])), Some(6.0));
        assert_eq!(trimmed_mean(&[]), None);
    }

    #[test]
    fn the_formulas_of_the_draft() {
        let mut times = ProbeTimes { tcp: spans(&[100]), http: spans(&[200]), ..ProbeTimes::default() };
        // Without self probes there is a part alone: 60000 over the mean of 100 and 200.
        let found = times.responsiveness();
        assert_eq!((found.foreign_rpm, found.loaded_rpm, found.rpm), (Some(400.0), None, None));
        times.absorb(&ProbeTimes { loaded: spans(&[600]), ..ProbeTimes::default() });
        assert_eq!(times.responsiveness().rpm, Some(250.0));
        // With TLS: 60000 / ((100 + 300 + 200) / 3) is 300.
        times.absorb(&ProbeTimes { tls: spans(&[300]), ..ProbeTimes::default() });
        let found = times.responsiveness();
        assert_eq!((found.foreign_rpm, found.rpm), (Some(300.0), Some(200.0)));
        assert_eq!((found.foreign_probes, found.self_probes), (1, 1));
        assert_eq!(ProbeTimes::default().responsiveness(), Responsiveness::default());
        let instant = ProbeTimes { loaded: vec![Span::ZERO], ..ProbeTimes::default() };
        assert_eq!(instant.responsiveness().loaded_rpm, None);
    }
}
