//! What people see: colour or not, width, and text that came from somewhere else made safe to print.
//!
//! Results go to stdout and prose to stderr; nothing here decides anything about a run.

pub mod diagnostics;
pub mod visible;

use std::io::IsTerminal;

/// A stream that people may be reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Results.
    Stdout,
    /// Prose and progress.
    Stderr,
}

impl Stream {
    /// True when somebody looks at it and it can move its cursor: a terminal whose `TERM` is not `dumb`.
    pub fn is_live(self) -> bool {
        self.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// True when it may carry colours: `NO_COLOR` says never, `CLICOLOR_FORCE` always, else a live terminal does.
    pub fn is_coloured(self) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if set("NO_COLOR") {
            return false;
        }
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        forced || self.is_live()
    }

    fn is_terminal(self) -> bool {
        match self {
            Stream::Stdout => std::io::stdout().is_terminal(),
            Stream::Stderr => std::io::stderr().is_terminal(),
        }
    }
}

/// Milliseconds as people say them: `85ms`, `3.2s`, `4m05s`, `2h03m`.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..60 => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_read_well() {
        for (milliseconds, text) in
            [(0, "0ms"), (999, "999ms"), (3_250, "3.2s"), (59_999, "59.9s"), (245_000, "4m05s"), (7_380_000, "2h03m")]
        {
            assert_eq!(duration(milliseconds), text);
        }
    }
}
