//! What the store knows about a component in addition to its bytes: where it came from, who signed it, and how it was built.

use super::server::Registry;
use super::{Project, component};
use crate::workbench::{Answer, Workbench};
use std::path::PathBuf;

/// Returns the files of the store with this ending.
fn stored(project: &Project, ending: &str) -> Vec<PathBuf> {
    project.stored().into_iter().filter(|file| file.to_string_lossy().ends_with(ending)).collect()
}

/// A lock file that a stranger changed could otherwise name any registry for bytes that the store has, and the next update would come
/// from there.
#[test]
fn a_lock_names_no_registry_from_which_the_bytes_did_not_come() {
    let (registry, other) = (Registry::start(), Registry::start());
    let project = Project::with_plugin(&registry);
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
    for file in ["glovebox.toml", "glovebox.lock"] {
        let text = project.bench.read(file);
        project.bench.write(file, &text.replace(&registry.address.to_string(), &other.address.to_string()));
    }
    let refused = project.bench.glovebox(&["run", "pipeline.dot"]);
    refused.ends(7).says("the store has its bytes, but not from").says("glovebox plugin pull acme.todo");
    project.plugin(&["lock", "--locked"]).ends(7).says("but not from");
    project.plugin(&["pull"]).ends(2).says("is not there, or not for you");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(7);
    // The registry has it after all, with the same manifest.
    project.push(&other, &component("0.1.0", r#""src/""#)).ends(0);
    project.plugin(&["pull"]).ends(0).says("1 of them new");
    project.bench.glovebox(&["run", "--locked", "pipeline.dot"]).ends(0);
    // An origin that was changed is none.
    for file in stored(&project, ".origin") {
        std::fs::write(file, "x").unwrap();
    }
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(7).says("damaged");
    project.plugin(&["pull"]).ends(0).says("1 of them new");
    project.bench.glovebox(&["run", "pipeline.dot"]).ends(0);
}

#[test]
fn projects_of_a_user_keep_each_others_signatures() {
    let registry = Registry::start();
    let author = Project::new();
    let key = |name: &str| author.bench.outside().join(name).to_str().unwrap().to_owned();
    let file = author.file("pushed.wasm", &component("0.1.0", r#""src/""#));
    for name in ["one", "two"] {
        author.plugin(&["keygen", &key(name)]).ends(0);
        author.plugin(&["sign", &file, "--key", &key(name)]).ends(0);
        author.plugin(&["push", &file, &registry.named("acme/todo")]).ends(0).says("with its signatures");
    }
    let projects = ["one", "two"].map(|name| {
        let bench = Workbench::with_pipeline(super::PIPELINE);
        let path = key(&format!("{name}.pub"));
        let trust = format!("[[trust.key]]\nname = \"{name}\"\npath = \"{path}\"\nplugins = [\"acme.*\"]\n");
        bench.write("glovebox.toml", &trust);
        bench
    });
    let run = |bench: &Workbench, words: &[&str]| {
        Answer::of(bench.command(words).env("GLOVEBOX_DATA_DIR", author.bench.data_dir()))
    };
    for bench in &projects {
        run(bench, &["plugin", "add", &registry.named("acme/todo"), "--accept"]).ends(0);
    }
    assert_eq!(stored(&author, ".sig.json").len(), 2);
    for bench in &projects {
        run(bench, &["run", "--locked", "pipeline.dot"]).ends(0);
        run(bench, &["plugin", "ls"]).ends(0).says("locked");
    }
    // A project that trusts both keeps the signer of its lock file, whichever file is read first.
    for (bench, other) in [(&projects[0], "two"), (&projects[1], "one")] {
        let path = key(&format!("{other}.pub"));
        let table = format!("[[trust.key]]\nname = \"{other}\"\npath = \"{path}\"\nplugins = [\"acme.*\"]\n");
        bench.write("glovebox.toml", &format!("{table}{}", bench.read("glovebox.toml")));
        run(bench, &["run", "--locked", "pipeline.dot"]).ends(0);
    }
    // A damaged file does not hide an intact one, and no intact file is no signature.
    let files = stored(&author, ".sig.json");
    std::fs::write(&files[0], "damaged").unwrap();
    let codes: Vec<i32> = projects.iter().map(|bench| run(bench, &["run", "pipeline.dot"]).code).collect();
    assert!(codes.contains(&0) && codes.contains(&7), "{codes:?}");
    std::fs::write(&files[1], "damaged").unwrap();
    for bench in &projects {
        run(bench, &["run", "pipeline.dot"]).ends(7).says("is damaged");
    }
}

/// Returns a project of an author whose build copies a component, in a repository with one commit.
fn author() -> Project {
    let author = Project::new();
    let plugin = "name = \"acme.todo\"\nversion = \"0.1.0\"\nlang = \"c\"\nworld = \"handler\"\n\n\
                  [build]\ncommand = [\"cp\", \"made.wasm\", \"build/out.wasm\"]\noutput = \"build/out.wasm\"\n";
    author.bench.write("todo/plugin.toml", plugin);
    let made = crate::guests::component("(func $execute)");
    std::fs::write(author.bench.project().join("todo/made.wasm"), made).unwrap();
    author.bench.write("todo/.gitignore", "/build/\n/dist/\n");
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "x"]] {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "commit.gpgSign=false"]).args(words);
        Answer::of(git.current_dir(author.bench.project().join("todo")).env("GIT_CONFIG_GLOBAL", "/dev/null")).ends(0);
    }
    author
}

const BUILT: &str = "todo/dist/acme.todo-0.1.0.wasm";

