//! The checks of a tool provider: its list of tools, and calls with matching, odd and hostile arguments.

use super::{Check, report};
use crate::TestRequest;
use crate::error::TestError;
use crate::report::{Finding, TestReport};
use crate::{sample, text};
use glovebox_host::call::{FileSetting, FileSource};
use glovebox_host::grants::Grants;
use glovebox_host::tools::{AllowedTools, ListedTool, ProviderSetting};
use glovebox_record::Limits;
use glovebox_record::scope::{Entry, Scope};
use glovebox_workspace::protect::Protected;
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// Length of the long argument, in bytes.
const LONG_BYTES: usize = 1 << 20;

/// The component, and what its list of tools says.
struct Provider {
    setting: ProviderSetting,
    listed: Result<(Vec<ListedTool>, Vec<String>), String>,
    calls: Rc<Cell<u64>>,
}

const CHECKS: &[Check<Provider>] = &[
    Check {
        name: "tools.list",
        checks: "it lists at least one tool, and every tool can be offered to an agent",
        help: "name tools with letters, digits, `_` and `-`, and use only keywords of JSON Schema that the host enforces",
        run: list,
    },
    Check {
        name: "tools.same",
        checks: "it lists the same tools each time",
        help: "do not make the list depend on time or randomness",
        run: same,
    },
    Check {
        name: "tools.ends",
        checks: "each tool answers arguments that match its schema, within its wall time and without a trap",
        help: "answer an error instead of a panic, and bound every loop",
        run: ends,
    },
    Check {
        name: "tools.deterministic",
        checks: "each tool gives the same answer to the same arguments",
        help: "a tool whose answer depends on time or randomness cannot be repeated after a crash; remove what changes",
        run: deterministic,
    },
    Check {
        name: "tools.odd",
        checks: "no name and no arguments make it trap or run too long",
        help: "answer an error for a name or for arguments that you do not expect",
        run: odd,
    },
];

pub(super) fn test(request: &TestRequest<'_>) -> Result<TestReport, TestError> {
    let (begin, calls) = (Instant::now(), Rc::new(Cell::new(0)));
    let wants = request.inspection.manifest.as_ref().map(|manifest| manifest.wants.clone()).unwrap_or_default();
    let files = files(request, &wants)?;
    let loaded = request.host.load_provider(request.bytes, Limits::default().component_bytes);
    let loaded = loaded.map_err(|error| error.to_string()).map(|component| {
        let mut limits = Limits { wall_ms: request.wall_ms, ..Limits::default() };
        limits.lower(&wants.limits);
        let name = request.inspection.manifest.as_ref().map_or("acme.tools", |manifest| manifest.name.as_str());
        let setting = ProviderSetting {
            name: name.to_owned(),
            ask: component.to_ask(),
            tools: AllowedTools::All,
            tier: wants.filesystem,
            files: Some(files),
            limits,
            revocation: None,
        };
        calls.set(1);
        Provider { listed: setting.list_outside(), setting, calls: Rc::clone(&calls) }
    });
    Ok(report(request, CHECKS, loaded, &calls, begin))
}

/// Writes the files of the normal input, of which the component may read what it wants.
fn files(request: &TestRequest<'_>, wants: &Grants) -> Result<FileSetting, TestError> {
    for (path, content) in sample::files(wants) {
        let file = request.folder.join(path);
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(file, content)?;
    }
    let read: Vec<Entry> = wants.read.clone();
    Ok(FileSetting {
        source: FileSource::Folder(request.folder.clone()),
        scope: Scope { read, ..Scope::default() },
        protected: Protected::default(),
        known_as: Vec::new(),
        is_of_plugin: true,
    })
}

impl Provider {
    fn tools(&self) -> &[ListedTool] {
        self.listed.as_ref().map_or(&[], |(tools, _)| tools)
    }

    fn call(&self, tool: &str, arguments: &str) -> Result<(String, bool), String> {
        self.calls.set(self.calls.get() + 1);
        self.setting.call_outside(tool, arguments)
    }

    /// Returns each tool with arguments that match its schema, if such arguments can be made.
    fn examples(&self) -> impl Iterator<Item = (&str, String)> {
        self.tools().iter().filter_map(|tool| Some((tool.name.as_str(), tool.schema.example()?.to_string())))
    }
}

fn list(provider: &Provider) -> Finding {
    match &provider.listed {
        Err(problem) => Finding::Failed(text::lines(problem)),
        Ok((_, left_out)) if !left_out.is_empty() => Finding::Failed(text::lines(&left_out.join("\n"))),
        Ok((tools, _)) if tools.is_empty() => Finding::Failed("it lists no tool".to_owned()),
        Ok((tools, _)) => Finding::Passed(Some(format!("{} tools", tools.len()))),
    }
}

fn same(provider: &Provider) -> Finding {
    provider.calls.set(provider.calls.get() + 1);
    let names = |tools: &[ListedTool]| -> Vec<String> {
        tools.iter().map(|tool| format!("{} {}", tool.name, tool.schema.text())).collect()
    };
    match provider.setting.list_outside() {
        Err(problem) => Finding::Failed(text::lines(&problem)),
        Ok((tools, _)) if names(&tools) == names(provider.tools()) => Finding::passed(),
        Ok(_) => Finding::Failed("the second list differs from the first".to_owned()),
    }
}

fn ends(provider: &Provider) -> Finding {
    if provider.examples().next().is_none() {
        return Finding::NotApplicable("there is no tool for whose schema arguments can be made".to_owned());
    }
    Finding::of(provider.examples().find_map(|(tool, arguments)| {
        let problem = provider.call(tool, &arguments).err()?;
        Some(format!("{} with {}: {}", text::quoted(tool), text::quoted(&arguments), text::lines(&problem)))
    }))
}

fn deterministic(provider: &Provider) -> Finding {
    if provider.examples().next().is_none() {
        return Finding::NotApplicable("there is no tool for whose schema arguments can be made".to_owned());
    }
    Finding::of(provider.examples().find_map(|(tool, arguments)| {
        let is_same = provider.call(tool, &arguments) == provider.call(tool, &arguments);
        (!is_same).then(|| {
            format!("{} with {}: two calls had different answers", text::quoted(tool), text::quoted(&arguments))
        })
    }))
}

fn odd(provider: &Provider) -> Finding {
    let long = Value::from(vec!["x".repeat(LONG_BYTES)]).to_string();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let arguments = ["{}", "null", "[]", "{\"a\":\"\u{202e}\\u0000\"}", &long, &deep];
    let names = provider.tools().iter().map(|tool| tool.name.as_str()).chain(["", "no such tool\u{202e}"]);
    Finding::of(names.flat_map(|name| arguments.map(|arguments| (name, arguments))).find_map(|(name, arguments)| {
        let problem = provider.call(name, arguments).err()?;
        Some(format!("{} with {}: {}", text::quoted(name), text::quoted(arguments), text::lines(&problem)))
    }))
}
