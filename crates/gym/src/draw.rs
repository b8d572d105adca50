//! Distributions over values of a scenario.

use ackclock_units::{Random, Size, maths, parse_rate, parse_size, parse_span};
use serde::Deserialize;

/// The most choices.
const MAX_CHOICES: usize = 100_000;

/// A distribution that a scenario's value is drawn from. Bounds are written as in scenarios:
/// `"10mbit"`, `"20ms"`, `"100p"`, `0.01`.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    law: DrawLaw,
    unit: DrawUnit,
}

#[derive(Clone, Debug, PartialEq)]
enum DrawLaw {
    Uniform(f64, f64),
    LogUniform(f64, f64),
    Integer(i64, i64),
    Normal { mean: f64, deviation: f64, bounds: [f64; 2] },
    Choice(Vec<String>),
}

/// The unit of a distribution's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrawUnit {
    None,
    Bits,
    Nanos,
    Packets,
    Bytes,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DrawText {
    Uniform([Bound; 2]),
    LogUniform([Bound; 2]),
    Integer([i64; 2]),
    Normal { mean: Bound, deviation: Bound, least: Bound, most: Bound },
    Choice(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Bound {
    Number(f64),
    DrawText(String),
}

impl Bound {
    fn read(&self) -> Result<(f64, DrawUnit), String> {
        let text = match self {
            Bound::Number(number) => return Ok((*number, DrawUnit::None)),
            Bound::DrawText(text) => text,
        };
        if let Ok(number) = text.parse::<f64>() {
            return Ok((number, DrawUnit::None));
        }
        if let Ok(rate) = parse_rate(text) {
            return Ok((rate.as_bps() as f64, DrawUnit::Bits));
        }
        if let Ok(span) = parse_span(text) {
            return Ok((span.as_nanos() as f64, DrawUnit::Nanos));
        }
        match parse_size(text) {
            Ok(Size::Packets(packets)) => Ok((packets as f64, DrawUnit::Packets)),
            Ok(Size::Bytes(bytes)) => Ok((bytes as f64, DrawUnit::Bytes)),
            Err(_) => Err(format!("found \"{text}\", expected a number, a rate, a time or a size, with its unit")),
        }
    }
}

impl DrawUnit {
    fn show(self, value: f64) -> String {
        match self {
            DrawUnit::None => format!("{value:?}"),
            DrawUnit::Bits => format!("{}bit", value.round().max(1.0) as u64),
            DrawUnit::Nanos => format!("{}ns", value.round() as u64),
            DrawUnit::Packets => format!("{}p", value.round() as u64),
            DrawUnit::Bytes => format!("{}B", value.round() as u64),
        }
    }
}

/// Values of one unit.
fn same<const N: usize>(bounds: [&Bound; N]) -> Result<([f64; N], DrawUnit), String> {
    let (mut values, mut unit) = ([0.0; N], None);
    for (value, bound) in values.iter_mut().zip(bounds) {
        let (found, of) = bound.read()?;
        if *unit.get_or_insert(of) != of {
            return Err("the bounds are not of one unit".to_owned());
        }
        if !found.is_finite() {
            return Err("expected finite bounds".to_owned());
        }
        *value = found;
    }
    Ok((values, unit.unwrap_or(DrawUnit::None)))
}

fn ordered(low: f64, high: f64) -> Result<(), String> {
    if low <= high { Ok(()) } else { Err("the lower bound is above the upper one".to_owned()) }
}

impl Distribution {
    /// From JSON: `{"uniform": ["1mbit", "10mbit"]}`, `{"log_uniform": [..]}`,
    /// `{"integer": [1, 4]}`, `{"normal": {"mean", "deviation", "least", "most"}}`,
    /// `{"choice": ["\"cubic\"", "\"bbr\""]}`, with values as in TOML.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn read(json: &serde_json::Value) -> Result<Distribution, String> {
        let text: DrawText = serde_json::from_value(json.clone()).map_err(|error| error.to_string())?;
        let (law, unit) = match &text {
            DrawText::Uniform([low, high]) => {
                let ([low, high], unit) = same([low, high])?;
                ordered(low, high)?;
                (DrawLaw::Uniform(low, high), unit)
            }
            DrawText::LogUniform([low, high]) => {
                let ([low, high], unit) = same([low, high])?;
                ordered(low, high)?;
                if low <= 0.0 {
                    return Err("the lower bound of a logarithmic distribution is not above 0".to_owned());
                }
                (DrawLaw::LogUniform(low, high), unit)
            }
            &DrawText::Integer([low, high]) => {
                ordered(low as f64, high as f64)?;
                (DrawLaw::Integer(low, high), DrawUnit::None)
            }
            DrawText::Normal { mean, deviation, least, most } => {
                let ([mean, deviation, least, most], unit) = same([mean, deviation, least, most])?;
                ordered(least, most)?;
                ordered(0.0, deviation)?;
                (DrawLaw::Normal { mean, deviation, bounds: [least, most] }, unit)
            }
            DrawText::Choice(values) if values.is_empty() || values.len() > MAX_CHOICES => {
                return Err(format!("found {} choices, expected 1 to {MAX_CHOICES}", values.len()));
            }
            DrawText::Choice(values) => (DrawLaw::Choice(values.clone()), DrawUnit::None),
        };
        Ok(Distribution { law, unit })
    }

    /// A value, as `--set` has it.
    pub fn draw(&self, random: &mut Random) -> String {
        match &self.law {
            DrawLaw::Uniform(low, high) => self.unit.show(low + (high - low) * random.unit()),
            DrawLaw::LogUniform(low, high) => {
                let value = low * maths::pow(high / low, random.unit());
                self.unit.show(value.clamp(*low, *high))
            }
            DrawLaw::Integer(low, high) => {
                let numbers = (high.wrapping_sub(*low) as u64).saturating_add(1);
                low.wrapping_add(random.below(numbers) as i64).to_string()
            }
            DrawLaw::Normal { mean, deviation, bounds: [least, most] } => {
                // Never 0, where the quantile is infinite.
                let p = random.unit().max(f64::EPSILON);
                self.unit.show((mean + deviation * maths::normal_quantile(p)).clamp(*least, *most))
            }
            DrawLaw::Choice(values) => values[random.below(values.len() as u64) as usize].clone(),
        }
    }

    /// Values at its ends, or all choices, by which it can be checked.
    pub fn ends(&self) -> Vec<String> {
        match &self.law {
            DrawLaw::Uniform(low, high) | DrawLaw::LogUniform(low, high) => {
                vec![self.unit.show(*low), self.unit.show(*high)]
            }
            DrawLaw::Integer(low, high) => vec![low.to_string(), high.to_string()],
            DrawLaw::Normal { bounds: [least, most], .. } => vec![self.unit.show(*least), self.unit.show(*most)],
            DrawLaw::Choice(values) => values.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: serde_json::Value) -> Distribution {
        Distribution::read(&json).expect("it is one")
    }

    fn number(text: &str) -> f64 {
        text.trim_end_matches(|c: char| c.is_alphabetic()).parse().expect("a number")
    }

    #[test]
    fn draws_keep_to_their_bounds_and_units() {
        let mut random = Random::for_component(1, 0, "test");
        let cases = [
            (json!({"uniform": ["1mbit", "10mbit"]}), "bit", [1e6, 1e7]),
            (json!({"log_uniform": ["1ms", "1s"]}), "ns", [1e6, 1e9]),
            (json!({"log_uniform": ["10p", "1000p"]}), "p", [10.0, 1000.0]),
            (json!({"uniform": ["1kB", "2kB"]}), "B", [1000.0, 2000.0]),
            (json!({"normal": {"mean": 0.0, "deviation": 5.0, "least": -1.0, "most": 2.0}}), "", [-1.0, 2.0]),
            (json!({"integer": [-3, 3]}), "", [-3.0, 3.0]),
        ];
        for (text, unit, [least, most]) in cases {
            let distribution = read(text);
            let drawn: Vec<String> = (0..2000).map(|_| distribution.draw(&mut random)).collect();
            let numbers: Vec<f64> = drawn.iter().map(|text| number(text)).collect();
            assert!(drawn.iter().all(|text| text.ends_with(unit)), "{drawn:?}");
            assert!(numbers.iter().all(|number| (least..=most).contains(number)), "{numbers:?}");
            // It is drawn from all of it.
            let middle = (least + most) / 2.0;
            assert!(numbers.iter().any(|&number| number < middle) && numbers.iter().any(|&number| number > middle));
            assert_eq!(distribution.ends().iter().map(|text| number(text)).collect::<Vec<_>>(), [least, most]);
        }
        let median = |values: Vec<f64>| {
            let mut values = values;
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let log = read(json!({"log_uniform": [1.0, 1e6]}));
        let median = median((0..4001).map(|_| number(&log.draw(&mut random))).collect());
        assert!((500.0..2000.0).contains(&median), "{median}");
        assert_eq!(read(json!({"choice": ["\"bbr\""]})).draw(&mut random), "\"bbr\"");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            (json!({"uniform": ["1mbit", "10ms"]}), "the bounds are not of one unit"),
            (json!({"uniform": ["10mbit", "1mbit"]}), "the lower bound is above"),
            (json!({"log_uniform": [0.0, 1.0]}), "not above 0"),
            (json!({"uniform": ["fast", "slow"]}), "found \"fast\", expected a number"),
            (json!({"choice": []}), "found 0 choices"),
            (json!({"zipf": [1, 2]}), "unknown variant `zipf`"),
        ] {
            let error = Distribution::read(&text).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
