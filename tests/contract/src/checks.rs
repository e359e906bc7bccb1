//! The table of checks, in the order in which they are made. Each group has a file.
//!
//! A name is stable: scripts, reports and the documentation use it. The checks of all calls are last.

mod attributes;
mod calls;
mod cancel;
mod commands;
mod contract;
mod deadlines;
mod determinism;
mod inputs;
mod limits;
mod manifest;
mod scope;

use crate::bench::Bench;
use crate::case;
use crate::error::TestError;
use crate::outside;
use crate::report::Finding;
use std::collections::BTreeSet;

type Run = fn(&Bench<'_>) -> Result<Finding, TestError>;

/// One check.
pub struct Check {
    /// Name: the group, a dot, and the name in the group.
    pub name: &'static str,
    /// What is checked, in one sentence.
    pub checks: &'static str,
    /// What the author of a component that fails should change.
    pub help: &'static str,
    /// False for a check that makes sense for a component that does not end in time.
    needs_end: bool,
    run: Run,
}

impl Check {
    /// Returns the group of the check.
    pub fn group(&self) -> &'static str {
        self.name.split('.').next().unwrap_or(self.name)
    }

    pub(crate) fn run(&self, bench: &Bench<'_>) -> Result<Finding, TestError> {
        if self.needs_end && bench.is_unresponsive()? {
            return Ok(Finding::NotRun("the call with the normal input did not end in time".to_owned()));
        }
        (self.run)(bench)
    }
}

/// The check of the imports and exports, which all others need.
pub(crate) const IMPORTS: Check = Check {
    name: "contract.imports",
    checks: "it imports only interfaces that this host provides, and exports `glovebox:plugin/stage`",
    help: "build it for the world `handler`, `agent` or `verifier`, without the interfaces that are named",
    needs_end: false,
    run: |_| Ok(Finding::passed()),
};

const fn check(name: &'static str, checks: &'static str, help: &'static str, run: Run) -> Check {
    Check { name, checks, help, needs_end: true, run }
}

/// A check that is also made for a component that does not end in time.
const fn always(name: &'static str, checks: &'static str, help: &'static str, run: Run) -> Check {
    Check { needs_end: false, ..check(name, checks, help, run) }
}

