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
    use super::nearest;

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
