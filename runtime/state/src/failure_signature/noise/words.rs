//! The words around a number that decide whether the number is noise.

/// Units of time, size and speed, ordinals, and the ends of times of day. They may follow a number without a space.
pub(super) fn is_unit(word: &str) -> bool {
    matches!(word, "d" | "w" | "k" | "g" | "t" | "z" | "st" | "nd" | "rd" | "th" | "it") || is_spaced_unit(word)
}

/// Units that may follow a number and a space, and names of time zones.
pub(super) fn is_spaced_unit(word: &str) -> bool {
    const TIME: [&str; 29] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "m",
        "min",
        "mins",
        "minute",
        "minutes",
        "h",
        "hr",
        "hrs",
        "hour",
        "hours",
        "day",
        "days",
        "week",
        "weeks",
        "msec",
        "msecs",
        "usec",
        "nanoseconds",
        "milliseconds",
    ];
    const SIZE: [&str; 22] = [
        "b", "kb", "mb", "gb", "tb", "pb", "kib", "mib", "gib", "tib", "pib", "byte", "bytes", "bit", "bits", "kbit",
        "mbit", "gbit", "bps", "kbps", "mbps", "gbps",
    ];
    const ZONE: [&str; 16] = [
        "am", "pm", "utc", "gmt", "cet", "cest", "bst", "eet", "eest", "est", "edt", "cst", "cdt", "pst", "pdt", "jst",
    ];
    let more =
        matches!(word, "nanosecond" | "microsecond" | "microseconds" | "millisecond" | "kilobytes" | "megabytes");
    more || TIME.contains(&word) || SIZE.contains(&word) || ZONE.contains(&word)
}

/// Names of months and of days of the week, and their short forms.
pub(super) fn is_of_calendar(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let is_short = |name: &str| name.len() > word.len() && name.starts_with(word);
    let names = || MONTHS.iter().chain(&DAYS);
    match word.len() {
        3 => names().any(|name| *name == word || is_short(name)),
        4 | 5 if matches!(word, "sept" | "tues" | "thur" | "thurs") => true,
        4..=9 => names().any(|name| *name == word),
        _ => false,
    }
}

/// Names whose numbers differ between repetitions, also without a space: `pid17`, `worker-3`.
pub(super) fn is_counted(word: &str) -> bool {
    const NAMES: [&str; 21] = [
        "pid", "ppid", "tid", "port", "gw", "worker", "thread", "proc", "process", "fork", "fd", "line", "ln",
        "lineno", "col", "column", "attempt", "retry", "conn", "session", "pytest",
    ];
    NAMES.contains(&word)
}

/// True if a number after this word says what failed, so that it is not noise: `exit code 2`, `HTTP 404`.
pub(super) fn names_a_code(word: &str) -> bool {
    const ENDINGS: [&str; 6] = ["exit", "code", "status", "signal", "errno", "http"];
    ENDINGS.iter().any(|ending| word.ends_with(ending)) || word == "rc" || word.ends_with("_rc")
}

/// Words that may stand between the name of a code and its number.
pub(super) fn is_filler(word: &str) -> bool {
    matches!(word, "of" | "was" | "is" | "with" | "got" | "to")
}
