//! Rows of the summary: what each proves, and how to get a verdict that proves more.

use crate::terminal::{missing, summary};
use glovebox_state::evidence::Proof;

/// The explanation of one row.
pub(super) struct VerdictPage {
    /// The name for `glovebox explain`.
    pub(super) name: &'static str,
    /// The title of the row in the summary.
    pub(super) title: &'static str,
    /// The meaning of the row in one line.
    pub(super) summary: &'static str,
    /// The reason, and what to do.
    pub(super) page: &'static str,
}

/// The rows in the order of the documentation.
pub(super) const VERDICTS: [VerdictPage; 9] = [
    VerdictPage {
        name: "verified",
        title: summary::title(Proof::Verified),
        summary: "a command of the pipeline's author passed, and the host saw it",
        page: "The host ran a command that the author of the pipeline wrote, saw exit code 0, and wrote a receipt that no stage can \
               write.\n\nThe receipts of a run: `glovebox evidence RUN`.",
    },
    VerdictPage {
        name: "not-verified",
        title: summary::title(Proof::NotVerified),
        summary: "a command of the pipeline's author failed, or the stage that ran it",
        page: "The command ended with another exit code than 0, or its stage failed for another reason, for example because it wrote \
               outside of its scope.\n\nThe output of the command: `glovebox show RUN NODE`. The reason of the end: `glovebox why RUN`.",
    },
    VerdictPage {
        name: "unverified",
        title: "unverified",
        summary: "a stage passed only because a model or a plugin said so",
        page: "No command of the author tested what the stage did. Add a stage after it whose command tests the result:\n\n    \
               test [shape=parallelogram, tool_command=\"make test\", allowed_write_paths=\"\", goal_gate=true]",
    },
    VerdictPage {
        name: "with-caches",
        title: summary::title(Proof::VerifiedWithCaches),
        summary: "the stage started with caches that builders' code could have written",
        page: "A stage before this one executed code that a builder had written: a build or a test does that. This code can write to \
               the caches and to the files that git ignores (`target/`, `dist/`, `build/`), and the stage with this verdict started \
               with these files. So a file there could decide the verdict instead of the sources. No diff shows such a file. The exit \
               code of the run does not change.\n\nTo get `verified`, let the stage start with a cache that was made from the files at \
               the start of the run. Write on the node of the verdict, with the folders that its command fills:\n\n    \
               test [shape=parallelogram, tool_command=\"cargo test\", allowed_write_paths=\"\",\n          \
               cache=\"target/\", cache_from=\"base\"]\n\nThe command runs once more at the start, to fill this cache. A stage \
               whose command also builds needs no files of the stage before: `tool_command=\"npm run build && npm test\"` with \
               `cache=\"dist/\", cache_from=\"base\"`.\n\nThe rule for these attributes: `glovebox explain cache_from`.",
    },
    VerdictPage {
        name: "not-isolated",
        title: summary::title(Proof::VerifiedNotIsolated),
        summary: "the stage has hold-outs, and its commands also see the project",
        page: "Code of builders could run in this stage, read the hold-outs and forge the verdict. To get `verified`, start the program \
               under test with `subject`, and let the stage see nothing else of the project: docs/holdouts.md lists the conditions.\n\n\
               The rule: `glovebox explain project_beside_holdouts`.",
    },
    VerdictPage {
        name: "with-startup-files",
        title: summary::title(Proof::VerifiedWithStartupFiles),
        summary: "a builder wrote a file that the command's programs load by themselves",
        page: "An earlier stage wrote a file that a program of the command loads without being told to, such as `conftest.py` or \
               `.npmrc`. This file could have made a failing check pass. The summary names the file, the stage that wrote it and the \
               program that loads it. Review the file, or take its path out of `allowed_write_paths` of the stage that wrote it.",
    },
    VerdictPage {
        name: "not-taken",
        title: summary::title(Proof::NotTaken),
        summary: "a check in a branch whose files were not taken",
        page: "The fan-in took the files of another branch. The check proves nothing about the result of the run: test again after the \
               fan-in.",
    },
    VerdictPage {
        name: "ran",
        title: summary::title(Proof::Ran),
        summary: "an agent or a plugin ran the command",
        page: "The stage itself chose the command, so it proves nothing about the work. A command proves something if it is the \
               `tool_command` or `command` of a stage.",
    },
    VerdictPage {
        name: "missing",
        title: missing::TITLE,
        summary: "files that no stage of the run had, so no verdict says anything about them",
        page: "A check that finds no files has nothing to fail on. The row names a git submodule whose folder is empty, files that have \
               only their Git LFS pointer, what a sparse checkout leaves out, and entries of `read_paths` or of `paths` that match no \
               file. Get the files with the command in the row, or correct the entry, and run again. The exit code of the run does \
               not change.\n\nA stage that must find a file can say so: `type=\"tree-assert\", exists=\"lib/\"`.",
    },
];

/// Finds the page of a row by its name, or by its title as the summary prints it.
pub(super) fn named(name: &str) -> Option<&'static VerdictPage> {
    VERDICTS.iter().find(|page| page.name == name || page.title == name.trim())
}
