//! Tests of the paths in tool commands: those that lead out of the workspace, and those below the `/tmp` of one stage.

use super::{line, run, with};
use insta::assert_snapshot;

/// Returns the findings about paths in a pipeline whose nodes `a`, `b` and `c` have these attributes.
fn found(nodes: [&str; 3]) -> String {
    let [a, b, c] = nodes;
    let tool = "shape=parallelogram, allowed_write_paths=\"\"";
    let source = with(&format!("a [{tool}, {a}] b [{tool}, {b}] c [{tool}, {c}] start -> a -> b -> c -> exit"));
    let checked = run(&source);
    let of_paths =
        checked.diagnostics.iter().filter(|found| ["tool_command_guard", "private_tmp"].contains(&&*found.rule));
    let lines = of_paths.map(|found| {
        let others = found.labels.iter().map(|label| format!(" ({})", label.text)).collect::<String>();
        let (node, help) = (found.node.as_deref().unwrap_or_default(), found.help.as_deref().unwrap_or_default());
        format!("{node} {}{others} | {help}", line(&source, found))
    });
    lines.collect::<Vec<_>>().join("\n")
}

const NONE: &str = "tool_command=true";

#[test]
fn a_path_in_tmp_is_a_remark_until_another_stage_names_it() {
    assert_snapshot!(found(["tool_command=\"make >/tmp/b.log; cat /tmp/b.log /tmp/\"", NONE, NONE]), @"
    a private_tmp «/tmp/b.log» `/tmp/b.log` is private to `a`, and removed after it | write `$TMPDIR/b.log`
    a private_tmp «/tmp/» `/tmp` is private to `a`, and removed after it | write `$TMPDIR`
    ");
    assert_snapshot!(found(["tool_command=\"make >/tmp/b.log\"", NONE, "tool_command=\"cat /tmp/b.log\""]), @"c tool_command_guard «/tmp/b.log» `/tmp/b.log` of `c` is not the same file as in `a`: each stage has its own `/tmp` (also named here) | pass the file on in the workspace, which is kept between stages");
    assert_snapshot!(found(["tool_command=\"make >/tmp/b.log\"", "tool_command=\"cat /tmp/c.log\"", NONE]), @"
    a private_tmp «/tmp/b.log» `/tmp/b.log` is private to `a`, and removed after it | write `$TMPDIR/b.log`
    b private_tmp «/tmp/c.log» `/tmp/c.log` is private to `b`, and removed after it | write `$TMPDIR/c.log`
    ");
    assert_snapshot!(found(["tool_command=\"ls /tmp/d/\"", "tool_command=\"ls /tmp/d/e\"", "tool_command=\"ls /tmp/de\""]), @"
    b tool_command_guard «/tmp/d/e» `/tmp/d/e` of `b` is not the same file as in `a`: each stage has its own `/tmp` (also named here) | pass the file on in the workspace, which is kept between stages
    c private_tmp «/tmp/de» `/tmp/de` is private to `c`, and removed after it | write `$TMPDIR/de`
    ");
    assert_snapshot!(found(["tool_command=\"ls /tmp/d/e\"", "tool_command=\"ls /tmp/d\"", NONE]), @"b tool_command_guard «/tmp/d» `/tmp/d` of `b` is not the same file as in `a`: each stage has its own `/tmp` (also named here) | pass the file on in the workspace, which is kept between stages");
    assert_snapshot!(found(["tool_command=\"ls /tmp\"", "tool_command=\"ls /tmp/\"", "tool_command=\"ls /tmp/x\""]), @"
    a private_tmp «/tmp» `/tmp` is private to `a`, and removed after it | write `$TMPDIR`
    b private_tmp «/tmp/» `/tmp` is private to `b`, and removed after it | write `$TMPDIR`
    c private_tmp «/tmp/x» `/tmp/x` is private to `c`, and removed after it | write `$TMPDIR/x`
    ");
    assert_snapshot!(found(["tool_command=\"ls /tmp/$X/a\"", "tool_command=\"ls /tmp/$X/a\"", NONE]), @"
    a private_tmp «/tmp/$X/a» `/tmp/$X/a` is private to `a`, and removed after it | write `$TMPDIR/$X/a`
    b private_tmp «/tmp/$X/a» `/tmp/$X/a` is private to `b`, and removed after it | write `$TMPDIR/$X/a`
    ");
}

/// A log that each stage writes before it reads it is not passed on.
#[test]
fn a_path_in_tmp_that_every_stage_writes_first_is_a_remark() {
    let builds = "tool_command=\"make >/tmp/b.log 2>&1 || tail /tmp/b.log\"";
    assert_snapshot!(found([builds, "tool_command=\"make test 2> '/tmp/b.log'; cat /tmp/b.log\"", NONE]), @"
    a private_tmp «/tmp/b.log» `/tmp/b.log` is private to `a`, and removed after it | write `$TMPDIR/b.log`
    b private_tmp «/tmp/b.log» `/tmp/b.log` is private to `b`, and removed after it | write `$TMPDIR/b.log`
    ");
    for other in ["cat /tmp/b.log > /tmp/b.log", "make >>/tmp/b.log", "make >/tmp/b.log/x", "make >/tmp"] {
        let other = format!("tool_command=\"{other}\"");
        let is_error = other != "tool_command=\"make >/tmp\"";
        assert_eq!(found([builds, &other, NONE]).contains("tool_command_guard"), is_error, "{other}");
        assert_eq!(found([&other, builds, NONE]).contains("tool_command_guard"), is_error, "{other}");
    }
}

#[test]
fn only_the_command_of_a_tool_is_refused_for_a_path_outside() {
    assert_snapshot!(found(["tool_command=\"cat ../x\"", NONE, NONE]), @"a tool_command_guard «../x» tool_command rejected by guardrail: contains .. | use paths relative to the workspace");
    assert_snapshot!(found(["shape=octagon, command=\"cat ../x /tmp/y\"", NONE, NONE]), @"a private_tmp «/tmp/y» `/tmp/y` is private to `a`, and removed after it | write `$TMPDIR/y`");
    assert_snapshot!(found([NONE, "type=codergen, prompt=p, verify_command=\"cat /tmp/y\"", NONE]), @"b.verify private_tmp «/tmp/y» `/tmp/y` is private to `b.verify`, and removed after it | write `$TMPDIR/y`");
}
