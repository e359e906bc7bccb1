//! Tests of conditions: which of them hold, and the diagnostics for text that does not parse.

use super::{edge, errors, found, run, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::condition::Condition;
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::dot::SourceMap;
use glovebox_pipeline::ir::Status;
use glovebox_pipeline::outcome::Answer;
use glovebox_pipeline::span::Span;
use glovebox_record::FailureClass;
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
        "_flag" => "_on",
        "quoted" => "a\"b\\c",
        "lines" => "a\nb\tc",
        "state" => "succeeded",
        "failure_class" => "transient",
        "theirs" => "transient_infra",
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
    assert_snapshot!(fault("context.name contains x"), @"condition_syntax «contains» unknown operator `contains`: a condition can only compare for equality");
    assert_snapshot!(fault("context.name ends_with x"), @"condition_syntax «ends_with» unknown operator `ends_with`: a condition can only compare for equality");
    assert_snapshot!(fault("context.name resembles x"), @"condition_syntax «resembles» expected `=`, `!=` or `&&`, found `resembles`");
    assert_snapshot!(fault("$ready = true"), @"condition_syntax «$» unexpected `$` before a key");
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

/// Parses a condition that is not from a file.
fn parse(text: &str) -> Result<Condition, Box<Diagnostic>> {
    Condition::parse(text, &SourceMap::opaque(Span::default())).map_err(Box::new)
}

#[test]
fn literals_and_keys_may_begin_with_an_underscore_and_escapes_are_read() {
    check("_flag=_on", true);
    check("_flag=on", false);
    check("context._flag=_on", true);
    check(r#"quoted="a\"b\\c""#, true);
    check(r#"lines="a\nb\tc""#, true);
    check(r#"lines="anbtc""#, false);
    // `succeeded` is another spelling only of an outcome. In a context value it is plain text.
    check("state=succeeded", true);
    check("state=success", false);
}

#[test]
fn classes_of_failures_are_equal_in_either_spelling() {
    check("failure_class=transient", true);
    check("failure_class=transient_infra", true);
    check("context.failure_class=transient_infra", true);
    check("failure_class=structural", false);
    check("failure_class!=transient_infra", false);
    check("theirs=transient", false);
    check("theirs=transient_infra", true);
}

#[test]
fn a_condition_requires_a_class_of_failures_if_a_clause_names_it() {
    for (text, expected) in [
        ("failure_class=transient", true),
        ("context.failure_class=transient_infra", true),
        ("outcome=fail && failure_class=transient", true),
        ("failure_class!=transient", false),
        ("failure_class=budget_exhausted", false),
        ("failure_class", false),
        ("outcome=fail", false),
        ("x=transient", false),
    ] {
        assert_eq!(parse(text).unwrap().requires_class(FailureClass::Transient), expected, "{text}");
    }
    assert!(parse("failure_class=budget_exhausted").unwrap().requires_class(FailureClass::Budget));
    assert!(parse("failure_class=structural").unwrap().requires_class(FailureClass::Scope));
}

#[test]
fn a_condition_waits_for_a_retry_if_it_holds_then_and_not_after_a_failure() {
    for (text, expected) in [
        ("outcome=retry", true),
        ("outcome!=fail", true),
        ("context.outcome=retry && x=1", true),
        ("outcome=retry && outcome!=success", true),
        ("outcome=retry && outcome=success", false),
        ("outcome=success", false),
        ("outcome!=success", false),
        ("x=retry", false),
    ] {
        assert_eq!(parse(text).unwrap().waits_for_retry(), expected, "{text}");
    }
}

#[test]
fn keys_are_known_by_their_meaning() {
    let of = |text: &str| {
        let key = &parse(text).unwrap().clauses[0].key;
        (key.is_outcome(), key.is_preferred_label(), key.is_failure_class())
    };
    assert_eq!([of("outcome=x"), of("context.outcome=x")], [(true, false, false); 2]);
    assert_eq!([of("failure_class=x"), of("context.failure_class=x")], [(false, false, true); 2]);
    assert_eq!(of("preferred_label=x"), (false, true, false));
    assert_eq!(of("context.preferred_label=x"), (false, false, false));
}

#[test]
fn a_mistake_has_the_help_that_fits_it() {
    let fault = |text: &str| {
        let found = parse(text).unwrap_err();
        format!("{} | {}", found.message, found.help.unwrap_or_default())
    };
    assert_snapshot!(fault(""), @"the condition is empty | ");
    assert_snapshot!(fault("x=a,b"), @"a value that contains `,` must be quoted | compare with one value, and add a second edge to the same node for the other value");
    assert_snapshot!(fault("x=a/b y"), @r#"a value that contains `/` must be quoted | write `x=\"a/b\"`; the quotes need escapes inside the attribute"#);
    assert_snapshot!(fault("x is_set"), @"expected `=`, `!=` or `&&`, found `is_set` | write `key=value` or `key!=value`, joined by `&&`");
}

#[test]
fn the_comparison_above_the_bound_is_marked() {
    let many = vec!["outcome=success"; 257].join(" && ");
    assert_snapshot!(fault(&many), @"condition_syntax «&&» the condition has more than 256 comparisons");
}
