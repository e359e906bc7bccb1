//! Quotes arguments for a POSIX shell, so that users can paste a printed command.

use std::borrow::Cow;

/// Quotes an argument if it needs quotes.
pub fn word(word: &str) -> Cow<'_, str> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%,=".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

/// Writes the arguments of a command as one line.
pub fn line(argv: &[String]) -> String {
    argv.iter().map(|argument| word(argument)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_command_can_be_pasted() {
        let check = |argv: &[&str], text: &str| {
            assert_eq!(line(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()), text);
        };
        check(&["cargo", "test", "--lib"], "cargo test --lib");
        check(&["sh", "-c", "test -s a && echo $HOME"], "sh -c 'test -s a && echo $HOME'");
        check(&["printf", "it's", ""], "printf 'it'\\''s' ''");
    }
}
