//! Aligned rows of a title and a text, as summaries and reports print them.

use super::paint::Paint;
use super::visible;
use std::fmt::{Display, Write};

/// Builds rows.
pub struct Rows {
    text: String,
    indent: &'static str,
    width: usize,
    paint: Paint,
}

impl Rows {
    /// Creates an empty builder. Titles are padded to `width` characters.
    pub fn new(width: usize) -> Self {
        Self { text: String::new(), indent: "", width, paint: Paint::default() }
    }

    /// As [`Self::new`], but with two spaces before each row.
    pub fn below_a_title(width: usize) -> Self {
        Self { indent: "  ", ..Self::new(width) }
    }

    /// Prints titles in colours.
    #[must_use]
    pub fn painted(self, paint: Paint) -> Self {
        Self { paint, ..self }
    }

    /// Adds a row. Escapes characters that could deceive a reader, including line breaks.
    pub fn row(&mut self, title: impl Display, body: impl Display) {
        let body = body.to_string();
        self.block(title, visible::line(&body));
    }

    /// Adds a row with a text that is escaped already.
    pub fn block(&mut self, title: impl Display, body: impl Display) {
        let (indent, width) = (self.indent, self.width);
        let title = self.paint.title(&format!("{:<width$}", title.to_string()));
        writeln!(self.text, "{indent}{title} {body}").expect("writing to a string does not fail");
    }

    /// Adds the lines of a text, indented below the last row.
    pub fn indented(&mut self, text: impl Display) {
        for line in text.to_string().lines() {
            writeln!(self.text, "  {}", visible::line(line)).expect("writing to a string does not fail");
        }
    }

    /// Adds a whole line, which is escaped already and is not indented.
    pub fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("writing to a string does not fail");
    }

    /// Returns the text of all rows.
    pub fn finish(self) -> String {
        self.text
    }
}
