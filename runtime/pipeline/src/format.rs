//! Formats pipeline files: the result has the same meaning, the same comments, and a spelling that Graphviz accepts.
//!
//! Each statement is on its own line and ends with a semicolon; each level is indented by two spaces. Attributes share a line if
//! they fit, otherwise each has its own line. There is at most one empty line between statements. Text that Graphviz does not
//! accept without quotes gets quotes, and `#` comments become `//`. Formatting is idempotent, and it never changes the meaning.

use crate::diagnostic::Diagnostic;
use crate::dot::{self, Ast, Attr, Comment, Keyword, Name, Statement, Target, Value, is_identifier, is_numeral, quote};
use crate::source::Source;

/// Maximum width of a statement on one line, in characters.
const WIDTH: usize = 120;

/// Formats a pipeline file.
///
/// # Errors
/// Returns the diagnostics if the file has syntax errors, because formatting would lose the text that the parser could not read.
pub fn format(source: Source<'_>) -> Result<String, Vec<Diagnostic>> {
    let (ast, diagnostics) = dot::parse(source);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    let mut writer = Writer { source, comments: &ast.comments, out: String::new(), depth: 0, last: 0 };
    writer.file(&ast);
    Ok(writer.out)
}

struct Writer<'a> {
    source: Source<'a>,
    /// Comments that have not been written yet.
    comments: &'a [Comment],
    out: String,
    depth: usize,
    /// Offset in the source up to which everything has been written.
    last: usize,
}

