//! Tests that the published schemas match the types that are written. `UPDATE_SCHEMAS=1` writes the schemas again.

use std::path::Path;

#[test]
fn published_schemas_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let mut stale = Vec::new();
    for (name, schema) in glovebox_engine::project::schema::schemas() {
        let file = folder.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).expect("schema") + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).expect("folder");
            std::fs::write(&file, &text).expect("write");
        } else if std::fs::read_to_string(&file).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "run `UPDATE_SCHEMAS=1 cargo test -p glovebox-engine --test engine schemas`: {stale:?} differ"
    );
}
