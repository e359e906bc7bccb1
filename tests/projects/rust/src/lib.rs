//! Durations for people.

/// Returns a duration in minutes and seconds.
pub fn duration(seconds: u32) -> String {
    let mut digits = itoa::Buffer::new();
    let minutes = digits.format(seconds / 60).to_owned();
    format!("{minutes}m {}s", digits.format(seconds % 60))
}

#[cfg(test)]
mod tests {
    #[test]
    fn minutes_come_first() {
        assert_eq!(super::duration(65), "1m 5s");
    }
}
