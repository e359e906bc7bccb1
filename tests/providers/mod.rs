//! A project whose model is `glovebox fake-llm`: its answers, the requests that it got, and the search for its key.

pub(crate) mod stand_in;

use crate::workbench::{Answer, Workbench, glovebox_in};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The key of the fake provider.
pub(crate) const KEY: &str = "sk-7f3a9c51e2d84b06";

/// Every wire format, by its name in `glovebox.toml`.
pub(crate) const FAMILIES: [&str; 5] = ["openai", "anthropic", "gemini", "openai-compatible", "ollama"];

/// One scripted answer.
#[derive(Clone)]
pub(crate) struct Turn(Value);

impl Turn {
    pub(crate) fn text(text: &str) -> Self {
        Self(json!({ "text": text }))
    }

    /// Returns an answer whose text is streamed in these pieces, with this many milliseconds between two events.
    pub(crate) fn slow(pieces: &[&str], pause_ms: u64) -> Self {
        Self(json!({ "pieces": pieces, "pause_ms": pause_ms }))
    }

    pub(crate) fn tool(name: &str, arguments: Value) -> Self {
        Self(json!({ "tool": [{ "name": name, "arguments": arguments }] }))
    }

    /// Returns an answer with several calls, each with `name` and `arguments`.
    pub(crate) fn tools(calls: &[Value]) -> Self {
        Self(json!({ "tool": calls }))
    }

    /// Returns a call whose arguments are sent unchanged, even if they are not valid JSON.
    pub(crate) fn raw(name: &str, arguments: &str) -> Self {
        Self(json!({ "tool": [{ "name": name, "raw_arguments": arguments }] }))
    }

    pub(crate) fn fill(self, bytes: usize) -> Self {
        self.with("fill_bytes", json!(bytes))
    }

    pub(crate) fn endless(self) -> Self {
        self.with("endless", json!(true))
    }

    /// Delays the answer by this many milliseconds.
    pub(crate) fn after(self, delay_ms: u64) -> Self {
        self.with("delay_ms", json!(delay_ms))
    }

    /// Adds a text to an answer with calls.
    pub(crate) fn and_text(self, text: &str) -> Self {
        self.with("text", json!(text))
    }

    pub(crate) fn error(name: &str) -> Self {
        Self(json!({ "error": name }))
    }

    pub(crate) fn usage(self, input: u64, output: u64) -> Self {
        self.with("usage", json!({ "input": input, "output": output }))
    }

    pub(crate) fn of(self, model: &str) -> Self {
        self.with("model", json!(model))
    }

    pub(crate) fn cut(self, how: &str) -> Self {
        self.with("cut", json!(how))
    }

    pub(crate) fn saying(self, message: &str) -> Self {
        self.with("message", json!(message))
    }

    /// Sends the first piece of the answer and then nothing.
    pub(crate) fn stall(self) -> Self {
        self.with("stall", json!(true))
    }

    pub(crate) fn repeat(self) -> Self {
        self.with("repeat", json!(true))
    }

    /// Uses the answer only for requests that contain this text.
    pub(crate) fn when(self, text: &str) -> Self {
        self.with("when", json!(text))
    }

    /// Names the number of seconds after which the caller may continue.
    pub(crate) fn resuming_in(self, seconds: u64) -> Self {
        self.with("retry_after", json!(seconds))
    }

    /// Allows the caller to repeat the request at once.
    pub(crate) fn at_once(self) -> Self {
        self.with("retry_after", json!(0))
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.0[name] = value;
        self
    }
}

/// A project and the process of its provider.
pub(crate) struct Bench {
    work: Workbench,
    provider: Child,
}

impl Bench {
    pub(crate) fn new(pipeline: &str, family: &str, turns: &[Turn]) -> Self {
        Self::priced(pipeline, family, turns, "price = { input = 3, output = 15 }")
    }

    pub(crate) fn unpriced(pipeline: &str, family: &str, turns: &[Turn]) -> Self {
        Self::priced(pipeline, family, turns, "")
    }

    fn priced(pipeline: &str, family: &str, turns: &[Turn], price: &str) -> Self {
        let work = Workbench::with_pipeline(pipeline);
        let (provider, _url) = start_provider(&work, family, turns, price);
        Self { work, provider }
    }

    /// Returns the project.
    pub(crate) fn workbench(&self) -> &Workbench {
        &self.work
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.work.write(path, text);
    }

