//! `cargo xtask agents`: installs the agent programs at pinned versions, and runs each in the jail with `glovebox run`.
//!
//! The provider is `glovebox fake-llm`, whose scripted answers call the program's own tools. In the first run, they read a file, edit
//! a file, run a command and look for a hold-out. In the second run, they write outside of the write scope. This is not part of the
//! tests, because it downloads 400 MB. It prints the table in docs/agents.md.

use crate::process::{cargo, demand};
use crate::{Step, process::at, repository};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};

/// Content of the file that is read.
const MARK: &str = "the mark of the file";
/// Content of the hold-out.
const SECRET: &str = "nobody may see the scenario of the blue door";
/// Output of the command.
const PRINTED: &str = "printed-42";
/// Exit code of a run that a policy stopped.
const POLICY: i32 = 6;

/// An agent program at a pinned version, and the calls of its own tools that the scripted answers contain.
struct Program {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    family: &'static str,
    /// A model that the program knows. For other models, it leaves out some of its requests' fields.
    model: &'static str,
    /// Call that reads a file. `{root}` is the path of the project.
    read: &'static str,
    /// Call that edits the file.
    edit: &'static str,
    /// Call that runs the command `{command}`.
    shell: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "codex",
        package: "@openai/codex",
        version: "0.169.0",
        family: "openai",
        model: "gpt-6.1-sol",
        read: r#"{ name = "exec_command", arguments = { cmd = "cat src/a.txt" } }"#,
        edit: r#"{ name = "exec_command", arguments = { cmd = "sed -i s/mark/seal/ src/a.txt" } }"#,
        shell: r#"{ name = "exec_command", arguments = { cmd = "{command}" } }"#,
    },
    Program {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.197",
        family: "anthropic",
        model: "claude-sonnet-5",
        read: r#"{ name = "Read", arguments = { file_path = "{root}/src/a.txt" } }"#,
        edit: r#"{ name = "Edit", arguments = { file_path = "{root}/src/a.txt", old_string = "mark", new_string = "seal" } }"#,
        shell: r#"{ name = "Bash", arguments = { command = "{command}", description = "look" } }"#,
    },
    Program {
        name: "gemini",
        package: "@google/gemini-cli",
        version: "0.61.0",
        family: "gemini",
        model: "gemini-3.1-pro-preview",
        read: r#"{ name = "read_file", arguments = { file_path = "{root}/src/a.txt" } }"#,
        edit: r#"{ name = "replace", arguments = { file_path = "{root}/src/a.txt", old_string = "mark", new_string = "seal", instruction = "mend" } }"#,
        shell: r#"{ name = "run_shell_command", arguments = { command = "{command}", description = "look" } }"#,
    },
    Program {
        name: "opencode",
        package: "opencode-ai",
        version: "1.18.33",
        family: "openai-compatible",
        model: "exact-model",
        read: r#"{ name = "read", arguments = { filePath = "{root}/src/a.txt" } }"#,
        edit: r#"{ name = "edit", arguments = { filePath = "{root}/src/a.txt", oldString = "mark", newString = "seal" } }"#,
        shell: r#"{ name = "bash", arguments = { command = "{command}", description = "look" } }"#,
    },
];

/// Installs and runs every program, and prints the table.
pub(crate) fn run() -> Step {
    let installed = install()?;
    demand(cargo(&repository()).args(["build", "--workspace", "--bin", "glovebox"]))?;
    let mut all_passed = true;
    println!(
        "| program | version | model | read | edit | command | refused write | hold-out |\n|---|---|---|---|---|---|---|---|"
    );
    for program in &PROGRAMS {
        let results = Drive::begin(program, &installed)?.results()?;
        all_passed &= results.iter().all(|passed| *passed);
        let words = results.map(|passed| if passed { "yes" } else { "**no**" });
        println!("| {} | {} | `{}` | {} |", program.package, program.version, program.model, words.join(" | "));
    }
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs the programs, unless these versions are installed already.
fn install() -> Step<PathBuf> {
    let folder = repository().join("target/agents");
    at(&folder, fs::create_dir_all(&folder))?;
    let wanted: Vec<String> = PROGRAMS.iter().map(|known| format!("{}@{}", known.package, known.version)).collect();
    let stamp = folder.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted.join("\n")) {
        return Ok(folder);
    }
    at(&folder, fs::write(folder.join("package.json"), "{\"private\":true}\n"))?;
    demand(Command::new("npm").args(["install", "--no-fund", "--no-audit"]).args(&wanted).current_dir(&folder))?;
    at(&stamp, fs::write(&stamp, wanted.join("\n")))?;
    Ok(folder)
}

/// One program with a project of its own.
struct Drive<'a> {
    program: &'a Program,
    installed: &'a Path,
    folder: PathBuf,
}

