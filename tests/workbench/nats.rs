//! NATS servers for tests: one, or three as a cluster, on loopback, each with a folder of its own. All end with the value.
//!
//! Suites of several crates include this file. The program is the one that `cargo xtask nats` brings.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time until a server is ready.
const READY: Duration = Duration::from_secs(60);
/// How long a server may take to accept a connection, and to answer.
const PAGE_WAIT: Duration = Duration::from_secs(5);

/// The ports of a server on loopback.
#[derive(Clone, Copy)]
struct Ports {
    client: u16,
    monitor: u16,
    cluster: u16,
}

/// Where a server runs.
#[derive(Clone)]
pub(crate) struct Host {
    /// The address at which it listens.
    pub(crate) address: String,
    /// The words before its command line, such as those that enter a network namespace.
    pub(crate) enter: Vec<String>,
}

impl Host {
    fn loopback() -> Self {
        Self { address: "127.0.0.1".to_owned(), enter: Vec::new() }
    }

    /// Returns a command that runs here.
    pub(crate) fn command(&self, program: &Path) -> Command {
        match self.enter.split_first() {
            None => Command::new(program),
            Some((first, further)) => {
                let mut command = Command::new(first);
                command.args(further).arg(program);
                command
            }
        }
    }
}

struct Server {
    host: Host,
    ports: Ports,
    child: Option<Child>,
}

/// Running NATS servers.
pub(crate) struct NatsServers {
    servers: Vec<Server>,
    folder: tempfile::TempDir,
}

/// Returns the program, or `None` if it was not brought.
pub(crate) fn nats_program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats/bin/nats-server");
    program.is_file().then_some(program)
}

impl NatsServers {
    /// Starts servers that flush each record. More than one are a cluster. `settings` is added to the configuration.
    ///
    /// # Panics
    /// The program is missing or does not start.
    pub(crate) fn start(count: usize, settings: &str) -> Self {
        Self::start_syncing(count, "always", settings)
    }

    /// Starts servers that flush records at this interval.
    pub(crate) fn start_syncing(count: usize, sync: &str, settings: &str) -> Self {
        Self::start_on(&vec![Host::loopback(); count], sync, settings)
    }

    /// Starts a server on each host.
    pub(crate) fn start_on(hosts: &[Host], sync: &str, settings: &str) -> Self {
        let mut servers = Self { servers: Vec::new(), folder: tempfile::tempdir().unwrap() };
        let count = hosts.len();
        // Another process may take a free port before the server does.
        for _ in 0..3 {
            servers.configure(hosts, sync, settings);
            (0..count).for_each(|index| servers.spawn(index));
            if (0..count).all(|index| servers.is_ready(index)) {
                return servers;
            }
            (0..count).for_each(|index| servers.kill(index));
        }
        panic!("nats-server does not start: {}", servers.log(0));
    }

    fn configure(&mut self, hosts: &[Host], sync: &str, settings: &str) {
        let count = hosts.len();
        let listeners: Vec<TcpListener> = (0..3 * count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let ports = ports.chunks(3).map(|ports| Ports { client: ports[0], monitor: ports[1], cluster: ports[2] });
        self.servers =
            hosts.iter().cloned().zip(ports).map(|(host, ports)| Server { host, ports, child: None }).collect();
        let route = |server: &Server| format!("nats-route://{}:{}", server.host.address, server.ports.cluster);
        let routes: Vec<String> = self.servers.iter().map(route).collect();
        for (index, Server { host: Host { address, .. }, ports, .. }) in self.servers.iter().enumerate() {
            let store = self.folder.path().join(format!("store-{index}"));
            let mut text = format!(
                "server_name: n{index}\nlisten: \"{address}:{}\"\nhttp: \"{address}:{}\"\n\
                 jetstream {{ store_dir: {store:?}, sync_interval: {sync}, max_file_store: 4GB }}\n{settings}\n",
                ports.client, ports.monitor
            );
            if count > 1 {
                // Clients know the servers that a test names, so that a proxy before one is not passed by.
                text += &format!(
                    "cluster {{ name: test, listen: \"{address}:{}\", routes: [{}], no_advertise: true }}\n",
                    ports.cluster,
                    routes.join(", ")
                );
            }
            std::fs::write(self.folder.path().join(format!("{index}.conf")), text).unwrap();
        }
    }

    /// Starts a killed server with its folder and its ports, and does not wait until it is ready.
    pub(crate) fn spawn(&mut self, index: usize) {
        let file = |ending: &str| self.folder.path().join(format!("{index}.{ending}"));
        let mut command = self.servers[index].host.command(&nats_program().unwrap());
        command.arg("--config").arg(file("conf")).arg("--log").arg(file("log"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.servers[index].child = Some(child);
    }

    fn is_ready(&mut self, index: usize) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < READY {
            if self.is_healthy(index) {
                return true;
            }
            if self.servers[index].child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Returns true if a server has everything that the others have stored.
    pub(crate) fn is_healthy(&self, index: usize) -> bool {
        self.page(index, "/healthz").is_some_and(|page| page.starts_with("HTTP/1.0 200"))
    }

    /// Returns a page of a server's monitoring port with its head, or `None` if it does not answer.
    fn page(&self, index: usize, path: &str) -> Option<String> {
        let Server { host, ports, .. } = &self.servers[index];
        let address = format!("{}:{}", host.address, ports.monitor).parse().unwrap();
        // A server behind a cut link does not even refuse.
        let mut stream = TcpStream::connect_timeout(&address, PAGE_WAIT).ok()?;
        stream.set_read_timeout(Some(PAGE_WAIT)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    }

    fn log(&self, index: usize) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{index}.log"))).unwrap_or_default()
    }

    /// Returns the address of each server for clients.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("nats://{}:{}", server.host.address, server.ports.client)).collect()
    }

    /// Returns the address of a server's monitoring port.
    pub(crate) fn monitor(&self, index: usize) -> String {
        format!("http://{}:{}", self.servers[index].host.address, self.servers[index].ports.monitor)
    }

    /// Returns the server that leads the stream `gb`.
    pub(crate) fn leader(&self) -> usize {
        let begin = Instant::now();
        while begin.elapsed() < READY {
            for index in 0..self.servers.len() {
                let page = self.page(index, "/jsz?accounts=true&streams=true").unwrap_or_default();
                let body = page.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
                let streams = body["account_details"][0]["stream_detail"].as_array();
                let stream = streams.into_iter().flatten().find(|stream| stream["name"] == "gb");
                let leader = stream.and_then(|stream| stream["cluster"]["leader"].as_str());
                if let Some(number) = leader.and_then(|name| name.strip_prefix('n')) {
                    return number.parse().unwrap();
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no server knows the leader of the stream");
    }

    /// Returns the process of a running server.
    #[allow(dead_code)] // Only a benchmark asks.
    pub(crate) fn pid(&self, index: usize) -> u32 {
        self.servers[index].child.as_ref().unwrap().id()
    }

    /// Kills a server with SIGKILL.
    pub(crate) fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.servers[index].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a killed server again, with its folder and its ports.
    pub(crate) fn restart(&mut self, index: usize) {
        self.spawn(index);
        assert!(self.is_ready(index), "nats-server does not start again: {}", self.log(index));
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|index| self.kill(index));
    }
}
