//! Rust source as tokens: identifiers and punctuation, without comments, literals and what is
//! compiled for tests only.

/// An identifier, a keyword, or one character of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
    }
}

/// The tokens of a file. Every literal is a `0`.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let (length, text) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), None),
            _ if rest.starts_with("/*") => (block_comment(rest), None),
            _ if first.is_whitespace() => (first.len_utf8(), None),
            '"' => (quoted(rest), Some("0")),
            '\'' => character(rest),
            _ if first.is_ascii_digit() => (number(rest), Some("0")),
            _ if first.is_alphabetic() || first == '_' => word(rest),
            _ => (first.len_utf8(), Some(&rest[..first.len_utf8()])),
        };
        found.extend(text.map(|text| Token { text, line }));
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string with escapes.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest[1..].find(|next| {
        let ends = next == '"' && !escaped;
        escaped = next == '\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |end| end + 2)
}

/// A character, or a lifetime, which is no token.
fn character(rest: &str) -> (usize, Option<&str>) {
    let mut next = rest[1..].chars();
    match (next.next(), next.next()) {
        (Some('\\'), _) => (rest[3..].find('\'').map_or(rest.len(), |end| end + 4), Some("0")),
        (Some(only), Some('\'')) => (2 + only.len_utf8(), Some("0")),
        _ => (1 + identifier(&rest[1..]), None),
    }
}

fn identifier(rest: &str) -> usize {
    rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len())
}

/// The integer part is enough: what follows its point is a number again.
fn number(rest: &str) -> usize {
    identifier(rest)
}

/// A word, or a string with a prefix.
fn word(rest: &str) -> (usize, Option<&str>) {
    let length = identifier(rest);
    let after = &rest[length..];
    match &rest[..length] {
        "b" | "c" if after.starts_with('"') => (length + quoted(after), Some("0")),
        "b" if after.starts_with('\'') => (length + character(after).0, Some("0")),
        "r" | "br" | "cr" if after.trim_start_matches('#').starts_with('"') => {
            let hashes = after.len() - after.trim_start_matches('#').len();
            let close = format!("\"{}", "#".repeat(hashes));
            let end = after[hashes + 1..].find(&close);
            (end.map_or(rest.len(), |end| length + hashes + 1 + end + close.len()), Some("0"))
        }
        text => (length, Some(text)),
    }
}

/// The place behind the bracket that closes the one at `open`.
pub(crate) fn behind(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The place behind the generics that begin at `at`, or `at` itself if there are none.
pub(crate) fn behind_generics(tokens: &[Token<'_>], at: usize) -> usize {
    if tokens.get(at).is_none_or(|token| token.text != "<") {
        return at;
    }
    let mut depth = 0;
    for place in at..tokens.len() {
        match tokens[place].text {
            "<" => depth += 1,
            ">" if !matches!(tokens[place - 1].text, "-" | "=") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The tokens without items under `#[cfg(test)]`, and without the bodies of modules inside the
/// file.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let texts = |from: usize, wanted: &[&str]| {
            wanted.iter().enumerate().all(|(n, text)| tokens.get(from + n).is_some_and(|token| token.text == *text))
        };
        if texts(at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = behind_item(tokens, at + 7);
        } else if tokens[at].text == "mod" && tokens.get(at + 2).is_some_and(|token| token.text == "{") {
            at = behind(tokens, at + 2);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// The place behind an item: its `;`, or its body.
fn behind_item(tokens: &[Token<'_>], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "{" => return behind(tokens, at),
            "(" | "[" => at = behind(tokens, at),
            _ => at += 1,
        }
    }
    at
}
