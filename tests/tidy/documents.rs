//! Commands in the documentation: every `glovebox` command and flag, and every `cargo xtask` task, must exist.

use crate::{files, none, root};
use std::fs;
use std::process::Command;

/// The commands of a page: lines of its fenced blocks, `$ ` and comments removed, and code in its sentences.
fn commands(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut commands = Vec::new();
    let inline = page.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2));
    commands.extend(inline.flat_map(|span| span.split("&&")).map(|span| span.trim().to_owned()));
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            commands.push(line.trim().trim_start_matches("$ ").split(" #").next().unwrap().trim().to_owned());
        }
    }
    commands
}

fn help_of(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_glovebox")).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "glovebox {} --help", words.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

fn knows(help: &str, word: &str) -> bool {
    help.split(|character: char| !character.is_alphanumeric() && character != '-').any(|found| found == word)
}

/// Commands whose flags are those of their subcommands.
const GROUPS: [&str; 2] = ["plugin", "trust"];

#[test]
fn commands_in_the_documentation_are_real() {
    let (top, xtask) = (help_of(&[]), fs::read_to_string(root().join("xtask/src/main.rs")).unwrap());
    let mut findings = Vec::new();
    for page in files("md") {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for command in commands(&text) {
            let words: Vec<&str> = command.split_whitespace().collect();
            if let ["cargo", "xtask", task, ..] = words[..] {
                if !xtask.contains(&format!("\"{task}\"")) {
                    findings.push(format!("{page}: `{command}`: xtask knows no `{task}`"));
                }
                continue;
            }
            let Some(at) = words.iter().position(|word| *word == "glovebox" || word.ends_with("/glovebox")) else {
                continue;
            };
            let Some(name) = words.get(at + 1).filter(|_| at == 0) else { continue };
            if *name == "help" {
                continue;
            }
            if !knows(&top, name) {
                findings.push(format!("{page}: `{command}`: no command `{name}`"));
                continue;
            }
            let help =
                help_of(&[name]) + &if GROUPS.contains(name) { help_of(&[name, words[at + 2]]) } else { String::new() };
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap();
                if !knows(&help, flag) {
                    findings.push(format!("{page}: `{command}`: no flag `{flag}`"));
                }
            }
        }
    }
    none(&findings);
}
