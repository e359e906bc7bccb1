//! A headless Chromium under test, over WebDriver.
//!
//! Each test has its own driver and profile. `cargo xtask page` brings both programs.

use crate::workbench::{not_run, root};
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long the page may take to show something. The machine can be busy with other tests.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);

/// A browser, which ends with the value.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    pub(crate) driver: Child,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _closed = self.runtime.block_on(self.client.clone().close());
        let _gone = self.driver.kill().and_then(|()| self.driver.wait());
    }
}

/// A command of the driver of Chromium, besides the standard ones.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

/// Returns driver and browser: those that `cargo xtask page` brought, or those of the machine.
fn programs() -> Option<(PathBuf, PathBuf)> {
    let own = root().join("target/page/usr");
    let brought = (own.join("bin/chromedriver"), own.join("lib/chromium/chromium"));
    let installed = (PathBuf::from("/usr/bin/chromedriver"), PathBuf::from("/usr/bin/chromium"));
    [installed, brought].into_iter().find(|(driver, browser)| driver.is_file() && browser.is_file())
}

/// Returns the folders with the libraries of the browser that `cargo xtask page` brought.
fn libraries() -> String {
    let own = root().join("target/page/usr/lib");
    let folders = own.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = folders.filter(|folder| folder.to_string_lossy().ends_with("-linux-gnu"));
    let all: Vec<String> = folders
        .flat_map(|folder| [folder.clone(), folder.join("pulseaudio")])
        .map(|path| path.display().to_string())
        .collect();
    all.join(":")
}

impl Browser {
    /// Starts a browser with a window of this width. Prints that the test did not run if there is none.
    pub(crate) fn start(test: &str, width: u32) -> Option<Self> {
        let Some((driver, browser)) = programs() else {
            not_run(test, "no chromium and chromedriver: `cargo xtask page` brings them");
            return None;
        };
        let mut driver = Command::new(driver)
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .env("LD_LIBRARY_PATH", libraries())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = BufReader::new(driver.stdout.as_mut().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_suffix('.')?.rsplit_once("on port ")?.1.parse::<u16>().ok())
            .expect("the driver names its port");
        let profile = tempfile::tempdir().unwrap();
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
            format!("--window-size={width},900"),
        ];
        // Chromium's own sandbox does not start as root.
        if rustix::process::geteuid().is_root() {
            arguments.push("--no-sandbox".to_owned());
        }
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".into(), json!({ "binary": browser, "args": arguments }));
        capabilities.insert("goog:loggingPrefs".into(), json!({ "browser": "ALL" }));
        // A dialog stays open, so that the next command fails.
        capabilities.insert("unhandledPromptBehavior".into(), json!("ignore"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime
            .block_on(
                ClientBuilder::new(HttpConnector::new())
                    .capabilities(capabilities)
                    .connect(&format!("http://127.0.0.1:{port}")),
            )
            .unwrap();
        let started = Self { runtime, client, driver, _profile: profile };
        started.screen(width, 900);
        Some(started)
    }

    /// Sends a command that only this browser has.
    pub(crate) fn own(&self, path: &'static str, body: Value) -> Value {
        self.runtime.block_on(self.client.issue_cmd(Own { path, body })).unwrap()
    }

    /// Sets the size of the page. A headless window cannot be narrower than 500 pixels.
    pub(crate) fn screen(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.own("goog/cdp/execute", json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size }));
    }

    /// Sets what the user prefers, such as `prefers-color-scheme` and `dark`.
    pub(crate) fn prefer(&self, features: &[(&str, &str)]) {
        let features: Vec<Value> =
            features.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let params = json!({ "features": features });
        self.own("goog/cdp/execute", json!({ "cmd": "Emulation.setEmulatedMedia", "params": params }));
    }

    pub(crate) fn open(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap();
    }

    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).unwrap();
    }

    /// Executes a script in the page, and returns its value.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> Value {
        self.runtime
            .block_on(self.client.execute(script, Vec::new()))
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait(&self, expression: &str) {
        let began = Instant::now();
        while self.run(&format!("return Boolean({expression})")) != true {
            if began.elapsed() > SHOWN_WITHIN {
                panic!("{expression} did not become true: {}\n{:?}", self.text(), self.log());
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Returns the text that the page shows.
    pub(crate) fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().unwrap().to_owned()
    }

    /// Goes to a place of the page.
    pub(crate) fn go(&self, place: &str) {
        self.run(&format!("location.hash = {}", json!(place)));
    }

    /// Presses the button with this name, when it is there.
    #[track_caller]
    pub(crate) fn press(&self, name: &str) {
        let found =
            format!("[...document.querySelectorAll('button')].find((one) => one.innerText.trim() === {})", json!(name));
        self.wait(&found);
        self.run(&format!("{found}.click()"));
    }

    /// Types keys, to whatever has the focus.
    pub(crate) fn keys(&self, keys: &str) {
        for value in keys.chars() {
            let strokes = [KeyAction::Down { value }, KeyAction::Up { value }];
            let strokes = strokes.into_iter().fold(KeyActions::new("keyboard".into()), KeyActions::then);
            self.runtime.block_on(self.client.perform_actions(strokes)).unwrap();
        }
    }

    /// Shows another tab while it calls the function.
    pub(crate) fn hide_and_show(&self, meanwhile: impl Fn()) {
        let own = self.runtime.block_on(self.client.window()).unwrap();
        let other = self.runtime.block_on(self.client.new_window(true)).unwrap();
        self.runtime.block_on(self.client.switch_to_window(other.handle)).unwrap();
        meanwhile();
        self.runtime.block_on(self.client.close_window()).unwrap();
        self.runtime.block_on(self.client.switch_to_window(own)).unwrap();
    }

    /// Returns the messages of the browser since the last call.
    pub(crate) fn log(&self) -> Vec<String> {
        let entries = self.own("se/log", json!({ "type": "browser" }));
        let message = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        entries.as_array().into_iter().flatten().map(message).collect()
    }

    /// Checks that the page loaded only files of its server, and that the browser has nothing to report.
    #[track_caller]
    pub(crate) fn is_quiet(&self) {
        let foreign = self.run(
            "return performance.getEntriesByType('resource').map((one) => one.name)
               .filter((name) => new URL(name).origin !== location.origin)",
        );
        assert_eq!(foreign, json!([]), "requests to other hosts");
        // Refusals of the server are notes here: the page shows them. The picture is what a browser asks each server for.
        let is_note = |line: &String| line.contains("/favicon.ico") || line.contains("responded with a status of 4");
        let said: Vec<String> = self.log().into_iter().filter(|line| !is_note(line)).collect();
        assert!(said.is_empty(), "{said:?}");
    }

    pub(crate) fn picture(&self) -> Vec<u8> {
        self.runtime.block_on(self.client.screenshot()).unwrap()
    }
}
