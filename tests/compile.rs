//! Components that are extremely expensive to compile. Every command that loads one refuses it, or stops the
//! compilation at a limit.

use crate::guests;
use crate::workbench::{self, Answer, Workbench};
use std::path::Path;
use std::time::Duration;

const PIPELINE: &str = "digraph g {\n  graph [goal=\"g\"]\n  start [shape=Mdiamond]; done [shape=Msquare]\n\
    \x20 work [type=\"acme.bomb\", allowed_write_paths=\"\"]\n  start -> work -> done\n}\n";

/// Returns a core module with one function that has `locals` locals and `loops` nested loops. Every local is read.
fn module(locals: usize, loops: usize) -> Vec<u8> {
    let mut body = [&[1][..], &number(locals), &[0x7f]].concat();
    let mut unread = 0..locals;
    for _ in 0..loops {
        body.extend([0x03, 0x40]);
        for local in unread.by_ref().take(locals.div_ceil(loops)) {
            body.extend([&[0x20][..], &number(local), &[0x1a]].concat());
        }
    }
    body.extend(vec![0x0b; loops + 1]);
    let function = [number(body.len()), body].concat();
    let code = [number(1), function].concat();
    let sections = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(10, &code)].concat();
    [&b"\0asm\x01\0\0\0"[..], &sections].concat()
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id][..], &number(body.len()), body].concat()
}

fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Returns the component with an additional core module that is never instantiated. The compiler still compiles it.
fn with_module(component: &[u8], module: &[u8]) -> Vec<u8> {
    [component, &section(1, module)].concat()
}

/// A component of 400 KB for which the compiler would take 9.4 GB.
fn too_complex(component: &[u8]) -> Vec<u8> {
    with_module(component, &module(50_000, 20_000))
}

/// A component just below the limit on complexity. It takes a few hundred MB and, with an unoptimised compiler,
/// minutes.
fn explosive(component: &[u8]) -> Vec<u8> {
    with_module(component, &module(200, 40_000))
}

fn bench(component: &[u8], table: &str) -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("glovebox.toml", &format!("[{table}.\"acme.bomb\"]\npath = \"bomb.wasm\"\n"));
    std::fs::write(bench.project().join("bomb.wasm"), component).unwrap();
    bench
}

/// Returns a command with an empty cache, so that nothing is compiled yet, and with these environment variables.
fn fresh(bench: &Workbench, words: &[&str], settings: &[(&str, &str)]) -> std::process::Command {
    let mut command = bench.command(words);
    command.env("GLOVEBOX_CACHE_DIR", bench.outside().join("cache")).envs(settings.iter().copied());
    command
}

/// Runs a command to its end. Returns its answer, and the peak memory of the command and its descendants together, in
/// MB.
fn watched(command: &mut std::process::Command) -> (Answer, u64) {
    use std::process::Stdio;
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (parent, mut most) = (child.id(), 0);
    let waiting = std::thread::spawn(move || Answer::from_child(child));
    while !waiting.is_finished() {
        most = most.max(family(parent).iter().map(|pid| peak_kilobytes(*pid)).sum());
        std::thread::sleep(Duration::from_millis(5));
    }
    (waiting.join().unwrap(), most >> 10)
}

fn family(parent: u32) -> Vec<u32> {
    let children =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok()) == Some(parent)
    };
    children.filter(is_child).chain([parent]).collect()
}

/// Returns the peak memory of a process in kB, or 0 if the process has ended.
fn peak_kilobytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_component_that_is_too_complex_is_refused_by_every_command() {
    let handler = bench(&too_complex(&guests::build("traps")), "plugins");
    let rules = bench(&too_complex(&guests::rules("(func $lint (param i32 i32)) (func $transform)")), "rules");
    let tries: [(&Workbench, &[&str]); 6] = [
        (&handler, &["plan", "pipeline.dot"]),
        (&handler, &["run", "pipeline.dot"]),
        (&handler, &["plugin", "inspect", "bomb.wasm"]),
        (&handler, &["plugin", "lock"]),
        (&rules, &["check", "pipeline.dot"]),
        (&rules, &["plugin", "lock"]),
    ];
    for (bench, words) in tries {
        let (answer, megabytes) = watched(&mut fresh(bench, words, &[]));
        answer.ends(7).says("is more complex than 8388608").says("bomb");
        assert!(megabytes < 1024, "{words:?}: {megabytes} MB");
    }
}

