//! Quantities as scenario files write them: a decimal number directly followed by its unit.
//!
//! Decimal prefixes are decimal (`1kB` = 1000 bytes, `1kbit` = 1000 bit/s) and binary ones binary
//! (`1KiB` = 1024 bytes). Numbers are read digit by digit, so that `1.5ms` is exactly 1,500,000 ns;
//! what is between two nanoseconds, bits per second or bytes is rounded, as programs write more
//! digits than that. Exponents are read: `2.5e6bit`.

use crate::{Rate, Span};

/// An amount of data: a packet count or a byte count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number of packets: `180p`.
    Packets(u64),
    /// A number of bytes: `50kB`.
    Bytes(u64),
}

/// The reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not start with a decimal number.
    #[error("expected a number with a unit, such as {example}")]
    NotANumber {
        /// A valid text.
        example: &'static str,
    },
    /// A minus sign.
    #[error("must not be negative")]
    Negative,
    /// A number and nothing after it.
    #[error("the unit is missing; expected one of {expected}")]
    MissingUnit {
        /// The units that are known, for a person.
        expected: &'static str,
    },
    /// A unit that is not one of this quantity.
    #[error("unknown unit `{found}`; expected one of {expected}")]
    UnknownUnit {
        /// The unit as written.
        found: String,
        /// The units that are known, for a person.
        expected: &'static str,
    },
    /// Less than the smallest step, or between two packets.
    #[error("finer than the resolution of {smallest}")]
    TooFine {
        /// The smallest step.
        smallest: &'static str,
    },
    /// Out of range.
    #[error("too large; the maximum is {most}")]
    TooLarge {
        /// The largest value.
        most: &'static str,
    },
    /// A rate of zero.
    #[error("must not be zero")]
    Zero,
}

const SPAN_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const RATE_UNITS: &[(&str, u64)] =
    &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("tbit", 1_000_000_000_000)];
const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads a length of time: `20ms`, `1.5s`, `0s`. Units: ns, us, ms, s, min, h.
///
/// # Errors
/// No number, a sign, no unit or an unknown one, above zero and less than 1 ns, beyond 500 years.
pub fn parse_span(text: &str) -> Result<Span, QuantityError> {
    let expected = "ns, us, ms, s, min, h";
    scaled(text, SPAN_UNITS, "\"20ms\"", expected, "1ns", "500 years").map(Span::from_nanos)
}

/// Reads a rate: `10mbit`, `1.5gbit`. Units, decimal: bit, kbit, mbit, gbit, tbit (per second).
///
/// # Errors
/// As [`parse_span`]; also zero and above 1000 tbit.
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let bits = scaled(text, RATE_UNITS, "\"10mbit\"", "bit, kbit, mbit, gbit, tbit", "1bit", "1000tbit")?;
    match Rate::from_bps(bits) {
        Some(rate) => Ok(rate),
        None if bits == 0 => Err(QuantityError::Zero),
        None => Err(QuantityError::TooLarge { most: "1000tbit" }),
    }
}

/// Reads an amount of data: `180p` (packets), `50kB`, `600KiB`, `64B`. Decimal: B, kB, MB, GB, TB;
/// binary: KiB, MiB, GiB, TiB.
///
/// # Errors
/// As [`parse_span`].
pub fn parse_size(text: &str) -> Result<Size, QuantityError> {
    let expected = "p (packets), B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
    let example = "\"180p\" or \"50kB\"";
    let (_, unit) = split(text, example)?;
    if unit == "p" {
        return scaled(text, &[("p", 1)], example, expected, "1p", "2^64 packets").map(Size::Packets);
    }
    scaled(text, BYTE_UNITS, example, expected, "1B", "2^64 bytes").map(Size::Bytes)
}

/// A quantity of any kind as a number with its unit: bit/s, s, B, or p for packets; `None` for any
/// other text.
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let rate = || Some((parse_rate(text).ok()?.as_bps() as f64, "bit/s"));
    let span = || Some((parse_span(text).ok()?.as_secs_f64(), "s"));
    let size = || match parse_size(text).ok()? {
        Size::Bytes(bytes) => Some((bytes as f64, "B")),
        Size::Packets(packets) => Some((packets as f64, "p")),
    };
    rate().or_else(span).or_else(size)
}

/// The most digits that are looked at: with them, a value in the largest unit is exact.
const MOST_DIGITS: usize = 25;

/// Cuts a text into its number and its unit, spaces between them allowed.
fn split<'a>(text: &'a str, example: &'static str) -> Result<(&'a str, &'a str), QuantityError> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(QuantityError::Negative);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(QuantityError::NotANumber { example });
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if digits(unsigned) > 0 {
            end = text.len() - unsigned.len() + digits(unsigned);
        }
    }
    Ok((&text[..end], text[end..].trim_start()))
}