impl Writer<'_> {
    fn file(&mut self, ast: &Ast<'_>) {
        self.comments_before(ast.span.start);
        if !self.out.is_empty() {
            self.line_break(ast.span.start);
        }
        let name = ast.name.as_ref().map(|name| format!("{} ", bare_or_quoted(name))).unwrap_or_default();
        self.out.push_str(&format!("digraph {name}{{"));
        // Comments before the opening brace are written after it.
        self.last = ast.name.as_ref().map_or(ast.span.start, |name| name.span.end);
        self.last = self.source.text()[self.last..].find('{').map_or(self.last, |at| self.last + at + 1);
        self.body(&ast.body, ast.span.end.saturating_sub(1));
        self.out.push('}');
        self.last = ast.span.end;
        self.comments_before(self.source.text().len());
        self.out.push('\n');
    }

    fn body(&mut self, body: &[Statement<'_>], end: usize) {
        self.depth += 1;
        let mut first = true;
        for statement in body {
            let start = start(statement);
            self.comments_before(start);
            self.next_line(start, first && self.out.ends_with('{'));
            self.statement(statement);
            first = false;
        }
        self.comments_before(end);
        self.depth -= 1;
        self.new_line();
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::Defaults { target, attributes, span } => {
                let word = match target {
                    Target::Graph => "graph",
                    Target::Node => "node",
                    Target::Edge => "edge",
                };
                self.with_attributes(word.to_owned(), attributes, span.end, true);
            }
            Statement::Assign(attribute) => {
                self.out.push_str(&format!("{};", pair(attribute)));
                self.last = attribute.value.span.end;
            }
            Statement::Node { id, attributes, span } => {
                self.with_attributes(bare_or_quoted(id), attributes, span.end, false)
            }
            Statement::Edge { path, attributes, span } => {
                let path: Vec<String> = path.iter().map(bare_or_quoted).collect();
                self.with_attributes(path.join(" -> "), attributes, span.end, false);
            }
            Statement::Subgraph { name, body, span } => {
                let name = name.as_ref().map(|name| format!("{} ", bare_or_quoted(name))).unwrap_or_default();
                self.out.push_str(&format!("subgraph {name}{{"));
                self.last = self.source.text()[span.start..].find('{').map_or(span.start, |at| span.start + at + 1);
                self.body(body, span.end.saturating_sub(1));
                self.out.push('}');
                self.last = span.end;
            }
        }
    }

    /// Writes `subject [a=b, …];`, on one line if it fits and contains no comment.
    fn with_attributes(&mut self, subject: String, attributes: &[Attr<'_>], end: usize, brackets: bool) {
        let begin = attributes.first().map_or(end, |attribute| attribute.key_span.start);
        self.comments_inside(begin);
        self.out.push_str(&subject);
        if attributes.is_empty() {
            self.out.push_str(if brackets { " [];" } else { ";" });
            self.finish(end);
            return;
        }
        let pairs: Vec<String> = attributes.iter().map(pair).collect();
        let width =
            self.depth * 2 + subject.chars().count() + pairs.iter().map(|pair| pair.chars().count() + 2).sum::<usize>();
        let is_interrupted = self.comments.first().is_some_and(|comment| comment.span.start < end);
        if width + 3 <= WIDTH && !is_interrupted {
            self.out.push_str(&format!(" [{}];", pairs.join(", ")));
            self.last = end;
            return;
        }
        self.out.push_str(" [");
        self.last = begin;
        self.depth += 1;
        for (attribute, pair) in attributes.iter().zip(&pairs) {
            self.comments_before(attribute.key_span.start);
            self.new_line();
            self.out.push_str(&format!("{pair},"));
            self.last = attribute.value.span.end;
        }
        self.comments_before(end);
        self.depth -= 1;
        self.new_line();
        self.out.push_str("];");
        self.finish(end);
    }

    /// Ends the statement at `end`, and writes the comments inside it.
    fn finish(&mut self, end: usize) {
        self.comments_inside(end);
        self.last = end;
    }

    /// Writes the comments inside the head of a statement, on their own lines before the statement.
    fn comments_inside(&mut self, before: usize) {
        while let Some(comment) = self.comments.first().copied().filter(|comment| comment.span.start < before) {
            self.comments = &self.comments[1..];
            let text = self.comment(comment);
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            let head = self.out.split_off(line);
            let indent = "  ".repeat(self.depth);
            self.out.push_str(&format!("{indent}{text}\n{head}"));
        }
    }

    /// Writes the comments that begin before an offset: after other text if they are on the same line, otherwise on
    /// their own lines.
    fn comments_before(&mut self, before: usize) {
        while let Some(comment) = self.comments.first().copied().filter(|comment| comment.span.start < before) {
            self.comments = &self.comments[1..];
            let text = self.comment(comment);
            let between = self.source.text().get(self.last..comment.span.start).unwrap_or_default();
            if self.out.is_empty() {
            } else if between.contains('\n') || self.ends_with_line_comment() {
                self.line_break(comment.span.start);
            } else {
                self.out.push(' ');
            }
            self.out.push_str(&text);
            self.last = comment.span.end;
        }
    }

    /// Returns true if the current line ends with a line comment.
    fn ends_with_line_comment(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        // A string with `//` has its closing quote on the same line, because the writer escapes line breaks.
        let mut quoted = false;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if quoted => drop(chars.next()),
                '"' => quoted = !quoted,
                '/' if !quoted && chars.peek() == Some(&'/') => return true,
                _ => {}
            }
        }
        false
    }

    fn comment(&self, comment: Comment) -> String {
        let text = self.source.at(comment.span).trim_end();
        match text.strip_prefix('#') {
            Some(rest) => format!("//{rest}"),
            None => text.split('\n').map(|line| line.trim_end_matches('\r')).collect::<Vec<_>>().join("\n"),
        }
    }

    /// Begins the line of the element at `start`. `opens` is true if the element follows an opening brace.
    fn next_line(&mut self, start: usize, opens: bool) {
        if opens { self.new_line() } else { self.line_break(start) }
    }

    /// Begins a new line, and keeps an empty line of the source before it.
    fn line_break(&mut self, start: usize) {
        let between = self.source.text().get(self.last..start).unwrap_or_default();
        if between.matches('\n').count() > 1 && !self.out.ends_with('{') {
            self.out.push('\n');
        }
        self.new_line();
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.out.push_str(&"  ".repeat(self.depth));
    }
}

fn start(statement: &Statement<'_>) -> usize {
    match statement {
        Statement::Defaults { span, .. }
        | Statement::Node { span, .. }
        | Statement::Edge { span, .. }
        | Statement::Subgraph { span, .. } => span.start,
        Statement::Assign(attribute) => attribute.key_span.start,
    }
}

fn pair(attribute: &Attr<'_>) -> String {
    let key = if is_plain(&attribute.key) { attribute.key.to_string() } else { quote(&attribute.key) };
    format!("{key}={}", value(&attribute.value))
}

/// Returns the text of a value. A quoted value stays quoted, and a value that Graphviz does not accept without quotes gets quotes.
fn value(value: &Value<'_>) -> String {
    if !value.quoted && (is_plain(&value.text) || is_numeral(&value.text)) {
        value.text.to_string()
    } else {
        quote(&value.text)
    }
}

fn bare_or_quoted(name: &Name<'_>) -> String {
    if is_plain(&name.text) { name.text.to_string() } else { quote(&name.text) }
}

/// Returns true for a word that never needs quotes.
fn is_plain(text: &str) -> bool {
    is_identifier(text) && Keyword::from_word(text).is_none()
}
