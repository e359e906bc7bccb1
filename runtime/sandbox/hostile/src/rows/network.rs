//! The network: listeners of the host, the world, other families, other ways to talk.

use crate::row::{Limits, Proof, Row};

const NO_SOCKETS: &str = "no sockets are allowed at all";
const PROXY: Limits = Limits { proxy: true, ..Limits::SHARED };

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row::program("unix-path", "sandbox 42", "connect to a service's socket", "view", &["unix", "{socket}"]),
    Row::program("unix-known", "sandbox 42", "connect to Docker, systemd, the user's bus, agents", "view", &["unix", "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private", "/run/dbus/system_bus_socket", "/run/user/0/bus", "/run/user/1000/bus", "/run/user/1000/gnupg/S.gpg-agent", "/tmp/tmux-0/default", "/tmp/.X11-unix/X0"]),
    Row::program("unix-datagram", "sandbox 42", "send a datagram to a service's socket", "view", &["unix-datagram", "{datagram}"]),
    Row::program("unix-pair", "sandbox 43", "turn a harmless pair towards a service's socket", "view", &["pair", "{datagram}"]),
    Row::program("unix-abstract", "sandbox 44", "connect to a name that lies in no folder", "network namespace", &["abstract", "{abstract}"]),
    Row::program("tcp-loopback", "sandbox 45", "connect to the host's loopback", "network namespace", &["tcp", "{tcp}"]),
    Row::program("tcp6-loopback", "sandbox 45", "the same by IPv6", "network namespace", &["tcp", "{tcp6}"]),
    Row::program("udp-loopback", "sandbox 45", "send the host's loopback a datagram", "network namespace", &["udp", "{udp}"]),
    Row::program("tcp-network", "sandbox 45", "connect to the host's address in its network", "network namespace", &["tcp", "{lan}"]),
    Row::program("dns", "sandbox 46", "ask a name server", "network namespace", &["udp", "192.0.2.53:53"]),
    Row::program("metadata", "sandbox 46", "ask the cloud for credentials", "network namespace", &["tcp", "169.254.169.254:80", "100.100.100.200:80"]),
    Row::program("link-local", "sandbox 46", "reach a neighbour by IPv6", "network namespace", &["tcp", "[fe80::1]:80", "[fd00:ec2::254]:80"]),
    Row::program("listen", "sandbox 47", "listen on a port that the host can reach", "network namespace", &["listen", "{port}"]).proof(Proof::Closed),
    Row::program("af-vsock", "sandbox 48", "talk to the machine's host", "seccomp", &["socket", "40", "1", "0"]),
    Row::program("af-packet", "sandbox 48", "read what passes by", "seccomp", &["socket", "17", "3", "768"]),
    Row::program("af-alg", "sandbox 48", "use the kernel's ciphers", "seccomp", &["socket", "38", "5", "0"]),
    Row::program("raw-icmp", "sandbox 48", "send packets of our own making", "seccomp", &["socket", "2", "3", "1"]),
    Row::program("netlink-filter", "sandbox 48", "change the packet filter", "seccomp", &["socket", "16", "3", "12"]),
    Row::program("netlink-audit", "sandbox 48", "write to the audit log", "seccomp", &["socket", "16", "3", "9"]),
    Row::program("af-bluetooth", "sandbox 48", "use Bluetooth", "seccomp", &["socket", "31", "3", "1"]),
    Row::program("af-xdp", "sandbox 48", "take packets past the kernel", "seccomp", &["socket", "44", "3", "0"]),
    Row::program("af-tipc", "sandbox 48", "use a family nobody needs", "seccomp", &["socket", "30", "5", "0"]),
    Row::program("sysv-shm", "sandbox 50", "attach the victim's shared memory", "IPC namespace", &["sysv-shm", "{shm}"]).landlock("there is no IPC namespace: shared segments are visible"),
    Row::program("queue", "sandbox 50", "take a message from the victim's queue", "IPC namespace", &["queue", "{queue}"]).landlock("there is no IPC namespace: message queues are visible"),
    Row::program("dev-shm", "sandbox 50", "read the victim's memory in `/dev/shm`", "private /dev", &["read", "{shm_file}"]),
    Row::works("loopback", "required", "a server and its client on the loopback", &["loopback"]).landlock(NO_SOCKETS),
    Row::works("unix-server", "required", "a server and its client on a path", &["unix-server"]).landlock(NO_SOCKETS),
    Row::program("proxy-unlisted", "sandbox 49", "ask the proxy for a host that is not listed", "proxy", &["proxy", "example.org:443", "example.org"]).limits(PROXY),
    Row::program("proxy-address", "sandbox 49", "ask the proxy for an address", "proxy", &["proxy", "{tcp}", "allowed.example"]).limits(PROXY),
    Row::program("proxy-metadata", "sandbox 49", "ask the proxy for the cloud's credentials", "proxy", &["proxy", "169.254.169.254:80", "allowed.example"]).limits(PROXY),
    Row::program("proxy-suffix", "sandbox 49", "ask the proxy for a name that only ends like a listed one", "proxy", &["proxy", "notallowed.example:443", "allowed.example"]).limits(PROXY),
    Row::program("proxy-port", "sandbox 49", "ask the proxy for a listed host's other port", "proxy", &["proxy", "allowed.example:22", "allowed.example"]).limits(PROXY),
    Row::program("proxy-past", "sandbox 49", "connect past the proxy", "network namespace", &["tcp", "{tcp}", "{lan}"]).limits(PROXY),
];
