//! Tests the binding of pipelines, and that all problems are reported, each in its class.

use crate::components::{agreed, catalog, component, config, host, pipeline, plan, whole};
use glovebox_host::llm::Script;
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::transform::{ChangePlace, GraphChange, GraphChangeOp};
use glovebox_pipeline::transform::{RuleRecord, RuleReport};
use glovebox_plan::bind::{BindClass, BindErrors, BindOptions, OperatorFiles, bind};
use glovebox_plan::components::PluginFile;
use glovebox_plan::config::Config;
use glovebox_plan::lock::Lock;
use glovebox_plan::plan::HostCapability;
use glovebox_plan::plan::{Confinement, Plan, TIER_NONE, TIER_UNAVAILABLE};
use glovebox_record::Digest;
use glovebox_record::Tier;
use glovebox_record::scope::Entry;
use std::sync::Arc;

const REVIEW: &str = "[plugins.\"acme.review\"]\npath = \"p.wasm\"\n\
    grants = { filesystem = \"posix\", read = [\"src/\"], write = [\"REVIEW.md\"] }\n";
const WANTS: &str = r#"{"filesystem":"posix","read":["./"],"write":["./"]}"#;

const AGENT: &str = "digraph g { s [shape=Mdiamond] implement [prompt=x] e [shape=Msquare] s -> implement -> e }";

fn refused(bound: Result<Plan, BindErrors>, class: BindClass, parts: &[&str]) -> BindErrors {
    let errors = bound.expect_err("bound");
    assert_eq!(errors.class(), class, "{errors}");
    for part in parts {
        assert!(errors.to_string().contains(part), "`{part}` is missing in: {errors}");
    }
    errors
}

#[test]
fn an_unknown_type_gets_a_suggestion_and_the_lines_to_paste() {
    let near = pipeline("type=\"acme.revew\"");
    let bytes = component("shouts", "acme.review", WANTS);
    let errors = refused(
        plan(&near, &catalog(&[("acme.review", bytes)]), &config(REVIEW), &Lock::default()),
        BindClass::Invalid,
        &["node `n` has the type `acme.revew`"],
    );
    let told = &errors.diagnostics[0];
    assert_eq!((&*told.rule, told.node.as_deref()), ("type_unknown", Some("n")));
    assert_eq!(told.note, "did you mean `acme.review`?");
    assert!(told.help.as_deref().is_some_and(|help| help.contains("[plugins.\"acme.revew\"]\npath =")), "{told:?}");
}

#[test]
fn what_this_version_would_not_enforce_is_refused() {
    for (attributes, part) in [
        ("shape=parallelogram, tool_command=x, agent.name=y", "agent.name"),
        ("prompt=x, codex.profile=mine", "codex.profile"),
    ] {
        let errors = plan(&pipeline(attributes), &catalog(&[]), &Config::default(), &Lock::default());
        refused(errors, BindClass::Invalid, &[part]);
    }
}

#[test]
fn a_plugin_is_what_was_agreed_to_or_does_not_run() {
    let pipeline = pipeline("type=\"acme.review\", allowed_write_paths=\"REVIEW.md\"");
    let bytes = component("shouts", "acme.review", WANTS);
    let other = component("traps", "acme.review", WANTS);
    let renamed = component("shouts", "acme.other", WANTS);
    let (review, named) = (config(REVIEW), "acme.review");
    let lock = agreed(&review, named, &bytes);
    let with = |bytes: &Arc<[u8]>, config: &Config, lock: &Lock| {
        plan(&pipeline, &catalog(&[(named, Arc::clone(bytes))]), config, lock)
    };
    assert!(with(&bytes, &review, &lock).is_ok());
    let absent = refused(with(&bytes, &review, &Lock::default()), BindClass::Plugin, &["is not in `glovebox.lock`"]);
    assert!(absent.plugins[0].help.as_deref().is_some_and(|help| help.contains("glovebox plugin lock")));
    refused(with(&other, &review, &lock), BindClass::Plugin, &["has the digest", "but the lock has"]);
    refused(with(&renamed, &review, &lock), BindClass::Plugin, &["names it `acme.other`"]);
    let wider = config(&REVIEW.replace("\"REVIEW.md\"", "\"REVIEW.md\", \"src/\""));
    refused(
        with(&bytes, &wider, &lock),
        BindClass::Plugin,
        &["is granted `write src/`, but the lock does not have this grant"],
    );
    let narrower = config(&REVIEW.replace("read = [\"src/\"], ", ""));
    assert!(with(&bytes, &narrower, &lock).is_ok(), "less than agreed to is fine");
    let mut unread = catalog(&[]);
    let bytes = Err("no such file".to_owned().into());
    let file = PluginFile { path: "/x/p.wasm".to_owned(), bytes, signatures: Ok(Vec::new()) };
    unread.plugins.insert(named.to_owned(), file);
    refused(plan(&pipeline, &unread, &review, &lock), BindClass::Plugin, &["`/x/p.wasm`: no such file"]);
    let garbage: Arc<[u8]> = b"\0asm nonsense".to_vec().into();
    refused(with(&garbage, &review, &lock), BindClass::Plugin, &["cannot be used"]);
}

