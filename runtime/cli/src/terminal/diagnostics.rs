//! Renders diagnostics for people and for programs.
//!
//! Diagnostics have byte spans, which are rendered as lines, columns and marked source. The source is untrusted text:
//! control characters in it are escaped, and spans are adjusted. This module reads no files.

use crate::terminal::visible;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use glovebox_names::visible::{is_deceptive, push_escaped};
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{Diagnostic, Edit, Severity};
use glovebox_pipeline::span::Span;
pub use glovebox_plan::prepare::findings::Findings;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;

/// How diagnostics are rendered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// Whether colours are used.
    pub coloured: bool,
    /// Columns of the terminal, or `None` without a terminal. A longer source line is cut around its marks.
    pub columns: Option<usize>,
}

/// Renders the diagnostics of one file with at least this severity, each followed by an empty line.
pub fn render(findings: &Findings, at_least: Severity, look: Look) -> String {
    let selected = || findings.diagnostics.iter().filter(|diagnostic| diagnostic.severity <= at_least);
    let Some(end) = selected().map(end_of).max() else { return String::new() };
    let shown = EscapedSource::new(findings, through_line(findings.source(), end));
    let renderer = if look.coloured { Renderer::styled() } else { Renderer::plain() };
    let renderer = look.columns.map_or(renderer.clone(), |columns| renderer.term_width(columns));
    let mut text = String::new();
    for diagnostic in selected() {
        text.push_str(&renderer.render(&groups(diagnostic, &shown)));
        text.push_str("\n\n");
    }
    text
}

/// Returns the end of the last span of a diagnostic.
fn end_of(diagnostic: &Diagnostic) -> usize {
    let labels = diagnostic.labels.iter().map(|label| label.span);
    let fix = diagnostic.fix.iter().map(|fix| fix.span);
    labels.chain(fix).fold(diagnostic.span, Span::to).end
}

/// Returns the source up to the end of the line that contains an offset. The text after it is not shown, however long
/// it is.
fn through_line(source: Source<'_>, offset: usize) -> Source<'_> {
    let source = source.text();
    let rest = source.as_bytes().get(offset..).unwrap_or_default();
    let length = rest.iter().position(|letter| *letter == b'\n').map_or(rest.len(), |newline| newline + 1);
    Source::new(&source[..source.len() - (rest.len() - length)])
}

fn groups<'a>(diagnostic: &'a Diagnostic, shown: &'a EscapedSource<'_>) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let note = visible::line(&diagnostic.note);
    let labels = diagnostic.labels.iter().map(|label| label.span);
    let excerpt = shown.excerpt(labels.fold(diagnostic.span, Span::to));
    let primary = AnnotationKind::Primary.span(excerpt.range(shown, diagnostic.span));
    let primary = if note.is_empty() { primary } else { primary.label(note) };
    let mut snippet = excerpt.snippet(shown).path(&*shown.file).annotation(primary);
    for label in &diagnostic.labels {
        let place = excerpt.range(shown, label.span);
        snippet = snippet.annotation(AnnotationKind::Context.span(place).label(visible::line(&label.text)));
    }
    let title = level.primary_title(visible::line(&diagnostic.message)).id(&*diagnostic.rule);
    let mut groups = vec![title.element(snippet)];
    match (&diagnostic.fix, &diagnostic.help) {
        (Some(fix), _) => groups.push(suggestion(diagnostic, fix, shown)),
        (None, Some(help)) => {
            let last = groups.remove(0);
            groups.push(last.element(Level::HELP.message(visible::block(help))));
        }
        (None, None) => {}
    }
    groups
}

fn suggestion<'a>(diagnostic: &'a Diagnostic, fix: &'a Edit, shown: &'a EscapedSource<'_>) -> Group<'a> {
    let title = Level::HELP.secondary_title(visible::block(diagnostic.help.as_deref().unwrap_or("write")));
    let excerpt = shown.excerpt(fix.span);
    let patch = Patch::new(excerpt.range(shown, fix.span), visible::block(&fix.replacement));
    title.element(excerpt.snippet(shown).path(&*shown.file).patch(patch))
}

fn line_ends(bytes: &[u8]) -> usize {
    // The count of a part with at most 255 bytes fits into a `u8`, so the compiler vectorizes the sum.
    let count = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|part| usize::from(count(part))).sum()
}

/// The name and text of a file with escaped control characters, and how the escapes move offsets.
struct EscapedSource<'a> {
    file: Cow<'a, str>,
    text: Cow<'a, str>,
    /// For each escaped character: the source offset after it, and by how many bytes the escaped text up to there is
    /// longer than the source.
    moves: Vec<(usize, isize)>,
    /// For each part of [`PART_BYTES`] bytes: the number of line ends in it and in all parts before it.
    ended: Vec<usize>,
}

/// Size of the parts in which line ends are counted, in bytes. The bytes of a part are counted with vector
/// instructions. An index of all lines would cost more time than the rendering of the findings.
const PART_BYTES: usize = 4096;

/// Whole lines of the escaped text around a span. The renderer scans its whole input for each diagnostic, so the input
/// is kept small.
struct Excerpt {
    text: Range<usize>,
    /// Number of the first line, from 1.
    line: usize,
}

