//! The program under test with the real binary: it is isolated from the hold-outs that judge it, from the verifier's
//! files and from the verifier's caches.
//!
//! The builder is hostile. Each of its programs repeats an attack from a review of the product that read the hold-outs
//! or forged a verdict.

use crate::workbench::{Answer, Workbench};
use std::path::Path;

/// The output that the hold-out expects. No builder can guess it.
const SECRET: &str = "forty-two apples in a wicker basket";
/// Prints the expected output without quoting any part of the hold-out, as if its author knew the answer from
/// elsewhere.
const HONEST: &str = "what='apples in'; where='a wicker basket'; echo forty-two $what $where";

/// Creates a builder that writes `src/prog.sh` and is visited again after each failure, and a judge with these
/// attributes. `check` is the hold-out.
fn bench(judge: &str, check: &str, program: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph h {{ graph [goal=g, max_steps=12] start [shape=Mdiamond] done [shape=Msquare]\n\
         \x20 build [shape=box, allowed_write_paths=\"src/\", prompt=\"$goal\"]\n\
         \x20 judge [shape=parallelogram, {judge}]\n\
         \x20 start -> build -> judge; judge -> done [condition=\"outcome=success\"]; judge -> build [condition=\"outcome=fail\"] }}\n"
    ));
    bench.write("scripts/scenarios/check.sh", &format!("# the riddle's answer is {SECRET}\n{check}\n"));
    bench.write("README.md", "a riddle\n");
    script(&bench, &[program]);
    bench
}

/// Writes a script in which the builder writes one of these programs per visit and then gives up.
fn script(bench: &Workbench, programs: &[&str]) {
    let turn = |program: &&str| {
        format!(
            "[[node.build]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"src/prog.sh\", content = '''{program}''' }} }}]\n\
             [[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n"
        )
    };
    let turns: String = programs.iter().map(turn).collect();
    std::fs::write(bench.outside().join("script.toml"), turns + "[[node.build]]\ntext = \"OUTCOME: FAIL\"\n").unwrap();
}

fn run(bench: &Workbench) -> Answer {
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "r"])
}

const ISOLATED: &str = "read_paths=\"scripts/scenarios/\", tool_command=\"sh scripts/scenarios/check.sh\"";
const OPEN: &str = "tool_command=\"sh scripts/scenarios/check.sh\"";

/// Returns the hold-out of these tests: it checks the output of the program under test.
fn asks(subject: &str) -> String {
    format!("test \"$({subject} sh src/prog.sh)\" = \"{SECRET}\"")
}

#[test]
fn honest_code_is_verified_and_the_record_says_how() {
    let isolated = bench(ISOLATED, &asks("subject"), HONEST);
    run(&isolated)
        .ends(0)
        .says("verified     judge: sh -c 'sh scripts/scenarios/check.sh'")
        .says("subject      judge: sh src/prog.sh");
    let open = bench(OPEN, &asks(""), HONEST);
    run(&open).ends(0).says("verified (subject not isolated) judge:");
    isolated.glovebox(&["plan", "pipeline.dot"]).ends(0);
    let plan = open.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(plan["holdouts"]["not_isolated"][0], "judge");
}

#[test]
fn a_program_that_looks_the_answer_up_finds_nothing() {
    let look_up = "sed -n 's/.*answer is //p' scripts/scenarios/check.sh | head -1";
    let seen_through = bench(OPEN, &asks(""), look_up);
    run(&seen_through).ends(0).says("verified (subject not isolated)");
    let tricks = [
        look_up,
        "grep -rhso 'forty.*basket' . / --include=check.sh | head -1",
        "cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -o 'forty.*basket' | head -1",
        "for f in /proc/[0-9]*/fd/*; do timeout 1 grep -aos 'forty.*basket' $f; done | head -1",
        "timeout 1 cat /dev/shm/* /tmp/* /run/glovebox/* 2>/dev/null | grep -ao 'forty.*basket' | head -1",
    ];
    for attributes in [ISOLATED, OPEN] {
        let bench = bench(attributes, &format!("cp scripts/scenarios/check.sh /tmp/; {}", asks("subject")), "");
        script(&bench, &tricks);
        run(&bench).ends(1).never_says("verified     judge");
    }
}

#[test]
fn what_a_program_writes_in_the_verifiers_scope_reaches_no_builder() {
    let leak = "cp scripts/scenarios/check.sh Cargo.lock; echo weakened > tests";
    for scope in ["allowed_write_paths=\"Cargo.lock,tests\", ", ""] {
        let bench = bench(&format!("{scope}{OPEN}"), "sh src/prog.sh", leak);
        run(&bench).says("the stage had hold-outs in reach, so builders do not see what it writes");
        let workspace = bench.run_folder("r").join("workspace");
        assert!(!workspace.join("Cargo.lock").exists() && !workspace.join("tests").exists());
    }
    let commits = bench(
        &format!("allowed_write_paths=\"tests\", scenario_writes=commit, {OPEN}"),
        "sh src/prog.sh",
        "echo x > tests",
    );
    commits.glovebox(&["check", "pipeline.dot"]).says("scenario_opt_out");
    run(&commits).ends(0).says("changed      tests");
    let status = commits.glovebox(&["holdout", "status", "r"]);
    status.ends(0).says("`judge` commits what it writes, and builders can read it");
}

