//! The targets of a makefile, as far as needed to find out whether one of them tests the project.

use std::collections::BTreeMap;

/// Words in the name of a prerequisite that runs tests.
const TEST_WORDS: [&str; 3] = ["test", "check", "spec"];
/// Commands that only print or do nothing.
const IDLE: [&str; 5] = ["echo", "printf", "true", ":", "exit"];
/// Maximum depth of prerequisites that are followed.
const DEPTH_MAX: usize = 4;

/// The rules of a makefile, by target.
#[derive(Debug, Default)]
pub(super) struct Makefile<'t>(BTreeMap<&'t str, Rule<'t>>);

/// The prerequisites and the recipe of a target.
#[derive(Debug, Default)]
struct Rule<'t> {
    needs: Vec<&'t str>,
    recipe: Vec<&'t str>,
}

impl<'t> Makefile<'t> {
    /// Reads the rules of a makefile. Included files, variables and patterns are not expanded.
    pub(super) fn parse(text: &'t str) -> Self {
        let mut rules: BTreeMap<&str, Rule<'_>> = BTreeMap::new();
        let mut open: Vec<&str> = Vec::new();
        for line in text.lines() {
            if let Some(command) = line.strip_prefix('\t') {
                open.iter().for_each(|target| rules.entry(target).or_default().recipe.push(command));
                continue;
            }
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            open.clear();
            let Some((targets, rest)) = line.split_once(':') else { continue };
            let rest = rest.strip_prefix(':').unwrap_or(rest);
            if line.starts_with(' ') || targets.contains('=') || rest.starts_with('=') {
                continue;
            }
            let (needs, inline) = rest.split_once(';').map_or((rest, None), |(needs, inline)| (needs, Some(inline)));
            let needs = needs.split('#').next().unwrap_or_default();
            for target in targets.split_whitespace() {
                let rule = rules.entry(target).or_default();
                rule.needs.extend(needs.split_whitespace().filter(|need| !matches!(*need, "\\" | "|")));
                rule.recipe.extend(inline);
                open.push(target);
            }
        }
        Self(rules)
    }

    /// Returns true if a target exists and does more than build and print: its own recipe, or a prerequisite that is named
    /// like a test.
    pub(super) fn tests(&self, target: &str) -> bool {
        self.0.contains_key(target) && self.is_real(target, DEPTH_MAX)
    }

    fn is_real(&self, target: &str, depth: usize) -> bool {
        let Some(rule) = self.0.get(target) else { return true };
        let is_test = |need: &&&str| TEST_WORDS.iter().any(|word| need.contains(word)) && **need != target;
        let follows = |need: &&str| depth > 0 && self.is_real(need, depth - 1);
        rule.recipe.iter().any(|command| does_something(command)) || rule.needs.iter().filter(is_test).any(follows)
    }
}

/// Returns true for a line of a recipe that does more than print.
fn does_something(command: &str) -> bool {
    let command = command.trim_start_matches(['@', '-', '+', ' ', '\t']);
    let chained = ["&&", "||", ";", "|"].iter().any(|operator| command.contains(operator));
    let first = command.split_whitespace().next().unwrap_or_default();
    !first.is_empty() && !first.starts_with('#') && (chained || !IDLE.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::Makefile;

    #[test]
    fn a_target_that_only_prints_or_builds_tests_nothing() {
        let check = |text: &str, expected: bool| assert_eq!(Makefile::parse(text).tests("test"), expected, "{text}");
        check("test:\n\t./t\n", true);
        check("all test: lib\n\t@./t\n", true);
        check("test: ; ./t\n", true);
        check("test:: all\n\n\t-./t # runs\n", true);
        check("test: test_a test_b\n\ntest_a:\n\t./a\n", true);
        check("test: %.check\n", true);
        check("CC = cc\ntest: all\n", false);
        check("test:\n\t@echo no tests\n", false);
        check("test:\n\t@echo running && ./t\n", true);
        check(".PHONY: test\n", false);
        check("test := x\n", false);
        check("tests:\n\t./t\n", false);
        check("test: check\ncheck: test\n", false);
        check("test: check\ncheck:\n\t# nothing\n", false);
    }
}
