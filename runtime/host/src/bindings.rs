//! Rust types and traits that wasmtime generates from `wit/`.
//!
//! Contains only the interfaces that this version provides, so that no code could serve any other.

#![allow(unreachable_pub, clippy::all, unused_qualifications)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package glovebox:host;

        world provided {
            import glovebox:plugin/types@0.1.0;
            import glovebox:plugin/chat@0.1.0;
            import glovebox:plugin/files@0.1.0;
            import glovebox:plugin/control@0.1.0;
            import glovebox:plugin/llm@0.1.0;
            import glovebox:plugin/exec@0.1.0;
            import glovebox:plugin/agents@0.1.0;
            import glovebox:plugin/tools@0.1.0;
            export glovebox:plugin/stage@0.1.0;
        }
    ",
    world: "glovebox:host/provided",
    imports: { default: trappable },
    exports: { default: async },
    with: {
        "glovebox:plugin/llm.completion": crate::attempt::llm::Completion,
        "glovebox:plugin/agents.session": crate::attempt::agents::ProgramSession,
    },
});

pub(crate) use glovebox::plugin::{agents, chat, control, exec, files, llm, tools, types};
