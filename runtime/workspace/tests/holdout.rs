//! Sealed hold-outs: the copy, the commitment, its opening, and the leak check.

use glovebox_record::Digest;
use glovebox_record::scope::Entry;
use glovebox_workspace::holdout::canary::{Canary, Leak, PublicSummary};
use glovebox_workspace::holdout::verify::{Deviation, SealDifference};
use glovebox_workspace::holdout::{self, Seal, SealError, seal};
use glovebox_workspace::project::{self, Include};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const SCENARIO: &str = "#!/bin/sh\n# The answer the judge waits for is the secret word.\n\
    test \"$(cat out/answer.txt)\" = \"tell me the secret word now\" || {\n  echo \"hint: the answer is one word\"\n  exit 1\n}\n";

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        bench.put("scripts/scenarios/answer.sh", SCENARIO);
        bench.put("scripts/scenarios/deep/table.txt", "one\n");
        bench.put("scripts/build.sh", "true\n");
        bench.mode("scripts/scenarios/answer.sh", 0o4775);
        bench
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn sealed(&self) -> PathBuf {
        self.dir.path().join("holdouts")
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.project().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn seal(&self) -> Seal {
        seal(&self.project(), &entries(&["scripts/scenarios/"]), &self.sealed()).unwrap()
    }

    fn refused(&self, folders: &[&str]) -> SealError {
        let into = self.dir.path().join("refused");
        let refused = seal(&self.project(), &entries(folders), &into).unwrap_err();
        assert!(!into.join("seal.json").exists());
        fs::remove_dir_all(into).ok();
        refused
    }
}

fn entries(texts: &[&str]) -> Vec<Entry> {
    texts.iter().map(|text| Entry::parse(text).unwrap()).collect()
}

fn mode(path: PathBuf) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_sealed_copy_is_for_its_owner_alone_and_has_plain_modes() {
    let bench = Bench::new();
    let seal = bench.seal();
    assert_eq!(seal.folders(), ["scripts/scenarios/"]);
    let paths: Vec<&str> = seal.leaves().iter().map(|leaf| leaf.path.as_str()).collect();
    assert_eq!(paths, ["scripts/scenarios/answer.sh", "scripts/scenarios/deep/table.txt"]);
    assert_eq!(seal.bytes(), SCENARIO.len() as u64 + 4);
    for folder in ["", "files", "files/scripts", "files/scripts/scenarios", "files/scripts/scenarios/deep"] {
        assert_eq!(mode(bench.sealed().join(folder)), 0o700, "{folder}");
    }
    assert_eq!(mode(bench.sealed().join("seal.json")), 0o600);
    assert_eq!(mode(seal.files().join("scripts/scenarios/answer.sh")), 0o755, "no set-id bits");
    assert_eq!(mode(seal.files().join("scripts/scenarios/deep/table.txt")), 0o644);
    assert!(!seal.files().join("scripts/build.sh").exists());
    assert_eq!(fs::read_to_string(seal.files().join("scripts/scenarios/answer.sh")).unwrap(), SCENARIO);
}

#[test]
fn the_root_is_salted_and_the_opening_gives_it_again() {
    let (bench, other) = (Bench::new(), Bench::new());
    let (seal, again) = (bench.seal(), other.seal());
    assert_ne!(seal.root(), again.root(), "the same files twice are two commitments");
    assert_eq!(Seal::open(&bench.sealed()).unwrap().root(), seal.root());
    assert!(seal.root().to_string().starts_with("blake3:"));
    assert!(!format!("{seal:?}").contains("answer"));
}

#[test]
fn a_seal_is_made_again_from_its_opening_and_the_contents() {
    let bench = Bench::new();
    let seal = bench.seal();
    let lengths = seal.opening().lengths(&seal.root()).unwrap();
    assert_eq!(lengths.values().sum::<u64>(), seal.bytes());
    let again = bench.dir.path().join("again");
    let open = |digest: &Digest| {
        let leaf = seal.leaves().iter().find(|leaf| leaf.digest == *digest).unwrap();
        fs::File::open(seal.files().join(&leaf.path))
    };
    holdout::restore(&again, seal.opening().clone(), &open).unwrap();
    let found = Seal::open(&again).unwrap();
    assert_eq!((found.root(), found.leaves()), (seal.root(), seal.leaves()));
    assert_eq!(found.verify(&seal.root(), &found.files()).unwrap(), []);
    assert_eq!(mode(found.files().join("scripts/scenarios/answer.sh")), 0o755);
    assert_eq!(mode(found.files().join("scripts")), 0o700);
}

