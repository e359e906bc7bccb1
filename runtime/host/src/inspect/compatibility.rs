//! What a new version of a component takes away from the pipelines and hosts that use the version before.
//!
//! Only what both versions declare is compared: the world, the exports, the versions of the imported interfaces, and the attributes of
//! nodes. That a component may do more than before is not a difference here: operators are asked about it.

use super::Inspection;
use super::attribute_schema::{AttributeSchema, AttributeType};
use crate::interfaces::{interface, release};
use std::collections::BTreeMap;
use std::fmt;

/// One way in which a new version does not replace the version before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incompatibility {
    /// The component has another world.
    World {
        /// The world before.
        before: &'static str,
        /// The world now.
        now: &'static str,
    },
    /// An export is gone, or exists only in a later version.
    Export(String),
    /// An interface of the package of plugins is imported in a later version than any interface before. A host that ran the component
    /// before may refuse it.
    LaterImport(String),
    /// A declared attribute of nodes is gone.
    AttributeRemoved(String),
    /// An attribute allows fewer values, or values of another type.
    AttributeType {
        /// The name.
        name: String,
        /// What a value had to be.
        before: String,
        /// What a value must be now.
        now: String,
    },
    /// Every node must have an attribute that it could leave out before.
    AttributeRequired(String),
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World { before, now } => write!(f, "its world was `{before}`, and now is `{now}`"),
            Self::Export(name) => write!(f, "it no longer exports `{name}`"),
            Self::LaterImport(name) => write!(f, "it now needs a later host, which provides `{name}`"),
            Self::AttributeRemoved(name) => write!(f, "it no longer has the attribute `{name}`"),
            Self::AttributeType { name, before, now } => {
                write!(f, "its attribute `{name}` was {before}, and now must be {now}")
            }
            Self::AttributeRequired(name) => write!(f, "its attribute `{name}` is now required"),
        }
    }
}

/// Returns everything in which `now` does not replace `before`.
pub fn incompatibilities(before: &Inspection, now: &Inspection) -> Vec<Incompatibility> {
    let mut found = Vec::new();
    if before.world != now.world {
        found.push(Incompatibility::World { before: before.world, now: now.world });
    }
    let gone = before.exports.iter().filter(|export| !now.exports.contains(export));
    found.extend(gone.cloned().map(Incompatibility::Export));
    found.extend(later_imports(before, now).map(Incompatibility::LaterImport));
    let declared = |of: &Inspection| of.manifest.as_ref().and_then(|manifest| manifest.attributes.clone());
    attributes(&declared(before).unwrap_or_default(), &declared(now).unwrap_or_default(), &mut found);
    found
}

/// Returns the imports of the package of plugins whose version is later than that of every such import before.
fn later_imports<'i>(before: &Inspection, now: &'i Inspection) -> impl Iterator<Item = String> + use<'i> {
    let version = |name: &str| interface(name).and_then(|(_, version)| release(version));
    let known = { before.imports.iter().map(|import| import.name.as_str()) }
        .chain(before.exports.iter().map(String::as_str))
        .filter_map(version)
        .max();
    let is_later = move |name: &&str| known.is_some_and(|known| version(name) > Some(known));
    now.imports.iter().map(|import| import.name.as_str()).filter(is_later).map(str::to_owned)
}

fn attributes(
    before: &BTreeMap<String, AttributeSchema>,
    now: &BTreeMap<String, AttributeSchema>,
    found: &mut Vec<Incompatibility>,
) {
    for (name, old) in before {
        match now.get(name) {
            None => found.push(Incompatibility::AttributeRemoved(name.clone())),
            Some(new) if !allows(&new.value, &old.value) => found.push(Incompatibility::AttributeType {
                name: name.clone(),
                before: old.expected(),
                now: new.expected(),
            }),
            Some(_) => {}
        }
    }
    let was_required = |name: &str| before.get(name).is_some_and(|old| old.required);
    let required = now.iter().filter(|(name, new)| new.required && !was_required(name));
    found.extend(required.map(|(name, _)| Incompatibility::AttributeRequired(name.clone())));
}

