//! Converts values from text to types, with a diagnostic for each invalid value.
//!
//! An invalid value is treated as absent for the rest of the lowering. Such a file does not run, because the diagnostic is an
//! error.

use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::dot::text::decode;
use crate::dot::{SourceMap, quote};
use crate::ir::Attribute;
use crate::key::{self, Key};
use crate::nearest::nearest;
use crate::path::{entry_of, part_of_workspace};
use crate::source::Source;
use glovebox_record::scope::Entry;
use glovebox_record::spend::{Money, SpendBounds};
use glovebox_record::{LimitName, LimitSettings, LimitUnit};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The findings of the lowering so far, and the source text.
pub(super) struct Findings<'a> {
    source: Source<'a>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// True if a missing unit has been reported. One report is enough, because such a file usually leaves out all units.
    unit_reported: bool,
}

impl<'a> Findings<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self { source, diagnostics: Vec::new(), unit_reported: false }
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Returns the map from a value to the source text. The map is opaque for a value that an input replaced.
    pub(super) fn places(&self, attribute: &Attribute) -> SourceMap {
        let written = self.source.at(attribute.span);
        let Some(inner) = written.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            return if written == attribute.value {
                SourceMap::plain(attribute.span, 0)
            } else {
                SourceMap::opaque(attribute.span)
            };
        };
        match decode(inner, |_, _| ()) {
            text if *text != *attribute.value => SourceMap::opaque(attribute.span),
            Cow::Borrowed(_) => SourceMap::plain(attribute.span, 1),
            Cow::Owned(_) => SourceMap::new(self.source, attribute.span),
        }
    }

    /// Reports an invalid value.
    pub(super) fn invalid(&mut self, attribute: &Attribute, message: impl Into<String>) {
        self.push(Diagnostic::error("attribute_value", message, attribute.span));
    }

    /// Reports an invalid value, with the corrected value if it is certain.
    pub(super) fn corrected(
        &mut self,
        attribute: &Attribute,
        message: impl Into<String>,
        corrected: Option<impl fmt::Display>,
    ) {
        let Some(corrected) = corrected else { return self.invalid(attribute, message) };
        let error = Diagnostic::error("attribute_value", message, attribute.span);
        let error = error.with_help(format!("write `{corrected}`"));
        let exact = self.places(attribute).exact();
        self.push(if exact { error.with_fix(attribute.span, corrected.to_string()) } else { error });
    }

    /// Returns the text of an attribute. `None` if it is absent or empty.
    pub(super) fn text<'b>(&self, from: &'b Attributes, key: Key<'_>) -> Option<&'b str> {
        from.get(key).map(|attribute| attribute.value.as_str()).filter(|text| !text.trim().is_empty())
    }

    /// Reads `true` or `false`. Returns false if the attribute is absent.
    pub(super) fn boolean(&mut self, from: &Attributes, key: Key<'_>) -> bool {
        let Some(attribute) = from.get(key) else { return false };
        match attribute.value.as_str() {
            "true" => return true,
            "false" | "" => return false,
            _ => {}
        }
        let corrected = match attribute.value.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        };
        self.corrected(attribute, format!("`{key}` expects `true` or `false`, found `{}`", attribute.value), corrected);
        false
    }

    /// Reads a whole number from `least` to `most`. Reads `1.0` as `1`, because other engines write weights as floating-point
    /// numbers (decision other-spellings).
    pub(super) fn integer(&mut self, from: &Attributes, key: Key<'_>, least: i64, most: i64) -> Option<i64> {
        let attribute = from.get(key).filter(|attribute| !attribute.value.is_empty())?;
        let written = attribute.value.as_str();
        let fraction = written.split_once('.').filter(|(_, digits)| is_zero(digits));
        let whole = fraction.map_or(written, |(whole, _)| whole);
        match whole.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => {
                if fraction.is_some() {
                    let found = Diagnostic::other_spelling(written, &number.to_string(), attribute.span);
                    // All edges of a chain have the same attribute, which is reported once.
                    if self.diagnostics.last() != Some(&found) {
                        self.push(found);
                    }
                }
                Some(number)
            }
            _ => {
                let range =
                    if most >= i64::from(u32::MAX) { format!("{least} or more") } else { format!("{least} to {most}") };
                let range = if least == i64::MIN { "such as 10 or -1".to_owned() } else { range };
                self.invalid(attribute, format!("`{key}` expects a whole number, {range}, found `{written}`"));
                None
            }
        }
    }

    /// Reads a whole number from `least` that fits 32 bits.
    pub(super) fn count(&mut self, from: &Attributes, key: Key<'_>, least: u32) -> Option<u32> {
        let number = self.integer(from, key, i64::from(least), i64::from(u32::MAX))?;
        u32::try_from(number).ok()
    }

    /// Reads the budget of model calls.
    pub(super) fn spend(&mut self, from: &Attributes) -> SpendBounds {
        let tokens_max = self.integer(from, key::MAX_TOKENS, 1, i64::MAX).and_then(|most| u64::try_from(most).ok());
        let written = from.get(key::MAX_BUDGET_USD).filter(|attribute| !attribute.value.trim().is_empty());
        let cost_max = written.and_then(|attribute| {
            let read = attribute.value.parse::<Money>();
            read.map_err(|error| {
                let message = format!("`{}` is `{}`: {error}", key::MAX_BUDGET_USD, attribute.value);
                self.invalid(attribute, message);
            })
            .ok()
        });
        SpendBounds { tokens_max, cost_max }
    }

    /// Reads a duration of at least one millisecond (spec §2.4). A number without a unit means seconds, as in many
    /// existing files, and is reported as a warning.
    pub(super) fn duration(&mut self, from: &Attributes, key: Key<'_>) -> Option<Duration> {
        let attribute = from.get(key).filter(|attribute| !attribute.value.is_empty())?;
        let bare = attribute.value.parse::<u32>().ok().map(|seconds| Duration::from_secs(seconds.into()));
        let found = bare.or_else(|| duration(&attribute.value)).filter(|duration| !duration.is_zero());
        if found.is_none() {
            let least = if attribute.value.starts_with('0') { " of 1ms or more," } else { "" };
            let message = format!(
                "`{key}` expects a duration{least} such as `900s`, `15m` or `250ms`, found `{}`",
                attribute.value
            );
            self.invalid(attribute, message);
        } else if bare.is_some() && !std::mem::replace(&mut self.unit_reported, true) {
            let (span, unit) = (attribute.span, quote(&format!("{}s", attribute.value)));
            let message = format!("`{key}` has no unit: `{}` means seconds", attribute.value);
            let warning = Diagnostic::warning("duration_unit", message, span).with_help(format!("write `{unit}`"));
            let exact = self.places(attribute).exact();
            self.push(if exact { warning.with_fix(span, unit) } else { warning });
        }
        found
    }

    /// Reads a comma-separated list of workspace paths (decision workspace-relative-paths): relative, separated by `/`, with a
    /// final `/` for a folder. An empty text is an empty list.
    pub(super) fn paths(&mut self, from: &Attributes, key: Key<'_>) -> Option<Vec<Entry>> {
        self.checked_paths(from, key, part_of_workspace)
    }

    /// As [`Self::paths`], but accepts `./` for the whole workspace.
    pub(super) fn scope(&mut self, from: &Attributes, key: Key<'_>) -> Option<Vec<Entry>> {
        self.checked_paths(from, key, Ok)
    }

    /// Reads a comma-separated list of paths that `check` accepts. For any other path, `check` returns what is wrong with it.
    pub(super) fn checked_paths(
        &mut self,
        from: &Attributes,
        key: Key<'_>,
        check: fn(Entry) -> Result<Entry, &'static str>,
    ) -> Option<Vec<Entry>> {
        let attribute = from.get(key)?;
        let mut paths = Vec::new();
        if attribute.value.trim().is_empty() {
            return Some(paths);
        }
        let places = self.places(attribute);
        let mut offset = 0;
        for entry in attribute.value.split(',') {
            let path = entry.trim();
            let start = offset + (entry.len() - entry.trim_start().len());
            offset += entry.len() + 1;
            match entry_of(path).and_then(check) {
                Ok(entry) => paths.push(entry),
                Err(fault) => {
                    let shown = if path.is_empty() { String::new() } else { format!(": {path}") };
                    let message = format!("{key} contains {fault}{shown}");
                    let help = "write paths relative to the workspace, and folders with a final `/`: `src/,Cargo.toml`";
                    let span = places.span(start..start + path.len());
                    self.push(Diagnostic::error("path_list", message, span).with_help(help));
                }
            }
        }
        Some(paths)
    }

    /// Reads a comma-separated list of command prefixes. `*` alone means a shell. An empty text is an empty list.
    pub(super) fn commands(&mut self, from: &Attributes, key: Key<'_>) -> Option<Vec<String>> {
        let attribute = from.get(key)?;
        if attribute.value.trim().is_empty() {
            return Some(Vec::new());
        }
        let commands: Vec<String> = attribute.value.split(',').map(|entry| entry.trim().to_owned()).collect();
        if commands.iter().any(String::is_empty) {
            self.invalid(attribute, format!("`{key}` contains an empty entry"));
        }
        if commands.len() > 1 && commands.iter().any(|command| command == "*") {
            self.invalid(attribute, format!("`{key}` contains `*` and other entries; `*` must be the only entry"));
        }
        if key == key::VERIFICATION_ALLOWED_COMMANDS && commands.iter().any(|command| command == "*") {
            self.invalid(
                attribute,
                format!("`{key}` is `*`, expected the prefixes of the commands that a plan may contain"),
            );
        }
        Some(commands)
    }

    /// Reads all `limits.<name>` attributes.
    pub(super) fn limits(&mut self, from: &Attributes) -> LimitSettings {
        let mut limits = LimitSettings::default();
        for (key, attribute) in from {
            let Some(name) = key.limit() else { continue };
            let Ok(limit) = name.parse::<LimitName>() else {
                let error = Diagnostic::error("limit_known", format!("unknown limit `{name}`"), attribute.key_span);
                let known = || LimitName::ALL.iter().map(|limit| limit.as_str());
                let help = nearest(name, known()).map_or_else(
                    || format!("use one of {}", known().collect::<Vec<_>>().join(", ")),
                    |meant| format!("did you mean `limits.{meant}`?"),
                );
                self.push(error.with_help(help));
                continue;
            };
            match limit.unit().parse(&attribute.value) {
                Some(amount) => limits.set(limit, amount),
                None => {
                    let expected = expected_amount(limit.unit());
                    self.invalid(attribute, format!("`{key}` expects {expected}, found `{}`", attribute.value));
                }
            }
        }
        limits
    }

    /// Reads one of the listed values. Reports any other value and returns `None`.
    pub(super) fn choice<T: Copy>(&mut self, from: &Attributes, key: Key<'_>, choices: &[(&str, T)]) -> Option<T> {
        let attribute = from.get(key).filter(|attribute| !attribute.value.is_empty())?;
        let found = choices.iter().find(|(word, _)| *word == attribute.value);
        if found.is_none() {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            let corrected = nearest(&attribute.value, choices.iter().map(|(word, _)| *word));
            self.corrected(
                attribute,
                format!("`{key}` expects one of {}, found `{}`", words.join(", "), attribute.value),
                corrected,
            );
        }
        found.map(|(_, value)| *value)
    }
}

/// Returns true for digits that are all zero.
fn is_zero(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
}

/// Parses `<integer><unit>` with `ms`, `s`, `m`, `h` or `d` (spec §2.2).
pub fn duration(text: &str) -> Option<Duration> {
    let has_unit =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !text.ends_with(|last: char| last.is_ascii_digit());
    LimitUnit::Milliseconds.parse(text).filter(|_| has_unit).map(Duration::from_millis)
}

fn expected_amount(unit: LimitUnit) -> &'static str {
    match unit {
        LimitUnit::Milliseconds => "milliseconds or a duration such as `10s`",
        LimitUnit::Bytes => "bytes or a size such as `64MiB`",
        LimitUnit::Count => "a whole number",
    }
}
