//! A component that tries to get out of its box: one attack per call, named by the node's attributes, answered in the notes.
//!
//! `glovebox doctor --attack` runs it against the real host. It says honestly what it saw from inside; whether that is true
//! is judged by what stands outside.
#![forbid(unsafe_code)]

mod attacks;

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, json};

struct Intruder;

impl Handler for Intruder {
    fn execute(stage: Stage) -> Outcome {
        let attack = stage.attribute("attack").unwrap_or_default();
        let words: Vec<&str> = ["first", "second"].iter().filter_map(|name| stage.attribute(name)).collect();
        let tried = attacks::attempt(attack, &words);
        let answer = json!({ "worked": tried.worked, "answer": tried.answer, "loot": tried.loot });
        Outcome::success().notes(answer.to_string())
    }
}

export!(
    Intruder,
    manifest = concat!(
        r#"{"name":"intruder","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Tries to get out.","#,
        r#""wants":{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}}"#
    )
);