#[test]
fn provenance_comes_with_a_component_of_a_registry() {
    let registry = Registry::start();
    let author = author();
    author.plugin(&["build", "todo"]).ends(0).says("source    commit ");
    let key = author.bench.outside().join("key").to_str().unwrap().to_owned();
    author.plugin(&["keygen", &key]).ends(0);
    let push = || author.plugin(&["push", BUILT, &registry.named("acme/todo")]);
    push().ends(0).says("with its provenance");
    let user = Project::new();
    user.plugin(&["add", &registry.named("acme/todo"), "--accept"]).ends(0);
    assert_eq!(stored(&user, ".provenance.json").len(), 1);
    let inspect = |project: &Project| project.plugin(&["inspect", "acme.todo"]);
    registry.take_requests();
    inspect(&user).ends(0).says("built     from commit ").says("the provenance is not signed");
    inspect(&user).says("signed    not checked, since no key is trusted here\n");
    assert!(registry.take_requests().is_empty(), "inspect uses no network");
    user.plugin(&["rebuild", "acme.todo"])
        .ends(4)
        .says("names no repository with `https` or `ssh`")
        .says("--source DIR");
    let source = author.bench.project().join("todo").to_str().unwrap().to_owned();
    user.plugin(&["rebuild", "acme.todo", "--source", &source, "--accept"]).ends(0).says("same: ");
    // Signed later: another project gets the signed one, and sees by whom it was signed.
    author.plugin(&["sign", BUILT, "--key", &key]).ends(0).says("signed its provenance");
    push().ends(0).says("was published already, with its signatures, with its provenance");
    let other = Project::new();
    let trust = format!("[[trust.key]]\nname = \"acme\"\npath = \"{key}.pub\"\nplugins = [\"acme.*\"]\n");
    other.bench.write("glovebox.toml", &trust);
    other.plugin(&["add", &registry.named("acme/todo"), "--accept"]).ends(0);
    inspect(&other).ends(0).says("the provenance is signed by acme (sha256:");
    std::fs::remove_dir_all(other.store()).unwrap();
    other.plugin(&["pull"]).ends(0);
    inspect(&other).ends(0).says("the provenance is signed by acme (sha256:");
    // A file is copied with its provenance.
    let third = Project::new();
    let file = author.bench.project().join(BUILT).to_str().unwrap().to_owned();
    third.plugin(&["add", &file, "--accept"]).ends(0);
    assert!(third.bench.has("plugins/acme.todo.wasm.provenance.json"));
    inspect(&third)
        .ends(0)
        .says("built     from commit ")
        .says("not checked, since no key is trusted here; it names sha256:");
}

#[test]
fn provenance_of_another_component_is_neither_published_nor_kept() {
    let registry = Registry::start();
    let author = author();
    author.plugin(&["build", "todo"]).ends(0);
    let file = author.bench.project().join(format!("{BUILT}.provenance.json"));
    let text = std::fs::read_to_string(&file).unwrap();
    let push = || author.plugin(&["push", BUILT, &registry.named("acme/todo")]);
    for wrong in
        [text.replace("\"blake3\":\"", "\"blake3\":\"0"), "x".to_owned(), text.replace("acme.todo", "acme.other")]
    {
        std::fs::write(&file, wrong).unwrap();
        push().ends(7).says("is not that of this component").says("glovebox plugin build");
    }
    let path = author.bench.project().join(BUILT).to_str().unwrap().to_owned();
    let user = Project::new();
    user.plugin(&["add", &path, "--accept"]).ends(0).says("the provenance of").says("is left out");
    assert!(!user.bench.has("plugins/acme.todo.wasm.provenance.json"));
    std::fs::remove_file(&file).unwrap();
    push().ends(0).says("without provenance");
    user.plugin(&["inspect", "acme.todo"]).ends(0).says("built     no provenance");
    user.plugin(&["inspect", "acme.nothing"]).ends(2).says("is no file, and no plugin of a project here");
}

/// `add` writes everything or nothing.
#[test]
fn a_configuration_that_is_a_link_leaves_nothing_half() {
    let project = Project::new();
    let file = project.file("new.wasm", &component("0.1.0", r#""src/""#));
    project.bench.write("real.toml", "[limits]\ncomponent_bytes = 1000000\n");
    std::os::unix::fs::symlink("real.toml", project.bench.project().join("glovebox.toml")).unwrap();
    let before = project.bench.snapshot();
    project.plugin(&["add", &file, "--accept"]).ends(2).says("is a link: nothing was written");
    assert_eq!(project.bench.snapshot(), before);
    assert!(!project.bench.has("plugins") && !project.bench.has("glovebox.lock"));
    // A lock file that cannot be replaced is found before anything is written, too.
    std::fs::remove_file(project.bench.project().join("glovebox.toml")).unwrap();
    let registry = Registry::start();
    project.push(&registry, &component("0.1.0", r#""src/""#)).ends(0);
    project.plugin(&["add", &registry.named("acme/todo"), "--accept"]).ends(0);
    std::fs::rename(project.bench.project().join("glovebox.toml"), project.bench.project().join("moved.toml")).unwrap();
    std::os::unix::fs::symlink("moved.toml", project.bench.project().join("glovebox.toml")).unwrap();
    let before = project.bench.snapshot();
    project.push(&registry, &component("0.2.0", r#""src/""#)).ends(0);
    project.plugin(&["update", "acme.todo", "--accept"]).ends(2).says("is a link: nothing was written");
    project.plugin(&["remove", "acme.todo"]).ends(2).says("is a link: nothing was written");
    assert_eq!(project.bench.snapshot(), before);
}