#[test]
fn a_cache_is_no_way_from_one_visit_to_the_next() {
    let poison = "test -e build/poisoned && echo poisoned; mkdir -p build; touch build/poisoned; exit 1";
    let check = "subject sh src/prog.sh || { test ! -e build/mine && touch build/mine; exit 1; }";
    let bench = bench(&format!("cache=\"build/\", {OPEN}"), check, poison);
    script(&bench, &[poison, poison]);
    run(&bench).ends(1);
    for visit in [1, 2] {
        let file =
            if visit == 1 { "judge/tool.stdout.txt".to_owned() } else { "judge/visit-2/tool.stdout.txt".to_owned() };
        let path = bench.run_folder("r").join(&file);
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), "", "{file}");
    }
    assert!(!has_below(&bench.run_folder("r").join("cache"), "poisoned"));
}

#[test]
fn a_cache_can_begin_with_what_the_base_made() {
    let check = "subject sh -c 'test -e src/prog.sh || touch build/base; ls build; test ! -e src/prog.sh || sh src/prog.sh'; false";
    let bench = bench(&format!("cache=\"build/\", cache_from=base, {OPEN}"), check, "");
    script(&bench, &["touch build/poison", "touch build/poison"]);
    run(&bench).ends(1).says("judge caches filled from the files the run began with");
    bench.glovebox(&["show", "r", "judge"]).says("| base").never_says("| poison");
    assert!(bench.run_text("r", "progress.ndjson").contains("cache.filled"));
    assert!(!has_below(&bench.run_folder("r").join("cache"), "poison"));
}

#[test]
fn a_verdict_beside_a_scratch_folder_of_the_project_is_not_isolated() {
    // The stage's own commands see the scratch folder with the files that a builder wrote.
    let bench = bench(&format!("{ISOLATED}, scratch=\"src/\""), ". ./src/prog.sh", "exit 0");
    run(&bench).ends(0).says("verified (subject not isolated)");
}

#[test]
fn a_builder_that_reads_hold_outs_leaves_an_isolated_verdict_no_cache() {
    let judge = format!("{ISOLATED}, cache=\"target/\"");
    let bench = bench(&judge, "test ! -e target/poison", "");
    let text = std::fs::read_to_string(bench.project().join("pipeline.dot")).unwrap();
    let grants = "codex.allow_read_scenarios=true, allowed_commands=\"*\", cache=\"target/\", prompt=";
    bench.write("pipeline.dot", &text.replace("prompt=", grants));
    let poison = "[[node.build]]\ntool = [{ name = \"shell\", arguments = { command = \"echo x > target/poison\" } }]\n\
                  [[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n[[node.build]]\ntext = \"OUTCOME: FAIL\"\n";
    std::fs::write(bench.outside().join("script.toml"), poison).unwrap();
    run(&bench).ends(0).says("verified     judge");
}

#[test]
fn a_server_under_test_is_reached_at_its_port() {
    let serve = "use IO::Socket::INET; my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1:8765)); \
                 while (my $c = $l->accept) { print $c qx(sh src/prog.sh); close $c }";
    let attributes = format!("verify_subject=\"perl serve.pl\", verify_subject_port=8765, {OPEN}");
    let ask = "got=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(q(127.0.0.1:8765))->getline')";
    let check = format!("{ask}; test \"$got\" = '{SECRET}'");
    let bench = bench(&attributes, &check, HONEST);
    bench.write("serve.pl", serve);
    run(&bench).ends(0).says("subject      judge: sh -c 'perl serve.pl'");
    script(&bench, &["cat scripts/scenarios/check.sh"]);
    bench.glovebox(&["run", "pipeline.dot", "--script", "../script.toml", "--run-id", "s"]).ends(1);
}

#[test]
fn a_server_under_test_reaches_no_port_but_its_own() {
    // The witness is a socket of the machine. The verifier also has a socket that sends the answer to every client.
    let machine = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    machine.set_nonblocking(true).unwrap();
    let port = machine.local_addr().unwrap().port();
    let serve = format!(
        "use IO::Socket::INET; my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1:8765)); \
         while (my $c = $l->accept) {{ for my $p (9876, 3128, {port}) {{ \
         my $s = IO::Socket::INET->new(PeerAddr => qq(127.0.0.1:$p), Timeout => 2) or next; print $c $s->getline }} close $c }}"
    );
    let ask = |port: u16| {
        format!(
            "perl -MIO::Socket::INET -e 'for (1..50) {{ my $s = IO::Socket::INET->new(q(127.0.0.1:{port})); \
             if ($s) {{ print $s->getline; exit }} select undef, undef, undef, 0.1 }}'"
        )
    };
    let listens = format!(
        "perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1:9876)); \
         while (my $c = $l->accept) {{ print $c q({SECRET}); close $c }}' & listener=$!"
    );
    // The verifier can read the answer from its own socket, so the socket works. The server must not get the answer.
    let check = format!(
        "{listens}; own=$({}); got=$({}); kill $listener; test \"$own\" = '{SECRET}' && test \"$got\" = ''",
        ask(9876),
        ask(8765)
    );
    let bench = bench(&format!("verify_subject=\"perl serve.pl\", verify_subject_port=8765, {OPEN}"), &check, HONEST);
    bench.write("serve.pl", &serve);
    run(&bench).ends(0).says("subject      judge: sh -c 'perl serve.pl'");
    assert_eq!(machine.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody reached the machine");
}

/// Returns true if a file or folder with this name exists below `folder`.
fn has_below(folder: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries
        .map(Result::unwrap)
        .any(|entry| entry.file_name() == name || entry.file_type().unwrap().is_dir() && has_below(&entry.path(), name))
}
