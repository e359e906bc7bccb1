//! Measures what a run costs: each further stage, the start, a resume, and how the cost grows with the length of the
//! run.
//!
//! `cargo bench --workspace --bench stages` prints a table; with `-- growth` it prints only the rows of long runs and
//! of wide parallel nodes. The cost of a stage is the difference between a long and a short run of the same kind,
//! divided by the difference of their numbers of stages, so the start is not part of it. Processor time is that of the
//! whole machine, so that it includes the sandboxes. Each figure is printed next to a baseline, measured in the same
//! run: the least that the machine needs for the same guarantee. A baseline is a flush of 4 KiB (for a stage that must
//! be durable), a write of the files and records of a stage, or a plain spawn (for a command). No result passes or
//! fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "stages/cost.rs"]
mod cost;
#[path = "stages/left.rs"]
mod left;
#[path = "../../../benches/processors.rs"]
mod processors;
#[path = "../../../benches/table.rs"]
mod table;

use cost::{Cost, Program};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use table::{count, head, median, print, row};

const ROUNDS: usize = 3;
const SAMPLES: usize = 21;
/// Number of runs whose processor time is measured together: the kernel counts in steps of 10 ms.
const CPU_SAMPLES: u32 = 40;
/// Step limit of the pipelines here, higher than any of them needs.
const STEPS_MAX: usize = 100_000;
const SCRIPT: &str = "script.toml";
const LEFT: &str = "what a stage leaves behind, without Glovebox";

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench { program: Program::install(folder.path()), folder: folder.path() };
    head();
    if std::env::args().any(|argument| argument == "growth") {
        bench.growth();
        bench.branches();
        return;
    }
    bench.start();
    bench.stage("component stage", simulated, 100, 1_100, Floor::Left);
    bench.stage("component stage, three file calls", working, 100, 600, Floor::Flush);
    bench.stage("tool stage `true`", tools, 20, 120, Floor::Spawn);
    bench.hundred();
    bench.growth();
    bench.branches();
    bench.visits();
    bench.resume(10_000);
}

/// Baseline: the lower bound of the cost of a stage.
#[derive(Clone, Copy)]
enum Floor {
    /// One flush of 4 KiB to a preallocated file.
    Flush,
    /// [`Floor::Flush`], and the files and records that a stage with a simulated model leaves behind.
    Left,
    /// A spawn of `sh -c true`.
    Spawn,
}

struct Bench<'f> {
    program: Program,
    folder: &'f Path,
}

