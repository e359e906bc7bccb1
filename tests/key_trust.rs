//! A key goes only where its owner has said it may: a stranger's `glovebox.toml` names a key of the user and a host of its own.
//!
//! The witness is that host: a listener at an address of this machine that is not loopback. Before the user has confirmed it, nothing
//! connects to it; afterwards something does, so it would have seen a key.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

mod session;
mod workbench;

use session::Session;
use std::io::Read;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use workbench::{Answer, Workbench};

const KEY: &str = "sk-7f3a9c51e2d84b06";
const STAGE: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  build [prompt=\"x\", allowed_write_paths=\"src/\"]
  start -> build -> done }
";
const REFUSED: &str = "you have not confirmed that for this project";

/// A host of the project's author.
struct Witness {
    url: String,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Witness {
    /// None where this machine has no address but loopback.
    fn start() -> Option<Self> {
        // A socket for datagrams is told its address, and sends nothing.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let address =
            socket.connect("192.0.2.1:9").ok().and_then(|()| socket.local_addr().ok()).map(|found| found.ip());
        let address: IpAddr = address.filter(|found| !found.is_loopback() && !found.is_unspecified())?;
        let listener = TcpListener::bind((address, 0)).ok()?;
        let (url, seen) = (format!("https://{}", listener.local_addr().unwrap()), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                let mut bytes = vec![0; 4096];
                let count = stream.read(&mut bytes).unwrap_or(0);
                bytes.truncate(count);
                kept.lock().unwrap().push(bytes);
            }
        });
        Some(Self { url, seen })
    }

    fn has_seen(&self) -> Vec<Vec<u8>> {
        std::thread::sleep(Duration::from_millis(100));
        self.seen.lock().unwrap().clone()
    }

    #[track_caller]
    fn has_seen_nothing(&self) {
        assert_eq!(self.has_seen(), Vec::<Vec<u8>>::new());
    }
}

/// A project whose author wants a key.
struct Bench {
    work: Workbench,
}

impl Bench {
    fn new(fields: &str) -> Self {
        let work = Workbench::with_pipeline(STAGE);
        std::fs::create_dir(work.outside().join("home")).unwrap();
        let bench = Self { work };
        bench.asks_for(fields);
        bench
    }

    fn asks_for(&self, fields: &str) {
        self.work.write("glovebox.toml", &format!("[models.it]\nprovider = \"anthropic\"\nmodel = \"m\"\n{fields}\n"));
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.work.bare(words);
        let outside = self.work.outside();
        command.env("GLOVEBOX_STATE_DIR", outside.join("state")).env("HOME", outside.join("home"));
        command.env("ANTHROPIC_API_KEY", KEY).env("GITHUB_TOKEN", KEY);
        command
    }

    fn glovebox(&self, words: &[&str]) -> Answer {
        Answer::of(&mut self.command(words))
    }
}

