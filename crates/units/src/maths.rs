//! Transcendental functions with the same results, to the bit, on every platform: their only home
//! in the workspace. The standard library's vary with the platform's C library; its square root is
//! exact and needs no replacement.

/// e to the power `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// e to the power `x`, less 1, accurate for small `x`.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Logarithm to the base 2.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// Logarithm to the base 10.
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// Cube root.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// `x` to the power `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The standard normal distribution function.
pub fn normal_cdf(x: f64) -> f64 {
    libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// The standard normal quantile at probability `p`: infinite at 0 and 1, NaN outside. The relative
/// error is about 1e-16.
///
/// # Source
/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied
/// Statistics 37 (3), 1988, function PPND16.
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(&CENTRE, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-ln(tail)).sqrt();
    let magnitude = if r <= 5.0 { ratio(&TAIL, r - 1.6) } else { ratio(&FAR_TAIL, r - 5.0) };
    magnitude.copysign(q)
}

/// The quantile at probability `p` of Student's t distribution with `degrees` degrees of freedom:
/// infinite at 0 and 1, NaN outside and without degrees of freedom.
pub fn student_quantile(p: f64, degrees: usize) -> f64 {
    if degrees == 0 || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let centre = (2.0 * p - 1.0).abs();
    if centre == 1.0 {
        return f64::INFINITY.copysign(p - 0.5);
    }
    let mut high = 1.0;
    while student_centre(high, degrees) < centre {
        high *= 2.0;
    }
    let mut low = 0.0;
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return low.copysign(p - 0.5);
        }
        match student_centre(middle, degrees) < centre {
            true => low = middle,
            false => high = middle,
        }
    }
}

