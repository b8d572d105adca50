//! Bitrate adaptation by the level of the buffer alone.

use std::sync::Arc;

use ackclock_units::{Rate, Span, maths};

/// A bitrate adaptation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adaptation {
    /// BBA: the buffer-based map of Huang et al.
    Bba(Bba),
    /// BOLA: Lyapunov optimization.
    Bola(Bola),
}

/// The parameters of BBA-0, with those of the fast start of BBA-2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bba {
    /// Buffer level up to which the lowest bitrate is requested.
    pub reservoir: Span,
    /// Length of the buffer above the reservoir at which the highest bitrate is requested.
    pub cushion: Span,
    /// Starts as BBA-2 does: one rung up after each segment that comes much faster than it plays.
    pub fast_start: bool,
}

/// The parameters of BOLA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bola {
    /// The weight of uninterrupted playback against the utility of bitrates, times the duration of
    /// a segment: gamma p.
    pub gamma_p: f64,
}

/// The player's state at a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// Buffer level.
    pub(super) level: Span,
    /// Download time of the last segment.
    pub(super) download: Option<Span>,
    /// Length of the last segment.
    pub(super) last: Span,
}

/// An algorithm with its state; bitrates are told apart by their places in the ladder.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    ladder: Arc<[Rate]>,
    by: By,
    /// The last requested bitrate.
    current: usize,
}

#[derive(Clone, Debug)]
enum By {
    Bba { bba: Bba, is_starting: bool },
    Bola { segment: Span, v: f64, gamma_p: f64 },
}

impl Chooser {
    /// `buffer` is the most that the buffer holds, more than a `segment`.
    pub(super) fn new(adaptation: Adaptation, ladder: Arc<[Rate]>, segment: Span, buffer: Span) -> Chooser {
        let by = match adaptation {
            Adaptation::Bba(bba) => By::Bba { bba, is_starting: bba.fast_start },
            Adaptation::Bola(Bola { gamma_p }) => {
                let most = buffer.as_secs_f64() / segment.as_secs_f64();
                let highest = utility(&ladder, ladder.len() - 1);
                By::Bola { segment, v: (most - 1.0) / (highest + gamma_p), gamma_p }
            }
        };
        Chooser { ladder, by, current: 0 }
    }

    /// The place of the next bitrate.
    pub(super) fn choose(&mut self, now: Situation) -> usize {
        self.current = match &mut self.by {
            By::Bba { bba, is_starting } => {
                let mapped = mapped(bba, &self.ladder, self.current, now.level);
                *is_starting &= now.download.is_none_or(|download| download <= now.last) && mapped <= self.current;
                match now.download {
                    Some(download) if *is_starting => {
                        let faster = is_fast(bba, now.level, now.last, download);
                        (self.current + usize::from(faster)).min(self.ladder.len() - 1)
                    }
                    _ if *is_starting => self.current,
                    _ => mapped,
                }
            }
            By::Bola { segment, v, gamma_p } => {
                let level = now.level.as_secs_f64() / segment.as_secs_f64();
                best(&self.ladder, *v, *gamma_p, level)
            }
        };
        self.current
    }
}

/// BBA-0, algorithm 1: what the map says, but the last bitrate until it crosses the next one.
fn mapped(bba: &Bba, ladder: &[Rate], last: usize, level: Span) -> usize {
    let (lowest, highest) = (0, ladder.len() - 1);
    if level <= bba.reservoir {
        return lowest;
    }
    if level >= bba.reservoir + bba.cushion {
        return highest;
    }
    let bps = |at: usize| ladder[at].as_bps() as f64;
    let share = (level - bba.reservoir).as_secs_f64() / bba.cushion.as_secs_f64();
    let f = bps(lowest) + share * (bps(highest) - bps(lowest));
    if f >= bps((last + 1).min(highest)) {
        (0..ladder.len()).rev().find(|&at| bps(at) < f).unwrap_or(lowest)
    } else if f <= bps(last.saturating_sub(1)) {
        (0..ladder.len()).find(|&at| bps(at) > f).unwrap_or(highest)
    } else {
        last
    }
}

/// Returns true if a segment came so fast that BBA-2 goes one rung up in its startup phase: it
/// increased the buffer by more than 7/8 of its length while the buffer is empty, and by more than
/// a half once the cushion is full.
fn is_fast(bba: &Bba, level: Span, segment: Span, download: Span) -> bool {
    let share = (level.as_secs_f64() / (bba.reservoir + bba.cushion).as_secs_f64()).min(1.0);
    let grown = segment.as_secs_f64() - download.as_secs_f64();
    grown > (0.875 - 0.375 * share) * segment.as_secs_f64()
}

