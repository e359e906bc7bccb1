//! One change of `glovebox.toml`, with a comment that says why. The rest of the file stays as it is.

use glovebox_plan::config::Config;
use std::fmt;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// A change of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The table, such as `exec`.
    pub table: &'static str,
    /// The setting in the table.
    pub key: &'static str,
    /// How its value changes.
    pub change: Change,
    /// The comment above the setting, without `#`.
    pub comment: String,
}

/// How the value of a setting changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An entry is added to a list.
    Add(String),
    /// An entry is removed from a list.
    Remove(String),
    /// The value is replaced by a text.
    Text(String),
    /// The value is replaced by a number.
    Number(u64),
    /// A variable is set in an inline table.
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// Its value.
        value: &'static str,
    },
    /// A host is added to those that the proxy allows.
    Host(String),
}

impl fmt::Display for Edit {
    /// Writes the line to paste, and its table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, key, change, .. } = self;
        match change {
            Change::Add(entry) => write!(f, "`{key} = [{}]` under `[{table}]`", Value::from(entry)),
            Change::Remove(entry) => write!(f, "remove {} from `{key}` under `[{table}]`", Value::from(entry)),
            Change::Text(text) => write!(f, "`{key} = {}` under `[{table}]`", Value::from(text)),
            Change::Number(number) => write!(f, "`{key} = {number}` under `[{table}]`"),
            Change::Variable { name, value } => {
                write!(f, "`{key} = {{ {name} = {} }}` under `[{table}]`", Value::from(*value))
            }
            Change::Host(host) => write!(f, "`{key} = {{ proxy = [{}] }}` under `[{table}]`", Value::from(host)),
        }
    }
}

impl Edit {
    /// Returns the text of `glovebox.toml` with the change. `None` if nothing would change, or if the changed text
    /// would not be valid.
    pub fn apply(&self, text: &str) -> Option<String> {
        let mut document: DocumentMut = text.parse().ok()?;
        let table = document.entry(self.table).or_insert_with(|| Item::Table(Table::new())).as_table_mut()?;
        let had = table.contains_key(self.key);
        let value = self.change.new_value(table.get(self.key))?;
        let mut comment = format!("# {}\n", self.comment.replace(['\n', '\r'], " "));
        if let Some(item) = table.get_mut(self.key) {
            let decor = item.as_value().map(|old| old.decor().clone());
            *item = Item::Value(value);
            if let (Some(decor), Some(value)) = (decor, item.as_value_mut()) {
                *value.decor_mut() = decor;
            }
        } else {
            table.insert(self.key, Item::Value(value));
        }
        let mut key = table.key_mut(self.key)?;
        let decor = key.leaf_decor_mut();
        if had {
            let before = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            comment = format!("{before}{comment}");
        }
        decor.set_prefix(comment);
        let changed = document.to_string();
        Config::parse(&changed, "").is_ok().then_some(changed)
    }
}

impl Change {
    /// Returns the value after the change. `None` if the list has the entry or lacks the one to remove, if the text is
    /// the same, if the variable has a value, or if the old value has another type.
    fn new_value(&self, old: Option<&Item>) -> Option<Value> {
        let list = || old.map_or_else(|| Some(Array::new()), |old| old.as_array().cloned());
        match self {
            Self::Add(entry) => with_entry(list()?, entry).map(Value::Array),
            Self::Remove(entry) => {
                let mut list = list()?;
                let at = list.iter().position(|known| known.as_str() == Some(entry))?;
                list.remove(at);
                if let Some(first) = list.get_mut(0) {
                    first.decor_mut().set_prefix("");
                }
                Some(Value::Array(list))
            }
            Self::Text(text) => (old.and_then(Item::as_str) != Some(text)).then(|| Value::from(text)),
            Self::Number(number) => Some(Value::from(i64::try_from(*number).ok()?)),
            Self::Variable { name, value } => {
                let mut table = old.map_or_else(|| Some(InlineTable::new()), |old| old.as_inline_table().cloned())?;
                if table.contains_key(name) {
                    return None;
                }
                table.insert(*name, Value::from(*value));
                table.fmt();
                Some(Value::InlineTable(table))
            }
            Self::Host(host) => {
                let hosts = match old {
                    None => Array::new(),
                    Some(old) if old.as_str() == Some("none") => Array::new(),
                    Some(old) => old.as_inline_table()?.get("proxy")?.as_array()?.clone(),
                };
                let mut table = InlineTable::new();
                table.insert("proxy", Value::Array(with_entry(hosts, host)?));
                Some(Value::InlineTable(table))
            }
        }
    }
}

