//! What an attestation must contain, where it may be written, and which properties other than content are checked in a
//! record and in a tree.

use crate::attested::{Attested, sign};
use crate::workbench::Workbench;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

#[test]
fn an_attestation_is_never_written_through_a_link() {
    let attested = Attested::new();
    let (file, key) = (attested.file(), attested.key("key.pub"));
    let words = ["--output", file.to_str().unwrap()];
    let public = fs::read(&key).unwrap();
    for target in [key.clone(), attested.key("nothing")] {
        fs::remove_file(&file).unwrap();
        symlink(&target, &file).unwrap();
        attested.attest(&words).ends(2).says("is a link: nothing was written");
        assert_eq!(fs::read_link(&file).unwrap(), target);
    }
    assert_eq!(fs::read(&key).unwrap(), public);
    assert!(!attested.key("nothing").exists());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    attested.attest(&words).ends(2).says("is not a file: nothing was written");
    fs::remove_dir(&file).unwrap();
    // If the output path is a hard link to the key, the link is replaced and the key file stays as it is.
    fs::hard_link(&key, &file).unwrap();
    let before = fs::read_dir(attested.bench.outside()).unwrap().count();
    attested.attest(&words).ends(0);
    assert_eq!(fs::read(&key).unwrap(), public);
    attested.verify(&[]).ends(0);
    fs::write(&file, "an old one").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    attested.attest(&words).ends(0);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(attested.bench.outside()).unwrap().count(), before, "nothing beside it is left");
    attested.verify(&[]).ends(0);
}

#[test]
fn an_attestation_is_written_into_no_folder_that_is_a_link() {
    let attested = Attested::new();
    let (project, target) = (attested.bench.project(), attested.bench.outside().join("target"));
    fs::create_dir_all(target.join("deep")).unwrap();
    fs::create_dir(project.join("plain")).unwrap();
    symlink(&target, project.join("out")).unwrap();
    symlink(&target, attested.bench.outside().join("away")).unwrap();
    let whole = |path: &str| project.join(path).display().to_string();
    let away = attested.bench.outside().join("away/a.json").display().to_string();
    for (file, link) in [
        ("out/a.json".to_owned(), "out"),
        ("plain/../out/deep/a.json".to_owned(), "plain/../out"),
        (whole("out/deep/a.json"), &*whole("out")),
        (away.clone(), away.trim_end_matches("/a.json")),
    ] {
        attested.attest(&["--output", &file]).ends(2).says(&format!("`{link}` is a link: nothing was written"));
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "{file}");
        assert_eq!(fs::read_dir(target.join("deep")).unwrap().count(), 0, "{file}");
    }
    // A folder above the project may be a symbolic link.
    symlink(project.parent().unwrap(), attested.bench.outside().join("home")).unwrap();
    let home = attested.bench.outside().join("home").join(project.file_name().unwrap());
    let through = home.join("plain/c.json").display().to_string();
    for (file, name) in [("plain/a.json".to_owned(), "a.json"), (whole("plain/b.json"), "b.json"), (through, "c.json")]
    {
        attested.attest(&["--output", &file]).ends(0);
        assert!(project.join("plain").join(name).is_file(), "{file}");
    }
}

#[test]
fn a_signed_statement_without_a_required_field_does_not_hold() {
    let attested = Attested::new();
    attested.attest(&["--output", attested.file().to_str().unwrap()]).ends(0);
    let whole = attested.statement();
    sign(&whole, &attested.file());
    attested.verify(&[]).ends(0);
    sign(
        &json!({ "_type": whole["_type"], "predicateType": whole["predicateType"],
        "predicate": { "schema_version": 1, "run": { "run_id": "r", "journal": whole["predicate"]["run"]["journal"] } } }),
        &attested.file(),
    );
    attested.verify(&[]).ends(11).says("missing field");
    // With `--signature-only`, a field that a later version adds is accepted.
    let mut more = whole.clone();
    more["predicate"]["run"]["new"] = json!(1);
    sign(&more, &attested.file());
    attested.verify(&["--signature-only"]).ends(0);
    attested.verify(&[]).ends(11).says("`predicate.run.new`");
}