/// Returns true if the new type allows every value that the old one allowed.
fn allows(new: &AttributeType, old: &AttributeType) -> bool {
    use AttributeType::{Boolean, Duration, Enum, Integer, Number, Path, String};
    match (new, old) {
        (String, _) | (Number, Number | Integer { .. }) | (Boolean, Boolean) | (Duration, Duration) | (Path, Path) => {
            true
        }
        (Integer { min, max }, Integer { min: old_min, max: old_max }) => {
            min.is_none_or(|min| old_min.is_some_and(|old| min <= old))
                && max.is_none_or(|max| old_max.is_some_and(|old| old <= max))
        }
        (Enum { values }, Enum { values: old }) => old.iter().all(|value| values.contains(value)),
        (Enum { values }, Boolean) => ["true", "false"].iter().all(|value| values.iter().any(|own| own == value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{Import, Manifest, StandardSections};
    use crate::interfaces::state_of;
    use glovebox_record::Digest;

    fn component(world: &'static str, imports: &[&str], exports: &[&str], attributes: &str) -> Inspection {
        let mut manifest = Manifest::new("acme.todo", "1.0.0", Default::default());
        manifest.attributes = Some(toml::from_str(attributes).unwrap());
        let import = |name: &&str| Import { name: (*name).to_owned(), state: state_of(name) };
        Inspection {
            digest: Digest::hash(b""),
            bytes: 0,
            world,
            imports: imports.iter().map(import).collect(),
            exports: exports.iter().map(|name| (*name).to_owned()).collect(),
            core_instances: 0,
            manifest: Some(manifest),
            standard: StandardSections::default(),
            custom_sections: Vec::new(),
        }
    }

    const STAGE: &str = "glovebox:plugin/stage@0.1.0";
    const FILES: &str = "glovebox:plugin/files@0.1.0";

    fn check(before: &Inspection, now: &Inspection, expected: &[&str]) {
        let found: Vec<String> = incompatibilities(before, now).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_grows_replaces_the_version_before() {
        let before = component("handler", &[FILES], &[STAGE], "mode = { type = 'enum', values = ['a'] }");
        check(&before, &before, &[]);
        let now = component(
            "handler",
            &[FILES, "glovebox:plugin/control@0.1.0", "wasi:cli/stdout@0.2.9"],
            &[STAGE, "other"],
            "mode = { type = 'enum', values = ['a', 'b'] }\nmost = { type = 'integer' }",
        );
        check(&before, &now, &[]);
    }

    #[test]
    fn what_is_taken_away_is_named() {
        let before = component("handler", &[FILES], &[STAGE, "more"], "");
        let now = component("agent", &[FILES, "glovebox:plugin/llm@0.2.0"], &[STAGE], "");
        check(
            &before,
            &now,
            &[
                "its world was `handler`, and now is `agent`",
                "it no longer exports `more`",
                "it now needs a later host, which provides `glovebox:plugin/llm@0.2.0`",
            ],
        );
        check(&now, &component("agent", &[FILES], &[STAGE], ""), &[]);
    }

    #[test]
    fn attributes_keep_their_values() {
        let with = |attributes: &str| component("handler", &[], &[STAGE], attributes);
        let attribute = |before: &str, now: &str, expected: &[&str]| {
            check(&with(&format!("a = {before}")), &with(&format!("a = {now}")), expected);
        };
        check(&with("a = { type = 'string' }"), &with(""), &["it no longer has the attribute `a`"]);
        check(&with(""), &with("a = { type = 'path', required = true }"), &["its attribute `a` is now required"]);
        attribute("{ type = 'path', required = true }", "{ type = 'string', required = true }", &[]);
        attribute("{ type = 'integer', min = 1 }", "{ type = 'integer' }", &[]);
        attribute("{ type = 'integer', max = 9 }", "{ type = 'number' }", &[]);
        attribute("{ type = 'boolean' }", "{ type = 'enum', values = ['true', 'false', 'some'] }", &[]);
        attribute(
            "{ type = 'integer', min = 1, max = 9 }",
            "{ type = 'integer', min = 1, max = 8 }",
            &["its attribute `a` was a whole number from 1 to 9, and now must be a whole number from 1 to 8"],
        );
        attribute(
            "{ type = 'string' }",
            "{ type = 'boolean', required = true }",
            &["its attribute `a` was a text, and now must be `true` or `false`", "its attribute `a` is now required"],
        );
        attribute(
            "{ type = 'enum', values = ['a', 'b'] }",
            "{ type = 'enum', values = ['a'] }",
            &["its attribute `a` was `a` or `b`, and now must be `a`"],
        );
    }
}
