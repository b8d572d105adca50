//! Voice: codecs, and the quality of a call by the E-model.
//!
//! The E-model adds impairments on one scale, the transmission rating R: basic signal-to-noise
//! ratio, what occurs simultaneously with the voice, delay and echo, coding and loss. R of 93.2 is
//! a line with nothing wrong; below 50 a connection is not recommended.
//!
//! # Source
//! ITU-T G.107 (06/2015): section 7.2 (Ro), 7.3 (Is), 7.4 (Id), 7.5 (Ie-eff), table 2 (default
//! values), annex B (mean opinion scores). Codecs: ITU-T G.113 (11/2007) appendix I, for Ie and
//! Bpl; RFC 3551 for rates and frames, RFC 6716 for Opus.
//!
//! # Departures
//! - The class of delay sensitivity is the default one (sT = 1, mT = 100 ms).
//! - The three delays of the model are one: the echo path is as long as the way from mouth to ear
//!   (T = Ta), the round trip in the four-wire loop twice as long (Tr = 2 Ta), as table 2 relates
//!   them without further knowledge.
//! - A burst ratio below 1, losses more regular than independent ones, counts as 1: the model knows
//!   independent and bursty losses.
//! - **Opus has no planning values from the ITU-T** on this scale. What stands here are those of
//!   the WebRTC monitor rtcscore (Ie = 55 - 4.6 ln of the rate in bit/s, Bpl = 10 without in-band
//!   redundancy): a practice, not a measurement, and for wideband speech on a narrowband scale.
//!   There they are subtracted from 100 and loss takes its share of 100 - Ie, here from 93.2 and
//!   95 - Ie: ratings of Opus compare with each other, not with those of other codecs. Whoever has
//!   better ones sets `ie` and `bpl`.
//! - There is no talker echo below 1 ms of delay. (Annex B's polynomial dips below 1 for an R under
//!   6.5; the score does not.) Values outside the ranges that table 2 permits are extrapolated.

use ackclock_units::{Span, maths};

pub use codec::{CODECS, Codec};

mod codec;

/// A telephone line: everything that the E-model takes beside delay, coding and loss. Levels and
/// ratings in dB.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Send loudness rating.
    pub slr: f64,
    /// Receive loudness rating.
    pub rlr: f64,
    /// Sidetone masking rating.
    pub stmr: f64,
    /// Listener sidetone rating.
    pub lstr: f64,
    /// D-value of the telephone at the send side.
    pub ds: f64,
    /// Talker echo loudness rating.
    pub telr: f64,
    /// Weighted echo path loss.
    pub wepl: f64,
    /// Quantization distortion units.
    pub qdu: f64,
    /// Circuit noise referred to the 0 dBr point, dBm0p.
    pub nc: f64,
    /// Noise floor at the receive side, dBmp.
    pub nfor: f64,
    /// Room noise at the send side, dB(A).
    pub ps: f64,
    /// Room noise at the receive side, dB(A).
    pub pr: f64,
    /// Advantage of access.
    pub a: f64,
}

impl Default for Line {
    /// G.107 table 2.
    fn default() -> Line {
        Line {
            slr: 8.0,
            rlr: 2.0,
            stmr: 15.0,
            lstr: 18.0,
            ds: 3.0,
            telr: 65.0,
            wepl: 110.0,
            qdu: 1.0,
            nc: -70.0,
            nfor: -64.0,
            ps: 35.0,
            pr: 35.0,
            a: 0.0,
        }
    }
}

/// Coding and loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coding {
    /// Equipment impairment factor without loss, Ie.
    pub ie: f64,
    /// Packet-loss robustness factor, Bpl.
    pub bpl: f64,
    /// Share of packets that are not played, 0 to 1.
    pub loss: f64,
    /// Mean length of gaps over that with independent losses, BurstR.
    pub burst_ratio: f64,
}

/// The minimum perceivable delay mT, ms.
const PERCEIVABLE: f64 = 100.0;

/// 10 to the power `x`.
fn pow10(x: f64) -> f64 {
    maths::pow(10.0, x)
}

/// (1 + x^n)^(1/n), which recurs in the model.
fn norm(x: f64, n: f64) -> f64 {
    maths::pow(1.0 + maths::pow(x, n), 1.0 / n)
}

