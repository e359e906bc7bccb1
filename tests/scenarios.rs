//! Hold-out suites in three styles. Each runs against a builder that does the work and against one whose program looks
//! up the answers.
//!
//! As a control, each suite also runs without `subject`. There the look-up succeeds, so its failure with `subject` is
//! significant.

use crate::workbench::{Answer, Workbench, copy_tree, root};

/// Prints the answer of the hold-outs for `$1` if a process can find it anywhere, and the ways by which it was found.
/// `BEGIN` and `END` are replaced by the two halves of a text that only the hold-outs contain.
const THIEF: &str = r#"
begin='BEGIN' end='END'
look() {
    way=$1; shift
    seen=$("$@" 2>/dev/null | tr '\0' '\n')
    case $seen in *"$begin$end"*) echo "found by $way" >&2; found="$found
$seen" ;; esac
}
regular() { for open in /proc/[0-9]*/fd/*; do test -f "$open" && cat "$open"; done; }
look file find scripts -type f -exec cat {} +
look search find / -type d '(' -path /proc -o -path /sys -o -path /usr -o -path /dev ')' -prune -o -type f -path '*scenarios*' -exec cat {} +
look root find /proc/1/root/ /proc/self/root/ -maxdepth 9 -path '*/scenarios/*' -type f -exec cat {} +
look folder sh -c 'cat /proc/[0-9]*/cwd/scripts/scenarios/*'
look environment sh -c 'env; cat /proc/[0-9]*/environ'
look arguments sh -c 'cat /proc/[0-9]*/cmdline'
look descriptors regular
look inherited sh -c 'cat <&7'
look temporary sh -c 'cat /tmp/* /dev/shm/* "$HOME"/*'
look socket sh -c 'cat /run/glovebox/*'
printf '%s\n' "$found" | sed -n "s/^\(plain \|marks \)\{0,1\}$1\( = \| \)//p" | head -n 1
"#;

/// One style: the example, a text that only its hold-outs contain, the program that looks up the answers, and the
/// changes that remove `subject` from the suite.
struct Style {
    example: &'static str,
    mark: &'static str,
    /// File of the program under test, and a program for it that runs `THIEF` in a shell.
    program: (&'static str, &'static str),
    /// File, text in it, and replacement of the text for a suite without `subject`.
    without: &'static [(&'static str, &'static str, &'static str)],
}

const SHELL: Style = Style {
    example: "scenarios-shell",
    mark: "MCMXCIV",
    program: ("src/roman.sh", "THIEF"),
    without: &[
        ("scripts/scenarios/check.sh", "subject sh", "sh"),
        ("pipeline.dot", "read_paths=\"scripts/scenarios/\",", ""),
    ],
};

const PYTEST: Style = Style {
    example: "scenarios-pytest",
    mark: "1h 5s",
    program: (
        "clock/__main__.py",
        "import subprocess, sys\nif not sys.argv[1].isdigit():\n    sys.exit(1)\nsubprocess.run([\"sh\", \"-c\", r'''THIEF''', \"sh\", sys.argv[1]])\n",
    ),
    without: &[
        ("scripts/scenarios/test_clock.py", "\"subject\", \"python3\"", "\"python3\""),
        ("pipeline.dot", "read_paths=\"scripts/scenarios/\",", ""),
        ("pipeline.dot", "cd scripts/scenarios && pytest", "pytest"),
        ("pipeline.dot", "no:cacheprovider .", "no:cacheprovider scripts/scenarios"),
    ],
};

const CARGO: Style = Style {
    example: "scenarios-cargo",
    mark: "c-est-la-vie",
    program: (
        "src/main.rs",
        "fn main() {\n    let title = std::env::args().nth(1).unwrap();\n    let thief = r##\"THIEF\"##;\n    \
         std::process::Command::new(\"sh\").args([\"-c\", thief, \"sh\", &title]).status().unwrap();\n}\n",
    ),
    without: &[
        ("scripts/scenarios/suite/tests/slug.rs", "new(\"subject\")", "new(\"../../../target/debug/slug\")"),
        ("scripts/scenarios/suite/tests/slug.rs", "[\"target/debug/slug\", title]", "[title]"),
        ("pipeline.dot", "read_paths=\"scripts/scenarios/\",", ""),
        ("pipeline.dot", "subject cargo", "cargo"),
    ],
};

/// Copies an example to the folder that its README expects, with the pytest of `cargo xtask pytest`.
fn place(example: &str) -> Workbench {
    let bench = Workbench::new();
    copy_tree(&root().join("examples").join(example), &bench.project().join("examples").join(example));
    let settings = format!("examples/{example}/glovebox.toml");
    let written = bench.read(&settings);
    if written.contains("/opt/pytest") {
        let pytest = root().join("target/pytest");
        assert!(pytest.join("bin/pytest").is_file(), "{}: run `cargo xtask pytest`", pytest.display());
        bench.write(&settings, &written.replace("/opt/pytest", pytest.to_str().unwrap()));
    }
    bench
}

