//! Tests of conditions: which of them hold, and the diagnostics for text that does not parse.

use super::{edge, errors, found, run, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::condition::Condition;
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::dot::SourceMap;
use glovebox_pipeline::ir::Status;
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::span::Span;
use insta::assert_snapshot;

/// Evaluates a condition with `outcome=success`, `preferred_label=Fix` and a small context.
#[track_caller]
fn check(text: &str, expected: bool) {
    let condition =
        Condition::parse(text, &SourceMap::opaque(Span::default())).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    let context = |key: &str| match key {
        "tests_passed" => "true",
        "context.prefixed" => "yes",
        "zero" => "0",
        "no" => "false",
        "words" => "two words",
        "a.b" => "deep",
        _ => "",
    };
    let answer = Answer { status: Status::Success, preferred_label: "Fix", suggested_next_ids: &[] };
    assert_eq!(condition.holds(&answer, &|key| context(key).to_owned()), expected, "{text}");
}

#[test]
fn comparisons_are_exact_and_all_must_hold() {
    check("outcome=success", true);
    check("outcome = success", true);
    check("outcome=fail", false);
    check("outcome!=fail", true);
    check("outcome!=success", false);
    check("outcome=SUCCESS", false);
    check("preferred_label=Fix", true);
    check("preferred_label=fix", false);
    check("outcome=success && context.tests_passed=true", true);
    check("outcome=success&&context.tests_passed=false", false);
    check("outcome=fail && context.tests_passed=true", false);
    check("tests_passed=true", true);
    check("context.prefixed=yes", true);
    check("prefixed=yes", false);
    check("context.missing=x", false);
    check("context.missing!=x", true);
    check("context.missing=\"\"", true);
    check("context.a.b=deep", true);
    check("words=\"two words\"", true);
    check("context.words=\"two\"", false);
    check("tests_passed", true);
    check("context.no", false);
    check("missing && outcome=success", false);
    check("context.zero=0", true);
    check("context.zero=-1", false);
    check("context.zero=v1.2:x-y", false);
}

/// Returns the error for an edge with this condition. The argument is the source text between the quotes.
fn fault(condition: &str) -> String {
    errors(&with(&format!("start -> exit [condition=\"{condition}\"]")))
}

#[test]
fn mistakes_are_shown_inside_the_value() {
    assert_snapshot!(fault("outcome==success"), @"condition_syntax «==» unknown operator `==`: expected `=` ~> «=»");
    assert_snapshot!(fault("a=b && outcome == success"), @"condition_syntax «==» unknown operator `==`: expected `=` ~> «=»");
    assert_snapshot!(fault("outcome=success || outcome=fail"), @"condition_syntax «||» a condition must not contain `or`");
    assert_snapshot!(fault("outcome=success or x=1"), @"condition_syntax «or» a condition must not contain `or`");
    assert_snapshot!(fault("outcome=success and x=1"), @"condition_syntax «and» expected `&&` between comparisons, found `and` ~> «&&»");
    assert_snapshot!(fault("outcome=success & x=1"), @"condition_syntax «&» expected `&&` between comparisons, found `&` ~> «&&»");
    assert_snapshot!(fault("context.count > 3"), @"condition_syntax «>» unknown operator `>`: a condition can only compare for equality");
    assert_snapshot!(fault("context.count>=3"), @"condition_syntax «>=» unknown operator `>=`: a condition can only compare for equality");
    assert_snapshot!(fault("context.name=~x"), @"condition_syntax «=~» unknown operator `=~`: a condition can only compare for equality");
    assert_snapshot!(fault("context.name contains x"), @"condition_syntax «contains» expected `=`, `!=` or `&&`, found `contains`");
    assert_snapshot!(fault("!context.ready"), @"condition_syntax «!» unexpected `!` before a key");
    assert_snapshot!(fault("(outcome=fail)"), @"condition_syntax «(» a condition must not contain parentheses");
    assert_snapshot!(fault("outcome=fail &&"), @"condition_syntax «» expected a comparison after `&&`, found the end of the condition");
    assert_snapshot!(fault("&& outcome=fail"), @"condition_syntax «&» expected `outcome`, `preferred_label` or a context key, found `&`");
    assert_snapshot!(fault("outcome="), @"condition_syntax «» expected a value to compare `outcome` with");
    assert_snapshot!(fault("outcome='fail'"), @"condition_syntax «'» a value must be bare or in double quotes");
    assert_snapshot!(fault("preferred_label=Try again"), @"condition_syntax «again» expected `&&` or the end of the condition, found `again`");
    assert_snapshot!(fault("x=a/b"), @"condition_syntax «/» a value that contains `/` must be quoted");
    assert_snapshot!(fault("context.version=1.5 && x=y"), @r#"condition_syntax «1.5» `1.5` needs quotes: a bare value must be a whole number, or begin with a letter or `_` ~> «\"1.5\"»"#);
    assert_snapshot!(fault("context.x=900s"), @r#"condition_syntax «900s» `900s` needs quotes: a bare value must be a whole number, or begin with a letter or `_` ~> «\"900s\"»"#);
    assert_snapshot!(fault("context.x=-"), @r#"condition_syntax «-» `-` needs quotes: a bare value must be a whole number, or begin with a letter or `_` ~> «\"-\"»"#);
    assert_snapshot!(fault("context.x=.a"), @r#"condition_syntax «.a» `.a` needs quotes: a bare value must be a whole number, or begin with a letter or `_` ~> «\".a\"»"#);
    assert_snapshot!(fault("context.x=(a)"), @"condition_syntax «(» expected a value to compare `context.x` with, found `(`");
    assert_snapshot!(fault("context.x ? y"), @"condition_syntax «?» expected `=` or `!=`, found `?`");
    assert_snapshot!(fault("context.x=a | context.y=b"), @"condition_syntax «|» a condition must not contain `or`");
    assert_snapshot!(fault("context.x | context.y"), @"condition_syntax «|» a condition must not contain `or`");
    assert_snapshot!(fault("context.x and context.y"), @"condition_syntax «and» expected `&&` between comparisons, found `and` ~> «&&»");
    assert_snapshot!(fault("context.x or context.y"), @"condition_syntax «or» a condition must not contain `or`");
    assert_snapshot!(fault("context.x= && context.y"), @"condition_syntax «&» expected a value to compare `context.x` with");
    assert_snapshot!(fault("context.x~y"), @"condition_syntax «~» unknown operator `~`: a condition can only compare for equality");
    assert_snapshot!(fault("context.x<>y"), @"condition_syntax «<>» unknown operator `<>`: expected `!=` ~> «!=»");
    assert_snapshot!(fault("1x=a"), @"condition_syntax «1x» invalid key `1x`: expected `outcome`, `preferred_label` or `context.` and a name");
    assert_snapshot!(fault("context.=a"), @"condition_syntax «context.» invalid key `context.`: expected `outcome`, `preferred_label` or `context.` and a name");
    assert_snapshot!(fault("x=\\\"open"), @r#"condition_syntax «\"open» the value's closing quote is missing"#);
    assert_snapshot!(fault("ключ=a"), @"condition_syntax «к» expected `outcome`, `preferred_label` or a context key, found `к`");
}

#[test]
fn spans_count_escapes_and_line_breaks() {
    assert_snapshot!(fault("context.a=\\\"two words\\\" && outcome==fail"), @"condition_syntax «==» unknown operator `==`: expected `=` ~> «=»");
    assert_snapshot!(fault("context.a=\\\"ü\\\\\\\\\\\" &&\r\n outcome==fail"), @"condition_syntax «==» unknown operator `==`: expected `=` ~> «=»");
    let source = with("start -> exit [condition=\"outcome=success && context.a=\\\"x\\\"\"]");
    let pipeline = run(&source).pipeline.unwrap_or_else(|| panic!("{}", errors(&source)));
    let clauses =
        edge(&pipeline, "start", "exit").condition.clone().map(|condition| condition.clauses).unwrap_or_default();
    let places: Vec<&str> = clauses.iter().map(|clause| Source::new(&source).at(clause.span)).collect();
    assert_eq!(places, ["outcome=success", "context.a=\\\"x\\\""]);
}

#[test]
fn an_empty_condition_is_none() {
    let pipeline = run(&with("start -> exit [condition=\"  \"]")).pipeline;
    assert!(pipeline.is_some_and(|pipeline| edge(&pipeline, "start", "exit").condition.is_none()));
}

#[test]
fn words_that_are_nearly_right_are_questioned() {
    let warn = |condition: &str| {
        found(&with(&format!("start -> exit [condition=\"{condition}\"] start -> exit")), Severity::Warning)
    };
    assert_snapshot!(warn("outcome=sucess"), @"condition_outcome «outcome=sucess» unknown outcome `sucess` ~> «success»");
    assert_snapshot!(warn("outcome=SUCCESS"), @"condition_outcome «outcome=SUCCESS» unknown outcome `SUCCESS` ~> «success»");
    assert_snapshot!(warn("outcom=success"), @"condition_key «outcom=success» `outcom` reads a context key, not a built-in key");
    assert_snapshot!(warn("contxt.a=success"), @"condition_key «contxt.a=success» `contxt.a` reads a context key, not a built-in key");
    assert_eq!(warn("deploy_env=prod"), "");
}

#[test]
fn a_condition_has_a_bounded_number_of_comparisons() {
    let of = |count: usize| vec!["outcome=success"; count].join(" && ");
    check(&of(256), true);
    let fault = Condition::parse(&of(257), &SourceMap::opaque(Span::default())).unwrap_err();
    assert!(fault.message.contains("more than 256 comparisons"), "{fault:?}");
}
