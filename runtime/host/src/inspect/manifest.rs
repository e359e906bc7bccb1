//! What the author of a component says about it, in the custom section `glovebox:manifest`.
//!
//! The text comes from a stranger and is shown to people before anything is trusted, so every field is bounded and free of
//! characters that could deceive a reader. Unknown fields are refused.

use super::attribute_schema::{ATTRIBUTES_MAX, AttributeSchema, check_name};
use crate::grants::Wants;
use glovebox_names::visible;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the custom section with a plugin's manifest.
pub const MANIFEST_SECTION: &str = "glovebox:manifest";
/// Maximum number of entries of each list of wants. An operator reads all of them.
const WANTS_MAX: usize = 256;
/// Maximum length of a manifest that is read, in bytes.
pub(super) const MANIFEST_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a text in one line, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 10;
/// Maximum length of the documentation, in bytes.
const DOCS_BYTES_MAX: usize = 16 << 10;
/// Maximum length of a plugin's name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// What the author of a component says about it. The SDK or `plugin build` writes it into the custom section
/// [`MANIFEST_SECTION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ManifestText")]
pub struct Manifest {
    /// Handler type, such as `acme.review`: 1 to 128 letters, digits, `.`, `_`, `-`.
    pub name: String,
    /// Version of the component.
    pub version: String,
    /// Description in one line, without deceptive characters.
    pub description: String,
    /// Licence, as an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    /// Address of the source code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Revision of the source code, such as a commit id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The authors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authors: Option<String>,
    /// Address of a page about the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
    /// Documentation in Markdown, of several lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
    /// Permissions that the component asks for. They are intersected with the operator's grants.
    pub wants: Wants,
    /// The node attributes that the plugin reads. `None` if the author declares none; then nodes may have any attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, AttributeSchema>>,
}

impl Manifest {
    /// Returns the value of each declared attribute that has a default and that a stage does not have.
    pub fn defaults(&self, has: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().flatten().filter_map(move |(name, schema)| {
            let default = schema.default.as_deref()?;
            (!has(name)).then_some((name.as_str(), default))
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestText {
    name: String,
    version: String,
    #[serde(default)]
    description: String,
    licenses: Option<String>,
    source: Option<String>,
    revision: Option<String>,
    authors: Option<String>,
    homepage: Option<String>,
    docs: Option<String>,
    #[serde(default)]
    wants: Wants,
    attributes: Option<BTreeMap<String, AttributeSchema>>,
}

impl TryFrom<ManifestText> for Manifest {
    type Error = String;

    fn try_from(written: ManifestText) -> Result<Self, String> {
        let ManifestText { name, version, description, licenses, source, .. } = written;
        let ManifestText { revision, authors, homepage, docs, wants, attributes, .. } = written;
        let manifest = Manifest {
            name,
            version,
            description,
            licenses,
            source,
            revision,
            authors,
            homepage,
            docs,
            wants,
            attributes,
        };
        manifest.validated()
    }
}

impl Manifest {
    /// Creates a manifest with nothing but a name, a version and what the plugin asks for.
    pub fn new(name: &str, version: &str, wants: Wants) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            description: String::new(),
            licenses: None,
            source: None,
            revision: None,
            authors: None,
            homepage: None,
            docs: None,
            wants,
            attributes: None,
        }
    }

    /// Checks the texts of a manifest. `plugin inspect` prints them for components that are not trusted yet.
    ///
    /// # Errors
    /// The first text that is too long, could deceive a reader, or has another form than its field.
    pub fn validated(self) -> Result<Self, String> {
        let name = &self.name;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.chars().all(allowed) {
            let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
            let shown = visible::line(&shown);
            return Err(format!(
                "`name` is `{shown}`, expected 1 to {NAME_BYTES_MAX} letters, digits, `.`, `_` or `-`"
            ));
        }
        for (field, text) in self.standard_texts() {
            check_text(field, text, TEXT_BYTES_MAX, |_| false)?;
        }
        for (field, address) in [("source", &self.source), ("homepage", &self.homepage)] {
            if address.as_ref().is_some_and(|address| !is_address(address)) {
                return Err(format!("`{field}` is not an address, expected one such as `https://example.com/plugin`"));
            }
        }
        if self.licenses.as_ref().is_some_and(|text| !is_license_expression(text)) {
            return Err("`licenses` is not an SPDX expression, expected one such as `Apache-2.0 OR MIT`".to_owned());
        }
        if let Some(docs) = &self.docs {
            check_text("docs", docs, DOCS_BYTES_MAX, |c| matches!(c, '\n' | '\t'))?;
        }
        let lists = [
            ("read", self.wants.read.len()),
            ("write", self.wants.write.len()),
            ("commands", self.wants.commands.len()),
        ];
        if let Some((field, found)) = lists.into_iter().find(|(_, found)| *found > WANTS_MAX) {
            return Err(format!("`wants.{field}` has {found} entries, expected at most {WANTS_MAX}"));
        }
        for command in &self.wants.commands {
            check_text("wants.commands", command, TEXT_BYTES_MAX, |_| false)?;
        }
        check_attributes(self.attributes.iter().flat_map(BTreeMap::keys))?;
        Ok(self)
    }

    /// Returns the texts that are also written as standard sections, with the names of these sections.
    pub(super) fn standard_texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let optional = [
            ("licenses", &self.licenses),
            ("source", &self.source),
            ("revision", &self.revision),
            ("authors", &self.authors),
            ("homepage", &self.homepage),
        ];
        let description = Some(self.description.as_str()).filter(|text| !text.is_empty());
        let texts = [("version", Some(self.version.as_str())), ("description", description)];
        let optional = optional.into_iter().map(|(name, text)| (name, text.as_deref()));
        texts.into_iter().chain(optional).filter_map(|(name, text)| Some((name, text?)))
    }
}

fn check_attributes<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut count = 0;
    for name in names {
        count += 1;
        check_name(name)?;
    }
    match count > ATTRIBUTES_MAX {
        true => Err(format!("`attributes` has {count} entries, expected at most {ATTRIBUTES_MAX}")),
        false => Ok(()),
    }
}

