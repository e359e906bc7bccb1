//! The keys of attributes. Each key that Glovebox knows has a constant, so that a misspelt key does not compile.
//!
//! A plugin may define other keys, so any text is a valid key. [`crate::attributes`] describes the known keys.

use std::fmt;

/// The key of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// Creates the key with this spelling.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the key as written in a file.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns the name of the limit that `limits.<name>` sets. `None` for other keys.
    pub fn limit(self) -> Option<&'a str> {
        self.0.strip_prefix("limits.")
    }

    /// Returns true if the value of this attribute is a command or an environment variable of a command.
    pub fn is_command_input(self) -> bool {
        matches!(self, TOOL_COMMAND | COMMAND | VERIFY_COMMAND) || self.0.starts_with("env_")
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Declares the constants of the known keys.
macro_rules! keys {
    ($($name:ident = $text:literal,)*) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub const $name: Key<'static> = Key($text);
        )*
    };
}

keys! {
    GOAL = "goal",
    LABEL = "label",
    MODEL_STYLESHEET = "model_stylesheet",
    DEFAULT_MAX_RETRIES = "default_max_retries",
    DEFAULT_MAX_RETRY = "default_max_retry",
    DEFAULT_FIDELITY = "default_fidelity",
    RETRY_TARGET = "retry_target",
    FALLBACK_RETRY_TARGET = "fallback_retry_target",
    STACK_CHILD_DOTFILE = "stack.child_dotfile",
    STACK_CHILD_WORKDIR = "stack.child_workdir",
    STACK_CHILD_AUTOSTART = "stack.child_autostart",
    STACK_CONTEXT_IN = "stack.context_in",
    STACK_CONTEXT_OUT = "stack.context_out",
    STACK_CHILD = "stack.child",
    STACK_CHILD_OF = "stack.child_of",
    STACK_CHILD_GOAL = "stack.child_goal",
    STACK_CHILD_MAX_STEPS = "stack.child_max_steps",
    TOOL_HOOKS_PRE = "tool_hooks.pre",
    TOOL_HOOKS_POST = "tool_hooks.post",
    MCP = "mcp",
    TOOLS = "tools",
    MAX_STEPS = "max_steps",
    MAX_WALL_TIME = "max_wall_time",
    MAX_BUDGET_USD = "max_budget_usd",
    MAX_TOKENS = "max_tokens",
    MAX_TURNS = "max_turns",
    LOOP_RESTART_SIGNATURE_LIMIT = "loop_restart_signature_limit",
    MAX_RESTARTS = "max_restarts",
    LOOP_RESTART_PERSIST_KEYS = "loop_restart_persist_keys",
    SCENARIOS = "scenarios",
    SCENARIO_COPIES = "scenario_copies",
    HOLDOUTS = "holdouts",
    SHAPE = "shape",
    TYPE = "type",
    PROMPT = "prompt",
    MAX_RETRIES = "max_retries",
    RETRY_POLICY = "retry_policy",
    GOAL_GATE = "goal_gate",
    FIDELITY = "fidelity",
    THREAD_ID = "thread_id",
    CLASS = "class",
    TIMEOUT = "timeout",
    RUNS_ON = "runs_on",
    LLM_MODEL = "llm_model",
    LLM_PROVIDER = "llm_provider",
    REASONING_EFFORT = "reasoning_effort",
    OUTPUT_SCHEMA = "output_schema",
    AUTO_STATUS = "auto_status",
    ALLOW_PARTIAL = "allow_partial",
    ALLOWED_WRITE_PATHS = "allowed_write_paths",
    READ_PATHS = "read_paths",
    SCRATCH = "scratch",
    CACHE = "cache",
    CACHE_FROM = "cache_from",
    NETWORK = "network",
    ALLOWED_COMMANDS = "allowed_commands",
    AGENT_BACKEND = "agent.backend",
    AGENT_PATH = "agent.path",
    AGENT_COMMAND = "agent.command",
    CODEX_WORKDIR = "codex.workdir",
    CODEX_ADD_DIRS = "codex.add_dirs",
    CODEX_STRICT_READ_SCOPE = "codex.strict_read_scope",
    CODEX_BLOCK_READ_PATHS = "codex.block_read_paths",
    CODEX_ALLOW_READ_SCENARIOS = "codex.allow_read_scenarios",
    CODEX_PATH = "codex.path",
    CODEX_SANDBOX = "codex.sandbox",
    CODEX_APPROVAL = "codex.approval",
    CODEX_SKIP_GIT_REPO_CHECK = "codex.skip_git_repo_check",
    CODEX_DISABLE_MCP = "codex.disable_mcp",
    CODEX_MODEL = "codex.model",
    CODEX_PROFILE = "codex.profile",
    CODEX_TIMEOUT_SECONDS = "codex.timeout_seconds",
    CODEX_HEARTBEAT_SECONDS = "codex.heartbeat_seconds",
    CODEX_CONFIG_OVERRIDES = "codex.config_overrides",
    CODEX_AUTO_APPROVE_COMMANDS = "codex.auto_approve_commands",
    CODEX_AUTO_APPROVE_CONFIG_KEY = "codex.auto_approve_config_key",
    CODEX_DANGEROUS_BYPASS = "codex.dangerous_bypass",
    TOOL_COMMAND = "tool_command",
    COMMAND = "command",
    REPORT = "report",
    MAX_FILES = "max_files",
    MAX_LINES = "max_lines",
    MAX_BINARIES = "max_binaries",
    PATHS = "paths",
    IGNORE = "ignore",
    SINCE = "since",
    JSON_FILE = "json_file",
    JSON_SCHEMA = "json_schema",
    JSON_SCHEMA_HOLDOUT = "json_schema_holdout",
    MIN_TESTS = "min_tests",
    EXISTS = "exists",
    ABSENT = "absent",
    MATCHES = "matches",
    WORKING_DIR = "working_dir",
    ENV_ANY = "env_*",
    VERIFY_COMMAND = "verify_command",
    VERIFICATION_ALLOWED_COMMANDS = "verification.allowed_commands",
    VERIFICATION_WORKDIR = "verification.workdir",
    VERIFICATION_ROLE = "verification.role",
    VERIFICATION_PLAN_CONTEXT_KEY = "verification.plan_context_key",
    SCENARIO_FEEDBACK = "scenario_feedback",
    SCENARIO_WRITES = "scenario_writes",
    VERIFY_SUBJECT = "verify_subject",
    VERIFY_SUBJECT_PORT = "verify_subject_port",
    REQUIRES_TOOL_SUCCESS = "requires_tool_success",
    REQUIRED_TOOL_NODE = "required_tool_node",
    JOIN_POLICY = "join_policy",
    ERROR_POLICY = "error_policy",
    MAX_PARALLEL = "max_parallel",
    K = "k",
    QUORUM_FRACTION = "quorum_fraction",
    MERGE = "merge",
    HUMAN_DEFAULT_CHOICE = "human.default_choice",
    HUMAN_TYPE = "human.type",
    MODE = "mode",
    HUMAN_TIMEOUT = "human.timeout",
    MANAGER_POLL_INTERVAL = "manager.poll_interval",
    MANAGER_MAX_CYCLES = "manager.max_cycles",
    MANAGER_STOP_CONDITION = "manager.stop_condition",
    MANAGER_ACTIONS = "manager.actions",
    LIMITS_ANY = "limits.<name>",
    TEST_OUTCOME = "test.outcome",
    TEST_OUTCOME_SEQUENCE = "test.outcome_sequence",
    TEST_PREFERRED_NEXT_LABEL = "test.preferred_next_label",
    TEST_SUGGESTED_NEXT_IDS = "test.suggested_next_ids",
    TEST_NOTES = "test.notes",
    TEST_VERIFICATION_PLAN_JSON = "test.verification_plan_json",
    CONDITION = "condition",
    WEIGHT = "weight",
    DEFAULT = "default",
    LOOP_RESTART = "loop_restart",
    GATE_REQUIRES = "gate_requires",
    STATUS_FILE = "status_file",
    VERIFY_TIMEOUT = "verify_timeout",
    VERIFY_PLUGIN = "verify_plugin",
    MAX_VISITS = "max_visits",
    STALL_TIMEOUT_MS = "stall_timeout_ms",
    STALL_CHECK_INTERVAL_MS = "stall_check_interval_ms",
    LOOP_DETECTION_WINDOW = "loop_detection_window",
    SCRIPT = "script",
    STACK_CHILD_WORKFLOW = "stack.child_workflow",
    RANKDIR = "rankdir",
}