#[test]
fn an_opening_of_another_machine_is_not_trusted() {
    let bench = Bench::new();
    let seal = bench.seal();
    assert!(matches!(seal.opening().lengths(&Digest::ZERO), Err(SealError::Malformed(_))));
    let outside = bench.dir.path().join("outside");
    for path in [
        "../outside",
        "/etc/outside",
        "scripts/scenarios/../../../../outside",
        "scripts/build.sh",
        "scripts/scenarios//x",
    ] {
        let mut forged = serde_json::to_value(seal.opening()).unwrap();
        forged["leaves"][0]["path"] = path.into();
        let into = bench.dir.path().join("forged");
        let refused = holdout::restore(&into, serde_json::from_value(forged).unwrap(), &|_| tempfile::tempfile());
        assert!(matches!(refused, Err(SealError::Malformed(_))), "{path}");
        assert!(!into.join("seal.json").exists() && !outside.exists(), "{path}");
        fs::remove_dir_all(into).unwrap();
    }
    let mut large = serde_json::to_value(seal.opening()).unwrap();
    large["leaves"][0]["bytes"] = u64::MAX.into();
    let large: holdout::Opening = serde_json::from_value(large).unwrap();
    assert!(matches!(large.lengths(&seal.root()), Err(SealError::Malformed(_))), "another root");
}

#[test]
fn every_part_of_a_leaf_is_committed_to() {
    let bench = Bench::new();
    let root = bench.seal().root();
    let file = bench.sealed().join("seal.json");
    let text = fs::read_to_string(&file).unwrap();
    let digest = blake3::hash(b"one\n").to_hex().to_string();
    for (from, to) in [
        ("\"executable\": true", "\"executable\": false"),
        ("\"bytes\": 4", "\"bytes\": 5"),
        ("deep/table.txt", "deep/tables.txt"),
        (digest.as_str(), &"0".repeat(64)),
        ("\"scripts/scenarios/\"", "\"scripts/scenario/\""),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replace(from, to)).unwrap();
        let changed = Seal::open(&bench.sealed()).unwrap();
        assert_ne!(changed.root(), root, "{from} -> {to}");
        let found = changed.verify(&root, &changed.files()).unwrap();
        assert!(found.iter().any(|deviation| deviation.difference == SealDifference::Root), "{from}");
    }
}

#[test]
fn a_seal_that_cannot_be_read_is_no_seal() {
    let bench = Bench::new();
    bench.seal();
    let file = bench.sealed().join("seal.json");
    let text = fs::read_to_string(&file).unwrap();
    let salt = text.split("\"salt\": \"").nth(1).unwrap()[..64].to_owned();
    for wrong in [
        text.replace("\"schema_version\": 1", "\"schema_version\": 2"),
        text.replace(&salt, "short"),
        text.replace("\"folders\"", "\"more\": 1, \"folders\""),
        String::new(),
    ] {
        fs::write(&file, wrong).unwrap();
        assert!(matches!(Seal::open(&bench.sealed()), Err(SealError::Malformed(_))));
    }
    assert!(matches!(Seal::open(&bench.project()), Err(SealError::Io { .. })));
}