/// Runs the `run` command of an example's README with a run id.
fn run(bench: &Workbench, example: &str, id: &str) -> Answer {
    let page = std::fs::read_to_string(root().join("examples").join(example).join("README.md")).unwrap();
    let line = page.split('`').find_map(|span| span.strip_prefix("glovebox run ")).unwrap();
    bench.line(&format!("run {line} --run-id {id}"))
}

/// Replaces a text in a file of the example. The text must exist.
fn change(bench: &Workbench, style: &Style, file: &str, text: &str, other: &str) {
    let path = format!("examples/{}/{file}", style.example);
    let written = bench.read(&path);
    assert!(written.contains(text), "{path} has no `{text}`");
    bench.write(&path, &written.replace(text, other));
}

/// Creates the script of a builder whose program looks up the answers.
fn steals(bench: &Workbench, style: &Style) {
    let (file, program) = style.program;
    let (begin, end) = style.mark.split_at(style.mark.len() / 2);
    let program = program.replace("THIEF", &THIEF.replace("BEGIN", begin).replace("END", end));
    let turns = format!(
        "[[node.implement]]\ntool = [{{ name = \"write_file\", arguments = {{ path = {file:?}, content = {program:?} }} }}]\n\
         [[node.implement]]\ntext = \"OUTCOME: SUCCESS\"\n[[node.implement]]\ntext = \"OUTCOME: FAIL no other idea\"\n"
    );
    bench.write(&format!("examples/{}/script.toml", style.example), &turns);
}

fn check(style: &Style) {
    let honest = place(style.example);
    run(&honest, style.example, "a").ends(0).says("verified     judge").never_says("not isolated");
    honest.glovebox(&["show", "a"]).ends(0).says("subject      judge: ").says("more, ").never_says("quarantined");
    let completed = honest.run_json("a", "checkpoint.json")["completed_nodes"].to_string();
    assert_eq!(completed, r#"["start","implement","judge","implement","judge"]"#, "the hint led to the second try");
    let prompt = honest.run_text("a", "implement/prompt.md");
    assert!(prompt.contains("hint: ") && !prompt.contains(style.mark), "{prompt}");

    let apart = place(style.example);
    steals(&apart, style);
    run(&apart, style.example, "a").ends(1).says("not verified").never_says(style.mark);

    let together = place(style.example);
    steals(&together, style);
    style.without.iter().for_each(|(file, text, other)| change(&together, style, file, text, other));
    let passed = run(&together, style.example, "a");
    passed.ends(0).says("verified (subject not isolated)").says("glovebox explain project_beside_holdouts");
}

#[test]
fn a_suite_in_shell_passes_honest_work_and_fails_what_looks_the_answers_up() {
    check(&SHELL);
}

#[test]
fn a_suite_in_pytest_passes_honest_work_and_fails_what_looks_the_answers_up() {
    check(&PYTEST);
}

#[test]
fn a_suite_in_cargo_passes_honest_work_and_fails_what_looks_the_answers_up() {
    check(&CARGO);
}

/// A careless verifier has the answers in its environment, in arguments, in temporary files and in an open descriptor.
#[test]
fn nothing_that_a_careless_suite_holds_is_found_by_the_program_under_test() {
    const CARELESS: &str = "#!/bin/sh\nANSWERS=$(cat scripts/scenarios/*.txt)\nexport ANSWERS\n\
        echo \"$ANSWERS\" | tee /tmp/answers \"$HOME/answers\" > /dev/shm/answers\nexec 7< scripts/scenarios/subtractive.txt\n\
        sh -c 'sleep 60; :' sh \"$ANSWERS\" &\n";
    let ways = |is_apart: bool| {
        let bench = place(SHELL.example);
        steals(&bench, &SHELL);
        change(&bench, &SHELL, "scripts/scenarios/check.sh", "#!/bin/sh\n", CARELESS);
        if !is_apart {
            SHELL.without.iter().for_each(|(file, text, other)| change(&bench, &SHELL, file, text, other));
        }
        run(&bench, SHELL.example, "a").ends(if is_apart { 1 } else { 0 });
        let said = bench.run_text("a", "judge/tool.stderr.txt");
        let mut ways: Vec<String> =
            said.lines().filter_map(|line| line.strip_prefix("found by ")).map(str::to_owned).collect();
        ways.sort();
        ways.dedup();
        ways
    };
    assert_eq!(ways(true), [] as [&str; 0]);
    let all = ["arguments", "descriptors", "environment", "file", "folder", "inherited", "root", "search", "temporary"];
    assert_eq!(ways(false), all, "beside the hold-outs every way leads to them");
}

/// Files that the program under test leaves are one line in the summary, however many there are.
#[test]
fn what_the_program_under_test_leaves_is_one_line() {
    let bench = place(SHELL.example);
    let style = Style { program: (SHELL.program.0, "touch left-1 left-2 left-3 left-4"), ..SHELL };
    steals(&bench, &style);
    let left = "left-1 and 3 more";
    let answer = run(&bench, SHELL.example, "a");
    answer.ends(1).says(&format!("judge quarantined {left}: scratch: written by the program under test"));
    answer.says(&format!("quarantined  judge: {left} (scratch: written by the program under test)"));
    answer.never_says("left-2");
}
