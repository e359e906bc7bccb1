//! Random machines of a fleet are killed, stopped or cut off at random moments, and so are its servers, its store and its clients.
//!
//! Three servers, two machines that drive and four that make stages, with a lease of three seconds. Runs with branches, a retry and
//! a check begin one after the other. The suite finds a run that does not succeed, an outcome or a change that differs from
//! that of an undisturbed run, a task that was finished twice, a record that is lost or not signed, a digest that cannot be
//! read, and a process that is left.
//!
//! `GLOVEBOX_FLEET_FAULTS` and `GLOVEBOX_FLEET_SEED` change the number of faults and the seed. `cargo xtask fleet-faults` makes
//! 1,000 of them. The moments depend on the speed of the machine, so a seed repeats the choices but not the exact moments.

mod check;
mod faults;
mod machines;
mod moto;
mod network;
mod table;

use crate::workbench::Workbench;
use crate::workbench::nats::nats_program;
use crate::workbench::not_run;
use faults::Campaign;

const PIPELINE: &str = r#"digraph faults {
    graph [goal="lose nothing", default_max_retries=0]
    start [shape=Mdiamond]
    fork  [shape=component]
    a     [shape=parallelogram, tool_command="sleep 0.3; echo a >> log/a", allowed_write_paths="log/"]
    b     [shape=parallelogram, tool_command="sleep 0.2; echo b >> log/b; test $(wc -l < log/b) = 2", allowed_write_paths="log/", max_retries=1]
    join  [shape=tripleoctagon, merge=all]
    c     [shape=parallelogram, tool_command="sleep 0.2; cat log/a log/b > log/c", allowed_write_paths="log/"]
    check [shape=octagon, command="sleep 0.1; test $(cat log/a log/b log/c | wc -l) = 6", allowed_write_paths=""]
    done  [shape=Msquare]
    start -> fork
    fork -> a
    fork -> b
    a -> join
    b -> join
    join -> c -> check -> done
}
"#;

const FAULTS: usize = 60;
const SEED: u64 = 20_262;

/// Returns a project with the pipeline of the runs.
fn project() -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    for file in ["log/a", "log/b", "log/c"] {
        bench.write(file, "");
    }
    bench
}

/// Returns the number that a variable of the environment sets.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn random_faults_lose_nothing_and_duplicate_nothing() {
    if nats_program().is_none() {
        return not_run("faults of a fleet", "no nats-server: run `cargo xtask nats`");
    }
    let faults = usize::try_from(number("GLOVEBOX_FLEET_FAULTS", FAULTS as u64)).unwrap();
    let campaign = Campaign::new(number("GLOVEBOX_FLEET_SEED", SEED));
    let has_network = campaign.has_network();
    if !has_network {
        not_run("cuts of a fleet's network", "this process may not create network namespaces, or `ip` is missing");
    }
    let table = campaign.play(faults);
    table.print();
    assert!(table.wrong.is_empty(), "{}", table.wrong.join("\n"));
    assert!(faults < FAULTS || table.has_everything(has_network), "some kinds of faults were never made");
}
