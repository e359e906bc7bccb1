//! Runs the whole table against one tier: host programs in jails, then components in a host.
//!
//! Rows run on several threads. A row that would disturb others has its own jail.

use crate::Attackers;
use crate::component;
use crate::jailed::JailConfinement;
use crate::message::{AttackRequest, AttackRow, RowResult};
use glovebox_host::compile::{CompileBounds, Compiler};
use glovebox_host::host::{Host, HostConfig};
use glovebox_hostile::evaluate::{EvaluatedRow, Verdict};
use glovebox_hostile::target::{self, Confinement};
use glovebox_hostile::{battery, rows};
use glovebox_jail::jail::{self};
use glovebox_jail::worker::Worker;
use glovebox_record::Tier;

/// Number of jails at the same time. Their commands wait most of the time.
const WORKERS: usize = 4;

/// Runs every row against the tier of the request.
pub(crate) fn run(request: &AttackRequest, attackers: Attackers) -> Result<Vec<RowResult>, String> {
    // Only the caller reads the answer. If the caller ends, the battery stops.
    let _best_effort = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    let tier = Tier::parse(&request.tier).ok_or_else(|| format!("there is no tier `{}`", request.tier))?;
    let host = Host::new(host_config(request)).map_err(|error| error.to_string())?;
    let table = rows::all();
    let confinement = JailConfinement::new(tier);
    let (tier, folder) = (confinement.tier(), &request.folder);
    let programs = battery::programs(&table, tier);
    let mut evaluated = battery::run(&confinement, attackers.program, folder, &programs, WORKERS);
    let components = component::run(&host, attackers.component, folder, &battery::components(&table), tier);
    // Waits before this process ends, so that the last jails leave no process, mount or control group.
    jail::wait_for_cleanup();
    evaluated.extend(components?);
    Ok(evaluated.into_iter().map(|one| result(one, tier)).collect())
}

fn host_config(request: &AttackRequest) -> HostConfig {
    let (program, arguments) = request.compiler.clone();
    let bounds = CompileBounds { memory_bytes: request.compile_memory_bytes, cpu_seconds: request.compile_cpu_seconds };
    HostConfig {
        cache_dir: request.cache_dir.clone(),
        cache_bytes_max: request.cache_bytes_max,
        compiler: Compiler::Child(Worker { program, arguments }, bounds),
        pool_slots: 1,
        while_compiling: |_, work| work(),
    }
}

fn result(one: EvaluatedRow, tier: target::Tier) -> RowResult {
    let gap = one.row.gap(tier).filter(|_| one.verdict == Verdict::KnownGap);
    let row = AttackRow {
        id: one.row.id.to_owned(),
        source: one.row.source.to_string(),
        attack: one.row.title.to_owned(),
        stopped_by: one.row.stopped_by.to_owned(),
        result: name(one.verdict).to_owned(),
        answer: one.answer,
        witness: one.witness,
        gap: gap.map(str::to_owned),
    };
    RowResult { must_work: one.row.must_work(), row }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Blocked => "blocked",
        Verdict::Through => "through",
        Verdict::KnownGap => "known-gap",
        Verdict::Works => "works",
        Verdict::Broken => "broken",
    }
}
