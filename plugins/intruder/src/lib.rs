//! A hostile component that tries one attack in each call. The node's attributes name the attack, and the notes contain its result.
//!
//! `glovebox doctor --attack` runs it against the real host. The component reports what it saw, but only the witnesses outside decide
//! whether the attack was blocked.
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
        r#"","description":"Tries to leave its sandbox.","#,
        r#""wants":{"filesystem":"posix","read":["./"],"write":["./"],"commands":["*"],"model":true}}"#
    )
);
