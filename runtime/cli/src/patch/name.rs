//! Paths in the form in which git writes them in a patch: quoted if a character would break the line or deceive a
//! reader.

use glovebox_names::visible::is_deceptive;

/// Returns a path after a prefix such as `a/`, in quotes if it needs them.
pub fn quoted(prefix: &'static str, path: &str) -> String {
    let must_escape = |character: char| matches!(character, '"' | '\\') || is_deceptive(character);
    if !path.contains(must_escape) {
        return format!("{prefix}{path}");
    }
    let mut quoted = format!("\"{prefix}");
    for character in path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            character if is_deceptive(character) => {
                let bytes = character.encode_utf8(&mut [0; 4]).bytes().collect::<Vec<u8>>();
                bytes.iter().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// As [`quoted`], but for a `--- ` or `+++ ` line, where git adds a tab to a name that contains a space.
pub fn in_header(prefix: &'static str, path: &str) -> String {
    let tab = if path.contains(' ') { "\t" } else { "" };
    format!("{}{tab}", quoted(prefix, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_does() {
        for (path, expected) in [
            ("src/main.rs", "a/src/main.rs"),
            ("größe/日本", "a/größe/日本"),
            ("say \"hi\"", "\"a/say \\\"hi\\\"\""),
            ("back\\slash", "\"a/back\\\\slash\""),
            ("tab\tend\n\u{1b}", "\"a/tab\\tend\\n\\033\""),
            ("\u{202e}x", "\"a/\\342\\200\\256x\""),
        ] {
            assert_eq!(quoted("a/", path), expected);
        }
        assert_eq!((in_header("b/", "a b"), in_header("", "ab")), ("b/a b\t".to_owned(), "ab".to_owned()));
    }
}
