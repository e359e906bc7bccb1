//! Converts tokens to statements by recursive descent, with one function for each line of the grammar (spec §2.2).
//!
//! After a mistake the parser skips the rest of the statement and continues with the next one. Nesting is limited
//! ([`DEPTH_MAX`]), and each step consumes text, so the time is linear in the length of the file.

use super::attributes::AttributePosition;
use super::lexer::{Lexer, Token, TokenKind};
use super::{Ast, Attr, Keyword, Name, Statement, Target};
use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::source::Source;
use crate::span::Span;
use glovebox_names::visible;
use std::fmt;

/// Maximum nesting depth of subgraphs.
pub(crate) const DEPTH_MAX: usize = 32;

pub(super) fn parse(source: Source<'_>) -> (Ast<'_>, Vec<Diagnostic>) {
    let mut body = Vec::new();
    let (ast, diagnostics) = parse_each(source, &mut |statement| body.push(statement));
    (Ast { body, ..ast }, diagnostics)
}

pub(super) fn parse_each<'a>(source: Source<'a>, take: Take<'_, 'a>) -> (Ast<'a>, Vec<Diagnostic>) {
    let mut parser = Parser::new(source);
    let mut ast = parser.file(take);
    parser.remark_late_hash();
    parser.drop_colliding_renames();
    ast.comments = std::mem::take(&mut parser.lexer.comments);
    ast.left_out = parser.left_out;
    ast.cut_off = parser.cut_off;
    (ast, parser.diagnostics)
}

/// Receives each outer statement.
pub(super) type Take<'t, 'a> = &'t mut dyn FnMut(Statement<'a>);

