//! Parses the names of graphs and nodes, which are words or strings.
//!
//! The name of a node must be an identifier, so that conditions and paths can contain it. A port after a name is an error, and
//! the parser skips it.

use super::lexer::{Token, TokenKind, is_in_identifier, is_name, is_word};
use super::parser::{Parser, Spelling};
use super::{Name, Statement};
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::hash::{HashMap, HashSet};
use crate::span::Span;
use std::borrow::Cow;

/// Maximum length of a node id, in bytes. A folder in the run directory has this name, and file systems allow 255 bytes.
const ID_BYTES_MAX: usize = 128;

impl<'a> Parser<'a> {
    pub(super) fn graph_name(&mut self) -> Option<Name<'a>> {
        if self.at(TokenKind::String) {
            return Some(self.quoted_name());
        }
        if !matches!(self.token.kind, TokenKind::Word | TokenKind::Number) {
            return None;
        }
        self.extend(self.lexer.run(self.token.span.start, is_name));
        let span = self.advance().span;
        let text = self.text(span);
        if !reads_bare(text) {
            self.remark(Spelling::BareGraphName, span, || super::quote(text));
        }
        Some(Name { text: Cow::Borrowed(text), span })
    }

    fn quoted_name(&mut self) -> Name<'a> {
        let token = self.advance();
        Name { text: self.string_value_of(token), span: token.span }
    }

    /// Returns the value of a string.
    pub(super) fn string_value_of(&self, string: Token) -> Cow<'a, str> {
        let inner = &self.lexer.source.text()[string.span.start + 1..string.span.end - 1];
        if string.plain { Cow::Borrowed(inner) } else { super::text::decode(inner, |_, _| ()) }
    }

    /// Returns true if the name continues after the current word or number, with a dot or with a hyphen that is not
    /// part of an arrow.
    pub(super) fn name_continues(&self) -> bool {
        self.lexer.run(self.token.span.end, is_name) != self.token.span.end
    }

    /// Reads a name: a string, or a word or number with the parts that continue it after a dot or a hyphen.
    pub(super) fn name(&mut self) -> Name<'a> {
        if self.at(TokenKind::String) {
            return self.quoted_name();
        }
        if self.name_continues() {
            let start = self.token.span.start;
            let end = self.lexer.run(start, is_name);
            let end = start + self.lexer.source.text()[start..end].find("--").unwrap_or(end - start);
            self.extend(end.max(start + 1));
        }
        let span = self.advance().span;
        Name { text: Cow::Borrowed(self.text(span)), span }
    }

    /// Checks that a name is a valid node id (spec §2.3), and reports a port after it as an error.
    pub(super) fn node_id(&mut self, mut name: Name<'a>) -> Name<'a> {
        if name.text.len() > ID_BYTES_MAX {
            self.long_id(&mut name);
        } else if !is_identifier(&name.text) {
            let message = format!(
                "invalid node id `{}`: expected letters (a to z), digits and `_`, with no digit first",
                name.text
            );
            let id = identifier_from(&name.text);
            let help = format!("write `{id}`, and put the text to display in `label`");
            let error = Diagnostic::error("dot_syntax", message, name.span).with_help(help);
            self.error(error.with_fix(name.span, id.as_str()));
            // If there are more findings than a file may have, none of them gets a fix.
            if self.renamed.len() < DIAGNOSTICS_MAX {
                self.renamed.push((name.clone(), id));
            }
        } else if Keyword::from_word(&name.text).is_some() && self.text(name.span) == name.text {
            self.remark(Spelling::BareKeyword, name.span, || super::quote(&name.text));
        }
        if self.at(TokenKind::Colon) {
            self.port();
        }
        name
    }

    /// Reports a name that is too long, and shortens it, so that later messages stay readable.
    fn long_id(&mut self, name: &mut Name<'a>) {
        let beginning = &name.text[..name.text.floor_char_boundary(ID_BYTES_MAX)];
        let bytes = name.text.len();
        let message = format!("the node id `{beginning}…` has {bytes} bytes; expected at most {ID_BYTES_MAX}");
        let beginning = beginning.to_owned();
        let error = Diagnostic::error("dot_syntax", message, name.span);
        self.error(error.with_help("choose a shorter id, and put the text to display in `label`"));
        name.text = Cow::Owned(beginning);
    }

    /// Removes fixes that would merge two nodes, or that would rename a node only in some places.
    pub(super) fn drop_colliding_renames(&mut self) {
        if self.renamed.is_empty() {
            return;
        }
        let mut meant: HashMap<&str, HashSet<&str>> = HashMap::default();
        for (name, id) in &self.renamed {
            meant.entry(id).or_default().insert(&name.text);
        }
        let is_all = self.left_out == 0;
        let mut taken: HashSet<String> = HashSet::default();
        // The parser keeps no list of statements, so parse the file again to collect the names.
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
                    diagnostic.help =
                        Some(format!("choose an id that no other node has; another node is already `{id}`"));
                }
            }
        }
    }

    fn port(&mut self) {
        let start = self.token.span;
        let mut end = start;
        while self.at(TokenKind::Colon) {
            end = self.advance().span;
            if matches!(self.token.kind, TokenKind::Word | TokenKind::String) {
                end = self.advance().span;
            }
        }
        let span = start.to(end);
        let error = Diagnostic::error("dot_syntax", "ports are not supported", span);
        self.error(error.with_help("remove the port: an edge connects whole nodes").with_fix(span, ""));
    }
}

/// Calls `show` with every node name.
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

/// Returns true for `[A-Za-z_][A-Za-z0-9_]*` (spec §2.3).
pub(crate) fn is_identifier(text: &str) -> bool {
    let begins_well = text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    begins_well && text.bytes().all(is_in_identifier)
}

/// A keyword of Graphviz. Upper and lower case are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Node,
    Edge,
    Graph,
    Digraph,
    Subgraph,
    Strict,
}

impl Keyword {
    const ALL: [Self; 6] = [Self::Node, Self::Edge, Self::Graph, Self::Digraph, Self::Subgraph, Self::Strict];

    /// Returns the keyword with this spelling. `None` if it is not a keyword.
    pub(crate) fn from_word(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|keyword| keyword.is(text)).copied()
    }

    /// Returns true if the text is this keyword, in upper or lower case.
    pub(super) fn is(self, text: &str) -> bool {
        text.eq_ignore_ascii_case(self.word())
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Edge => "edge",
            Self::Graph => "graph",
            Self::Digraph => "digraph",
            Self::Subgraph => "subgraph",
            Self::Strict => "strict",
        }
    }
}

/// Returns true for text that Graphviz accepts without quotes: a number (`-?(.5 | 5 | 5. | 5.5)`), or a word that is
/// not a keyword. A word may have non-ASCII characters.
pub(super) fn reads_bare(text: &str) -> bool {
    let begins_well = text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    let reads_as_word = begins_well && text.bytes().all(is_word) && Keyword::from_word(text).is_none();
    reads_as_word || is_numeral(text)
}

/// Returns true for a number in Graphviz: `-?(.5 | 5 | 5. | 5.5)`.
pub(crate) fn is_numeral(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    numeric(whole) && numeric(fraction) && !(whole.is_empty() && fraction.is_empty())
}

/// Returns a similar identifier, in which `_` replaces all characters that are not allowed.
fn identifier_from(text: &str) -> String {
    let id: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if is_identifier(&id) { id } else { format!("n_{id}") }
}