impl Bench<'_> {
    /// Measures a run of one stage, with components that are already compiled and with components that must be
    /// compiled.
    fn start(&self) {
        let project = self.project("start", simulated(1));
        let run = || self.run(&project).wall;
        let version = || self.program.run(self.folder, &["version"]).wall;
        row("run of one stage, process, warm", SAMPLES, run, version, "`glovebox version`");
        let cpu = |arguments: &dyn Fn() -> Cost| {
            let before = processors::machine_cpu();
            for _ in 0..CPU_SAMPLES {
                arguments();
            }
            (processors::machine_cpu() - before) / CPU_SAMPLES
        };
        let version_cpu = cpu(&|| self.program.run(self.folder, &["version"]));
        print("run of one stage, processor, warm", cpu(&|| self.run(&project)), version_cpu, "`glovebox version`");
        let cold = || {
            let _ = fs::remove_dir_all(project.join("cache"));
            self.run(&project).wall
        };
        row("run of one stage, process, cold", 5, cold, version, "`glovebox version`");
        let tool = self.project("start-tool", tools(1));
        row("run of one tool stage, process, warm", SAMPLES, || self.run(&tool).wall, version, "`glovebox version`");
    }

    /// Measures one further stage, by a run with few stages and one with many: processor time, time and flushes.
    fn stage(&self, name: &str, pipeline: fn(usize) -> Stages, few: usize, many: usize, floor: Floor) {
        let label = format!("{name}, {many} stages less {few}");
        let short = self.project(&format!("{label}-few"), pipeline(few));
        let long = self.project(&format!("{label}-many"), pipeline(many));
        self.run(&short);
        let (mut cpu, mut wall, mut floor_cpu, mut floor_wall) = (vec![], vec![], vec![], vec![]);
        let each = |long: Duration, short: Duration| long.saturating_sub(short) / (many - few) as u32;
        for _ in 0..ROUNDS {
            let (short, long) = (self.run(&short), self.run(&long));
            cpu.push(each(long.cpu, short.cpu));
            wall.push(each(long.wall, short.wall));
            let least = self.floor(floor);
            floor_cpu.push(least.cpu);
            floor_wall.push(least.wall);
        }
        let of = match floor {
            Floor::Flush | Floor::Left => "a flush of 4 KiB in place",
            Floor::Spawn => "a spawn of `sh -c true`",
        };
        let (cpu, wall) = (median(cpu), median(wall));
        print(&format!("{name}, processor"), cpu, median(floor_cpu), of);
        print(&format!("{name}, time"), wall, median(floor_wall), of);
        if let Floor::Left = floor {
            let left = (0..ROUNDS).map(|_| left::behind(self.folder, 1_000)).map(|left| (left.cpu, left.wall));
            let (left_cpu, left_wall): (Vec<_>, Vec<_>) = left.unzip();
            print(&format!("{name}, processor"), cpu, median(left_cpu), LEFT);
            print(&format!("{name}, time"), wall, median(left_wall), LEFT);
        }
        match (self.flushes_of(&short), self.flushes_of(&long)) {
            (Some(short), Some(long)) => {
                let flushes = long.saturating_sub(short) as f64 / (many - few) as f64;
                count(&format!("{name}, flushes"), flushes, "flushes a stage");
            }
            _ => println!("{name}, flushes: `strace` is not installed"),
        }
    }

    /// Measures a short run as a whole, next to one flush for each of its stages.
    fn hundred(&self) {
        let project = self.project("hundred", simulated(100));
        let flushes = || self.flushes(100);
        row("run of 100 simulated stages, process", 7, || self.run(&project).wall, flushes, "100 flushes of 4 KiB");
        let left = || self.program.run(self.folder, &["version"]).wall + left::behind(self.folder, 100).wall * 100;
        let of = "`glovebox version`, and what 100 stages leave behind";
        row("run of 100 simulated stages, process", 7, || self.run(&project).wall, left, of);
    }

    /// Measures the same stage in runs of different lengths. The cost of each stage must stay the same.
    fn growth(&self) {
        let one = self.run_watched(&self.project("growth-1", simulated(1)));
        for stages in [100, 1_000, 5_000, 10_000] {
            let project = self.project(&format!("growth-{stages}"), simulated(stages));
            self.each(&project, stages, "stages", one);
        }
    }

    /// Measures parallel nodes with different numbers of equal branches. The cost of each branch must stay the same.
    fn branches(&self) {
        let one = self.run_watched(&self.project("branches-1", branches(1)));
        for count in [100, 1_000, 10_000] {
            let project = self.project(&format!("branches-{count}"), branches(count));
            self.each(&project, count, "branches", one);
        }
    }

    /// Prints the cost of each stage or branch: the cost of the run less that of a run with one of them, divided by
    /// their number. Also prints the peak memory of the whole run.
    fn each(&self, project: &Path, count: usize, parts: &str, one: Cost) {
        let cost = self.run_watched(project);
        let each = |whole: Duration, start: Duration| whole.saturating_sub(start) / count as u32;
        let (flush, of) = (self.flushes(200) / 200, "a flush of 4 KiB in place");
        print(&format!("each of {count} {parts}, time"), each(cost.wall, one.wall), flush, of);
        print(&format!("each of {count} {parts}, processor"), each(cost.cpu, one.cpu), flush, of);
        let written = cost.written.saturating_sub(one.written) as f64 / count as f64 / 1024.0;
        table::count(&format!("each of {count} {parts}, written"), written, "KiB");
        let peak = cost.peak_bytes as f64;
        table::count(&format!("run of {count} {parts}, peak memory"), peak / 1_048_576.0, "MiB");
        let more = peak - one.peak_bytes as f64;
        if one.peak_bytes > 0 {
            table::count(&format!("each of {count} {parts}, peak memory"), more / count as f64 / 1024.0, "KiB");
        }
    }

    /// Measures the peak memory of runs that visit the same two stages many times, and of the commands that read their
    /// journals. The pipeline has the same size in all of them.
    fn visits(&self) {
        for visits in [1_000, 5_000, 10_000] {
            let project = self.project(&format!("visits-{visits}"), again_and_again(visits));
            let run = [&arguments(&project)[..], &["--run-id", "visits"]].concat();
            for command in [&run[..], &["show", "visits"], &["verify", "visits"], &["why", "visits"]] {
                let cost = self.program.run_watched_to_any_end(&project, command);
                let (what, mib) = (command[0], cost.peak_bytes as f64 / 1_048_576.0);
                count(&format!("`{what}` of {visits} visits, peak memory"), mib, "MiB");
            }
            forget_run(&project);
        }
    }

    /// Measures a resume that makes one more step of a long run, next to a read of the files of the run.
    fn resume(&self, stages: usize) {
        let project = self.project("resume", simulated(stages));
        let limit = |steps: usize| steps.to_string();
        let steps = stages - SAMPLES - 5;
        self.program.run_to_any_end(
            &project,
            &["run", "p.dot", "-q", "--simulate", "--run-id", "long", "--max-steps", &limit(steps)],
        );
        let mut next = steps;
        let resume = || {
            next += 1;
            self.program.run_to_any_end(&project, &["resume", "long", "-q", "--max-steps", &limit(next)]).wall
        };
        let journal = project.join(".glovebox/runs/long");
        let read = || {
            let start = Instant::now();
            bytes_below(&journal);
            start.elapsed()
        };
        row(&format!("resume for one of {stages} stages, process"), 7, resume, read, "a read of the files of its run");
    }

    fn run(&self, project: &Path) -> Cost {
        let cost = self.program.run(project, &arguments(project));
        forget_run(project);
        cost
    }

    fn run_watched(&self, project: &Path) -> Cost {
        let cost = self.program.run_watched(project, &arguments(project));
        forget_run(project);
        cost
    }

    fn flushes_of(&self, project: &Path) -> Option<u64> {
        let flushes = self.program.flushes(&arguments(project), project);
        forget_run(project);
        flushes
    }

    fn project(&self, name: &str, stages: Stages) -> PathBuf {
        let project = self.folder.join(name.replace([' ', '`', ','], "-"));
        fs::create_dir_all(&project).unwrap();
        for file in 0..10 {
            fs::write(project.join(format!("f{file}.txt")), "a line\n".repeat(100)).unwrap();
        }
        fs::write(project.join("p.dot"), stages.pipeline).unwrap();
        fs::write(project.join("glovebox.toml"), "[run]\nparallel_max = 16\n").unwrap();
        if !stages.script.is_empty() {
            fs::write(project.join(SCRIPT), stages.script).unwrap();
        }
        project
    }

    fn floor(&self, floor: Floor) -> Cost {
        match floor {
            Floor::Spawn => cost::spawns(50),
            Floor::Flush | Floor::Left => {
                let before = processors::machine_cpu();
                let wall = self.flushes(500);
                Cost { wall: wall / 500, cpu: (processors::machine_cpu() - before) / 500, ..Cost::default() }
            }
        }
    }

    /// Returns the time of `flushes` flushes of 4 KiB, one after the other, to a preallocated file.
    fn flushes(&self, flushes: u64) -> Duration {
        let file = File::create(self.folder.join("flushed")).unwrap();
        file.write_all_at(&vec![1; 4096 * flushes as usize], 0).unwrap();
        file.sync_all().unwrap();
        let start = Instant::now();
        for at in 0..flushes {
            file.write_all_at(&[2; 4096], at * 4096).unwrap();
            file.sync_data().unwrap();
        }
        start.elapsed()
    }
}

