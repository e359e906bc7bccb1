//! Tests of the command lines of all programs, and of reading their recorded output.

use super::*;
use proptest::prelude::*;

fn asked(program: AgentProgram) -> LaunchRequest<'static> {
    LaunchRequest {
        program,
        prompt: "mend it",
        model: "m-1",
        family: families(program)[0],
        output_tokens_max: 100,
        turns_max: 7,
        url: "http://127.0.0.1:8790",
        secret: "s3cr3t",
        home: "/home/glovebox/agent",
    }
}

#[test]
fn every_program_gets_task_model_address_and_secret_and_no_other_network() {
    for program in AgentProgram::ALL {
        let options = ProgramOptions { command: vec!["mine".into(), "{model}".into()], ..ProgramOptions::default() };
        let start = launch(&options, &asked(program));
        let all = format!("{:?} {:?}", start.argv, start.env);
        assert!(all.contains("m-1") && all.contains("127.0.0.1:8790") && all.contains("s3cr3t"), "{program}: {all}");
        assert!(!start.argv.iter().any(|word| word.contains("s3cr3t")), "arguments are in the record");
        assert_eq!(start.stdin, b"mend it");
        let named = launch(&ProgramOptions { path: Some("/opt/x".into()), ..options }, &asked(program));
        assert_eq!(named.argv[0], "/opt/x");
        assert_eq!(program.as_str().parse(), Ok(program));
    }
    assert!("bash".parse::<AgentProgram>().is_err());
}

#[test]
fn a_program_of_the_operators_own_is_called_as_it_says() {
    let command = ["mine", "--say", "{prompt}", "--at={gateway}", "{home}/x"].map(str::to_owned).to_vec();
    let start = launch(&ProgramOptions { command, ..ProgramOptions::default() }, &asked(AgentProgram::Exec));
    assert_eq!(start.argv, ["mine", "--say", "mend it", "--at=http://127.0.0.1:8790", "/home/glovebox/agent/x"]);
}

#[test]
fn codex_settings_of_the_node_come_before_ours() {
    let config_overrides = vec!["model_provider=\"mine\"".to_owned()];
    let options = ProgramOptions { config_overrides, skip_git_repo_check: true, ..ProgramOptions::default() };
    let argv = launch(&options, &asked(AgentProgram::Codex)).argv;
    let at = |word: &str| argv.iter().position(|known| known == word).unwrap();
    assert!(at("model_provider=\"mine\"") < at("model_provider=\"glovebox\"") && at("--skip-git-repo-check") > 0);
}

/// Reads a recorded stream. Returns its steps, its last message, its problem and the number of unknown lines.
fn read(program: AgentProgram, lines: &[&str]) -> (Vec<String>, String, Option<String>, u64) {
    let mut reading = ProgramOutput::new(program);
    let steps = lines.iter().filter_map(|line| reading.read_line(line.as_bytes()));
    let steps = steps.map(|step| match step {
        ProgramStep::Text(text) => text,
        ProgramStep::ToolCall { name, detail } => format!("{name}: {detail}"),
    });
    let steps = steps.collect();
    let unknown = reading.unknown();
    let (said, problem) = reading.end();
    (steps, said, problem, unknown)
}

/// Reads recorded output of the real programs in the jail, with ids, times and paths replaced (Codex 0.169.0, Claude Code 2.1.197,
/// Gemini CLI 0.61.0, OpenCode 1.18.33). Each program reads a file, edits it, runs a command and ends.
#[test]
fn streams_of_the_real_programs_are_read() {
    let last = "cat scripts/scenarios/door.sh";
    for (program, stream, calls) in [
        (
            AgentProgram::Codex,
            include_str!("recorded/codex.ndjson"),
            ["command: /bin/sh -lc 'cat src", "command: ", "command: "],
        ),
        (AgentProgram::Claude, include_str!("recorded/claude.ndjson"), ["Read: ", "Edit: ", "Bash: "]),
        (
            AgentProgram::Gemini,
            include_str!("recorded/gemini.ndjson"),
            ["read_file: ", "replace: ", "run_shell_command: "],
        ),
        (AgentProgram::OpenCode, include_str!("recorded/opencode.ndjson"), ["read: ", "edit: ", "bash: "]),
    ] {
        let lines: Vec<&str> = stream.lines().collect();
        let (steps, said, problem, unknown) = read(program, &lines);
        assert_eq!((said.as_str(), problem, unknown), ("Done.\nOUTCOME: SUCCESS", None, 0), "{program}");
        let made: Vec<&String> = steps.iter().filter(|step| *step != "Next." && !step.starts_with("Done.")).collect();
        assert_eq!(made.len(), 3, "{program}: {made:?}");
        assert!(made.iter().zip(calls).all(|(step, call)| step.starts_with(call)), "{program}: {made:?}");
        assert!(made[2].contains(last), "{program}: {made:?}");
    }
}

/// Reads recorded output of programs whose requests the gateway refused: each reports the refusal as the reason of its failure.
#[test]
fn refusals_are_what_the_real_programs_say_at_their_end() {
    for (program, stream, reason) in [
        (AgentProgram::Codex, include_str!("recorded/codex-fails.ndjson"), "not-granted"),
        (AgentProgram::Gemini, include_str!("recorded/gemini-fails.ndjson"), "pin-violation"),
    ] {
        let lines: Vec<&str> = stream.lines().collect();
        let (_, _, problem, unknown) = read(program, &lines);
        assert!(problem.is_some_and(|problem| problem.contains(reason)) && unknown == 0, "{program}");
    }
}

