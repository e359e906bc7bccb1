//! Names of graphs and nodes: words, strings, and what was meant to be one.
//!
//! A node's name is an identifier, so that conditions and paths can hold it; a port after it is stepped over with an error.

use super::lexer::{Kind, Token, is_in_identifier, is_name, is_word};
use super::parser::Parser;
use super::{Name, Statement};
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::span::Span;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use std::borrow::Cow;

/// Longest id of a node, bytes. A node's folder in the run directory has its name, and file systems stop at 255.
const ID_BYTES_MAX: usize = 128;

impl<'a> Parser<'a> {
    pub(super) fn graph_name(&mut self) -> Option<Name<'a>> {
        if self.at(Kind::String) {
            return Some(self.quoted_name());
        }
        if !matches!(self.token.kind, Kind::Word | Kind::Number) {
            return None;
        }
        self.extend(self.lexer.run(self.token.span.start, is_name));
        let span = self.advance().span;
        let text = self.text(span);
        if !reads_bare(text) {
            self.remark("a graph name like this without quotes", span, || super::quote(text));
        }
        Some(Name { text: Cow::Borrowed(text), span })
    }

    fn quoted_name(&mut self) -> Name<'a> {
        let token = self.advance();
        Name { text: self.meaning(token), span: token.span }
    }

    /// What a string means.
    pub(super) fn meaning(&self, string: Token) -> Cow<'a, str> {
        let inner = &self.lexer.source[string.span.start + 1..string.span.end - 1];
        if string.plain { Cow::Borrowed(inner) } else { super::text::decode(inner, |_, _| ()) }
    }

    /// True when letters of a name follow the current word or number: a dot, or a hyphen that begins no arrow.
    pub(super) fn goes_on(&self) -> bool {
        self.lexer.run(self.token.span.end, is_name) != self.token.span.end
    }

    /// Takes a word with all that hangs on it, or a string.
    pub(super) fn name(&mut self) -> Name<'a> {
        if self.at(Kind::String) {
            return self.quoted_name();
        }
        if self.goes_on() {
            let start = self.token.span.start;
            let end = self.lexer.run(start, is_name);
            let end = start + self.lexer.source[start..end].find("--").unwrap_or(end - start);
            self.extend(end.max(start + 1));
        }
        let span = self.advance().span;
        Name { text: Cow::Borrowed(self.text(span)), span }
    }

    /// Demands that a name is a node's (spec §2.3); refuses ports.
    pub(super) fn node_id(&mut self, mut name: Name<'a>) -> Name<'a> {
        if name.text.len() > ID_BYTES_MAX {
            self.long_id(&mut name);
        } else if !is_identifier(&name.text) {
            let message = format!("`{}` is no node id: expected letters of a to z, digits and `_`", name.text);
            let id = identifier_from(&name.text);
            let help = format!("write `{id}`, and put what people should read into `label`");
            // Of more than can be told none is mended.
            if self.renamed.len() < DIAGNOSTICS_MAX {
                self.renamed.push((name.clone(), id.clone()));
            }
            self.error(Diagnostic::error("dot_syntax", message, name.span).with_help(help).with_fix(name.span, id));
        } else if is_keyword(&name.text) && self.text(name.span) == name.text {
            self.remark("this as a node id: it is a keyword in any letters", name.span, || super::quote(&name.text));
        }
        if self.at(Kind::Colon) {
            self.port();
        }
        name
    }

    /// Refuses a name that is too long, and goes on with its beginning: what is told of it later stays readable.
    fn long_id(&mut self, name: &mut Name<'a>) {
        let beginning = &name.text[..name.text.floor_char_boundary(ID_BYTES_MAX)];
        let bytes = name.text.len();
        let message = format!("the node id `{beginning}…` has {bytes} bytes, expected at most {ID_BYTES_MAX}");
        let beginning = beginning.to_owned();
        let error = Diagnostic::error("dot_syntax", message, name.span);
        self.error(error.with_help("choose a short id, and put what people should read into `label`"));
        name.text = Cow::Owned(beginning);
    }

    /// Takes back the edits that would make one node of two, or rename a node at some of its mentions only.
    pub(super) fn keep_apart(&mut self) {
        if self.renamed.is_empty() {
            return;
        }
        let mut meant: HashMap<&str, HashSet<&str>> = HashMap::new();
        for (name, id) in &self.renamed {
            meant.entry(id).or_default().insert(&name.text);
        }
        let is_all = self.left_out == 0;
        let mut taken: HashSet<String> = HashSet::new();
        // Statements are handed on as they are read, so that the file is read once more for its names.
        Parser::new(self.lexer.source).file(&mut |statement| {
            names(&[statement], &mut |name| taken.extend(meant.contains_key(name).then(|| name.to_owned())));
        });
        let is_safe = |id: &str| is_all && !taken.contains(id) && meant[id].len() == 1;
        let unsafe_at: HashMap<Span, &str> =
            self.renamed.iter().filter(|(_, id)| !is_safe(id)).map(|(name, id)| (name.span, id.as_str())).collect();
        for diagnostic in &mut self.diagnostics {
            if let Some(id) = unsafe_at.get(&diagnostic.span) {
                diagnostic.fix = None;
                if is_all {
                    diagnostic.help = Some(format!("choose an id that no other node has; `{id}` is taken"));
                }
            }
        }
    }

    fn port(&mut self) {
        let start = self.token.span;
        let mut end = start;
        while self.at(Kind::Colon) {
            end = self.advance().span;
            if matches!(self.token.kind, Kind::Word | Kind::String) {
                end = self.advance().span;
            }
        }
        let span = start.to(end);
        let error = Diagnostic::error("dot_syntax", "ports are not supported", span);
        self.error(error.with_help("leave it out: an edge joins whole nodes").with_fix(span, ""));
    }
}

/// Shows every name of a node.
fn names(body: &[Statement<'_>], show: &mut impl FnMut(&str)) {
    for statement in body {
        match statement {
            Statement::Node { id, .. } => show(&id.text),
            Statement::Edge { path, .. } => path.iter().for_each(|name| show(&name.text)),
            Statement::Subgraph { body, .. } => names(body, show),
            Statement::Defaults { .. } | Statement::Assign(_) => {}
        }
    }
}

/// True for `[A-Za-z_][A-Za-z0-9_]*` (spec §2.3).
pub(crate) fn is_identifier(text: &str) -> bool {
    let begins_well = text.bytes().next().is_some_and(|letter| !letter.is_ascii_digit());
    begins_well && text.bytes().all(is_in_identifier)
}

/// True for a word that Graphviz takes for a keyword, in whatever letters.
fn is_keyword(text: &str) -> bool {
    ["node", "edge", "graph", "digraph", "subgraph", "strict"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// True for what Graphviz reads without quotes: a word, of letters beyond ASCII too, that is no keyword, or a number
/// (`-?(.5 | 5 | 5. | 5.5)`).
pub(super) fn reads_bare(text: &str) -> bool {
    let begins_well = text.bytes().next().is_some_and(|letter| !letter.is_ascii_digit());
    let reads_as_word = begins_well && text.bytes().all(is_word) && !is_keyword(text);
    reads_as_word || is_numeral(text)
}

fn is_numeral(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |part: &str| part.bytes().all(|letter| letter.is_ascii_digit());
    numeric(whole) && numeric(fraction) && !(whole.is_empty() && fraction.is_empty())
}

/// The nearest identifier: other letters become `_`.
fn identifier_from(text: &str) -> String {
    let id: String = text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if is_identifier(&id) { id } else { format!("n_{id}") }
}