/// The number times its unit's factor: exact, or the nearest that there is.
fn scaled(
    text: &str,
    units: &[(&str, u64)],
    example: &'static str,
    expected: &'static str,
    smallest: &'static str,
    most: &'static str,
) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, example)?;
    if unit.is_empty() {
        return Err(QuantityError::MissingUnit { expected });
    }
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(QuantityError::UnknownUnit { found: unit.to_owned(), expected });
    };
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || number.ends_with('.') {
        return Err(QuantityError::NotANumber { example });
    }
    let too_large = || QuantityError::TooLarge { most };
    let too_fine = || QuantityError::TooFine { smallest };
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(0);
    }
    let kept = digits.len().min(MOST_DIGITS);
    // The number is `digits` times ten to this.
    let exponent = exponent.parse::<i32>().unwrap_or(if exponent.starts_with('-') { -1000 } else { 1000 });
    let power = i64::from(exponent) - fraction.len() as i64 + (digits.len() - kept) as i64;
    let digits: u128 = digits[..kept].parse().map_err(|_| too_large())?;
    let (product, scale) = (digits * u128::from(factor), 10u128.checked_pow(power.unsigned_abs().min(40) as u32));
    let value = match scale {
        Some(scale) if power >= 0 => product.checked_mul(scale).ok_or_else(too_large)?,
        None if power >= 0 => return Err(too_large()),
        // A part of a packet is none.
        Some(scale) if unit == "p" && product % scale != 0 => return Err(too_fine()),
        Some(scale) => (product + scale / 2) / scale,
        None => 0,
    };
    match u64::try_from(value) {
        Ok(0) => Err(too_fine()),
        // Half of the smallest step is not rounded up to it.
        Ok(1) if scale.is_some_and(|scale| power < 0 && product < scale) => Err(too_fine()),
        Ok(value) => Ok(value),
        Err(_) => Err(too_large()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(parse_span("20ms"), Ok(Span::from_millis(20)));
        assert_eq!(parse_span("1.5ms"), Ok(Span::from_nanos(1_500_000)));
        assert_eq!(parse_span("0.000000001s"), Ok(Span::from_nanos(1)));
        assert_eq!(parse_span(" 2 min "), Ok(Span::from_secs(120)));
        assert_eq!(parse_rate("10mbit").map(Rate::as_bps), Ok(10_000_000));
        assert_eq!(parse_rate("2.5gbit").map(Rate::as_bps), Ok(2_500_000_000));
        assert_eq!(parse_size("180p"), Ok(Size::Packets(180)));
        assert_eq!(parse_size("50kB"), Ok(Size::Bytes(50_000)));
        assert_eq!(parse_size("600KiB"), Ok(Size::Bytes(614_400)));
        assert_eq!(parse_size("0.5KiB"), Ok(Size::Bytes(512)));
        assert_eq!(parse_span("9007199254.740993s").map(Span::as_nanos), Ok(9_007_199_254_740_993_000));
    }

    #[test]
    fn digits_beyond_the_smallest_step_are_rounded() {
        assert_eq!(parse_rate("2.52118518519mbit").map(Rate::as_bps), Ok(2_521_185));
        assert_eq!(parse_rate("2521185.5bit").map(Rate::as_bps), Ok(2_521_186));
        assert_eq!(parse_span("0.810000181198s"), Ok(Span::from_nanos(810_000_181)));
        assert_eq!(parse_span("0.1000000000000000055511151231257827s"), Ok(Span::from_millis(100)));
        assert_eq!(parse_size("0.3KiB"), Ok(Size::Bytes(307)));
        for (text, bps) in [("2.5e6bit", 2_500_000), ("1e-3gbit", 1_000_000), ("4E+1 mbit", 40_000_000)] {
            assert_eq!(parse_rate(text).map(Rate::as_bps), Ok(bps), "{text}");
        }
        assert_eq!(parse_span("1.5e0s"), Ok(Span::from_millis(1500)));
        assert_eq!(parse_span("0e99999999999s"), Ok(Span::ZERO));
        assert_eq!(parse_size("2e2p"), Ok(Size::Packets(200)));
        assert_eq!(parse_size("1e-1p"), Err(QuantityError::TooFine { smallest: "1p" }));
        assert_eq!(parse_span("1e-99999999999s"), Err(QuantityError::TooFine { smallest: "1ns" }));
        assert_eq!(parse_span("1e99s"), Err(QuantityError::TooLarge { most: "500 years" }));
        assert!(parse_span("1es").is_err() && parse_span("e3s").is_err());
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, message) in [
            ("", "expected a number with a unit, such as \"20ms\""),
            ("fast", "expected a number with a unit, such as \"20ms\""),
            ("1.2.3s", "expected a number with a unit, such as \"20ms\""),
            ("-5ms", "must not be negative"),
            ("20", "the unit is missing; expected one of ns, us, ms, s, min, h"),
            ("20mbit", "unknown unit `mbit`; expected one of ns, us, ms, s, min, h"),
            ("0.5ns", "finer than the resolution of 1ns"),
            ("99999999999h", "too large; the maximum is 500 years"),
        ] {
            assert_eq!(parse_span(text).unwrap_err().to_string(), message, "{text}");
        }
        assert_eq!(parse_rate("0mbit"), Err(QuantityError::Zero));
        assert_eq!(parse_rate("1001tbit"), Err(QuantityError::TooLarge { most: "1000tbit" }));
        assert_eq!(parse_size("1.5p"), Err(QuantityError::TooFine { smallest: "1p" }));
        assert_eq!(parse_size("0.0003KiB"), Err(QuantityError::TooFine { smallest: "1B" }));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nanos: u64, bps in 1..=Rate::MAX.as_bps()) {
            let span = Span::from_nanos(nanos);
            prop_assert_eq!(parse_span(&span.to_string()), Ok(span));
            let rate = Rate::from_bps(bps).unwrap();
            prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = (parse_span(&text), parse_rate(&text), parse_size(&text));
        }

        #[test]
        fn no_number_panics(text in r"[0-9]{0,30}\.?[0-9]{0,60}([eE][+-]?[0-9]{0,12})?(ns|ms|s|h|KiB|kB|p|tbit)") {
            let _ = (parse_span(&text), parse_rate(&text), parse_size(&text));
        }
    }
}
