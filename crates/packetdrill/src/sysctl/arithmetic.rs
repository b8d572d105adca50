//! `$((...))` of a shell: arithmetic for the numbers in sysctls.

/// The text with every `$((...))` replaced by its value; why not, if one has none.
pub(super) fn expand(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$((") {
        let mut terms = Terms { rest: after };
        let value = terms.sum().and_then(|value| terms.close().map(|()| value));
        let value = value.ok_or_else(|| format!("`$(({}` has no value", after.lines().next().unwrap_or("")))?;
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = terms.rest;
    }
    Ok(out + rest)
}

/// Reads an expression from the front of a text.
struct Terms<'a> {
    rest: &'a str,
}

impl Terms<'_> {
    fn takes(&mut self, sign: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn close(&mut self) -> Option<()> {
        self.takes("))").then_some(())
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.total()?;
        loop {
            if self.takes("<<") {
                value = value.checked_mul(1i64.checked_shl(u32::try_from(self.total()?).ok()?)?)?;
            } else if self.takes(">>") {
                value = value.checked_shr(u32::try_from(self.total()?).ok()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn total(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.takes("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        loop {
            if self.takes("*") {
                value = value.checked_mul(self.factor()?)?;
            } else if self.takes("/") {
                value = value.checked_div(self.factor()?)?;
            } else if self.takes("%") {
                value = value.checked_rem(self.factor()?)?;
            } else {
                return Some(value);
            }
        }
    }

    /// A number, or parentheses: one level, which is all that numbers need and no text can nest too
    /// deep.
    fn factor(&mut self) -> Option<i64> {
        if !self.takes("(") {
            return self.number();
        }
        let (inner, rest) = self.rest.split_once(')')?;
        if inner.contains('(') {
            return None;
        }
        let mut terms = Terms { rest: inner };
        let value = terms.sum()?;
        self.rest = rest;
        terms.rest.trim().is_empty().then_some(value)
    }

    fn number(&mut self) -> Option<i64> {
        self.rest = self.rest.trim_start();
        let length = self.rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        }
    }
}
