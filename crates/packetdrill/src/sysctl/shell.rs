//! A shell line as its commands and words.

/// Commands of a line: what `;`, `&`, `&&` and `||` part. A pipeline is one command, and `2>&1` a
/// redirection.
pub(super) fn split_commands(line: &str) -> Vec<String> {
    let mut commands = vec![String::new()];
    let mut quote = None;
    let mut before = ' ';
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().copied();
        let parts = quote.is_none()
            && match char {
                ';' => true,
                '&' => before != '>' && next != Some('>'),
                '|' => next == Some('|') || before == '|',
                _ => false,
            };
        match quote {
            Some(end) if char == end => quote = None,
            None if char == '"' || char == '\'' => quote = Some(char),
            _ => {}
        }
        match commands.last_mut() {
            Some(command) if !parts => command.push(char),
            _ => commands.push(String::new()),
        }
        before = char;
    }
    commands.iter().map(|command| command.trim().to_owned()).filter(|command| !command.is_empty()).collect()
}

/// Words of a command, quotes taken off.
pub(super) fn split_words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut any = false;
    for char in command.chars() {
        match quote {
            Some(end) if char == end => quote = None,
            Some(_) => word.push(char),
            None if char == '"' || char == '\'' => (quote, any) = (Some(char), true),
            None if char.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            None => word.push(char),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}