/// The utility of a bitrate: 0 for the lowest one.
fn utility(ladder: &[Rate], at: usize) -> f64 {
    maths::ln(ladder[at].as_bps() as f64 / ladder[0].as_bps() as f64)
}

/// BOLA's choice with `level` segments in the buffer.
fn best(ladder: &[Rate], v: f64, gamma_p: f64, level: f64) -> usize {
    let score = |at: usize| (v * (utility(ladder, at) + gamma_p) - level) / ladder[at].as_bps() as f64;
    (1..ladder.len()).fold(0, |best, at| if score(at) >= score(best) { at } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(mbit: &[u64]) -> Arc<[Rate]> {
        mbit.iter().map(|&mbit| Rate::from_bps(mbit * 1_000_000).unwrap()).collect()
    }

    fn at(level: Span) -> Situation {
        Situation { level, download: None, last: Span::from_secs(4) }
    }

    #[test]
    fn bba_keeps_a_bitrate_until_the_map_crosses_the_next_one() {
        let secs = Span::from_secs;
        let bba = Bba { reservoir: secs(90), cushion: secs(126), fast_start: false };
        let mut chooser = Chooser::new(Adaptation::Bba(bba), ladder(&[1, 2, 4, 8]), secs(4), secs(240));
        // f(B) = 1 + (B - 90) / 18 Mbit/s: 2 at 108 s, 4 at 144 s and 8 at 216 s.
        for (level, expected) in [
            (0, 0),
            (90, 0),
            (107, 0),
            // At 2 exactly, what is below that.
            (108, 0),
            (109, 1),
            (143, 1),
            (145, 2),
            (120, 2),
            // At 2 and below, the one above.
            (109, 2),
            (108, 2),
            (107, 1),
            (95, 1),
            (91, 1),
            (90, 0),
            (215, 2),
            (216, 3),
            (150, 3),
            (143, 2),
            (89, 0),
            (240, 3),
        ] {
            assert_eq!(chooser.choose(at(secs(level))), expected, "{level} s");
        }
    }

    #[test]
    fn a_fast_start_climbs_until_the_map_is_higher_or_the_buffer_shrinks() {
        let secs = Span::from_secs;
        let bba = Bba { reservoir: secs(40), cushion: secs(60), fast_start: true };
        let new = || Chooser::new(Adaptation::Bba(bba), ladder(&[1, 2, 4, 8]), secs(4), secs(120));
        let came =
            |level, millis| Situation { level: secs(level), download: Some(Span::from_millis(millis)), last: secs(4) };
        let mut chooser = new();
        assert_eq!(chooser.choose(at(Span::ZERO)), 0);
        // With an empty buffer in less than an eighth of 4 s; with 20 s of 100 in less than 0.2 of
        // it.
        assert_eq!(chooser.choose(came(0, 500)), 0);
        assert_eq!(chooser.choose(came(0, 499)), 1);
        assert_eq!(chooser.choose(came(20, 801)), 1);
        assert_eq!(chooser.choose(came(20, 799)), 2);
        // It shrinks: from now on by the map, which is below the reservoir.
        assert_eq!(chooser.choose(came(20, 4001)), 0);
        assert_eq!(chooser.choose(came(20, 100)), 0);
        // f(60) = 1 + 7 / 3: more than 2.
        let mut chooser = new();
        assert_eq!(chooser.choose(came(60, 3000)), 1);
        assert_eq!(chooser.choose(came(62, 100)), 1);
    }

    #[test]
    fn bola_switches_where_two_scores_are_equal() {
        let rates = [1u64, 2, 4, 8];
        let segment = Span::from_secs(3);
        let adaptation = Adaptation::Bola(Bola { gamma_p: 5.0 });
        let choose = |segments: f64| {
            let mut chooser = Chooser::new(adaptation, ladder(&rates), segment, Span::from_secs(30));
            chooser.choose(at(Span::from_secs_f64(segments * 3.0)))
        };
        // V = (10 - 1) / (ln 8 + 5). Scores of S and S' are equal at
        // Q = V (gamma p + (S' u - S u') / (S' - S)), with rates of 1 to 2 each V (5 + 2 u - u').
        let ln2 = std::f64::consts::LN_2;
        let v = 9.0 / (3.0 * ln2 + 5.0);
        for lower in 0..3 {
            let utility = lower as f64 * ln2;
            let threshold = v * (5.0 + 2.0 * utility - (utility + ln2));
            assert_eq!(choose(threshold - 1e-6), lower, "below {threshold}");
            assert_eq!(choose(threshold + 1e-6), lower + 1, "above {threshold}");
        }
        // All are worth asking for below V (ln 8 + gamma p), which is a segment less than all.
        assert_eq!((choose(0.0), choose(9.0)), (0, 3));
        assert!((v * (3.0 * ln2 + 5.0) - 9.0).abs() < 1e-12);
    }
}