impl Excerpt {
    fn snippet<'a, T: Clone>(&self, shown: &'a EscapedSource<'_>) -> Snippet<'a, T> {
        Snippet::source(&shown.text[self.text.start..self.text.end]).line_start(self.line)
    }

    fn range(&self, shown: &EscapedSource<'_>, span: Span) -> Range<usize> {
        let place = shown.range(span);
        place.start - self.text.start..place.end - self.text.start
    }
}

impl<'a> EscapedSource<'a> {
    fn new(findings: &'a Findings, source: Source<'a>) -> Self {
        let (text, moves) = Self::escape(source);
        let mut count = 0;
        let ended = text.as_bytes().chunks(PART_BYTES).map(|part| {
            count += line_ends(part);
            count
        });
        Self { file: visible::line(&findings.file), ended: ended.collect(), text, moves }
    }

    /// Returns the number of the line that contains an offset, from 0, and the offset of its beginning.
    fn line(&self, offset: usize) -> (usize, usize) {
        let part = offset / PART_BYTES;
        let before = part.checked_sub(1).map_or(0, |part| self.ended[part]);
        let number = before + line_ends(&self.text.as_bytes()[part * PART_BYTES..offset]);
        (number, self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1))
    }

    /// Returns the lines that contain a span. If the span is in an empty line at the end, returns the last line with
    /// text.
    fn excerpt(&self, span: Span) -> Excerpt {
        let place = self.range(span);
        let (mut number, mut first) = self.line(place.start);
        if first == self.text.len() && number > 0 {
            (number, first) = self.line(first - 1);
        }
        let end = self.text[place.end..].find('\n').map_or(self.text.len(), |newline| place.end + newline + 1);
        Excerpt { text: first..end, line: number + 1 }
    }

    fn escape(source: Source<'_>) -> (Cow<'_, str>, Vec<(usize, isize)>) {
        let source = source.text();
        let is_plain = |so_far: bool, byte: &u8| so_far & matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        if source.as_bytes().chunks(PART_BYTES).all(|part| part.iter().fold(true, is_plain)) {
            return (source.into(), Vec::new());
        }
        let mut text = String::with_capacity(source.len());
        let mut moves = Vec::new();
        for (offset, character) in source.char_indices() {
            let passes = matches!(character, '\n' | '\t') || source[offset..].starts_with("\r\n");
            if passes || !is_deceptive(character) {
                text.push(character);
                continue;
            }
            push_escaped(&mut text, character);
            let end = offset + character.len_utf8();
            moves.push((end, text.len() as isize - end as isize));
        }
        (text.into(), moves)
    }

    fn offset(&self, source_offset: usize) -> usize {
        let index = self.moves.partition_point(|(end, _)| *end <= source_offset);
        let grown = if index == 0 { 0 } else { self.moves[index - 1].1 };
        let mut offset = source_offset.saturating_add_signed(grown).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    fn range(&self, span: Span) -> Range<usize> {
        let start = self.offset(span.start);
        start..self.offset(span.end).max(start)
    }
}

/// One finding of `glovebox check --format json`, which prints a list of findings. It has the file, line and column in
/// addition to the diagnostic, whose spans are in bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "finding of glovebox check")]
pub struct Record<'a> {
    /// The file, as it was named on the command line.
    file: &'a str,
    /// Line of the finding, from 1.
    line: usize,
    /// Column of the finding in characters, from 1.
    column: usize,
    #[serde(flatten)]
    diagnostic: &'a Diagnostic,
}

/// Returns the diagnostics of one file as JSON records.
pub fn records(findings: &Findings) -> impl Iterator<Item = Record<'_>> {
    findings.diagnostics.iter().map(|diagnostic| {
        let (line, column) = line_and_column(findings.source(), diagnostic.span.start);
        Record { file: &findings.file, line, column, diagnostic }
    })
}

