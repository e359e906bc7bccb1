//! Checks of the manifest: it is there, and its wants agree with the imports. The component is not called.

use crate::bench::Bench;
use crate::error::TestError;
use crate::report::Finding;
use glovebox_host::grants::{FileTier, Grants};
use glovebox_host::inspect::Inspection;

/// Something that an author can want, and the interfaces that use it.
struct Want {
    name: &'static str,
    interfaces: &'static [&'static str],
    is_wanted: fn(&Grants) -> bool,
}

const WANTS: [Want; 3] = [
    Want { name: "commands", interfaces: &["glovebox:plugin/exec"], is_wanted: |wants| !wants.commands.is_empty() },
    Want { name: "model = true", interfaces: &["glovebox:plugin/llm"], is_wanted: |wants| wants.model },
    Want {
        name: "filesystem",
        // Commands read what the plugin is granted, even if it reads no file itself.
        interfaces: &["glovebox:plugin/files", "glovebox:plugin/exec", "wasi:filesystem/types"],
        is_wanted: |wants| wants.filesystem != FileTier::None,
    },
];

/// Interfaces that need a want. The standard library of most languages imports `wasi:filesystem`, so that import needs none.
const NEEDING: [(&str, &str); 3] = [
    ("glovebox:plugin/exec", "commands"),
    ("glovebox:plugin/llm", "model = true"),
    ("glovebox:plugin/files", "filesystem"),
];

fn imports(inspection: &Inspection, interface: &str) -> bool {
    inspection.imports.iter().any(|import| import.name.split('@').next() == Some(interface))
}

pub(super) fn present(bench: &Bench<'_>) -> Result<Finding, TestError> {
    Ok(match &bench.inspection.manifest {
        Some(_) => Finding::passed(),
        None => {
            Finding::Failed("there is no section `glovebox:manifest`, so it wants nothing and gets nothing".to_owned())
        }
    })
}

fn without_manifest() -> Finding {
    Finding::NotApplicable("it has no manifest".to_owned())
}

pub(super) fn usable(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let Some(manifest) = &bench.inspection.manifest else { return Ok(without_manifest()) };
    let wants = &manifest.wants;
    let has = |interface: &str| imports(bench.inspection, interface);
    let useless = WANTS.iter().find(|want| (want.is_wanted)(wants) && !want.interfaces.iter().any(|name| has(name)));
    let problem = match useless {
        Some(want) => Some(format!("it wants `{}`, but imports no {}", want.name, names(want.interfaces))),
        None if wants.filesystem == FileTier::Posix && !has("wasi:filesystem/types") => Some(
            "it wants `filesystem = \"posix\"`, but imports no `wasi:filesystem/types`: `workspace` is enough"
                .to_owned(),
        ),
        None => None,
    };
    Ok(Finding::of(problem))
}

pub(super) fn complete(bench: &Bench<'_>) -> Result<Finding, TestError> {
    let Some(manifest) = &bench.inspection.manifest else { return Ok(without_manifest()) };
    let is_wanted = |name: &str| WANTS.iter().any(|want| want.name == name && (want.is_wanted)(&manifest.wants));
    let missing = NEEDING.iter().find(|(interface, want)| imports(bench.inspection, interface) && !is_wanted(want));
    Ok(Finding::of(missing.map(|(interface, want)| {
        format!("it imports `{interface}`, but does not want `{want}`: every call of that interface is refused")
    })))
}

fn names(interfaces: &[&str]) -> String {
    interfaces.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and no ")
}
