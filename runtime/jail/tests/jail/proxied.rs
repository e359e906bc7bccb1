//! A jail that may reach named hosts: its commands reach these through the proxy, and cannot reach anything else.
//!
//! The commands are this test program itself, run inside the jail as a client, so no other program is needed. The
//! network outside is simulated: one server on the loopback stands for every public address.

use super::fixture::{Fixture, argv, never, output};
use glovebox_jail::exec::{Command, Exit};
use glovebox_jail::jail::{Bind, Jail};
use glovebox_jail::proxy::dialer::{Dialer, start};
use glovebox_record::network::{Host, HostRules};
use glovebox_record::{Network, Tier};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PUBLIC: &str = "93.184.216.34";
const CLIENT: &str = "CLIENT_CONNECTS_TO";

/// Sends bytes, ends the sending side, and returns the answer or the error.
fn talk(address: &str, bytes: &[u8]) -> Result<String, io::Error> {
    let mut stream = TcpStream::connect_timeout(&address.parse().unwrap(), Duration::from_secs(10))?;
    stream.write_all(bytes)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    // A reset after the answer ends it too.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Inside a jail: sends standard input to the address in the environment and prints the answer. Outside of a jail:
/// tests that with a local server.
#[test]
fn client() {
    if let Ok(address) = std::env::var(CLIENT) {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).unwrap();
        println!("<{}>", talk(&address, &bytes).unwrap_or_else(|error| format!("{:?}", error.kind())));
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let echo = serve_one(server, "answer");
    assert_eq!(talk(&address, b"question").unwrap(), "answer");
    assert_eq!(echo.join().unwrap(), b"question");
}

/// Reads one client until its end, then answers.
fn serve_one(server: TcpListener, answer: &'static str) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        read
    })
}

/// A dialer for which every name is public except `inside.example`, and every address leads to one server.
#[derive(Debug)]
struct Staged(SocketAddr);

impl Dialer for Staged {
    fn resolve(&self, name: &Host) -> io::Result<Vec<IpAddr>> {
        let inside = name.as_str().starts_with("inside.").then_some(Ipv4Addr::LOCALHOST.into());
        Ok(vec![inside.unwrap_or(PUBLIC.parse().unwrap())])
    }

    fn dial(&self, _: SocketAddr) -> io::Result<OwnedFd> {
        start(self.0)
    }
}

struct Stage {
    jail: Jail,
    server: TcpListener,
    /// The last field, because the jail must be dead before its folders are removed.
    _fixture: Fixture,
}

impl Stage {
    fn new(domains: &[&str]) -> Self {
        let (fixture, server) = (Fixture::new(Tier::Full), TcpListener::bind("127.0.0.1:0").unwrap());
        let tools = fixture.at("tools");
        fs::create_dir(&tools).unwrap();
        fs::copy(std::env::current_exe().unwrap(), tools.join("client")).unwrap();
        let mut setting = fixture.setting();
        setting.policy.binds = vec![Bind::read_only(tools.clone(), tools.clone())];
        setting.policy.path.push(tools);
        setting.network = Network::Proxy(HostRules::parse(domains.iter().copied()).unwrap());
        let dialer = Arc::new(Staged(server.local_addr().unwrap()));
        Self { jail: Jail::open_with_dialer(&setting, fixture.source(), dialer).unwrap(), server, _fixture: fixture }
    }

    /// Returns the answer that a client inside the jail received.
    fn ask(&self, address: &str, bytes: &[u8]) -> String {
        let env = vec![(CLIENT.to_owned(), address.to_owned())];
        let words = argv(&["client", "jail::proxied::client", "--exact", "--nocapture"]);
        let exit: Exit = self.jail.run(&Command { env, stdin: Some(bytes.to_vec()), ..words }, &never()).unwrap();
        let text = output(&exit);
        assert_eq!(exit.code, Some(0), "{text} {exit:?}");
        let (_, rest) = text.split_once('<').unwrap();
        rest.rsplit_once('>').unwrap().0.to_owned()
    }

    fn through_proxy(&self, request: &str) -> String {
        self.ask(glovebox_jail::proxy::ADDRESS, request.as_bytes())
    }

