//! Tests of the generated pages: each rule's examples show the rule, the tables are complete, and `docs/` is up to date.
//!
//! With `UPDATE_DOCS=1` the test rewrites `docs/rules.md` and `docs/attributes.md`.

use glovebox_pipeline::Source;
use glovebox_pipeline::attributes::{self, ATTRIBUTES, Carrier, is_known};
use glovebox_pipeline::diagnostic::{Diagnostic, fixed};
use glovebox_pipeline::key::Key;
use glovebox_pipeline::lint::{self, RULES, Rule, Script};
use glovebox_pipeline::{Inputs, check};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// Rules that are always reported together with another rule.
const COMPANIONS: &[(&str, &[&str])] =
    &[("orphan_node", &["reachability"]), ("scenario_reader_feeds_builder", &["scenario_opt_out"])];

/// Returns the inputs that the first line of an example sets.
fn inputs(source: &str) -> Inputs {
    let line = source.lines().next().and_then(|line| line.strip_prefix("// --set ")).unwrap_or_default();
    Inputs {
        set: line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect(),
        ..Inputs::default()
    }
}

fn findings(rule: &Rule, source: &str) -> Vec<Diagnostic> {
    match rule.is_about_scripts() {
        true => {
            let pipeline = super::accept(&super::with("start -> exit"));
            lint::scripts(&pipeline, &[Script { path: "example.sh", text: source }])
                .into_iter()
                .map(|found| found.diagnostic)
                .collect()
        }
        false => check(Source::new(source), &inputs(source)).diagnostics,
    }
}

fn names(found: &[Diagnostic]) -> BTreeSet<&str> {
    // An attribute that this version does not enforce is not a mistake of an example.
    found.iter().map(|found| &*found.rule).filter(|rule| *rule != "not_enforced").collect()
}

#[test]
fn wrong_examples_make_their_one_mistake_and_right_ones_none() {
    for rule in RULES {
        let found = findings(rule, rule.bad);
        assert!(found.iter().any(|found| found.rule == rule.id), "{}: not found in its example", rule.id);
        let companions = COMPANIONS.iter().find(|(id, _)| *id == rule.id).map_or(&[][..], |(_, companions)| companions);
        let others: Vec<_> =
            names(&found).into_iter().filter(|id| *id != rule.id && !companions.contains(id)).collect();
        assert!(others.is_empty(), "{}: its example breaks {others:?} too", rule.id);
        let found = findings(rule, rule.good);
        assert!(names(&found).is_empty(), "{}: the right example breaks {:?}", rule.id, names(&found));
        assert!(!found.iter().any(|found| found.rule == rule.id), "{}", rule.id);
    }
}

/// Each rule has two examples in `rules/`, and `rules/` contains no other files.
#[test]
fn examples_are_the_files_of_their_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        files.insert(entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap());
    }
    for rule in RULES {
        let extension = if rule.is_about_scripts() { "sh" } else { "dot" };
        for (kind, example) in [("bad", rule.bad), ("good", rule.good)] {
            let name = format!("{}.{kind}.{extension}", rule.id);
            let file = files.remove(&name).unwrap_or_else(|| panic!("`rules/{name}` is missing"));
            assert_eq!(example, file, "rule `{}`: expected the text of `rules/{name}`", rule.id);
            let lines = example.strip_suffix('\n').unwrap_or_default();
            assert!(!lines.is_empty() && lines.trim() == lines, "`rules/{name}`: expected one line feed at its end");
        }
    }
    assert!(files.is_empty(), "no rule uses these files of `rules/`: {:?}", files.keys());
}

#[test]
fn fixes_correct_the_wrong_examples() {
    let mut corrected = 0;
    for rule in RULES {
        let found: Vec<_> = findings(rule, rule.bad).into_iter().filter(|found| found.rule == rule.id).collect();
        let Some(text) = fixed(Source::new(rule.bad), &found) else { continue };
        corrected += 1;
        let left = findings(rule, &text);
        assert!(!left.iter().any(|found| found.rule == rule.id), "{}: {text}\n{left:?}", rule.id);
    }
    assert!(corrected >= 12, "only {corrected} rules have a fix");
}

