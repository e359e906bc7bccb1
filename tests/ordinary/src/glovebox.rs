//! A behaviour as a pipeline: one tool stage for each part, in the private copy of a project.

use crate::behaviour::Behaviour;
use crate::place::{Folders, SHELL_OPTIONS};
use crate::process::{self, Ended, last_line};
use crate::trial::PART_TIME_MAX;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

/// Id of the run.
const RUN: &str = "ordinary";
/// Time that the program may take in addition to its stages.
const OWN_TIME_MAX: Duration = Duration::from_secs(15);
/// Programs, and the toolchain that shows them.
const TOOLCHAINS: [(&str, &str); 8] = [
    ("python3", "python"),
    ("node", "node"),
    ("npm", "node"),
    ("cargo", "rust"),
    ("rustc", "rust"),
    ("go", "go"),
    ("java", "java"),
    ("javac", "java"),
];

/// Runs the parts of a behaviour as stages, and applies the changes. Returns the reason if that fails.
pub(crate) fn run(
    behaviour: &Behaviour,
    (program, tier): (&Path, &str),
    with_settings: bool,
    folders: &Folders,
) -> io::Result<Result<(), String>> {
    let folder = folders.base.join("pipeline");
    fs::create_dir(&folder)?;
    fs::write(folder.join("pipeline.dot"), pipeline(behaviour.parts.len()))?;
    fs::write(folder.join("glovebox.toml"), settings(behaviour, tier, with_settings))?;
    let parts = u32::try_from(behaviour.parts.len()).unwrap_or(1);
    let limit = PART_TIME_MAX * parts + OWN_TIME_MAX;
    let mut command = glovebox(program, "run", folders);
    command.arg(folder.join("pipeline.dot")).args(["--run-id", RUN, "--tier", tier, "--quiet", "--no-input"]);
    let ended = process::run(&mut command, &folders.base, limit)?;
    if !ended.is_success {
        return Ok(Err(reason(&ended, behaviour.parts.len(), folders)));
    }
    let ended = process::run(glovebox(program, "apply", folders).arg(RUN), &folders.base, limit)?;
    Ok(if ended.is_success { Ok(()) } else { Err(format!("apply: {}", ended.last_line().unwrap_or_default())) })
}

fn glovebox(program: &Path, name: &str, folders: &Folders) -> Command {
    let mut command = Command::new(program);
    command.arg(name).arg("--workdir").arg(folders.project()).arg("--runs-dir").arg(folders.base.join("runs"));
    command.current_dir(folders.project());
    command
}

/// Returns the pipeline: the parts, one after the other.
fn pipeline(parts: usize) -> String {
    let mut text = "digraph ordinary {\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n".to_owned();
    let seconds = PART_TIME_MAX.as_secs();
    for part in 1..=parts {
        text.push_str(&format!(
            "  part{part} [shape=parallelogram, tool_command=\"sh {SHELL_OPTIONS} .ordinary/{part}.sh\", \
             allowed_write_paths=\"./\", timeout=\"{seconds}s\"]\n"
        ));
    }
    let route: Vec<String> = (1..=parts).map(|part| format!("part{part}")).collect();
    text + &format!("  start -> {} -> done\n}}\n", route.join(" -> "))
}

/// Returns glovebox.toml: the toolchains of the needed programs, as `glovebox init` names them.
fn settings(behaviour: &Behaviour, tier: &str, with_settings: bool) -> String {
    let mut text = format!("sandbox.require = \"{tier}\"\n");
    let needs = |program: &str| behaviour.needs.iter().any(|need| need.split(':').next() == Some(program));
    let mut toolchains: Vec<&str> =
        TOOLCHAINS.iter().filter(|(program, _)| needs(program)).map(|(_, toolchain)| *toolchain).collect();
    toolchains.dedup();
    if !toolchains.is_empty() {
        text.push_str(&format!("exec.toolchains = {toolchains:?}\n"));
    }
    for line in behaviour.settings.iter().filter(|_| with_settings) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns why a run failed: the last line that the failed stage printed, or else what Glovebox says.
fn reason(ended: &Ended, parts: usize, folders: &Folders) -> String {
    let run = folders.base.join("runs").join(RUN);
    let said = fs::read(run.join("final.json")).ok().and_then(|bytes| {
        let json: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        Some(json["failure_reason"].as_str()?.to_owned())
    });
    let part = (1..=parts).rev().map(|part| run.join(format!("part{part}"))).find(|folder| folder.exists());
    let printed = part
        .and_then(|part| last_line(&part.join("tool.stderr.txt")).or_else(|| last_line(&part.join("tool.stdout.txt"))));
    match (said, printed) {
        (Some(said), Some(printed)) if said.starts_with("tool_exit_code_") => printed,
        (Some(said), _) => said,
        (None, _) if ended.is_late => "the run did not end".to_owned(),
        (None, _) => ended.last_line().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_toolchains_of_the_needed_programs() {
        let text = "# why: w\n# source: https://s\n# needs: python3:venv npm node\n# setting: limits.x = 1\ntrue\n";
        let behaviour = Behaviour::parse("g/n", text).unwrap();
        let expected = "sandbox.require = \"full\"\nexec.toolchains = [\"python\", \"node\"]\n";
        assert_eq!(settings(&behaviour, "full", false), expected);
        assert_eq!(settings(&behaviour, "full", true), format!("{expected}limits.x = 1\n"));
    }

    #[test]
    fn parts_follow_each_other() {
        let text = pipeline(2);
        assert!(text.contains("start -> part1 -> part2 -> done"), "{text}");
        assert_eq!(text.matches("tool_command").count(), 2);
    }
}
