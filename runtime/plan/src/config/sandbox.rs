//! The `[sandbox]` table: the minimum confinement that a run accepts, and what commands can reach in addition to their
//! stage's scope.
//!
//! The default denies: no network, no folders of the machine other than the system's programs, no writes that are not
//! committed, and no run below the highest tier. This module does not test what the machine can enforce.

use super::Toolchain;
use super::field::{Field, Fields, Message};
use glovebox_jail::jail::HOME_INSIDE;
use glovebox_pipeline::nearest::nearest;
use glovebox_record::network::{HostRule, HostRules};
use glovebox_record::scope::Entry;
use glovebox_record::{Network, Tier};
use glovebox_workspace::protect::Protected;
use std::collections::BTreeSet;
use std::path::Path;

/// The `[sandbox]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSetting {
    /// The minimum tier that a run with commands accepts. The default is `full`.
    pub require: Tier,
    /// The network of commands. The default is none.
    pub network: Network,
    /// Absolute folders of the machine that commands may read, in file order.
    pub read: Vec<String>,
    /// Subtrees of the workspace that may be written and are discarded after the stage.
    pub scratch: Vec<Entry>,
    /// Subtrees of the workspace that are kept per run and trust domain, and never committed.
    pub cache: Vec<Entry>,
    /// Git-ignored folders whose files are kept for later runs. `None` for the build folders of the toolchains. With an
    /// empty list, no run reuses caches of an earlier run.
    pub reuse: Option<Vec<Entry>>,
}

impl Default for SandboxSetting {
    /// Denies every tier but the highest, the network, folders of the machine, and writes that are not committed.
    fn default() -> Self {
        Self {
            require: Tier::Full,
            network: Network::None,
            read: Vec::new(),
            scratch: Vec::new(),
            cache: Vec::new(),
            reuse: None,
        }
    }
}

/// Folders of the machine that `read` may not name, nor any folder below them: the kernel's own files, devices, sockets
/// of services. Of `/etc`, a jail shows only a list of public files.
const READ_REFUSED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/etc"];
/// Folders that `read` may not name, because the jail has its own folder at or below that path. Folders below them may
/// be named, unlike those below [`READ_REFUSED`].
const READ_REFUSED_ALONE: [&str; 4] = ["/", "/tmp", "/home", HOME_INSIDE];

