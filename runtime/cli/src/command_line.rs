//! `run -- COMMAND`: the pipeline and the settings for one command, made in memory.
//!
//! The pipeline is an ordinary one, with one tool stage. The layers below handle it like a pipeline from a file.

use crate::exit::{Exit, Stop};
use crate::setup::starter;
use crate::terminal::visible;
use glovebox_pipeline::dot::quote;
use glovebox_plan::config::Config;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::survey::Survey;
use glovebox_plan::prepare::toolchain;
use glovebox_record::scope::Entry;
use std::path::Path;

/// The pipeline's name where other pipelines have the name of their file.
pub const FILE_NAME: &str = "<command line>";
/// Reserved words of the shell, which it does not read as the name of a program.
const RESERVED: [&str; 16] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function",
    "select", "time",
];

/// Returns true for the pipeline of a command line.
pub fn is_command_line(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == FILE_NAME)
}

/// Returns the pipeline for a command that may change the paths in `write`, or the whole project.
pub fn pipeline(command: &[String], write: &[String], workdir: &Path) -> Result<String, Stop> {
    let entries = write.iter().map(|path| entry(path, workdir)).collect::<Result<Vec<Entry>, Stop>>()?;
    let scope = if entries.is_empty() { vec![Entry::whole()] } else { entries };
    let scope = scope.iter().map(written).collect::<Vec<_>>().join(",");
    Ok(format!(
        "digraph command {{\n  graph [goal=\"Run one command\"]\n  start [shape=Mdiamond]\n  command [shape=parallelogram, \
         allowed_write_paths={}, tool_command={}]\n  done [shape=Msquare]\n  start -> command -> done\n}}\n",
        quote(&scope),
        quote(&shell_text(command))
    ))
}

/// Returns the entry as a pipeline file has it.
fn written(entry: &Entry) -> String {
    if *entry == Entry::whole() { "./".to_owned() } else { entry.to_string() }
}

/// Parses a path of `--write`. The name of a folder means everything in it, with or without a final slash.
fn entry(path: &str, workdir: &Path) -> Result<Entry, Stop> {
    let shown = visible::line(path);
    if path.contains(',') {
        let stop = Stop::new(Exit::Usage, format!("`--write {shown}`: the path contains a comma"));
        return Err(stop.with_help("name the folder that contains it"));
    }
    let parsed = Entry::parse(path).map_err(|problem| {
        Stop::new(Exit::Usage, format!("`--write`: {problem}"))
            .with_help("name a file or folder relative to the project, such as `src/`")
    })?;
    Ok(if workdir.join(path).is_dir() { parsed.as_folder() } else { parsed })
}

/// Returns a text that a POSIX shell reads as exactly these words.
fn shell_text(command: &[String]) -> String {
    let words = command.iter().enumerate().map(|(index, word)| quoted(word, index == 0));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word that a shell would not read literally.
///
/// `check` reports paths that lead out of the workspace, because a pipeline file is written for other machines too. A
/// command line is for this machine, and the sandbox decides what it can reach. So the character by which `check`
/// recognizes such a path is escaped with a backslash.
fn quoted(word: &str, is_program: bool) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%,=".contains(character);
    let is_read_otherwise = is_program && (word.contains('=') || word.starts_with('-') || RESERVED.contains(&word));
    let needs_quotes = word.is_empty() || is_read_otherwise || !word.chars().all(is_plain);
    let (quote, open) = if needs_quotes { ("'", "'") } else { ("", "") };
    let (mut text, mut before) = (open.to_owned(), None);
    for character in word.chars() {
        match character {
            '\'' => text.push_str("'\\''"),
            _ if is_reported(character, before) => {
                [quote, "\\"].iter().for_each(|part| text.push_str(part));
                text.push(character);
                text.push_str(quote);
            }
            _ => text.push(character),
        }
        before = Some(character);
    }
    text + quote
}

/// Returns true for a character by which a path can lead out of the workspace.
fn is_reported(character: char, before: Option<char>) -> bool {
    let follows = |separators: &str| before.is_none_or(|at| at.is_whitespace() || separators.contains(at));
    match character {
        '/' => follows("\"'`;)"),
        '~' => follows("=:\"'`(<>|&;"),
        '.' => before == Some('.'),
        _ => false,
    }
}

