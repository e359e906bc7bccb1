//! Files to which a pipeline refers: prompt files are read, recorded and never fetched from another place, and child
//! pipelines are checked too.

use crate::workbench::Workbench;
use rusqlite::Connection;
use std::os::unix::fs::symlink;

const PIPELINE: &str = r#"digraph ship {
    graph [goal="open the door"]
    start [shape=Mdiamond]
    build [shape=box, prompt="@prompts/build.md", allowed_write_paths="", "test.outcome"=success]
    done  [shape=Msquare]
    start -> build -> done
}
"#;

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("flows/ship.dot", PIPELINE);
    bench.write("flows/prompts/build.md", "First text: $goal.\n");
    bench
}

#[test]
fn a_prompt_s_file_means_its_words() {
    let bench = bench();
    bench.write("flows/prompts/build.md", "\u{feff}One: $goal.\r\nTwo.\r\n");
    bench.glovebox(&["run", "flows/ship.dot", "--run-id", "r", "--quiet"]).ends(0);
    assert_eq!(bench.run_text("r", "build/prompt.md"), "One: open the door.\nTwo.\n");
    for empty in ["", "\u{feff}\r\n \n"] {
        bench.write("flows/prompts/build.md", empty);
        bench
            .glovebox(&["check", "flows/ship.dot"])
            .ends(3)
            .says("cannot read the prompt file `prompts/build.md`: it is empty");
    }
}

#[test]
fn a_prompt_s_file_stands_beside_the_pipeline() {
    let bench = bench();
    bench.glovebox(&["check", "flows/ship.dot"]).ends(0).never_says("prompt_file");
    bench.glovebox(&["run", "flows/ship.dot", "--run-id", "r", "--quiet"]).ends(0);
    assert!(bench.run_json("r", "manifest.json")["pipeline_digest"].is_string());
    std::fs::remove_file(bench.project().join("flows/prompts/build.md")).unwrap();
    bench
        .glovebox(&["check", "flows/ship.dot"])
        .ends(3)
        .says("cannot read the prompt file `prompts/build.md`: the file does not exist");
}

#[test]
fn a_resume_reads_what_the_run_began_with() {
    let bench = bench();
    bench.glovebox(&["run", "flows/ship.dot", "--run-id", "r", "--quiet"]).ends(0);
    let journal = bench.run_folder("r").join("journal.sqlite");
    let prompt = || bench.run_text("r", "build/prompt.md");
    assert!(prompt().contains("First text: open the door."), "{}", prompt());
    // The run looks as if it had been killed before its first stage began.
    let connection = Connection::open(&journal).unwrap();
    connection.execute("DELETE FROM record WHERE seq > 1", []).unwrap();
    drop(connection);
    std::fs::remove_dir_all(bench.run_folder("r").join("build")).unwrap();
    std::fs::remove_dir_all(bench.run_folder("r").join("artifacts")).unwrap();
    bench.write("flows/prompts/build.md", "Second text.\n");
    bench.write("flows/ship.dot", "no pipeline any more");
    bench.glovebox(&["resume", "r", "--quiet"]).ends(0);
    assert!(prompt().contains("First text: open the door."), "{}", prompt());
}

#[test]
fn no_prompt_comes_from_elsewhere() {
    let bench = bench();
    let file = bench.project().join("flows/prompts/build.md");
    let refused = |why: &str| {
        for command in [&["check", "flows/ship.dot"][..], &["run", "flows/ship.dot"]] {
            bench.glovebox(command).ends(3).says(why).never_says("secret");
        }
        assert!(!bench.has(".glovebox/runs"), "nothing began");
        std::fs::remove_file(&file).unwrap();
    };
    std::fs::remove_file(&file).unwrap();
    std::fs::write(bench.outside().join("key"), "secret").unwrap();
    symlink(bench.outside().join("key"), &file).unwrap();
    refused("it leads out of the pipeline's folder");
    symlink("../../beside.md", &file).unwrap();
    bench.write("beside.md", "secret");
    refused("it leads out of the pipeline's folder");
    bench.write("flows/scripts/scenarios/a.sh", "secret");
    symlink("../scripts/scenarios/a.sh", &file).unwrap();
    refused("it is among the hold-outs in `scripts/scenarios/`");
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused("it is not a regular file");
    std::fs::write(&file, b"\xff\xfe").unwrap();
    refused("it is not UTF-8 text");
    std::fs::write(&file, "x".repeat((1 << 20) + 1)).unwrap();
    refused("it has more than 1048576 bytes");
}

