//! Tests of the model style sheet: specificity, order, and diagnostics inside the value.

use super::edits::apply_fixes;
use super::lint::rule;
use super::{accept, errors, node, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::key::{self, Key};
use insta::assert_snapshot;

const EXAMPLE: &str = r#"digraph Pipeline {
    graph [
        goal="Implement feature X",
        model_stylesheet="
            * { llm_model: claude-sonnet-4-5; llm_provider: anthropic; }
            .code { llm_model: claude-opus-4-6; llm_provider: anthropic; }
            #critical_review { llm_model: gpt-5.2; llm_provider: openai; reasoning_effort: high; }
        "
    ]

    start [shape=Mdiamond]
    exit  [shape=Msquare]

    plan            [label="Plan", class="planning"]
    implement       [label="Implement", class="code"]
    critical_review [label="Critical Review", class="code"]

    start -> plan -> implement -> critical_review -> exit
}"#;

#[test]
fn the_specification_s_example_applies() {
    let pipeline = accept(EXAMPLE);
    let value = |id: &str, key: &str| {
        node(&pipeline, id).attributes.get(Key::new(key)).map(|attribute| attribute.value.clone())
    };
    assert_eq!(value("plan", "llm_model").as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(value("implement", "llm_model").as_deref(), Some("claude-opus-4-6"));
    assert_eq!(value("critical_review", "llm_model").as_deref(), Some("gpt-5.2"));
    assert_eq!(value("critical_review", "llm_provider").as_deref(), Some("openai"));
    assert_eq!(value("critical_review", "reasoning_effort").as_deref(), Some("high"));
    assert_eq!(value("plan", "reasoning_effort"), None);
    let place = node(&pipeline, "critical_review").attributes[key::LLM_MODEL].span;
    assert_eq!(Source::new(EXAMPLE).at(place), "gpt-5.2");
}

/// Checks the model of `n` with a style sheet.
#[track_caller]
fn check(stylesheet: &str, attributes: &str, model: Option<&str>) {
    let source = with(&format!(
        "graph [model_stylesheet=\"{stylesheet}\"] subgraph {{ label=\"Loop A\" n [{attributes}] }} start -> n -> exit"
    ));
    let pipeline = accept(&source);
    assert_eq!(
        node(&pipeline, "n").attributes.get(key::LLM_MODEL).map(|found| found.value.as_str()),
        model,
        "{stylesheet}"
    );
}

#[test]
fn the_more_specific_and_the_later_rule_holds() {
    check("* { llm_model: a }", "", Some("a"));
    check("box { llm_model: b } * { llm_model: a }", "", Some("b"));
    check("diamond { llm_model: b }", "", None);
    check(".x { llm_model: c } box { llm_model: b }", "class=\"y,x\"", Some("c"));
    check("#n { llm_model: d } .x { llm_model: c }", "class=x", Some("d"));
    check(".x { llm_model: c } .y { llm_model: e }", "class=\"y,x\"", Some("e"));
    check("* { llm_model: a } * { llm_model: z; }", "", Some("z"));
    check("#n { llm_model: d }", "llm_model=own", Some("own"));
    check(".loop-a { llm_model: l }", "", Some("l"));
    check("/* why */ * { llm_model: \\\"a b\\\" ; llm_provider: openai }", "", Some("a b"));
    check("", "", None);
}

#[test]
fn the_graph_s_own_model_comes_last() {
    let source = with("graph [llm_model=g, model_stylesheet=\"#a { llm_model: s }\"] a b start -> a -> b -> exit");
    let pipeline = accept(&source);
    assert_eq!(node(&pipeline, "a").attributes[key::LLM_MODEL].value, "s");
    assert_eq!(node(&pipeline, "b").attributes[key::LLM_MODEL].value, "g");
}

#[test]
fn shorter_names_of_other_engines_are_read() {
    let source = |sheet: &str| with(&format!("graph [model_stylesheet=\"{sheet}\"] n [prompt=p] start -> n -> exit"));
    let written = source("* { model: a; provider: openai; effort: low; }");
    let pipeline = accept(&written);
    let value = |key: &str| node(&pipeline, "n").attributes[Key::new(key)].value.to_string();
    assert_eq!([value("llm_model"), value("llm_provider"), value("reasoning_effort")], ["a", "openai", "low"]);
    assert_snapshot!(rule("other_spelling", &written), @"
    other_spelling «model» Glovebox reads `model` as `llm_model` ~> «llm_model»
    other_spelling «provider» Glovebox reads `provider` as `llm_provider` ~> «llm_provider»
    other_spelling «effort» Glovebox reads `effort` as `reasoning_effort` ~> «reasoning_effort»
    ");
    assert_eq!(apply_fixes(&written), source("* { llm_model: a; llm_provider: openai; reasoning_effort: low; }"));
}

#[test]
fn faults_are_shown_inside_the_value() {
    let fault = |sheet: &str| errors(&with(&format!("graph [model_stylesheet=\"{sheet}\"] start -> exit")));
    assert_snapshot!(fault("* { llm_modle: a }"), @"stylesheet_syntax «llm_modle» unknown property `llm_modle` ~> «llm_model»");
    assert_snapshot!(fault("* { color: red }"), @"stylesheet_syntax «color» unknown property `color`");
    assert_snapshot!(fault("* { llm_model a }"), @"stylesheet_syntax «a» expected `:` after the property");
    assert_snapshot!(fault("* { llm_model: }"), @"stylesheet_syntax «}» expected a value");
    assert_snapshot!(fault("* { llm_model: a llm_provider: b }"), @"stylesheet_syntax «l» expected `;` or `}` after the declaration");
    assert_snapshot!(fault("* llm_model: a }"), @"stylesheet_syntax «l» expected `{` after the selector");
    assert_snapshot!(fault("* { llm_model: a"), @"stylesheet_syntax «» expected `;` or `}` after the declaration");
    assert_snapshot!(fault(". { llm_model: a }"), @"stylesheet_syntax « » expected a name after `.` or `#`");
    assert_snapshot!(fault("@media { } box { reasoning_effort: huge }"), @"
    stylesheet_syntax «@» expected a selector
    stylesheet_syntax «huge» `reasoning_effort` expects `low`, `medium` or `high`, found `huge`
    ");
}

#[test]
fn a_shape_is_the_one_the_node_has() {
    let source = "digraph G { model_stylesheet=\"box { llm_model: b } Mdiamond { llm_model: m }\"
        start; exit [shape=doublecircle]; n [prompt=p]; t [type=tool, tool_command=t]; start -> n -> t -> exit }";
    let pipeline = accept(source);
    let model = |id: &str| node(&pipeline, id).attributes.get(key::LLM_MODEL).map(|model| model.value.clone());
    assert_eq!(["start", "exit", "n", "t"].map(model), [Some("m".into()), None, Some("b".into()), Some("b".into())]);
}