const COMMAND: &str = "shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"";

/// Binds one node with the operator's `[sandbox]` table on a machine that can enforce this tier.
fn on(machine: Option<Tier>, table: &str, attributes: &str, options: BindOptions) -> Result<Plan, BindErrors> {
    let available = HostCapability {
        tier: machine,
        degradations: vec!["memory is watched and soft".to_owned()],
        why: "user namespaces are off".to_owned(),
        remedy: "sysctl kernel.unprivileged_userns_clone=1".to_owned(),
    };
    let options = BindOptions { available, ..options };
    let config = config(&format!("[sandbox]\n{table}\n"));
    bind(
        pipeline(attributes),
        &catalog(&[]),
        OperatorFiles { config: &config, lock: &Lock::default() },
        &host(),
        options,
    )
}

#[test]
fn commands_get_the_walls_the_operator_requires_or_do_not_run() {
    let tier = |machine, table: &str, options: &BindOptions| {
        on(machine, table, COMMAND, options.clone()).expect("plan").commands.sandbox.tier_word()
    };
    let plain = BindOptions::default();
    assert_eq!(tier(Some(Tier::Full), "", &plain), "full");
    assert_eq!(tier(Some(Tier::Full), "require = \"landlock\"", &plain), "full");
    assert_eq!(tier(Some(Tier::Bwrap), "require = \"bwrap\"", &plain), "bwrap");
    assert_eq!(tier(Some(Tier::Landlock), "require = \"landlock\"", &plain), "landlock");
    let unconfined = BindOptions { no_sandbox: true, ..BindOptions::default() };
    assert_eq!(tier(None, "", &unconfined), "unconfined");
    let open = on(Some(Tier::Full), "", COMMAND, unconfined).expect("plan").commands.sandbox;
    assert!(open.is_unconfined() && open.degradations.is_empty());
    for (machine, table, message) in [
        (Some(Tier::Landlock), "", "this machine can enforce `landlock`, but the run requires `full`"),
        (Some(Tier::Bwrap), "require = \"full\"", "this machine can enforce `bwrap`, but the run requires `full`"),
        (
            Some(Tier::Landlock),
            "require = \"bwrap\"",
            "this machine can enforce `landlock`, but the run requires `bwrap`",
        ),
        (None, "require = \"landlock\"", "this machine can enforce no sandbox, but the run requires `landlock`"),
        (Some(Tier::Unconfined), "require = \"landlock\"", "`unconfined`, but the run requires `landlock`"),
    ] {
        let found = on(machine, table, COMMAND, BindOptions::default());
        let errors = refused(found, BindClass::Policy, &[message, "user namespaces are off", "`n`"]);
        let help = errors.policy.expect("policy").help();
        for part in ["sysctl kernel.unprivileged_userns_clone=1", "glovebox doctor", "--dangerously-no-sandbox"] {
            assert!(help.contains(part), "{help}");
        }
        let lower = machine.filter(|tier| *tier != Tier::Unconfined).map(|tier| format!("require = \"{tier}\""));
        assert_eq!(
            help.contains("accept this tier"),
            lower.as_ref().is_some_and(|lower| help.contains(lower)),
            "{help}"
        );
    }
    let idle = on(None, "", "prompt=x", BindOptions::default()).expect("no commands").commands.sandbox;
    assert_eq!((idle.tier_word(), idle.tier()), (TIER_NONE, None));
}

