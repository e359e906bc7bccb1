//! Tests of `agent.backend` and the options of agent programs: their types, and the options without an effect.

use super::{accept, errors, node, with, with_node};
use glovebox_pipeline::ir::AgentBackend;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use insta::assert_snapshot;
use std::time::Duration;

/// Returns the agent program of a node with these attributes.
fn backend(attributes: &str) -> Option<AgentBackend> {
    node(&accept(&with_node(attributes)), "n").agent.backend.clone()
}

fn codex(options: &str) -> ProgramOptions {
    let backend = backend(&format!("agent.backend=codex, {options}")).expect("a program");
    assert_eq!(backend.program, AgentProgram::Codex);
    backend.options
}

/// Returns the errors of a node with the agent program Codex.
fn codex_errors(options: &str) -> String {
    errors(&with_node(&format!("agent.backend=codex, {options}")))
}

#[test]
fn the_options_of_codex_get_types() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let none = ProgramOptions { heartbeat: seconds(15), ..ProgramOptions::default() };
    assert_eq!(codex("label=x"), none);
    let all = codex(
        "codex.sandbox=\"read-only\", codex.approval=never, codex.skip_git_repo_check=true, codex.disable_mcp=true, \
         codex.timeout_seconds=90, codex.heartbeat_seconds=7, codex.path=\"./bin/codex\", \
         codex.config_overrides=\"a=1 ;; b.c=\\\"x y\\\";;\", codex.dangerous_bypass=false",
    );
    let expected = ProgramOptions {
        path: Some("./bin/codex".to_owned()),
        command: Vec::new(),
        config_overrides: vec!["a=1".to_owned(), "b.c=\"x y\"".to_owned()],
        skip_git_repo_check: true,
        is_read_only: true,
        timeout: seconds(90),
        heartbeat: seconds(7),
    };
    assert_eq!(all, expected);
    let zero = codex("codex.timeout_seconds=0, codex.heartbeat_seconds=0, codex.config_overrides=\" \"");
    assert_eq!(zero, ProgramOptions::default());
    assert_eq!(codex("codex.timeout_seconds=1, codex.heartbeat_seconds=1").timeout, seconds(1));
    for writable in ["workspace-write", "danger-full-access"] {
        assert!(!codex(&format!("codex.sandbox=\"{writable}\"")).is_read_only);
    }
    let path = codex("codex.path=\"a/codex\", agent.path=\" b/codex \"").path;
    assert_eq!(path.as_deref(), Some("b/codex"), "the path of any program comes before that of Codex");
}

#[test]
fn an_option_of_codex_with_another_value_is_an_error() {
    assert_snapshot!(codex_errors("codex.sandbox=\"read-olny\""), @"attribute_value «\"read-olny\"» `codex.sandbox` is `read-olny`, expected `workspace-write`, `read-only`, `danger-full-access` ~> «read-only»");
    assert_snapshot!(codex_errors("codex.approval=always"), @"attribute_value «always» `codex.approval` is `always`, expected `never`");
    assert_snapshot!(codex_errors("codex.disable_mcp=maybe"), @"attribute_value «maybe» `codex.disable_mcp` expects `true` or `false`, found `maybe`");
    assert_snapshot!(codex_errors("codex.dangerous_bypass=maybe"), @"attribute_value «maybe» `codex.dangerous_bypass` expects `true` or `false`, found `maybe`");
    assert_snapshot!(codex_errors("codex.config_overrides=\"a=1;;b\""), @"attribute_value «\"a=1;;b\"» `codex.config_overrides` expects `key=value`, separated by `;;`, found `b`");
    assert_eq!(codex_errors("codex.sandbox=\" \""), "");
}

#[test]
fn a_program_is_named_and_belongs_to_an_agent() {
    for (attributes, expected) in [
        ("label=x", None),
        ("agent.backend=\" \"", None),
        ("agent.backend=claude", Some(AgentProgram::Claude)),
        ("agent.backend=\" gemini \"", Some(AgentProgram::Gemini)),
        ("agent.backend=opencode", Some(AgentProgram::OpenCode)),
    ] {
        assert_eq!(backend(attributes).map(|backend| backend.program), expected, "{attributes}");
    }
    let claude = backend("agent.backend=claude, agent.path=\"bin/claude\"").expect("a program");
    assert_eq!(claude.options, ProgramOptions { path: Some("bin/claude".to_owned()), ..ProgramOptions::default() });
    assert_snapshot!(errors(&with_node("agent.backend=codexx")), @"attribute_value «codexx» `agent.backend` is `codexx`, expected `codex`, `claude`, `gemini`, `opencode` or `exec` ~> «codex»");
    assert_snapshot!(errors(&with_node("agent.backend=claude, shape=parallelogram, tool_command=make")), @"attribute_value «claude» `agent.backend` is set on a `tool` node, which starts no agent");
}

