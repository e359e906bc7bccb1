//! The custom sections of a component: the standard ones that describe it, and the names and sizes of all others.
//!
//! The standard sections have the formats of `wasm-metadata`. Only those of the component itself count, not those of the modules
//! and components in it. Their texts come from a stranger: lengths are bounded here, and characters are escaped where they are
//! printed. A section twice is refused, because two programs could read two different ones.

use super::InspectError;
use super::manifest::{MANIFEST_SECTION, Manifest, TEXT_BYTES_MAX};
use serde::Serialize;
use std::collections::BTreeMap;
use wasmparser::{
    BinaryReader, ComponentName, ComponentNameSectionReader, CustomSectionReader, ProducersSectionReader,
};

/// Names of the standard sections with one text each.
const TEXT_SECTIONS: [&str; 7] = ["version", "description", "authors", "licenses", "source", "homepage", "revision"];
/// Name of the standard section with the component's name.
pub(super) const NAME_SECTION: &str = "component-name";
/// Name of the standard section with the tools that made the component.
pub(super) const PRODUCERS_SECTION: &str = "producers";
/// Maximum number of tools that are read from [`PRODUCERS_SECTION`].
const PRODUCERS_MAX: usize = 64;
/// Maximum number of different names of custom sections.
const NAMES_MAX: usize = 64;
/// Maximum length of the name of a custom section, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Maximum length of all other custom sections of the component itself, in bytes. Its modules may have longer ones, such as
/// debug sections.
const OTHER_BYTES_MAX: usize = 1 << 20;

/// A tool that made the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Producer {
    /// `language`, `processed-by` or `sdk`.
    pub field: String,
    /// Name of the tool.
    pub name: String,
    /// Version of the tool. Empty if it is not given.
    pub version: String,
}

/// Custom sections of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CustomSections {
    /// Name of the sections.
    pub name: String,
    /// Number of sections, including those of contained modules and components.
    pub count: u64,
    /// Length of all of them, in bytes.
    pub bytes: u64,
}

/// What the standard sections of a component say about it. The texts may have deceptive characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StandardSections {
    /// Name of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The texts, by the name of their section: `version`, `description`, `authors`, `licenses`, `source`, `homepage`,
    /// `revision`.
    #[serde(flatten)]
    pub texts: BTreeMap<&'static str, String>,
    /// The tools that made the component.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub producers: Vec<Producer>,
}

/// Reads the custom sections of a component one by one.
#[derive(Default)]
pub(super) struct SectionReader {
    standard: StandardSections,
    has_names: bool,
    has_producers: bool,
    others: BTreeMap<String, (u64, u64)>,
    other_bytes: usize,
}

impl SectionReader {
    /// Adds a section. `is_own` is true for a section of the component itself.
    pub(super) fn add(&mut self, section: &CustomSectionReader<'_>, is_own: bool) -> Result<(), InspectError> {
        let (name, data) = (section.name(), section.data());
        if name == MANIFEST_SECTION {
            return Ok(());
        }
        if is_own && self.add_standard(name, section)? {
            return Ok(());
        }
        if is_own {
            self.other_bytes = self.other_bytes.saturating_add(data.len());
            if self.other_bytes > OTHER_BYTES_MAX {
                return Err(InspectError::SectionsTooLong { limit: OTHER_BYTES_MAX });
            }
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(InspectError::SectionName { bytes: name.len(), limit: NAME_BYTES_MAX });
        }
        let known = self.others.len();
        let (count, bytes) = self.others.entry(name.to_owned()).or_default();
        (*count, *bytes) = (*count + 1, *bytes + data.len() as u64);
        match self.others.len() > known && known == NAMES_MAX {
            true => Err(InspectError::TooManySections { limit: NAMES_MAX }),
            false => Ok(()),
        }
    }

    /// Reads a standard section. Returns false for any other section.
    fn add_standard(&mut self, name: &str, section: &CustomSectionReader<'_>) -> Result<bool, InspectError> {
        let reader = || BinaryReader::new(section.data(), section.data_offset());
        let unreadable = |name: &'static str| InspectError::SectionText { name, limit: TEXT_BYTES_MAX };
        if name == NAME_SECTION {
            if std::mem::replace(&mut self.has_names, true) {
                return Err(InspectError::TwoSections { name: NAME_SECTION });
            }
            // Names of items in the component are for debuggers. An error after the component's own name loses nothing.
            let mut names = ComponentNameSectionReader::new(reader()).map_while(Result::ok);
            let own = names.find_map(|name| match name {
                ComponentName::Component { name, .. } => Some(name),
                _ => None,
            });
            if own.is_some_and(|own| own.len() > TEXT_BYTES_MAX) {
                return Err(unreadable(NAME_SECTION));
            }
            self.standard.name = own.map(str::to_owned);
            return Ok(true);
        }
        if name == PRODUCERS_SECTION {
            if std::mem::replace(&mut self.has_producers, true) {
                return Err(InspectError::TwoSections { name: PRODUCERS_SECTION });
            }
            self.standard.producers = producers(reader()).ok_or_else(|| unreadable(PRODUCERS_SECTION))?;
            return Ok(true);
        }
        let Some(name) = TEXT_SECTIONS.into_iter().find(|known| *known == name) else { return Ok(false) };
        let text = std::str::from_utf8(section.data()).ok().filter(|text| text.len() <= TEXT_BYTES_MAX);
        let text = text.ok_or_else(|| unreadable(name))?.to_owned();
        match self.standard.texts.insert(name, text) {
            Some(_) => Err(InspectError::TwoSections { name }),
            None => Ok(true),
        }
    }

    /// Returns what was read, after comparing it with the manifest.
    pub(super) fn finish(
        self,
        manifest: Option<&Manifest>,
    ) -> Result<(StandardSections, Vec<CustomSections>), InspectError> {
        if let Some(manifest) = manifest {
            compare(manifest, &self.standard)?;
        }
        let row = |(name, (count, bytes))| CustomSections { name, count, bytes };
        Ok((self.standard, self.others.into_iter().map(row).collect()))
    }
}

/// Compares the manifest with the standard sections. Programs that know only one of them must not see another plugin.
fn compare(manifest: &Manifest, standard: &StandardSections) -> Result<(), InspectError> {
    let own = [("name", manifest.name.as_str())].into_iter().chain(manifest.standard_texts());
    for (field, own) in own {
        let other = if field == "name" { standard.name.as_ref() } else { standard.texts.get(field) };
        if let Some(other) = other.filter(|other| *other != own) {
            return Err(InspectError::Disagreement { field, manifest: own.to_owned(), section: other.clone() });
        }
    }
    Ok(())
}

/// Reads the tools of a section. `None` if there are too many or if a text is too long.
fn producers(reader: BinaryReader<'_>) -> Option<Vec<Producer>> {
    let mut found = Vec::new();
    for field in ProducersSectionReader::new(reader).ok()? {
        let field = field.ok()?;
        for value in field.values {
            let value = value.ok()?;
            let texts = [field.name, value.name, value.version];
            if found.len() == PRODUCERS_MAX || texts.iter().any(|text| text.len() > TEXT_BYTES_MAX) {
                return None;
            }
            let [field, name, version] = texts.map(str::to_owned);
            found.push(Producer { field, name, version });
        }
    }
    Some(found)
}
