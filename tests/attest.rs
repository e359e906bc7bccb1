//! An attestation is accepted if the run or tree is the attested one, without any other key of the author, and rejected
//! otherwise.

use crate::attested::Attested;
use crate::workbench::{Answer, Workbench};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Flips one bit of a file, calls `look`, and restores the file.
fn with_flipped(file: &Path, at: usize, look: impl FnOnce()) {
    let bytes = fs::read(file).unwrap();
    let mut changed = bytes.clone();
    changed[at] ^= 1;
    fs::write(file, changed).unwrap();
    look();
    fs::write(file, bytes).unwrap();
}

#[test]
fn it_says_what_the_run_proved_and_holds_for_that_run() {
    let attested = Attested::new();
    let holds = attested.verify(&[]);
    holds.ends(0).says("r: success, exit 0").says("as attested").says("every file matches the journal");
    holds.says("every file matches the seal");
    let statement = attested.statement();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "glovebox:attestation/run/v1");
    let subjects = statement["subject"].as_array().unwrap();
    let names: Vec<_> = subjects.iter().map(|subject| subject["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["run:r", "out/text"]);
    // `printf 'made\n' | sha256sum`
    let made = "9ccbd3f1b19a1cdfd8d7c6ae48e9e822e2345f5be1a6187b19e41486c6941004";
    assert_eq!(subjects[1]["digest"]["sha256"], made);
    let predicate = &statement["predicate"];
    let show = attested.bench.glovebox(&["show", "r", "--json"]).ends(0).json();
    assert_eq!(predicate["run"], show, "the result, receipts, digests, tier and hold-out root of `show --json`");
    assert!(show["holdouts_root"].is_string() && show["receipts"][0]["tier"].is_string());
    assert!(predicate["grants"]["nodes"]["make"].to_string().contains("out/"));
    let text = statement.to_string();
    assert!(!text.contains("scenarios/one\"") && !text.contains("seal.json"), "no name of a hold-out: {text}");
}

#[test]
fn a_flipped_byte_anywhere_in_the_run_is_found() {
    let attested = Attested::new();
    let statement = attested.statement();
    let files = statement["predicate"]["files"].as_array().unwrap().iter();
    let mut files: Vec<_> = files.map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    assert!(files.contains(&"journal.sqlite".to_owned()) && files.contains(&"final.json".to_owned()));
    files.extend(["workspace/kept", "workspace/out/text", "holdouts/files/scenarios/one"].map(str::to_owned));
    for path in files {
        let file = attested.in_run(&path);
        let length = fs::metadata(&file).unwrap().len() as usize;
        let places: Vec<usize> = match &*path {
            "journal.sqlite" => (0..length).step_by(509).collect(),
            _ if length == 0 => continue,
            _ => vec![0, length / 2, length - 1],
        };
        for at in places {
            with_flipped(&file, at, || {
                let found = attested.verify(&[]);
                assert_eq!(found.code, 11, "byte {at} of {path}: {}{}", found.stdout, found.stderr);
            });
        }
    }
    attested.verify(&[]).ends(0);
}

#[test]
fn what_is_missing_added_or_moved_is_found_by_name() {
    let attested = Attested::new();
    let final_file = attested.in_run("final.json");
    fs::rename(&final_file, attested.in_run("aside")).unwrap();
    attested.verify(&[]).ends(11).says("`predicate.files[");
    fs::rename(attested.in_run("aside"), &final_file).unwrap();
    fs::write(attested.in_run("extra"), "x").unwrap();
    attested.verify(&[]).ends(11).says("values");
    fs::remove_file(attested.in_run("extra")).unwrap();
    fs::write(attested.in_run("workspace/new"), "x").unwrap();
    attested.verify(&[]).ends(11).says("`new` in the workspace");
    fs::remove_file(attested.in_run("workspace/new")).unwrap();
    fs::File::create(attested.in_run("artifacts/long")).unwrap().set_len(1 << 40).unwrap();
    attested.verify(&[]).ends(11).says("bytes were attested");
    fs::remove_file(attested.in_run("artifacts/long")).unwrap();
    fs::rename(attested.in_run("workspace"), attested.key("workspace")).unwrap();
    symlink(attested.key("workspace"), attested.in_run("workspace")).unwrap();
    attested.verify(&[]).ends(11).says("is a link or a file, not a folder");
    fs::remove_file(attested.in_run("workspace")).unwrap();
    fs::rename(attested.key("workspace"), attested.in_run("workspace")).unwrap();
    fs::rename(&final_file, attested.key("final.json")).unwrap();
    symlink(attested.key("final.json"), &final_file).unwrap();
    attested.verify(&[]).ends(11).says("`final.json`: it is not a regular file");
    fs::remove_file(&final_file).unwrap();
    fs::rename(attested.key("final.json"), &final_file).unwrap();
    attested.verify(&[]).ends(0);
    // Another run with the same id has another journal.
    fs::rename(attested.bench.run_folder("r"), attested.bench.outside().join("first")).unwrap();
    attested.bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    attested.verify(&[]).ends(11).says("is not the attested one");
    fs::remove_dir_all(attested.bench.run_folder("r")).unwrap();
    attested.verify(&[]).ends(2).says("the signature is valid, but").says("--signature-only");
    attested.verify(&["--signature-only"]).ends(0).says("not compared");
}

#[test]
fn a_run_that_was_changed_is_not_attested() {
    let attested = Attested::new();
    for path in ["workspace/kept", "holdouts/files/scenarios/one"] {
        with_flipped(&attested.in_run(path), 0, || {
            attested.attest(&[]).ends(11).says(path.rsplit('/').next().unwrap());
        });
    }
    attested.attest(&[]).ends(0);
}

#[test]
fn a_tree_is_compared_with_what_the_run_left() {
    let attested = Attested::new();
    let bench = &attested.bench;
    let words = ["--signature-only", "--tree", "."];
    attested.verify(&words).ends(11).says("`old` in `.` exists, but the run removed it");
    bench.glovebox(&["apply", "r"]).ends(0);
    attested.verify(&words).ends(0).says("4 paths, as the run left them");
    bench.write("old", "again");
    attested.verify(&words).ends(11).says("`old` in `.` exists, but the run removed it");
    fs::remove_file(bench.project().join("old")).unwrap();
    let text = bench.project().join("out/text");
    fs::set_permissions(&text, PermissionsExt::from_mode(0o755)).unwrap();
    attested.verify(&words).ends(11).says("`out/text` in `.` is not as the run left it");
    fs::set_permissions(&text, PermissionsExt::from_mode(0o644)).unwrap();
    attested.verify(&words).ends(0);
    let link = bench.project().join("out/link");
    fs::remove_file(&link).unwrap();
    symlink("/etc/passwd", &link).unwrap();
    attested.verify(&words).ends(11).says("`out/link` in `.` is not as the run left it");
    fs::remove_file(&link).unwrap();
    symlink("text", &link).unwrap();
    // The file is now 1 TiB long. Its content must not be read.
    fs::OpenOptions::new().write(true).open(&text).unwrap().set_len(1 << 40).unwrap();
    attested.verify(&words).ends(11).says("`out/text` in `.` is not as the run left it");
    bench.write("out/text", "Made\n");
    attested.verify(&words).ends(11).says("`out/text` in `.` is not as the run left it");
}

#[test]
fn a_file_that_another_key_signed_or_nobody_does_not_hold() {
    let attested = Attested::new();
    let (key, other) = (attested.key("key.pub"), attested.key("other.pub"));
    let aside = attested.key("aside");
    fs::rename(&key, &aside).unwrap();
    fs::copy(&other, &key).unwrap();
    attested.verify(&[]).ends(11).says("it names sha256:");
    fs::rename(&aside, &key).unwrap();
    let text = fs::read_to_string(attested.file()).unwrap();
    let broken = |from: &str, to: &str, message: &str| {
        assert!(text.contains(from));
        fs::write(attested.file(), text.replacen(from, to, 1)).unwrap();
        attested.verify(&[]).ends(11).says(message);
    };
    broken("vnd.in-toto+json", "json", "its payload is `application/json`");
    broken("\"payload\":\"ey", "\"payload\":\"fy", "it was changed after it was signed");
    broken("\"payload\":\"ey", "\"payload\":\"-y", "its payload is not base64");
    broken("\"keyid\"", "\"key\"", "it is not a signed document");
    broken("\"signatures\":[", "\"signatures\":[], \"s\":[", "it is not a signed document");
    fs::write(attested.file(), "").unwrap();
    attested.verify(&[]).ends(11).says("it is not a signed document");
    fs::remove_file(attested.file()).unwrap();
    attested.verify(&[]).ends(2).says("read the attestation");
}

#[test]
fn keys_that_a_stage_or_another_user_could_read_are_refused() {
    let attested = Attested::new();
    fs::set_permissions(attested.key("key"), PermissionsExt::from_mode(0o640)).unwrap();
    attested.attest(&[]).ends(6).says("others can read or change the key").says("chmod 600");
    fs::set_permissions(attested.key("key"), PermissionsExt::from_mode(0o600)).unwrap();
    fs::copy(attested.key("key"), attested.bench.project().join("key")).unwrap();
    attested.bench.glovebox(&["attest", "r", "--key", "key"]).ends(6).says("lies in the project, so its stages could");
    fs::remove_file(attested.bench.project().join("key")).unwrap();
    fs::hard_link(attested.key("key"), attested.bench.project().join("key")).unwrap();
    attested.attest(&[]).ends(6).says("has a second name (a hard link)");
    fs::remove_file(attested.bench.project().join("key")).unwrap();
    let public = attested.key("key.pub");
    let words = ["attest", "r", "--key", public.to_str().unwrap()];
    fs::set_permissions(&public, PermissionsExt::from_mode(0o600)).unwrap();
    attested.bench.glovebox(&words).ends(2).says("is not a private Ed25519 key").says("openssl genpkey");
    let private = attested.key("key");
    let file = attested.file();
    let words = ["verify-run", file.to_str().unwrap(), "--key", private.to_str().unwrap()];
    attested.bench.glovebox(&words).ends(2).says("is not a public Ed25519 key").says("openssl pkey");
}

#[test]
fn only_the_user_who_started_a_run_attests_it_and_only_once_it_ended() {
    let attested = Attested::new();
    let key = attested.key("key");
    let words = ["attest", "r", "--key", key.to_str().unwrap()];
    let stranger = Answer::of(attested.bench.bare(&words).env("GLOVEBOX_STATE_DIR", attested.key("nobody")));
    stranger.ends(6).says("so its record is not trusted");
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; ask [shape=hexagon, label=\"go on?\"]\n\
         start -> ask; ask -> done [label=\"yes\"] }",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    bench.glovebox(&words).ends(2).says("run `r` has not ended").says("glovebox resume r");
}

#[test]
fn an_answer_of_a_person_is_attested() {
    let attested = Attested::new();
    let bench = &attested.bench;
    bench.write(
        "gate.dot",
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; ask [shape=hexagon, label=\"go on?\"]\n\
         start -> ask; ask -> done [label=\"yes\"] }",
    );
    fs::remove_dir_all(bench.run_folder("r")).unwrap();
    bench.glovebox(&["run", "gate.dot", "--run-id", "r"]).ends(10);
    bench.glovebox(&["answer", "r", "ask", "yes"]).ends(0);
    bench.glovebox(&["resume", "r"]).ends(0);
    attested.attest(&["-o", attested.file().to_str().unwrap()]).ends(0);
    let statement = attested.statement();
    let answers = statement["predicate"]["answers"].as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["node"], &answers[0]["value"]), (1, &"ask".into(), &"yes".into()));
    attested.verify(&[]).ends(0);
}
