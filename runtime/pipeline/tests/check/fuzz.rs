//! Runs each fuzz target of `fuzz/` whose input is text, for a short time.

use super::total;
use glovebox_short_run::{run, text};

#[test]
fn check() {
    run("check", |input| total::check(text(input)));
}

#[test]
fn fmt() {
    run("fmt", |input| total::check_format(text(input)));
}

#[test]
fn condition() {
    run("condition", |input| total::check_condition(text(input)));
}

#[test]
fn stylesheet() {
    run("stylesheet", |input| total::check_stylesheet(text(input)));
}