/// Returns the project of a command line with the settings that `init` would write, if the project has no `glovebox.toml`. A
/// toolchain that this machine does not have is left out, because the command may not need it.
pub fn with_settings(mut project: Project, pipeline: Option<&Path>) -> Result<Project, Stop> {
    if project.has_config || !pipeline.is_some_and(is_command_line) {
        return Ok(project);
    }
    let mut survey = Survey::for_project(&project.workdir);
    for part in &mut survey.parts {
        part.toolchains.retain(|known| toolchain::missing(*known).is_none());
    }
    let found = Config::parse(&starter::settings(&survey), FILE_NAME).map_err(|problems| {
        let first = problems.first().map(|problem| problem.to_diagnostic().message).unwrap_or_default();
        Stop::new(Exit::Internal, format!("the settings of `init` are not valid: {first}"))
    })?;
    project.config = Config { verify: project.config.verify.take(), ..found };
    Ok(project)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_pipeline::{Inputs, Source};
    use std::process::Command;

    /// The words that a shell passes on, each on a line of its own.
    fn passed_on(words: &[&str]) -> Vec<u8> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Command::new("sh").args(["-c", &shell_text(&words)]).output().unwrap().stdout
    }

    #[test]
    fn a_shell_reads_exactly_the_words() {
        let words = [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME `id` $(id)",
            "a\nb\t",
            "\\",
            "\\n",
            "\"",
            "*",
            "~",
            "~/x",
            "../a/../b",
            "..",
            "/etc",
            "/",
            "a=/b",
            "x 'y/z' /etc ~ ..",
            "#",
            "!",
            "-n",
            "ä漢",
            "a;b|c&d>e<f",
            "if",
            "''",
            "'/'",
        ];
        let printf = [&["printf", "%s\\0"][..], &words].concat();
        let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        assert_eq!(String::from_utf8_lossy(&passed_on(&printf)), String::from_utf8_lossy(&expected));
        for (program, text) in [
            ("cargo", "cargo"),
            ("./run.sh", "./run.sh"),
            ("/bin/true", "\\/bin/true"),
            ("A=1", "'A=1'"),
            ("if", "'if'"),
            ("-x", "'-x'"),
        ] {
            assert_eq!(quoted(program, true), text);
        }
        assert_eq!((quoted("A=1", false), quoted("if", false)), ("A=1".to_owned(), "if".to_owned()));
    }

    #[test]
    fn the_pipeline_has_no_finding_whatever_the_command_is() {
        let workdir = Path::new(".");
        for words in [
            &["cargo", "test"][..],
            &["/usr/bin/python3", "-c", "print('/etc', '..')\n"],
            &["sh", "-c", "cat \"/etc/passwd\" ~/x ../y '/z' (/w; /v) `/u`"],
            &["sed", "/a/d", "-e", "s/~/../"],
            &["HOME=~", "--prefix=~/x", "a:~/b", "x=/y"],
            &["printf", "\\d \"$goal\" \r\n"],
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let text = pipeline(&words, &[], workdir).unwrap();
            let checked = glovebox_pipeline::check(Source::new(&text), &Inputs::default());
            let found: Vec<_> = checked.diagnostics.iter().map(|found| &found.message).collect();
            assert_eq!(found, [] as [&str; 0], "{text}");
            let pipeline = checked.pipeline.unwrap();
            let node = pipeline.nodes.iter().find(|node| node.id.as_str() == "command").unwrap();
            let command =
                node.attributes.get(glovebox_pipeline::key::TOOL_COMMAND).map(|attribute| attribute.value.to_string());
            assert_eq!(command, Some(shell_text(&words)));
        }
    }

    #[test]
    fn a_write_scope_is_a_list_of_paths_of_the_project() {
        let scope = |write: &[&str]| {
            let write: Vec<String> = write.iter().map(|path| (*path).to_owned()).collect();
            let workdir = Path::new(env!("CARGO_MANIFEST_DIR"));
            let text = pipeline(&["true".to_owned()], &write, workdir).map_err(|stop| stop.message)?;
            let (_, rest) = text.split_once("allowed_write_paths=\"").unwrap();
            Ok::<_, String>(rest.split_once('"').unwrap().0.to_owned())
        };
        assert_eq!(scope(&[]).as_deref(), Ok("./"));
        assert_eq!(scope(&["src", "Cargo.toml", "new/", "."]).as_deref(), Ok("src/,Cargo.toml,new/,./"));
        for refused in ["a,b", "../x", "/etc", ""] {
            assert!(scope(&[refused]).is_err(), "{refused}");
        }
    }
}
