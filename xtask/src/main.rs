//! The commands of the repository: `cargo xtask components | twice | jail | pytest | nats | moto | plugin-tools | registry | wkg | page | agents |
//! attacks | ordinary | projects | demo | test | soak | fleet-faults | numbers | ci`.
//!
//! Only this program builds components: no `build.rs` compiles or downloads anything. Every command works on a new machine, with
//! rustup's `wasm32-wasip2` or, if that cannot be downloaded, with a standard library built from its source.
#![forbid(unsafe_code)]

mod agents;
mod attacks;
mod bubblewrap;
mod components;
mod debian;
mod demo;
mod fleet_faults;
mod gate;
mod moto;
mod mutants;
mod nats;
mod numbers;
mod ordinary;
mod ordinary_user;
mod page;
mod peers;
mod plugin_tools;
mod process;
mod projects;
mod pytest;
mod registry;
mod rustc;
mod soak;
mod sources;
mod sysroot;
mod timing;
mod twice;
mod wasm_std;

use std::path::PathBuf;
use std::process::ExitCode;
use wasm_std::StdSource;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  components [--std installed|rustup|source] [--check]
                build the first-party components and the static programs into target/components, and the plugins of the examples;
                --check builds one component in a separate folder, to test the source of std
  twice         build the shipped components again from a copy of the sources in another folder, and compare the bytes
  jail          build only the static programs into target/components: the jail helper and what attacks it
  pytest        make pytest in target/pytest, for the test of examples/scenarios-pytest
  nats          install nats-server in target/nats, for the tests of runs on many machines
  moto          install moto, a server with the protocol of S3, in target/moto, for the tests of blobs in object stores
  registry      unpack Debian's registry for containers in target/registry, for the tests of plugins in registries
  wkg           build the program wkg in target/wkg, for the test that it and glovebox read each other; takes minutes
  plugin-tools  bring the tools for plugins in JavaScript, Python and C into target/plugin-tools, for the tests of the templates
  page [pictures]
                bring a browser and its driver into target/page, for the tests of the page of `glovebox serve`;
                pictures writes pictures of every screen to docs/pictures/page
  agents        install the agent programs of docs/agents.md and drive each against a fake provider
  attacks       run `glovebox doctor --attack` as an ordinary user in every tier, with the debug binaries that the tests built
  ordinary [--peers]
                try the ordinary behaviours as an ordinary user in every tier, with the debug binaries that the tests built;
                --peers tries them without a sandbox, in tier full, and in the sandboxes of others
  projects [--program FILE] [NAME…]
                fetch real projects of crates.io, PyPI, npm and Debian with their tests, and measure `init` and two runs of each, with a
                release build or with this glovebox; takes minutes and the registries
  demo          build everything and run examples/quickstart
  test [ARG…]   build components, pytest and the servers of tests, then run all tests, with bubblewrap from the Debian mirror
                where the machine has none; ARGs go to `cargo test`
  soak [ROUNDS] kill random processes of a run at random moments in each round (1000 by default), and print what was killed, lost and
                duplicated; the tests run 50 rounds
  fleet-faults [--kills N] [--seed S]
                kill and stop random machines, servers and clients of a fleet (1,000 times by default), and print what it cost; the
                tests do it 60 times
  mutants CRATE [FILE…]
                change the code of a crate, such as `state`, in small ways and print the changes that its tests do not detect;
                takes seconds for each of hundreds of changes
  numbers [FOLDER]
                count public items, parameters, clones and long functions, with their places in FOLDER
  ci            test, then format, lints, docs, dependency policy, components built twice and the std built from source

GLOVEBOX_WASM_STD=installed|rustup|source is the same as --std.";

/// The result of a command: an exit code, or why it stopped.
type Step<T = ExitCode> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Step {
    let (command, rest) = arguments.split_first().ok_or_else(|| USAGE.to_owned())?;
    match command.as_str() {
        "components" => build_components(rest),
        "twice" if rest.is_empty() => twice::compare().map(|()| ExitCode::SUCCESS),
        "jail" if rest.is_empty() => components::build_programs().map(|()| ExitCode::SUCCESS),
        "pytest" if rest.is_empty() => pytest::prepare().map(|()| ExitCode::SUCCESS),
        "nats" if rest.is_empty() => nats::prepare().map(|()| ExitCode::SUCCESS),
        "moto" if rest.is_empty() => moto::prepare().map(|()| ExitCode::SUCCESS),
        "registry" if rest.is_empty() => registry::prepare().map(|()| ExitCode::SUCCESS),
        "wkg" if rest.is_empty() => registry::prepare_wkg().map(|()| ExitCode::SUCCESS),
        "plugin-tools" if rest.is_empty() => plugin_tools::prepare().map(|()| ExitCode::SUCCESS),
        "page" if rest.is_empty() => page::prepare().map(|()| ExitCode::SUCCESS),
        "page" if rest == ["pictures"] => page::pictures().map(|()| ExitCode::SUCCESS),
        "agents" if rest.is_empty() => agents::run(),
        "attacks" if rest.is_empty() => attacks::as_ordinary_user().map(|()| ExitCode::SUCCESS),
        "ordinary" => ordinary::run(&rest.iter().map(String::as_str).collect::<Vec<_>>()),
        "projects" => projects::run(rest),
        "demo" if rest.is_empty() => demo::run(),
        "soak" if rest.len() < 2 => soak::run(rest.first()).map(|()| ExitCode::SUCCESS),
        "fleet-faults" => fleet_faults::run(rest).map(|()| ExitCode::SUCCESS),
        "test" => gate::test(rest),
        "mutants" if !rest.is_empty() => mutants::run(&rest[0], &rest[1..]),
        "numbers" if rest.len() < 2 => numbers::run(rest.first()),
        "ci" if rest.is_empty() => gate::ci(),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("unknown command or arguments: `{other} {}`\n\n{USAGE}", rest.join(" "))),
    }
}

fn build_components(arguments: &[String]) -> Step {
    let (mut forced, mut check) = (StdSource::from_environment()?, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--std" => forced = Some(StdSource::parse(arguments.next().map_or("", String::as_str))?),
            "--check" => check = true,
            other => return Err(format!("unknown argument `{other}`\n\n{USAGE}")),
        }
    }
    if check {
        components::check(forced)?
    } else {
        components::build(forced, &components::EXAMPLES)?
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the root folder of the repository.
fn repository() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or(manifest.clone(), PathBuf::from)
}
