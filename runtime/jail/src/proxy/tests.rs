//! Tests of the proxy over real sockets. Names and connections are simulated: every public address leads to one server
//! on the loopback, and lookups and connections are recorded.

use super::dialer::{Dialer, start};
use super::traffic::ProxyRecord;
use super::*;
use crate::pulse::Pulse;
use glovebox_record::network::{Host, HostRules};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod bounds;
mod refusals;

const PUBLIC: &str = "93.184.216.34";

/// A dialer that answers each lookup with the next list of addresses. The last list is repeated.
#[derive(Debug)]
struct TestDialer {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    server: SocketAddr,
    /// Lookups and dialled addresses.
    seen: Mutex<Vec<String>>,
    /// If set, lookups wait until the sender is dropped.
    gate: Option<Mutex<Receiver<()>>>,
}

impl Dialer for TestDialer {
    fn resolve(&self, name: &Host) -> io::Result<Vec<IpAddr>> {
        self.seen.lock().unwrap().push(name.as_str().to_owned());
        if let Some(gate) = &self.gate {
            let _ = gate.lock().unwrap().recv();
        }
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    fn dial(&self, address: SocketAddr) -> io::Result<std::os::fd::OwnedFd> {
        self.seen.lock().unwrap().push(address.to_string());
        start(self.server)
    }
}

struct TestProxy {
    proxy: Option<Proxy>,
    at: SocketAddr,
    dialer: Arc<TestDialer>,
    server: TcpListener,
}

impl TestProxy {
    fn new(rules: &[&str], answers: &[&[&str]]) -> Self {
        Self::with(rules, answers, ProxyBounds::default(), None)
    }

    fn with(rules: &[&str], answers: &[&[&str]], bounds: ProxyBounds, gate: Option<Receiver<()>>) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let answers = answers.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect();
        let dialer = Arc::new(TestDialer {
            answers: Mutex::new(answers),
            server: server.local_addr().unwrap(),
            seen: Mutex::default(),
            gate: gate.map(Mutex::new),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let rules = HostRules::parse(rules.iter().copied()).unwrap();
        let proxy = Proxy::start_with(listener.into(), rules, bounds, dialer.clone(), Pulse::default()).unwrap();
        Self { proxy: Some(proxy), at, dialer, server }
    }

    fn client(&self, first: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.at).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.write_all(first).unwrap();
        client
    }

    /// Sends a request and returns everything that is received.
    fn ask(&self, request: &str) -> String {
        let mut client = self.client(request.as_bytes());
        let mut answer = Vec::new();
        // A reset after the answer ends it too.
        let _ = client.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Returns a client whose tunnel was established.
    fn tunnel(&self, target: &str) -> TcpStream {
        let mut client = self.client(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes());
        let mut answer = [0; 39];
        client.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"\r\n\r\n"));
        client
    }