#[test]
fn only_the_highest_tier_keeps_commands_to_a_proxy() {
    let table = "require = \"landlock\"\nnetwork = { proxy = [\"a.example.com\"] }";
    let none = format!("{COMMAND}, network=none");
    for tier in [Tier::Landlock, Tier::Bwrap] {
        let found = on(Some(tier), table, COMMAND, BindOptions::default());
        refused(found, BindClass::Policy, &[&format!("tier `{tier}` cannot restrict commands to a proxy"), "`n`"]);
        let plan = on(Some(tier), table, &none, BindOptions::default()).expect("plan");
        assert_eq!(plan.commands.sandbox.tier(), Some(tier));
    }
    let plan = on(Some(Tier::Full), table, COMMAND, BindOptions::default()).expect("plan");
    assert_eq!(plan.commands.sandbox.tier(), Some(Tier::Full));
    let unconfined = BindOptions { no_sandbox: true, ..BindOptions::default() };
    let found = on(Some(Tier::Full), table, COMMAND, unconfined.clone());
    refused(found, BindClass::Policy, &["tier `unconfined` cannot restrict commands to a proxy", "`n`"]);
    assert!(on(Some(Tier::Full), table, &none, unconfined).is_ok());
    let full = "require = \"landlock\"\nnetwork = \"full\"";
    assert!(on(Some(Tier::Landlock), full, COMMAND, BindOptions::default()).is_ok());
}

#[test]
fn a_plan_that_is_only_shown_says_what_a_run_would_be_refused_for() {
    let shown = BindOptions { plan_only: true, ..BindOptions::default() };
    let plan = on(Some(Tier::Landlock), "", COMMAND, shown).expect("plan");
    assert_eq!((plan.commands.sandbox.tier_word(), plan.commands.sandbox.tier()), (TIER_UNAVAILABLE, None));
    assert!(
        matches!(&plan.commands.sandbox.confinement, Confinement::Unmet(problem) if problem.to_string().contains("requires `full`"))
    );
}

#[test]
fn a_plan_says_what_commands_reach_and_the_machine_is_no_part_of_its_digest() {
    let table = "network = { proxy = [\"a.example.com\", \"*.b.io\"] }\nread = [\"/opt/data\"]\nscratch = [\"tmp/\"]";
    let attributes = format!("{COMMAND}, cache=\"target/\", codex.workdir=app, read_paths=\"app/\"");
    let of = |machine, table: &str| on(machine, table, &attributes, BindOptions::default()).expect("plan");
    let plan = of(Some(Tier::Full), table);
    let file = plan.to_json();
    let sorted = |entries: &std::collections::BTreeSet<String>| entries.iter().cloned().collect::<Vec<_>>().join(" ");
    for could in [&file.could, &file.nodes[1].could] {
        assert_eq!(sorted(&could.reach), "*.b.io a.example.com");
        assert_eq!((sorted(&could.scratch), sorted(&could.cache)), ("tmp/".to_owned(), "target/".to_owned()));
        assert_eq!(sorted(&could.read), "/opt/data app/");
    }
    assert_eq!(file.nodes[1].component.as_ref().expect("n").workdir, "app");
    assert_eq!((file.sandbox_tier, file.sandbox.require.as_str()), ("full", "full"));
    assert_eq!(file.sandbox.network.to_string(), "proxy:a.example.com,*.b.io");
    assert_eq!(file.sandbox.degradations, ["memory is watched and soft"]);
    let lower =
        format!("{}\nrequire = \"bwrap\"", table.replace("{ proxy = [\"a.example.com\", \"*.b.io\"] }", "\"none\""));
    let plan_below = of(Some(Tier::Full), &lower.replace("bwrap", "landlock"));
    assert_eq!(of(Some(Tier::Full), &lower).digest(), of(Some(Tier::Bwrap), &lower).digest(), "the machine");
    assert_ne!(of(Some(Tier::Full), &lower).digest(), plan_below.digest(), "the operator's word");
    assert_ne!(of(Some(Tier::Full), &table.replace("/opt/data", "/opt/other")).digest(), plan.digest());
    assert_ne!(of(Some(Tier::Full), &table.replace("tmp/", "log/")).digest(), plan.digest());
    let idle = on(None, table, "prompt=x, cache=\"target/\", allowed_write_paths=\"\"", BindOptions::default());
    let could = idle.expect("plan").to_json().could;
    assert!(
        could.reach.is_empty() && could.cache.is_empty() && !could.read.contains("/opt/data"),
        "nothing runs: {could:?}"
    );
}

