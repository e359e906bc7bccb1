//! Checks that every `glovebox` command and flag, every `cargo xtask` task, and the target of every link in the
//! documentation exists.

use crate::{files, none, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the commands of a page: lines of its fenced blocks without `$ ` and comments, and code spans in its
/// sentences.
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

/// Commands whose flags are defined by their subcommands.
const GROUPS: [&str; 4] = ["fleet", "plugin", "tokens", "trust"];

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

/// Returns the lines of a page outside of fenced blocks.
fn prose(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    };
    page.lines().filter(is_prose).collect()
}

/// Returns the anchors that GitHub generates for the headings of a page.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    headings
        .map(|line| line.trim_start_matches('#').trim().chars().filter(kept).collect::<String>())
        .map(|heading| heading.to_lowercase().replace(' ', "-"))
        .collect()
}

/// Returns the targets of all links of a page to files of the repository.
fn targets(page: &str) -> Vec<String> {
    let text = prose(page).join("\n");
    // Brackets in code are not links.
    let plain: Vec<&str> = text.split('`').step_by(2).collect();
    let plain = plain.join("");
    let links = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut findings, mut count) = (Vec::new(), 0);
    for page in files("md") {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for target in targets(&text) {
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() { root().join(&page) } else { beside(&page, path) };
            let is_known = |anchor: &str| {
                fs::read_to_string(&path).is_ok_and(|text| anchors(&text).iter().any(|known| known == anchor))
            };
            if !path.exists() || !anchor.is_empty() && !is_known(anchor) {
                findings.push(format!("{page}: no `{target}`"));
            }
        }
    }
    assert!(count > 300, "the search found {count} links");
    none(&findings);
}

/// Returns the path of a link target that is relative to the folder of the page.
fn beside(page: &str, path: &str) -> PathBuf {
    root().join(page).parent().unwrap_or(Path::new("")).join(path)
}

#[test]
fn links_and_headings_are_recognised() {
    let page = "# A `b` c\n[x](y.md#z) `[k](l)`\n```sh\n# no heading [m](n)\n```\n[w](https://e.org) [v](#a-b-c)\n";
    assert_eq!(targets(page), ["y.md#z", "#a-b-c"]);
    assert_eq!(anchors(page), ["a-b-c"]);
}
