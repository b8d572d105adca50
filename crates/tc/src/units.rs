//! Quantities as `tc` reads them, and as it is given them.
//!
//! # Source
//! iproute2 7.1: `lib/utils_math.c` (`get_rate64`, `get_size64`), `lib/utils.c` (`get_time`,
//! `get_time64`, `get_unsigned`), `tc/tc_util.c` (`parse_percent`, `get_tc_classid`).
//!
//! # Departures
//! - Hexadecimal fractions, `inf` and `nan`, which `strtod` reads, are no numbers.

use ackclock_units::{Rate, Span};

/// The values that a quantity may have, for an error.
pub(crate) type Expected = &'static str;

pub(crate) const A_RATE: Expected =
    "a rate: bit/s, or with bit, kbit, mbit, gbit, tbit (1000), kibit, ... (1024), or bytes/s: bps, kbps, mbps, ...";
pub(crate) const A_SIZE: Expected = "a size: bytes, or with b, k, kb, m, mb, g, gb (1024), kbit, mbit, gbit";
pub(crate) const A_TIME: Expected = "a time: microseconds, or with s, ms, us";
pub(crate) const A_TIME64: Expected = "a time: nanoseconds, or with s, ms, us, ns";
pub(crate) const A_NUMBER: Expected = "a whole number";
pub(crate) const A_PERCENT: Expected = "a percentage from 0% to 100%";

/// Cuts the number at the beginning of a text off (`strtod`).
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = usize::from(text.starts_with(['+', '-']));
    let whole = digits(&text[end..]);
    end += whole;
    let mut fraction = 0;
    if text[end..].starts_with('.') {
        fraction = digits(&text[end + 1..]);
        end += if whole + fraction > 0 { 1 + fraction } else { 0 };
    }
    if whole + fraction == 0 {
        return None;
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[end + 1 + sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value = text[..end].parse().ok().filter(|value: &f64| value.is_finite())?;
    Some((value, &text[end..]))
}

/// A number from 0 on, multiplied by what its suffix stands for.
fn scaled(text: &str, suffixes: &[(&str, f64)]) -> Option<f64> {
    let (value, suffix) = number(text).filter(|&(value, _)| value >= 0.0)?;
    if suffix.is_empty() {
        return Some(value);
    }
    let scale = suffixes.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix))?.1;
    Some(value * scale)
}

/// A whole number of at most 64 bits; the fraction is cut off.
fn whole(value: f64) -> Option<u64> {
    (value < u64::MAX as f64).then_some(value as u64)
}

/// A rate in bytes per second, of which there are no fractions (`get_rate64`).
pub(crate) fn rate(text: &str) -> Result<u64, Expected> {
    const KI: f64 = 1024.0;
    const SUFFIXES: &[(&str, f64)] = &[
        ("bit", 1.0),
        ("kibit", KI),
        ("kbit", 1e3),
        ("mibit", KI * KI),
        ("mbit", 1e6),
        ("gibit", KI * KI * KI),
        ("gbit", 1e9),
        ("tibit", KI * KI * KI * KI),
        ("tbit", 1e12),
        ("bps", 8.0),
        ("kibps", 8.0 * KI),
        ("kbps", 8e3),
        ("mibps", 8.0 * KI * KI),
        ("mbps", 8e6),
        ("gibps", 8.0 * KI * KI * KI),
        ("gbps", 8e9),
        ("tibps", 8.0 * KI * KI * KI * KI),
        ("tbps", 8e12),
    ];
    scaled(text, SUFFIXES).and_then(|bits| whole(bits / 8.0)).ok_or(A_RATE)
}

/// A rate of at most 32 bits, in bytes per second (`get_rate`).
pub(crate) fn rate32(text: &str) -> Result<u64, Expected> {
    rate(text).and_then(|rate| if rate <= u64::from(u32::MAX) { Ok(rate) } else { Err("a rate below 34 gbit") })
}

/// A rate in scenarios for one in bytes per second.
pub(crate) fn rate_of(bytes: u64) -> Option<Rate> {
    Rate::from_bps(bytes.checked_mul(8)?)
}

/// A number of bytes (`get_size64`).
pub(crate) fn size(text: &str) -> Result<u64, Expected> {
    const K: f64 = 1024.0;
    const SUFFIXES: &[(&str, f64)] = &[
        ("b", 1.0),
        ("k", K),
        ("kb", K),
        ("m", K * K),
        ("mb", K * K),
        ("g", K * K * K),
        ("gb", K * K * K),
        ("kbit", K / 8.0),
        ("mbit", K * K / 8.0),
        ("gbit", K * K * K / 8.0),
    ];
    scaled(text, SUFFIXES).and_then(whole).ok_or(A_SIZE)
}

/// A number of bytes of at most 32 bits (`get_size`).
pub(crate) fn size32(text: &str) -> Result<u64, Expected> {
    size(text).and_then(|size| if size <= u64::from(u32::MAX) { Ok(size) } else { Err("a size below 4g") })
}

