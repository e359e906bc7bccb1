//! Whether the author's wants and the imports of a component agree.

use super::Inspection;
use crate::grants::FileTier;

/// A want that the component cannot use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusableWant {
    /// The field of the wants.
    pub want: &'static str,
    /// The interface that it needs and that the component does not import.
    pub import: &'static str,
}

/// An interface whose calls will all be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwantedImport {
    /// The interface that the component imports.
    pub import: &'static str,
    /// The want that it needs and that the manifest does not have.
    pub want: &'static str,
}

const FILES: &str = "glovebox:plugin/files";
const EXEC: &str = "glovebox:plugin/exec";
const LLM: &str = "glovebox:plugin/llm";
const WASI_FILES: &str = "wasi:filesystem/types";

impl Inspection {
    fn has_import(&self, interface: &str) -> bool {
        self.imports.iter().any(|import| import.name.split('@').next() == Some(interface))
    }

    /// Returns the first want that the component cannot use: an operator would be asked for more than the plugin needs.
    pub fn unusable_want(&self) -> Option<UnusableWant> {
        let wants = &self.manifest.as_ref()?.wants;
        let has = |interface| self.has_import(interface);
        let unusable = [
            ("model", LLM, wants.model && !has(LLM)),
            ("commands", EXEC, !wants.commands.is_empty() && !has(EXEC)),
            // Commands read what the plugin is granted, even if it reads no file itself.
            ("filesystem", FILES, wants.filesystem == FileTier::Workspace && !has(FILES) && !has(EXEC)),
            ("filesystem", WASI_FILES, wants.filesystem == FileTier::Posix && !has(WASI_FILES)),
        ];
        let found = unusable.into_iter().find(|(.., is_unusable)| *is_unusable);
        found.map(|(want, import, _)| UnusableWant { want, import })
    }

    /// Returns the imports that no want allows. The standard library of most languages imports `wasi:filesystem`, so that import needs
    /// no want.
    pub fn unwanted_imports(&self) -> Vec<UnwantedImport> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let wants = &manifest.wants;
        let unwanted = [
            (LLM, "model = true", !wants.model),
            (EXEC, "commands = [\"…\"]", wants.commands.is_empty()),
            (FILES, "filesystem = \"workspace\"", wants.filesystem == FileTier::None),
        ];
        let found = unwanted.into_iter().filter(|(import, _, is_unwanted)| *is_unwanted && self.has_import(import));
        found.map(|(import, want, _)| UnwantedImport { import, want }).collect()
    }
}
