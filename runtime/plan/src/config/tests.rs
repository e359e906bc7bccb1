//! Every field that is unknown, cannot be enforced or has a wrong value is refused with its place.

use super::*;
use glovebox_host::grants::FileTier;

const FULL: &str = r#"
[plugins."acme.review"]
path = "target/review.wasm"
wants = { filesystem = "posix", read = ["src/"], write = ["REVIEW.md"] }
grants = { filesystem = "posix", read = ["src/"], write = ["REVIEW.md"], limits = { memory_bytes = "64MiB" } }

[workspace]
include = ["fixtures/big.bin"]

[exec]
toolchains = ["rust"]
path = ["/opt/x/bin"]
env = { LANG = "C.UTF-8" }

[limits]
wall_ms = "10s"
turns = 5

[run]
disk_bytes_max = "2GiB"
"#;

/// Expects exactly one problem, with this rule, field, line and part of the message.
fn check(text: &str, rule: &str, field: &str, line: usize, part: &str) {
    let problems = Config::parse(text, "glovebox.toml").expect_err(text);
    assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
    let problem = &problems[0];
    assert_eq!((problem.rule, problem.field.as_str(), problem.line), (rule, field, line), "{text}\n{problem:#?}");
    assert!(problem.message.contains(part), "{text}\n{}", problem.message);
    assert!(problem.span.end <= text.len() && problem.span.start <= problem.span.end, "{text}\n{problem:?}");
    assert!(problem.to_string().starts_with(&format!("glovebox.toml:{line}: ")), "{problem}");
}

#[test]
fn a_full_file_is_read() {
    let config = Config::parse(FULL, "glovebox.toml").expect("config");
    let plugin = &config.plugins["acme.review"];
    let grants = plugin.grants.as_ref().expect("grants");
    assert_eq!((plugin.source.to_string().as_str(), plugin.line), ("target/review.wasm", 2));
    assert_eq!((grants.filesystem, grants.limits.get(LimitName::MemoryBytes)), (FileTier::Posix, Some(64 << 20)));
    assert_eq!(plugin.wants.as_ref().expect("wants").write[0].to_string(), "REVIEW.md");
    assert_eq!(config.workspace.include, ["fixtures/big.bin"]);
    assert_eq!(config.exec.toolchains, [Toolchain::Rust]);
    assert_eq!(config.exec.path, ["/opt/x/bin"]);
    assert_eq!(config.exec.env["LANG"], "C.UTF-8");
    assert_eq!(config.run.disk_bytes_max, 2 << 30);
    assert_eq!((config.limits.get(LimitName::WallMs), config.limits.get(LimitName::Turns)), (Some(10_000), Some(5)));
}

/// The lines that the page "My tool needs" tells the reader to paste.
#[test]
fn the_lines_of_the_page_about_needs_are_valid() {
    let page = include_str!("../../../../docs/my-tool-needs.md");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(blocks.len() > 10, "{blocks:?}");
    for block in &blocks {
        let config = Config::parse(block, "glovebox.toml").unwrap_or_else(|problems| panic!("{block}\n{problems:#?}"));
        assert_ne!(config, Config { file_name: "glovebox.toml".to_owned(), ..Config::default() }, "{block}");
    }
    let pipelines: Vec<&str> =
        page.split("```dot\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    for pipeline in pipelines {
        let source = glovebox_pipeline::Source::new(pipeline);
        let checked = glovebox_pipeline::check(source, &glovebox_pipeline::Inputs::default());
        assert!(checked.diagnostics.iter().all(|found| !found.is_error()), "{:?}", checked.diagnostics);
    }
}

#[test]
fn an_empty_file_grants_nothing() {
    let config = Config::parse("", "glovebox.toml").expect("config");
    assert_eq!(config.run.disk_bytes_max, 10 << 30);
    assert_eq!(config, Config { file_name: "glovebox.toml".to_owned(), ..Config::default() });
    let named = Config::parse("[plugins.\"a.b\"]\npath = \"p.wasm\"", "glovebox.toml").expect("config");
    assert_eq!((&named.plugins["a.b"].wants, &named.plugins["a.b"].grants), (&None, &None));
}

#[test]
fn unknown_fields_are_refused_by_name_and_line() {
    check("\n[network]\nallow = true\n", "config_unknown_field", "network", 2, "unknown field `network`");
    check(
        "x = 1",
        "config_unknown_field",
        "x",
        1,
        "`plugins`, `rules`, `policy`, `workspace`, `exec`, `sandbox`, `limits`",
    );
    check("[workspace]\nexclude = []", "config_unknown_field", "workspace.exclude", 2, "`include`");
    check("[exec]\npath = []\nshell = \"bash\"", "config_unknown_field", "exec.shell", 3, "`toolchains`");
    check(
        "[plugins.\"a.b\"]\npath = \"p\"\ntrust = true",
        "config_unknown_field",
        "plugins.\"a.b\".trust",
        3,
        "`path`, `registry`, `version`, `wants`, `grants`, `role`",
    );
}

#[test]
fn fields_that_cannot_be_enforced_are_refused() {
    let plugin = |line: &str| format!("[plugins.\"a.b\"]\npath = \"p\"\n{line}\n");
    for side in ["wants", "grants"] {
        for field in ["network", "env", "cpu", "hosts"] {
            let text = plugin(&format!("{side} = {{ filesystem = \"none\", {field} = true }}"));
            let path = format!("plugins.\"a.b\".{side}.{field}");
            check(&text, "config_unenforceable", &path, 3, "the host cannot enforce");
        }
    }
}