pub(super) fn parse(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> SandboxSetting {
    let mut setting = SandboxSetting::default();
    for field in fields.table(table) {
        match field.name {
            "require" => setting.require = required(fields, &field),
            "network" => setting.network = network(fields, &field),
            "read" => setting.read = folders(fields, &field),
            "scratch" => setting.scratch = subtrees(fields, &field),
            "cache" => setting.cache = subtrees(fields, &field),
            "reuse" => setting.reuse = Some(subtrees(fields, &field)),
            _ => fields.unknown(&field, &["require", "network", "read", "scratch", "cache", "reuse"]),
        }
    }
    setting
}

impl SandboxSetting {
    /// Returns the git-ignored folders whose files are kept for later runs. `None` if no run reuses caches.
    pub fn reused(&self, toolchains: &[Toolchain]) -> Option<Vec<Entry>> {
        match &self.reuse {
            Some(folders) if folders.is_empty() => None,
            Some(folders) => Some(folders.clone()),
            None => {
                let folders: BTreeSet<&str> = toolchains.iter().flat_map(|one| one.build_folders()).copied().collect();
                Some(folders.into_iter().filter_map(|folder| Entry::parse(folder).ok()).collect())
            }
        }
    }
}

fn required(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Tier {
    let Some(text) = fields.text(field) else { return Tier::Full };
    if let Some(tier) = Tier::CONFINING.into_iter().find(|tier| tier.as_str() == text) {
        return tier;
    }
    let message = format!("`{field}` is `{text}`: `full`, `bwrap` or `landlock` is expected");
    let help = match text.as_str() {
        "none" | "unconfined" => {
            Some("commands run without a sandbox only with `glovebox run --dangerously-no-sandbox`".to_owned())
        }
        _ => meant(&text, Tier::CONFINING.map(Tier::as_str)),
    };
    fields.value_problem(field.at_value(), Message::from(message).with_help(help));
    Tier::Full
}

pub(super) fn network(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Network {
    if field.value.as_table().is_some() {
        return proxy(fields, field);
    }
    let expected = "`\"none\"`, `\"full\"` or `{ proxy = [\"api.example.com\"] }` is expected";
    let Some(text) = field.value.as_str() else {
        let found = field.value.type_str();
        fields.value_problem(field.at_value(), format!("`{field}` is of type {found}: {expected}"));
        return Network::None;
    };
    match text {
        "none" => return Network::None,
        "full" => return Network::Full,
        _ => {}
    }
    let help = match text {
        "proxy" => Some("name the domains: `network = { proxy = [\"api.example.com\"] }`".to_owned()),
        _ => meant(text, ["none", "full"]),
    };
    let message = Message::from(format!("`{field}` is `{text}`: {expected}"));
    fields.value_problem(field.at_value(), message.with_help(help));
    Network::None
}

fn proxy(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Network {
    let mut hosts: Option<HostRules> = None;
    for child in fields.table(field) {
        if child.name == "proxy" {
            hosts = Some(host_rules(fields, &child));
        } else {
            fields.unknown(&child, &["proxy"]);
            hosts.get_or_insert_default();
        }
    }
    if hosts.is_none() {
        let message = format!("`{field}` is an empty table: `{{ proxy = [\"api.example.com\"] }}` is expected");
        fields.value_problem(field.at_value(), message);
    }
    Network::Proxy(hosts.unwrap_or_default())
}

fn host_rules(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> HostRules {
    let texts = fields.texts(field);
    if texts.is_empty() && field.value.as_array().is_some() {
        let help = "to allow no host, write `network = \"none\"`".to_owned();
        let message = Message::from(format!("`{field}` names no domain"));
        fields.value_problem(field.at_value(), message.with_help(Some(help)));
    }
    let mut named: Vec<HostRule> = Vec::new();
    for (text, place) in texts {
        match text.parse::<HostRule>() {
            Ok(rule) if named.contains(&rule) => {}
            Ok(rule) => named.push(rule),
            Err(error) => {
                let lower = text.to_ascii_lowercase();
                let help = (lower != text && lower.parse::<HostRule>().is_ok()).then(|| format!("write `{lower}`"));
                fields.value_problem(place, Message::from(format!("`{field}`: {error}")).with_help(help));
            }
        }
    }
    HostRules::new(named).unwrap_or_else(|error| {
        fields.value_problem(field.at_value(), format!("`{field}`: {error}"));
        HostRules::default()
    })
}

pub(super) fn folders(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (text, place) in fields.texts(field) {
        let folder = if text == "/" { "/" } else { text.strip_suffix('/').unwrap_or(&text) };
        let named = folder.strip_prefix('/').unwrap_or_default();
        let is_plain = !text.contains('\0')
            && folder.starts_with('/')
            && (folder == "/" || named.split('/').all(|segment| !matches!(segment, "" | "." | "..")));
        let refused = READ_REFUSED.into_iter().find(|root| Path::new(folder).starts_with(root));
        let refused = refused.or_else(|| READ_REFUSED_ALONE.into_iter().find(|root| folder == *root));
        if !is_plain {
            let message = format!("`{field}` contains `{text}`: expected an absolute path without `.` and `..`");
            fields.value_problem(place, message);
        } else if let Some(root) = refused {
            let message = format!("`{field}` contains `{text}`: `{root}` cannot be made visible to commands");
            let help = "name the folders that are needed".to_owned();
            fields.value_problem(place, Message::from(message).with_help(Some(help)));
        } else if !found.iter().any(|known| known == folder) {
            found.push(folder.to_owned());
        }
    }
    found
}

/// Reads subtrees of the workspace that do not overlap protected paths.
pub(super) fn subtrees(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Vec<Entry> {
    let mut found = Vec::new();
    for (text, place) in fields.texts(field) {
        // Files in such a folder are never committed. So the folder must not be the whole workspace, and must not
        // overlap a protected path.
        match Entry::parse(&text).map_err(|problem| (problem.to_string(), None)).and_then(cache_folder) {
            Ok(entry) if found.contains(&entry) => {}
            Ok(entry) => found.push(entry),
            Err((fault, help)) => {
                let message = Message::from(format!("`{field}` contains `{text}`: {fault}"));
                fields.value_problem(place, message.with_help(help));
            }
        }
    }
    found
}

/// Checks a folder that is used as scratch or cache.
pub fn cache_folder(entry: Entry) -> Result<Entry, (String, Option<String>)> {
    if entry == Entry::whole() {
        return Err(("the whole workspace is not allowed here".to_owned(), None));
    }
    if !entry.is_subtree() {
        return Err(("a folder is expected".to_owned(), Some(format!("write `{entry}/`"))));
    }
    match Protected::default().overlap(&entry.to_string()) {
        Some(reason) => Err((reason, None)),
        None => Ok(entry),
    }
}

fn meant<const N: usize>(text: &str, known: [&'static str; N]) -> Option<String> {
    nearest(text, known).map(|nearest| format!("did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests;
