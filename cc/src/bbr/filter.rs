//! A maximum over a window of virtual time.

/// The windowed maximum of a stream of values, by the three best of three parts of the window
/// (Kathleen Nichols' algorithm, Linux `lib/win_minmax.c`). Times do not go back.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter {
    /// Best, second and third best, each newer than the one before.
    best: [Value; 3],
}

#[derive(Clone, Copy, Debug)]
struct Value {
    time: u64,
    value: u64,
}

impl MaxFilter {
    /// Nothing seen yet.
    pub(super) fn new() -> MaxFilter {
        MaxFilter { best: [Value { time: 0, value: 0 }; 3] }
    }

    /// The maximum.
    pub(super) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// A value at a time; those older than `window` no longer count.
    pub(super) fn update(&mut self, window: u64, time: u64, value: u64) {
        let new = Value { time, value };
        let best = &mut self.best;
        let age = |old: &Value| time.saturating_sub(old.time);
        if value >= best[0].value || age(&best[2]) > window {
            *best = [new; 3];
            return;
        }
        if value >= best[1].value {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].value {
            best[2] = new;
        }
        if age(&best[0]) > window {
            *best = [best[1], best[2], new];
            if age(&best[0]) > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].time == best[0].time && age(&best[0]) > window / 4 {
            // A quarter of the window has brought no second best: take one from the second quarter.
            (best[1], best[2]) = (new, new);
        } else if best[2].time == best[1].time && age(&best[0]) > window / 2 {
            // Half of it has brought no third best: take one from the last half.
            best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_leaves_with_the_window() {
        let mut filter = MaxFilter::new();
        filter.update(10, 0, 100);
        for time in 1..=10 {
            filter.update(10, time, 50 - time);
            assert_eq!(filter.get(), 100, "at {time}");
        }
        // The best of the rest came in at 3, the first time after a quarter of the window: 50 - 3.
        filter.update(10, 11, 1);
        assert_eq!(filter.get(), 47);
    }

    /// lib/win_minmax.c, `minmax_subwin_update`: with values that fall, the second best is the
    /// first after a quarter of the window, the third best the first after half of it, both counted
    /// from the best. So when the best leaves, and when the second does, it is one of 3 and one of
    /// 6 that follow; a gap takes both steps at once.
    #[test]
    fn the_three_best_come_from_three_parts_of_the_window() {
        let falling = |until: u64| {
            let mut filter = MaxFilter::new();
            for time in 0..=until {
                filter.update(12, time, 100 - time);
            }
            filter
        };
        for (until, expected) in [(12, 100), (13, 96), (16, 96), (17, 93)] {
            assert_eq!(falling(until).get(), expected, "at {until}");
        }
        for (time, expected) in [(15, 96), (16, 96), (17, 93), (19, 93), (20, 1)] {
            let mut filter = falling(7);
            filter.update(12, time, 1);
            assert_eq!(filter.get(), expected, "after 7 at {time}");
        }
    }

    #[test]
    fn a_higher_value_replaces_all() {
        let mut filter = MaxFilter::new();
        for (time, value) in [(0, 5), (1, 3), (2, 9), (3, 1)] {
            filter.update(10, time, value);
        }
        assert_eq!(filter.get(), 9);
        // A window of one round: what is two rounds old is gone.
        filter.update(1, 4, 2);
        assert_eq!(filter.get(), 2);
    }
}