#[test]
fn values_are_checked_where_they_stand() {
    let plugin = |line: &str| format!("[plugins.\"a.b\"]\npath = \"p\"\n{line}\n");
    let grants = "plugins.\"a.b\".grants";
    check(&plugin("grants = { filesystem = \"all\" }"), "config_value", &format!("{grants}.filesystem"), 3, "all");
    check(&plugin("grants = { read = [\"src/\"] }"), "config_value", grants, 3, "without `filesystem`");
    check(
        &plugin("grants = { filesystem = \"posix\", write = [\"../x\"] }"),
        "config_value",
        &format!("{grants}.write"),
        3,
        "../x",
    );
    check(&plugin("grants = { model = \"yes\" }"), "config_value", &format!("{grants}.model"), 3, "bool");
    check(
        &plugin("grants = { limits = { fuel = 3 } }"),
        "config_value",
        &format!("{grants}.limits.fuel"),
        3,
        "unknown limit `fuel`",
    );
    check("[limits]\nturns = \"many\"", "config_value", "limits.turns", 2, "a whole number");
    check("[limits]\nturns = -1", "config_value", "limits.turns", 2, "a whole number");
    check("limits = 3", "config_value", "limits", 1, "a table is expected");
    check("[workspace]\ninclude = [\"/etc\"]", "config_value", "workspace.include", 2, "/etc");
    check("[workspace]\ninclude = \"a\"", "config_value", "workspace.include", 2, "a list of strings");
    check("[run]\ndisk_bytes_max = \"lots\"", "config_value", "run.disk_bytes_max", 2, "not a number of bytes");
    check("[run]\ndisk_bytes_max = 0", "config_value", "run.disk_bytes_max", 2, "above 0");
    check("[run]\nkeep_runs = 0", "config_value", "run.keep_runs", 2, "a number of runs above 0 or `\"all\"`");
    check("[run]\nkeep_runs = \"none\"", "config_value", "run.keep_runs", 2, "or `\"all\"`");
    check("[run]\ndisk_bytes = 1", "config_unknown_field", "run.disk_bytes", 2, "`disk_bytes_max`");
    check("[plugins.tool]\npath = \"p\"", "config_value", "plugins.\"tool\"", 1, "not a plugin name");
    check(&plugin("role = \"judge\""), "config_value", "plugins.\"a.b\".role", 3, "`\"builder\"` or `\"verifier\"`");
    check("[plugins.\"a.b\"]\npath = \"\"", "config_value", "plugins.\"a.b\".path", 2, "is empty");
    check("[plugins.\"a.b\"]\ngrants = {}", "config_missing_field", "plugins.\"a.b\".path", 1, "no `path`");
}

#[test]
fn the_commands_environment_cannot_be_turned_against_them() {
    for name in
        ["LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "GIT_DIR", "PATH", "IFS", "NODE_OPTIONS"]
    {
        let text = format!("[exec.env]\n{name} = \"x\"");
        check(&text, "config_value", &format!("exec.env.{name}"), 2, "is refused");
    }
    check("[exec.env]\n\"A-B\" = \"x\"", "config_value", "exec.env.A-B", 2, "no variable name");
    check("[exec]\npath = [\"bin\"]", "config_value", "exec.path", 2, "absolute");
    check("[exec]\npath = [\"/a/../b\"]", "config_value", "exec.path", 2, "absolute");
    check("[exec]\npath = [\"/a:/b\"]", "config_value", "exec.path", 2, "`:`");
    check("[exec]\nvenv = \".venv\"", "config_value", "exec.venv", 2, "absolute");
    check("[exec]\nvenv = [\"/a\"]", "config_value", "exec.venv", 2, "a string is expected");
    check(
        "[exec]\ntoolchains = [\"cobol\"]",
        "config_value",
        "exec.toolchains",
        2,
        "expected one of `rust`, `go`, `node`",
    );
}

#[test]
fn an_unknown_field_offers_the_most_similar_one() {
    let help = |text: &str| Config::parse(text, "glovebox.toml").expect_err(text).remove(0).help;
    let meant = |name: &str| Some(format!("did you mean `{name}`?"));
    assert_eq!(help("[sandbox]\nnetwrk = \"none\""), meant("network"));
    assert_eq!(help("[sandbx]"), meant("sandbox"));
    assert_eq!(help("[limits]\nwal_ms = \"5m\""), meant("wall_ms"));
    assert_eq!(help("[plugins.\"a.b\"]\npath = \"p\"\ngrants = { comands = [\"ls\"] }"), meant("commands"));
    assert_eq!(help("[sandbox]\nfirewall = true"), None);
    assert_eq!(help("[limits]\nwall_ms = \"long\""), None, "the name is right");
}

#[test]
fn broken_toml_has_a_place_and_everything_wrong_is_told_at_once() {
    check("[exec\n", "config_syntax", "", 1, "");
    let text = "a = 1\n[limits]\nfuel = 1\n[exec]\npath = [\"x\"]\n";
    let problems = Config::parse(text, "g.toml").expect_err("three");
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 3, 5], "{problems:#?}");
}
