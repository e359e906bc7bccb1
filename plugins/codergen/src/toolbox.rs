//! The tools that the model is offered, and the execution of a call.
//!
//! The table below lists all tools. `shell` is offered only if the node grants commands, `read_context` only if a value is large, and
//! `apply_patch` only to models that know it. An unknown tool, invalid arguments and a failing tool result in sentences for the model.

use crate::arguments::{Argument, Arguments};
use crate::documents::ModelProvider;
use crate::files::{Edit, FileUse, READ_LINES_DEFAULT, Workspace};
use crate::numbering::{Content, ServedLines, ShownText};
use crate::patch::Patch;
use crate::path::{NamedPath, WorkspacePath};
use crate::provided::ProvidedTools;
use crate::search::{self, Query};
use crate::shell::{self, CommandLine, ShellGrant};
use crate::tool_result::ToolResult;
use crate::truncate;
use crate::values::{Key, LargeValues, Part as ValuePart};
use glovebox_plugin_sdk::llm::{Message, Part, ToolDef};
use glovebox_plugin_sdk::{Stage, WriteScope};
use std::collections::HashMap;
use std::path::PathBuf;

struct Tool {
    name: &'static str,
    description: &'static str,
    /// JSON Schema of the arguments.
    parameters: &'static str,
    run: fn(&mut Toolbox, &Arguments) -> Result<ToolResult, String>,
}

const TOOLS: [Tool; 8] = [
    Tool {
        name: READ_FILE,
        description: "Reads a text file; each line is shown as `  1 | text`. Use offset and limit for a part of a long file. A PNG, JPEG, GIF or WebP file is shown as a picture.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},"limit":{"type":"integer","minimum":1,"description":"number of lines"}},"required":["path"]}"#,
        run: |toolbox, arguments| {
            let count = |name| arguments.size(name);
            let (first, limit) =
                (count(Argument::Offset)?.unwrap_or(1), count(Argument::Limit)?.unwrap_or(READ_LINES_DEFAULT));
            let read = toolbox.workspace.read(arguments.path(Argument::Path)?, first, limit)?;
            match read.picture {
                Some(_) if !toolbox.sees_pictures => {
                    Ok(format!("{}; this model does not accept pictures", read.text).into())
                }
                picture => Ok(ToolResult { picture, ..read.text.into() }),
            }
        },
    },
    Tool {
        name: "write_file",
        description: "Writes a whole file and makes missing folders. It replaces the old content.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#,
        run: |toolbox, arguments| {
            Ok(toolbox
                .workspace
                .write(arguments.path(Argument::Path)?, Content(arguments.text(Argument::Content)?))?
                .into())
        },
    },
    Tool {
        name: "edit_file",
        description: "Replaces a text in a file. old_string must occur exactly once unless replace_all is true.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["path","old_string","new_string"]}"#,
        run: |toolbox, arguments| {
            let (old, new) = (arguments.text(Argument::OldString)?, arguments.text(Argument::NewString)?);
            let replace_all = arguments.flag(Argument::ReplaceAll)?;
            Ok(toolbox.workspace.edit(arguments.path(Argument::Path)?, Edit { old, new, replace_all })?.into())
        },
    },
    Tool {
        name: APPLY_PATCH,
        description: "Changes several files at once. The patch begins with `*** Begin Patch` and ends with `*** End Patch`; between them `*** Add File: PATH` with `+` lines, `*** Delete File: PATH`, or `*** Update File: PATH` with hunks of `@@` and lines that begin with ` `, `-` or `+`.",
        parameters: r#"{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]}"#,
        run: |toolbox, arguments| {
            let patch = Patch::parse(Content(arguments.text(Argument::Patch)?))?;
            Ok(patch.apply(&toolbox.workspace)?.into())
        },
    },
    Tool {
        name: "glob",
        description: "Lists files by a pattern such as `src/**/*.rs`. A pattern without `/` matches names in every folder.",
        parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"folder to look in"}},"required":["pattern"]}"#,
        run: |toolbox, arguments| {
            let (below, pattern) = (toolbox.folder(arguments)?, arguments.path(Argument::Pattern)?);
            let pattern = toolbox.workspace.locate(FileUse::List, pattern)?;
            Ok(listed(truncate::GLOB, &search::glob(&toolbox.workspace.root, below, pattern)?))
        },
    },
    Tool {
        name: "grep",
        description: "Lists lines that match a regular expression, as `path:line: text`.",
        parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"file or folder to look in"},"include":{"type":"string","description":"glob pattern of the files"},"ignore_case":{"type":"boolean"}},"required":["pattern"]}"#,
        run: |toolbox, arguments| {
            let (expression, include) =
                (arguments.text(Argument::Pattern)?, arguments.optional_text(Argument::Include)?);
            let query = Query { expression, include, ignore_case: arguments.flag(Argument::IgnoreCase)? };
            let below = toolbox.folder(arguments)?;
            Ok(listed(truncate::GREP, &search::grep(&toolbox.workspace.root, below, &query)?))
        },
    },
    Tool {
        name: READ_CONTEXT,
        description: "Reads a large value of the pipeline's context, of which you were shown only the beginning. Use offset and limit, in characters, for a part of it.",
        parameters: r#"{"type":"object","properties":{"key":{"type":"string"},"offset":{"type":"integer","minimum":0,"description":"first character, from 0"},"limit":{"type":"integer","minimum":1,"description":"number of characters"}},"required":["key"]}"#,
        run: |toolbox, arguments| {
            let (offset, limit) = (arguments.size(Argument::Offset)?.unwrap_or(0), arguments.size(Argument::Limit)?);
            let key = Key(arguments.text(Argument::Key)?);
            Ok(toolbox.values.read(key, ValuePart { offset, limit })?.into())
        },
    },
    Tool {
        name: SHELL,
        description: "Runs a command in the workspace and returns its exit code and output.",
        parameters: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout_ms":{"type":"integer","minimum":1}},"required":["command"]}"#,
        run: |toolbox, arguments| {
            let grant = toolbox.shell.ok_or(
                "this stage runs no commands; the attribute `allowed_commands` of the node can allow commands",
            )?;
            let exit =
                grant.run(CommandLine(arguments.text(Argument::Command)?), arguments.count(Argument::TimeoutMs)?)?;
            let whole = shell::report(&exit);
            let text = truncate::SHELL.keep_ends(&whole);
            let whole = Some(whole).filter(|whole| whole.len() > text.len());
            Ok(ToolResult { text, is_error: !exit.passed(), evidence: Some(exit.receipt), whole, picture: None })
        },
    },
];