/// A number of bytes, and behind a slash that of a cell, a power of two (`get_size64_and_cell`).
pub(crate) fn size_and_cell(text: &str) -> Result<u64, Expected> {
    let Some((bytes, cell)) = text.split_once('/') else { return size(text) };
    match unsigned(cell, 0) {
        Ok(cell) if cell.is_power_of_two() && cell <= 1 << 31 => size(bytes),
        _ => Err("a size, or a size and a power of two: 15k/8"),
    }
}

const TIMES: &[(&str, f64)] = &[
    ("s", 1e9),
    ("sec", 1e9),
    ("secs", 1e9),
    ("ms", 1e6),
    ("msec", 1e6),
    ("msecs", 1e6),
    ("us", 1e3),
    ("usec", 1e3),
    ("usecs", 1e3),
];

/// A time in whole microseconds, of at most 32 bits (`get_time`).
pub(crate) fn time(text: &str) -> Result<Span, Expected> {
    const MICROS: &[(&str, f64)] = &[
        ("s", 1e6),
        ("sec", 1e6),
        ("secs", 1e6),
        ("ms", 1e3),
        ("msec", 1e3),
        ("msecs", 1e3),
        ("us", 1.0),
        ("usec", 1.0),
        ("usecs", 1.0),
    ];
    let micros = scaled(text, MICROS).and_then(whole).filter(|&micros| micros <= u64::from(u32::MAX)).ok_or(A_TIME)?;
    Ok(Span::from_micros(micros))
}

/// A time in nanoseconds (`get_time64`).
pub(crate) fn time64(text: &str) -> Result<Span, Expected> {
    const NANOS: &[(&str, f64)] = &[("ns", 1.0), ("nsec", 1.0), ("nsecs", 1.0)];
    let nanos = scaled(text, TIMES).or_else(|| scaled(text, NANOS));
    nanos.and_then(whole).filter(|&nanos| nanos <= i64::MAX as u64).map(Span::from_nanos).ok_or(A_TIME64)
}

/// A whole number in a base; base 0 is 10, 16 after `0x`, and 8 after `0` (`strtoul`).
pub(crate) fn unsigned(text: &str, base: u32) -> Result<u64, Expected> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, base) = match (base, hex) {
        (0 | 16, Some(digits)) => (digits, 16),
        (0, None) if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        (0, None) => (text, 10),
        (base, _) => (text, base),
    };
    let is_plain = digits.starts_with(|c: char| c.is_ascii_alphanumeric());
    u32::from_str_radix(digits, base).ok().filter(|_| is_plain).map(u64::from).ok_or(A_NUMBER)
}

/// A whole number that may be below zero, of 32 bits.
pub(crate) fn signed(text: &str) -> Result<i32, Expected> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = i64::try_from(unsigned(digits, 0)?).map_err(|_| A_NUMBER)?;
    i32::try_from(sign * value).map_err(|_| A_NUMBER)
}

/// A percentage, with `%` or without, as a fraction (`parse_percent`).
pub(crate) fn percent(text: &str) -> Result<f64, Expected> {
    let Some((value, rest @ ("" | "%"))) = number(text).filter(|(value, _)| (0.0..=100.0).contains(value)) else {
        return Err(A_PERCENT);
    };
    // The decimal fraction itself: a hundredth of the nearest number may be the one beside it.
    let digits = &text[..text.len() - rest.len()];
    Ok(format!("{digits}e-2").parse().unwrap_or(value / 100.0))
}

/// The number of a class, with that of its qdisc in the upper half (`get_tc_classid`): `1:10` is
/// hexadecimal.
pub(crate) fn class_id(text: &str) -> Result<u32, Expected> {
    const EXPECTED: Expected = "the number of a class, such as 1:10, in hexadecimal";
    let half = |text: &str| match text {
        "" => Ok(0),
        _ => unsigned(text, 16).ok().filter(|&half| half < 1 << 16).map(|half| half as u32).ok_or(EXPECTED),
    };
    match text.split_once(':') {
        Some((major, minor)) => Ok(half(major)? << 16 | half(minor)?),
        None => unsigned(text, 16).map(|id| id as u32).map_err(|_| EXPECTED),
    }
}

/// The number of a qdisc, in the upper half (`get_qdisc_handle`): `1:`.
pub(crate) fn handle(text: &str) -> Result<u32, Expected> {
    const EXPECTED: Expected = "the number of a qdisc, such as 1:, in hexadecimal";
    let major = text.strip_suffix(':').unwrap_or(text);
    match unsigned(major, 16) {
        Ok(major) if major < 1 << 16 => Ok((major as u32) << 16),
        _ => Err(EXPECTED),
    }
}

