//! A pipeline is bound, or everything that stands against it is told in its class.

mod components;

use components::{agreed, catalog, component, config, host, pipeline, plan, whole};
use glovebox_engine::bind::{BindClass, BindErrors, BindOptions, PluginFile, bind};
use glovebox_engine::config::Config;
use glovebox_engine::lock::Lock;
use glovebox_engine::plan::{TIER_NONE, TIER_UNCONFINED};
use glovebox_host::model::Script;
use std::sync::Arc;

const REVIEW: &str = "[plugins.\"acme.review\"]\npath = \"p.wasm\"\n\
    grants = { filesystem = \"posix\", read = [\"src/\"], write = [\"REVIEW.md\"] }\n";
const WANTS: &str = r#"{"filesystem":"posix","read":["./"],"write":["./"]}"#;

const AGENT: &str = "digraph g { s [shape=Mdiamond] implement [prompt=x] e [shape=Msquare] s -> implement -> e }";

fn refused(bound: Result<glovebox_engine::plan::Plan, BindErrors>, class: BindClass, parts: &[&str]) -> BindErrors {
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
    assert_eq!((told.rule, told.node.as_deref()), ("type_unknown", Some("n")));
    assert_eq!(told.note, "did you mean `acme.review`?");
    assert!(told.help.as_deref().is_some_and(|help| help.contains("[plugins.\"acme.revew\"]\npath =")), "{told:?}");
}

#[test]
fn what_this_version_would_not_enforce_is_refused() {
    for (attributes, part) in [
        ("shape=parallelogram, tool_command=x, verify_command=y", "verify_command"),
        ("shape=component", "parallel"),
        ("shape=hexagon", "wait.human"),
        ("prompt=x, max_tokens=5", "max_tokens"),
        ("prompt=x, codex.sandbox=off", "codex.sandbox"),
    ] {
        let errors = plan(&pipeline(attributes), &catalog(&[]), &Config::default(), &Lock::default());
        refused(errors, BindClass::Invalid, &[part]);
    }
    let restart = whole(
        "digraph g { s [shape=Mdiamond] n [prompt=x] e [shape=Msquare] s -> n n -> e n -> n [loop_restart=true] }",
    );
    refused(plan(&restart, &catalog(&[]), &Config::default(), &Lock::default()), BindClass::Invalid, &["loop_restart"]);
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
    refused(with(&other, &review, &lock), BindClass::Plugin, &["has the digest", "is locked"]);
    refused(with(&renamed, &review, &lock), BindClass::Plugin, &["calls itself `acme.other`"]);
    let wider = config(&REVIEW.replace("\"REVIEW.md\"", "\"REVIEW.md\", \"src/\""));
    refused(with(&bytes, &wider, &lock), BindClass::Plugin, &["is granted `write src/`, which was not locked"]);
    let narrower = config(&REVIEW.replace("read = [\"src/\"], ", ""));
    assert!(with(&bytes, &narrower, &lock).is_ok(), "less than agreed to is fine");
    let mut unread = catalog(&[]);
    let file = PluginFile { path: "/x/p.wasm".to_owned(), bytes: Err("no such file".to_owned()) };
    unread.plugins.insert(named.to_owned(), file);
    refused(plan(&pipeline, &unread, &review, &lock), BindClass::Plugin, &["`/x/p.wasm`: no such file"]);
    let garbage: Arc<[u8]> = b"\0asm nonsense".to_vec().into();
    refused(with(&garbage, &review, &lock), BindClass::Plugin, &["cannot be read"]);
}

#[test]
fn commands_need_the_operators_word_while_nothing_confines_them() {
    let (catalog, lock) = (catalog(&[]), Lock::default());
    let with = |text: &str, no_sandbox: bool| {
        let options = BindOptions { no_sandbox, ..BindOptions::default() };
        bind(pipeline(text), &catalog, (&Config::default(), &lock), &host(), &options)
    };
    let errors = refused(with("shape=parallelogram, tool_command=\"true\"", false), BindClass::Policy, &["`n`"]);
    assert!(errors.policy.is_some_and(|policy| policy.help().contains("--dangerously-no-sandbox")));
    assert_eq!(with("shape=parallelogram, tool_command=\"true\"", true).expect("plan").sandbox_tier, TIER_UNCONFINED);
    assert_eq!(with("prompt=x", false).expect("no commands").sandbox_tier, TIER_NONE);
}

#[test]
fn a_script_for_a_node_that_is_not_there_is_refused() {
    let with = |script: &str| {
        let script = Some(Arc::new(Script::parse(script).expect("script")));
        let options = BindOptions { script, ..BindOptions::default() };
        bind(whole(AGENT), &catalog(&[]), (&Config::default(), &Lock::default()), &host(), &options)
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
    let text = |plan: &glovebox_engine::plan::Plan| serde_json::to_string_pretty(&plan.to_json()).expect("json");
    assert_eq!((text(&one), one.digest()), (text(&two), two.digest()));
    let file = one.to_json();
    assert_eq!(file.nodes.iter().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["a", "e", "s", "z"]);
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
    let bound = bind(pipeline, &catalog, (&config(REVIEW), &Lock::default()), &host(), &BindOptions::default());
    let errors = refused(bound, BindClass::Invalid, &["acme.nobody", "glovebox.lock", "`t`"]);
    assert_eq!((errors.plugins.len(), errors.policy.is_some()), (1, true));
}
