//! A component that tries to get out of its box: one attack per call, named by the node's attributes, answered in the notes.
//!
//! `glovebox doctor --attack` runs it against the real host. It says honestly what it saw from inside; whether that is true
//! is judged by what stands outside.
#![forbid(unsafe_code)]

mod attacks;

use attacks::Attack;
use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, json};

struct Intruder;

impl Handler for Intruder {
    fn execute(stage: Stage) -> Outcome {
        let attribute = |name: &str| stage.attribute(name).unwrap_or_default();
        let attack = Attack { operation: attribute("attack"), path: attribute("first"), other: attribute("second") };
        let tried = attack.attempt();
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
