//! The model style sheet (spec §8): the model of each node.
//!
//! The value of `model_stylesheet` is parsed here, with diagnostics inside the value. A rule only sets the three model attributes of nodes
//! that lack them; it grants nothing.

#![expect(
    clippy::result_large_err,
    reason = "a diagnostic ends the parsing of one value; it is built once and moved twice"
)]

use crate::diagnostic::Diagnostic;
use crate::ir::Attribute;
use crate::nearest::nearest;
use crate::span::{Places, Span};
use std::collections::HashMap;
use std::ops::Range;

/// The properties that a rule may set.
pub const PROPERTIES: &[&str] = &["llm_model", "llm_provider", "reasoning_effort"];

/// Rules by selector. Among equal selectors the later rule wins.
#[derive(Debug, Clone, Default)]
pub struct Stylesheet {
    universal: Declarations,
    shapes: HashMap<String, Declarations>,
    /// With the number of the rule, because a node may have several classes.
    classes: HashMap<String, Vec<(usize, &'static str, Attribute)>>,
    ids: HashMap<String, Declarations>,
}

type Declarations = Vec<(&'static str, Attribute)>;

impl Stylesheet {
    /// Parses a style sheet. A rule with a fault is dropped; the others apply.
    pub fn parse(text: &str, places: &Places) -> (Stylesheet, Vec<Diagnostic>) {
        let mut reader = Reader { text, at: 0, places, faults: Vec::new() };
        let mut sheet = Stylesheet::default();
        let mut number = 0;
        while reader.more() {
            number += 1;
            match reader.rule() {
                Ok((selector, declarations)) => sheet.add(number, &selector, declarations),
                Err(fault) => {
                    reader.faults.push(fault);
                    reader.skip_rule();
                }
            }
        }
        (sheet, reader.faults)
    }

    fn add(&mut self, number: usize, selector: &str, declarations: Declarations) {
        match (selector.chars().next(), selector.get(1..).unwrap_or_default()) {
            (Some('*'), _) => self.universal.extend(declarations),
            (Some('#'), id) => self.ids.entry(id.to_owned()).or_default().extend(declarations),
            (Some('.'), class) => {
                let numbered = declarations.into_iter().map(|(property, value)| (number, property, value));
                self.classes.entry(class.to_owned()).or_default().extend(numbered);
            }
            _ => self.shapes.entry(selector.to_owned()).or_default().extend(declarations),
        }
    }

    /// The properties of a node: id over class over shape over `*`, and the later of equal selectors (spec §8.3).
    pub fn apply(&self, id: &str, shape: &str, classes: &[&str]) -> Vec<(&'static str, Attribute)> {
        let mut by_class: Vec<_> = classes.iter().filter_map(|class| self.classes.get(*class)).flatten().collect();
        by_class.sort_by_key(|(number, _, _)| *number);
        let mut held: HashMap<&'static str, &Attribute> = HashMap::new();
        held.extend(self.universal.iter().map(|(property, value)| (*property, value)));
        held.extend(self.shapes.get(shape).into_iter().flatten().map(|(property, value)| (*property, value)));
        held.extend(by_class.into_iter().map(|(_, property, value)| (*property, value)));
        held.extend(self.ids.get(id).into_iter().flatten().map(|(property, value)| (*property, value)));
        held.into_iter().map(|(property, value)| (property, value.clone())).collect()
    }
}

/// The name here for a property with a shorter name in other engines.
fn name_here(name: &str) -> Option<&'static &'static str> {
    let known = match name {
        "model" => "llm_model",
        "provider" => "llm_provider",
        "effort" => "reasoning_effort",
        _ => return None,
    };
    PROPERTIES.iter().find(|property| **property == known)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    places: &'a Places,
    faults: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    fn more(&mut self) -> bool {
        self.space();
        self.at < self.text.len()
    }

    fn rule(&mut self) -> Result<(String, Declarations), Diagnostic> {
        let selector = self.selector()?;
        self.space();
        self.expect('{', "after the selector")?;
        let mut declarations = Vec::new();
        loop {
            self.space();
            if self.eat('}') {
                return Ok((selector, declarations));
            }
            declarations.push(self.declaration()?);
            self.space();
            if !self.eat(';') && !self.rest().starts_with('}') {
                return Err(self.fault("expected `;` or `}` after the declaration", self.next_char()));
            }
        }
    }

    fn selector(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        if self.eat('*') {
            return Ok("*".to_owned());
        }
        let mark = self.eat('.') || self.eat('#');
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if name.is_empty() {
            let found = if mark { "expected a name after `.` or `#`" } else { "expected a selector" };
            let fault = self.fault(found, self.next_char());
            return Err(fault.with_help("write `*`, a shape such as `box`, `.class` or `#node_id`"));
        }
        Ok(self.text[start..self.at].to_owned())
    }

    fn declaration(&mut self) -> Result<(&'static str, Attribute), Diagnostic> {
        let start = self.at;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let key = start..self.at;
        let property = match PROPERTIES.iter().find(|property| **property == name).or_else(|| name_here(name)) {
            Some(property) => property,
            None => return Err(self.no_property(name, key)),
        };
        if *property != name && self.places.exact() {
            self.faults.push(crate::lower::other_spelling(name, property, self.places.span(key.clone())));
        }
        self.space();
        self.expect(':', "after the property")?;
        self.space();
        let (value, range) = self.value()?;
        if *property == "reasoning_effort" && !["low", "medium", "high"].contains(&value.as_str()) {
            let message = format!("`reasoning_effort` expects `low`, `medium` or `high`, found `{value}`");
            return Err(self.fault(message, range));
        }
        Ok((
            *property,
            Attribute { value: value.into(), key_span: self.places.span(key), span: self.places.span(range) },
        ))
    }

    fn no_property(&self, name: &str, range: Range<usize>) -> Diagnostic {
        if name.is_empty() {
            return self.fault("expected a property or `}`", self.next_char());
        }
        let fault = self.fault(format!("unknown property `{name}`"), range.clone());
        match nearest(name, PROPERTIES.iter().copied()) {
            Some(meant) if self.places.exact() => {
                fault.with_help(format!("did you mean `{meant}`?")).with_fix(self.places.span(range), meant)
            }
            _ => fault.with_help(format!("use one of {}", PROPERTIES.join(", "))),
        }
    }

    fn value(&mut self) -> Result<(String, Range<usize>), Diagnostic> {
        let start = self.at;
        let value = if self.eat('"') {
            let inner = self.take_while(|c| c != '"').to_owned();
            if !self.eat('"') {
                return Err(self.fault("the value's closing quote is missing", start..self.at));
            }
            inner
        } else {
            self.take_while(|c| !c.is_whitespace() && !matches!(c, ';' | '}' | '{')).to_owned()
        };
        if value.is_empty() {
            return Err(self.fault("expected a value", self.next_char()));
        }
        Ok((value, start..self.at))
    }

    /// Continues after the rule's closing brace.
    fn skip_rule(&mut self) {
        let length = self.rest().find('}').map_or(self.rest().len(), |length| length + 1);
        self.at += length;
    }

    fn expect(&mut self, wanted: char, position: &str) -> Result<(), Diagnostic> {
        if self.eat(wanted) {
            return Ok(());
        }
        Err(self.fault(format!("expected `{wanted}` {position}"), self.next_char()))
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Skips white space and `/* */` comments.
    fn space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with("/*") {
                return;
            }
            let length = self.rest().find("*/").map_or(self.rest().len(), |length| length + 2);
            self.at += length;
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next_char(&self) -> Range<usize> {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        self.at..self.at + length
    }

    fn fault(&self, message: impl Into<String>, range: Range<usize>) -> Diagnostic {
        let span: Span = self.places.span(range);
        Diagnostic::error("stylesheet_syntax", message, span)
    }
}