const READ_FILE: &str = "read_file";
const SHELL: &str = "shell";
const APPLY_PATCH: &str = "apply_patch";
const READ_CONTEXT: &str = "read_context";

/// The tools of one attempt and their state.
#[derive(Debug)]
pub(crate) struct Toolbox {
    workspace: Workspace,
    shell: Option<ShellGrant>,
    values: LargeValues,
    /// True if the model knows the format of patches.
    has_patches: bool,
    /// True if the model accepts pictures.
    sees_pictures: bool,
    provided: ProvidedTools,
}

impl Toolbox {
    /// Creates the tools of a stage.
    pub(crate) fn for_stage(stage: &Stage, ModelProvider(maker): ModelProvider<'_>, sees_pictures: bool) -> Self {
        let shell = ShellGrant::for_scope(stage.commands());
        let (root, served, write_scope) = (PathBuf::from("."), ServedLines::default(), stage.write_scope().clone());
        let paths = stage.mounts().iter().map(|mount| mount.guest_path.clone());
        let known_as = paths.filter(|path| path.len() > 1 && path.starts_with('/')).collect();
        let workspace = Workspace { root, write_scope, known_as, served, bounds: None };
        let (values, has_patches) = (LargeValues::from_stage(stage), maker.starts_with("openai"));
        Self { workspace, shell, values, has_patches, sees_pictures, provided: ProvidedTools::find() }
    }

    /// Records which lines earlier stages of the conversation were shown.
    pub(crate) fn remember(&mut self, earlier: &[Message]) {
        let mut calls = HashMap::new();
        for part in earlier.iter().flat_map(|message| &message.parts) {
            match part.kind.as_str() {
                // Ids of calls are unique only within a stage.
                "tool-call" => _ = calls.insert(part.field("id"), part),
                "tool-result" if part.field("is-error") != Some("true") => {
                    let call = calls.get(&part.field("call-id"));
                    let Some(call) = call.filter(|call| call.field("name") == Some(READ_FILE)) else { continue };
                    let Ok(arguments) = Arguments::parse(&call.text) else { continue };
                    let Ok(path) = arguments.path(Argument::Path) else { continue };
                    self.workspace.remember(path, ShownText(&part.text));
                }
                _ => {}
            }
        }
    }