/// Returns line and column of a byte offset, both from 1. The column counts characters.
pub fn line_and_column(source: Source<'_>, offset: usize) -> (usize, usize) {
    let source = source.text();
    let mut end = offset.min(source.len());
    while !source.is_char_boundary(end) {
        end -= 1;
    }
    // A byte order mark does not count as a character of the first line.
    let before = source[..end].trim_start_matches('\u{feff}');
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(source: &str, diagnostics: Vec<Diagnostic>) -> Findings {
        Findings { file: "ship.dot".to_owned(), source: source.to_owned(), diagnostics }
    }

    fn span(source: &str, needle: &str) -> Span {
        let start = source.find(needle).unwrap();
        Span::new(start, start + needle.len())
    }

    #[test]
    fn a_span_inside_a_string_is_marked_and_mended() {
        let source = "digraph ship {\n  build [shape=box]\n  build -> exit [condition=\"outcome == success\"]\n}\n";
        let diagnostic = Diagnostic::error("condition_syntax", "`==` is not an operator", span(source, "=="))
            .with_note("expected `=` or `!=`")
            .with_label(span(source, "build -> exit"), "on this edge")
            .with_help("use a single `=`")
            .with_fix(span(source, "=="), "=");
        insta::assert_snapshot!(render(&findings(source, vec![diagnostic]), Severity::Info, Look::default()), @r#"
        error[condition_syntax]: `==` is not an operator
         --> ship.dot:3:37
          |
        3 |   build -> exit [condition="outcome == success"]
          |   ------------- on this edge        ^^ expected `=` or `!=`
          |
        help: use a single `=`
          |
        3 -   build -> exit [condition="outcome == success"]
        3 +   build -> exit [condition="outcome = success"]
          |
        "#);
    }

    #[test]
    fn control_characters_of_the_source_are_shown_and_spans_move_along() {
        let source = "digraph g {\n  a [label=\"\u{1b}[2J\u{202e}x\", shape=blob]\n}\n";
        let diagnostic = Diagnostic::warning("shape_known", "no shape `bl\u{1b}ob`", span(source, "blob"));
        let text = render(&findings(source, vec![diagnostic]), Severity::Info, Look::default());
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        insta::assert_snapshot!(text, @r#"
        warning[shape_known]: no shape `bl\x1bob`
         --> ship.dot:2:38
          |
        2 |   a [label="\x1b[2J\u{202e}x", shape=blob]
          |                                      ^^^^
        "#);
    }

    #[test]
    fn a_long_line_is_cut_around_its_mark() {
        let source = format!(
            "digraph g {{\n  a [prompt=\"{}\", shape=blob, label=\"{}\"]\n}}\n",
            "x".repeat(200),
            "y".repeat(200)
        );
        let diagnostic = Diagnostic::error("shape_known", "no shape `blob`", span(&source, "blob"));
        let text =
            render(&findings(&source, vec![diagnostic]), Severity::Info, Look { coloured: false, columns: Some(60) });
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let marks = lines.iter().position(|line| line.contains("^^^^")).unwrap();
        assert_eq!(lines[marks].find("^^^^"), lines[marks - 1].find("blob"), "{text}");
    }

    #[test]
    fn spans_beyond_the_text_or_inside_a_character_do_not_break_rendering() {
        for (source, span) in [("", Span::new(0, 0)), ("é", Span::new(1, 9)), ("a\r\n\u{7}", Span::new(3, 4))] {
            let text =
                render(&findings(source, vec![Diagnostic::info("x", "y", span)]), Severity::Info, Look::default());
            assert!(text.starts_with("info[x]: y"), "{text}");
        }
    }

    #[test]
    fn text_after_the_last_line_that_is_shown_is_not_looked_at() {
        let source = "digraph g {\r\n  a [shape=blob]\r\n  b\n}\n";
        let diagnostic = Diagnostic::error("shape_known", "no shape `blob`", span(source, "blob"));
        let end = source.find("  b").unwrap();
        let through = |offset| through_line(Source::new(source), offset).text();
        assert_eq!(through(end_of(&diagnostic)), &source[..end]);
        let last = diagnostic.clone().with_label(span(source, "}"), "ends here");
        assert_eq!(through(end_of(&last)), source);
        let whole = [source.len(), source.len() + 1].map(through);
        assert_eq!(whole, [source, source]);
        let cut = render(&findings(&source[..end], vec![diagnostic.clone()]), Severity::Info, Look::default());
        assert_eq!(render(&findings(source, vec![diagnostic]), Severity::Info, Look::default()), cut);
    }

    #[test]
    fn the_published_schema_is_current() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/check.schema.json");
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Vec<Record<'static>>)).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&file, &schema).unwrap();
        }
        assert!(std::fs::read_to_string(&file).unwrap_or_default() == schema, "run with UPDATE_SCHEMAS=1");
    }

    #[test]
    fn lines_are_counted_right_also_over_many_parts() {
        let source: String = (0..3_000).map(|line| format!("{}\n", "é".repeat(line % 7))).collect();
        let findings = findings(&source, Vec::new());
        let shown = EscapedSource::new(&findings, findings.source());
        let starts: Vec<usize> = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        for offset in (0..=source.len()).filter(|offset| source.is_char_boundary(*offset)) {
            let number = starts.partition_point(|start| *start <= offset) - 1;
            assert_eq!(shown.line(offset), (number, starts[number]), "{offset}");
        }
        let last = shown.excerpt(Span::new(source.len(), source.len()));
        assert_eq!((last.line, last.text), (3_000, starts[2_999]..source.len()), "not the empty line at the end");
    }

    #[test]
    fn records_count_lines_and_characters_from_one() {
        let source = "digraph g {\n  ä [shape=blob]\n}\n";
        let diagnostic = Diagnostic::error("shape_known", "no shape", span(source, "blob"));
        let found = findings(source, vec![diagnostic]);
        let json = serde_json::to_value(records(&found).collect::<Vec<_>>()).unwrap();
        assert_eq!((&json[0]["line"], &json[0]["column"]), (&2.into(), &12.into()));
        assert_eq!(json[0]["span"]["start"], 24);
        assert_eq!((&json[0]["file"], &json[0]["severity"]), (&"ship.dot".into(), &"error".into()));
    }
}
