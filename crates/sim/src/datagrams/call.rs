//! A call at its listener: what is played, and how good that is.
//!
//! # Departures
//! - The playout buffer is fixed: the first datagram to arrive is played after the buffer's time,
//!   and with it the time of all others is set. A buffer that adapts between talk spurts (Ramjee et
//!   al., INFOCOM 1994) would need silence, of which there is none here.
//! - Encoding and decoding take no time beside packetisation and look-ahead.

use ackclock_trace::VoiceSummary;
use ackclock_traffic::voice::{Coding, Line, mean_opinion_score};
use ackclock_units::Span;

use super::loss_periods::LossPeriods;
use crate::spec::VoipSpec;

/// A call as its listener hears it.
#[derive(Debug)]
pub(crate) struct VoiceCall {
    spec: VoipSpec,
    /// Time from the sending of each datagram to its playout; known from the first arrival on.
    playout: Option<Span>,
    late: u64,
    /// Datagrams that were not played, in their order.
    gaps: LossPeriods,
}

impl VoiceCall {
    pub(crate) fn new(spec: VoipSpec) -> VoiceCall {
        VoiceCall { spec, playout: None, late: 0, gaps: LossPeriods::default() }
    }

    /// Returns true if a datagram with this transit time arrives before its playout.
    pub(crate) fn is_in_time(&mut self, transit: Span) -> bool {
        let playout = *self.playout.get_or_insert(transit + self.spec.playout);
        transit <= playout
    }

    /// The next datagram in the order of sending was played, came late or was lost.
    pub(crate) fn pass(&mut self, late: bool, lost: bool) {
        self.late += u64::from(late);
        self.gaps.pass(late || lost);
    }

    pub(crate) fn summary(&self) -> VoiceSummary {
        let gap_ratio = self.gaps.ratio();
        let mouth_to_ear = self.playout.map(|playout| self.spec.packetisation + self.spec.codec.look_ahead + playout);
        let coding = Coding {
            ie: self.spec.ie,
            bpl: self.spec.bpl,
            loss: gap_ratio.unwrap_or(0.0),
            burst_ratio: self.gaps.burst_ratio().unwrap_or(1.0),
        };
        let r_factor = mouth_to_ear.map(|delay| Line::default().rating(delay, &coding));
        VoiceSummary {
            codec: self.spec.codec.name,
            late_ratio: self.gaps.share(self.late),
            gap_ratio,
            burst_ratio: self.gaps.burst_ratio(),
            mouth_to_ear_ms: mouth_to_ear.map(Span::as_millis_f64),
            r_factor: r_factor.map(rounded),
            mos: r_factor.map(mean_opinion_score).map(rounded),
        }
    }
}

/// The value rounded to six decimals, like other results.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use ackclock_traffic::voice::Codec;

    use super::*;

    fn call() -> VoiceCall {
        let codec = Codec::by_name("g729a").expect("it is in the table");
        let (packetisation, playout) = (Span::from_millis(20), Span::from_millis(60));
        VoiceCall::new(VoipSpec { codec, packetisation, playout, ie: codec.ie, bpl: codec.bpl })
    }

    #[test]
    fn the_first_arrival_sets_the_time_of_playing() {
        let mut call = call();
        // 30 ms and 60 ms of buffer: what takes 90 ms is played, what takes longer is not.
        let played = [30, 10, 90, 91, 200].map(|ms| call.is_in_time(Span::from_millis(ms)));
        assert_eq!(played, [true, true, true, false, false]);
        played.into_iter().for_each(|played| call.pass(!played, false));
        call.pass(false, true);
        let found = call.summary();
        // Two of six are late and one is lost: 20 ms of voice, 5 ms of look-ahead, and 90 ms.
        assert_eq!(
            (found.late_ratio, found.gap_ratio, found.mouth_to_ear_ms),
            (Some(2.0 / 6.0), Some(0.5), Some(115.0))
        );
        // One gap of three, where independent losses have gaps of two.
        assert_eq!(found.burst_ratio, Some(1.5));
    }

    #[test]
    fn a_good_call_has_the_rating_of_its_codec() {
        let mut call = call();
        for _ in 0..1000 {
            let played = call.is_in_time(Span::from_millis(10));
            call.pass(!played, false);
        }
        let found = call.summary();
        // G.729A has 11 less than the 93.2 of G.711 without delay; 95 ms of delay cost some 2.5.
        let r = found.r_factor.expect("something was played");
        assert!((r - (93.2 - 11.0 - 2.45)).abs() < 0.2, "{r}");
        assert!((found.mos.expect("as well") - 4.02).abs() < 0.02, "{:?}", found.mos);
        assert_eq!((found.burst_ratio, found.late_ratio), (None, Some(0.0)));
        // Nothing has arrived: there is nothing to rate.
        let nothing = VoiceCall::new(call.spec.clone()).summary();
        assert_eq!((nothing.r_factor, nothing.mos, nothing.late_ratio), (None, None, None));
    }
}