    /// Serves one connection: reads this many bytes (or to the end), answers, and returns the bytes that were read.
    fn serve(&self, bytes: Option<usize>, answer: Vec<u8>) -> JoinHandle<Vec<u8>> {
        let server = self.server.try_clone().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut read = vec![0; bytes.unwrap_or(0)];
            match bytes {
                Some(_) => stream.read_exact(&mut read).unwrap(),
                None => drop(stream.read_to_end(&mut read).unwrap()),
            }
            stream.write_all(&answer).unwrap();
            read
        })
    }

    fn seen(&self) -> Vec<String> {
        self.dialer.seen.lock().unwrap().clone()
    }

    /// Stops the proxy and checks that none of its threads is left.
    fn stop(&mut self) -> ProxyRecord {
        let traffic = self.proxy.take().unwrap().stop();
        assert_eq!(Arc::strong_count(&self.dialer), 1, "a thread outlived the proxy");
        assert!(TcpStream::connect(self.at).is_err(), "the listener outlived the proxy");
        traffic
    }

    /// Returns true if no connection ever reached the server.
    fn untouched(&self) -> bool {
        self.server.set_nonblocking(true).unwrap();
        self.server.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

#[test]
fn one_request_is_forwarded_and_no_second_one_behind_it() {
    let mut stage = TestProxy::new(&["api.example.com"], &[&[PUBLIC]]);
    let expected = "POST /x HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody";
    let server = stage.serve(Some(expected.len()), b"HTTP/1.1 200 OK\r\n\r\nhi".to_vec());
    let answer = stage.ask(
        "POST http://api.example.com/x HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 4\r\n\r\nbody\
         GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
    );
    assert_eq!(answer, "HTTP/1.1 200 OK\r\n\r\nhi");
    assert_eq!(String::from_utf8(server.join().unwrap()).unwrap(), expected);
    assert_eq!(stage.seen(), ["api.example.com", &format!("{PUBLIC}:80")]);
    let traffic = stage.stop();
    let host = traffic.traffic.hosts["api.example.com"];
    assert_eq!((host.requests, host.refused, host.bytes_sent, host.bytes_received), (1, 0, expected.len() as u64, 21));
}

#[test]
fn nothing_behind_a_body_reaches_the_server() {
    let mut stage = TestProxy::new(&["a.example"], &[&[PUBLIC]]);
    let server = stage.server.try_clone().unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut read = vec![0; 4096];
        let mut all = Vec::new();
        while !all.ends_with(b"done") {
            let count = stream.read(&mut read).unwrap();
            all.extend_from_slice(&read[..count]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    let mut client = stage.client(b"PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n\r\n");
    client.write_all(b"not done").unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n").unwrap();
    let _ = client.read_to_end(&mut Vec::new());
    drop(client);
    let read = String::from_utf8(serving.join().unwrap()).unwrap();
    assert!(read.ends_with("\r\n\r\nnot done"), "{read}");
    stage.stop();
}

#[test]
fn a_tunnel_passes_on_bytes_and_ends_in_both_directions() {
    let mut stage = TestProxy::new(&["*.example.com"], &[&[PUBLIC]]);
    let hello = client_hello::tests::hello_for("API.example.com", 40);
    let big: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let server = stage.serve(None, big.clone());
    let mut client = stage.tunnel("api.example.com:443");
    for byte in &hello {
        client.write_all(&[*byte]).unwrap();
    }
    client.write_all(&big).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer == big, "{} bytes came back", answer.len());
    assert!(server.join().unwrap() == [hello.as_slice(), &big].concat());
    let host = stage.stop().traffic.hosts["api.example.com"];
    assert_eq!((host.bytes_sent, host.bytes_received), ((hello.len() + big.len()) as u64, big.len() as u64));
}

#[test]
fn the_hello_may_come_with_the_request() {
    let mut stage = TestProxy::new(&["a.example"], &[&["2606:4700::1111"]]);
    let hello = client_hello::tests::hello_for("a.example", 5000);
    let server = stage.serve(Some(hello.len()), b"x".to_vec());
    let mut client = stage.client(&[b"CONNECT a.example:443 HTTP/1.1\r\n\r\n", &hello[..]].concat());
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(b"\r\n\r\nx"));
    assert_eq!(server.join().unwrap(), hello);
    assert_eq!(stage.seen()[1], "[2606:4700::1111]:443");
    stage.stop();
}

#[test]
fn a_port_of_its_own_is_a_tunnel_for_any_protocol() {
    let mut stage = TestProxy::new(&["git.example:22"], &[&[PUBLIC]]);
    let server = stage.serve(Some(0), b"SSH-2.0-x\r\n".to_vec());
    let mut client = stage.tunnel("git.example:22");
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "SSH-2.0-x\r\n");
    server.join().unwrap();
    drop(client);
    stage.stop();
}

#[test]
fn the_environment_leads_to_the_address() {
    let urls: Vec<_> = environment().into_iter().filter(|(name, _)| name.to_lowercase().starts_with("http")).collect();
    assert!(urls.len() == 4 && urls.iter().all(|(_, url)| *url == format!("http://{ADDRESS}")));
}
