//! A temporary project and the real `glovebox` binary over it: what every black-box suite works with.
//!
//! The environment of a command is made here from nothing but PATH, HOME and what the toolchain needs, so that no test depends
//! on who runs it. The component cache is shared by all suites of one build, since compiling a component takes a second.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "each suite includes this file and uses its part of it")]

pub mod journal;
mod not_run;

pub use not_run::not_run;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A valid pipeline with one stage.
pub const LINEAR: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [shape=box, prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> build -> exit
}
";

/// A project folder and a runs folder that are gone after the test.
pub struct Workbench {
    folder: tempfile::TempDir,
}

/// How a command ended and what it printed.
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    said: String,
}

/// True if a program is on the search path.
pub fn is_on_this_machine(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The standard library for components that `cargo xtask components` built, where the toolchain has none.
pub fn wasm_sysroot() -> Option<PathBuf> {
    let printed = |words: &[&str]| {
        let output = Command::new("rustc").current_dir(root()).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let libraries = printed(&["--print", "target-libdir", "--target", "wasm32-wasip2"]);
    let is_std = |name: &str| name.starts_with("libstd-");
    let mut names = Path::new(libraries.trim()).read_dir().into_iter().flatten().flatten();
    if names.any(|entry| is_std(&entry.file_name().to_string_lossy())) {
        return None;
    }
    let version = printed(&["-vV"]);
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap();
    let built = root().join("target/sysroot").join(commit).read_dir().unwrap().map(|entry| entry.unwrap().path());
    Some(built.into_iter().find(|sysroot| sysroot.join("complete").is_file()).unwrap())
}

/// Where the commands of every bench keep the key of their user.
pub fn state_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// A `glovebox` command with the bench's environment, in a folder.
pub fn glovebox_in(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("component-cache");
    command.env("GLOVEBOX_STATE_DIR", state_dir());
    command.env("GLOVEBOX_CACHE_DIR", cache).env("TZ", "UTC").env("TERM", "dumb");
    command
}

impl Workbench {
    /// An empty project.
    pub fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(bench.project()).unwrap();
        bench
    }

    /// A project with a pipeline in `pipeline.dot`.
    pub fn with_pipeline(text: &str) -> Self {
        let bench = Self::new();
        bench.write("pipeline.dot", text);
        bench
    }

    /// A project that is a copy of a folder of the repository, build results left out.
    pub fn copy_of(folder: &str) -> Self {
        let bench = Self::new();
        copy_tree(&root().join(folder), &bench.project());
        bench
    }

    /// The user's project.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// A folder beside the project that no stage has anything to do with.
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) {
        let file = self.project().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Reads a file of the project.
    pub fn read(&self, path: &str) -> String {
        let file = self.project().join(path);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// True when the project has something of that name.
    pub fn has(&self, path: &str) -> bool {
        self.project().join(path).symlink_metadata().is_ok()
    }

    /// A command in the project. A run without a script gets simulated answers, since most suites are not about models.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        let is_run = words.first() == Some(&"run");
        let has_answers = words.iter().any(|word| word.starts_with("--script") || *word == "--simulate");
        if is_run && !has_answers {
            command.arg("--simulate");
        }
        command
    }

    /// A command in the project with these words and no other.
    pub fn bare(&self, words: &[&str]) -> Command {
        let mut command = glovebox_in(&self.project());
        command.args(words);
        command
    }

    /// Runs a command in the project to its end.
    pub fn glovebox(&self, words: &[&str]) -> Answer {
        Answer::of(&mut self.command(words))
    }

    /// Runs a command line as it stands in a README, without its `glovebox`.
    pub fn line(&self, line: &str) -> Answer {
        Answer::of(&mut self.bare(&line.split_whitespace().collect::<Vec<_>>()))
    }

    /// Starts a command in the project; its output is piped.
    pub fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A run's folder.
    pub fn run_folder(&self, run: &str) -> PathBuf {
        self.project().join(".glovebox/runs").join(run)
    }

    /// A JSON file of a run.
    pub fn run_json(&self, run: &str, path: &str) -> Value {
        serde_json::from_str(&self.run_text(run, path)).unwrap()
    }

    /// A text file of a run.
    pub fn run_text(&self, run: &str, path: &str) -> String {
        let file = self.run_folder(run).join(path);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Every file of the project with its bytes, runs left out: a witness that nothing was touched.
    pub fn snapshot(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        collect(&self.project(), &self.project(), &mut files);
        files
    }
}

impl Answer {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let said = format!("{command:?}");
        let output = command.output().unwrap();
        Self::from_output(said, &output)
    }

    /// Takes what a started command came to.
    pub fn from_child(child: Child) -> Self {
        Self::from_output("started command".to_owned(), &child.wait_with_output().unwrap())
    }

    fn from_output(said: String, output: &std::process::Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr), said }
    }

    /// Demands an exit code.
    #[track_caller]
    pub fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}", self.transcript());
        self
    }

    /// Demands words on either stream.
    #[track_caller]
    pub fn says(&self, words: &str) -> &Self {
        let found = self.stdout.contains(words) || self.stderr.contains(words);
        assert!(found, "expected {words:?} in {}", self.transcript());
        self
    }

    /// Demands that words are on neither stream.
    #[track_caller]
    pub fn never_says(&self, words: &str) -> &Self {
        let found = self.stdout.contains(words) || self.stderr.contains(words);
        assert!(!found, "unexpected {words:?} in {}", self.transcript());
        self
    }

    /// Stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.transcript()))
    }

    /// Stdout as JSON lines.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {}", self.transcript())))
            .collect()
    }

    fn transcript(&self) -> String {
        format!("{}\nexit {}\n--- stdout\n{}\n--- stderr\n{}", self.said, self.code, self.stdout, self.stderr)
    }
}

/// Copies a folder; build results and runs are left out.
pub fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "target" || entry.file_name() == ".glovebox" {
            continue;
        }
        if source.is_dir() {
            copy_tree(&source, &target);
        } else {
            std::fs::copy(source, target).unwrap();
        }
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.ends_with(".glovebox") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read(&path).unwrap_or_default()));
        }
    }
}
