//! Splits a command line without a shell. Quotes and backslashes are supported; anything that needs a shell is refused
//! (decision shell-or-argv).

/// Splits a command line into program and arguments, as [`crate::exec::argv`] takes them.
///
/// # Errors
/// `verification_command_unsupported_format` for pipes, lists, redirections and substitutions, and for a line that is empty, has an
/// unclosed quote, or begins with an assignment such as `NAME=value`.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut characters) = (Vec::new(), None::<String>, line.chars());
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => word.get_or_insert_default().push_str(&quoted(character, &mut characters)?),
            '\\' => word.get_or_insert_default().push(characters.next().ok_or("the command ends in a backslash")?),
            '|' | '&' | ';' | '<' | '>' | '`' | '\n' | '(' | ')' => return Err(no_shell(character)),
            '$' if characters.as_str().starts_with(['(', '{']) => return Err(no_shell('$')),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    match words.first() {
        None => Err("the command is empty".to_owned()),
        Some(first) if first.contains('=') => {
            Err(format!("the command begins with the assignment `{first}`, expected a program"))
        }
        Some(_) => Ok(words),
    }
}

fn quoted(quote: char, characters: &mut std::str::Chars<'_>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match characters.next().ok_or("the command has a quote without an end")? {
            end if end == quote => return Ok(text),
            '\\' if quote == '"' => match characters.next().ok_or("the command ends in a backslash")? {
                special @ ('"' | '\\' | '$' | '`') => text.push(special),
                // A shell keeps the backslash too: `grep "\[x\]"` searches for a bracket.
                plain => text.extend(['\\', plain]),
            },
            inside => text.push(inside),
        }
    }
}

fn no_shell(character: char) -> String {
    format!(
        "verification_command_unsupported_format: `{character}` needs a shell, which this stage does not have; run one program at a time"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_words() {
        let check = |line: &str, expected: &[&str]| assert_eq!(words(line).unwrap(), expected, "{line}");
        check("cargo test  --lib", &["cargo", "test", "--lib"]);
        check(r#"git commit -m "a \"b\" | c" '' d\ e"#, &["git", "commit", "-m", r#"a "b" | c"#, "", "d e"]);
        check("echo 'it'\"s\" $HOME a=b", &["echo", "its", "$HOME", "a=b"]);
        check(r#"grep -q "\[x\]" a"#, &["grep", "-q", r"\[x\]", "a"]);
    }

    #[test]
    fn refuses_shell_syntax() {
        let check = |line: &str, expected: &str| {
            let reason = words(line).unwrap_err();
            assert!(reason.contains(expected), "{line}: {reason}");
        };
        for line in ["a | b", "a && b", "a; b", "a > b", "a < b", "a `b`", "a $(b)", "a ${b}", "a\nb", "(a)", "a &"] {
            check(line, "verification_command_unsupported_format");
        }
        check("A=b cargo test", "assignment `A=b`");
        check("a 'b", "quote without an end");
        check("a \\", "ends in a backslash");
        check("  ", "empty");
    }
}
