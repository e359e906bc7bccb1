//! A registry on loopback, for the tests: the distribution API over plain HTTP, with its content in memory.
//!
//! A test can change every answer before it is sent, and sees every request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request, as the registry received it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

/// How the body of an answer is sent.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// As a whole, with its length.
    Whole(Vec<u8>),
    /// With this stated length, and then the connection ends.
    Claimed(usize, Vec<u8>),
    /// Byte for byte, with a pause after each.
    Drip(Vec<u8>),
    /// Zeros without end.
    Endless,
    /// The first half, and then nothing.
    Stalled(Vec<u8>),
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(body.into()) }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        match &self.body {
            Body::Whole(bytes) | Body::Claimed(_, bytes) | Body::Drip(bytes) | Body::Stalled(bytes) => bytes.clone(),
            Body::Endless => Vec::new(),
        }
    }
}

/// Changes an answer of the registry.
type Change = dyn Fn(&Request, Answer) -> Answer + Send + Sync;

/// What the registry has.
#[derive(Default)]
struct Content {
    blobs: BTreeMap<String, Vec<u8>>,
    /// By repository and tag or digest: the media type and the bytes.
    manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
}

#[derive(Default)]
struct Shared {
    content: Mutex<Content>,
    requests: Mutex<Vec<Request>>,
    change: Mutex<Option<Arc<Change>>>,
}

/// The registry. Its threads end with the test.
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(Shared::default()));
        let registry = Self { address, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        registry
    }

    /// Returns the reference of a repository or of a version in this registry.
    pub(crate) fn named(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    /// Changes all later answers.
    pub(crate) fn change(&self, change: impl Fn(&Request, Answer) -> Answer + Send + Sync + 'static) {
        *self.shared.change.lock().unwrap() = Some(Arc::new(change));
    }

    /// Sends unchanged answers again.
    pub(crate) fn behave(&self) {
        *self.shared.change.lock().unwrap() = None;
    }

    /// Returns the requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    /// Waits for a request.
    pub(crate) fn wait_for(&self, is_wanted: impl Fn(&Request) -> bool) {
        for _ in 0..1000 {
            if self.shared.requests.lock().unwrap().iter().any(&is_wanted) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no such request came");
    }

    /// Gives the manifest of one tag another tag.
    pub(crate) fn move_tag(&self, path: &str, from: &str, to: &str) {
        let mut content = self.shared.content.lock().unwrap();
        let manifest = content.manifests[&(path.to_owned(), from.to_owned())].clone();
        content.manifests.insert((path.to_owned(), to.to_owned()), manifest);
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        *self.shared.content.lock().unwrap() = Content::default();
    }
}

fn serve(shared: &Shared, stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = read(&mut reader)? else { return Ok(()) };
    let answer = shared.content.lock().unwrap().answer(&request);
    let change = shared.change.lock().unwrap().clone();
    let answer = change.map_or(answer.clone(), |change| change(&request, answer));
    let is_head = request.method == "HEAD";
    shared.requests.lock().unwrap().push(request);
    send(stream, &answer, is_head)
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Ok(Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body }))
}

fn send(mut stream: TcpStream, answer: &Answer, is_head: bool) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Answer\r\nconnection: close\r\n", answer.status);
    answer.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    let length = match &answer.body {
        Body::Whole(bytes) | Body::Drip(bytes) | Body::Stalled(bytes) => Some(bytes.len()),
        Body::Claimed(length, _) => Some(*length),
        Body::Endless => None,
    };
    length.iter().for_each(|length| head.push_str(&format!("content-length: {length}\r\n")));
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if is_head {
        return Ok(());
    }
    match &answer.body {
        Body::Whole(bytes) | Body::Claimed(_, bytes) => stream.write_all(bytes),
        Body::Drip(bytes) => bytes.iter().try_for_each(|byte| {
            thread::sleep(Duration::from_millis(200));
            stream.write_all(&[*byte])
        }),
        Body::Stalled(bytes) => {
            stream.write_all(&bytes[..bytes.len() / 2])?;
            thread::sleep(Duration::from_secs(120));
            Ok(())
        }
        Body::Endless => loop {
            stream.write_all(&[0; 64 << 10])?;
        },
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    glovebox_registry::sha256::Sha256Digest::hash(bytes).to_string()
}

