//! The attributes of commands and verifiers.

use super::{GN, N, known};
use crate::attributes::DefinedBy::{Glovebox, OtherEngines, Spec};
use crate::attributes::Known;
use crate::attributes::ValueKind::*;
use crate::key;

/// What a stage runs, and what it is verified with.
pub(super) const ROWS: &[Known] = &[
    known(key::TOOL_COMMAND, N, Text, "required", "the command of a tool stage", Spec("§4.10")),
    known(key::COMMAND, N, Text, "required; for `junit` none", "the command of a verify or junit stage", OtherEngines),
    known(key::REPORT, N, Text, "required", "the report in JUnit XML that a `junit` stage reads", Glovebox),
    known(key::MIN_TESTS, N, Text, "1", "the least number of tests that ran, for a `junit` stage", Glovebox),
    known(key::JSON_FILE, N, Path, "required", "the JSON file that a `json-schema` stage checks", Glovebox),
    known(key::JSON_SCHEMA, N, Text, "none", "the JSON Schema of the file, or `@path` of a file with it", Glovebox),
    known(key::JSON_SCHEMA_HOLDOUT, N, Path, "none", "a file of the hold-outs with the JSON Schema", Glovebox),
    known(key::EXISTS, N, Text, "none", "files, folders and patterns that `tree-assert` must find", Glovebox),
    known(key::ABSENT, N, Text, "none", "files, folders and patterns that `tree-assert` must not find", Glovebox),
    known(key::MATCHES, N, Text, "none", "`path: regex` in each line, which `tree-assert` must find", Glovebox),
    known(
        key::WORKING_DIR,
        N,
        Path,
        "the workspace",
        "folder in which `verify_command`, or the command of a tool or verify stage, starts",
        OtherEngines,
    ),
    known(key::ENV_ANY, N, Text, "none", "a variable of the command: `env_MODE=ci` sets `MODE`", OtherEngines),
    known(key::VERIFY_COMMAND, N, Text, "none", "a command after the node's work; it must end with 0", OtherEngines),
    known(
        key::VERIFICATION_ALLOWED_COMMANDS,
        N,
        Commands,
        "required",
        "prefixes of the commands that a plan may contain",
        OtherEngines,
    ),
    known(key::VERIFICATION_WORKDIR, N, Path, "the workspace", "folder in which a plan's commands start", OtherEngines),
    known(
        key::VERIFICATION_PLAN_CONTEXT_KEY,
        N,
        Text,
        "`verification.plan`",
        "the context key that holds the plan",
        OtherEngines,
    ),
    known(
        key::VERIFICATION_ROLE,
        N,
        Text,
        "none",
        "the role whose commands of the verify contract the stage runs too; `docser` runs checks of documents alone",
        OtherEngines,
    ),
    known(
        key::SCENARIO_FEEDBACK,
        GN,
        Text,
        "`summary`",
        "`full`: builders also get the output of stages with hold-outs",
        Glovebox,
    ),
    known(
        key::SCENARIO_WRITES,
        N,
        Text,
        "`scratch`",
        "`commit`: commits what the stage writes with hold-outs in reach; the default drops it",
        Glovebox,
    ),
    known(
        key::VERIFY_SUBJECT,
        N,
        Text,
        "none",
        "the program under test, which `subject` starts in a sandbox of its own",
        Glovebox,
    ),
    known(
        key::VERIFY_SUBJECT_PORT,
        N,
        Integer,
        "none",
        "port of `verify_subject`, which then runs as long as the stage; reachable at `127.0.0.1`",
        Glovebox,
    ),
    known(
        key::REQUIRES_TOOL_SUCCESS,
        N,
        Boolean,
        "`false`",
        "the stage works only if the last command of `required_tool_node` has passed",
        OtherEngines,
    ),
    known(
        key::REQUIRED_TOOL_NODE,
        N,
        NodeName,
        "none",
        "the tool, verify or verification stage that `requires_tool_success` is about",
        OtherEngines,
    ),
];