fn bytes_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.filter(|entry| entry.path().is_file()).map(|entry| fs::read(entry.path()).unwrap().len()).sum()
}

/// Returns the arguments that run the pipeline of a project, with its script if it has one.
fn arguments(project: &Path) -> Vec<&'static str> {
    let model: &[&str] = if project.join(SCRIPT).exists() { &["--script", SCRIPT] } else { &["--simulate"] };
    [&["run", "p.dot", "-q"], model].concat()
}

fn forget_run(project: &Path) {
    let _ = fs::remove_dir_all(project.join(".glovebox"));
}

/// A pipeline and the script of its model.
struct Stages {
    pipeline: String,
    script: String,
}

/// Returns a pipeline of stages in a row.
fn in_a_row(stages: usize, attributes: &str) -> Stages {
    let mut text =
        format!("digraph d {{ graph [max_steps={STEPS_MAX}]\n start [shape=Mdiamond] done [shape=Msquare]\n");
    text.push_str(" start -> n1\n");
    for stage in 1..=stages {
        let next = if stage == stages { "done".to_owned() } else { format!("n{}", stage + 1) };
        writeln!(text, " n{stage} [{attributes}, allowed_write_paths=\"./\"]\n n{stage} -> {next}").unwrap();
    }
    Stages { pipeline: text + "}\n", script: String::new() }
}

