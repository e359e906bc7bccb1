//! The `[mcp.NAME]` tables: programs that provide tools to agents, and what each of them gets.
//!
//! A server gets only what its table grants: by default no file of the workspace, no network and no variable. Without `tools`
//! none of its tools may be called. The file never contains the value of a variable, only the name of a variable in the
//! environment of `glovebox`.

use super::exec::is_env_name_allowed;
use super::field::{Field, Fields, Message};
use super::models::timeout;
use super::sandbox::network;
use glovebox_host::tools::AllowedTools;
use glovebox_record::Network;
use glovebox_record::scope::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use toml::de::DeValue;

/// Default of the maximum duration of a start or a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a server's name, in bytes. Providers limit the length of a tool's full name, which consists of a
/// prefix, the server's name and the tool's name.
const NAME_BYTES_MAX: usize = 24;
const FIELDS: [&str; 6] = ["command", "env", "network", "read", "timeout", "tools"];

/// One `[mcp.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerEntry {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of the server. Each value is the name of the variable of the `glovebox` process from which it is copied.
    pub env: BTreeMap<String, String>,
    /// The part of the workspace that the server sees, within the read scope of the stage.
    pub read: Vec<Entry>,
    /// The network access of the server.
    pub network: Network,
    /// The tools of the server that may be called. `None` for all.
    pub tools: Option<BTreeSet<String>>,
    /// Maximum duration of the start of the server, and of a call.
    pub timeout: Duration,
}

impl ServerEntry {
    /// Returns the tools that the operator allows.
    pub fn allowed(&self) -> AllowedTools {
        self.tools.as_ref().map_or(AllowedTools::All, |names| AllowedTools::Named(names.clone()))
    }
}

/// Reads all tables.
pub(super) fn parse(fields: &mut Fields<'_>, tables: &Field<'_, '_>) -> BTreeMap<String, Arc<ServerEntry>> {
    let mut found = BTreeMap::new();
    for table in fields.table(tables) {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=NAME_BYTES_MAX).contains(&table.name.len()) || !table.name.bytes().all(is_plain) {
            let message = format!("`{table}`: 1 to {NAME_BYTES_MAX} of `a-z`, `0-9` and `-` are expected as a name");
            fields.value_problem(table.at_key(), message);
        }
        if let Some(entry) = entry(fields, &table) {
            found.insert(table.name.to_owned(), Arc::new(entry));
        }
    }
    found
}

fn entry(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> Option<ServerEntry> {
    let mut entry = ServerEntry {
        command: Vec::new(),
        env: BTreeMap::new(),
        read: Vec::new(),
        network: Network::None,
        tools: Some(BTreeSet::new()),
        timeout: TIMEOUT,
    };
    for field in fields.table(table) {
        match field.name {
            "command" => entry.command = fields.texts(&field).into_iter().map(|(word, _)| word).collect(),
            "env" => entry.env = env(fields, &field),
            "network" => entry.network = network(fields, &field),
            "read" => {
                let paths = fields.scope_paths(&field);
                entry.read = paths.iter().filter_map(|(text, _)| Entry::parse(text).ok()).collect();
            }
            "timeout" => entry.timeout = timeout(fields, &field).unwrap_or(TIMEOUT),
            "tools" => entry.tools = tools(fields, &field),
            "write" => {
                let message = format!("`{field}` cannot be granted: what a tool server writes is not committed");
                let help = "remove `write`; the server can write to `/tmp`, which ends with the attempt".to_owned();
                fields.value_problem(field.at_key(), Message::from(message).with_help(Some(help)));
            }
            _ => fields.unknown(&field, &FIELDS),
        }
    }
    if entry.command.first().is_none_or(String::is_empty) || entry.command.iter().any(|word| word.contains('\0')) {
        let message =
            format!("`{table}` has no `command`, expected a list such as `[\"github-mcp-server\", \"stdio\"]`");
        fields.value_problem(table.at_key(), message);
        return None;
    }
    Some(entry)
}

fn env(fields: &mut Fields<'_>, table: &Field<'_, '_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let is_name = |text: &str| {
        let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        starts_well && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    for field in fields.table(table) {
        let source = field.value.as_table().filter(|table| table.len() == 1).and_then(|table| table.get("env"));
        let source = source.and_then(|source| source.get_ref().as_str()).filter(|name| is_name(name));
        let Some(source) = source else {
            let message = format!("`{field}`: `{{ env = \"NAME\" }}` is expected, a value is never written here");
            fields.value_problem(field.at_value(), message);
            continue;
        };
        if !is_name(field.name) || !is_env_name_allowed(field.name) {
            let message = format!(
                "`{field}` is refused: it is not a variable name, or the variable controls which code a program loads"
            );
            fields.value_problem(field.at_key(), message);
            continue;
        }
        found.insert(field.name.to_owned(), source.to_owned());
    }
    found
}

/// Reads the list of tools. `None` stands for all tools.
pub(super) fn tools(fields: &mut Fields<'_>, field: &Field<'_, '_>) -> Option<BTreeSet<String>> {
    if matches!(field.value, DeValue::String(text) if text.as_ref() == "*") {
        return None;
    }
    let names = fields.texts(field).into_iter().filter_map(|(name, place)| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
            return Some(name);
        }
        let message = format!("`{field}`: a tool has a name of 1 to 64 letters, digits, `_` and `-`");
        let help = (name == "*").then(|| format!("write `{} = \"*\"` for all of them", field.name));
        fields.value_problem(place, Message::from(message).with_help(help));
        None
    });
    Some(names.collect())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn problems(text: &str) -> Vec<String> {
        match Config::parse(text, "glovebox.toml") {
            Ok(_) => Vec::new(),
            Err(problems) => problems.into_iter().map(|problem| problem.message).collect(),
        }
    }

    #[test]
    fn a_table_grants_nothing_by_itself() {
        let config = Config::parse("[mcp.a]\ncommand = [\"server\"]\n", "glovebox.toml").unwrap();
        let entry = &config.mcp["a"];
        assert!(entry.read.is_empty() && entry.env.is_empty() && entry.network == glovebox_record::Network::None);
        assert!(!entry.allowed().has("anything"));
        let all = Config::parse("[mcp.a]\ncommand = [\"server\"]\ntools = \"*\"\n", "glovebox.toml").unwrap();
        assert!(all.mcp["a"].allowed().has("anything"));
    }

    #[test]
    fn what_is_not_enforced_is_refused() {
        let check = |field: &str, expected: &str| {
            let found = problems(&format!("[mcp.a]\ncommand = [\"server\"]\n{field}\n"));
            assert!(found.len() == 1 && found[0].contains(expected), "{field}: {found:?}");
        };
        check("write = [\"src/\"]", "cannot be granted");
        check("env = { TOKEN = \"secret\" }", "a value is never written here");
        check("env = { TOKEN = { env = \"a b\" } }", "a value is never written here");
        check("env = { LD_PRELOAD = { env = \"X\" } }", "is refused");
        check("tools = [\"a b\"]", "1 to 64 letters");
        check("tools = [\"*\"]", "1 to 64 letters");
        check("timeout = \"never\"", "mcp.a.timeout");
        check("read = [\"../x\"]", "`../x`");
        check("url = \"https://example.com\"", "unknown field");
        assert!(problems("[mcp.a]\n")[0].contains("has no `command`"));
        assert!(problems("[mcp.A_b]\ncommand = [\"x\"]\n")[0].contains("as a name"));
    }
}
