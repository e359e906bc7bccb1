//! Attacks on the network: listeners of the host, the internet, other socket families, other channels between processes.

use crate::row::{Limits, Payload, Proof, Row, Source};

const NO_SOCKETS: &str = "no sockets are allowed at all";
const PROXY: Limits = Limits { proxy: true, ..Limits::SHARED };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::new("unix-path", Source::Sandbox(42), "connect to a service's socket", "view", Payload::Program(&["unix", "{socket}"])),
    Row::new("unix-known", Source::Sandbox(42), "connect to the sockets of Docker, systemd, D-Bus and key agents", "view", Payload::Program(&["unix", "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private", "/run/dbus/system_bus_socket", "/run/user/0/bus", "/run/user/1000/bus", "/run/user/1000/gnupg/S.gpg-agent", "/tmp/tmux-0/default", "/tmp/.X11-unix/X0"])),
    Row::new("unix-datagram", Source::Sandbox(42), "send a datagram to a service's socket", "view", Payload::Program(&["unix-datagram", "{datagram}"])),
    Row::new("unix-pair", Source::Sandbox(43), "connect a socket pair to a service's socket", "view", Payload::Program(&["pair", "{datagram}"])),
    Row::new("unix-abstract", Source::Sandbox(44), "connect to an abstract socket of the host", "network namespace", Payload::Program(&["abstract", "{abstract}"])),
    Row::new("tcp-loopback", Source::Sandbox(45), "connect to the host's loopback", "network namespace", Payload::Program(&["tcp", "{tcp}"])),
    Row::new("tcp6-loopback", Source::Sandbox(45), "connect to the host's loopback by IPv6", "network namespace", Payload::Program(&["tcp", "{tcp6}"])),
    Row::new("udp-loopback", Source::Sandbox(45), "send a datagram to the host's loopback", "network namespace", Payload::Program(&["udp", "{udp}"])),
    Row::new("tcp-network", Source::Sandbox(45), "connect to the host's address in its network", "network namespace", Payload::Program(&["tcp", "{lan}"])),
    Row::new("dns", Source::Sandbox(46), "query a name server", "network namespace", Payload::Program(&["udp", "192.0.2.53:53"])),
    Row::new("metadata", Source::Sandbox(46), "query the cloud's metadata service for credentials", "network namespace", Payload::Program(&["tcp", "169.254.169.254:80", "100.100.100.200:80"])),
    Row::new("link-local", Source::Sandbox(46), "reach a neighbour by IPv6", "network namespace", Payload::Program(&["tcp", "[fe80::1]:80", "[fd00:ec2::254]:80"])),
    Row::new("listen", Source::Sandbox(47), "listen on a port that the host can reach", "network namespace", Payload::Program(&["listen", "{port}"])).proof(Proof::Closed),
    Row::new("af-vsock", Source::Sandbox(48), "connect to the hypervisor by vsock", "seccomp", Payload::Program(&["socket", "40", "1", "0"])),
    Row::new("af-packet", Source::Sandbox(48), "capture network packets", "seccomp", Payload::Program(&["socket", "17", "3", "768"])),
    Row::new("af-alg", Source::Sandbox(48), "use the kernel's crypto sockets", "seccomp", Payload::Program(&["socket", "38", "5", "0"])),
    Row::new("raw-icmp", Source::Sandbox(48), "send raw packets", "seccomp", Payload::Program(&["socket", "2", "3", "1"])),
    Row::new("netlink-filter", Source::Sandbox(48), "change the packet filter", "seccomp", Payload::Program(&["socket", "16", "3", "12"])),
    Row::new("netlink-audit", Source::Sandbox(48), "write to the audit log", "seccomp", Payload::Program(&["socket", "16", "3", "9"])),
    Row::new("af-bluetooth", Source::Sandbox(48), "use Bluetooth", "seccomp", Payload::Program(&["socket", "31", "3", "1"])),
    Row::new("af-xdp", Source::Sandbox(48), "open an XDP socket, which bypasses the kernel's network stack", "seccomp", Payload::Program(&["socket", "44", "3", "0"])),
    Row::new("af-tipc", Source::Sandbox(48), "open a TIPC socket", "seccomp", Payload::Program(&["socket", "30", "5", "0"])),
    Row::new("sysv-shm", Source::Sandbox(50), "attach the victim's shared memory", "IPC namespace", Payload::Program(&["sysv-shm", "{shm}"])).landlock("there is no IPC namespace: shared segments are visible"),
    Row::new("queue", Source::Sandbox(50), "take a message from the victim's queue", "IPC namespace", Payload::Program(&["queue", "{queue}"])).landlock("there is no IPC namespace: message queues are visible"),
    Row::new("dev-shm", Source::Sandbox(50), "read the victim's memory in `/dev/shm`", "private /dev", Payload::Program(&["read", "{shm_file}"])),
    Row::new("loopback", Source::Required, "run a server and its client on the loopback", "must work", Payload::Program(&["loopback"])).proof(Proof::Works).landlock(NO_SOCKETS),
    Row::new("unix-server", Source::Required, "run a server and its client on a Unix socket", "must work", Payload::Program(&["unix-server"])).proof(Proof::Works).landlock(NO_SOCKETS),
    Row::new("proxy-unlisted", Source::Sandbox(49), "ask the proxy for a host that is not listed", "proxy", Payload::Program(&["proxy", "example.org:443", "example.org"])).limits(PROXY),
    Row::new("proxy-address", Source::Sandbox(49), "ask the proxy for an IP address", "proxy", Payload::Program(&["proxy", "{tcp}", "allowed.example"])).limits(PROXY),
    Row::new("proxy-metadata", Source::Sandbox(49), "ask the proxy for the cloud's metadata service", "proxy", Payload::Program(&["proxy", "169.254.169.254:80", "allowed.example"])).limits(PROXY),
    Row::new("proxy-suffix", Source::Sandbox(49), "ask the proxy for a name that only ends like a listed name", "proxy", Payload::Program(&["proxy", "notallowed.example:443", "allowed.example"])).limits(PROXY),
    Row::new("proxy-port", Source::Sandbox(49), "ask the proxy for another port of a listed host", "proxy", Payload::Program(&["proxy", "allowed.example:22", "allowed.example"])).limits(PROXY),
    Row::new("proxy-past", Source::Sandbox(49), "connect without the proxy", "network namespace", Payload::Program(&["tcp", "{tcp}", "{lan}"])).limits(PROXY),
];
