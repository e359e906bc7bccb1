//! The `control` interface: log lines, events, cancellation, bounds, artifacts.
//!
//! Nothing here reaches outside of the attempt's record. Lines beyond a limit are counted and dropped, and the stage does not fail.

use crate::attempt::Attempt;
use crate::bindings::control::Host;
use crate::progress::{Artifact, LogLine, Progress};
use glovebox_record::{LimitName, Refusal};

/// File names that the runtime writes into a stage's folder.
const RESERVED: &[&str] = &[
    "status.json",
    "stdout.log",
    "stderr.log",
    "receipts.json",
    "log.ndjson",
    "conversation.json",
    "transcript.ndjson",
];

/// Minimum that each artifact counts against `artifact_bytes`, so that the number of empty artifacts is bounded too.
const ARTIFACT_BYTES_MIN: u64 = 4 << 10;

/// Maximum length of the text of one log line, event or media type, in bytes. The rest is cut off.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Maximum number of fields kept of one log line.
const FIELDS_MAX: usize = 32;

/// The state of `control`.
#[derive(Debug, Default)]
pub(crate) struct ControlState {
    /// Artifacts kept so far.
    pub(crate) artifacts: Vec<Artifact>,
    /// Bytes of these artifacts that count against `artifact_bytes`.
    pub(crate) artifact_bytes: u64,
    /// Kept log lines.
    pub(crate) log: Vec<LogLine>,
    /// Number of log lines and events, including dropped ones.
    pub(crate) log_lines: u64,
    /// Bytes of the kept log lines.
    log_bytes: u64,
}

impl Host for Attempt {
    fn log(&mut self, level: String, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        self.call.observer.called("control.log", |call| call.text(&level).text(&message).record(&fields));
        self.call
            .meter
            .record_bytes(message.len() + fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>());
        let level = match level.as_str() {
            "trace" | "debug" | "info" | "warn" | "error" => level,
            _ => "info".to_owned(),
        };
        let fields = fields.into_iter().take(FIELDS_MAX).map(|(name, value)| (cut(name), cut(value))).collect();
        let line = LogLine { level, message: cut(message), fields };
        if self.keeps_line(&line) {
            self.note(line);
        }
        Ok(())
    }

    fn emit(&mut self, kind: String, data: String) -> wasmtime::Result<()> {
        self.call.observer.called("control.emit", |call| call.text(&kind).text(&data));
        self.call.meter.record_bytes(kind.len() + data.len());
        self.control.log_lines += 1;
        if self.control.log_lines <= self.call.limits.log_lines && data.len() <= TEXT_BYTES_MAX {
            // Text that is not JSON is passed on as a JSON string.
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&data).is_ok();
            let data = if is_json { data } else { serde_json::Value::String(data).to_string() };
            self.call.report(Progress::Emitted(cut(kind), data));
        }
        Ok(())
    }

    fn canceled(&mut self) -> wasmtime::Result<bool> {
        self.call.observer.called("control.canceled", |call| call);
        Ok(self.call.is_canceled())
    }

    fn limits(&mut self) -> wasmtime::Result<Vec<(String, u64)>> {
        self.call.observer.called("control.limits", |call| call);
        let named = LimitName::ALL.iter().map(|name| (name.as_str().replace('_', "-"), self.call.limits.bound(*name)));
        Ok(named.collect())
    }

    fn put_artifact(
        &mut self,
        name: String,
        media_type: String,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<(), String>> {
        self.call.observer.called("control.put-artifact", |call| call.text(&name).text(&media_type).bytes(&data));
        self.call.meter.record_bytes(data.len());
        if let Err(problem) = check_name(&name) {
            let help = "an artifact name has 1 to 64 letters, digits, `.`, `_` or `-`";
            self.call.refuse(Refusal::new("store artifact", &name, &problem, help));
            return Ok(Err(problem));
        }
        let cost = |bytes: usize| (bytes as u64).max(ARTIFACT_BYTES_MIN);
        let replaced = self.control.artifacts.iter().position(|artifact| artifact.name == name);
        let freed = replaced.map_or(0, |at| cost(self.control.artifacts[at].data.len()));
        let total = self.control.artifact_bytes - freed + cost(data.len());
        if total > self.call.limits.artifact_bytes {
            let problem = format!("limit `artifact_bytes` ({}) reached", self.call.limits.artifact_bytes);
            let help = "raise `artifact_bytes` under `[limits]` in glovebox.toml";
            self.call.refuse(Refusal::new("store artifact", &name, &problem, help));
            return Ok(Err(problem));
        }
        self.control.artifact_bytes = total;
        let artifact = Artifact { name, media_type: cut(media_type), data };
        match replaced {
            Some(at) => self.control.artifacts[at] = artifact,
            None => self.control.artifacts.push(artifact),
        }
        Ok(Ok(()))
    }
}

impl Attempt {
    /// Adds a line of the host, or a line of the component that was counted before.
    pub(super) fn note(&mut self, line: LogLine) {
        self.call.report(Progress::Log(line.clone()));
        self.control.log.push(line);
    }

    /// Adds a line of another component for this stage, within the limits of the stage.
    pub(super) fn note_within(&mut self, line: LogLine) {
        if self.keeps_line(&line) {
            self.note(line);
        }
    }

    /// Counts a line and returns true if it is to be kept. The number of lines and the number of their bytes are both bounded.
    fn keeps_line(&mut self, line: &LogLine) -> bool {
        let bytes =
            line.message.len() + line.fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        self.control.log_lines += 1;
        let kept_bytes = self.control.log_bytes + bytes as u64;
        let keeps = self.control.log_lines <= self.call.limits.log_lines && kept_bytes <= self.call.limits.output_bytes;
        if keeps {
            self.control.log_bytes = kept_bytes;
        }
        keeps
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !(1..=64).contains(&name.len()) || !name.chars().all(allowed) {
        return Err("not an artifact name, expected 1 to 64 letters, digits, `.`, `_` or `-`".to_owned());
    }
    if name.starts_with('.') {
        return Err(format!("`{name}` begins with a dot, expected a letter, a digit, `_` or `-`"));
    }
    let lower = name.to_ascii_lowercase();
    let is_value = lower.starts_with("context-") && lower.ends_with(".json");
    if is_value || RESERVED.contains(&lower.as_str()) {
        return Err(format!("`{name}` is a file that Glovebox writes, expected another name"));
    }
    Ok(())
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_names_cannot_name_anything_else() {
        let check = |name: &str, good: bool| assert_eq!(check_name(name).is_ok(), good, "{name:?}");
        check("prompt.md", true);
        check("a-b_c.1", true);
        for bad in [
            "",
            ".",
            "..",
            ".hidden",
            "../x",
            "a/b",
            "a\\b",
            "a\0b",
            "a b",
            "é",
            "status.json",
            "STDOUT.log",
            "log.ndjson",
            "conversation.json",
            "transcript.ndjson",
        ] {
            check(bad, false);
        }
        check(&"n".repeat(64), true);
        check(&"n".repeat(65), false);
    }
}