    /// Returns the tools of a subagent. They work in the same workspace within bounds, and do not include tools of tool servers.
    pub(crate) fn narrowed(&self, bounds: WriteScope, has_commands: bool) -> Self {
        let Workspace { root, write_scope, known_as, .. } = &self.workspace;
        let workspace = Workspace {
            root: root.to_owned(),
            write_scope: write_scope.clone(),
            known_as: known_as.to_owned(),
            served: ServedLines::default(),
            bounds: Some(bounds),
        };
        Self {
            workspace,
            shell: self.shell.filter(|_| has_commands),
            values: self.values.clone(),
            has_patches: self.has_patches,
            sees_pictures: self.sees_pictures,
            provided: ProvidedTools::default(),
        }
    }

    /// Returns true if the stage may run commands.
    pub(crate) fn has_commands(&self) -> bool {
        self.shell.is_some()
    }

    /// Returns the folder in which a search runs, which is the root by default.
    fn folder<'a>(&self, arguments: &'a Arguments) -> Result<WorkspacePath<'a>, String> {
        let named = NamedPath(arguments.optional_text(Argument::Path)?.unwrap_or_default());
        self.workspace.locate(FileUse::List, named)
    }

    /// Returns the definitions of the tools for the model.
    pub(crate) fn definitions(&self) -> Vec<ToolDef> {
        let text = str::to_owned;
        self.offered()
            .map(|tool| ToolDef {
                name: text(tool.name),
                description: text(tool.description),
                parameters: text(tool.parameters),
            })
            .chain(self.provided.definitions().iter().cloned())
            .collect()
    }

    /// Executes a call.
    ///
    /// # Errors
    /// There is no such tool, the arguments are invalid, or the tool failed. The error text is a sentence for the model.
    pub(crate) fn call(&mut self, call: &Part) -> Result<ToolResult, String> {
        let name = call.field("name").unwrap_or_default();
        if ProvidedTools::has(name) && self.workspace.bounds.is_none() {
            return ProvidedTools::call(call);
        }
        let run = self.offered().find(|tool| tool.name == name).map(|tool| tool.run).ok_or_else(|| {
            let names: Vec<_> = self.offered().map(|tool| tool.name).collect();
            format!("there is no tool `{name}` here; the tools are {}", names.join(", "))
        })?;
        run(self, &Arguments::parse(&call.text)?).map_err(|reason| format!("{name}: {reason}"))
    }

    fn offered(&self) -> impl Iterator<Item = &'static Tool> + use<> {
        let (has_shell, has_values, has_patches) = (self.shell.is_some(), !self.values.is_empty(), self.has_patches);
        TOOLS.iter().filter(move |tool| match tool.name {
            SHELL => has_shell,
            READ_CONTEXT => has_values,
            APPLY_PATCH => has_patches,
            _ => true,
        })
    }
}