#[test]
fn a_key_goes_nowhere_before_its_owner_said_so() {
    let Some(witness) = Witness::start() else {
        return workbench::not_run("keys and other hosts", "this machine has no address but loopback");
    };
    let elsewhere = format!("endpoint = \"{}\"", witness.url);
    let bench = Bench::new(&elsewhere);
    std::fs::write(bench.work.outside().join("home/token"), KEY).unwrap();
    // The usual key, another variable and a file: for the other host, and the latter two also for the provider's own.
    let keys = ["", "key_env = \"GITHUB_TOKEN\"", "key_file = \"~/token\""];
    let own_host = keys[1..].iter().map(|key| (*key).to_owned());
    for fields in keys.iter().map(|key| format!("{elsewhere}\n{key}")).chain(own_host) {
        bench.asks_for(&fields);
        let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
        run.ends(6)
            .says(REFUSED)
            .says("help: if that host may have the key: `glovebox models trust it`")
            .never_says(KEY);
        bench.glovebox(&["models", "test", "it"]).ends(8).says(REFUSED).never_says(KEY);
        bench.glovebox(&["models", "ls"]).ends(0).says(REFUSED).never_says(KEY);
        witness.has_seen_nothing();
    }
    assert!(!bench.work.run_folder("r").exists());
    // Certificates of the project's author would let others stand in for the provider.
    bench.work.write("ca.pem", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n");
    bench.asks_for("ca_file = \"ca.pem\"");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says(REFUSED).says("by the certificates");
}

#[test]
fn what_was_confirmed_holds_for_one_project_host_and_key() {
    let Some(witness) = Witness::start() else {
        return workbench::not_run("keys and other hosts", "this machine has no address but loopback");
    };
    let elsewhere = format!("endpoint = \"{}/v1\"", witness.url);
    let bench = Bench::new(&elsewhere);
    bench.glovebox(&["models", "trust"]).ends(0).says("you have confirmed nothing");
    let words = format!("the key of `env ANTHROPIC_API_KEY` goes to {}", witness.url);
    bench.glovebox(&["models", "trust", "it"]).ends(0).says(&words);
    bench.glovebox(&["models", "trust"]).ends(0).says(&words);
    let listed = bench.glovebox(&["models", "trust", "--json"]).ends(0).json();
    assert_eq!(listed["trusted"][0]["host"], witness.url.as_str());
    witness.has_seen_nothing();
    // The witness: now something connects to it, and what it sends is the beginning of TLS.
    bench.glovebox(&["models", "test", "it"]).ends(8).never_says(REFUSED).never_says(KEY);
    let seen = witness.has_seen();
    assert!(!seen.is_empty() && seen.iter().all(|bytes| bytes.first() == Some(&0x16)), "{seen:?}");
    assert!(seen.iter().all(|bytes| !bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes())));
    let count = seen.len();
    let other_port = witness.url.rsplit_once(':').unwrap().0.to_owned() + ":1";
    for fields in [&format!("{elsewhere}\nkey_env = \"GITHUB_TOKEN\""), &format!("endpoint = \"{other_port}\"")] {
        bench.asks_for(fields);
        bench.glovebox(&["models", "test", "it"]).ends(8).says(REFUSED);
    }
    bench.asks_for(&elsewhere);
    // The same file in another folder is another project.
    let copy = bench.work.outside().join("copy");
    workbench::copy_tree(&bench.work.project(), &copy);
    let other = Answer::of(bench.command(&["models", "test", "it", "--workdir"]).arg(&copy));
    other.ends(8).says(REFUSED);
    // What another user, or a project, has written counts for nothing.
    let folder = bench.work.outside().join("state/trusted-keys");
    let file = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    for forged in
        [text.replace("ANTHROPIC", "anthropic"), text.replacen(|first: char| first.is_ascii_hexdigit(), "x", 1)]
    {
        std::fs::write(&file, forged).unwrap();
        bench.glovebox(&["models", "test", "it"]).ends(8).says(REFUSED);
    }
    std::fs::write(&file, text).unwrap();
    assert_eq!(witness.has_seen().len(), count);
    bench.glovebox(&["models", "trust", "it", "--remove"]).ends(0).says("no longer confirmed");
    bench.glovebox(&["models", "test", "it"]).ends(8).says(REFUSED);
    assert_eq!(witness.has_seen().len(), count);
}

#[test]
fn a_person_at_the_terminal_is_asked_once() {
    let Some(witness) = Witness::start() else {
        return workbench::not_run("keys and other hosts", "this machine has no address but loopback");
    };
    let bench = Bench::new(&format!("endpoint = \"{}\"", witness.url));
    let question = "may that host have this key? [y/N]";
    let run = |id: &str, more: &[&str]| {
        Session::start(bench.command(&[&["run", "pipeline.dot", "--run-id", id][..], more].concat()))
    };
    for (id, keys) in [("a", "n\n"), ("b", "\n")] {
        let session = run(id, &[]);
        session.waits_for(question, 1).types(keys);
        assert!(session.ends(6).contains(REFUSED));
    }
    assert!(!run("c", &["--no-input"]).ends(6).contains(question));
    witness.has_seen_nothing();
    let session = run("d", &[]);
    session.waits_for(question, 1).types("y\n");
    session.ends(9);
    let seen = witness.has_seen().len();
    assert!(seen > 0);
    assert!(!run("e", &[]).ends(9).contains(question));
    assert!(witness.has_seen().len() > seen);
}

#[test]
fn the_usual_key_needs_no_question() {
    let bench = Bench::new("");
    bench.glovebox(&["models", "trust", "it"]).ends(0).says("nothing to confirm");
    bench.glovebox(&["models", "ls"]).ends(0).never_says(REFUSED);
    bench.asks_for("endpoint = \"https://api.anthropic.com:443/v2\"");
    bench.glovebox(&["models", "ls"]).ends(0).never_says(REFUSED);
    bench.asks_for("endpoint = \"http://localhost:1\"\nkey_env = \"GITHUB_TOKEN\"");
    bench.glovebox(&["models", "ls"]).ends(0).never_says(REFUSED);
    // Hosts that only look like it.
    for host in ["api.anthropic.com.example.org", "api.openai.com/v1", "localhost.example.org", "127.0.0.1.example.org"]
    {
        bench.asks_for(&format!("endpoint = \"https://{host}\""));
        bench.glovebox(&["models", "ls"]).ends(0).says(REFUSED);
    }
}
