//! Network namespaces on one bridge of this machine, each with a link that can be cut. They are removed with the value.
//!
//! A cut link drops all packets and closes no connection, like a broken cable or a host without power.

use crate::workbench::nats::Host;
use std::path::Path;
use std::process::{Command, Stdio};

/// A network with a bridge in the namespace of the test. It needs root and the program `ip`.
pub(super) struct Network {
    /// The bridge, and the beginning of the names of namespaces and links.
    name: String,
    /// The address of the bridge without its last number.
    subnet: String,
    hosts: usize,
}

impl Network {
    /// Creates a network with this many hosts. `None` if this process may not create network namespaces.
    pub(super) fn create(hosts: usize) -> Option<Self> {
        let pid = std::process::id();
        // The name of a link has at most 15 characters. The addresses are those for tests of networks (RFC 2544).
        let (name, subnet) = (format!("gb{:04x}", pid % 65_536), format!("198.{}.{}", 18 + pid / 256 % 2, pid % 256));
        // What another process made is not removed.
        if !ip(&format!("link add {name} type bridge")) {
            return None;
        }
        let network = Self { name, subnet, hosts };
        let Self { name, subnet, .. } = &network;
        let bridge = [format!("addr add {subnet}.254/24 dev {name}"), format!("link set {name} up")];
        let each = (0..hosts).flat_map(|host| {
            let (link, inner, address) = (network.link(host), format!("{name}i{host}"), network.address(host));
            let netns = network.namespace(host);
            [
                format!("netns add {netns}"),
                format!("link add {link} type veth peer name {inner} netns {netns}"),
                format!("link set {link} master {name} up"),
                format!("-n {netns} addr add {address}/24 dev {inner}"),
                format!("-n {netns} link set {inner} up"),
                format!("-n {netns} link set lo up"),
            ]
        });
        // What was created is removed with the value.
        let is_made = bridge.into_iter().chain(each).all(|words| ip(&words));
        let can_enter = || network.host(0).command(Path::new("true")).status().is_ok_and(|status| status.success());
        (is_made && can_enter()).then_some(network)
    }

    fn namespace(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    fn link(&self, host: usize) -> String {
        format!("{}o{host}", self.name)
    }

    fn address(&self, host: usize) -> String {
        format!("{}.{}", self.subnet, host + 1)
    }

    /// Returns the address at which every host reaches the test.
    pub(super) fn bridge(&self) -> String {
        format!("{}.254", self.subnet)
    }

    /// Returns a host. Nothing that is started with its words reaches another network.
    pub(super) fn host(&self, host: usize) -> Host {
        let enter = ["nsenter".to_owned(), format!("--net=/run/netns/{}", self.namespace(host))];
        Host { address: self.address(host), enter: enter.into() }
    }

    /// Cuts the link of a host.
    pub(super) fn cut(&self, host: usize) {
        assert!(ip(&format!("link set {} down", self.link(host))), "a link cannot be cut");
    }

    /// Repairs the link of a host.
    pub(super) fn repair(&self, host: usize) {
        assert!(ip(&format!("link set {} up", self.link(host))), "a link cannot be repaired");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in 0..self.hosts {
            ip(&format!("link del {}", self.link(host)));
            ip(&format!("netns del {}", self.namespace(host)));
        }
        ip(&format!("link del {}", self.name));
    }
}

/// Runs `ip`. Returns true if it succeeds.
fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