#[test]
fn verifying_names_each_difference() {
    let bench = Bench::new();
    let seal = bench.seal();
    assert_eq!(seal.verify(&seal.root(), &seal.files()).unwrap(), []);
    assert_eq!(seal.verify(&seal.root(), &bench.project()).unwrap(), []);
    bench.put("scripts/scenarios/answer.sh", "exit 0\n");
    bench.put("scripts/scenarios/more.sh", "");
    bench.mode("scripts/scenarios/deep/table.txt", 0o755);
    symlink("answer.sh", bench.project().join("scripts/scenarios/link")).unwrap();
    let at = |path: &str, difference| Deviation { path: format!("scripts/scenarios/{path}"), difference };
    let found = seal.verify(&seal.root(), &bench.project()).unwrap();
    let expected = [
        at("answer.sh", SealDifference::Content),
        at("deep/table.txt", SealDifference::Mode),
        at("link", SealDifference::Unsupported),
        at("more.sh", SealDifference::Added),
    ];
    assert_eq!(found, expected);
    fs::remove_dir_all(bench.project().join("scripts/scenarios")).unwrap();
    let gone = seal.verify(&seal.root(), &bench.project()).unwrap();
    assert_eq!(gone, [at("answer.sh", SealDifference::Missing), at("deep/table.txt", SealDifference::Missing)]);
    symlink(seal.files().join("scripts/scenarios"), bench.project().join("scripts/scenarios")).unwrap();
    assert_eq!(seal.verify(&seal.root(), &bench.project()).unwrap().len(), 3, "a folder that became a link");
    fs::write(seal.files().join("scripts/scenarios/answer.sh"), "exit 0\n").unwrap();
    assert_eq!(seal.verify(&seal.root(), &seal.files()).unwrap(), [at("answer.sh", SealDifference::Content)]);
    assert_eq!(seal.verify(&Digest::ZERO, &seal.files()).unwrap().len(), 2);
}

#[test]
fn links_and_special_files_are_refused_with_their_place() {
    let bench = Bench::new();
    let link = bench.project().join("scripts/scenarios/deep/link");
    symlink("table.txt", &link).unwrap();
    let refused = bench.refused(&["scripts/scenarios/"]);
    assert!(
        matches!(&refused, SealError::Unsupported { path, .. } if path == "scripts/scenarios/deep/link"),
        "{refused}"
    );
    fs::remove_file(&link).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &link, rustix::fs::Mode::RUSR).unwrap();
    assert!(matches!(bench.refused(&["scripts/"]), SealError::Unsupported { .. }));
    fs::remove_file(&link).unwrap();
    bench.put("scripts/scenarios/a\u{1b}[2J", "");
    let refused = bench.refused(&["scripts/"]).to_string();
    assert!(refused.contains("could deceive a reader") && !refused.contains('\u{1b}'), "{refused}");
}

#[test]
fn only_real_folders_below_the_project_are_sealed() {
    let bench = Bench::new();
    symlink("scripts", bench.project().join("way")).unwrap();
    symlink("scripts/scenarios", bench.project().join("direct")).unwrap();
    assert!(matches!(bench.refused(&["missing/"]), SealError::Missing(_)));
    assert!(matches!(bench.refused(&["scripts/build.sh"]), SealError::NotFolder(_)));
    for folder in ["way/scenarios/", "direct/"] {
        assert!(matches!(bench.refused(&[folder]), SealError::NotFolder(_)), "{folder}");
    }
    for folder in ["./", ".git/", "a/.glovebox/b/"] {
        assert!(matches!(bench.refused(&[folder]), SealError::Never(_)), "{folder}");
    }
    assert!(Entry::parse("../x/").is_err() && Entry::parse("/etc/").is_err());
    let sealed = seal(&bench.project(), &entries(&["scripts/scenarios/deep/", "scripts/scenarios/"]), &bench.sealed());
    assert_eq!(sealed.unwrap().folders(), ["scripts/scenarios/"], "one folder below another is the same seal");
}

#[test]
fn the_default_folder_is_sealed_where_it_is_real() {
    let bench = Bench::new();
    assert_eq!(holdout::default_folder(&bench.project()).unwrap(), Some(Entry::parse("scripts/scenarios/").unwrap()));
    fs::rename(bench.project().join("scripts/scenarios"), bench.project().join("elsewhere")).unwrap();
    assert_eq!(holdout::default_folder(&bench.project()).unwrap(), None);
    symlink("../elsewhere", bench.project().join("scripts/scenarios")).unwrap();
    assert!(matches!(holdout::default_folder(&bench.project()), Err(SealError::NotFolder(_))));
}

