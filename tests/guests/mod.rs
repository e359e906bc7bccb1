//! Misbehaving components, built from text: endless loops, excessive use of resources, traps, false claims and floods
//! of output.
//!
//! Each folder next to this file defines one behaviour. `guest.wat` contains fields of a core module. They are combined
//! with `prelude.wat` into a component of the world in `world.wit`. `component.wat` is a complete component. No
//! compiler for another target is needed.

use std::fs;
use std::path::{Path, PathBuf};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The world that all guests are built for. A component imports only what its guest uses.
const WORLD: &str = include_str!("world.wit");

/// The part that all guests share: memory, an allocator, and an empty successful outcome.
const PRELUDE: &str = include_str!("prelude.wat");

/// The part that all rule plugins share: memory, an allocator, and no findings.
const RULES_PRELUDE: &str = include_str!("rules.wat");

/// The part that all policies share: memory, an allocator, the question, and the answer that allows.
const POLICY_PRELUDE: &str = include_str!("policy.wat");

/// The part that all tool providers share: memory, an allocator, the arguments of a call, and an empty answer.
const PROVIDER_PRELUDE: &str = include_str!("provider.wat");

/// Returns the folder of this file.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests")
}

/// Builds the component of a behaviour.
pub(crate) fn build(name: &str) -> Vec<u8> {
    let folder = folder().join(name);
    let whole = folder.join("component.wat");
    if whole.exists() {
        return wat::parse_file(whole).unwrap_or_else(|e| panic!("{e}"));
    }
    let text = fs::read_to_string(folder.join("guest.wat")).unwrap_or_else(|e| panic!("guest {name}: {e}"));
    component(&text)
}

/// Builds a component from the fields of a core module.
pub(crate) fn component(fields: &str) -> Vec<u8> {
    encode(&format!("(module\n{fields}\n{PRELUDE})"), "guest")
}

/// Builds a rule plugin from the functions `$lint` and `$transform` and the other fields that they need.
pub(crate) fn rules(fields: &str) -> Vec<u8> {
    encode(&format!("(module\n{fields}\n{RULES_PRELUDE})"), "rules")
}

/// Builds a policy from the functions `$judge_call` and `$judge_edge` and the other fields that they need.
pub(crate) fn policy(fields: &str) -> Vec<u8> {
    encode(&format!("(module\n{fields}\n{POLICY_PRELUDE})"), "policy")
}

/// Builds a tool provider from the functions `$definitions` and `$call` and the other fields that they need.
pub(crate) fn provider(fields: &str) -> Vec<u8> {
    encode(&format!("(module\n{fields}\n{PROVIDER_PRELUDE})"), "provider")
}

/// Returns the data of tools, each with its name, description and schema, and the function `$listed`, which lists them.
pub(crate) fn tools(tools: &[(&str, &str, &str)]) -> String {
    let (mut fields, mut text_at) = (String::new(), 8192);
    let data = |at: usize, bytes: &[u8]| {
        let quoted: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(data (i32.const {at}) \"{quoted}\")\n")
    };
    for (index, (name, description, schema)) in tools.iter().enumerate() {
        let mut record = Vec::new();
        for text in [name, description, schema] {
            fields.push_str(&data(text_at, text.as_bytes()));
            let words = [text_at, text.len()].map(|word| u32::try_from(word).expect("a small number").to_le_bytes());
            record.extend(words.concat());
            text_at += text.len();
        }
        fields.push_str(&data(1024 + 24 * index, &record));
    }
    format!("{fields}(func $listed (call $tools (i32.const {})))\n", tools.len())
}

/// Returns the fields of a rule plugin without findings that transforms every graph to this one.
pub(crate) fn answering(graph: &str) -> String {
    let quoted: String = graph.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        "(data (i32.const 8192) \"{quoted}\")\n(func $lint (param i32 i32))\n\
         (func $transform (i32.store8 (i32.const 36) (i32.const 1))\n\
           (i32.store (i32.const 40) (i32.const 8192)) (i32.store (i32.const 44) (i32.const {})))",
        graph.len()
    )
}

/// Builds a core module that is not yet a component, from its fields.
pub(crate) fn core(fields: &str) -> Vec<u8> {
    core_module(&format!("(module\n{fields}\n{PRELUDE})"), "guest")
}

fn core_module(module: &str, world: &str) -> Vec<u8> {
    let mut core = wat::parse_str(module).unwrap_or_else(|e| panic!("{e}"));
    let mut resolve = Resolve::default();
    resolve.push_dir(folder().join("../../wit")).unwrap_or_else(|e| panic!("{e:?}"));
    let package = resolve.push_str("world.wit", WORLD).unwrap_or_else(|e| panic!("{e:?}"));
    let world = resolve.select_world(&[package], Some(world)).unwrap_or_else(|e| panic!("{e:?}"));
    embed_component_metadata(&mut core, &resolve, world, StringEncoding::UTF8, false)
        .unwrap_or_else(|e| panic!("{e:?}"));
    core
}

fn encode(module: &str, world: &str) -> Vec<u8> {
    let core = core_module(module, world);
    let mut encoder = ComponentEncoder::default();
    let encoded = encoder.validate(true).module(&core).and_then(|encoder| encoder.encode());
    encoded.unwrap_or_else(|e| panic!("{e:?}"))
}
