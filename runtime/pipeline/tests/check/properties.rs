//! Property tests: any text is parsed or gets diagnostics, spans are inside the text, and canonical DOT parses to the same graph.

use super::run;
use super::total::{check_condition, check_format, check_stylesheet};
use proptest::prelude::*;

const SEED: &str = include_str!("seed.dot");

fn check(source: &str) {
    super::total::check(source);
    check_format(source);
}

/// Creates fragments from which files are made, so that random text gets past the header.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "digraph",
        "graph",
        "node",
        "edge",
        "subgraph",
        "strict",
        "{",
        "}",
        "[",
        "]",
        "=",
        ",",
        ";",
        "->",
        "--",
        "\"",
        "\\",
        "\n",
        " ",
        "start",
        "exit",
        "a",
        "b",
        "shape=Mdiamond",
        "condition=\"outcome=success\"",
        "\"x\\\"y\"",
        "//",
        "/*",
        "*/",
        "#",
        "<",
        ">",
        "'",
        ":",
        "+",
        "-",
        ".",
        "0.5",
        "900s",
        "label",
        "a.b",
        "é",
        "\r\n",
        "\u{feff}",
        "\u{0}",
        "$goal",
        "model_stylesheet=\"* { llm_model: x }\"",
    ]);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

/// Creates a valid file with arbitrary texts in all places that take a text.
fn valid() -> impl Strategy<Value = String> {
    let text = "[^\u{0}]{0,12}";
    // Such a prompt would be the name of a file that does not exist.
    let prompt = text.prop_filter("a file's name", |prompt| !prompt.trim().starts_with('@'));
    (text, prompt, "[a-z]{1,6}", text, any::<i16>()).prop_map(|(label, prompt, key, value, weight)| {
        let quote = glovebox_pipeline::dot::quote;
        let (label, prompt, value) = (quote(&label), quote(&prompt), quote(&value));
        format!(
            "digraph G {{ start [shape=Mdiamond] exit [shape=Msquare] subgraph {{ label={label} \"node\" [prompt={prompt} \"x.{key}\"={value}] }}
             start -> \"node\" -> exit [label={label}, weight={weight}] }}"
        )
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_diagnosed(source in any::<String>()) {
        check(&source);
    }

    #[test]
    fn any_sequence_of_pieces_is_read_or_diagnosed(pieces in prop::collection::vec(piece(), 0..60)) {
        check(&pieces.concat());
        check(&format!("digraph G {{ {} }}", pieces.concat()));
        check(&format!("digraph G {{ start exit start -> exit start [{}] }}", pieces.concat()));
    }

    #[test]
    fn any_damaged_file_is_read_or_diagnosed(cut in 0..SEED.len(), length in 0..40_usize, put in prop::collection::vec(piece(), 0..3)) {
        let floor = |at: usize| (0..=at.min(SEED.len())).rev().find(|at| SEED.is_char_boundary(*at)).unwrap_or(0);
        check(&format!("{}{}{}", &SEED[..floor(cut)], put.concat(), &SEED[floor(cut + length)..]));
    }

    #[test]
    fn any_condition_is_read_or_diagnosed(condition in "[a-z=!&| .<>\"'\\\\ü\r\n-]{0,30}") {
        check_condition(&condition);
        check(&format!("digraph G {{ start exit start -> exit [condition={}] }}", glovebox_pipeline::dot::quote(&condition)));
        check(&format!("digraph G {{ start exit start -> exit [condition=\"{condition}\"] }}"));
    }

    #[test]
    fn any_style_sheet_is_read_or_diagnosed(sheet in "[a-z*#.{}:;_ \"\\\\/ü\n]{0,30}") {
        check_stylesheet(&sheet);
        check(&format!("digraph G {{ model_stylesheet=\"{sheet}\" start exit start -> exit }}"));
    }

    #[test]
    fn every_text_survives_the_round_trip(source in valid()) {
        prop_assert!(run(&source).pipeline.is_some(), "{source} {:?}", run(&source).diagnostics);
        check(&source);
    }
}

#[test]
fn the_damaged_file_is_valid_before_it_is_damaged() {
    assert!(run(SEED).pipeline.is_some(), "{:#?}", run(SEED).diagnostics);
    check(SEED);
}

/// Files that would take more than linear time in a wrong implementation. With a quadratic step anywhere, this test takes minutes.
#[test]
fn hostile_files_take_linear_time() {
    const TIMES: usize = 30_000;
    for piece in [
        "{",
        "[",
        "a [x='",
        "a [x=<",
        "a [x=\"\n\" y",
        "/*",
        "//\n",
        "a -- ",
        "a:b ",
        "=",
        "subgraph {",
        "a [",
        "a [b=1 c\n[",
        "\\\"",
        "#",
    ] {
        check(&format!("digraph G {{ {}", piece.repeat(TIMES)));
    }
    let names: Vec<String> = (0..TIMES).map(|number| format!("n{number}")).collect();
    let chain = names.join(" -> ");
    assert!(
        run(&format!("digraph G {{ start exit {} start -> {chain} -> exit }}", names.join(" "))).pipeline.is_some()
    );
    check(&format!("digraph G {{ start exit start -> {chain} -> exit }}"));
    check(&format!("digraph G {{ start exit {} start -> exit }}", names.join(" ")));
    let quoted = "\\\"".repeat(TIMES);
    check(&format!("digraph G {{ start exit start -> exit [condition=\"x={quoted}{}\"] }}", " && a=b".repeat(TIMES)));
    check(&format!(
        "digraph G {{ start exit start -> exit {} }}",
        "start -> exit [condition=\"a=b && c!=d\"] ".repeat(TIMES / 10)
    ));
    check(&format!(
        "digraph G {{ start exit start -> exit model_stylesheet=\"{}\" }}",
        "* { llm_model: a } .b { ".repeat(TIMES)
    ));
}