    /// Writes a binary file of the project.
    pub(crate) fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let file = self.work.project().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }

    pub(crate) fn project_folder(&self) -> std::path::PathBuf {
        self.work.project()
    }

    /// Reads a file of the project.
    pub(crate) fn project_text(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.project().join(path)).unwrap()
    }

    /// Makes a file of the project executable.
    pub(crate) fn make_program(&self, path: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.work.project().join(path);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn run(&self) -> Answer {
        self.with_key(&["run", "pipeline.dot", "--run-id", "r"])
    }

    pub(crate) fn resume(&self) -> Answer {
        self.with_key(&["resume", "r"])
    }

    pub(crate) fn with_key(&self, words: &[&str]) -> Answer {
        self.with_variables(words, &[("FAKE_KEY", KEY)])
    }

    /// Runs a command with these environment variables.
    pub(crate) fn with_variables(&self, words: &[&str], variables: &[(&str, &str)]) -> Answer {
        Answer::of(self.work.bare(words).envs(variables.iter().copied()))
    }

    /// Starts a run, waits until the provider has got this many requests, and kills the run.
    pub(crate) fn kill_run_after(&self, requests: usize) {
        let mut run = self.start_run(requests);
        run.kill().unwrap();
        run.wait().unwrap();
    }

    /// Starts a run, waits until it has written this many records, and kills it.
    pub(crate) fn kill_run_at_record(&self, records: usize) {
        let mut run = self.work.bare(&["run", "pipeline.dot", "--run-id", "r", "--json"]);
        let mut run = run.env("FAKE_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(run.stdout.take().unwrap()).lines().take(records);
        assert_eq!(lines.map(Result::unwrap).count(), records);
        run.kill().unwrap();
        run.wait().unwrap();
    }

    /// Starts a run, waits until this holds, and kills the run.
    pub(crate) fn kill_run_in(&self, holds: &dyn Fn() -> bool) {
        let mut run = self.start(&["run", "pipeline.dot", "--run-id", "r", "-q"]);
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        run.kill().unwrap();
        run.wait().unwrap();
    }

    /// Starts a command with the key, without its output.
    pub(crate) fn start(&self, words: &[&str]) -> Child {
        let mut command = self.work.bare(words);
        command.env("FAKE_KEY", KEY).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Starts a command with the key and with piped output.
    pub(crate) fn start_piped(&self, words: &[&str]) -> Child {
        let mut command = self.work.bare(words);
        command.env("FAKE_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// As [`Self::kill_run_after`], but interrupts the run with SIGINT.
    pub(crate) fn interrupt_run_after(&self, requests: usize) {
        self.interrupt(self.start_run(requests));
    }

    /// Interrupts a run with SIGINT and waits for its end.
    pub(crate) fn interrupt(&self, mut run: Child) {
        self.interrupt_child(&mut run);
    }

    /// Interrupts a command with SIGINT and waits for its end.
    pub(crate) fn interrupt_child(&self, run: &mut Child) {
        let sent = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(run.wait().unwrap().code(), Some(130));
    }

    /// Starts a run and waits until the provider has got this many requests.
    pub(crate) fn start_run(&self, requests: usize) -> Child {
        let run = self.start(&["run", "pipeline.dot", "--run-id", "r", "-q"]);
        self.asked(requests);
        run
    }

    /// Waits until the provider has got this many requests.
    pub(crate) fn asked(&self, requests: usize) {
        let began = Instant::now();
        while self.times_asked() < requests {
            assert!(began.elapsed() < Duration::from_secs(60), "asked {} times", self.times_asked());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn without_key(&self) -> Answer {
        self.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
    }

    pub(crate) fn glovebox(&self, words: &[&str]) -> Answer {
        Answer::of(&mut self.work.bare(words))
    }

    pub(crate) fn show(&self) -> Value {
        self.glovebox(&["show", "r", "--json"]).ends(0).json()
    }

    pub(crate) fn run_folder(&self) -> std::path::PathBuf {
        self.work.run_folder("r")
    }

    pub(crate) fn has_run(&self) -> bool {
        self.work.run_folder("r").exists()
    }

    pub(crate) fn read_in_run(&self, path: &str) -> String {
        self.work.run_text("r", path)
    }

    pub(crate) fn run_json(&self, path: &str) -> Value {
        self.work.run_json("r", path)
    }

    /// Returns the number of requests so far.
    fn times_asked(&self) -> usize {
        let log = std::fs::read(self.work.outside().join("log.ndjson")).unwrap();
        log.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Returns the bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        requests_to(&self.work)
    }

    /// Checks that the key is neither in the project, nor in the run, nor in the body of a request.
    #[track_caller]
    pub(crate) fn has_no_key(&self) {
        let found = holding_key(&self.work.project());
        assert!(found.is_empty(), "the key is in {found:?}");
        assert!(self.requests().iter().all(|request| !request.contains(KEY)), "the key is in a request's body");
    }
}

/// Starts the provider of a project, and names it in `glovebox.toml`. Returns its process and its address.
pub(crate) fn start_provider(work: &Workbench, family: &str, turns: &[Turn], price: &str) -> (Child, String) {
    let script = json!({ "key": KEY, "answer": turns.iter().map(|turn| turn.0.clone()).collect::<Vec<_>>() });
    std::fs::write(work.outside().join("answers.toml"), toml::to_string(&script).unwrap()).unwrap();
    let mut command = glovebox_in(work.outside());
    command.args(["fake-llm", "answers.toml", "--log", "log.ndjson"]).stdout(Stdio::piped());
    let mut provider = command.spawn().unwrap();
    let mut url = String::new();
    BufReader::new(provider.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim();
    work.write(
        "glovebox.toml",
        &format!(
            "[models.it]\nprovider = \"{family}\"\nmodel = \"exact-model\"\nendpoint = \"{url}\"\nkey_env = \"FAKE_KEY\"\n{price}\n"
        ),
    );
    (provider, url.to_owned())
}

/// Returns the bodies of all requests to the provider of a project so far.
pub(crate) fn requests_to(work: &Workbench) -> Vec<String> {
    let log = std::fs::read_to_string(work.outside().join("log.ndjson")).unwrap();
    let body = |line: &str| serde_json::from_str::<Value>(line).unwrap()["body"].to_string();
    // The last line may be incomplete.
    log.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(body).collect()
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.provider.kill();
        let _ = self.provider.wait();
    }
}

/// Returns every file below a folder with the key in its content or name.
fn holding_key(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.display().to_string();
        if kind.is_dir() {
            found.extend(holding_key(&path));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let has_key = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            found.extend((has_key || name.contains(KEY)).then_some(name));
        }
    }
    found
}
