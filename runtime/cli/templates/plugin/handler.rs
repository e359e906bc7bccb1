//! Fails while a file in `src/` contains a `TODO`, and reports the place.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, files, log};

struct Plugin;

impl Handler for Plugin {
    fn execute(stage: Stage) -> Outcome {
        let mut found = Vec::new();
        if let Err(error) = search("src", &mut found) {
            return Outcome::fail("todo/read", format!("cannot read `src/`: {}", error.message));
        }
        log::info("searched", &[("node", stage.node_id()), ("found", &found.len().to_string())]);
        match found.first() {
            None => Outcome::success().notes("no TODO is left"),
            Some(first) => Outcome::fail("todo/found", first).set("todo.count", found.len()),
        }
    }
}

fn search(folder: &str, found: &mut Vec<String>) -> Result<(), files::Error> {
    for node in files::list(folder)? {
        let path = format!("{folder}/{}", node.name);
        if node.kind == "directory" {
            search(&path, found)?;
            continue;
        }
        let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
        let lines = text.lines().zip(1..).filter(|(line, _)| line.contains("TODO"));
        found.extend(lines.map(|(_, number)| format!("{path}:{number} has a TODO")));
    }
    Ok(())
}

// The operator can read this manifest before the plugin runs. The plugin gets only what it wants and what the operator
// grants.
export!(
    Plugin,
    manifest = r#"{"name":"acme.example","version":"0.1.0","description":"Looks for TODO in src/.",
    "wants":{"filesystem":"workspace","read":["src/"]}}"#
);

#[cfg(test)]
mod tests {
    use super::Plugin;
    use glovebox_plugin_sdk::Status;
    use glovebox_plugin_sdk::testing::{Host, stage};

    #[test]
    fn a_todo_is_found_with_its_place() {
        let host = Host::new();
        host.write("src/deep/a.rs", "fn a() {}\n// TODO: write it\n");
        let outcome = host.execute::<Plugin>(stage("check"));
        assert_eq!(outcome.failure().map(|failure| failure.reason.as_str()), Some("src/deep/a.rs:2 has a TODO"));
        host.write("src/deep/a.rs", "fn a() {}\n");
        assert_eq!(host.execute::<Plugin>(stage("check")).status(), Status::Success);
    }
}