#[test]
fn the_copy_of_the_project_does_not_know_what_is_left_out() {
    let bench = Bench::new();
    bench.put("scripts/scenarios/b\u{7}d", "");
    symlink("scripts/scenarios/answer.sh", bench.project().join("peek")).unwrap();
    symlink("build.sh", bench.project().join("scripts/fine")).unwrap();
    let copied = bench.dir.path().join("copied");
    let include = Include { leave_out: entries(&["scripts/scenarios/"]), ..Include::default() };
    let base = project::copy(&bench.project(), &copied, &include).unwrap();
    let told = serde_json::to_string(&base).unwrap();
    assert!(!told.contains("scenarios") && !told.contains("peek"), "{told}");
    assert!(told.contains("scripts/fine") && copied.join("scripts/build.sh").exists());
    assert!(!copied.join("scripts/scenarios").exists() && fs::symlink_metadata(copied.join("peek")).is_err());
}

fn canary(bench: &Bench, public: &[&str]) -> Canary {
    Canary::for_seal(&bench.seal(), &PublicSummary { texts: public.to_vec(), ..PublicSummary::default() }).unwrap()
}

#[test]
fn a_copied_line_is_found_however_it_is_dressed() {
    let bench = Bench::new();
    let canary = canary(&bench, &[]);
    let found = Some(Leak { file: "scripts/scenarios/answer.sh".to_owned(), line: 3 });
    let line = SCENARIO.lines().nth(2).unwrap();
    let json = serde_json::to_string(&serde_json::json!({ "arguments": SCENARIO }).to_string()).unwrap();
    for dressed in [
        line.to_owned(),
        format!("  3 |   {line} # and more"),
        line.replace(' ', "\n\t"),
        line.replace('"', "\\\\\\\""),
        format!("before {line}"),
    ] {
        assert_eq!(canary.find(&dressed), found, "{dressed}");
    }
    assert!(canary.find(&json).is_some(), "JSON in JSON");
    for innocent in ["", "#!/bin/sh\n", "one\n", "exit 1\n", "hint: the answer is one word", "the answer the judge"] {
        assert_eq!(canary.find(innocent), None, "{innocent}");
    }
    assert!(!format!("{canary:?}").contains("secret"));
}

#[test]
fn a_part_of_a_line_is_found_as_well_as_the_whole() {
    let bench = Bench::new();
    let canary = canary(&bench, &[]);
    let is_found = |text: &str| canary.find(text).is_some();
    assert!(is_found("at `he judge waits for is the secret word.` in the log"), "without the line's beginning");
    assert!(is_found("The answer the judge waits for"), "without its end");
    assert!(is_found("judge_waits: \"the judge waits for is the secret\""), "from its middle");
    bench.put("scripts/scenarios/b.sh", "# the expected output is the number of open files and then one more line\n");
    fs::remove_dir_all(bench.sealed()).unwrap();
    let sentence = self::canary(&bench, &[]);
    assert!(sentence.find("it says that the output is the number of open files and then one more").is_some());
    assert!(sentence.find("the output is the number of open").is_none(), "common words, and few of them");
    assert!(!is_found("the judge waits") && !is_found("the secret word"), "a few words are no copy");
    let found = canary.find(&SCENARIO.lines().nth(1).unwrap()[12..]);
    assert_eq!(found.map(|leak| leak.line), Some(2));
}

#[test]
fn a_file_of_any_length_is_searched_to_its_end() {
    let bench = Bench::new();
    let canary = canary(&bench, &[]);
    let line = SCENARIO.lines().nth(2).unwrap().as_bytes();
    for before in [0, 1, (64 << 10) - 30, (64 << 10) - 1, (4 << 20) + 3] {
        let bytes = [vec![b'.'; before], "ä€🦀".as_bytes().to_vec(), line.to_vec()].concat();
        assert_eq!(canary.find_in(&bytes[..]).unwrap().map(|leak| leak.line), Some(3), "{before}");
        assert_eq!(
            canary.find_in(Slow(&bytes[bytes.len().saturating_sub(200)..])).unwrap().map(|leak| leak.line),
            Some(3)
        );
    }
    assert_eq!(canary.find_in(&vec![b'x'; 1 << 20][..]).unwrap(), None);
    let wide: Vec<u8> = line.iter().flat_map(|byte| [*byte, 0]).collect();
    assert!(canary.find_in(&wide[..]).unwrap().is_some(), "UTF-16");
}