/// Returns a list with another entry. `None` if the list has the entry.
fn with_entry(mut list: Array, entry: &str) -> Option<Array> {
    let is_known = list.iter().any(|known| known.as_str() == Some(entry));
    (!is_known).then(|| {
        list.push(entry);
        list
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(table: &'static str, key: &'static str, change: Change) -> Edit {
        Edit { table, key, change, comment: "why\nit is there".to_owned() }
    }

    #[test]
    fn a_change_keeps_the_rest_of_the_file() {
        let check = |text: &str, edit: Edit, expected: &str| {
            assert_eq!(edit.apply(text).as_deref(), Some(expected), "{edit}");
        };
        let add = |entry: &str| edit("exec", "toolchains", Change::Add(entry.to_owned()));
        let why = "# why it is there\n";
        check("", add("go"), &format!("[exec]\n{why}toolchains = [\"go\"]\n"));
        check(
            "# mine\n\n[exec]\n# found\ntoolchains = [\"rust\"] # two\nenv = { CI = \"1\" }\n\n# end\n",
            add("go"),
            &format!(
                "# mine\n\n[exec]\n# found\n{why}toolchains = [\"rust\", \"go\"] # two\nenv = {{ CI = \"1\" }}\n\n# end\n"
            ),
        );
        let remove = edit("sandbox", "cache", Change::Remove("dist/".to_owned()));
        check("[sandbox]\ncache = [\"dist/\"]\n", remove.clone(), &format!("[sandbox]\n{why}cache = []\n"));
        assert_eq!(remove.apply("[sandbox]\ncache = [\"build/\"]\n"), None);
        let variable = edit("exec", "env", Change::Variable { name: "LANG", value: "C.UTF-8" });
        check(
            "[exec]\nenv = { CI = \"1\" }\n",
            variable.clone(),
            &format!("[exec]\n{why}env = {{ CI = \"1\", LANG = \"C.UTF-8\" }}\n"),
        );
        assert_eq!(variable.apply("[exec]\nenv = { LANG = \"C\" }\n"), None);
        let host = edit("sandbox", "network", Change::Host("a.example.com".to_owned()));
        for before in ["", "[sandbox]\nnetwork = \"none\"\n"] {
            check(before, host.clone(), &format!("[sandbox]\n{why}network = {{ proxy = [\"a.example.com\"] }}\n"));
        }
        check(
            "[sandbox]\nnetwork = { proxy = [\"b.example.com\"] }\n",
            host.clone(),
            &format!("[sandbox]\n{why}network = {{ proxy = [\"b.example.com\", \"a.example.com\"] }}\n"),
        );
        assert_eq!(host.apply("[sandbox]\nnetwork = \"full\"\n"), None);
        let number = edit("limits", "wall_ms", Change::Number(4000));
        check("[limits]\nwall_ms = \"1s\"\n", number, &format!("[limits]\n{why}wall_ms = 4000\n"));
        let text = edit("workspace", "git", Change::Text("history".to_owned()));
        check("", text.clone(), &format!("[workspace]\n{why}git = \"history\"\n"));
        assert_eq!(text.apply("[workspace]\ngit = \"history\"\n"), None);
    }

    #[test]
    fn a_change_that_would_not_be_valid_is_not_made() {
        let scratch = |entry: &str| edit("sandbox", "scratch", Change::Add(entry.to_owned()));
        assert!(scratch("out/").apply("").is_some());
        assert_eq!(scratch("../out/").apply(""), None);
        assert_eq!(scratch("out/").apply("[sandbox]\nscratch = \"x\"\n"), None);
        assert_eq!(scratch("out/").apply("sandbox = 3\n"), None);
        assert_eq!(scratch("out/").apply("not toml"), None);
        let hostile = edit("sandbox", "scratch", Change::Add("a\"]\n[exec]\npath = [\"/tmp/x/".to_owned()));
        let changed = hostile.apply("").map(|text| Config::parse(&text, "").unwrap());
        assert!(changed.is_none_or(|config| config.exec.path.is_empty()));
    }

    #[test]
    fn the_line_to_paste_is_the_one_that_is_written() {
        let host = edit("sandbox", "network", Change::Host("a.example.com".to_owned()));
        assert_eq!(host.to_string(), "`network = { proxy = [\"a.example.com\"] }` under `[sandbox]`");
        assert_eq!(edit("limits", "processes", Change::Number(9)).to_string(), "`processes = 9` under `[limits]`");
    }
}
