//! Tests of prompts from files and of child pipelines: which files are requested, which texts are inserted, and what is refused.

use crate::{errors, node, with};
use glovebox_pipeline::Source;
use glovebox_pipeline::inputs::Files;
use glovebox_pipeline::key;
use glovebox_pipeline::{Inputs, check, parse};

fn given(files: &[(&str, Result<&str, &str>)]) -> Inputs {
    let text = |found: &Result<&str, &str>| found.map(str::to_owned).map_err(str::to_owned);
    let files: Files = files.iter().map(|(path, found)| ((*path).to_owned(), text(found))).collect();
    let set = [("part".to_owned(), "door".to_owned())].into();
    Inputs { set, files, ..Inputs::default() }
}

fn asks(prompt: &str) -> String {
    with(&format!("graph [goal=\"a house with a $part\"] n [prompt=\"{prompt}\"] start -> n -> exit"))
}

#[test]
fn a_prompt_s_file_is_asked_for_and_put_in() {
    let source = asks("@prompts/n.md");
    let inputs = given(&[("prompts/n.md", Ok("Build $goal.\n@other.md $part"))]);
    assert_eq!(
        parse(Source::new(&source)).references(&inputs).prompts.into_iter().collect::<Vec<_>>(),
        ["prompts/n.md"]
    );
    let pipeline = check(Source::new(&source), &inputs).pipeline.expect("it is valid");
    assert_eq!(node(&pipeline, "n").prompt.as_deref(), Some("Build a house with a door.\n@other.md door"));
    assert_eq!(node(&pipeline, "n").attributes[key::PROMPT].value, "@prompts/n.md");
}

#[test]
fn what_is_no_reference_is_a_text() {
    for prompt in ["@anna please review", "mail to anna@example.com", "@one\\n@two"] {
        assert_eq!(parse(Source::new(&asks(prompt))).references(&Inputs::default()).prompts.len(), 0, "{prompt}");
        assert!(errors(&with(&format!("n [prompt=\"{prompt}\"] start -> n -> exit"))).is_empty(), "{prompt}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_at_the_prompt() {
    let check = |prompt: &str, expected: &str| {
        let source = with(&format!("n [prompt=\"{prompt}\"] start -> n -> exit"));
        let path = prompt.trim_start_matches('@');
        assert_eq!(
            errors(&source),
            format!("prompt_file «\"{prompt}\"» cannot read the prompt file `{path}`: {expected}")
        );
    };
    check("@n.md", "its text was not loaded");
    check("@", "the path is empty");
    check("@/etc/passwd", "the path is absolute");
    check("@a/../../b", "the path contains `..`");
    check("@./n.md", "the path contains a `.` segment");
    check("@prompts/", "it is a folder");
    check("@scripts/scenarios/a.md", "`scripts/scenarios/` contains hold-outs");
    let source = with("n [prompt=\"@n.md\"] start -> n -> exit");
    let found = glovebox_pipeline::check(
        Source::new(&source),
        &Inputs { set: [].into(), ..given(&[("n.md", Err("it is a pipe"))]) },
    );
    let fault = found.diagnostics.iter().find(|found| found.is_error()).expect("an error");
    assert_eq!(fault.message, "cannot read the prompt file `n.md`: it is a pipe");
    assert!(found.pipeline.is_none());
}

#[test]
fn paths_that_are_refused_are_not_asked_for() {
    let source = with(
        "graph [scenarios=\"trials\", \"stack.child_dotfile\"=\"trials/a.dot\"] \
         a [prompt=\"@../x\"] b [prompt=\"@trials/x\"] c [prompt=\"@scripts/scenarios/x\"] start -> a -> b -> c -> exit",
    );
    let wanted = parse(Source::new(&source)).references(&Inputs::default());
    assert_eq!(wanted.prompts.into_iter().collect::<Vec<_>>(), ["scripts/scenarios/x"]);
    assert_eq!((wanted.children, wanted.sealed), (Vec::new(), vec!["trials/".to_owned()]));
}

#[test]
fn a_node_s_children_are_asked_for_too() {
    let node = |path: &str| format!("node [shape=house, \"stack.child_dotfile\"=\"{path}\"] ");
    let source = with(&format!("{}a b {} c start -> a -> b -> c -> exit", node("x.dot"), node("y.dot")));
    let children = parse(Source::new(&source)).references(&Inputs::default()).children;
    assert_eq!(children.iter().map(|child| child.path.as_str()).collect::<Vec<_>>(), ["x.dot", "y.dot"]);
    let outside = with(&format!("{} a start -> a -> exit", node("../x.dot")));
    assert_eq!(
        errors(&outside),
        "child_pipeline «\"../x.dot\"» cannot read the child pipeline `../x.dot`: the path contains `..`"
    );
}

#[test]
fn a_child_is_named_with_its_place() {
    let source = with("graph [\"stack.child_dotfile\"=\"children/a.dot\"] start -> exit");
    let glovebox_pipeline::files::Child { path, span } =
        parse(Source::new(&source)).references(&Inputs::default()).children.pop().expect("it has one");
    assert_eq!((path.as_str(), Source::new(&source).at(span)), ("children/a.dot", "\"children/a.dot\""));
    assert_eq!(errors(&source), "");
}
