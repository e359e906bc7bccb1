//! The program under test: started by `subject` from a verifier's jail, and separated from it.

use crate::not_run;
use glovebox_jail::exec::{Command, Exit, Program};
use glovebox_jail::jail::ExecPolicy;
use glovebox_jail::jail::{Jail, JailSetting, Source, probe_tier};
use glovebox_jail::subject::{SubjectSetting, Subjects, SubjectsReport};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_record::{Limits, Network, Tier};
use glovebox_workspace::stage::ViewOverrides;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SECRET: &str = "forty-two apples in a wicker basket";

/// A verifier's jail with a hold-out, and the service that answers its `subject`.
struct Bench {
    dir: tempfile::TempDir,
    jail: Jail,
    subjects: Subjects,
}

fn tiers() -> Vec<Tier> {
    let bwrap = probe_tier(Tier::Bwrap);
    if let Err(error) = &bwrap {
        not_run::not_run("subjects in tier bwrap", &error.reason);
    }
    [Tier::Full].into_iter().chain(bwrap.ok().map(|()| Tier::Bwrap)).collect()
}

fn setting(root: &Path, tier: Tier) -> JailSetting {
    let mut policy = ExecPolicy { grace: Duration::from_millis(200), ..ExecPolicy::default() };
    policy.path.insert(0, "/run/glovebox".into());
    JailSetting {
        tier,
        policy,
        network: Network::None,
        limits: Limits::default(),
        inside: root.join("project"),
        inner: Vec::new(),
        kept: Vec::new(),
        hidden: vec![root.join("project")],
        folder: root.join("attempt"),
        pulse: glovebox_jail::pulse::Pulse::default(),
    }
}

impl Bench {
    fn new(tier: Tier) -> Self {
        Self::with(tier, |_| {})
    }

