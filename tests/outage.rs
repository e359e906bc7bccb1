//! The power fails at any moment, and no acknowledged record is lost.
//!
//! A run is recorded with `strace`: every write, rename and flush in its folder, and every record that it printed. For
//! each moment the disk is rebuilt as a power failure may leave it: with everything that was flushed, and with none,
//! some or all of the rest. `resume` must find every record that was printed by then, and must end as an undisturbed
//! run does. A recording in which flushes have no effect must fail this test.

mod calls;
mod disk;

use crate::workbench::{self, Workbench};
use calls::Call;
use disk::{Disk, Loss};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const PIPELINE: &str = r#"digraph loss {
    graph [goal="lose nothing"]
    start [shape=Mdiamond]
    small [shape=box, prompt="Write", allowed_write_paths="src/", max_retries=1]
    large [shape=box, prompt="Write more", allowed_write_paths="src/,large.txt"]
    again [shape=box, prompt="Write over", allowed_write_paths="src/"]
    done  [shape=Msquare]
    start -> small -> large -> again -> done
}
"#;

/// Returns answers with files around the size up to which blobs are stored in the journal.
fn script() -> String {
    let write = |node: &str, path: &str, content: &str| {
        format!(
            "[[node.{node}]]\ntool = [{{ name = \"write_file\", arguments = {{ path = \"{path}\", content = \"{content}\" }} }}]\n"
        )
    };
    let ends = |node: &str, outcome: &str| format!("[[node.{node}]]\ntext = \"done\"\noutcome = {{ {outcome} }}\n");
    [
        write("small", "src/one.txt", "one\\n"),
        ends("small", "status = \"retry\", failure_reason = \"not sure\""),
        write("small", "src/one.txt", "once\\n"),
        ends("small", "status = \"success\", context_updates = { round = \"1\" }"),
        write("large", "large.txt", &"0123456789abcdef".repeat(5000)),
        write("large", "src/deep/two.txt", "two\\n"),
        ends("large", "status = \"success\""),
        write("again", "src/one.txt", &"1".repeat(70_000)),
        ends("again", "status = \"success\", context_updates = { round = \"2\" }"),
    ]
    .concat()
}

/// A recorded run, and how it ended.
struct Recorded {
    bench: Workbench,
    calls: Vec<Call>,
    end: End,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
struct End {
    last: Value,
    visited: Value,
    round: Value,
    workspace: BTreeMap<String, Vec<u8>>,
}

fn end(run: &Path) -> End {
    let json = |name: &str| -> Value { serde_json::from_slice(&std::fs::read(run.join(name)).unwrap()).unwrap() };
    let (mut last, checkpoint) = (json("final.json"), json("checkpoint.json"));
    last.as_object_mut().unwrap().remove("timestamp");
    let mut workspace = BTreeMap::new();
    read_tree(&run.join("workspace"), "", &mut workspace);
    let (visited, round) = (checkpoint["completed_nodes"].clone(), checkpoint["context"]["round"].clone());
    End { last, visited, round, workspace }
}

fn read_tree(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_tree(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

const CALLS: &str = "open,creat,openat,openat2,close,write,pwrite64,writev,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,\
    fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,\
    copy_file_range,sendfile,splice,ioctl";

/// Records a run. Returns `None` if `strace` is not installed.
fn record() -> Option<Recorded> {
    if !workbench::is_on_this_machine("strace") {
        workbench::not_run("what a power cut leaves", "`strace` is not on this machine");
        return None;
    }
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("script.toml", &script());
    bench.write("src/old.txt", "old\n");
    bench.write("README.md", &"untouched\n".repeat(20_000));
    let log = bench.outside().join("calls.log");
    let run = bench.command(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "r", "--json"]);
    let mut recorded = Command::new("strace");
    recorded.args(["-f", "-y", "-x", "-s", "4194304", "-e", &format!("trace={CALLS}"), "-o"]).arg(&log);
    recorded.arg(run.get_program()).args(run.get_args()).current_dir(bench.project()).env_clear();
    recorded.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = recorded.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = calls::read(&std::fs::read_to_string(&log).unwrap());
    let end = end(&bench.run_folder("r"));
    assert_eq!(end.visited, serde_json::json!(["start", "small", "large", "again"]));
    assert_eq!(end.workspace["src/one.txt"].len(), 70_000);
    std::fs::rename(bench.run_folder("r"), bench.outside().join("undisturbed")).unwrap();
    Some(Recorded { bench, calls, end })
}

/// Returns sequence number and hash of each record in lines of JSON.
fn records(lines: &[u8]) -> BTreeMap<u64, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    lines.filter_map(|line| Some((line["seq"].as_u64()?, line["hash"].as_str()?.to_owned()))).collect()
}

/// A moment at which the power fails.
struct Cut<'d> {
    disk: &'d Disk,
    loss: Loss,
    /// Output of the run until that moment.
    said: &'d [u8],
}

