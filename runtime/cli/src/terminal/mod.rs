//! Output for people: colours, and the escaping of untrusted text.
//!
//! Results are written to stdout, messages to stderr. Nothing here decides anything about a run.

pub mod agreement;
pub mod board;
pub mod branches_now;
pub mod colours;
pub mod command_output;
pub mod compiling;
pub mod conversation;
pub mod diagnostics;
pub mod failed_output;
pub mod failed_tests;
pub mod hints;
pub mod inspection;
mod keys;
pub mod lines;
pub mod machine;
pub mod missing;
pub mod order;
pub mod page;
pub mod pager;
pub mod paint;
pub mod plugin_test;
pub mod progress;
pub mod remedy;
pub mod routes;
pub mod rows;
pub mod sentences;
pub mod status_files;
pub mod summary;
pub mod visible;

use crate::exit::Stop;
use glovebox_pipeline::ir::NodeId;
use glovebox_state::evidence::configuration::NewConfiguration;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Number of columns if the output is not a terminal.
const COLUMNS_DEFAULT: usize = 100;

/// Number of lines of a terminal that does not report its size.
const ROWS_DEFAULT: usize = 24;

/// Minimum number of columns that are used, because narrower text is not readable.
const COLUMNS_MIN: usize = 40;

/// Writes a result to stdout. A closed pipe (`| head`) is not an error.
pub fn print(text: impl fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    let _reader_gone = write!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Writes exact bytes to stdout. A closed pipe is not an error.
pub fn print_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _reader_gone = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// Returns true if stdout is a terminal, which interprets control characters.
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Returns the number of columns of the terminal at stdout; 100 without a terminal.
pub fn columns() -> usize {
    columns_of(&std::io::stdout()).unwrap_or(COLUMNS_DEFAULT)
}

fn columns_of(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let found = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    found.filter(|columns| *columns > 0).map(|columns| columns.max(COLUMNS_MIN))
}

/// Returns the size and the colours of the terminal at stderr.
pub fn screen() -> board::Screen {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let rows = size.map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
    let columns = columns_of(&std::io::stderr()).unwrap_or(COLUMNS_DEFAULT);
    board::Screen { rows: rows.unwrap_or(ROWS_DEFAULT), columns, paint: paint::Paint::stderr() }
}

/// Returns how diagnostics are rendered on stderr.
pub fn message_look() -> diagnostics::Look {
    diagnostics::Look { coloured: paint::Paint::stderr().is_on(), columns: columns_of(&std::io::stderr()) }
}

/// Returns a JSON document as text.
pub fn json(document: &impl serde::Serialize) -> Result<String, Stop> {
    serde_json::to_string_pretty(document)
        .map(|text| visible::json(&text).into_owned())
        .map_err(|error| Stop::new(crate::exit::Exit::Internal, format!("write JSON: {error}")))
}

/// The message for an attempt that had to change files and changed none.
pub const NO_CHANGE: &str = "nothing, though `[verify.worker]` asks for a change";

/// The note for a visit that was undone, because a resume went back to before it.
pub const LEFT: &str = ", undone by `resume --from`";

/// Writes a JSON document to stdout.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Stop> {
    print(json(document)?);
    print("\n");
    Ok(())
}

/// Returns a JSON document as one line.
pub fn json_line(document: &impl serde::Serialize) -> Result<String, Stop> {
    serde_json::to_string(document)
        .map(|text| visible::json(&text).into_owned())
        .map_err(|error| Stop::new(crate::exit::Exit::Internal, format!("write JSON: {error}")))
}

/// Writes a JSON document to stdout in one line.
pub fn print_json_line(document: &impl serde::Serialize) -> Result<(), Stop> {
    print(format_args!("{}\n", json_line(document)?));
    Ok(())
}

/// While a value of this type lives, [`say`] writes nothing.
pub struct Silence(());

static SILENT: AtomicBool = AtomicBool::new(false);

impl Silence {
    /// Begins the silence.
    pub fn begin() -> Self {
        SILENT.store(true, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        SILENT.store(false, Ordering::Relaxed);
    }
}

/// Writes a message to stderr.
pub fn say(text: impl fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        note(text);
    }
}

/// Writes a message to stderr, also during a [`Silence`].
pub fn note(text: impl fmt::Display) {
    // A message is written in one call, because other threads write to stderr too.
    let text = text.to_string();
    let mut stderr = std::io::stderr().lock();
    let _reader_gone = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Prints which new files a person should review first.
pub fn say_new_configuration(new: &[NewConfiguration]) {
    lines::new_configuration(new).iter().for_each(|line| say(format_args!("new configuration: {line}\n")));
}

/// Prints why a command stopped, and what to do.
pub fn report_stop(stop: &Stop) {
    say(&*stop.details);
    if !stop.message.is_empty() {
        say(format_args!("error: {}\n", visible::block(&stop.message)));
    }
    if let Some(help) = &stop.help {
        say(format_args!("help: {}\n", visible::block(help)));
    }
}

/// Starts the log on stderr, with warnings, or with the level in `GLOVEBOX_LOG`, such as `debug`.
pub fn start_log() {
    let level = std::env::var("GLOVEBOX_LOG").unwrap_or_default();
    let filter = EnvFilter::try_new(&level).ok().filter(|_| !level.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|| EnvFilter::new("warn")))
        .with_writer(|| Stderr)
        .with_ansi(false)
        .event_format(LogLine)
        .init();
}