/// A reader that returns one byte at a time.
struct Slow<'b>(&'b [u8]);

impl std::io::Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(1);
        self.0.read(&mut into[..length])
    }
}

#[test]
fn a_large_suite_is_searched_for_throughout_in_bounded_memory() {
    let bench = Bench::new();
    let line =
        |number: usize| format!("invoice {} of the harbour costs {} silver coins\n", number * 7919, number * 104_729);
    let text: String = (0..80_000).map(line).collect();
    bench.put("scripts/scenarios/prices.txt", &text);
    let canary = canary(&bench, &[]);
    let quoted = |number: usize| (number..number + 8).map(line).collect::<String>();
    for number in [0, 39_999, 79_990] {
        let found = canary.find(&quoted(number)).expect("eight lines in a row");
        assert!((number..number + 9).contains(&found.line), "{found:?}");
    }
    let windows = format!("{canary:?}").chars().filter(char::is_ascii_digit).collect::<String>();
    assert!(windows.parse::<usize>().unwrap() < 1 << 20, "{windows}");
}

#[test]
fn what_is_public_anyway_is_not_a_leak() {
    let bench = Bench::new();
    let comment = SCENARIO.lines().nth(1).unwrap();
    let less = canary(&bench, &[&format!("prompt=\"{comment}\\nMore.\"")]);
    assert_eq!(less.find(comment), None);
    assert!(less.find(SCENARIO).is_some());
    let workspace = bench.dir.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("readme.md"), SCENARIO.lines().nth(2).unwrap()).unwrap();
    symlink("/dev/zero", workspace.join("endless")).unwrap();
    let seal = Seal::open(&bench.sealed()).unwrap();
    let none = Canary::for_seal(
        &seal,
        &PublicSummary { texts: vec![comment], folder: Some(&workspace), ..PublicSummary::default() },
    )
    .unwrap();
    assert!(none.is_empty() && none.find(SCENARIO).is_none());
}

#[test]
fn only_a_hint_the_scenario_gives_is_public() {
    let bench = Bench::new();
    bench.put("scripts/scenarios/b.sh", "# the secret line of all secrets\n");
    bench.put("scripts/scenarios/c.sh", "echo \"hint: look at the first line of it\"\necho \"hint: you gave $x\"\n");
    let first = canary(&bench, &[]);
    let check = |output: &str, expected: &[&str]| assert_eq!(first.hints([output]), expected, "{output}");
    let both = ["hint: the answer is one word", "hint: look at the first line of it"];
    check("FAIL\n  hint: the answer is one word  \nhint: the answer is one word\n", &both[..1]);
    check(&format!("{}\n{}\n{}\n", both[1], both[0], both[1]), &both);
    check("hint: the secret line of all secrets\nhint: # the secret\nhint:\nhint: tell me\n", &[]);
    check("a hint: the answer is one word\nhint: the answer is one word and the secret word is tell\n", &[]);
    check("hint: the answer\nhint: the 'answer' is one word\nhint: the answer is  one word\n", &[]);
    check("hint: you gave $x\nhint: you gave 7\n", &[]);
    let line = "test \"$(cat a)\" = \"what nobody in the valley knows\" || echo \"hint: look again\"\n";
    bench.put("scripts/scenarios/d.sh", &format!("{line}grep -q 'hint: the answer is one word' out/log\n"));
    fs::remove_dir_all(bench.sealed()).unwrap();
    let canary = canary(&bench, &[]);
    assert!(canary.find(line).is_some() && canary.find("hint: look again").is_none());
    assert!(canary.find("(hint: the answer is one word)").is_none(), "also where a scenario looks for it");
}