/// The number of a class as `tc` writes it.
pub(crate) fn show_id(id: u32) -> String {
    match (id >> 16, id & 0xffff) {
        (major, 0) => format!("{major:x}:"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

/// A time for `tc`, in whole microseconds.
pub(crate) fn show_time(time: Span) -> String {
    match time.as_nanos() / 1000 {
        micros if micros.is_multiple_of(1000) => format!("{}ms", micros / 1000),
        micros => format!("{micros}us"),
    }
}

/// A time for `tc`, in nanoseconds.
pub(crate) fn show_time64(time: Span) -> String {
    if time.as_nanos().is_multiple_of(1000) { show_time(time) } else { format!("{}ns", time.as_nanos()) }
}

/// A rate for `tc`. It counts bytes per second: a rate that is no multiple of 8 bit/s is rounded.
pub(crate) fn show_rate(rate: Rate) -> String {
    Rate::from_bps(rate.as_bps() / 8 * 8).unwrap_or(rate).to_string()
}

/// A fraction for `tc`, as a percentage with all its digits.
pub(crate) fn show_percent(fraction: f64) -> String {
    let written = format!("{fraction:e}");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let digits = mantissa.replace('.', "");
    // Digits before the point.
    let whole = exponent.parse::<i32>().unwrap_or(0) + 3;
    match usize::try_from(whole) {
        Err(_) | Ok(0) => format!("0.{}{digits}%", "0".repeat(whole.unsigned_abs() as usize)),
        Ok(whole) if whole >= digits.len() => format!("{digits:0<whole$}%"),
        Ok(whole) => format!("{}.{}%", &digits[..whole], &digits[whole..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_tc() {
        // tc(8), units: kbit is 1000 bit/s, kibit 1024, kbps 1000 bytes/s; without a unit bit/s.
        for (text, bytes) in [
            ("10mbit", 1_250_000),
            ("8000", 1000),
            ("1kbit", 125),
            ("1Kibit", 128),
            ("1kbps", 1000),
            ("1KiBps", 1024),
            ("1.5gbit", 187_500_000),
            ("1GBPS", 1_000_000_000),
            // 9999 bit/s are 1249.875 bytes/s: fractions are cut off.
            ("9999bit", 1249),
            ("1e3kbit", 125_000),
        ] {
            assert_eq!(rate(text), Ok(bytes), "{text}");
        }
        for text in ["", "mbit", "-1mbit", "10mb", "10mbit/s", "nan", "inf", "1e99"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(rate32("34.4gbit").is_err());
    }

    #[test]
    fn sizes_are_binary() {
        // tc(8): k and kb are 1024 bytes, kbit is 1024 bits.
        for (text, bytes) in
            [("1600", 1600), ("15k", 15_360), ("1kb", 1024), ("2b", 2), ("1mbit", 131_072), ("0.5k", 512)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size_and_cell("15k/8"), Ok(15_360));
        for text in ["1kib", "1bytes", "", "-1"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(size_and_cell("15k/7").is_err());
    }

    #[test]
    fn times_without_unit_are_those_of_their_function() {
        assert_eq!(time("5ms"), Ok(Span::from_millis(5)));
        assert_eq!(time("300"), Ok(Span::from_micros(300)));
        // 1.5 us are a whole number of microseconds.
        assert_eq!(time("1.5us"), Ok(Span::from_micros(1)));
        assert_eq!(time64("300"), Ok(Span::from_nanos(300)));
        assert_eq!(time64("1.5us"), Ok(Span::from_nanos(1500)));
        assert!(time("5ns").is_err() && time("1min").is_err() && time("5000s").is_err());
    }

    #[test]
    fn numbers_have_the_base_of_their_option() {
        assert_eq!(unsigned("0x10", 0), Ok(16));
        assert_eq!(unsigned("010", 0), Ok(8));
        assert_eq!(unsigned("10", 16), Ok(16));
        assert_eq!(unsigned("0x10", 16), Ok(16));
        assert_eq!(class_id("1:10"), Ok(0x1_0010));
        assert_eq!(class_id("1:"), Ok(0x1_0000));
        assert_eq!(class_id("0x1:0x2"), Ok(0x1_0002));
        assert_eq!(handle("ffff:"), Ok(0xffff_0000));
        assert!(unsigned("+5", 10).is_err() && unsigned("-5", 0).is_err() && class_id("1:2:3").is_err());
    }

    #[test]
    fn percentages_come_back() {
        assert_eq!([0.001, 0.25, 1.0, 0.015].map(show_percent), ["0.1%", "25%", "100%", "1.5%"]);
        for value in [0.0, 0.001, 0.01, 0.1, 0.29, 0.57, 1.0 / 3.0, 0.07, 1.0, 1e-9] {
            assert_eq!(percent(&show_percent(value)), Ok(value));
        }
        assert_eq!(percent("10"), Ok(0.1));
        assert!(percent("101%").is_err() && percent("1%%").is_err());
    }
}
