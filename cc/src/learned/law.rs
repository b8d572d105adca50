//! The effects of an action.

use ackclock_units::maths;

/// The value that an action sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The pacing rate, bit/s. Unless another number of the action sets it, the window is what that
    /// rate sends in two smoothed round trips.
    Rate,
    /// The congestion window, segments.
    Window,
}

/// The mapping from the number that a learner gives to a rate or a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Map {
    /// -1 is the least, 1 the most, and equal steps between are equal factors.
    Level,
    /// Multiplies by `1 + delta * a`, or divides by `1 - delta * a` if `a` is negative.
    Step {
        /// The relative change of an action of 1.
        delta: f64,
    },
    /// Multiplies by `base` to the power `a`.
    Power {
        /// The factor of an action of 1.
        base: f64,
    },
}

/// The law of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// The value that is set.
    pub target: Target,
    /// The mapping.
    pub map: Map,
    /// Actions are limited to this, both ways.
    pub limit: f64,
    /// The least and the most that it sets, bit/s or segments.
    pub bounds: [f64; 2],
}

impl Law {
    /// The problem of an invalid law, in words.
    pub(super) fn problem(&self) -> Option<String> {
        let Law { map, limit, bounds: [least, most], target } = *self;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let least_bound = match target {
            Target::Rate => 1000.0,
            Target::Window => 1.0,
        };
        if !(positive(limit) && positive(least) && positive(most) && least < most && least >= least_bound) {
            return Some(format!(
                "action: expected a limit above 0 and bounds from {least_bound}, found {limit} and {least} to {most}"
            ));
        }
        match map {
            Map::Step { delta } if !positive(delta) => Some("action: expected a delta above 0".to_owned()),
            Map::Power { base } if !positive(base) || base <= 1.0 => Some("action: expected a base above 1".to_owned()),
            _ => None,
        }
    }

    /// The new value after an action, where `now` is in force. An action that is no number changes
    /// nothing.
    pub fn apply(&self, now: f64, action: f64) -> f64 {
        let [least, most] = self.bounds;
        if !action.is_finite() {
            return now.clamp(least, most);
        }
        let action = action.clamp(-self.limit, self.limit);
        let value = match self.map {
            Map::Level => least * maths::pow(most / least, (action / self.limit + 1.0) / 2.0),
            Map::Step { delta } if action >= 0.0 => now * (1.0 + delta * action),
            Map::Step { delta } => now / (1.0 - delta * action),
            Map::Power { base } => now * maths::pow(base, action),
        };
        if value.is_finite() { value.clamp(least, most) } else { now.clamp(least, most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(map: Map) -> Law {
        Law { target: Target::Window, map, limit: 2.0, bounds: [2.0, 800.0] }
    }

    #[test]
    fn actions_are_factors_or_levels() {
        let level = law(Map::Level);
        assert_eq!([-2.0, 0.0, 2.0].map(|action| level.apply(10.0, action)), [2.0, 40.0, 800.0]);
        let step = law(Map::Step { delta: 0.025 });
        assert!((step.apply(100.0, 1.0) - 102.5).abs() < 1e-9);
        assert!((step.apply(102.5, -1.0) - 100.0).abs() < 1e-9);
        let power = law(Map::Power { base: 2.0 });
        assert_eq!([-1.0, 2.0].map(|action| power.apply(100.0, action)), [50.0, 400.0]);
        assert!((power.apply(100.0, 0.5) - 100.0 * std::f64::consts::SQRT_2).abs() < 1e-9);
    }

    #[test]
    fn nothing_leaves_the_bounds() {
        for map in [Map::Level, Map::Step { delta: 10.0 }, Map::Power { base: 1e9 }] {
            for action in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300, -0.0, 3.0, 1e300] {
                for now in [2.0, 7.5, 800.0] {
                    let value = law(map).apply(now, action);
                    assert!((2.0..=800.0).contains(&value), "{map:?} {action} {now}: {value}");
                }
            }
        }
        assert_eq!(law(Map::Level).apply(7.5, f64::NAN), 7.5);
    }
}