impl Content {
    fn answer(&mut self, request: &Request) -> Answer {
        let missing = || Answer::new(404, "{\"errors\":[]}");
        let Some(path) = request.path.strip_prefix("/v2/") else { return missing() };
        if path == "_catalog" {
            let mut names: Vec<&String> = self.manifests.keys().map(|(name, _)| name).collect();
            names.dedup();
            return Answer::new(200, serde_json::json!({ "repositories": names }).to_string());
        }
        if let Some(name) = path.strip_suffix("/tags/list") {
            let tags: Vec<&String> = self
                .manifests
                .keys()
                .filter(|(of, tag)| of == name && !tag.contains(':'))
                .map(|(_, tag)| tag)
                .collect();
            return if tags.is_empty() {
                missing()
            } else {
                Answer::new(200, serde_json::json!({ "tags": tags }).to_string())
            };
        }
        if let Some((name, reference)) = path.split_once("/manifests/") {
            return self.manifest(name, reference, request).unwrap_or_else(missing);
        }
        match path.split_once("/blobs/") {
            Some((name, "uploads/")) => {
                Answer::new(202, "").with("location", format!("/v2/{name}/blobs/uploads/1?state=x"))
            }
            Some((_, "uploads/1")) => {
                self.blobs.insert(sha256(&request.body), request.body.clone());
                Answer::new(201, "")
            }
            Some((_, digest)) => self.blobs.get(digest).map_or_else(missing, |bytes| Answer::new(200, bytes.clone())),
            None => missing(),
        }
    }

    fn manifest(&mut self, name: &str, reference: &str, request: &Request) -> Option<Answer> {
        if request.method == "PUT" {
            let digest = sha256(&request.body);
            let stored = (request.headers["content-type"].clone(), request.body.clone());
            for reference in [reference, &digest] {
                self.manifests.insert((name.to_owned(), reference.to_owned()), stored.clone());
            }
            return Some(Answer::new(201, "").with("docker-content-digest", digest));
        }
        let (media_type, bytes) = self.manifests.get(&(name.to_owned(), reference.to_owned()))?;
        let answer = Answer::new(200, bytes.clone()).with("content-type", media_type.clone());
        Some(answer.with("docker-content-digest", sha256(bytes)))
    }
}

/// A witness: it counts the connections to an address that nobody may connect to.
pub(crate) struct Witness {
    pub(crate) address: SocketAddr,
    connections: Arc<Mutex<usize>>,
}

impl Witness {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, connections) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(0)));
        let counted = Arc::clone(&connections);
        thread::spawn(move || listener.incoming().for_each(|_| *counted.lock().unwrap() += 1));
        Self { address, connections }
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// A proxy for TLS that connects every host to one address, and writes the names of the hosts down.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    hosts: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) fn start(to: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, hosts) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let written = Arc::clone(&hosts);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (to, written) = (to.clone(), Arc::clone(&written));
                thread::spawn(move || drop(connect(stream, &to, &written)));
            }
        });
        Self { address, hosts }
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        self.hosts.lock().unwrap().clone()
    }
}

fn connect(mut stream: TcpStream, to: &str, hosts: &Mutex<Vec<String>>) -> std::io::Result<()> {
    // The client sends nothing after the head before it has the answer.
    let mut reader = BufReader::new(stream.try_clone()?);
    let request = read(&mut reader)?;
    hosts.lock().unwrap().extend(request.map(|request| request.path));
    let target = TcpStream::connect(to)?;
    stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut from, mut into) = (stream.try_clone()?, target.try_clone()?);
    thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut into));
        into.shutdown(std::net::Shutdown::Write)
    });
    std::io::copy(&mut &target, &mut stream)?;
    stream.shutdown(std::net::Shutdown::Both)
}
