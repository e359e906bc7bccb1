//! The model style sheet (spec §8), which sets the model of each node.
//!
//! This module parses the value of `model_stylesheet`, and its diagnostics have spans inside the value. A rule can only set the
//! three model attributes of nodes that lack them; it grants nothing.

#![expect(
    clippy::result_large_err,
    reason = "a diagnostic ends the parsing of one value; it is built once and moved twice"
)]

use crate::diagnostic::Diagnostic;
use crate::dot::SourceMap;
use crate::hash::HashMap;
use crate::ir::{Attribute, NodeId};
use crate::key::{self, Key};
use crate::nearest::nearest;
use crate::span::Span;
use std::ops::Range;

/// The attributes that a rule may set.
pub const PROPERTIES: [Key<'static>; 3] = [key::LLM_MODEL, key::LLM_PROVIDER, key::REASONING_EFFORT];

/// Attributes that have a shorter name in other engines.
const OTHER_NAMES: [(&str, Key<'static>); 3] =
    [("model", key::LLM_MODEL), ("provider", key::LLM_PROVIDER), ("effort", key::REASONING_EFFORT)];

/// The nodes to which a rule applies.
enum Selector {
    /// `*`
    Every,
    /// `box`
    Shape(String),
    /// `.class`
    Class(String),
    /// `#node_id`
    Node(NodeId),
}

/// The rules of a style sheet, by selector. Among rules with equal selectors, the later one wins.
#[derive(Debug, Clone, Default)]
pub struct Stylesheet {
    universal: Declarations,
    shapes: HashMap<String, Declarations>,
    /// The attributes by class, each with the number of its rule, because a node may have several classes.
    classes: HashMap<String, Vec<(usize, Key<'static>, Attribute)>>,
    ids: HashMap<NodeId, Declarations>,
}

type Declarations = Vec<(Key<'static>, Attribute)>;

impl Stylesheet {
    /// Parses a style sheet. Skips rules with a mistake; the others apply.
    pub fn parse(text: &str, places: &SourceMap) -> (Stylesheet, Vec<Diagnostic>) {
        let mut reader = Reader { text, at: 0, places, faults: Vec::new() };
        let mut sheet = Stylesheet::default();
        let mut number = 0;
        while reader.more() {
            number += 1;
            match reader.rule() {
                Ok((selector, declarations)) => sheet.add(number, selector, declarations),
                Err(fault) => {
                    reader.faults.push(fault);
                    reader.skip_rule();
                }
            }
        }
        (sheet, reader.faults)
    }

    fn add(&mut self, number: usize, selector: Selector, declarations: Declarations) {
        match selector {
            Selector::Every => self.universal.extend(declarations),
            Selector::Node(id) => self.ids.entry(id).or_default().extend(declarations),
            Selector::Class(class) => {
                let numbered = declarations.into_iter().map(|(property, value)| (number, property, value));
                self.classes.entry(class).or_default().extend(numbered);
            }
            Selector::Shape(shape) => self.shapes.entry(shape).or_default().extend(declarations),
        }
    }

    /// Returns the attributes for a node. An id takes precedence over a class, a class over a shape, a shape over `*`,
    /// and among equal selectors the later rule wins (spec §8.3).
    pub fn apply(&self, id: &NodeId, shape: &str, classes: &[&str]) -> Declarations {
        let mut by_class: Vec<_> = classes.iter().filter_map(|class| self.classes.get(*class)).flatten().collect();
        by_class.sort_by_key(|(number, _, _)| *number);
        let mut held: HashMap<Key<'static>, &Attribute> = HashMap::default();
        held.extend(self.universal.iter().map(|(property, value)| (*property, value)));
        held.extend(self.shapes.get(shape).into_iter().flatten().map(|(property, value)| (*property, value)));
        held.extend(by_class.into_iter().map(|(_, property, value)| (*property, value)));
        held.extend(self.ids.get(id).into_iter().flatten().map(|(property, value)| (*property, value)));
        held.into_iter().map(|(property, value)| (property, value.clone())).collect()
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    places: &'a SourceMap,
    faults: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    fn more(&mut self) -> bool {
        self.space();
        self.at < self.text.len()
    }

    fn rule(&mut self) -> Result<(Selector, Declarations), Diagnostic> {
        let selector = self.selector()?;
        self.space();
        if !self.eat('{') {
            return Err(self.fault("expected `{` after the selector", self.next_char()));
        }
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

    fn selector(&mut self) -> Result<Selector, Diagnostic> {
        if self.eat('*') {
            return Ok(Selector::Every);
        }
        let is_class = self.eat('.');
        let is_id = !is_class && self.eat('#');
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if name.is_empty() {
            let found = if is_class || is_id { "expected a name after `.` or `#`" } else { "expected a selector" };
            let fault = self.fault(found, self.next_char());
            return Err(fault.with_help("write `*`, a shape such as `box`, `.class` or `#node_id`"));
        }
        Ok(match (is_class, is_id) {
            (true, _) => Selector::Class(name.to_owned()),
            (_, true) => Selector::Node(NodeId::new(name)),
            _ => Selector::Shape(name.to_owned()),
        })
    }

    fn declaration(&mut self) -> Result<(Key<'static>, Attribute), Diagnostic> {
        let start = self.at;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let key_span = self.places.span(start..self.at);
        let own = PROPERTIES.into_iter().find(|property| property.as_str() == name);
        let other = || OTHER_NAMES.into_iter().find(|(theirs, _)| *theirs == name).map(|(_, property)| property);
        let Some(property) = own.or_else(other) else { return Err(self.no_property(start..self.at)) };
        if own.is_none() && self.places.exact() {
            self.faults.push(Diagnostic::other_spelling(name, property.as_str(), key_span));
        }
        self.space();
        if !self.eat(':') {
            return Err(self.fault("expected `:` after the property", self.next_char()));
        }
        self.space();
        let (value, range) = self.value()?;
        if property == key::REASONING_EFFORT && !["low", "medium", "high"].contains(&value.as_str()) {
            let message = format!("`reasoning_effort` expects `low`, `medium` or `high`, found `{value}`");
            return Err(self.fault(message, range));
        }
        Ok((property, Attribute { value: value.into(), key_span, span: self.places.span(range) }))
    }

    fn no_property(&self, range: Range<usize>) -> Diagnostic {
        let name = &self.text[range.start..range.end];
        if name.is_empty() {
            return self.fault("expected a property or `}`", self.next_char());
        }
        let known = PROPERTIES.map(Key::as_str);
        let fault = self.fault(format!("unknown property `{name}`"), range);
        match nearest(name, known) {
            Some(meant) if self.places.exact() => {
                let span = fault.span;
                fault.with_help(format!("did you mean `{meant}`?")).with_fix(span, meant)
            }
            _ => fault.with_help(format!("use one of {}", known.join(", "))),
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

    /// Continues after the closing brace of the rule.
    fn skip_rule(&mut self) {
        let length = self.rest().find('}').map_or(self.rest().len(), |length| length + 1);
        self.at += length;
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