    fn with(tier: Tier, change: impl FnOnce(&mut SubjectSetting)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["attempt", "project", "workspace/src", "workspace/scripts/scenarios", "copy/scripts/scenarios"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("workspace/src/prog.sh"), "echo from the program\n").unwrap();
        fs::write(root.join("copy/scripts/scenarios/check.sh"), format!("# {SECRET}\n")).unwrap();
        let scope = Scope { hidden: vec![Entry::parse("scripts/scenarios/").unwrap()], ..Scope::everything() };
        let mut subject = SubjectSetting {
            jail: setting(&root, tier),
            workspace: root.join("workspace"),
            scope,
            overrides: ViewOverrides::default(),
            mounts: tier == Tier::Full,
            workdir: ScopePath::root(),
            command: None,
            port: None,
            timeout: Duration::from_secs(20),
            calls_max: 50,
        };
        change(&mut subject);
        let mut subjects = Subjects::offer(subject).unwrap();
        let copy = root.join("copy");
        let jail =
            Jail::open_with_channels(&setting(&root, tier), Source::Directory(copy), &subjects.channels()).unwrap();
        subjects.begin(&jail, &AtomicBool::new(false)).unwrap();
        Self { dir, jail, subjects }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn run(&self, text: &str) -> Exit {
        let timeout = Duration::from_secs(30);
        let (program, cwd) = (Program::Shell(text.to_owned()), ScopePath::root());
        let command = Command { program, cwd, env: Vec::new(), stdin: None, timeout };
        self.jail.run(&command, &AtomicBool::new(false)).unwrap()
    }

    /// Ends the jail of the verifier and opens another one.
    fn reset(&mut self) {
        let (root, tier) = (self.dir.path().canonicalize().unwrap(), self.jail.status().tier);
        let open = |subjects: &Subjects| {
            Jail::open_with_channels(&setting(&root, tier), Source::Directory(root.join("copy")), &subjects.channels())
        };
        let next = open(&self.subjects).unwrap();
        std::mem::replace(&mut self.jail, next).end().unwrap();
        self.subjects.reset().unwrap();
        self.subjects.begin(&self.jail, &AtomicBool::new(false)).unwrap();
    }

    /// Ends both sandboxes. The folder lives as long as the returned value.
    fn end(self) -> (SubjectsReport, tempfile::TempDir) {
        self.jail.end().unwrap();
        (self.subjects.end().unwrap(), self.dir)
    }
}

fn text(exit: &Exit) -> String {
    let bytes = [exit.stdout.head.clone(), exit.stdout.tail.clone(), exit.stderr.head.clone()].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check(bench: &Bench, command: &str, code: i32, said: &str) {
    let exit = bench.run(command);
    assert_eq!((exit.code, text(&exit).as_str()), (Some(code), said), "{command}");
}

#[test]
fn a_program_under_test_starts_over_with_its_first_files() {
    for tier in tiers() {
        let mut bench = Bench::new(tier);
        check(&bench, "subject sh -c 'test ! -e left && echo x > left && rm src/prog.sh && ls src'", 0, "");
        check(&bench, "subject cat left", 0, "x\n");
        bench.reset();
        check(&bench, "subject sh -c 'test -e left || ls src'", 0, "prog.sh\n");
        let (used, _dir) = bench.end();
        assert_eq!((used.calls.len(), used.usage.len(), used.views.len()), (3, 2, 1), "what it wrote before is gone");
    }
}

#[test]
fn streams_and_exit_code_cross_and_nothing_else() {
    for tier in tiers() {
        let bench = Bench::new(tier);
        check(&bench, "subject sh src/prog.sh", 0, "from the program\n");
        check(&bench, "printf 'a b' | subject tr a-z A-Z", 0, "A B");
        check(&bench, "subject sh -c 'echo out; echo err >&2; exit 7'", 7, "out\nerr\n");
        check(&bench, "subject sh -c 'kill -SEGV $$'", 139, "");
        check(&bench, "x=$(subject sh -c 'echo in a variable') && echo \"$x\"", 0, "in a variable\n");
        check(&bench, "SECRET=1 subject sh -c 'echo ${SECRET-none}'", 0, "none\n");
        check(&bench, "cd scripts/scenarios && subject pwd", 0, &format!("{}\n", bench.at("project").display()));
        check(&bench, "mkdir -p src; cd src && subject sh prog.sh", 0, "from the program\n");
        assert_eq!(bench.run("subject no-such-program 2>/dev/null").code, Some(127));
        let lines = bench.run("subject seq 1 200000 | tail -n 1");
        assert_eq!(text(&lines), "200000\n", "more than a pipe holds");
        assert_eq!(bench.run("subject yes | head -n 1").code, Some(0), "a reader that leaves");
        let (used, _dir) = bench.end();
        assert_eq!(used.calls.len(), 11);
        assert_eq!(used.calls[0].words, ["sh", "src/prog.sh"]);
        assert_eq!(used.calls[0].exit.stdout.total_bytes, 17);
        assert_eq!(used.calls[0].exit.stdout.digest, glovebox_record::Digest::hash(b"from the program\n"));
    }
}

#[test]
fn the_verifiers_files_processes_and_memory_do_not_exist_for_it() {
    for tier in tiers() {
        let bench = Bench::new(tier);
        assert!(text(&bench.run("cat scripts/scenarios/check.sh")).contains(SECRET), "the verifier reads it");
        let tricks = [
            "cat scripts/scenarios/check.sh",
            "cat /tmp/answer",
            "cat /dev/shm/answer",
            "cat $HOME/answer",
            "grep -rs apples / --include=check.sh --include=answer",
            "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep apples",
            "for f in /proc/[0-9]*/fd/*; do timeout 1 head -c 200 $f </dev/null; done 2>/dev/null | grep apples",
            "cat /run/glovebox/socket /run/glovebox/subject",
        ];
        bench.run(&format!("echo {SECRET} | tee /tmp/answer > /dev/shm/answer; cp /tmp/answer $HOME/answer"));
        for trick in tricks {
            let exit = bench.run(&format!("ANSWER='{SECRET}' subject sh -c '{}'", trick.replace('\'', "'\\''")));
            assert!(!text(&exit).contains("apples in"), "{trick}: {}", text(&exit));
        }
        assert_ne!(bench.run("subject ls -d /run/glovebox").code, Some(0));
        bench.end();
    }
}

#[test]
fn what_it_writes_stays_for_the_stage_and_reaches_neither_side() {
    for tier in tiers() {
        let bench = Bench::new(tier);
        check(&bench, "subject sh -c 'mkdir build && echo built > build/x && echo t > /tmp/t'", 0, "");
        check(&bench, "subject cat build/x", 0, "built\n");
        assert_ne!(bench.run("ls build || ls /tmp/t").code, Some(0));
        assert!(!bench.at("workspace/build").exists());
        let (used, _dir) = bench.end();
        let found = used.views[0].changes(&Default::default(), &Default::default()).unwrap();
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, ["build", "build/x"]);
    }
}

#[test]
fn callers_take_turns_and_one_that_leaves_ends_its_program() {
    for tier in tiers() {
        let bench = Bench::new(tier);
        let both =
            "subject sh -c 'echo $$ > busy; sleep 0.3; rm busy' & subject sh -c 'test ! -e busy && echo alone' & wait";
        assert!(text(&bench.run(both)).contains("alone"));
        check(&bench, "timeout 0.3 subject sh -c 'sleep 60'; echo $?", 0, "124\n");
        check(&bench, "subject echo free", 0, "free\n");
        bench.end();
    }
}

#[test]
fn its_limits_are_its_own() {
    for tier in tiers() {
        let bench = Bench::with(tier, |setting| {
            setting.timeout = Duration::from_millis(300);
            setting.calls_max = 3;
        });
        let late = bench.run("subject sleep 60");
        assert_eq!(late.code, Some(124), "{}", text(&late));
        assert!(text(&late).contains("`limits.command_ms`"));
        check(&bench, "subject true; subject true", 0, "");
        let refused = bench.run("subject true");
        assert_eq!(refused.code, Some(125));
        assert!(text(&refused).contains("`limits.commands` (3)"), "{}", text(&refused));
        assert_eq!(bench.run(&format!("subject echo {}", "x".repeat(70_000))).code, Some(125));
        bench.end();
    }
}

#[test]
fn a_subject_has_no_subject() {
    for tier in tiers() {
        let bench = Bench::new(tier);
        let exit = bench.run("subject sh -c 'subject true'");
        assert_eq!(exit.code, Some(127), "{}", text(&exit));
        let nothing = bench.run("subject");
        assert!(nothing.code == Some(125) && text(&nothing).contains("verify_subject"), "{}", text(&nothing));
        bench.end();
    }
}

#[test]
fn the_command_of_the_node_is_started_without_words() {
    let bench = Bench::with(Tier::Full, |setting| setting.command = Some("read x; echo \"got $x\"".to_owned()));
    check(&bench, "echo word | subject", 0, "got word\n");
    bench.end();
}

#[test]
fn words_do_not_swell_the_record() {
    let bench = Bench::new(Tier::Full);
    let exit = bench.run(
        "w=$(head -c 60000 /dev/zero | tr '\\0' a); for i in $(seq 25); do subject true $w b c d e || exit 1; done",
    );
    assert_eq!(exit.code, Some(0), "{}", text(&exit));
    let (used, _dir) = bench.end();
    assert_eq!(used.calls.len(), 25);
    let bytes = used.calls.iter().flat_map(|call| &call.words).map(String::len).sum::<usize>();
    assert!(bytes < (1 << 20) + (25 << 10), "{bytes} bytes are kept");
    let (first, last) = (&used.calls[0].words, &used.calls[24].words);
    assert_eq!((first.len(), first[1].len()), (6, 60000));
    assert_eq!((last[0].as_str(), last.last().unwrap().as_str()), ("true", "… 2 more arguments"));
}

#[test]
fn a_request_that_announces_more_than_a_call_has_is_refused_unread() {
    let bench = Bench::new(Tier::Full);
    let send = r#"use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => "/run/glovebox/socket") or die;
        print $s pack("V", 1 << 20); $s->flush; read $s, my $head, 4; read $s, my $text, unpack("V", $head); print $text;"#;
    let exit = bench.run(&format!("perl -e '{send}'"));
    assert!(text(&exit).contains("the request has 1048576 bytes, expected at most"), "{}", text(&exit));
    check(&bench, "subject sh src/prog.sh", 0, "from the program\n");
}

#[test]
fn a_server_is_reached_at_its_port_and_reaches_nothing() {
    let serve = r#"use IO::Socket::INET;
        my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:8765", ReuseAddr => 1) or die;
        while (my $c = $l->accept) { my $line = <$c>; print $c "served $line"; close $c }"#;
    let bench = Bench::with(Tier::Full, |setting| {
        fs::write(setting.workspace.join("serve.pl"), serve).unwrap();
        (setting.command, setting.port) = (Some("exec perl serve.pl".to_owned()), Some(8765));
    });
    let ask = "exec 3<>/dev/tcp/127.0.0.1/8765; echo this >&3; cat <&3";
    for _ in 0..3 {
        let exit = bench.run(&format!("bash -c \"{}\"", ask.replace('"', "\\\"")));
        assert!(text(&exit).contains("served this"), "{}", text(&exit));
    }
    // The program cannot reach the verifier's own servers, nor the verifier's side of the port.
    let listen = "bash -c 'coproc perl -MIO::Socket::INET -e \"IO::Socket::INET->new(Listen=>1,LocalAddr=>q(127.0.0.1:9753)); sleep 5\"; sleep 0.5; subject bash -c \"exec 3<>/dev/tcp/127.0.0.1/9753\"'";
    assert_ne!(bench.run(listen).code, Some(0));
    let (used, _dir) = bench.end();
    assert_eq!(used.calls.last().unwrap().words[2], "exec perl serve.pl");
}
