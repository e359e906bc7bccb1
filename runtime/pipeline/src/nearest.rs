//! Suggests the most similar known word for a word that is not known ("did you mean").
//!
//! The measure is the optimal string alignment distance without case: the edit distance in which swapping two adjacent
//! characters is one edit. A word that differs in more than a third of its characters is not suggested: a bad
//! suggestion is worse than none.
//!
//! The cost of comparing two words is the product of their lengths, and an untrusted file chooses both the words and the
//! candidates. So long words get no suggestion, and the cost of one search is bounded.

use strsim::osa_distance;

/// Maximum length of the words that are compared, in characters.
const CHARS_MAX: usize = 100;

/// Maximum number of pairs of characters that one search compares. It suffices for a name of twenty characters and ten
/// thousand candidates of this length.
const PAIRS_MAX: usize = 4 << 20;

/// The remaining budget of a search, in pairs of characters.
struct Budget(usize);

impl Budget {
    /// Subtracts the cost of comparing two words. Returns false if the remaining budget is too small.
    fn pay(&mut self, one: &FoldedWord, other: &FoldedWord) -> bool {
        let cost = one.chars.max(1) * other.chars.max(1);
        self.0.checked_sub(cost).map(|left| self.0 = left).is_some()
    }
}

/// A word in lower case.
struct FoldedWord {
    text: String,
    chars: usize,
}

impl FoldedWord {
    /// Folds a word. `None` if the word is too long; then only its beginning is read.
    fn new(word: &str) -> Option<FoldedWord> {
        let text: String = word.chars().flat_map(char::to_lowercase).take(CHARS_MAX + 1).collect();
        let chars = text.chars().count();
        (chars <= CHARS_MAX).then_some(FoldedWord { text, chars })
    }

    fn distance(&self, other: &FoldedWord) -> usize {
        osa_distance(&self.text, &other.text)
    }
}

/// Returns the most similar candidate, or the first of several. `None` if no candidate is similar enough, or if the
/// word is too long to be compared.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    search(&FoldedWord::new(word)?, candidates, &mut Budget(PAIRS_MAX))
}

fn search<'a>(
    word: &FoldedWord,
    candidates: impl IntoIterator<Item = &'a str>,
    budget: &mut Budget,
) -> Option<&'a str> {
    let bound = (word.chars / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(other) = FoldedWord::new(candidate).filter(|other| other.chars.abs_diff(word.chars) <= bound) else {
            continue;
        };
        if !budget.pay(word, &other) {
            break;
        }
        let distance = word.distance(&other);
        if distance <= bound && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the candidate that is certainly meant, for a fix without review. The candidate differs from the word by one
/// typing mistake or in case, and no other candidate is as similar. The marks of the two words, such as the `1` in
/// `step_1` or the `a` in `plan_a`, are equal. `None` if no candidate is certain, or if there are too many to compare.
pub fn certain<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const CHARS_MIN: usize = 4;
    let written = FoldedWord::new(word).filter(|word| word.chars >= CHARS_MIN)?;
    only(&written, candidates, &mut Budget(PAIRS_MAX)).filter(|found| marks(word) == marks(found))
}

/// Returns the only candidate that differs from the word by one typing mistake. `None` if there are several, or too
/// many to compare.
fn only<'a>(
    written: &FoldedWord,
    candidates: impl IntoIterator<Item = &'a str>,
    budget: &mut Budget,
) -> Option<&'a str> {
    let mut found = None;
    for candidate in candidates {
        let Some(other) = FoldedWord::new(candidate).filter(|other| other.chars.abs_diff(written.chars) <= 1) else {
            continue;
        };
        if !budget.pay(written, &other) {
            return None;
        }
        if written.distance(&other) <= 1 && found.replace(candidate).is_some() {
            return None;
        }
    }
    found
}

/// Returns the marks that distinguish the names of a series: digits, parts of one character, and a capital at the end.
fn marks(word: &str) -> String {
    let part = |part: &str| match part.chars().collect::<Vec<char>>()[..] {
        [single] => single.to_string(),
        _ => part.chars().filter(char::is_ascii_digit).collect(),
    };
    let parts: Vec<String> = word.split(['_', '.', '-']).map(part).filter(|mark| !mark.is_empty()).collect();
    let last: String = word.chars().last().filter(char::is_ascii_uppercase).into_iter().collect();
    parts.join("_") + &last
}

#[cfg(test)]
mod tests {
    use super::{Budget, CHARS_MAX, FoldedWord, PAIRS_MAX, certain, nearest, only, search};

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

    /// Returns the number of pairs of characters that both searches compared.
    fn pairs(word: &str, candidates: &[&str]) -> usize {
        let (mut near, mut sure) = (Budget(PAIRS_MAX), Budget(PAIRS_MAX));
        if let Some(word) = FoldedWord::new(word) {
            search(&word, candidates.iter().copied(), &mut near);
            only(&word, candidates.iter().copied(), &mut sure);
        }
        2 * PAIRS_MAX - near.0 - sure.0
    }

    #[test]
    fn a_long_word_is_not_compared() {
        let (word, declared) = ("a".repeat(80_000), "a".repeat(79_999));
        assert_eq!(pairs(&word, &[&declared]), 0);
        assert_eq!(pairs("implement", &[&declared]), 0, "nor a long candidate");
        let longest = "a".repeat(CHARS_MAX);
        assert_eq!(pairs(&longest, &[&longest[1..]]), 2 * CHARS_MAX * (CHARS_MAX - 1));
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
