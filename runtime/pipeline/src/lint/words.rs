//! Splits a command or a script into words, and finds which of them a shell starts as programs.
//!
//! Spaces, quotes and operators separate words; comments are skipped. This is not a complete shell parser: it follows quotes,
//! brackets, operators and here-documents only as far as needed to find the role of a word. It does not know the values of
//! variables.

use crate::source::Source;
use crate::span::Span;

/// The role of a word in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of a program that the shell starts.
    Program,
    /// An argument of the program before it.
    Argument,
    /// Anything else: a keyword, an assignment, the target of a redirection, text.
    Other,
}

/// A word with its span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) span: Span,
    pub(super) text: &'a str,
    pub(super) role: Role,
    /// Number of subshells around the word.
    pub(super) depth: usize,
}

/// A text with commands: a file in a hold-out folder, or the command of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// Path of the file, as the caller names it; empty for the command of a stage.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
}

/// The language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// A shell script.
    Shell,
    /// Another language, in which a list of strings such as `["sh", "x.sh"]` is a command.
    Other,
}

impl<'a> Script<'a> {
    /// Returns the language, which the file name or the first line determines.
    pub(super) fn language(&self) -> Language {
        const ENDINGS: &[&str] = &[".sh", ".bash", ".zsh", ".fish", ".bats"];
        let first = self.text.lines().next().filter(|line| line.starts_with("#!")).unwrap_or_default();
        let is_named = ENDINGS.iter().any(|ending| self.path.ends_with(ending));
        let has_shebang = first.trim_end().ends_with("sh") || first.contains("sh ");
        if is_named || has_shebang { Language::Shell } else { Language::Other }
    }

    /// Returns the words of all lines except comments.
    pub(super) fn words(&self) -> Vec<Word<'a>> {
        words(Source::new(self.text), self.language())
    }
}

/// Returns the words of all lines except comments, in a text of this language.
pub(super) fn words(source: Source<'_>, language: Language) -> Vec<Word<'_>> {
    let mut walk = Walk::new(source, language);
    let mut start = 0;
    for line in source.text().split_inclusive('\n') {
        walk.line(Span::new(start, start + line.len()));
        start += line.len();
    }
    walk.words
}

/// Words that can precede the name of a program.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "esac", "time", "exec", "eval",
];
/// Programs that start another program, named after their own options and numbers.
const WRAPPERS: &[&str] =
    &["env", "command", "nohup", "nice", "timeout", "xargs", "stdbuf", "setsid", "sudo", "doas", "strace", "unbuffer"];
/// Programs that read a command from the argument after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Returns true for the name of a shell.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// The state of the shell parser within a command.
#[derive(Debug, Clone, Copy, Default)]
struct State<'a> {
    /// True if the next word is the name of a program.
    is_start: bool,
    /// True if options of a wrapper can precede that name.
    is_wrapped: bool,
    /// Number of open brackets and quotes at the start of the current assignment's value. `None` outside of an assignment.
    value_at: Option<usize>,
    /// The program to which the next arguments belong.
    program: &'a str,
    /// True if the next quoted text is a command.
    is_script: bool,
}

impl State<'_> {
    const START: Self = State { is_start: true, is_wrapped: false, value_at: None, program: "", is_script: false };
}

/// An open quote or bracket. If a command begins inside it, also has the state of the command around it.
#[derive(Debug, Clone, Copy)]
enum OpenDelimiter<'a> {
    Quote(char),
    Command { end: char, around: State<'a> },
}

struct Walk<'a> {
    source: Source<'a>,
    language: Language,
    words: Vec<Word<'a>>,
    open: Vec<OpenDelimiter<'a>>,
    state: State<'a>,
    /// The redirection whose target is the next word.
    target: Option<Target>,
    /// The line that ends the current here-document.
    document: Option<&'a str>,
}

/// The target of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    File,
    Document,
}

impl<'a> Walk<'a> {
    fn new(source: Source<'a>, language: Language) -> Self {
        let (words, open) = (Vec::new(), Vec::new());
        Self { source, language, words, open, state: State::START, target: None, document: None }
    }

    fn line(&mut self, span: Span) {
        let (start, line) = (span.start, self.source.at(span));
        if line.trim_start().starts_with(['#']) || line.trim_start().starts_with("//") {
            return;
        }
        if self.document == Some(line.trim()) {
            self.document = None;
            return;
        }
        let is_text = self.document.is_some();
        let (mut begun, mut before, mut is_escaped) = (None, ' ', false);
        for (at, c) in line.char_indices() {
            if in_word(c) {
                let is_comment = || line[at..].starts_with('#') || line[at..].starts_with("//");
                if begun.is_none() && before.is_whitespace() && !self.is_quoted() && is_comment() {
                    break;
                }
                begun = begun.or(Some(at));
            } else {
                if let Some(from) = begun.take() {
                    self.word(Span::new(start + from, start + at), c, is_text);
                }
                if !is_text && !is_escaped {
                    self.separator(before, c, line[at + c.len_utf8()..].chars().next());
                }
            }
            is_escaped = c == '\\' && !is_escaped && !matches!(self.open.last(), Some(OpenDelimiter::Quote('\'')));
            before = c;
        }
        if let Some(from) = begun {
            self.word(Span::new(start + from, span.end), '\n', is_text);
        }
        if !is_text {
            self.end_line(span);
        }
    }

