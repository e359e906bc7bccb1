//! Clients in a sandbox without a network: each fails at once instead of repeating what cannot succeed, and the summary names the host
//! and the setting. A client that this machine does not have is not tried.

use crate::workbench::{Workbench, is_on_this_machine, not_run};
use std::time::Duration;

/// Maximum time of one command on a busy machine. Without the settings of the sandbox, npm takes 71 s.
const TIME_MAX: Duration = Duration::from_secs(25);

/// A client that wants the network.
struct Client {
    program: &'static str,
    /// The toolchain with the program; empty for a program of the system.
    toolchain: &'static str,
    command: &'static str,
    /// A part of the summary that names the host.
    names: &'static str,
}

const CLIENTS: [Client; 9] = [
    Client {
        program: "curl",
        toolchain: "",
        command: "curl -sS https://api.nowhere-at-all.example/x",
        names: "proxy = [\"api.nowhere-at-all.example\"]",
    },
    Client {
        program: "wget",
        toolchain: "",
        command: "wget --tries=1 -O /dev/null https://api.nowhere-at-all.example/x",
        names: "proxy = [\"api.nowhere-at-all.example\"]",
    },
    Client {
        program: "git",
        toolchain: "",
        command: "git ls-remote https://git.nowhere-at-all.example/x.git",
        names: "proxy = [\"git.nowhere-at-all.example\"]",
    },
    Client {
        program: "python3",
        toolchain: "python",
        command: "python3 -c \\\"import urllib.request as u; u.urlopen('https://py.nowhere-at-all.example/x')\\\"",
        names: "[sandbox]",
    },
    Client {
        program: "python3",
        toolchain: "python",
        command: "env PIP_NO_INDEX= python3 -m pip download left-pad-of-nobody",
        names: "proxy = [\"pypi.org\"]",
    },
    Client {
        program: "npm",
        toolchain: "",
        command: "cd $TMPDIR && echo {} > package.json && npm install left-pad-of-nobody",
        names: "proxy = [\"registry.npmjs.org\"]",
    },
    Client {
        program: "npm",
        toolchain: "node",
        command: "cd $TMPDIR && echo {} > package.json && npm install left-pad-of-nobody",
        names: "proxy = [\"registry.npmjs.org\"]",
    },
    Client {
        program: "cargo",
        toolchain: "rust",
        command: "cd $TMPDIR && cargo init -q --name x && env CARGO_NET_OFFLINE=false cargo add nowhere-at-all-of-nobody",
        names: "crates.io",
    },
    Client {
        program: "go",
        toolchain: "go",
        command: "cd $TMPDIR && go mod init x && go get example.com/nowhere@v1.0.0",
        names: "[sandbox]",
    },
];

#[test]
fn every_client_fails_at_once_and_the_summary_names_the_host() {
    let mut slow = Vec::new();
    for Client { program, toolchain, command, names } in CLIENTS {
        if !is_on_this_machine(program) {
            not_run("a client without a network", program);
            continue;
        }
        let bench = Workbench::with_pipeline(&format!(
            "digraph t {{ start; done; ask [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"{command}\"]; start -> ask -> done }}"
        ));
        let toolchains = if toolchain.is_empty() { String::new() } else { format!("\"{toolchain}\"") };
        bench.write("glovebox.toml", &format!("[exec]\ntoolchains = [{toolchains}]\n"));
        let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
        run.ends(1).says(names).says("`network = { proxy = [\"");
        let verdict = bench.glovebox(&["show", "r", "--json"]).json();
        let took = Duration::from_millis(verdict["receipts"][0]["duration_ms"].as_u64().unwrap());
        if took > TIME_MAX {
            slow.push(format!("{command}: {took:?}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// A name that is in no file does not exist: a lookup fails for good, which clients do not repeat. The names of the sandbox itself and
/// an address without a route are answered at once, too.
#[test]
fn a_name_does_not_exist_and_an_address_cannot_be_reached() {
    if !is_on_this_machine("python3") {
        return not_run("lookups without a network", "python3");
    }
    let bench = Workbench::with_pipeline(
        "digraph t { start; done; ask [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"python3 ask.py\"]; start -> ask -> done }",
    );
    bench.write("glovebox.toml", "[exec]\ntoolchains = [\"python\"]\n");
    bench.write(
        "ask.py",
        "import errno, socket, time
began = time.monotonic()
try:
    socket.getaddrinfo('www.nowhere-at-all.example', 443)
    raise SystemExit('found')
except socket.gaierror as error:
    assert error.errno == socket.EAI_NONAME, error
assert socket.getaddrinfo('localhost', 80) and socket.getaddrinfo(socket.gethostname(), 80)
for family, address in [(socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')]:
    try:
        socket.socket(family).connect((address, 443))
        raise SystemExit('connected')
    except OSError as error:
        assert error.errno in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EACCES), error
query = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
query.connect(('127.0.0.1', 53))
try:
    query.send(b'question')
    query.settimeout(3)
    query.recv(100)
    raise SystemExit('answered')
except ConnectionRefusedError:
    pass
assert time.monotonic() - began < 3, time.monotonic() - began
",
    );
    bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}