#[test]
fn a_script_for_a_node_that_is_not_there_is_refused() {
    let with = |script: &str| {
        let script = Some(Arc::new(Script::parse(script).expect("script")));
        let options = BindOptions { script, ..BindOptions::default() };
        bind(
            whole(AGENT),
            &catalog(&[]),
            OperatorFiles { config: &Config::default(), lock: &Lock::default() },
            &host(),
            options,
        )
    };
    assert!(with("[[node.implement]]\ntext = 'x'").is_ok());
    let errors = refused(with("[[node.implment]]\ntext = 'x'"), BindClass::Invalid, &["turns for node `implment`"]);
    assert_eq!(errors.diagnostics[0].note, "did you mean `implement`?");
}

#[test]
fn a_plan_is_the_same_text_every_time_and_differs_when_a_grant_does() {
    let pipeline = whole(
        "digraph g { s [shape=Mdiamond] z [type=\"acme.review\", allowed_write_paths=\"REVIEW.md\"] \
         a [shape=parallelogram, tool_command=\"cargo test\", allowed_write_paths=\"target/\"] e [shape=Msquare] s -> z -> a -> e }",
    );
    let bytes = component("shouts", "acme.review", WANTS);
    let catalog = catalog(&[("acme.review", Arc::clone(&bytes))]);
    let of = |text: &str| {
        let config = config(text);
        plan(&pipeline, &catalog, &config, &agreed(&config, "acme.review", &bytes)).expect("plan")
    };
    let (one, two) = (of(REVIEW), of(REVIEW));
    let text = |plan: &Plan| serde_json::to_string_pretty(&plan.to_json()).expect("json");
    assert_eq!((text(&one), one.digest()), (text(&two), two.digest()));
    let file = one.to_json();
    assert_eq!(file.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), ["a", "e", "s", "z"]);
    assert_eq!(file.could.execute.iter().collect::<Vec<_>>(), ["cargo test"]);
    assert_eq!(file.could.write.iter().collect::<Vec<_>>(), ["REVIEW.md", "target/"]);
    assert!(file.could.reach.is_empty() && !file.could.model);
    assert!(file.nodes[1].component.is_none() && file.nodes[1].could.read.is_empty(), "an exit does nothing");
    for changed in [
        REVIEW.replace("src/", "docs/"),
        format!("{REVIEW}[limits]\nturns = 1\n"),
        format!("{REVIEW}[exec]\nenv = {{ A = \"b\" }}\n"),
    ] {
        assert_ne!(of(&changed).digest(), one.digest(), "{changed}");
    }
}

#[test]
fn everything_wrong_is_told_at_once() {
    let pipeline = whole(
        "digraph g { s [shape=Mdiamond] p [type=\"acme.review\"] q [type=\"acme.nobody\"] \
         t [shape=parallelogram, tool_command=x] e [shape=Msquare] s -> p -> q -> t -> e }",
    );
    let catalog = catalog(&[("acme.review", component("shouts", "acme.review", WANTS))]);
    let bound = bind(
        pipeline,
        &catalog,
        OperatorFiles { config: &config(REVIEW), lock: &Lock::default() },
        &host(),
        BindOptions::default(),
    );
    let errors = refused(bound, BindClass::Invalid, &["acme.nobody", "glovebox.lock", "`t`"]);
    assert_eq!((errors.plugins.len(), errors.policy.is_some()), (1, true));
}

#[test]
fn the_digest_covers_who_judged_and_what_came_of_it() {
    let digest = |report: RuleReport| {
        let options = BindOptions { no_sandbox: true, ..BindOptions::default() };
        let (catalog, config) = (catalog(&[]), Config::default());
        bind(whole(AGENT), &catalog, OperatorFiles { config: &config, lock: &Lock::default() }, &host(), options)
            .unwrap()
            .with_rule_report(report)
            .digest()
    };
    let judged = |bytes: &[u8], changes: &[GraphChange], transformed: Option<&str>| {
        let rules = vec![RuleRecord::new("acme.house".to_owned(), Digest::hash(bytes), changes.to_vec())];
        digest(RuleReport { rules, transformed: transformed.map(str::to_owned) })
    };
    let renamed = GraphChange {
        op: GraphChangeOp::Changed,
        place: ChangePlace::Graph,
        attribute: None,
        before: Some("g".to_owned()),
        after: Some("h".to_owned()),
    };
    let all = [
        digest(RuleReport::default()),
        judged(b"one", &[], None),
        judged(b"two", &[], None),
        judged(b"one", &[], Some("digraph h {}")),
        judged(b"one", &[], Some("digraph i {}")),
    ];
    let different: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
    assert_eq!(all[3], judged(b"one", &[renamed], Some("digraph h {}")), "how changes are told is no part of it");
}

