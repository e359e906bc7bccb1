//! The table of rules, by topic. A rule is added only in one of these files.
//!
//! The examples of a rule are files in `runtime/pipeline/rules/`: `<id>.bad.dot` and `<id>.good.dot`, or `.sh` for a rule about
//! scripts.

mod attributes;
mod guardrails;
mod holdout_rules;
mod parallel;
mod reading;
mod routes;
mod structure;

use super::Rule;

const TOPICS: [&[Rule]; 8] = [
    reading::RULES,
    structure::RULES,
    attributes::RULES,
    guardrails::RULES,
    holdout_rules::RULES,
    routes::RULES,
    parallel::RULES,
    routes::RESTARTS,
];

/// The titles of the topics in the order of the table, each with the name of its first rule.
pub(super) const TITLES: [(&str, &str); 8] = [
    ("Reading", reading::RULES[0].id),
    ("The graph", structure::RULES[0].id),
    ("Attributes", attributes::RULES[0].id),
    ("Guardrails", guardrails::RULES[0].id),
    ("Hold-outs", holdout_rules::RULES[0].id),
    ("Routes", routes::RULES[0].id),
    ("Parallel nodes", parallel::RULES[0].id),
    ("Restarts", routes::RESTARTS[0].id),
];

const COUNT: usize = {
    let (mut count, mut topic) = (0, 0);
    while topic < TOPICS.len() {
        count += TOPICS[topic].len();
        topic += 1;
    }
    count
};

const JOINED: [Rule; COUNT] = {
    let mut joined = [TOPICS[0][0]; COUNT];
    let (mut at, mut topic) = (0, 0);
    while topic < TOPICS.len() {
        let mut number = 0;
        while number < TOPICS[topic].len() {
            joined[at] = TOPICS[topic][number];
            at += 1;
            number += 1;
        }
        topic += 1;
    }
    joined
};

/// All rules.
pub const RULES: &[Rule] = &JOINED;