#[test]
fn an_option_that_no_program_of_the_node_reads_is_an_error() {
    let unread = "`codex.model` has no effect here: only the agent program `codex` reads it";
    for (other, expected) in [("label=x", true), ("agent.backend=claude", true), ("agent.backend=codex", false)] {
        let found = errors(&with_node(&format!("codex.model=\"m\", {other}")));
        assert_eq!(found.contains(unread), expected, "{other}: {found}");
    }
    assert_eq!(errors(&with_node("codex.model=\" \"")), "");
    assert_snapshot!(errors(&with_node("agent.backend=claude, agent.command=\"x\"")), @"attribute_value «\"x\"» `agent.command` is set, but the agent program is `claude`");
}

#[test]
fn another_program_has_a_command_line() {
    let exec = backend("agent.backend=exec, agent.command=\"my-agent --model {model}\"").expect("a program");
    assert_eq!(
        (exec.program, exec.options.command.join("|")),
        (AgentProgram::Exec, "my-agent|--model|{model}".to_owned())
    );
    for missing in ["label=x", "agent.command=\" \""] {
        let found = errors(&with_node(&format!("agent.backend=exec, {missing}")));
        assert_eq!(found, "attribute_value «exec» the agent program `exec` needs `agent.command`", "{missing}");
    }
    assert_snapshot!(errors(&with_node("agent.backend=exec, agent.command=\"x 'y\"")), @"attribute_value «\"x 'y\"» a quote in `agent.command` is not closed");
}

#[test]
fn only_a_stage_that_starts_a_program_answers_by_a_file() {
    let answers = |attributes: &str| node(&accept(&with_node(attributes)), "n").routing.status_file;
    assert!(answers("shape=parallelogram, tool_command=c, status_file=true"));
    assert!(answers("prompt=p, agent.backend=claude, status_file=true"));
    assert!(!answers("shape=parallelogram, tool_command=c, status_file=false"));
    assert!(!answers("shape=parallelogram, tool_command=c"));
    let faults = |attributes: &str| errors(&with_node(attributes));
    assert_snapshot!(faults("prompt=p, status_file=true"), @"attribute_value «true» `status_file` is set on a `codergen` node, which answers by the return value of its component");
    assert_snapshot!(faults("shape=octagon, command=c, status_file=true"), @"attribute_value «true» `status_file` is set on a `verify` node, which answers by the return value of its component");
    assert_snapshot!(faults("shape=parallelogram, tool_command=c, status_file=\"out/status.json\""), @"attribute_value «\"out/status.json\"» `status_file` expects `true` or `false`, found `out/status.json`");
}

#[test]
fn a_folder_whose_content_is_dropped_may_not_cover_the_place_of_a_status_file() {
    let with_folders = |attributes: &str| with_node(&format!("shape=parallelogram, tool_command=c, {attributes}"));
    for (folders, place) in [
        ("scratch=\".ai/\"", ".ai/status.json"),
        ("cache=\"target/,.ai/\"", ".ai/status.json"),
        ("scratch=\"status.json/\"", "status.json"),
    ] {
        let found = errors(&with_folders(&format!("status_file=true, {folders}")));
        assert!(found.starts_with("attribute_value") && found.contains(&format!("its file `{place}`")), "{found}");
        accept(&with_folders(folders));
    }
    accept(&with_folders("status_file=true, scratch=\"tmp/\", cache=\"target/,.aid/\""));
}

#[test]
fn a_block_asks_only_the_stages_that_can_answer_by_a_file() {
    let pipeline = accept(&with(
        "node [status_file=true] a [prompt=p] t [shape=parallelogram, tool_command=c] start -> a -> t -> exit",
    ));
    let asked = |id: &str| node(&pipeline, id).routing.status_file;
    assert_eq!((asked("a"), asked("t")), (false, true));
}
