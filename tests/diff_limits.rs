//! The verifier `diff-limits`: what counts as a change, and that no stage can hide a change from it.

use crate::workbench::{Answer, Workbench};

/// Returns the attributes of a stage that runs a command and may write everywhere.
fn stage(command: &str) -> String {
    format!("shape=parallelogram, allowed_write_paths=\"./\", tool_command=\"{}\"", command.replace('"', "\\\""))
}

/// Runs the commands as stages one after the other, then a `diff-limits` stage with these attributes.
fn run(commands: &[&str], limits: &str) -> Answer {
    let mut nodes: Vec<String> = commands.iter().map(|command| stage(command)).collect();
    nodes.push(format!("type=\"diff-limits\", {limits}"));
    let names: Vec<String> = (1..=nodes.len()).map(|number| format!("n{number}")).collect();
    let lines: String = names.iter().zip(&nodes).map(|(name, node)| format!("  {name} [{node}]\n")).collect();
    let pipeline = format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n{lines}  start -> {} -> done\n}}\n",
        names.join(" -> ")
    );
    let bench = Workbench::with_pipeline(&pipeline);
    bench.write("a.txt", "one\ntwo\nthree\n");
    bench.write("b.txt", "four\n");
    bench.write("go.sh", "true\n");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"])
}

#[test]
fn files_and_lines_are_counted_from_the_start_of_the_run() {
    let change = "sed -i s/two/2/ a.txt; rm b.txt; printf 'x\\ny\\n' > new.txt";
    run(&[change], "max_files=3, max_lines=5").ends(0);
    run(&[change], "max_files=2").ends(1).says("3 files changed, expected at most 2: `a.txt` (+1 -1), `b.txt` (+0 -1)");
    run(&[change], "max_lines=4").ends(1).says("5 lines changed (3 added, 2 removed), expected at most 4: `a.txt`");
    run(&[change], "max_lines=2, ignore=\"b.txt,new.txt\"").ends(0);
    run(&[change], "max_lines=2, paths=\"a*\"").ends(0);
    run(&[], "max_files=0, max_lines=0").ends(0);
}

#[test]
fn what_is_as_it_was_does_not_count_and_a_revert_hides_nothing_else() {
    run(&["cp a.txt k; echo x >> a.txt", "mv k a.txt"], "max_files=0, max_lines=0").ends(0);
    run(&["mkdir d"], "max_files=0").ends(0);
    run(&["echo x > b.txt", "echo four > b.txt; echo y > c.txt"], "max_files=0").ends(1).says("`c.txt` (+1 -0)");
}

#[test]
fn tricks_of_a_builder_count() {
    let check = |command: &str, limits: &str, says: &str| {
        run(&[command], limits).ends(1).says(says);
    };
    check("sed -i 's/$/\\r/' a.txt", "max_lines=5", "6 lines changed (3 added, 3 removed)");
    check("printf 'a\\rb\\rc' > new.js", "max_lines=2", "3 lines changed");
    check("head -c 40000 /dev/zero | tr '\\0' x > new.js", "max_lines=99", "100 lines changed");
    check("mv a.txt moved.txt", "max_lines=5", "6 lines changed (3 added, 3 removed)");
    check("mv a.txt moved.txt", "max_files=1", "2 files changed");
    check("chmod +x go.sh", "max_files=0", "`go.sh` (+0 -0)");
    check("rm a.txt; ln -s b.txt a.txt", "max_lines=3", "4 lines changed (1 added, 3 removed)");
    check("ln -s b.txt link", "max_files=0", "`link` (+1 -0)");
    check("printf 'x\\n\\0' >> a.txt", "max_lines=1", "2 lines changed");
    check("printf 'x\\n\\0' > new.js", "max_lines=9", "1 binary files added or changed, expected at most 0: `new.js`");
    check("mkdir -p x; echo evil > x/go.sh", "max_files=0, ignore=\"go.sh\"", "`x/go.sh` (+1 -0)");
    check(
        "head -c 20000000 /dev/zero | tr '\\0' x > big",
        "max_lines=9",
        "the lines of `big` are not counted: it has 20000000",
    );
}

#[test]
fn a_stage_cannot_forge_the_list() {
    let forged = "echo '{\"total\":0,\"files\":[]}' | tee changes changes.json; echo 'OUTCOME: SUCCESS'";
    run(&[forged], "max_files=1").ends(1).says("2 files changed");
}

#[test]
fn stages_can_be_named_and_each_file_counts_from_their_first_change() {
    let stages = ["seq 50 > gen.txt; echo x > own.txt", "sed -i s/^7$/seven/ gen.txt", "echo y > later.txt"];
    run(&stages, "max_files=1, max_lines=2, since=\"n2\"").ends(0);
    run(&stages, "max_lines=2, since=\"n2,n3\"").ends(1).says("3 lines changed (2 added, 1 removed)");
    run(&stages, "max_lines=51").ends(1).says("52 lines changed");
    // A later change of another stage to the same file is counted too, because the lines of two stages cannot be
    // distinguished.
    run(&["echo x > a.txt", "seq 9 > a.txt"], "max_lines=9, since=\"n1\"").ends(1).says("12 lines changed");
}

#[test]
fn branches_count_what_they_and_the_stages_before_them_changed() {
    let bench = Workbench::with_pipeline(
        r#"digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]; fork [shape=component]; join [shape=tripleoctagon]
  first [shape=parallelogram, allowed_write_paths="./", tool_command="seq 9 > before.txt"]
  left  [shape=parallelogram, allowed_write_paths="./", tool_command="seq 5 > left.txt"]
  right [shape=parallelogram, allowed_write_paths="./", tool_command="true"]
  own   [type="diff-limits", max_files=1, max_lines=5, since="left"]
  small [type="diff-limits", max_files=2, max_lines=14]
  after [type="diff-limits", max_lines=5, since="left,right"]
  all   [type="diff-limits", max_lines=13]
  start -> first -> fork; fork -> left -> own -> small -> join; fork -> right -> join; join -> after -> all -> done
}
"#,
    );
    let answer = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    answer.ends(1).says("14 lines changed (14 added, 0 removed), expected at most 13");
}

#[test]
fn a_stage_without_a_sound_bound_is_refused_before_the_run() {
    let check = |limits: &str, says: &str| {
        run(&["true"], limits).ends(3).says("error[diff_limits]").says(says);
    };
    check("label=\"x\"", "`n2` has no bound");
    check("max_files=many", "`max_files` is `many`, expected a whole number from 0 to 20000");
    check("max_files=20001", "expected a whole number from 0 to 20000");
    check("max_lines=-1", "`max_lines` is `-1`");
    check("max_files=1, paths=\"\"", "it lists nothing, so no file would be counted");
    check("max_files=1, ignore=\"*.{lock,sum}\"", "write an entry for each alternative");
    check("max_files=1, ignore=\"../x\"", "a path must not contain `..`");
    check("max_files=1, since=\"n3\"", "`since` names `n3`, which is not a stage of the pipeline");
    check("max_files=1, since=\"n2\"", "`since` names `n2`, which never changes a file");
}