/// The probability that Student's t is between `-t` and `t`.
///
/// # Source
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.3 and 26.7.4: a sum for
/// whole degrees of freedom, whose terms are positive.
fn student_centre(t: f64, degrees: usize) -> f64 {
    let scale = (degrees as f64).sqrt();
    let radius = libm::hypot(t, scale);
    let (sine, cosine) = (t / radius, scale / radius);
    let odd = degrees % 2;
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for power in (odd..degrees - 1).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    if odd == 1 { (libm::atan(t / scale) + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

/// The probability that Student's t with any positive degrees of freedom, whole or not, is at
/// least so far from 0, either way: NaN without degrees.
///
/// # Source
/// Abramowitz and Stegun, 26.7.1 and 26.5.27: the regularized incomplete beta function of
/// degrees / 2 and 1/2 at degrees / (degrees + t^2).
pub fn student_tails(t: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 || degrees.is_nan() || t.is_nan() {
        return f64::NAN;
    }
    // Each of the two shares without cancellation.
    let square = t * t;
    let (inside, outside) = (square / (degrees + square), degrees / (degrees + square));
    if square.is_infinite() {
        return 0.0;
    }
    incomplete_beta(outside, inside, degrees / 2.0, 0.5)
}

/// The regularized incomplete beta function I of `a` and `b` at `x`; `y` is 1 - `x`.
///
/// # Source
/// The continued fraction of the NIST Digital Library of Mathematical Functions, 8.17.22, by the
/// method of Lentz as Thompson and Barnett modified it ("Coulomb and Bessel Functions of Complex
/// Arguments and Order", J. Comput. Phys. 64, 1986); 8.17.4 where it converges slowly.
fn incomplete_beta(x: f64, y: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(y, x, b, a);
    }
    const TINY: f64 = 1e-300;
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / apart(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() <= f64::EPSILON * fraction.abs() {
            break;
        }
    }
    let beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    exp(a * ln(x) + b * ln(y) - beta) / a * fraction
}

/// Coefficients of a numerator and a denominator, constant term first.
type Rational = [[f64; 8]; 2];

fn ratio([numerator, denominator]: &Rational, x: f64) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    polynomial(numerator) / polynomial(denominator)
}

/// |p - 1/2| up to 0.425.
const CENTRE: Rational = [
    [
        3.3871328727963665,
        133.14166789178438,
        1971.5909503065513,
        13731.69376550946,
        45921.95393154987,
        67265.7709270087,
        33430.57558358813,
        2509.0809287301227,
    ],
    [
        1.0,
        42.31333070160091,
        687.1870074920579,
        5394.196021424751,
        21213.794301586597,
        39307.89580009271,
        28729.085735721943,
        5226.495278852854,
    ],
];
/// Beyond that, down to a tail of e^-25.
const TAIL: Rational = [
    [
        1.4234371107496835,
        4.630337846156546,
        5.769497221460691,
        3.6478483247632045,
        1.2704582524523684,
        0.2417807251774506,
        0.022723844989269184,
        0.0007745450142783414,
    ],
    [
        1.0,
        2.053191626637759,
        1.6763848301838038,
        0.6897673349851,
        0.14810397642748008,
        0.015198666563616457,
        0.0005475938084995345,
        1.0507500716444169e-9,
    ],
];
/// Smaller tails.
const FAR_TAIL: Rational = [
    [
        6.657904643501103,
        5.463784911164114,
        1.7848265399172913,
        0.29656057182850487,
        0.026532189526576124,
        0.0012426609473880784,
        2.7115555687434876e-5,
        2.0103343992922881e-7,
    ],
    [
        1.0,
        0.599832206555888,
        0.1369298809227358,
        0.014875361290850615,
        0.0007868691311456133,
        1.8463183175100548e-5,
        1.421511758316446e-7,
        2.0442631033899397e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_quantile_inverts_the_distribution_function() {
        // One step in p moves x by 1 / density, so the comparison is relative to p in the lower
        // half, where p is exact.
        for p in [1e-300, 1e-100, 1e-20, 1e-12, 1e-6, 0.001, 0.05, 0.0749, 0.0751, 0.2, 0.4, 0.5] {
            let x = normal_quantile(p);
            // The tail's relative error is about |x| times that of x, which is 1e-16 of |x|.
            assert!((normal_cdf(x) / p - 1.0).abs() < 1e-15 * (4.0 + x * x), "{p}: {x}");
        }
        for p in [0.0625, 0.25, 0.03125] {
            assert_eq!(normal_quantile(p), -normal_quantile(1.0 - p));
        }
        // Tables give 1.959964 at 0.975.
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert_eq!([0.0, 0.5, 1.0].map(normal_quantile), [f64::NEG_INFINITY, 0.0, f64::INFINITY]);
        assert!(normal_quantile(-0.1).is_nan() && normal_quantile(1.1).is_nan());
    }

    #[test]
    fn quantiles_of_student_are_those_of_the_tables() {
        let probabilities = [0.9, 0.95, 0.975, 0.99, 0.995, 0.999];
        // Roots of the regularized incomplete beta function, found with 40 digits.
        let tables = [
            (1, [3.0776835371753, 6.313751514675, 12.706204736175, 31.820515953774, 63.656741162872, 318.30883898555]),
            (2, [1.8856180831641, 2.9199855803537, 4.3026527297495, 6.9645567342833, 9.9248432009183, 22.32712477012]),
            (3, [1.6377443536962, 2.3533634348018, 3.1824463052837, 4.5407028585681, 5.8409093097334, 10.214531852407]),
            (9, [1.3830287383966, 1.8331129326562, 2.2621571627982, 2.8214379250258, 3.2498355415921, 4.2968056627299]),
            (
                29,
                [1.3114336473016, 1.6991270265335, 2.0452296421327, 2.4620213601504, 2.7563859036706, 3.3962402883568],
            ),
            (
                1000,
                [1.2823987214609, 1.6463788172855, 1.9623390808264, 2.3300826747555, 2.580754698066, 3.0984021639129],
            ),
        ];
        for (degrees, expected) in tables {
            for (p, expected) in probabilities.into_iter().zip(expected) {
                let found = student_quantile(p, degrees);
                assert!((found / expected - 1.0).abs() < 1e-12, "{degrees}, {p}: {found} instead of {expected}");
                assert!((student_quantile(1.0 - p, degrees) / found + 1.0).abs() < 1e-10);
            }
        }
        assert_eq!([0.0, 0.5, 1.0].map(|p| student_quantile(p, 3)), [f64::NEG_INFINITY, 0.0, f64::INFINITY]);
        assert!(student_quantile(1.1, 3).is_nan() && student_quantile(0.9, 0).is_nan());
    }
    #[test]
    fn tails_of_student_are_those_of_the_tables() {
        // 2 * scipy.stats.t.sf (SciPy 1.17).
        let tables = [
            (1.0, 2.5, 0.40406102727827364),
            (3.0, 17.776, 0.007763856346531452),
            (0.1, 1.0, 0.936548965138893),
            (12.0, 4.3, 0.00018135207851323156),
            (2.0, 0.7, 0.36914815166652265),
            (40.0, 30.0, 1.3726045194406417e-27),
            (1e-3, 8.5, 0.9992251893013426),
            (5.0, 200.5, 1.2479493819344862e-6),
        ];
        for (t, degrees, expected) in tables {
            let found = student_tails(t, degrees);
            assert!((found / expected - 1.0).abs() < 1e-12, "{t}, {degrees}: {found} instead of {expected}");
            assert_eq!(student_tails(-t, degrees), found);
        }
        // It inverts the quantile of whole degrees.
        for degrees in [1, 2, 3, 9, 29, 1000] {
            for p in [0.6, 0.9, 0.975, 0.999] {
                let tails = student_tails(student_quantile(p, degrees), degrees as f64);
                assert!((tails / (2.0 - 2.0 * p) - 1.0).abs() < 1e-9, "{degrees}, {p}: {tails}");
            }
        }
        assert_eq!([0.0, f64::INFINITY].map(|t| student_tails(t, 3.0)), [1.0, 0.0]);
        assert!(student_tails(1.0, 0.0).is_nan() && student_tails(f64::NAN, 3.0).is_nan());
    }
}