/// A spelling that Glovebox accepts and Graphviz does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    BareGraphName,
    BareKeyword,
    BareDottedKey,
    BareValue,
    LateHash,
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BareGraphName => "this graph name without quotes",
            Self::BareKeyword => "a keyword as an unquoted node id",
            Self::BareDottedKey => "an unquoted key with dots",
            Self::BareValue => "this value without quotes",
            Self::LateHash => "a `#` comment after other text",
        })
    }
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) token: Token,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The spellings that have already been reported; each is reported once.
    remarked: Vec<Spelling>,
    /// Offset of an unclosed string or comment. Mistakes after it are not reported.
    cut_off: Option<usize>,
    depth: usize,
    undirected: bool,
    /// True after an unclosed HTML value. The parser then no longer searches for the end of an HTML value.
    pub(super) html_open: bool,
    /// Attributes of the current statement, collected here so that the statement's own list can be allocated with the exact size.
    pub(super) attributes: Vec<Attr<'a>>,
    /// Names of the current edge statement, collected for the same reason as `attributes`.
    path: Vec<Name<'a>>,
    /// Names that are not valid node ids, each with a valid id for the fix.
    pub(super) renamed: Vec<(Name<'a>, String)>,
    /// Number of errors and remarks that were left out.
    pub(super) left_out: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        let mut lexer = Lexer::new(source);
        let token = lexer.next();
        let diagnostics = Vec::new();
        let mut parser = Self {
            lexer,
            token,
            diagnostics,
            remarked: Vec::new(),
            cut_off: None,
            depth: 0,
            undirected: false,
            html_open: false,
            attributes: Vec::new(),
            path: Vec::new(),
            renamed: Vec::new(),
            left_out: 0,
        };
        parser.report_unclosed();
        parser
    }

    /// Moves to the next token. Returns the previous one.
    pub(super) fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        let token = std::mem::replace(&mut self.token, next);
        if matches!(next.kind, TokenKind::OpenString | TokenKind::OpenComment) {
            self.report_unclosed();
        }
        token
    }

    /// Reports an unclosed string or comment once, and treats it as the end of the file.
    fn report_unclosed(&mut self) {
        let span = self.token.span;
        let begin = match self.token.kind {
            TokenKind::OpenString => {
                let at = self.lexer.suspect.unwrap_or_else(|| self.lexer.rest_of_line(span.start));
                self.diagnostics.retain(|diagnostic| !diagnostic.is_error() || diagnostic.span.start < at.start);
                let help = "close it with `\"`; write a quote inside a string as `\\\"`";
                let error = Diagnostic::error("dot_syntax", "the string that begins here has no closing quote", at);
                self.error(error.with_note("this string").with_help(help));
                at.start
            }
            TokenKind::OpenComment => {
                let error = Diagnostic::error("dot_syntax", "the comment that begins here has no `*/`", span);
                self.error(error.with_help("close it with `*/`"));
                span.start
            }
            _ => return,
        };
        self.cut_off = Some(begin);
        self.token.kind = TokenKind::End;
        self.token.span = Span::new(self.lexer.source.text().len(), self.lexer.source.text().len());
    }

    /// Extends the current token to the offset `end`.
    pub(super) fn extend(&mut self, end: usize) {
        self.token.span.end = end;
        self.lexer.at = end;
    }

    pub(super) fn text(&self, span: Span) -> &'a str {
        self.lexer.source.at(span)
    }

    pub(super) fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    pub(super) fn at_keyword(&self, keyword: Keyword) -> bool {
        self.at(TokenKind::Word) && keyword.is(self.text(self.token.span))
    }

    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        match (self.cut_off.is_some(), self.diagnostics.len() < DIAGNOSTICS_MAX) {
            (true, _) => {}
            (false, true) => self.diagnostics.push(diagnostic),
            (false, false) => self.left_out += 1,
        }
    }

    pub(super) fn syntax(&mut self, message: impl Into<String>, span: Span) {
        self.error(Diagnostic::error("dot_syntax", message, span));
    }

    /// Reports a spelling that Graphviz does not accept, once for each kind of spelling.
    pub(super) fn remark(&mut self, spelling: Spelling, span: Span, canonical: impl FnOnce() -> String) {
        if !self.remarked.contains(&spelling) {
            let canonical = canonical();
            self.remarked.push(spelling);
            let remark = Diagnostic::info("not_graphviz", format!("Graphviz does not accept {spelling}"), span);
            self.error(
                remark
                    .with_help(format!("write `{canonical}`, which both Graphviz and Glovebox accept"))
                    .with_fix(span, canonical),
            );
        }
    }

    fn remark_late_hash(&mut self) {
        if let Some(span) = self.lexer.late_hash {
            let comment = &self.text(span)[1..];
            self.remark(Spelling::LateHash, span, || format!("//{comment}"));
        }
    }

    /// Describes the current token for messages.
    pub(super) fn found(&self) -> String {
        match self.token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::String => "a string".to_owned(),
            TokenKind::Other => {
                let found = self.lexer.source.text()[self.token.span.start..].chars().next().unwrap_or_default();
                format!("`{}`", visible::line(found.encode_utf8(&mut [0; 4])))
            }
            _ => format!("`{}`", self.text(self.token.span)),
        }
    }

    /// Reads `digraph name { ... }`, with nothing after it.
    pub(super) fn file(&mut self, take: Take<'_, 'a>) -> Ast<'a> {
        let mut ast = Ast::default();
        if !self.header() {
            return ast;
        }
        let start = self.advance().span;
        ast.name = self.graph_name();
        if !self.at(TokenKind::LeftBrace) {
            let message = format!("expected `{{` after `digraph`, found {}", self.found());
            self.syntax(message, self.token.span);
            return ast;
        }
        let open = self.advance().span;
        self.statements(take);
        ast.span = start.to(self.token.span);
        self.close(open);
        self.trailer(start);
        ast
    }

    /// Moves to the keyword `digraph`. Returns false if there is none.
    fn header(&mut self) -> bool {
        if self.at_keyword(Keyword::Strict) {
            let span = self.token.span;
            let help = "remove `strict`: it merges edges between the same nodes, which may have different conditions";
            self.error(Diagnostic::error("dot_syntax", "`strict` graphs are not supported", span).with_help(help));
            self.advance();
        }
        if self.at_keyword(Keyword::Graph) {
            let span = self.token.span;
            self.undirected = true;
            let error = Diagnostic::error("dot_syntax", "`graph` is undirected; a pipeline must be a `digraph`", span);
            self.error(error.with_help("write `digraph`, and `->` for edges").with_fix(span, "digraph"));
            return true;
        }
        if self.at_keyword(Keyword::Digraph) {
            return true;
        }
        if self.at(TokenKind::End) {
            let help = "write `digraph Name { start [shape=Mdiamond]; … }`";
            let error = Diagnostic::error("dot_syntax", "the file is empty; expected `digraph`", self.token.span);
            self.error(error.with_help(help));
            return false;
        }
        let message = format!("expected `digraph`, found {}", self.found());
        self.syntax(message, self.token.span);
        while !(self.at(TokenKind::End) || self.at_keyword(Keyword::Digraph) && self.token.first) {
            self.advance();
        }
        self.at(TokenKind::Word)
    }

    /// Reads the brace that closes the current graph or subgraph.
    fn close(&mut self, open: Span) {
        if self.at(TokenKind::RightBrace) {
            self.advance();
            return;
        }
        let what = if self.depth == 0 { "the graph" } else { "the subgraph" };
        let message = format!("the `{{` of {what} has no matching `}}`");
        let error = Diagnostic::error("dot_syntax", message, open).with_label(self.token.span, "expected `}` here");
        self.error(error.with_fix(self.token.span.after(), "}"));
    }

    fn trailer(&mut self, first: Span) {
        let span = self.token.span;
        let second = [Keyword::Digraph, Keyword::Graph, Keyword::Strict].into_iter().any(|word| self.at_keyword(word));
        if second {
            let error =
                Diagnostic::error("dot_syntax", "a file must contain only one graph; a second one begins here", span);
            self.error(
                error.with_label(first, "the first graph").with_help("put the second graph in a file of its own"),
            );
        } else if !self.at(TokenKind::End) {
            let message = format!("expected the end of the file after the graph, found {}", self.found());
            self.syntax(message, span);
        }
    }

    fn statements(&mut self, take: Take<'_, 'a>) {
        while !matches!(self.token.kind, TokenKind::End | TokenKind::RightBrace) {
            let before = self.token.span.start;
            if self.at(TokenKind::Semicolon) {
                self.advance();
            } else if let Some(statement) = self.statement() {
                take(statement);
            } else {
                self.recover(before);
            }
        }
    }

    /// Skips to the next statement: after a `;`, at a brace, or at a name that begins a line.
    pub(super) fn recover(&mut self, before: usize) {
        if self.token.span.start == before {
            self.advance();
        }
        let mut brackets = 0_usize;
        loop {
            match self.token.kind {
                TokenKind::End | TokenKind::LeftBrace | TokenKind::RightBrace => return,
                TokenKind::Semicolon if brackets == 0 => return,
                TokenKind::Word | TokenKind::String if self.token.first && brackets == 0 => return,
                TokenKind::LeftBracket => brackets += 1,
                TokenKind::RightBracket => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    fn statement(&mut self) -> Option<Statement<'a>> {
        match self.token.kind {
            TokenKind::LeftBrace => return self.subgraph(None, self.token.span),
            TokenKind::String => return self.node_or_edge(),
            TokenKind::Word | TokenKind::Number => {}
            _ => {
                let message = format!("expected a node, an edge or an attribute, found {}", self.found());
                self.syntax(message, self.token.span);
                return None;
            }
        }
        if self.name_continues() {
            return self.node_or_edge();
        }
        match self.text(self.token.span) {
            "graph" => self.defaults(Target::Graph),
            "node" => self.defaults(Target::Node),
            "edge" => self.defaults(Target::Edge),
            "subgraph" => {
                let start = self.advance().span;
                let name = self.graph_name();
                self.subgraph(name, start)
            }
            "digraph" | "strict" => {
                let error =
                    Diagnostic::error("dot_syntax", "a graph must not begin inside another one", self.token.span);
                self.error(
                    error.with_help("close the first graph with `}`, and put the second one in a file of its own"),
                );
                None
            }
            _ => self.node_or_edge(),
        }
    }

    fn defaults(&mut self, target: Target) -> Option<Statement<'a>> {
        let keyword = self.advance().span;
        if !self.at(TokenKind::LeftBracket) {
            let word = self.text(keyword);
            let message = format!("expected `[` after `{word}`, found {}", self.found());
            let help = format!("write `{word} [...]` to set defaults; choose another id for a node");
            self.error(Diagnostic::error("dot_syntax", message, self.token.span).with_help(help));
            return None;
        }
        let (attributes, end) = self.attribute_blocks(keyword);
        Some(Statement::Defaults { target, attributes, span: keyword.to(end) })
    }

    fn subgraph(&mut self, name: Option<Name<'a>>, start: Span) -> Option<Statement<'a>> {
        if !self.at(TokenKind::LeftBrace) {
            let message = format!("expected `{{` after `subgraph`, found {}", self.found());
            self.syntax(message, self.token.span);
            return None;
        }
        if self.depth == DEPTH_MAX {
            let message = format!("subgraphs are nested more than {DEPTH_MAX} levels deep");
            self.syntax(message, self.token.span);
            self.skip_braces();
            return None;
        }
        let open = self.advance().span;
        self.depth += 1;
        let mut body = Vec::new();
        self.statements(&mut |statement| body.push(statement));
        let span = start.to(self.token.span);
        self.close(open);
        self.depth -= 1;
        if matches!(self.token.kind, TokenKind::Arrow | TokenKind::Line) {
            self.no_group(start);
            return None;
        }
        Some(Statement::Subgraph { name, body, span })
    }

    fn skip_braces(&mut self) {
        let mut open = 0_usize;
        while !self.at(TokenKind::End) {
            match self.advance().kind {
                TokenKind::LeftBrace => open += 1,
                TokenKind::RightBrace if open == 1 => return,
                TokenKind::RightBrace => open -= 1,
                _ => {}
            }
        }
    }

    fn no_group(&mut self, span: Span) {
        let error = Diagnostic::error("dot_syntax", "an edge must connect two nodes, not a group of nodes", span);
        self.error(error.with_help("write one edge for each node of the group"));
    }

    /// Reads `key = value`, `id [...]` or `a -> b [...]`. The token after the first name decides which of them it is.
    fn node_or_edge(&mut self) -> Option<Statement<'a>> {
        let quoted = self.at(TokenKind::String);
        let first = self.name();
        if self.at(TokenKind::Equal) && self.lexer.source.text()[self.lexer.at..].starts_with('>') {
            let arrow = Span::new(self.token.span.start, self.lexer.at + 1);
            self.error(
                Diagnostic::error("dot_syntax", "expected `->` for an edge, found `=>`", arrow).with_fix(arrow, "->"),
            );
            return None;
        }
        if self.at(TokenKind::Equal) {
            return self
                .attribute_value(AttributePosition::Body, first.text, first.span, quoted)
                .map(Statement::Assign);
        }
        let start = first.span;
        let id = self.node_id(first);
        if !matches!(self.token.kind, TokenKind::Arrow | TokenKind::Line) {
            let (attributes, end) = self.attribute_blocks(start);
            return Some(Statement::Node { id, attributes, span: start.to(end) });
        }
        self.path.clear();
        self.path.push(id);
        while self.arrow() {
            let target = self.edge_target()?;
            self.path.push(target);
        }
        let end = self.path.last().map_or(start, |last| last.span);
        let path: Vec<Name<'a>> = self.path.drain(..).collect();
        let (attributes, end) = self.attribute_blocks(end);
        Some(Statement::Edge { path, attributes, span: start.to(end) })
    }

    /// Skips `->`, or `--` with an error.
    fn arrow(&mut self) -> bool {
        let span = self.token.span;
        if self.at(TokenKind::Line) && !self.undirected {
            let error = Diagnostic::error(
                "dot_syntax",
                "`--` is an undirected edge; the edges of a pipeline must have a direction",
                span,
            );
            self.error(error.with_help("write `->`").with_fix(span, "->"));
        }
        let edge = matches!(self.token.kind, TokenKind::Arrow | TokenKind::Line);
        if edge {
            self.advance();
        }
        edge
    }

    fn edge_target(&mut self) -> Option<Name<'a>> {
        match self.token.kind {
            TokenKind::LeftBrace => {
                self.no_group(self.token.span);
                self.skip_braces();
                None
            }
            TokenKind::Word if self.text(self.token.span) == "subgraph" => {
                self.no_group(self.token.span);
                None
            }
            TokenKind::Word | TokenKind::Number | TokenKind::String => {
                let name = self.name();
                Some(self.node_id(name))
            }
            _ => {
                let message = format!("expected a node after `->`, found {}", self.found());
                self.syntax(message, self.token.span);
                None
            }
        }
    }
}
