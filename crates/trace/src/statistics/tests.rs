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

/// Hours of sleep gained by ten patients with two drugs: Student, "The Probable Error of a Mean",
/// 1908; R has them as `sleep`.
const SLEEP: [[f64; 10]; 2] =
    [[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]];

/// Heights of cross- and self-fertilized maize, inches: Darwin, "The Effects of Cross and Self
/// Fertilisation in the Vegetable Kingdom", 1876, table 97, on which Fisher worked out the test of
/// pairs ("The Design of Experiments", 1935).
const MAIZE: [[f64; 15]; 2] = [
    [23.5, 12.0, 21.0, 22.0, 19.125, 21.5, 22.125, 20.375, 18.25, 21.625, 23.25, 21.0, 22.125, 23.0, 12.0],
    [17.375, 20.375, 20.0, 20.0, 18.375, 18.625, 18.625, 15.25, 16.5, 18.0, 16.25, 18.0, 12.75, 15.5, 18.0],
];

fn differences<const N: usize>([a, b]: &[[f64; N]; 2]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[test]
fn t_tests_have_the_probabilities_of_published_examples() {
    // R, help page of `sleep`: paired t = -4.0621 with 9 degrees of freedom, p = 0.002833; Welch t
    // = -1.8608 with 17.776, p = 0.07939. More digits are SciPy's 1.17 (ttest_rel, ttest_ind).
    close(paired_t(&differences(&SLEEP)).unwrap(), 0.002_832_890_197_384_273, 1e-14);
    close(welch(&SLEEP[0], &SLEEP[1]).unwrap(), 0.079_394_140_187_358_3, 1e-13);
    // Fisher has t = 2.148 with 14 degrees of freedom, just beyond the 5 % of 2.145.
    close(paired_t(&differences(&MAIZE)).unwrap(), 0.049_702_944_021_800_866, 1e-13);
    assert_eq!((paired_t(&[1.0]), welch(&[1.0], &[1.0, 2.0])), (None, None));
    // Without any spread there is nothing to measure a difference by.
    assert_eq!((paired_t(&[0.0; 3]), paired_t(&[0.1; 3]), paired_t(&[0.3 - 0.2, 0.1])), (Some(1.0), None, None));
    assert_eq!((welch(&[2.0; 3], &[2.0; 4]), welch(&[2.0; 3], &[3.0; 4])), (Some(1.0), None));
}

#[test]
fn ranks_of_differences_have_the_probabilities_of_published_examples() {
    // Hollander and Wolfe, "Nonparametric Statistical Methods", 1973, depression scale factors
    // before and after a tranquilizer, in thousandths; R, help page of `wilcox.test`: V = 40,
    // one-sided p = 0.01953.
    let before = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300].map(f64::from);
    let after = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290].map(f64::from);
    close(signed_rank(&differences(&[before, after])).unwrap(), 20.0 / 512.0, 1e-12);
    // A zero is left out, and the other nine are of the same sign, equal ones among them.
    close(signed_rank(&differences(&SLEEP)).unwrap(), 2.0 / 512.0, 1e-12);
    // Ranks of 1.5, 1.5 and 3: of the sums 0, 1.5, 1.5, 3, 3, 4.5, 4.5 and 6, all but two of 3 are
    // as far from 3 as 1.5 is.
    close(signed_rank(&[1.0, -1.0, -2.0]).unwrap(), 6.0 / 8.0, 1e-12);
    // 44 differences but for a zero, of 15 sizes: SciPy's 1.17 wilcoxon(correction=True,
    // method="approx").
    let many: Vec<f64> = (0..45).map(|n| f64::from(n * 7 % 23 - 8)).collect();
    close(signed_rank(&many).unwrap(), 0.011_356_002_613_271_56, 1e-12);
    // Five differences of the same sign: two of 32 signs.
    close(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), 2.0 / 32.0, 1e-12);
    assert_eq!((signed_rank(&[]), signed_rank(&[0.0, 0.0]), signed_rank(&[1.0, -2.0])), (None, Some(1.0), Some(1.0)));
}

#[test]
fn paired_tests_reject_at_their_level() {
    let mut random = Random::for_component(5, 0, "pairs");
    let mut sample = || (0..12).map(|_| normal(&mut random)).collect::<Vec<_>>();
    let samples: Vec<_> = (0..1000).map(|_| sample()).collect();
    for test in [paired_t, signed_rank] {
        let rejected = samples.iter().filter(|sample| test(sample).unwrap() <= 0.05).count();
        assert!((30..=70).contains(&rejected), "{rejected} of 1000");
    }
    // Of 3 and of 12, with ten times the deviation.
    let pair = || (0..1000).map(|n| (&samples[n][..3], samples[(n + 1) % 1000].iter().map(|value| value * 10.0)));
    let rejected = pair().filter(|(a, b)| welch(a, &b.clone().collect::<Vec<_>>()).unwrap() <= 0.05).count();
    assert!((30..=70).contains(&rejected), "{rejected} of 1000");
}

#[test]
fn many_tests_are_adjusted_as_their_authors_do() {
    // Benjamini and Hochberg, 1995, section 4.1: 15 tests of a study of thrombolysis, of which
    // their procedure rejects the first four at 0.05, and Bonferroni's the first three. Adjusted by
    // SciPy's 1.17 false_discovery_control.
    let tests = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
        1.0,
    ];
    let adjusted = benjamini_hochberg(&tests);
    let expected = [
        0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714, 0.06385714, 0.0645, 0.0765, 0.486, 0.58118182, 0.714875,
        0.75323077, 0.81321429, 1.0,
    ];
    adjusted.iter().zip(expected).for_each(|(&found, expected)| close(found, expected, 1e-8));
    assert_eq!(adjusted.iter().filter(|&&p| p <= 0.05).count(), 4);
    assert_eq!(holm(&tests).iter().filter(|&&p| p <= 0.05).count(), 3);
    // Holm, in any order: 4 * 0.01, 3 * 0.02, no less than that before, 0.04.
    let found = holm(&[0.04, 0.01, 0.03, 0.02]);
    found.iter().zip([0.06, 0.04, 0.06, 0.06]).for_each(|(&found, expected)| close(found, expected, 1e-12));
    assert_eq!((holm(&[]), benjamini_hochberg(&[0.3]), holm(&[0.6, 0.7])), (vec![], vec![0.3], vec![1.0, 1.0]));
}
