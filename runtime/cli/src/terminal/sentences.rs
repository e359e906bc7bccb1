//! What a plugin may do, in sentences: the action, where it applies, and what follows from it.
//!
//! The author of a component chooses the names and paths in these sentences, so the caller escapes them.

use glovebox_host::grants::FileTier;
use glovebox_plan::lock::growth::Growth;
use glovebox_plan::lock::line::Line;

/// Returns the sentence about a line. `None` if the line allows nothing.
pub fn sentence(line: &Line) -> Option<String> {
    Some(match line {
        Line::Filesystem(FileTier::None) => return None,
        Line::Filesystem(FileTier::Workspace) => {
            "open the files that are listed here, through the interface `files`".to_owned()
        }
        Line::Filesystem(FileTier::Posix) => "open the files that are listed here, as any program does".to_owned(),
        Line::Read(entry) => format!(
            "read {}: what it reads can be in its outcome and its artifacts, and at a model's provider if it may ask a model",
            area(&entry.to_string())
        ),
        Line::Write(entry) => format!(
            "write, replace and delete {}: a successful stage commits the changes, where its node has `allowed_write_paths`",
            area(&entry.to_string())
        ),
        Line::Run(words) if words.trim() == "*" => {
            "run any command in the sandbox: a command can do whatever `[sandbox]` allows, the network included"
                .to_owned()
        }
        Line::Run(words) => format!(
            "run `{words} …` in the sandbox: the command can do whatever `[sandbox]` allows, the network included"
        ),
        Line::Limit(name, amount) => format!("use up to {amount} of the limit `{name}`"),
        Line::Model => {
            "ask the model of its node: requests cost money, and the provider sees what they contain".to_owned()
        }
        Line::Verifier => "judge as a verifier: its commands see hold-outs, and their exit codes decide".to_owned(),
        Line::Tool(name) if name == "*" => {
            "offer any tool to the agents of this project: a model reads its descriptions and its answers".to_owned()
        }
        Line::Tool(name) => format!(
            "offer the tool `{name}` to the agents of this project: a model reads its description and its answers"
        ),
        Line::Other(text) => text.clone(),
    })
}

fn area(path: &str) -> String {
    match path {
        "./" => "every file of the project".to_owned(),
        path if path.ends_with('/') => format!("every file below `{path}`"),
        path => format!("the file `{path}`"),
    }
}

/// Returns the title and the sentence about what grew. `None` if the growth allows nothing.
pub fn grew(growth: &Growth) -> Option<(&'static str, String)> {
    Some(match growth {
        Growth::Granted(line) => ("may", sentence(line)?),
        Growth::Offered(line) => {
            ("offered", format!("{}; the plugin gets this as soon as it asks for it", sentence(line)?))
        }
        Growth::Wanted(line) => ("wants", format!("{}; the plugin gets this only if you grant it", sentence(line)?)),
        Growth::Unlimited(line) => ("limit", format!("`{line}` is gone: the default applies, which may be higher")),
        Growth::Import(name) => ("import", format!("`{name}`, which it did not import before")),
        Growth::Signer { before, after } => (
            "signer",
            match after {
                Some(after) => {
                    format!("{after}, and not {before} as before: ask the author whether the new key is theirs")
                }
                None => format!("no trusted key, but {before} before: anyone may have made these bytes"),
            },
        ),
        Growth::World(world) => ("world", format!("`{world}`, which it was not before")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_action_a_place_and_a_consequence() {
        let check = |line: &str, expected: &[&str]| {
            let found = sentence(&Line::parse(line)).unwrap_or_default();
            assert!(expected.iter().all(|part| found.contains(part)), "{found}");
        };
        check("read src/", &["read every file below `src/`", "can be in its outcome"]);
        check("read ./", &["every file of the project"]);
        check("write a.md", &["delete the file `a.md`", "commits"]);
        check("run cargo test", &["`cargo test …` in the sandbox", "`[sandbox]` allows"]);
        check("run *", &["any command"]);
        check("model", &["cost money", "provider sees"]);
        check("role verifier", &["hold-outs"]);
        assert_eq!(sentence(&Line::parse("filesystem none")), None);
    }
}
