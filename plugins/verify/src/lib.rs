//! The `verify` handler.
#![forbid(unsafe_code)]

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, log};

struct Plugin;

impl Handler for Plugin {
    fn execute(stage: Stage) -> Outcome {
        log::info("x", &[]);
        Outcome::fail("a", stage.node_id()).set("k", 3)
    }
}

export!(Plugin, manifest = r#"{"name":"verify","version":"0.1.0","description":"x","wants":{}}"#);