impl Line {
    /// The sum of all noises, No (7-3).
    fn noise(&self) -> f64 {
        let olr = self.slr + self.rlr;
        // (7-4) to (7-7).
        let send = self.ps - olr - self.ds - 14.0;
        let nos = self.ps - self.slr - self.ds - 100.0 + 0.004 * send * send;
        let pre = self.pr + 10.0 * maths::log10(1.0 + pow10((10.0 - self.lstr) / 10.0));
        let nor = self.rlr - 121.0 + pre + 0.008 * (pre - 35.0) * (pre - 35.0);
        let nfo = self.nfor + self.rlr;
        10.0 * maths::log10([self.nc, nos, nor, nfo].iter().map(|level| pow10(level / 10.0)).sum())
    }

    /// The basic signal-to-noise ratio, Ro (7-2).
    fn basic(&self) -> f64 {
        15.0 - 1.5 * (self.slr + self.noise())
    }

    /// The impairment by too little sidetone, or too much with the echo, Ist (7-11, 7-12).
    fn sidetone(&self, delay: f64) -> f64 {
        let stmro =
            -10.0 * maths::log10(pow10(-self.stmr / 10.0) + maths::exp(-delay / 4.0) * pow10(-self.telr / 10.0));
        12.0 * norm((stmro - 13.0) / 6.0, 8.0)
            - 28.0 * norm((stmro + 1.0) / 19.4, 35.0)
            - 13.0 * norm((stmro - 3.0) / 33.0, 13.0)
            + 29.0
    }

    /// Impairments simultaneous with the voice, Is (7-8).
    fn simultaneous(&self, delay: f64) -> f64 {
        let xolr = self.slr + self.rlr + 0.2 * (64.0 + self.noise() - self.rlr);
        let loudness = 20.0 * (norm(xolr / 8.0, 8.0) - xolr / 8.0);
        let q = 37.0 - 15.0 * maths::log10(self.qdu);
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (self.basic() - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        let quantization = 15.0 * maths::log10(1.0 + pow10(y) + pow10(z));
        loudness + self.sidetone(delay) + quantization
    }

    /// Talker echo, Idte (7-19 to 7-24).
    fn talker_echo(&self, delay: f64) -> f64 {
        if delay < 1.0 {
            return if self.stmr > 20.0 { self.sidetone(delay) } else { 0.0 };
        }
        let roe = -1.5 * (self.noise() - self.rlr);
        let mut terv = self.telr - 40.0 * maths::log10((1.0 + delay / 10.0) / (1.0 + delay / 150.0))
            + 6.0 * maths::exp(-0.3 * delay * delay);
        let sidetone = self.sidetone(delay);
        if self.stmr < 9.0 {
            terv += sidetone / 2.0;
        }
        let re = 80.0 + 2.5 * (terv - 14.0);
        let half = (roe - re) / 2.0;
        let idte = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - maths::exp(-delay));
        if self.stmr > 20.0 { (idte * idte + sidetone * sidetone).sqrt() } else { idte }
    }

    /// Listener echo, Idle (7-25, 7-26), with a round trip of `round` ms.
    fn listener_echo(&self, round: f64) -> f64 {
        let rle = 10.5 * (self.wepl + 7.0) * maths::pow(round + 1.0, -0.25);
        let half = (self.basic() - rle) / 2.0;
        half + (half * half + 169.0).sqrt()
    }

    /// The transmission rating R (7-1) with a mouth-to-ear delay.
    pub fn rating(&self, delay: Span, coding: &Coding) -> f64 {
        let delay = delay.as_millis_f64();
        let id = self.talker_echo(delay) + self.listener_echo(2.0 * delay) + long_delay(delay);
        self.basic() - self.simultaneous(delay) - id - coding.impairment() + self.a
    }
}

/// The impairment by too long a delay even with perfect echo cancelling, Idd (7-27, 7-28).
fn long_delay(delay: f64) -> f64 {
    if delay <= PERCEIVABLE {
        return 0.0;
    }
    let x = maths::log10(delay / PERCEIVABLE) / maths::log10(2.0);
    25.0 * (norm(x, 6.0) - 3.0 * norm(x / 3.0, 6.0) + 2.0)
}

impl Coding {
    /// The effective equipment impairment factor, Ie-eff (7-29).
    pub fn impairment(&self) -> f64 {
        let percent = 100.0 * self.loss;
        self.ie + (95.0 - self.ie) * percent / (percent / self.burst_ratio.max(1.0) + self.bpl)
    }
}

/// The mean opinion score in conversation for a rating R (G.107 annex B).
pub fn mean_opinion_score(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        // The polynomial is below 1 for R below 6.5, where there is nothing worse than 1.
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

#[cfg(test)]
mod tests;