impl Recorded {
    /// Replays the recording and cuts the power before each flush and after each printed line. With `broken`, flushes
    /// of that file have no effect after that number of printed bytes.
    fn cut_everywhere(
        &self,
        broken: Option<(&'static str, usize)>,
        seeds: u64,
        mut check: impl FnMut(usize, &Cut<'_>),
    ) {
        let mut disk = Disk::new(&self.bench.run_folder("r"));
        let mut said = Vec::new();
        let losses: Vec<Loss> = [Loss::Everything].into_iter().chain((1..=seeds).map(Loss::Some)).collect();
        for (index, call) in self.calls.iter().enumerate() {
            disk.broken = broken.filter(|(_, from)| said.len() >= *from).map(|(file, _)| file);
            let prints = call.name == "write" && call.descriptor(0) == Some(1);
            if disk.is_flush(call) {
                losses.iter().for_each(|loss| check(index, &Cut { disk: &disk, loss: *loss, said: &said }));
            }
            disk.follow(call);
            if prints {
                said.extend(call.text(1).unwrap());
                losses.iter().for_each(|loss| check(index, &Cut { disk: &disk, loss: *loss, said: &said }));
            }
        }
    }

    /// Returns what is wrong after a power failure, or `None` if nothing is lost.
    fn fault(&self, cut: &Cut<'_>) -> Option<String> {
        let run = self.bench.run_folder("r");
        let _ = std::fs::remove_dir_all(&run);
        std::fs::create_dir(&run).unwrap();
        std::fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        cut.disk.lose_power(cut.loss, &run);
        let acknowledged = records(cut.said);
        let has_ended = cut.said.windows(14).any(|word| word == b"\"run.finished\"");
        if has_ended && !std::fs::read(run.join("final.json")).is_ok_and(|bytes| bytes.ends_with(b"}\n")) {
            return Some("the run said that it ended, and `final.json` is not there".to_owned());
        }
        let resumed = self.bench.glovebox(&["resume", "r", "--quiet"]);
        if acknowledged.is_empty() && resumed.code != 0 {
            return None;
        }
        if resumed.code != 0 {
            return Some(format!("exit {}: {}", resumed.code, resumed.stderr));
        }
        let told = records(&std::fs::read(run.join("progress.ndjson")).unwrap());
        if let Some((seq, _)) = acknowledged.iter().find(|(seq, hash)| told.get(seq) != Some(hash)) {
            return Some(format!("record {seq} was acknowledged and is lost"));
        }
        let found = end(&run);
        (found != self.end).then(|| {
            let paths = self.end.workspace.iter().filter(|(path, bytes)| found.workspace.get(*path) != Some(bytes));
            let paths: Vec<&String> = paths.map(|(path, _)| path).collect();
            format!("it ended in another way; files that differ: {paths:?}; {} {}", found.visited, found.last)
        })
    }
}

#[test]
fn whenever_the_power_goes_nothing_acknowledged_is_lost() {
    let Some(recorded) = record() else { return };
    let (mut cuts, mut faults) = (0, Vec::new());
    recorded.cut_everywhere(None, 2, |index, cut| {
        cuts += 1;
        faults.extend(recorded.fault(cut).map(|fault| format!("call {index}, {:?}: {fault}", cut.loss)));
    });
    assert!(faults.is_empty(), "{} of {cuts} cuts:\n{}", faults.len(), faults.join("\n"));
    assert!(cuts > 40, "{cuts} cuts are too few to say anything");
}

/// The suite detects a log, a blob or an end that is not flushed.
#[test]
fn flushes_that_do_nothing_are_found() {
    let Some(recorded) = record() else { return };
    let broken = [
        (("journal.sqlite-wal", 0), "was killed before it began"),
        (("journal.sqlite-wal", 1), "is lost"),
        ((".final.json.new", 0), "`final.json`"),
        (("workspace/README.md", 0), "README.md"),
    ];
    for (broken, expected) in broken {
        let (mut is_found, mut faults) = (false, Vec::new());
        recorded.cut_everywhere(Some(broken), 0, |_, cut| {
            if !is_found && let Some(fault) = recorded.fault(cut) {
                is_found = fault.contains(expected);
                faults.push(fault);
            }
        });
        assert!(is_found, "without flushes of {broken:?}: {faults:?}");
    }
}