fn listed(bound: truncate::Bound, found: &[String]) -> ToolResult {
    match found {
        [] => "nothing found".to_owned().into(),
        found => {
            let text = bound.keep_head(found);
            let whole = Some(found.join("\n")).filter(|whole| whole.len() > text.len());
            ToolResult { whole, ..text.into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::Value;

    fn toolbox(folder: &tempfile::TempDir, shell: Option<ShellGrant>) -> Toolbox {
        let (root, served) = (folder.path().to_owned(), ServedLines::default());
        let known_as = vec!["/home/me/proj".to_owned()];
        Toolbox {
            workspace: Workspace { root, write_scope: WriteScope::from_paths(["./"]), known_as, served, bounds: None },
            shell,
            values: LargeValues::default(),
            has_patches: false,
            sees_pictures: true,
            provided: ProvidedTools::default(),
        }
    }

    fn call(name: &str, arguments: &str) -> Part {
        Part::new("tool-call", arguments).with("name", name)
    }

    #[test]
    fn every_schema_is_json_and_names_what_it_requires() {
        for tool in &TOOLS {
            let schema: Value = serde_json::from_str(tool.parameters).unwrap();
            let required = schema["required"].as_array().unwrap();
            assert!(
                required.iter().all(|name| schema["properties"][name.as_str().unwrap()].is_object()),
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn a_shell_exists_only_where_granted() {
        let folder = tempfile::tempdir().unwrap();
        let (mut without, with) = (toolbox(&folder, None), toolbox(&folder, Some(ShellGrant::Argv)));
        assert_eq!((without.definitions().len(), with.definitions().len()), (5, 6));
        assert_eq!(
            without.call(&call("shell", r#"{"command":"ls"}"#)).unwrap_err(),
            "there is no tool `shell` here; the tools are read_file, write_file, edit_file, glob, grep"
        );
    }

    #[test]
    fn patches_exist_only_for_models_that_know_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut tools = Toolbox { has_patches: true, ..toolbox(&folder, None) };
        assert_eq!(tools.definitions().len(), 6);
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
        let said = tools.call(&call("apply_patch", &glovebox_plugin_sdk::json!({ "patch": patch }).to_string()));
        assert_eq!(said.unwrap().text, "added `a`");
        let said = tools.call(&call("apply_patch", r#"{"patch":"x"}"#)).unwrap_err();
        assert_eq!(said, "apply_patch: the patch does not begin with `*** Begin Patch`");
    }

    #[test]
    fn what_the_conversation_was_served_counts() {
        let folder = tempfile::tempdir().unwrap();
        let asked = |id: &str, name: &str, arguments: &str| Message {
            role: "assistant".to_owned(),
            parts: vec![Part::new("tool-call", arguments).with("id", id).with("name", name)],
        };
        let result = |id: &str, text: &str| Part::new("tool-result", text).with("call-id", id);
        let told = |part: Part| Message { role: "tool".to_owned(), parts: vec![part] };
        let earlier = [
            asked("1", "read_file", r#"{"path":"/home/me/proj/a"}"#),
            told(result("1", "  1 | one\n  2 | two")),
            // The next stage uses the same call id again.
            asked("1", "shell", r#"{"command":"cat table"}"#),
            told(result("1", "  3 | three")),
            asked("2", "read_file", r#"{"path":"b"}"#),
            told(result("2", "  4 | four").with("is-error", "true")),
            asked("3", "read_file", "{"),
            told(result("3", "  5 | five")),
        ];
        let mut tools = toolbox(&folder, None);
        tools.remember(&earlier);
        let mut check = |path: &str, content: &str, expected: &str| {
            let arguments = glovebox_plugin_sdk::json!({ "path": path, "content": content }).to_string();
            tools.call(&call("write_file", &arguments)).unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join(path)).unwrap(), expected);
        };
        check("a", "1 | one\n2 | new", "one\nnew");
        check("a", "7 | one\n8 | new", "7 | one\n8 | new");
        check("b", "1\tone\n2\ttwo\n", "one\ntwo\n");
        check("b", "7\tone\n", "7\tone\n");
        for never_served in ["  3 | three", "  4 | four", "  5 | five"] {
            check("b", never_served, never_served);
        }
    }

    #[test]
    fn calls_become_actions_or_sentences() {
        let folder = tempfile::tempdir().unwrap();
        let mut tools = toolbox(&folder, None);
        let mut check = |name: &str, arguments: &str, expected: Result<&str, &str>| {
            let said = tools.call(&call(name, arguments)).map(|said| said.text);
            assert_eq!(said.as_deref().map_err(String::as_str), expected, "{name} {arguments}");
        };
        check("write_file", r#"{"path":"src/a.rs","content":"fn a() {}\n"}"#, Ok("wrote 10 bytes to `src/a.rs`"));
        check("read_file", r#"{"path":"src/a.rs"}"#, Ok("  1 | fn a() {}"));
        check(
            "edit_file",
            r#"{"path":"src/a.rs","old_string":"a","new_string":"b"}"#,
            Ok("replacements in `src/a.rs`: 1"),
        );
        check("grep", r#"{"pattern":"FN B","ignore_case":true}"#, Ok("src/a.rs:1: fn b() {}"));
        check("glob", r#"{"pattern":"*.rs"}"#, Ok("src/a.rs"));
        check("glob", r#"{"pattern":"*.py"}"#, Ok("nothing found"));
        check("glob", r#"{"pattern":"/home/me/proj/src/*.rs"}"#, Ok("src/a.rs"));
        check("glob", r#"{"pattern":"*.rs","path":"/home/me/proj"}"#, Ok("src/a.rs"));
        check("grep", r#"{"pattern":"b","path":"/home/me/proj/src"}"#, Ok("src/a.rs:1: fn b() {}"));
        let outside = |tool: &str, path: &str| {
            format!(
                "{tool}: `{path}` is an absolute path outside of the workspace; write it relative to the workspace, or below \
                 `/home/me/proj`"
            )
        };
        check("grep", r#"{"pattern":"b","path":"/etc"}"#, Err(&outside("grep", "/etc")));
        check("glob", r#"{"pattern":"/etc/*"}"#, Err(&outside("glob", "/etc/*")));
        check("write_file", r#"{"path":"a"}"#, Err("write_file: the argument `content` is missing"));
        check("read_file", "[]", Err("the arguments are not a JSON object"));
        check("read_file", r#"{"path":"no"}"#, Err("read_file: cannot read `no`: no such file or folder"));
        check(
            "dance",
            "",
            Err("there is no tool `dance` here; the tools are read_file, write_file, edit_file, glob, grep"),
        );
    }
}