/// Formats log lines as other messages on stderr: the level in lower case, a colon, the message and its fields.
struct LogLine;

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        // Names and reasons in fields may come from other machines.
        let mut fields = String::new();
        context.field_format().format_fields(Writer::new(&mut fields), event)?;
        writeln!(line, "{level}: {}", visible::line(&fields))
    }
}

/// Writes log lines to stderr. A closed stderr does not stop a run. While a live view is drawn, lines are written above
/// it.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !progress::write_above(&String::from_utf8_lossy(bytes)) {
            let _reader_gone = std::io::stderr().write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reports a panic in one line, with the address of the issue tracker. The process then ends with exit code 70.
pub fn report_bug(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let text = panic.payload_as_str().unwrap_or("no message");
    let version = env!("CARGO_PKG_VERSION");
    let tracker = match env!("CARGO_PKG_REPOSITORY") {
        "" => "the project's issue tracker",
        repository => repository,
    };
    let what = visible::summary(text, 200);
    say(format_args!("error: glovebox {version} hit a bug at {place}: {what}; please report this line to {tracker}\n"));
}

/// Returns true if stderr is a terminal that can move its cursor: `TERM` is not `dumb`.
pub fn is_live() -> bool {
    is_capable(&std::io::stderr())
}

/// Returns true if a stream is a terminal, and `TERM` is not `dumb`.
pub fn is_capable(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns true if a person can read a question on stderr and answer it on stdin.
pub fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Formats milliseconds for people: `85ms`, `3.2s`, `4m05s`, `2h03m`.
pub fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..60 => format!("{seconds}.{}s", milliseconds % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats bytes in the largest unit that divides them, as limits are written: `10GiB`, `64MiB`, `1500B`.
pub fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}

/// Returns the names of nodes for a sentence, each in backticks.
pub fn named<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> String {
    nodes.into_iter().map(|id| format!("`{}`", visible::line(id.as_str()))).collect::<Vec<_>>().join(", ")
}

/// Formats bytes for people, in a unit that leaves up to three digits before the point: `512 B`, `1.5 KiB`, `750 MiB`.
pub fn about(bytes: u64) -> String {
    let mut shift = 0;
    for (unit, next) in [("B", 10), ("KiB", 20), ("MiB", 30), ("GiB", 40), ("TiB", 64)] {
        if next == 64 || bytes < 1000 << (next - 10) {
            let (whole, tenth) = (bytes >> shift, ((bytes >> (shift.max(10) - 10)) % 1024) * 10 / 1024);
            let point = if shift > 0 && whole < 100 { format!(".{tenth}") } else { String::new() };
            return format!("{whole}{point} {unit}");
        }
        shift = next;
    }
    format!("{bytes} B")
}

/// Formats how long ago a time was: `now`, `12s ago`, `5m ago`, `3h ago`, `2d ago`, and the date after 30 days.
pub fn ago(at: jiff::Timestamp, now: jiff::Timestamp) -> String {
    match now.duration_since(at).as_secs() {
        ..5 => "now".to_owned(),
        seconds @ 5..60 => format!("{seconds}s ago"),
        seconds @ 60..3600 => format!("{}m ago", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h ago", seconds / 3600),
        seconds @ 86_400..2_592_000 => format!("{}d ago", seconds / 86_400),
        _ => at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d").to_string(),
    }
}

/// Formats a time that may be days away: date and time of day, in the local time zone.
pub fn moment(at: jiff::Timestamp) -> String {
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the generation for the end of a phrase, such as ` generation 1`; empty for generation 0.
pub fn of_generation(generation: u32) -> String {
    if generation == 0 { String::new() } else { format!(" generation {generation}") }
}

/// Returns a number with its noun: `1 visit`, `2 visits`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::{about, ago, duration, size};

    #[test]
    fn sizes_read_as_they_are_written() {
        for (bytes, text) in
            [(0, "0B"), (1500, "1500B"), (64 << 20, "64MiB"), (10 << 30, "10GiB"), (1536 << 20, "1536MiB")]
        {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn sizes_are_short_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.9 KiB"),
            (1536, "1.5 KiB"),
            (750 << 20, "750 MiB"),
            (3 << 29, "1.5 GiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(about(bytes), text);
        }
    }

    #[test]
    fn the_past_reads_well() {
        let now: jiff::Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (at, text) in [
            ("2026-03-01T12:00:09Z", "now"),
            ("2026-03-01T11:59:48Z", "12s ago"),
            ("2026-03-01T11:00:01Z", "59m ago"),
            ("2026-02-28T12:00:01Z", "23h ago"),
            ("2026-02-27T11:00:00Z", "2d ago"),
            ("2025-12-24T12:00:00Z", "2025-12-24"),
        ] {
            assert_eq!(ago(at.parse().unwrap(), now), text);
        }
    }

    #[test]
    fn durations_read_well() {
        for (milliseconds, text) in
            [(0, "0ms"), (999, "999ms"), (3_250, "3.2s"), (59_999, "59.9s"), (245_000, "4m05s"), (7_380_000, "2h03m")]
        {
            assert_eq!(duration(milliseconds), text);
        }
    }
}
