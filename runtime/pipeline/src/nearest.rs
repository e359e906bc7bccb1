//! "Did you mean": the nearest known word to one that is not known.
//!
//! Edit distance with swapped neighbours as one step, letters compared without case. Words further away than a third of their
//! letters are not offered: a bad suggestion is worse than none.

/// The nearest candidate, the first of several; none when all are too far.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let bound = (word.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(word.len()) > bound + 4 {
            continue;
        }
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        if letters.len().abs_diff(word.len()) > bound {
            continue;
        }
        let distance = distance(&word, &letters);
        if distance <= bound && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The candidate that was certainly meant, for an edit that nobody looks at: the words differ by one slip of the fingers or in
/// case, no other candidate is as near, and what tells `step_1` from `step_2` and `plan_a` from `plan_b` is the same in both.
pub fn certain<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LETTERS_MIN: usize = 4;
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    if letters.len() < LETTERS_MIN {
        return None;
    }
    let near = |candidate: &&str| {
        let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        other.len().abs_diff(letters.len()) <= 1 && distance(&letters, &other) <= 1
    };
    let mut near = candidates.into_iter().filter(near);
    let only = near.next()?;
    (near.next().is_none() && marks(word) == marks(only)).then_some(only)
}

/// What numbers or letters a name out of a row of like ones: digits, parts of one letter, a capital at the end.
fn marks(word: &str) -> String {
    let part = |part: &str| match part.chars().collect::<Vec<char>>()[..] {
        [letter] => letter.to_string(),
        _ => part.chars().filter(char::is_ascii_digit).collect(),
    };
    let parts: Vec<String> = word.split(['_', '.', '-']).map(part).filter(|mark| !mark.is_empty()).collect();
    let last: String = word.chars().last().filter(char::is_ascii_uppercase).into_iter().collect();
    parts.join("_") + &last
}

/// Edit distance (insert, delete, replace, swap neighbours).
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut least = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && left[row - 1] == *other && right[column - 1] == *letter {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{certain, nearest};

    #[test]
    fn only_a_slip_is_certain() {
        let check = |word: &str, expected: Option<&str>| {
            let names = ["implement", "review", "test1", "plan_a", "stepA", "build", "built", "fix"];
            assert_eq!(certain(word, names), expected, "{word}");
        };
        check("implment", Some("implement"));
        check("Reveiw", Some("review"));
        check("implmnt", None);
        check("fxi", None);
        check("test2", None);
        check("plan_b", None);
        check("paln_a", Some("plan_a"));
        check("stepB", None);
        check("buil", None);
        check("deploy", None);
    }

    #[test]
    fn offers_near_words_only() {
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, ["implement", "review", "fix", "exit"]), expected, "{word}");
        };
        check("implment", Some("implement"));
        check("Reveiw", Some("review"));
        check("fx", Some("fix"));
        check("exti", Some("exit"));
        check("deploy", None);
        check("", None);
    }
}