    fn untouched(&self) -> bool {
        self.server.set_nonblocking(true).unwrap();
        let refused = self.server.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        self.server.set_nonblocking(false).unwrap();
        refused
    }
}

#[test]
fn a_listed_host_is_reached_and_counted() {
    let stage = Stage::new(&["api.example.com", "git.example.com:22"]);
    let server = serve_one(stage.server.try_clone().unwrap(), "SSH-2.0-there");
    let answer = stage.through_proxy("CONNECT git.example.com:22 HTTP/1.1\r\n\r\nSSH-2.0-here");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("SSH-2.0-there"), "{answer}");
    assert_eq!(server.join().unwrap(), b"SSH-2.0-here");
    let variables = output(&stage.jail.run(&argv(&["env"]), &never()).unwrap());
    assert!(variables.contains("https_proxy=http://127.0.0.1:3128\n"), "{variables}");
    let traffic = stage.jail.end().unwrap().traffic.unwrap();
    let host = traffic.traffic.hosts["git.example.com"];
    assert_eq!((host.requests, host.bytes_sent, host.bytes_received), (1, 12, 13));
}

#[test]
fn everything_else_is_refused_and_reaches_nobody() {
    let stage = Stage::new(&["api.example.com", "inside.example"]);
    let refused = [
        ("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "add `\"evil.example\"` to the list"),
        ("CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", "IP address"),
        ("CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "IP address"),
        ("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "IP address"),
        ("CONNECT inside.example:443 HTTP/1.1\r\n\r\n", "that no stage may reach (loopback)"),
        ("GET http://api.example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "differs from the target"),
        ("CONNECT api.example.com:22 HTTP/1.1\r\n\r\n", "add `\"api.example.com:22\"` to the list"),
    ];
    for (request, reason) in refused {
        let answer = stage.through_proxy(request);
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains(reason), "{request}: {answer}");
    }
    let direct = stage.server.local_addr().unwrap().to_string();
    assert_eq!(stage.ask(&direct, b"x"), "ConnectionRefused", "the machine's loopback");
    for address in ["1.1.1.1:53", "169.254.169.254:80", "[2606:4700::1111]:443"] {
        assert_eq!(stage.ask(address, b"x"), "NetworkUnreachable", "{address}");
    }
    assert!(stage.untouched());
    let traffic = stage.jail.end().unwrap().traffic.unwrap();
    assert_eq!((traffic.traffic.refused(), traffic.refusals.len()), (7, 5), "{traffic:?}");
    let told: Vec<_> = traffic.refusals.iter().map(|refusal| (refusal.path.as_str(), refusal.help.as_str())).collect();
    let list = "[\"api.example.com\", \"inside.example\", \"evil.example\"]";
    let line = format!(
        "to allow it: `[sandbox] network = {{ proxy = {list} }}` in glovebox.toml, \
         and the host in `network` of the node, if the node has this attribute"
    );
    assert_eq!(told[0], ("evil.example:443", line.as_str()));
    assert_eq!(told[1].0, "a request without a host name");
    assert_eq!(told[2], ("inside.example", "no grant allows it"));
    assert!(told[4].0 == "api.example.com:22" && told[4].1.contains("\"api.example.com:22\"]"), "{told:?}");
}

#[test]
fn a_tunnel_under_another_name_ends_before_a_byte_is_sent() {
    let stage = Stage::new(&["api.example.com", "other.example"]);
    let server = serve_one(stage.server.try_clone().unwrap(), "");
    let hello = client_hello("other.example");
    let head = b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n";
    let answer = stage.ask(glovebox_jail::proxy::ADDRESS, &[&head[..], &hello].concat());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(server.join().unwrap().is_empty());
    let traffic = stage.jail.end().unwrap().traffic.unwrap();
    assert!(traffic.refusals[0].reason.contains("the server name differs"), "{traffic:?}");
}

/// Returns the shortest ClientHello that contains a server name.
fn client_hello(name: &str) -> Vec<u8> {
    let sized = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
    let list = sized(&[&[0][..], &sized(name.as_bytes())].concat());
    let extensions = sized(&[&[0, 0][..], &sized(&list)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &sized(&[0x13, 1]), &[1, 0], &extensions].concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}