/// Every check but the first one, which is made before the component can be called.
pub const CHECKS: &[Check] = &[
    always(
        "manifest.present",
        "it has a manifest with its name, its version and what it wants",
        "add a manifest: the SDK's `export!` writes one, and so does `glovebox plugin embed-manifest`",
        manifest::present,
    ),
    always(
        "manifest.usable",
        "it wants nothing that it could not use with its imports",
        "remove the want, or import the interface that uses it",
        manifest::usable,
    ),
    always(
        "manifest.complete",
        "it wants everything that its imports need",
        "add the want to the manifest, or do not import the interface",
        manifest::complete,
    ),
    always(
        "deadlines.ends",
        "it returns within its wall time, with the normal and with the empty input",
        "bound every loop and every wait; `--wall-time` gives a slow plugin more time",
        deadlines::ends,
    ),
    check(
        "deadlines.stops",
        "a call whose wall time is too short ends within a second after it",
        "bound what a command of it does after a signal to end",
        deadlines::stops,
    ),
    always(
        "cancel.ends",
        "a call that is canceled in the middle ends within a second, and does not trap",
        "answer the error `canceled` of a host call with an outcome, and look at `control.canceled` in long loops",
        cancel::ends,
    ),
    check(
        "contract.outcome",
        "its outcome is well-formed: keys, labels, JSON values, sizes",
        "correct the part of the outcome that is named; the SDK's `Outcome` escapes values",
        contract::outcome,
    ),
    check(
        "contract.failure",
        "a `fail` or `retry` has a failure, whose code is not reserved for the host and whose class is known",
        "name a code of your own, such as `acme/no-report`, and one of the classes of `wit/types.wit`",
        contract::failure,
    ),
    check(
        "contract.labels",
        "it prefers only labels and suggests only nodes of its outgoing edges",
        "choose from `outgoing` of the input; a run ignores any other label or node",
        contract::labels,
    ),
    check(
        "contract.claims",
        "each of its claims names a receipt, an artifact or a file of the same call",
        "claim only what the call did: the receipt that `exec.run` returned, an artifact that was stored, a file that was written",
        contract::claims,
    ),
    always(
        "attributes.names",
        "it declares no attribute that Glovebox itself reads",
        "choose another name, such as one with the plugin's own prefix",
        attributes::names,
    ),
    always(
        "attributes.documented",
        "each attribute that it declares has a documentation",
        "write `doc` for the attribute: `explain`, `inspect` and the errors of `check` show it",
        attributes::documented,
    ),
    check(
        "attributes.values",
        "it returns an outcome for the default, the bounds and each listed value of its attributes",
        "handle every value that the declaration allows, or declare less",
        attributes::values,
    ),
    check(
        "attributes.wrong-values",
        "it returns an outcome for a value of another type than it declares",
        "answer `fail` for a value that you cannot use",
        attributes::wrong_values,
    ),
    check(
        "attributes.required",
        "it answers `fail` or `retry` if an attribute that it requires is missing",
        "answer `fail` with the name of the attribute, or give it a `default` in place of `required`",
        attributes::required,
    ),
    check(
        "attributes.unknown",
        "it does the same if a node also has an attribute that it does not declare",
        "declare every attribute that the plugin reads, and ignore all others",
        attributes::unknown,
    ),
    check("inputs.huge-prompt", "it returns an outcome for a prompt of 1 MiB", inputs::HELP, |bench| {
        inputs::odd(bench, "huge-prompt")
    }),
    check("inputs.many-attributes", "it returns an outcome for 10,000 attributes", inputs::HELP, |bench| {
        inputs::odd(bench, "many-attributes")
    }),
    check("inputs.empty-texts", "it returns an outcome if all texts are empty", inputs::HELP, |bench| {
        inputs::odd(bench, "empty-texts")
    }),
    check("inputs.unicode", "it returns an outcome for characters of all Unicode planes", inputs::HELP, |bench| {
        inputs::odd(bench, "unicode")
    }),
    check(
        "inputs.deceptive",
        "it returns an outcome for texts with control and direction characters, which it repeats in no name",
        "keep characters of the input out of keys, labels and artifact names",
        |bench| inputs::odd(bench, "deceptive"),
    ),
    check("inputs.nul", "it returns an outcome for texts with NUL", inputs::HELP, |bench| inputs::odd(bench, "nul")),
    check(
        "inputs.deep-context",
        "it returns an outcome for deep and long JSON in the context",
        inputs::HELP,
        |bench| inputs::odd(bench, "deep-context"),
    ),
    check("inputs.many-edges", "it returns an outcome for 500 outgoing edges", inputs::HELP, |bench| {
        inputs::odd(bench, "many-edges")
    }),
    check(
        "inputs.unknown-extra",
        "it returns an outcome if `extra` has keys of a later version",
        "ignore keys of `extra` that you do not know",
        |bench| inputs::odd(bench, "unknown-extra"),
    ),
    check(
        "determinism.outcome",
        "two calls with the same input return the same outcome",
        "sort what comes from a hash map, and keep times and random numbers out of the outcome",
        determinism::outcome,
    ),
    check(
        "determinism.host-calls",
        "two calls with the same input make the same host calls with the same arguments, in the same order",
        "sort what comes from a hash map before it is used in a call, and keep times and random numbers out of arguments",
        determinism::host_calls,
    ),
    check(
        "determinism.files",
        "two calls with the same input change the same files and store the same artifacts",
        "keep times, random numbers and the order of hash maps out of files",
        determinism::files,
    ),
    check(
        "scope.writes",
        "it writes, and tries to write, only at the paths that it wants to write",
        "add the path to `wants.write`, or do not write there",
        scope::writes,
    ),
    check(
        "scope.reads",
        "it reads, and tries to read, only the paths that it wants to read",
        "add the path to `wants.read`, or list the folder before you open a file",
        scope::reads,
    ),
    check(
        "scope.hidden",
        "it asks for no hidden path, and nothing of the hidden files is in what it returns",
        "do not look for hold-outs: they do not exist for a stage",
        scope::hidden,
    ),
    check(
        "scope.requests",
        "it asks for no model, command or artifact that it does not want or may not have",
        "add the want to the manifest, correct the name, or do not ask",
        scope::requests,
    ),
    check(
        "scope.ungranted",
        "with nothing granted, it answers `fail` if it was refused something, and writes nothing",
        "answer `fail` with what is missing when a host call is refused",
        scope::ungranted,
    ),
    check(
        "commands.end",
        "each of its commands ends by itself",
        "bound the time of the command, or do not start what waits for input",
        commands::end,
    ),
    always(
        "traps.none",
        "no call traps",
        "find the panic in the text of the trap, and return an outcome instead",
        calls::traps,
    ),
    always(
        "limits.memory",
        "every call stays within the limits of memory, tables and open handles",
        "read and build large data in parts",
        limits::memory,
    ),
    always(
        "limits.output",
        "every call stays within the limits of output, log lines, artifacts, refusals and the outcome",
        "write less: what exceeds a limit is lost",
        limits::output,
    ),
    always(
        "limits.files",
        "every call stays within the limits of written bytes and files",
        "write less, or ask the operator to raise the limit",
        limits::files,
    ),
    always(
        "limits.model",
        "every call stays within the limits of turns and tool rounds",
        "bound the rounds of a conversation",
        limits::model,
    ),
    always(
        "limits.host-calls",
        "every call makes at most 100,000 host calls",
        "keep the results of host calls instead of asking again",
        limits::host_calls,
    ),
];

/// Returns the names of all groups, in the order of the alphabet.
pub fn groups() -> BTreeSet<&'static str> {
    CHECKS
        .iter()
        .map(Check::group)
        .chain([IMPORTS.group(), case::GROUP, case::INPUT_GROUP])
        .chain([outside::TOOLS, outside::POLICY])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::ODD;

    #[test]
    fn names_are_unique_and_each_odd_input_has_a_check() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).chain([IMPORTS.name]).collect();
        assert_eq!(names.len(), CHECKS.len() + 1);
        assert!(names.iter().all(|name| name.split('.').count() == 2), "{names:?}");
        for (name, _) in ODD {
            assert!(names.contains(&*format!("inputs.{name}")), "{name}");
        }
        assert_eq!(names.iter().filter(|name| name.starts_with("inputs.")).count(), ODD.len());
    }
}
