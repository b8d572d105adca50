//! The requests of a socket: one on each line, in plain text, with an answer to each.

use super::{Controls, OVER};

/// The possible requests.
pub(crate) const REQUESTS: &str = "set KEY=VALUE..., get KEY, list, status, pause, resume, speed FACTOR or stop";

/// The request that ends the run: that is done once it was answered, while there is somebody to
/// answer.
const STOP: &str = "stop";

/// Returns `true` if a request ends the run.
pub(super) fn is_stop(request: &str) -> bool {
    request.trim() == STOP
}

/// The answer to a request, lines with their ends. One that went well begins with `ok`, one that
/// did not with `error`; that to `list` has a line for each key, and ends with an empty one.
pub(crate) fn answer(controls: &Controls, request: &str) -> String {
    let (command, rest) = request.split_once(char::is_whitespace).unwrap_or((request, ""));
    let (command, rest) = (command.trim(), rest.trim());
    let alone = |answer: &dyn Fn() -> Result<String, String>| {
        if rest.is_empty() { answer() } else { Err(format!("`{command}` takes nothing; found `{rest}`")) }
    };
    let answered = match command {
        "set" => controls.set_all(&words(rest)),
        "get" if rest.is_empty() || rest.contains(char::is_whitespace) => {
            Err("`get` takes a key, such as links.bottleneck.rate".to_owned())
        }
        "get" => controls.get(rest),
        "list" if rest.is_empty() => {
            let lines = controls.list().into_iter().map(|(key, value)| format!("{key}={value}\n"));
            return lines.chain(["\n".to_owned()]).collect();
        }
        "status" => alone(&|| {
            let state = if controls.is_paused() { "paused" } else { "running" };
            Ok(format!("{state} at {:.3} s", controls.now().as_secs_f64()))
        }),
        "pause" => alone(&|| controls.pause(true)),
        "resume" => alone(&|| controls.pause(false)),
        "speed" => match rest.parse() {
            Ok(factor) => controls.speed(factor),
            Err(_) => Err(format!("`{rest}` is no speed; expected a number, such as 0.5 or 10")),
        },
        STOP => alone(&|| Ok("ends".to_owned())),
        "list" => alone(&|| Ok(String::new())),
        "" => Err(format!("an empty request; expected {REQUESTS}")),
        other => Err(format!("unknown request `{other}`; expected {REQUESTS}")),
    };
    match answered {
        Ok(done) => format!("ok {done}\n"),
        Err(error) => format!("error {error}\n"),
    }
}

/// Returns `true` if an answer says that the run is over.
pub fn says_over(answer: &str) -> bool {
    answer.strip_prefix("error ").is_some_and(|error| error.trim_end() == OVER)
}

/// Cuts at spaces that are not in quotes, brackets or braces.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut from, mut depth, mut quote) = (Vec::new(), None, 0_usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = Some(open).filter(|&open| open != c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Around the sign between key and value there may be some.
        let is_inside =
            |from: usize| text[from..at].trim_end().ends_with('=') || text[at..].trim_start().starts_with('=');
        if c.is_whitespace() && depth == 0 && quote.is_none() {
            if from.is_some_and(is_inside) {
                continue;
            }
            words.extend(from.take().map(|from: usize| &text[from..at]));
        } else {
            from.get_or_insert(at);
        }
    }
    words.extend(from.map(|from| &text[from..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_spaces_outside_of_quotes_and_braces() {
        assert_eq!(words("a=1  b=2"), ["a=1", "b=2"]);
        assert_eq!(words("a=\"x y\" b={ c = [1, 2] } d='\" '"), ["a=\"x y\"", "b={ c = [1, 2] }", "d='\" '"]);
        assert_eq!(words("a = 1 b=  2 "), ["a = 1", "b=  2"]);
        assert_eq!(words(" } a"), ["}", "a"]);
        assert_eq!(words("\"a b"), ["\"a b"]);
        assert!(words("  ").is_empty());
    }
}