#[test]
fn every_rule_has_a_whole_page() {
    for rule in RULES {
        let sentences: Vec<&str> = rule.why.split(". ").collect();
        assert!((2..=8).contains(&sentences.len()), "{}: {} sentences of why", rule.id, sentences.len());
        for sentence in sentences {
            let words = sentence.split_whitespace().count();
            assert!(words <= 30, "{}: a sentence of {words} words: {sentence}", rule.id);
        }
        for source in ["seed ", "seeds ", "(decision "] {
            assert!(!rule.why.contains(source), "{}: a user cannot read {source}", rule.id);
        }
        assert!(rule.why.ends_with('.') && !rule.summary.ends_with('.') && !rule.help.ends_with('.'), "{}", rule.id);
        let page = rule.page();
        for part in [rule.id, rule.severity.as_str(), rule.summary, "To fix it: ", "Wrong:", "Right:"] {
            assert!(page.contains(part), "{}: {part}", rule.id);
        }
        assert!(page.lines().all(|line| line.chars().count() <= 120), "{page}");
    }
}

#[test]
fn every_name_of_the_sources_is_in_the_table() {
    let named = [
        (
            "the specification, graph",
            "goal label model_stylesheet default_max_retries default_max_retry default_fidelity retry_target fallback_retry_target stack.child_dotfile stack.child_workdir tool_hooks.pre tool_hooks.post mcp",
        ),
        (
            "the specification, nodes",
            "label shape type prompt max_retries goal_gate retry_target fallback_retry_target fidelity thread_id class timeout llm_model llm_provider reasoning_effort auto_status allow_partial",
        ),
        ("the specification, edges", "label condition weight fidelity thread_id loop_restart"),
        (
            "the specification, handlers",
            "tool_command join_policy error_policy max_parallel human.default_choice manager.poll_interval manager.max_cycles manager.stop_condition manager.actions stack.child_autostart retry_policy",
        ),
        ("commands that verify", "verify_command command working_dir timeout env_* max_turns"),
        (
            "gates and bounds",
            "max_steps max_budget_usd default goal_gate retry_target fallback_retry_target max_retries condition",
        ),
        (
            "guardrails, plans, Codex and test answers",
            "tool_command type verification.workdir verification.allowed_commands verification.plan_context_key allowed_write_paths codex.workdir codex.add_dirs codex.strict_read_scope codex.allow_read_scenarios codex.block_read_paths codex.path codex.disable_mcp codex.sandbox codex.approval codex.skip_git_repo_check agent.backend weight test.outcome test.outcome_sequence test.preferred_next_label test.suggested_next_ids test.notes test.verification_plan_json requires_tool_success required_tool_node",
        ),
        ("branches and loops", "join_policy error_policy k quorum_fraction loop_restart_signature_limit"),
    ];
    let known: HashSet<&str> = ATTRIBUTES.iter().map(|known| known.key.as_str()).collect();
    assert_eq!(known.len(), ATTRIBUTES.len(), "names are unique");
    for (source, names) in named {
        let missing: Vec<&str> = names.split(' ').filter(|name| !known.contains(name)).collect();
        assert!(missing.is_empty(), "{source}: {missing:?}");
    }
    for known in ATTRIBUTES {
        let whole = [known.default, known.summary].iter().all(|text| !text.is_empty());
        assert!(whole && !known.on.is_empty() && !known.summary.contains('|'), "{}", known.key);
    }
}

#[test]
fn names_are_known_where_they_stand() {
    assert!(is_known(Key::new("env_MODE"), Carrier::Node) && is_known(Key::new("limits.wall_ms"), Carrier::Node));
    assert!(is_known(Key::new("codex.of_its_own"), Carrier::Node) && is_known(Key::new("fontsize"), Carrier::Edge));
    assert!(!is_known(Key::new("verification.allowed_command"), Carrier::Node), "nearly a guard, and none");
    assert!(!is_known(Key::new("tool_hooks.prе"), Carrier::Node) && !is_known(Key::new("condition"), Carrier::Node));
}

#[test]
fn the_documentation_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut stale = Vec::new();
    for (name, text) in [("rules.md", lint::reference()), ("attributes.md", attributes::reference())] {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(folder.join(name), &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        } else if std::fs::read_to_string(folder.join(name)).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "run `UPDATE_DOCS=1 cargo test -p glovebox-pipeline documentation`: {stale:?} differ");
}