#[test]
fn recorded_streams_are_read() {
    let codex = [
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"I read."}}"#,
        r#"{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"bash -lc 'cat a'","status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"bash -lc 'cat a'","exit_code":0}}"#,
        r#"{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"OUTCOME: SUCCESS"}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":2}}"#,
    ];
    let (steps, said, problem, unknown) = read(AgentProgram::Codex, &codex);
    assert_eq!(steps, ["I read.", "command: bash -lc 'cat a'", "OUTCOME: SUCCESS"]);
    assert_eq!((said.as_str(), problem, unknown), ("OUTCOME: SUCCESS", None, 0));
    let failed = read(AgentProgram::Codex, &[r#"{"type":"turn.failed","error":{"message":"no credit"}}"#]);
    assert_eq!(failed.2.as_deref(), Some("no credit"));
    let claude = [
        r#"{"type":"system","subtype":"init","tools":[]}"#,
        r#"{"type":"assistant","message":{"content":[{"text":"I read.","type":"text"}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"id":"c","input":{"command":"cat a"},"name":"Bash","type":"tool_use"}]}}"#,
        r#"{"type":"user","message":{"role":"user","content":[]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.\nOUTCOME: SUCCESS"}"#,
    ];
    let (steps, said, problem, unknown) = read(AgentProgram::Claude, &claude);
    assert_eq!(steps, ["I read.", r#"Bash: {"command":"cat a"}"#]);
    assert_eq!((said.as_str(), problem, unknown), ("Done.\nOUTCOME: SUCCESS", None, 0));
    let failed = read(AgentProgram::Claude, &[r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#]);
    assert_eq!(failed.2.as_deref(), Some("error_max_turns"));
    let gemini = [
        r#"{"type":"init","session_id":"s","model":"m-1"}"#,
        r#"{"type":"message","role":"user","content":"mend it"}"#,
        r#"{"type":"message","role":"assistant","content":"I read.","delta":true}"#,
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"cat a"}}"#,
        r#"{"type":"tool_result","tool_id":"1","status":"success","output":"x"}"#,
        r#"{"type":"message","role":"assistant","content":"All ","delta":true}"#,
        r#"{"type":"message","role":"assistant","content":"done.","delta":true}"#,
        r#"{"type":"result","status":"success","stats":{}}"#,
    ];
    let (_, said, problem, unknown) = read(AgentProgram::Gemini, &gemini);
    assert_eq!((said.as_str(), problem, unknown), ("All done.", None, 0));
    let opencode = [
        r#"{"type":"step_start","part":{"type":"step-start"}}"#,
        r#"{"type":"tool_use","part":{"type":"tool","tool":"bash","state":{"input":{"command":"cat a"}}}}"#,
        r#"{"type":"text","part":{"type":"text","text":"All done."}}"#,
        r#"{"type":"step_finish","part":{"reason":"stop"}}"#,
    ];
    let (steps, said, problem, unknown) = read(AgentProgram::OpenCode, &opencode);
    assert_eq!(steps[0], r#"bash: {"command":"cat a"}"#);
    assert_eq!((said.as_str(), problem, unknown), ("All done.", None, 0));
}

proptest! {
    #[test]
    fn any_line_is_read_or_counted(line in prop::collection::vec(any::<u8>(), 0..200), text in "\\{\"type\":\"(result|assistant|item.completed|message|text|error)\",\"[a-z]{1,6}\":(1|null|\\[\\]|\"x\")\\}") {
        for program in AgentProgram::ALL {
            let mut reading = ProgramOutput::new(program);
            reading.read_line(&line);
            reading.read_line(text.as_bytes());
            let _ = reading.end();
        }
    }
}

#[test]
fn refused_calls_count_only_if_no_other_was_made() {
    let blocked = |program: AgentProgram, lines: &[&str]| {
        let mut reading = ProgramOutput::new(program);
        lines.iter().for_each(|line| drop(reading.read_line(line.as_bytes())));
        reading.blocked().map(str::to_owned)
    };
    let refused = [
        (
            AgentProgram::Claude,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"no SANDBOX here"}]}}"#,
        ),
        (
            AgentProgram::Codex,
            r#"{"type":"item.completed","item":{"type":"command_execution","status":"declined","aggregated_output":"no SANDBOX here"}}"#,
        ),
        (AgentProgram::Gemini, r#"{"type":"tool_result","status":"error","error":"no SANDBOX here"}"#),
        (
            AgentProgram::OpenCode,
            r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","error":"no SANDBOX here"}}}"#,
        ),
    ];
    for (program, line) in refused {
        assert_eq!(blocked(program, &[line]).as_deref(), Some("no SANDBOX here"), "{program}");
        let failed = line.replace("SANDBOX", "such file");
        assert_eq!(blocked(program, &[&failed]), None, "a command that failed was run");
        assert_eq!(blocked(program, &[line, &failed]), None, "{program}");
    }
    assert_eq!(blocked(AgentProgram::Claude, &[]), None);
}
