//! Tests which programs a shell would start for a text.

use super::*;

/// Returns the programs that a shell would start, in order.
fn programs(text: &str, language: Language) -> Vec<&str> {
    let words = words(Source::new(text), language);
    words.iter().for_each(|word| assert_eq!(Source::new(text).at(word.span), word.text));
    words.into_iter().filter(|word| word.role == Role::Program).map(|word| word.text).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(programs(text, Language::Shell), expected, "{text}");
}

#[test]
fn operators_and_lines_begin_a_command() {
    check("a x && b y || c; d | e & f\ng", &["a", "b", "c", "d", "e", "f", "g"]);
    check("a \\\n b\nc", &["a", "c"]);
    check("(a; b) && { c; d; }", &["a", "b", "c", "d"]);
    check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    check("while ! a; do b; done", &["a", "b"]);
    check("check() { a; }\ncheck x", &["check", "a", "check"]);
    check("case $x in\n  make) a ;;\n  *) b ;;\nesac", &["case", "a", "b"]);
}

#[test]
fn substitutions_begin_a_command_and_the_one_around_goes_on() {
    check("x=$(a b) c", &["a", "c"]);
    check("test \"$(a \"b; c\")\" = `d e` f", &["test", "a", "d"]);
    check("diff <(a) <(b; c) d", &["diff", "a", "b", "c"]);
    check("x=\"a b\" c d", &["c"]);
    check("X= Y=z a b=c", &["a"]);
    check("echo '$(a)' \"\\\"; b\" \\; c", &["echo"]);
}

#[test]
fn wrappers_and_redirections_stand_around_a_command() {
    check("env -i A=b a", &["a"]);
    check("timeout -k 5 10s nice -n 5 a", &["a"]);
    check("exec a; time b; xargs -n 1 c", &["a", "b", "c"]);
    check("command -v make >/dev/null || a", &["a"]);
    check("a >&2; b 2>&1 | c &> d; e >| f >out g", &["a", "b", "c", "e"]);
    check("> out a < in", &["a"]);
}

#[test]
fn quoted_text_is_no_command_unless_a_shell_is_given_it() {
    check("echo \"hint: wrong; make it so && go\"", &["echo"]);
    check("echo 'one\nmake two\n' x\nb", &["echo", "b"]);
    check("sh -c 'a x; b' c", &["sh", "a", "b"]);
    check("bash -euc \"a && b\"; c -c 'd'", &["bash", "a", "b", "c"]);
    check("a <<EOF | b\nmake me\nEOF\nc", &["a", "b", "c"]);
    check("a <<-'END'\n\tmake it's\n\tEND\nc <<< make", &["a", "c"]);
}

#[test]
fn comments_hold_no_words() {
    check("# a\nb # c; d\ne#f\n// g\n\"h # i\" j", &["b", "e#f", "h"]);
    check("a '# not one' && b", &["a", "b"]);
}

#[test]
fn other_languages_start_programs_from_lists() {
    let check = |text: &str, expected: &[&str]| assert_eq!(programs(text, Language::Other), expected, "{text}");
    check("make = pytest.run(\"make it\")\nrun([\"a\", 'b'], x)\ncall(['c'])", &["a", "c"]);
    check("run([sys.executable, \"-m\", \"app\"])", &["[sys.executable"]);
    let found = words(Source::new("run([\"a\", \"b\"], \"c\")"), Language::Other);
    let arguments: Vec<&str> = found.iter().filter(|word| word.role == Role::Argument).map(|word| word.text).collect();
    assert_eq!(arguments, ["b"]);
}

#[test]
fn the_language_of_a_script_is_in_its_name_or_first_line() {
    let check = |path, text, expected| assert_eq!(Script { path, text }.language(), expected, "{path} {text}");
    check("a/check.sh", "", Language::Shell);
    check("a/check", "#!/bin/sh\n", Language::Shell);
    check("a/check", "#!/usr/bin/env bash -e\n", Language::Shell);
    check("a/check.py", "#!/usr/bin/env python3\n", Language::Other);
}

#[test]
fn any_text_ends() {
    for text in ["\"", "'", "`", "$(", ")", "<<", "<<'", "a <<é\n", "x=\"$(", "sh -c '", "\\", "[\"", "(((((", "))))"]
    {
        for language in [Language::Shell, Language::Other] {
            words(Source::new(text), language);
            words(Source::new(&text.repeat(40)), language);
        }
    }
}
