//! Renders pages of `docs/` as text for a terminal.
//!
//! It supports only the Markdown that these pages use: one title, paragraphs, tables, links. The pages are part of
//! Glovebox, so nothing is escaped.

use std::borrow::Cow;
use std::fmt::Write;

/// Maximum width of a narrow column, in characters. The cells of a wider column get their own lines.
const COLUMN_CHARACTERS_MAX: usize = 28;

/// Renders a page in lines of at most `width` characters.
pub fn render(page: &str, width: usize) -> String {
    let mut text = String::new();
    for block in page.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        match block.strip_prefix("# ") {
            Some(title) => push_line(&mut text, title),
            None if block.starts_with('|') => text.push_str(&table(&rows(block), width)),
            None => wrap(&without_links(block), 0, width).iter().for_each(|line| push_line(&mut text, line)),
        }
    }
    text
}

/// Returns the cells of each row of a table, without the header.
fn rows(table: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| without_links(cell.trim())).collect()
    };
    table.lines().skip(2).map(cells).collect()
}

/// Renders a table. Narrow columns are printed side by side. The cells of wide columns are indented, and all but the
/// first of them begin with an arrow.
fn table(rows: &[Vec<String>], width: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let narrow = widths.iter().take_while(|width| **width <= COLUMN_CHARACTERS_MAX).count();
    let indent = widths[..narrow].iter().map(|width| width + 2).sum::<usize>();
    let mut text = String::new();
    for row in rows {
        let mut head: String =
            row.iter().zip(&widths[..narrow]).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
        for (position, cell) in row[narrow.min(row.len())..].iter().enumerate() {
            let cell = if position == 0 { Cow::from(cell) } else { format!("-> {cell}").into() };
            for line in wrap(&cell, indent, width) {
                push_line(&mut text, &format!("{head:<indent$}{}", line.trim_start()));
                head.clear();
            }
        }
        if !head.is_empty() {
            push_line(&mut text, &head);
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    writeln!(text, "{}", line.trim_end()).expect("writing to a string does not fail");
}

/// Wraps words to lines of at most `width` characters, each after `indent` spaces. A longer word gets its own line.
fn wrap(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.iter().map(|line| format!("{:indent$}{line}", "")).collect()
}

/// Replaces each `[words](target)` with its words.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let link = after.split_once("](").filter(|(words, _)| !words.contains(['[', ']']));
        rest = match link.and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, rest)) => {
                plain.push_str(words);
                rest
            }
            None => {
                plain.push('[');
                after
            }
        };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_lines_that_fit() {
        let page = "# Title\n\nWords of a [page](x.md) in\nlines.\n\n| a | b |\n|---|---|\n| `1` | a cell that is long \
                    enough for a line of its own |\n| `22` | short |\n";
        let expected = "Title\n\nWords of a page in lines.\n\n`1`   a cell that is long\n      enough for a line of its\n      \
                        own\n`22`  short\n";
        assert_eq!(render(page, 30), expected);
    }

    #[test]
    fn a_bracket_without_a_link_stays() {
        assert_eq!(without_links("`[exec]` and [a](b), [c"), "`[exec]` and a, [c");
    }
}
