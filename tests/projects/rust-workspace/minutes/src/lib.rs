//! Minutes of a duration. Only this member of the workspace has a test.

/// Returns the whole minutes.
pub fn whole(seconds: u32) -> String {
    format!("{}m ", seconds / 60)
}

/// Returns the seconds that are no whole minute.
pub fn rest(seconds: u32) -> u32 {
    seconds % 60
}

#[cfg(test)]
mod tests {
    #[test]
    fn minutes_come_first() {
        assert_eq!((super::whole(65).as_str(), super::rest(65)), ("1m ", 5));
    }
}