#[test]
fn what_explodes_all_the_same_is_stopped_by_memory_and_by_time() {
    let tries = [
        ("GLOVEBOX_COMPILE_MEMORY", "180MiB", "takes more than 180 MiB of memory (bound `GLOVEBOX_COMPILE_MEMORY`)"),
        ("GLOVEBOX_COMPILE_TIME", "1s", "(bound `GLOVEBOX_COMPILE_TIME`)"),
    ];
    let bench = bench(&explosive(&guests::build("traps")), "plugins");
    fresh(&bench, &["plugin", "lock"], &[]).output().unwrap();
    for (bound, value, told) in tries {
        let (answer, megabytes) = watched(&mut fresh(&bench, &["plan", "pipeline.dot"], &[(bound, value)]));
        answer.ends(7).says("`acme.bomb` cannot be loaded: compiling the component").says(told).says("help: ");
        // This includes the memory of the command itself and that of its compiling child process.
        assert!(megabytes < 1024, "{bound}: {megabytes} MB");
    }
    let kept = std::fs::read_dir(bench.outside().join("cache/aot")).unwrap();
    let kept: Vec<String> = kept.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    // Only the host's own small component may be in the cache.
    assert!(kept.iter().filter(|name| name.ends_with(".cwasm")).count() <= 1, "nothing of it is kept: {kept:?}");
}

#[test]
fn a_slow_compilation_is_told_once_and_a_fast_one_is_not() {
    let slow = bench(&explosive(&guests::build("traps")), "plugins");
    fresh(&slow, &["plugin", "lock"], &[]).output().unwrap();
    let answer = Answer::of(&mut fresh(&slow, &["run", "pipeline.dot"], &[("GLOVEBOX_COMPILE_TIME", "5s")]));
    answer.ends(7).says("compiling a component without a manifest (").never_says("\u{1b}");
    assert_eq!(answer.stderr.matches("compiling a component without").count(), 1, "{}", answer.stderr);
    let fast = bench(&guests::component("(func $execute)"), "plugins");
    fresh(&fast, &["plugin", "lock"], &[]).output().unwrap();
    Answer::of(&mut fresh(&fast, &["run", "pipeline.dot"], &[])).ends(0).never_says("compiling");
}

#[test]
fn rules_are_compiled_within_the_same_bounds() {
    let bench = bench(&explosive(&guests::rules("(func $lint (param i32 i32)) (func $transform)")), "rules");
    fresh(&bench, &["plugin", "lock"], &[]).output().unwrap();
    let settings = [("GLOVEBOX_COMPILE_MEMORY", "180MiB")];
    let answer = Answer::of(&mut fresh(&bench, &["check", "pipeline.dot"], &settings));
    answer.ends(7).says("rule plugin `acme.bomb` cannot be loaded").says("(bound `GLOVEBOX_COMPILE_MEMORY`)");
}

#[test]
fn a_bound_that_is_no_amount_stops_the_command() {
    let bench = Workbench::with_pipeline(workbench::LINEAR);
    for name in ["GLOVEBOX_COMPILE_MEMORY", "GLOVEBOX_COMPILE_TIME", "GLOVEBOX_CACHE_BYTES"] {
        let answer = Answer::of(&mut fresh(&bench, &["plan", "pipeline.dot"], &[(name, "plenty")]));
        answer.ends(2).says(&format!("`{name}` is `plenty`")).says("help: ");
    }
}

/// With no memory for the compiler, only components from the cache can be used.
#[test]
fn what_is_kept_needs_no_compiler() {
    let bench = Workbench::with_pipeline(workbench::LINEAR);
    Answer::of(&mut fresh(&bench, &["plan", "pipeline.dot"], &[])).ends(0);
    let nothing = [("GLOVEBOX_COMPILE_MEMORY", "1")];
    Answer::of(&mut fresh(&bench, &["plan", "pipeline.dot"], &nothing)).ends(0);
    std::fs::remove_dir_all(bench.outside().join("cache")).unwrap();
    Answer::of(&mut fresh(&bench, &["plan", "pipeline.dot"], &nothing)).ends(7).says("GLOVEBOX_COMPILE_MEMORY");
}

#[test]
fn the_hidden_command_confines_itself_or_does_nothing() {
    let bench = Workbench::new();
    // Here the parent process of the hidden command is not Glovebox, and the command has no limits.
    for argument in ["4294967296,10,1000000,1", "4294967296,10", "nothing"] {
        let answer = bench.glovebox(&["compile-component", argument]);
        assert_ne!(answer.code, 0);
        assert_eq!(answer.stdout, "");
    }
}

#[test]
fn the_binary_has_no_other_compiler() {
    let crates = ["cli", "engine", "journal", "plan", "state"];
    let mut folders: Vec<_> = crates.map(|name| workbench::root().join(format!("runtime/{name}/src"))).into();
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("InProcess") && !text.contains("in_process("), "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 100);
}