#[test]
fn modes_are_compared_and_second_names_are_told() {
    let attested = Attested::new();
    let record = attested.in_run("final.json");
    let mode = fs::metadata(&record).unwrap().permissions();
    attested.verify(&[]).ends(0).never_says("note");
    fs::set_permissions(&record, PermissionsExt::from_mode(0o777)).unwrap();
    attested.verify(&[]).ends(11).says(".executable`: attested false, found true");
    fs::set_permissions(&record, PermissionsExt::from_mode(0o666)).unwrap();
    attested.verify(&[]).ends(0).says("1 file that every user of this machine may write");
    fs::set_permissions(&record, mode).unwrap();
    fs::hard_link(&record, attested.key("again")).unwrap();
    attested.verify(&[]).ends(0).says("1 file with a second name (a hard link)");
    fs::remove_file(attested.key("again")).unwrap();
    // The same checks for the files of a tree.
    let bench = &attested.bench;
    bench.glovebox(&["apply", "r"]).ends(0);
    let (text, words) = (bench.project().join("out/text"), ["--signature-only", "--tree", "."]);
    attested.verify(&words).ends(0).never_says("note");
    for (mode, code, said) in [
        (0o4644, 11, "`out/text` in `.` is not as the run left it"),
        (0o755, 11, "`out/text` in `.` is not as the run left it"),
        (0o646, 0, "1 file that every user of this machine may write"),
    ] {
        fs::set_permissions(&text, PermissionsExt::from_mode(mode)).unwrap();
        attested.verify(&words).ends(code).says(said);
    }
    fs::set_permissions(&text, PermissionsExt::from_mode(0o644)).unwrap();
    fs::hard_link(&text, attested.key("text")).unwrap();
    attested.verify(&words).ends(0).says("1 file with a second name (a hard link)");
}

/// A folder of the tree that is replaced by a symbolic link to another folder is not followed, even if the other folder
/// has the expected content.
#[test]
fn a_tree_is_not_looked_at_through_a_linked_folder() {
    let attested = Attested::new();
    let (file, key, public) = (attested.file(), attested.key("key"), attested.key("key.pub"));
    let [file, key, public] = [&file, &key, &public].map(|path| path.to_str().unwrap());
    for (change, left) in [
        ("rm out/x/f", "true"),
        ("ln -s g out/x/l", "ln -s g l"),
        ("mkdir out/x/d", "mkdir d"),
        ("echo w > out/x/w", "echo w > w"),
        ("mv out/x out/y && ln -s y out/x", ""),
    ] {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]; start -> t -> done
             t [shape=parallelogram, tool_command=\"{change}\", allowed_write_paths=\"out/\"] }}"
        ));
        bench.write("out/x/f", "f\n");
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
        bench.glovebox(&["attest", "r", "--key", key, "--output", file]).ends(0);
        let words = ["verify-run", file, "--key", public, "--signature-only", "--tree", "."];
        bench.glovebox(&["apply", "r"]).ends(0);
        bench.glovebox(&words).ends(0).says("as the run left them");
        // A link that the run itself created is accepted.
        if left.is_empty() {
            continue;
        }
        let (x, other) = (bench.project().join("out/x"), bench.outside().join("other"));
        fs::create_dir(&other).unwrap();
        assert!(Command::new("sh").args(["-c", left]).current_dir(&other).status().unwrap().success());
        fs::rename(&x, bench.outside().join("x")).unwrap();
        symlink(&other, &x).unwrap();
        bench.glovebox(&words).ends(11).says("`out/x/");
        fs::write(other.join("f"), "f\n").unwrap();
        bench.glovebox(&words).ends(11).says("`out/x/");
        // The original folder, back in its place, is accepted.
        fs::remove_file(&x).unwrap();
        fs::rename(bench.outside().join("x"), &x).unwrap();
        bench.glovebox(&words).ends(0);
    }
}