/// Returns a pipeline with a parallel node whose branches have one stage each, at most 16 of them at a time.
fn branches(count: usize) -> Stages {
    let mut text = format!(
        "digraph d {{ graph [max_steps={STEPS_MAX}]\n start [shape=Mdiamond] done [shape=Msquare]\n \
         f [shape=component, max_parallel=16] j [shape=tripleoctagon]\n start -> f j -> done\n"
    );
    for branch in 1..=count {
        writeln!(text, " n{branch} [prompt=x, allowed_write_paths=\"\"]\n f -> n{branch} -> j").unwrap();
    }
    Stages { pipeline: text + "}\n", script: String::new() }
}

/// Returns a pipeline of two stages that form a loop, which ends at the step limit.
fn again_and_again(visits: usize) -> Stages {
    let stage = "[prompt=x, allowed_write_paths=\"./\"]";
    let pipeline = format!(
        "digraph d {{ graph [max_steps={visits}]\n start [shape=Mdiamond] done [shape=Msquare]\n a {stage}\n b {stage}\n \
         start -> a -> b -> a\n b -> done [condition=\"outcome=fail\"] }}\n"
    );
    Stages { pipeline, script: String::new() }
}

/// Returns stages that ask a simulated model.
fn simulated(stages: usize) -> Stages {
    in_a_row(stages, "prompt=x")
}

/// Returns stages whose model reads one file, creates one and overwrites one.
fn working(stages: usize) -> Stages {
    let mut script = String::new();
    for stage in 1..=stages {
        let (read, written, edited) = (stage % 10, (stage + 1) % 10, (stage + 2) % 10);
        write!(
            script,
            "[[node.n{stage}]]\ntool = [{{ name = \"read_file\", arguments = {{ path = \"f{read}.txt\" }} }}, \
             {{ name = \"write_file\", arguments = {{ path = \"w{written}.txt\", content = \"stage {stage}\" }} }}, \
             {{ name = \"write_file\", arguments = {{ path = \"f{edited}.txt\", content = \"stage {stage}\" }} }}]\n\
             [[node.n{stage}]]\ntext = \"done\"\n"
        )
        .unwrap();
    }
    Stages { script, ..in_a_row(stages, "prompt=x") }
}

/// Returns stages that run a command.
fn tools(stages: usize) -> Stages {
    in_a_row(stages, "shape=parallelogram, tool_command=\"true\"")
}
