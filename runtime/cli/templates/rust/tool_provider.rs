//! Offers agents a tool that finds a text in the files of a folder.

use glovebox_plugin_sdk::provider::{Tool, ToolProvider};
use glovebox_plugin_sdk::{Value, export_tools, files, json};

/// Maximum length of a file that is searched, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of places in an answer.
const FOUND_MAX: usize = 100;

struct Plugin;

impl ToolProvider for Plugin {
    fn tools() -> Vec<Tool> {
        let parameters = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "minLength": 1, "description": "The text to find." },
                "folder": { "type": "string", "description": "The folder to search, such as `src`." }
            },
            "required": ["text", "folder"],
            "additionalProperties": false
        });
        vec![Tool::new("find_text", "Finds a text in the files of a folder, and returns the places.", parameters)]
    }

    fn call(_name: &str, arguments: &Value) -> Result<String, String> {
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
        let (folder, mut found) = (argument("folder").trim_end_matches('/'), Vec::new());
        search(folder, argument("text"), &mut found)
            .map_err(|error| format!("cannot read `{folder}`: {}", error.message))?;
        Ok(if found.is_empty() { "not found".to_owned() } else { found.join("\n") })
    }
}

/// Collects the places of a text in a folder and the folders in it. Files that are not text are left out.
fn search(folder: &str, text: &str, found: &mut Vec<String>) -> Result<(), files::Error> {
    for node in files::list(folder)? {
        let path = format!("{folder}/{}", node.name);
        if node.kind == "directory" {
            search(&path, text, found)?;
        } else if let Ok(content) = files::read_text(&path, FILE_BYTES_MAX) {
            found.extend(places(&path, &content, text));
        }
        found.truncate(FOUND_MAX);
    }
    Ok(())
}

/// Returns the lines of a file that contain a text.
fn places(path: &str, content: &str, text: &str) -> Vec<String> {
    let lines = content.lines().zip(1..).filter(|(line, _)| line.contains(text));
    lines.map(|(line, number)| format!("{path}:{number}: {}", line.trim())).collect()
}

export_tools!(Plugin);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_with_its_place() {
        assert_eq!(places("src/a.rs", "one\n  two\n", "two"), ["src/a.rs:2: two"]);
        assert!(places("src/a.rs", "one\n", "two").is_empty());
    }

    #[test]
    fn there_is_one_tool() {
        assert_eq!(Plugin::tools()[0].name(), "find_text");
    }
}
