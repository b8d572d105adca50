use super::*;

fn close(found: f64, expected: f64, error: f64) {
    assert!((found - expected).abs() <= error, "{found} instead of {expected}");
}

/// Values of the standard normal distribution.
fn normal(random: &mut Random) -> f64 {
    maths::normal_quantile(random.unit().max(1e-300))
}

#[test]
fn means_medians_and_deviations() {
    let values = [4.0, 1.0, 7.0, 2.0];
    assert_eq!((mean(&values), median(&values), median(&values[..3])), (Some(3.5), Some(3.0), Some(4.0)));
    // Squares of the differences: 0.25 + 6.25 + 12.25 + 2.25, over 3.
    close(deviation(&values).unwrap(), 7f64.sqrt(), 1e-12);
    assert_eq!((mean(&[]), median(&[]), deviation(&[1.0])), (None, None, None));
    assert_eq!((t_interval(&[1.0], 0.95), mann_whitney(&[], &[1.0])), (None, None));
}

#[test]
fn an_interval_of_student_has_the_quantile_of_the_tables() {
    // t of 0.975 with 3 degrees of freedom is 3.182, with 9 it is 2.262.
    let interval = t_interval(&[4.0, 1.0, 7.0, 2.0], 0.95).unwrap();
    close(interval.high - 3.5, 3.182_446 * 7f64.sqrt() / 2.0, 1e-5);
    close(3.5 - interval.low, interval.high - 3.5, 1e-12);
    let ten: Vec<f64> = (0..10).map(f64::from).collect();
    close(t_interval(&ten, 0.95).unwrap().high - 4.5, 2.262_157 * deviation(&ten).unwrap() / 10f64.sqrt(), 1e-5);
    // What is always the same has no width.
    assert_eq!(t_interval(&[2.0; 5], 0.95), Some(Interval { low: 2.0, high: 2.0 }));
    let mut random = Random::for_component(1, 0, "bootstrap");
    assert_eq!(bootstrap_interval(&[2.0; 5], 0.95, mean, &mut random), Some(Interval { low: 2.0, high: 2.0 }));
}

#[test]
fn intervals_cover_what_they_say() {
    let covered = |draw: &dyn Fn(&mut Random) -> f64, truth: f64, count: usize, of: &dyn Fn(&[f64]) -> Interval| {
        let mut random = Random::for_component(2, 0, "coverage");
        let hits = (0..1000).filter(|_| {
            let values: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
            let Interval { low, high } = of(&values);
            (low..=high).contains(&truth)
        });
        hits.count()
    };
    let student = |values: &[f64]| t_interval(values, 0.95).unwrap();
    let found = covered(&normal, 0.0, 10, &student);
    assert!((930..=970).contains(&found), "{found} of 1000");
    let bootstrap = |statistic: fn(&[f64]) -> Option<f64>| {
        move |values: &[f64]| {
            let mut random = Random::for_component(3, 0, "bootstrap");
            bootstrap_interval(values, 0.95, statistic, &mut random).unwrap()
        }
    };
    let found = covered(&normal, 0.0, 50, &bootstrap(mean));
    assert!((930..=970).contains(&found), "{found} of 1000");
    // Of a skewed distribution: the exponential one, whose median is ln 2.
    let exponential = |random: &mut Random| -maths::ln(1.0 - random.unit());
    let found = covered(&exponential, maths::ln(2.0), 51, &bootstrap(median));
    assert!((930..=970).contains(&found), "{found} of 1000");
    let found = covered(&exponential, 1.0, 80, &bootstrap(mean));
    assert!((930..=970).contains(&found), "{found} of 1000");
}

#[test]
fn ranks_are_compared_exactly_in_small_samples() {
    // One of 20 orders on each side; one of 70.
    close(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap(), 0.1, 1e-12);
    close(mann_whitney(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]).unwrap(), 2.0 / 70.0, 1e-12);
    // U of 3 and 6 against 4.5: of 20 orders those with U from 0 to 3 (1, 1, 2, 3), twice.
    close(mann_whitney(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0]).unwrap(), 14.0 / 20.0, 1e-12);
    assert_eq!(mann_whitney(&[1.0, 4.0], &[2.0, 3.0]), Some(1.0));
    // 5 against 7: the critical value at 5 % is 5 (tables of Mann and Whitney).
    let a = [1.0, 2.0, 3.0, 4.0, 10.0];
    let b = [5.0, 6.0, 7.0, 8.0, 9.0, 11.0, 12.0];
    let p = mann_whitney(&a, &b).unwrap();
    assert!(p > 0.04 && p < 0.06, "{p}");
    assert_eq!(mann_whitney(&a, &b), mann_whitney(&b, &a));
}

#[test]
fn ranks_of_large_or_tied_samples_are_compared_approximately() {
    // Without ties the approximation is close to the exact value.
    let a: Vec<f64> = (0..20).map(|n| f64::from(n) * 1.7).collect();
    let b: Vec<f64> = (0..20).map(|n| f64::from(n) * 1.7 + 6.1).collect();
    let exact = mann_whitney(&a, &b).unwrap();
    let more: Vec<f64> = b.iter().copied().chain([16.000_1]).collect();
    let approximate = mann_whitney(&a, &more).unwrap();
    close(exact, approximate, 0.02);
    assert_eq!(mann_whitney(&[1.0; 10], &[1.0; 10]), Some(1.0));
    // All of ten below all of ten, of which each has two equal ones: z = 49.5 / sqrt(100/12 * (21 -
    // 10 * 6 / 380)).
    let tied = |from: i32| (0..10).map(|n| f64::from(from + n / 2)).collect::<Vec<_>>();
    let z = 49.5 / f64::sqrt(100.0 / 12.0 * (21.0 - 60.0 / 380.0));
    close(mann_whitney(&tied(0), &tied(10)).unwrap(), 2.0 * maths::normal_cdf(-z), 1e-12);
    // Samples of the same population differ at 5 % in 5 % of cases.
    let mut random = Random::for_component(4, 0, "ranks");
    let mut sample = || (0..25).map(|_| normal(&mut random)).collect::<Vec<_>>();
    let different = (0..1000).filter(|_| mann_whitney(&sample(), &sample()).unwrap() <= 0.05).count();
    assert!((30..=70).contains(&different), "{different} of 1000");
}
