//! The helper's self-test of the sandbox, compared with witnesses outside, and the same actions without a sandbox,
//! where they work.

use crate::fixture::{Fixture, Jail};
use glovebox_jail_helper::policy::Confinement;
use glovebox_jail_helper::wire::{Command, Program, SelfTestCheck, Targets};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with};
use std::fs;
use std::net::{TcpListener, UdpSocket};

struct Witnesses {
    tcp: TcpListener,
    udp: UdpSocket,
    sockets: Vec<rustix::fd::OwnedFd>,
    targets: Targets,
}

impl Witnesses {
    fn new(fixture: &Fixture) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let name = format!("glovebox-{}", fixture.text("").replace('/', "-"));
        let targets = Targets {
            secret: fixture.path("outside/secret"),
            folder: fixture.path("outside"),
            port,
            socket: fixture.path("outside/socket"),
            abstract_socket: name,
            process: i32::try_from(std::process::id()).unwrap(),
        };
        let path = SocketAddrUnix::new(&targets.socket).unwrap();
        let abstracted = SocketAddrUnix::new_abstract_name(targets.abstract_socket.as_bytes()).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let sockets = [path, abstracted]
            .map(|address| {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
                bind(&socket, &address).unwrap();
                listen(&socket, 8).unwrap();
                socket
            })
            .into();
        Self { tcp, udp, sockets, targets }
    }

    fn saw_nobody(&self, fixture: &Fixture) {
        assert!(self.tcp.accept().is_err(), "a connection came through");
        assert!(self.udp.recv(&mut [0; 16]).is_err(), "a datagram came through");
        assert!(self.sockets.iter().all(|socket| accept(socket).is_err()), "a local connection came through");
        assert!(!fixture.path("outside/written").exists(), "a file was written");
        assert_eq!(fs::read_to_string(fixture.path("outside/secret")).unwrap(), "secret\n");
    }
}

fn checks(jail: &Jail, witnesses: &Witnesses) -> Vec<SelfTestCheck> {
    let program = Program::SelfTest(witnesses.targets.clone());
    let command = Command { program, arguments: Vec::new(), env: Vec::new(), cwd: String::new() };
    let came = jail.try_run(command, "").unwrap();
    assert_eq!(came.ended.code, Some(0), "{came:?}");
    serde_json::from_str(&came.out).unwrap()
}

#[test]
fn all_acts_come_out_as_they_must() {
    for confinement in [Confinement::Landlock, Confinement::Full] {
        let fixture = Fixture::new();
        let witnesses = Witnesses::new(&fixture);
        let jail = Jail::start(&fixture.policy(confinement));
        let checks = checks(&jail, &witnesses);
        let wrong: Vec<_> = checks.iter().filter(|check| check.worked != check.must_work).collect();
        assert!(wrong.is_empty() && checks.len() > 30, "{confinement:?} {wrong:#?}");
        witnesses.saw_nobody(&fixture);
        drop(jail);
        assert_eq!(crate::fixture::names(&fixture.path("upper")), Vec::<String>::new(), "the test leaves nothing");
        assert_eq!(crate::fixture::names(&fixture.path("copy")), ["file.txt"], "the test leaves nothing");
    }
}

#[test]
fn without_walls_the_same_acts_come_through() {
    let fixture = Fixture::new();
    let witnesses = Witnesses::new(&fixture);
    let jail = Jail::start(&fixture.policy(Confinement::Unconfined));
    let checks = checks(&jail, &witnesses);
    for name in
        ["read-outside", "list-outside", "write-outside", "tcp-host", "unix-host", "abstract-host", "signal-host"]
    {
        assert!(checks.iter().any(|check| check.name == name && check.worked), "{name} {checks:#?}");
    }
    assert!(witnesses.tcp.accept().is_ok() && fixture.path("outside/written").exists());
    assert!(witnesses.sockets.iter().all(|socket| accept(socket).is_ok()));
    assert_eq!(witnesses.udp.recv(&mut [0; 16]).unwrap(), 8);
}
