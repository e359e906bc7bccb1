//! Tests which base files are included in the input of a verification stage.

use super::*;
use glovebox_pipeline::{Inputs, Source, dot, lower};

/// Returns the base files of a stage with these attributes after these changes, in a project with these files.
fn told(attributes: &str, files: &[(&str, &str)], changed: &[&str]) -> ContextBase {
    let text = format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; \
         check [type=verification, allowed_write_paths=\"\", \"verification.allowed_commands\"=\"make\"{attributes}]; \
         start -> check -> exit }}"
    );
    let source = Source::new(&text);
    let pipeline = lower::lower(source, dot::parse(source).0, &Inputs::default()).0;
    let mut base = Base::default();
    for (path, text) in files {
        let (digest, bytes) = (Digest::hash(text.as_bytes()), text.len() as u64);
        base.files.insert((*path).to_owned(), FileFact { digest, bytes, executable: false });
    }
    let read = |digest: &Digest, _| {
        let text = files.iter().map(|(_, text)| text.as_bytes()).find(|text| Digest::hash(text) == *digest);
        text.map(<[u8]>::to_vec)
    };
    let node = pipeline.nodes.iter().find(|node| node.id.as_str() == "check").unwrap();
    ContextBase::new(node, &changed.iter().copied().collect(), &base, read)
}

#[test]
fn tells_the_first_version_of_what_was_changed() {
    let files = [("Makefile", "lint:\n"), ("package.json", "{}"), ("api/package.json", "old")];
    let of_root = told("", &files, &["Makefile", "GNUmakefile", "api/package.json"]);
    let expected = [("GNUmakefile", BaseFile::Absent), ("Makefile", BaseFile::Text("lint:\n".to_owned()))];
    assert_eq!(of_root.files, BTreeMap::from(expected));
    for attribute in ["\"verification.workdir\"=\"./api/\"", "working_dir=api"] {
        let of_folder = told(&format!(", {attribute}"), &files, &["Makefile", "api/package.json"]);
        let expected = BTreeMap::from([("package.json", BaseFile::Text("old".to_owned()))]);
        assert_eq!(of_folder.files, expected, "{attribute}");
    }
    assert_eq!(told("", &files, &[]).files, BTreeMap::new());
}

#[test]
fn a_folder_that_was_replaced_changed_its_files() {
    let files = [("api/Makefile", "lint:\n")];
    let told = told(", working_dir=api", &files, &["api"]);
    assert_eq!(told.files["Makefile"], BaseFile::Text("lint:\n".to_owned()));
}

#[test]
fn knows_whether_there_were_tests() {
    let files = [("api/test/a.js", ""), ("web/src/a.js", ""), ("node_modules/a/test.js", "")];
    assert!(told("", &files, &[]).has_tests);
    assert!(told(", working_dir=api", &files, &[]).has_tests);
    assert!(!told(", working_dir=web", &files, &[]).has_tests);
}
