//! A behaviour: a shell script with a header that says who relies on it.
//!
//! The header is the lines `# name: value` at the beginning. Lines `# stage` split the script into parts, each of which
//! runs as a separate stage.

/// Name of the project of a behaviour that names none.
const DEFAULT_PROJECT: &str = "plain";
/// The line between two parts.
const STAGE: &str = "# stage";

/// A small program that must succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// `group/name`.
    pub id: String,
    /// Who relies on it.
    pub why: String,
    /// Where that is written: a URL.
    pub source: String,
    /// Programs that must be on the machine. `python3:venv` also demands a module.
    pub needs: Vec<String>,
    /// The project in which it runs.
    pub project: String,
    /// Lines of glovebox.toml with which it succeeds, if it fails without them.
    pub settings: Vec<String>,
    /// A command that runs outside of the sandbox in the project, when the changes have been applied.
    pub after: Option<String>,
    /// The program, split into stages.
    pub parts: Vec<String>,
}

impl Behaviour {
    /// Parses a file of `behaviours/`.
    ///
    /// # Errors
    ///
    /// Returns the problem if the header is incomplete or has an unknown line, or if a part is empty.
    pub fn parse(id: &str, text: &str) -> Result<Self, String> {
        let mut behaviour = Self {
            id: id.to_owned(),
            why: String::new(),
            source: String::new(),
            needs: Vec::new(),
            project: DEFAULT_PROJECT.to_owned(),
            settings: Vec::new(),
            after: None,
            parts: Vec::new(),
        };
        let mut rest = text;
        while let Some((line, following)) = rest.split_once('\n') {
            let Some((name, value)) = line.strip_prefix("# ").and_then(|line| line.split_once(": ")) else { break };
            behaviour.set(name, value)?;
            rest = following;
        }
        behaviour.parts = parts(rest);
        behaviour.check().map(|()| behaviour)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let value = value.to_owned();
        match name {
            "why" => self.why = value,
            "source" => self.source = value,
            "needs" => self.needs = value.split(' ').map(str::to_owned).collect(),
            "project" => self.project = value,
            "setting" => self.settings.push(value),
            "after" => self.after = Some(value),
            _ => return Err(format!("`{}`: unknown line `# {name}:` in the header", self.id)),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let lacks = |what: &str| Err(format!("`{}`: the header has no `# {what}:`", self.id));
        if self.why.is_empty() {
            return lacks("why");
        }
        if !self.source.starts_with("https://") && !self.source.starts_with("http://") {
            return lacks("source");
        }
        if self.parts.iter().any(|part| part.trim().is_empty()) {
            return Err(format!("`{}`: a part of the program is empty", self.id));
        }
        Ok(())
    }

    /// Returns the group: the part of the id before the slash.
    pub fn group(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }
}

fn parts(program: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in program.lines() {
        match parts.last_mut() {
            Some(part) if line != STAGE => {
                part.push_str(line);
                part.push('\n');
            }
            _ => parts.push(String::new()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_header_and_parts() {
        let text =
            "# why: w\n# source: https://s\n# needs: git cc\n# setting: a = 1\n# after: true\none\n# stage\ntwo\n";
        let behaviour = Behaviour::parse("g/n", text).unwrap();
        assert_eq!(behaviour.parts, ["one\n", "two\n"]);
        assert_eq!((behaviour.group(), behaviour.project.as_str()), ("g", "plain"));
        assert_eq!((behaviour.needs.len(), behaviour.settings.len()), (2, 1));
        assert_eq!(behaviour.after.as_deref(), Some("true"));
    }

    #[test]
    fn refuses_a_header_without_reason_or_source() {
        for (text, says) in [
            ("# source: https://s\ntrue\n", "why"),
            ("# why: w\n# source: a book\ntrue\n", "source"),
            ("# why: w\n# source: https://s\n# author: x\ntrue\n", "author"),
            ("# why: w\n# source: https://s\ntrue\n# stage\n", "empty"),
        ] {
            let error = Behaviour::parse("g/n", text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