/// Returns a pipeline with a child, and with `slip` as an additional mistake.
fn parent(path: &str, slip: &str) -> String {
    format!(
        "digraph p {{ graph [\"stack.child_dotfile\"=\"{path}\", max_steps=9]\n start -> a -> exit\n start; exit\n a [prompt=x, allowed_write_paths=\"\"{slip}] }}\n"
    )
}

#[test]
fn children_are_checked_each_in_its_own_file() {
    let bench = Workbench::new();
    bench.write("top.dot", &parent("below/one.dot", ""));
    bench.write("below/one.dot", &parent("two.dot", ", goal_gate=yes"));
    bench.write("below/two.dot", &parent("three.dot", ""));
    let answer = bench.glovebox(&["check", "--for", "lint", "top.dot", "--format", "json"]);
    let found: Vec<(String, String)> = answer
        .ends(3)
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (found["file"].as_str().unwrap().to_owned(), found["rule"].as_str().unwrap().to_owned()))
        .collect();
    let has = |file: &str, rule: &str| found.iter().any(|(at, id)| at == file && id == rule);
    assert!(has("below/one.dot", "attribute_value") && has("below/two.dot", "child_pipeline"), "{found:?}");
    answer.says("cannot read the child pipeline `three.dot`: the file does not exist");
}

#[test]
fn children_of_nodes_are_checked_and_a_shared_one_once() {
    let bench = Workbench::new();
    let node =
        |id: &str, path: &str| format!("{id} [shape=house, \"stack.child_dotfile\"=\"{path}\"] start -> {id} -> exit ");
    let top = |nodes: &str| format!("digraph top {{ start; exit; {nodes} }}");
    bench.write("top.dot", &top(&(node("l", "left.dot") + &node("r", "right.dot"))));
    bench.write("left.dot", &parent("leaf.dot", ""));
    bench.write("right.dot", &parent("leaf.dot", ""));
    bench.write("leaf.dot", &parent("", ", goal_gate=yes"));
    let found = bench.glovebox(&["check", "--for", "lint", "top.dot", "--format", "json"]).ends(3).json();
    let errors = found.as_array().unwrap().iter().filter(|found| found["severity"] == "error");
    assert_eq!(errors.map(|found| &found["file"]).collect::<Vec<_>>(), ["leaf.dot"]);
    bench.glovebox(&["check", "--for", "lint", "top.dot"]).ends(3).says("4 checked: 1 error");
    bench.glovebox(&["check", "--for", "lint", "left.dot", "right.dot"]).ends(3).says("3 checked: 1 error");
    bench.write("leaf.dot", &top(&node("back", "right.dot")));
    bench
        .glovebox(&["check", "--for", "lint", "top.dot"])
        .ends(3)
        .says("`leaf.dot` leads back to itself")
        .says("right.dot:1:");
}

#[test]
fn a_child_that_leads_back_or_too_deep_is_told() {
    let bench = Workbench::new();
    bench.write("a.dot", &parent("b.dot", ""));
    bench.write("b.dot", &parent("a.dot", ""));
    bench
        .glovebox(&["check", "--for", "lint", "a.dot"])
        .ends(3)
        .says("the child pipeline `a.dot` leads back to itself")
        .says("b.dot:1:");
    bench.write("own.dot", &parent("own.dot", ""));
    bench
        .glovebox(&["check", "--for", "lint", "own.dot"])
        .ends(3)
        .says("the child pipeline `own.dot` leads back to itself");
    for number in 0..20 {
        bench.write(&format!("deep/{number}.dot"), &parent(&format!("{}.dot", number + 1), ""));
    }
    bench
        .glovebox(&["check", "--for", "lint", "deep/0.dot"])
        .ends(3)
        .says("`17.dot` is nested more than 16 files deep")
        .says("deep/16.dot:1:");
    symlink("../a.dot", bench.project().join("deep/up.dot")).unwrap();
    bench.write("deep/0.dot", &parent("up.dot", ""));
    bench.glovebox(&["check", "--for", "lint", "deep/0.dot"]).ends(3).says("it leads out of the pipeline's folder");
}
