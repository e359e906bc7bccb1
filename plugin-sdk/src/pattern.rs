//! Glob patterns over workspace paths: `*`, `?`, `[a-z]` and `{a,b}` within a name, and `**` across folders.
//!
//! The time for matching grows with the product of the lengths of pattern and path, so no pattern of a model can block a stage.

/// Maximum number of alternatives of a pattern with `{…}`.
const ALTERNATIVES_MAX: usize = 64;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    alternatives: Vec<Vec<Vec<char>>>,
    /// True if the pattern contains no `/`. It then matches names in every folder.
    names_only: bool,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason, if a pattern is empty or has too many alternatives.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_start_matches("./");
        if text.is_empty() {
            return Err("the pattern is empty".to_owned());
        }
        let split = |text: &String| text.split('/').map(|name| name.chars().collect()).collect();
        let names_only = !text.contains('/');
        // The first `{a,b}` of each text is expanded until no text contains one. An unclosed brace is an ordinary character.
        let (mut unread, mut alternatives) = (vec![text.to_owned()], Vec::new());
        while let Some(text) = unread.pop() {
            let group = text.find('{').and_then(|open| Some((open, open + text[open..].find('}')?)));
            match group {
                None => alternatives.push(split(&text)),
                Some((open, close)) => unread.extend(
                    text[open + 1..close]
                        .split(',')
                        .map(|choice| format!("{}{choice}{}", &text[..open], &text[close + 1..])),
                ),
            }
            if alternatives.len() + unread.len() > ALTERNATIVES_MAX {
                return Err(format!("the pattern has over {ALTERNATIVES_MAX} alternatives"));
            }
        }
        Ok(Self { alternatives, names_only })
    }

    /// Returns true if the path, relative to the workspace, matches.
    pub fn matches(&self, path: &str) -> bool {
        let path = if self.names_only { path.rsplit('/').next().unwrap_or(path) } else { path };
        let names: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        self.alternatives.iter().any(|parts| matches_path(parts, &names))
    }
}

fn matches_path(parts: &[Vec<char>], names: &[Vec<char>]) -> bool {
    let deep = |part: &Vec<char>| part.as_slice() == ['*', '*'];
    with_stars(parts.len(), names.len(), |p| deep(&parts[p]), |p, n| matches_name(&parts[p], &names[n]))
}

fn matches_name(part: &[char], name: &[char]) -> bool {
    let tokens = tokens(part);
    with_stars(tokens.len(), name.len(), |t| matches!(tokens[t], Token::Any), |t, n| tokens[t].holds(name[n]))
}

/// Matches a sequence against a pattern in which some elements match any number of elements. After a mismatch, only the last such
/// element is extended.
fn with_stars(
    pattern: usize,
    input: usize,
    is_star: impl Fn(usize) -> bool,
    one: impl Fn(usize, usize) -> bool,
) -> bool {
    let (mut p, mut i, mut star) = (0, 0, None);
    while i < input {
        if p < pattern && is_star(p) {
            star = Some((p, i));
            p += 1;
        } else if p < pattern && one(p, i) {
            (p, i) = (p + 1, i + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, i) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    (p..pattern).all(is_star)
}

#[derive(Debug)]
enum Token<'a> {
    Any,
    One,
    Exactly(char),
    Class { negated: bool, members: &'a [char] },
}

impl Token<'_> {
    fn holds(&self, character: char) -> bool {
        match self {
            Token::Any => false,
            Token::One => true,
            Token::Exactly(expected) => *expected == character,
            Token::Class { negated, members } => contains(members, character) != *negated,
        }
    }
}

fn contains(members: &[char], character: char) -> bool {
    match members {
        [low, '-', high, rest @ ..] => (*low..=*high).contains(&character) || contains(rest, character),
        [only, rest @ ..] => *only == character || contains(rest, character),
        [] => false,
    }
}

fn tokens(part: &[char]) -> Vec<Token<'_>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < part.len() {
        let close = part[at..].iter().skip(2).position(|character| *character == ']').map(|offset| at + 2 + offset);
        match (part[at], close) {
            ('*', _) => tokens.push(Token::Any),
            ('?', _) => tokens.push(Token::One),
            ('[', Some(close)) => {
                let negated = part[at + 1] == '!' || part[at + 1] == '^';
                tokens.push(Token::Class { negated, members: &part[at + 1 + usize::from(negated)..close] });
                at = close;
            }
            (character, _) => tokens.push(Token::Exactly(character)),
        }
        at += 1;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let compiled = Pattern::parse(pattern).unwrap();
        yes.iter().for_each(|path| assert!(compiled.matches(path), "`{pattern}` should match `{path}`"));
        no.iter().for_each(|path| assert!(!compiled.matches(path), "`{pattern}` should not match `{path}`"));
    }

    #[test]
    fn matches_names_and_paths() {
        check("*.rs", &["a.rs", "src/a.rs", ".rs"], &["a.rss", "a.rs/b"]);
        check("src/*.rs", &["src/a.rs"], &["src/b/a.rs", "a.rs"]);
        check("./src/**/*.rs", &["src/a.rs", "src/b/c/a.rs"], &["a.rs", "src/a.r"]);
        check("**/test_?.py", &["test_1.py", "a/b/test_ä.py"], &["test_12.py"]);
        check("src/**", &["src/a", "src/a/b"], &["lib/a"]);
        check("*.{rs,toml}", &["Cargo.toml", "src/a.rs"], &["a.r", "{rs,toml}"]);
        check("[a-cx].md", &["a.md", "x.md"], &["d.md", "-.md"]);
        check("[!a].md", &["b.md"], &["a.md"]);
        check("a{b", &["a{b"], &["ab"]);
        check("a[b", &["a[b"], &["ab"]);
        check("[]]", &["]"], &["["]);
        check("a*b*c", &["aXbYc", "abc"], &["ab", "acb"]);
    }

    #[test]
    fn refuses_what_it_cannot_bound() {
        assert!(Pattern::parse(" ").is_err());
        assert!(Pattern::parse(&"{a,b}".repeat(7)).unwrap_err().contains("64 alternatives"));
        let stars = Pattern::parse(&"*a".repeat(40)).unwrap();
        assert!(!stars.matches(&"a".repeat(39)));
        let deep = Pattern::parse(&format!("{}b", "**/a/".repeat(30))).unwrap();
        assert!(!deep.matches(&"a/".repeat(300)));
    }
}
