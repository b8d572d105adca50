//! `'format' % values`.

use crate::expr::Value;
use crate::expr::value::{MAX_LENGTH, Number, Outcome};

/// The widest field and the most digits.
const MAX_FIELD: usize = 1000;

/// The part between `%` and the letter.
#[derive(Default)]
struct Field {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

pub(super) fn format(format: &str, values: &Value) -> Outcome<String> {
    let mut values = match values {
        Value::Tuple(values) => values.iter(),
        one => std::slice::from_ref(one).iter(),
    };
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let mut field = Field::default();
        while let Some(&flag) = chars.peek() {
            match flag {
                '-' => field.left = true,
                '0' => field.zero = true,
                '+' => field.plus = true,
                ' ' => field.space = true,
                '#' => field.alternate = true,
                _ => break,
            }
            chars.next();
        }
        let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut number = 0_usize;
            while let Some(digit) = chars.peek().and_then(|char| char.to_digit(10)) {
                number = (number * 10 + digit as usize).min(MAX_FIELD);
                chars.next();
            }
            number
        };
        field.width = number(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            field.precision = Some(number(&mut chars));
        }
        // C's lengths mean nothing.
        while chars.next_if(|char| "hlL".contains(*char)).is_some() {}
        let letter = chars.next().ok_or("a format that ends within `%`")?;
        if letter == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or("more fields than values in a format")?;
        out.push_str(&field.write(letter, value)?);
        if out.len() > MAX_LENGTH {
            return Err("a string that is too long".to_owned());
        }
    }
    if values.next().is_some() {
        return Err("more values than fields in a format".to_owned());
    }
    Ok(out)
}

impl Field {
    fn write(&self, letter: char, value: &Value) -> Outcome<String> {
        let wrong = || format!("`%{letter}` does not go with {}", value.kind());
        let (prefix, digits) = match letter {
            's' | 'r' => {
                let text = if letter == 's' { value.to_string() } else { value.repr() };
                let text: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
                return Ok(self.pad("", &text, false));
            }
            'd' | 'i' | 'u' => {
                let int = match value.number().ok_or_else(wrong)? {
                    Number::Int(int) => int,
                    Number::Float(float) if float.is_finite() && float.abs() < 1e38 => float as i128,
                    Number::Float(_) => return Err(wrong()),
                };
                (self.sign(int < 0), self.digits(int.unsigned_abs().to_string()))
            }
            'x' | 'X' | 'o' => {
                let int = value.int().ok_or_else(wrong)?;
                let size = int.unsigned_abs();
                let digits = match letter {
                    'x' => format!("{size:x}"),
                    'X' => format!("{size:X}"),
                    _ => format!("{size:o}"),
                };
                let base = if self.alternate { format!("0{letter}") } else { String::new() };
                (format!("{}{base}", self.sign(int < 0)), self.digits(digits))
            }
            'f' | 'F' => {
                let float = value.number().ok_or_else(wrong)?.float();
                let precision = self.precision.unwrap_or(6);
                (self.sign(float.is_sign_negative()), format!("{:.precision$}", float.abs()))
            }
            _ => {
                return Err(format!(
                    "`%{letter}` is not a supported conversion; these are: %d %i %u %x %X %o %f %s %r"
                ));
            }
        };
        Ok(self.pad(&prefix, &digits, self.zero))
    }

    fn sign(&self, negative: bool) -> String {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        sign.to_owned()
    }

    /// Pads digits with zeros up to the precision.
    fn digits(&self, digits: String) -> String {
        format!("{digits:0>0$}", self.precision.unwrap_or(0))
    }

    fn pad(&self, prefix: &str, text: &str, zero: bool) -> String {
        let fill = self.width.saturating_sub(prefix.chars().count() + text.chars().count());
        if self.left {
            format!("{prefix}{text}{}", " ".repeat(fill))
        } else if zero {
            format!("{prefix}{}{text}", "0".repeat(fill))
        } else {
            format!("{}{prefix}{text}", " ".repeat(fill))
        }
    }
}
