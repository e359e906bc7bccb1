//! Fails while a file in a folder contains a `TODO`, and reports the place.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, files, log};

struct Plugin;

impl Handler for Plugin {
    fn execute(stage: Stage) -> Outcome {
        // `plugin.toml` declares this attribute with a default, so the host always sets it.
        let folder = stage.attribute("folder").unwrap_or("src");
        let mut found = Vec::new();
        if let Err(error) = search(folder.trim_end_matches('/'), &mut found) {
            return Outcome::fail("todo/read", format!("cannot read `{folder}`: {}", error.message));
        }
        log::info("searched", &[("node", stage.node_id()), ("found", &found.len().to_string())]);
        if let Some(report) = stage.attribute("output")
            && let Err(error) = files::write(report, found.join("\n") + "\n")
        {
            return Outcome::fail("todo/report", format!("cannot write `{report}`: {}", error.message));
        }
        match found.first() {
            None => Outcome::success().notes("no TODO is left"),
            Some(first) => Outcome::fail("todo/found", first),
        }
    }
}

/// Collects the places of all `TODO`s in a folder and the folders in it.
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

export!(Plugin);

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