/// Attributes of nodes with different requests to the binder. The last ones give a warning.
const ASKS: [&str; 14] = [
    "prompt=x",
    "prompt=x, allowed_write_paths=\"src/\"",
    "prompt=x, allowed_write_paths=\"src/a\"",
    "prompt=x, read_paths=\"src/\"",
    "prompt=x, allowed_commands=\"cargo\"",
    "prompt=x, timeout=\"5s\"",
    "prompt=x, max_turns=3",
    "prompt=x, limits.turns=2",
    "prompt=x, scratch=\"tmp/\"",
    "prompt=x, codex.workdir=\"src\"",
    "shape=parallelogram, tool_command=\"true\"",
    "shape=parallelogram, tool_command=\"false\"",
    "prompt=x, limits.turns=20000",
    "prompt=x, allowed_write_paths=\"tmp/a\", scratch=\"tmp/\"",
];

#[test]
fn nodes_that_ask_for_the_same_share_a_binding_and_others_have_their_own() {
    let node = |name: &str, at: usize| format!("{name}{at} [{}]\n", ASKS[at]);
    let nodes: String = (0..ASKS.len()).map(|at| node("a", at) + &node("b", at)).collect();
    let chain: String = (0..ASKS.len()).map(|at| format!("a{at} -> b{at} -> ")).collect();
    let text = format!("digraph g {{ s [shape=Mdiamond] e [shape=Msquare]\n{nodes} s -> {chain} e }}");
    let of = |pipeline| plan(&pipeline, &catalog(&[]), &Config::default(), &Lock::default()).expect("bound");
    let all = of(whole(&text));
    let told = |plan: &Plan, id: &str| -> Vec<String> {
        let own = plan.findings.warnings.iter().filter(|warning| warning.node.as_deref() == Some(id));
        own.map(|warning| warning.rule.to_string()).collect()
    };
    let quiet = ASKS.len() - 2;
    for (at, asked) in ASKS.iter().enumerate() {
        let (alone, ids) = (of(pipeline(asked)), [format!("a{at}"), format!("b{at}")]);
        let expected = alone.bindings.values().next().expect("bound");
        for id in &ids {
            let bound = &all.bindings[&NodeId::new(id.as_str())];
            assert_eq!((&bound.grants, &bound.scope), (&expected.grants, &expected.scope), "{asked}");
            assert_eq!((&bound.limits, &bound.commands), (&expected.limits, &expected.commands), "{asked}");
            assert_eq!(told(&all, id), told(&alone, "n"), "{asked}");
            assert_eq!(told(&all, id).is_empty(), at < quiet, "{asked}");
            let others = all.bindings.iter().filter(|(other, _)| !ids.iter().any(|own| own == other.as_str()));
            assert!(others.into_iter().all(|(_, other)| !Arc::ptr_eq(other, bound)), "{asked}");
        }
        let [one, other] = ids.map(|id| Arc::clone(&all.bindings[&NodeId::new(id.as_str())]));
        assert_eq!(Arc::ptr_eq(&one, &other), at < quiet, "{asked}");
    }
}

#[test]
fn verifiers_share_a_binding_only_with_the_same_hold_outs_in_reach() {
    let text = "digraph g { scenarios=\"a/,b/\" s [shape=Mdiamond] e [shape=Msquare] node [shape=parallelogram] \
        one [tool_command=\"sh a/x\"] two [tool_command=\"sh b/x\"] s -> one -> two -> e }";
    let sealed = ["a/", "b/"].map(|folder| Entry::parse(folder).expect("entry")).to_vec();
    let options = BindOptions { plan_only: true, sealed, ..BindOptions::default() };
    let (catalog, config) = (catalog(&[]), Config::default());
    let plan = bind(whole(text), &catalog, OperatorFiles { config: &config, lock: &Lock::default() }, &host(), options)
        .expect("bound");
    let hidden = |id: &str| -> Vec<String> {
        let scope = &plan.binding(&NodeId::new(id)).expect("bound").scope;
        scope.hidden.iter().skip(2).map(ToString::to_string).collect()
    };
    assert_eq!((hidden("one"), hidden("two")), (vec!["b/".to_owned()], vec!["a/".to_owned()]));
}