    fn end_line(&mut self, line: Span) {
        if self.language == Language::Other {
            self.open.clear();
            self.state = State::START;
        } else if !self.is_quoted() && !self.source.at(line).trim_end().ends_with('\\') {
            (self.state, self.target) = (State::START, None);
        }
    }

    fn is_quoted(&self) -> bool {
        matches!(self.open.last(), Some(OpenDelimiter::Quote(_)))
    }

    fn separator(&mut self, before: char, c: char, next: Option<char>) {
        let quote = self.open.last().and_then(|open| match open {
            OpenDelimiter::Quote(quote) => Some(*quote),
            OpenDelimiter::Command { .. } => None,
        });
        let ends = matches!(self.open.last(), Some(OpenDelimiter::Command { end, .. }) if *end == c);
        match c {
            _ if quote == Some(c) => drop(self.open.pop()),
            _ if quote == Some('\'') => {}
            _ if ends => self.close(),
            '`' => self.begin('`'),
            '(' if quote.is_none() || before == '$' => self.begin(')'),
            _ if quote.is_some() => {}
            '"' | '\'' if self.state.is_script => self.begin(c),
            '"' | '\'' => self.open.push(OpenDelimiter::Quote(c)),
            ')' => self.state = State::START,
            '<' if before == '<' && self.target == Some(Target::File) => self.target = Some(Target::Document),
            '<' | '>' => self.target = Some(Target::File),
            '&' | '|' if matches!(before, '<' | '>') || next == Some('>') => {}
            ';' | '|' | '&' => self.state = State::START,
            _ if c.is_whitespace() && self.state.value_at == Some(self.open.len()) => self.state.value_at = None,
            _ => {}
        }
    }

    fn begin(&mut self, end: char) {
        let is_start = self.state.is_start && self.state.value_at.is_some();
        let around = State { is_script: false, is_start, ..self.state };
        self.open.push(OpenDelimiter::Command { end, around });
        (self.state, self.target) = (State::START, None);
    }

    fn close(&mut self) {
        if let Some(OpenDelimiter::Command { around, .. }) = self.open.pop() {
            self.state = around;
        }
    }

    /// Adds a word that ends at the separator `end`.
    fn word(&mut self, span: Span, end: char, is_text: bool) {
        let role = match (is_text, self.language) {
            (true, _) => Role::Other,
            (false, Language::Shell) => self.role(span, end),
            (false, Language::Other) => self.role_in_list(span),
        };
        let depth = self.open.iter().filter(|open| matches!(open, OpenDelimiter::Command { .. })).count();
        self.words.push(Word { span, text: self.source.at(span), role, depth });
    }

    fn role(&mut self, word: Span, end: char) -> Role {
        let text = self.source.at(word);
        // The dash in `<<-'END'`.
        if self.target == Some(Target::Document) && text == "-" {
            return Role::Other;
        }
        if let Some(target) = self.target.take() {
            if target == Target::Document {
                self.document = Some(text.trim_start_matches('-'));
            }
            return Role::Other;
        }
        let state = &mut self.state;
        let is_pattern =
            end == ')' && !self.open.iter().any(|open| matches!(open, OpenDelimiter::Command { end: ')', .. }));
        if state.value_at.is_some() || is_pattern {
            return Role::Other;
        }
        if text == "{" {
            *state = State::START;
            return Role::Other;
        }
        if !state.is_start && state.is_wrapped {
            return Role::Other;
        }
        if !state.is_start {
            state.is_script = is_shell(state.program) && text.starts_with('-') && text.ends_with('c');
            return Role::Argument;
        }
        let is_number = text.starts_with(|c: char| c.is_ascii_digit());
        if KEYWORDS.contains(&text) || (state.is_wrapped && (text.starts_with('-') || is_number)) {
            // `command -v` only looks up a name and starts nothing.
            state.is_start = !(state.program == "command" && matches!(text, "-v" | "-V"));
            return Role::Other;
        }
        if end == '=' && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            state.value_at = Some(self.open.len());
            return Role::Other;
        }
        if WRAPPERS.contains(&text) {
            (state.is_wrapped, state.program) = (true, text);
            return Role::Other;
        }
        *state = State { program: text, ..State::default() };
        Role::Program
    }

    /// Returns the role of a string in a list: the first one is the name of a program, the others are its arguments up
    /// to the end of the list.
    fn role_in_list(&mut self, word: Span) -> Role {
        let (start, text) = (word.start, self.source.at(word));
        let before = self.words.last();
        let begins = before.is_some_and(|before| before.text.ends_with('[') && before.span.end + 1 == start);
        if begins || text == "[sys.executable" {
            self.state.program = text;
            return Role::Program;
        }
        if text.contains(']') {
            self.state.program = "";
        }
        if self.state.program.is_empty() { Role::Other } else { Role::Argument }
    }
}

fn in_word(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '"' | '\'' | '`' | ';' | '|' | '&' | '<' | '>' | '(' | ')' | '=' | ',')
}

#[cfg(test)]
mod tests;