fn check_text(field: &str, text: &str, bytes_max: usize, may_have: impl Fn(char) -> bool) -> Result<(), String> {
    if text.chars().any(|c| visible::is_deceptive(c) && !may_have(c)) {
        return Err(format!("`{field}` has characters that could deceive a reader"));
    }
    if text.len() > bytes_max {
        return Err(format!("`{field}` has {} bytes, expected at most {bytes_max}", text.len()));
    }
    Ok(())
}

/// Returns true for an address of the web without a user name, which could make another host look like the real one.
fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@') && rest.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

/// Returns true if a text has the form of an SPDX expression: licences joined by `AND`, `OR` and `WITH`, with parentheses. The names
/// of licences are not looked up.
fn is_license_expression(text: &str) -> bool {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let (mut depth, mut expects_name) = (0_u32, true);
    for word in spaced.split_ascii_whitespace() {
        match word {
            "(" if expects_name => depth += 1,
            ")" if !expects_name && depth > 0 => depth -= 1,
            "AND" | "OR" | "WITH" if !expects_name => expects_name = true,
            "(" | ")" | "AND" | "OR" | "WITH" => return false,
            name if expects_name => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | ':');
                if !name.chars().all(allowed) {
                    return false;
                }
                expects_name = false;
            }
            _ => return false,
        }
    }
    depth == 0 && !expects_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_have_the_form_of_an_expression() {
        for good in
            ["MIT", "Apache-2.0 OR MIT", "(MIT AND BSD-3-Clause) OR GPL-2.0+", "GPL-2.0 WITH Classpath-exception-2.0"]
        {
            assert!(is_license_expression(good), "{good}");
        }
        for bad in ["", "MIT MIT", "OR MIT", "MIT OR", "(MIT", "MIT)", "my licence!", "()"] {
            assert!(!is_license_expression(bad), "{bad}");
        }
    }

    #[test]
    fn addresses_hide_no_host() {
        for good in ["https://example.com", "http://example.com/a?b#c@d"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "example.com", "https://", "file:///etc/passwd", "https://good.com@bad.com/", "https://a b"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
