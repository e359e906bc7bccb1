//! "Did you mean": the nearest known word to one that is not known.
//!
//! Edit distance with swapped neighbours as one step, letters compared without case. Words further away than a third of their
//! letters are not offered: a bad suggestion is worse than none.
//!
//! Comparing two words takes the product of their lengths, and a stranger's file chooses words and candidates. So long words get
//! no suggestion, and one search compares at most so many pairs of letters.

/// The longest word and the longest candidate that are compared, letters.
const LETTERS_MAX: usize = 100;

/// Pairs of letters that one search compares at most: ten thousand names of twenty letters.
const PAIRS_MAX: usize = 4 << 20;

/// What a search may still do.
struct Budget(usize);

impl Budget {
    /// Takes the cost of comparing two words; false when it is more than is left.
    fn pay(&mut self, left: &[char], right: &[char]) -> bool {
        let cost = left.len().max(1) * right.len().max(1);
        self.0.checked_sub(cost).map(|left| self.0 = left).is_some()
    }
}

/// The letters of a word without case; none for one that is too long. Reads no more of it than that takes.
fn letters(word: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).take(LETTERS_MAX + 1).collect();
    (letters.len() <= LETTERS_MAX).then_some(letters)
}

/// The nearest candidate, the first of several; none when all are too far or the word is too long to be compared.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    search(word, candidates, &mut Budget(PAIRS_MAX))
}

fn search<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, budget: &mut Budget) -> Option<&'a str> {
    let word = letters(word)?;
    let bound = (word.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(letters) = letters(candidate) else { continue };
        if letters.len().abs_diff(word.len()) > bound {
            continue;
        }
        if !budget.pay(&word, &letters) {
            break;
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
/// None when there are too many candidates to be certain.
pub fn certain<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    only(word, candidates, &mut Budget(PAIRS_MAX))
}

fn only<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, budget: &mut Budget) -> Option<&'a str> {
    const LETTERS_MIN: usize = 4;
    let written = letters(word).filter(|letters| letters.len() >= LETTERS_MIN)?;
    let mut found = None;
    for candidate in candidates {
        let Some(other) = letters(candidate) else { continue };
        if other.len().abs_diff(written.len()) > 1 {
            continue;
        }
        if !budget.pay(&written, &other) {
            return None;
        }
        if distance(&written, &other) <= 1 && found.replace(candidate).is_some() {
            return None;
        }
    }
    found.filter(|found| marks(word) == marks(found))
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
    use super::{Budget, LETTERS_MAX, PAIRS_MAX, certain, nearest, only, search};

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

    /// Pairs of letters that both searches compared.
    fn pairs(word: &str, candidates: &[&str]) -> usize {
        let (mut near, mut sure) = (Budget(PAIRS_MAX), Budget(PAIRS_MAX));
        search(word, candidates.iter().copied(), &mut near);
        only(word, candidates.iter().copied(), &mut sure);
        2 * PAIRS_MAX - near.0 - sure.0
    }

    #[test]
    fn a_long_word_is_not_compared() {
        let (word, declared) = ("a".repeat(80_000), "a".repeat(79_999));
        assert_eq!(pairs(&word, &[&declared]), 0);
        assert_eq!(pairs("implement", &[&declared]), 0, "nor a long candidate");
        let longest = "a".repeat(LETTERS_MAX);
        assert_eq!(pairs(&longest, &[&longest[1..]]), 2 * LETTERS_MAX * (LETTERS_MAX - 1));
        assert_eq!(nearest(&longest, [&longest[1..]]), Some(&longest[1..]));
    }

    #[test]
    fn many_candidates_are_compared_up_to_a_bound() {
        let names: Vec<String> = (0..100_000).map(|number| format!("{number:0>90}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let compared = pairs(&"b".repeat(90), &names);
        assert!((PAIRS_MAX..=2 * PAIRS_MAX).contains(&compared), "{compared} of {}", names.len() * 90 * 90 * 2);
    }
}