impl<'a> Drive<'a> {
    fn begin(program: &'a Program, installed: &'a Path) -> Step<Self> {
        let folder = repository().join("target/agents-driven").join(program.name);
        drop(fs::remove_dir_all(&folder));
        for part in ["project/src", "project/scripts/scenarios"] {
            let part = folder.join(part);
            at(&part, fs::create_dir_all(&part))?;
        }
        let drive = Self { program, installed, folder };
        drive.write("project/src/a.txt", format!("{MARK}\n"))?;
        drive.write("project/README.md", "keep\n")?;
        drive.write("project/scripts/scenarios/door.sh", format!("# {SECRET}\nexit 0\n"))?;
        // The git history contains the hold-out too.
        for words in
            [&["init", "-q"][..], &["add", "."], &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]]
        {
            demand(Command::new("git").args(words).current_dir(drive.folder.join("project")))?;
        }
        Ok(drive)
    }

    /// Returns whether each part worked: read, edit, command, refused write, and that the hold-out was not found.
    fn results(&self) -> Step<[bool; 5]> {
        let command = |text: &str| self.program.shell.replace("{command}", text);
        // The output of the last command shows that the commands before it ran. This output does not appear in the text of the call.
        // Gemini refuses `$(`.
        let look = command("cat scripts/scenarios/door.sh; ls -R scripts; git log -p --all; printf printed-%d 0x2a");
        let good = self.run("good", &[self.program.read.to_owned(), self.program.edit.to_owned(), look])?;
        let asked = self.read("good.log")?;
        let edited = self.read("project/.glovebox/runs/good/workspace/src/a.txt").unwrap_or_default();
        let bad = self.run("bad", &[command("echo mine > README.md")])?;
        let refused = String::from_utf8_lossy(&bad.stdout).contains("wrote disallowed files: README.md");
        if !good.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&good.stdout));
        }
        let has_looked = good.status.success() && asked.contains(PRINTED);
        Ok([
            good.status.success() && asked.contains(MARK),
            good.status.success() && edited.contains("the seal"),
            has_looked,
            bad.status.code() == Some(POLICY) && refused,
            has_looked && !asked.contains(SECRET),
        ])
    }

    /// Runs a pipeline whose model makes these tool calls, one after the other.
    fn run(&self, id: &str, calls: &[String]) -> Step<Output> {
        let project = self.folder.join("project");
        let root = project.display().to_string();
        let turn =
            |call: &String| format!("[[answer]]\ntext = \"Next.\"\ntool = [{}]\n", call.replace("{root}", &root));
        let end = "[[answer]]\ntext = \"Done.\\nOUTCOME: SUCCESS\"\nrepeat = true\n";
        self.write("answers.toml", format!("{}{end}", calls.iter().map(turn).collect::<String>()))?;
        let provider = Provider::start(&self.folder, &format!("{id}.log"))?;
        let Program { name, family, model, .. } = self.program;
        let installed = self.installed.display();
        self.write(
            "project/glovebox.toml",
            format!(
                "[models.it]\nprovider = \"{family}\"\nmodel = \"{model}\"\nendpoint = \"{}\"\nkey_env = \"FAKE_KEY\"\n\
                 [agents.{name}]\npath = \"{installed}/node_modules/.bin/{name}\"\nread = [\"{installed}\"]\n",
                provider.url
            ),
        )?;
        self.write(
            "project/pipeline.dot",
            format!(
                "digraph drive {{ start; exit; work [prompt=\"Do what the answers say\", agent.backend=\"{name}\", \
                 allowed_write_paths=\"src/\", timeout=\"120s\"]; start -> work -> exit }}\n"
            ),
        )?;
        let mut run = glovebox();
        run.args(["run", "pipeline.dot", "--run-id", id]).current_dir(&project).env("FAKE_KEY", "sk-of-the-fake");
        run.output().map_err(|error| format!("failed to start glovebox: {error}"))
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Step<()> {
        let path = self.folder.join(path);
        at(&path, fs::write(&path, text))
    }

    fn read(&self, path: impl AsRef<Path>) -> Step<String> {
        let path = self.folder.join(path);
        at(&path, fs::read_to_string(&path))
    }
}

/// A running `glovebox fake-llm`, which ends when this is dropped.
struct Provider {
    child: Child,
    url: String,
}

impl Provider {
    fn start(folder: &Path, log: &str) -> Step<Self> {
        let mut fake = glovebox();
        fake.args(["fake-llm", "answers.toml", "--log", log]).current_dir(folder).stdout(Stdio::piped());
        let mut child = fake.spawn().map_err(|error| format!("failed to start glovebox fake-llm: {error}"))?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            at(folder, BufReader::new(stdout).read_line(&mut url))?;
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn glovebox() -> Command {
    Command::new(repository().join("target/debug/glovebox"))
}
