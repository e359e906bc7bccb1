//! A temporary project and the real `glovebox` binary, for all black-box suites.
//!
//! The environment of a command contains only PATH, HOME and variables of the toolchain, so that no test depends on the
//! user who runs it. All suites of one build share the cache of compiled components, because compiling a component
//! takes a second.

pub(crate) mod dice;
pub(crate) mod journal;
mod lives;
#[allow(dead_code, reason = "the suites of several crates use it")]
pub(crate) mod nats;
mod not_run;
mod plugin_tools;
pub(crate) mod processes;
pub(crate) mod raw_nats;

pub(crate) use not_run::not_run;
pub(crate) use plugin_tools::{as_author, is_plugin_tool_here, search_path};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A valid pipeline with one stage.
pub(crate) const LINEAR: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [shape=box, prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> build -> exit
}
";

/// A project folder and a folder next to it, both removed after the test.
pub(crate) struct Workbench {
    folder: tempfile::TempDir,
}

/// The exit code and output of a command.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    said: String,
}

/// Returns true if a program is on the search path.
pub(crate) fn is_on_this_machine(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the folder in which the commands of all workbenches store the user's key.
pub(crate) fn state_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// Returns a `glovebox` command in this folder, with the environment of the workbenches.
pub(crate) fn glovebox_in(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("component-cache");
    command.env("GLOVEBOX_STATE_DIR", state_dir());
    command.env("GLOVEBOX_DATA_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("data"));
    command.env("GLOVEBOX_CACHE_DIR", cache).env("TZ", "UTC").env("TERM", "dumb");
    command
}

/// Adds the arguments of another command to a command, which then runs in the same folder with exactly the same variables.
pub(crate) fn like(mut command: Command, other: &Command) -> Command {
    command.args(other.get_args()).env_clear().stdin(Stdio::null());
    command.envs(other.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = other.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

impl Workbench {
    /// Creates an empty project.
    pub(crate) fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(bench.project()).unwrap();
        bench
    }

    /// Creates a project with this text as `pipeline.dot`.
    pub(crate) fn with_pipeline(text: &str) -> Self {
        let bench = Self::new();
        bench.write("pipeline.dot", text);
        bench
    }

    /// Creates a project as a copy of a folder of the repository, without build output.
    pub(crate) fn copy_of(folder: &str) -> Self {
        let bench = Self::new();
        copy_tree(&root().join(folder), &bench.project());
        bench
    }

    /// Returns the folder of the project.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns the folder that contains the project. No stage can see its other content.
    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of the plugins that commands of this workbench pull.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.outside().join("data")
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.project().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Reads a file of the project.
    pub(crate) fn read(&self, path: &str) -> String {
        let file = self.project().join(path);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Returns true if the project has a file, folder or link with this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.project().join(path).symlink_metadata().is_ok()
    }

    /// Returns a command in the project. A run without a script gets simulated answers, since most suites are not about
    /// models.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        let is_run = words.first() == Some(&"run");
        let has_answers = words.iter().any(|word| word.starts_with("--script") || *word == "--simulate");
        if is_run && !has_answers {
            command.arg("--simulate");
        }
        command
    }

    /// Returns a command in the project with exactly these arguments.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = glovebox_in(&self.project());
        command.env("GLOVEBOX_DATA_DIR", self.data_dir()).env("DOCKER_CONFIG", self.outside().join("docker"));
        command.args(words);
        command
    }

    /// Runs a command in the project and waits for its end.
    pub(crate) fn glovebox(&self, words: &[&str]) -> Answer {
        Answer::of(&mut self.command(words))
    }

    /// Runs a command line of a README, given without its `glovebox`.
    pub(crate) fn line(&self, line: &str) -> Answer {
        Answer::of(&mut self.bare(&line.split_whitespace().collect::<Vec<_>>()))
    }

    /// Starts a command in the project with piped output.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the folder of a run.
    pub(crate) fn run_folder(&self, run: &str) -> PathBuf {
        self.project().join(".glovebox/runs").join(run)
    }

    /// Reads a JSON file of a run.
    pub(crate) fn run_json(&self, run: &str, path: &str) -> Value {
        serde_json::from_str(&self.run_text(run, path)).unwrap()
    }

    /// Reads a text file of a run.
    pub(crate) fn run_text(&self, run: &str, path: &str) -> String {
        let file = self.run_folder(run).join(path);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Returns every file of the project with its content, except for runs, to show that nothing was changed.
    pub(crate) fn snapshot(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        collect(&self.project(), &self.project(), &mut files);
        files
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            lives::check_runs(&self.project().join(".glovebox"));
        }
    }
}

impl Answer {
    /// Runs a command and waits for its end.
    pub(crate) fn of(command: &mut Command) -> Self {
        let said = format!("{command:?}");
        let output = command.output().unwrap();
        Self::from_output(said, &output)
    }

    /// Waits for the end of a started command.
    pub(crate) fn from_child(child: Child) -> Self {
        Self::from_output("started command".to_owned(), &child.wait_with_output().unwrap())
    }

    pub(crate) fn from_output(said: String, output: &std::process::Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr), said }
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}", self.transcript());
        self
    }

    /// Checks that stdout or stderr contains `words`.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        let found = self.stdout.contains(words) || self.stderr.contains(words);
        assert!(found, "expected {words:?} in {}", self.transcript());
        self
    }

    /// Checks that neither stdout nor stderr contains `words`.
    #[track_caller]
    pub(crate) fn never_says(&self, words: &str) -> &Self {
        let found = self.stdout.contains(words) || self.stderr.contains(words);
        assert!(!found, "unexpected {words:?} in {}", self.transcript());
        self
    }

    /// Parses stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.transcript()))
    }

    /// Parses each line of stdout as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {}", self.transcript())))
            .collect()
    }

    fn transcript(&self) -> String {
        format!("{}\nexit {}\n--- stdout\n{}\n--- stderr\n{}", self.said, self.code, self.stdout, self.stderr)
    }
}

/// Calls `check` for each number below `count`, on two threads.
pub(crate) fn each(count: usize, check: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count) {
                    check(at);
                }
            });
        }
    });
}

/// Copies a folder without build output and runs.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
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
