//! `glovebox doctor`: what this machine can enforce, and the tests of it by attacks and by ordinary behaviours.
//!
//! [`machine`] reports on the machine, `fleet` on the servers of a fleet. [`attack`] starts `glovebox-attack`, which attacks a tier. [`ordinary`] tries in
//! a tier what developers' tools do. Each prints a JSON document for programs or a table for people.

#[cfg(target_os = "linux")]
pub mod attack;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod machine;
#[cfg(target_os = "linux")]
pub mod ordinary;
#[cfg(target_os = "linux")]
pub mod report;

/// Tests the published schemas of what `doctor` prints.
#[cfg(test)]
mod tests {
    /// `UPDATE_SCHEMAS=1` writes the schemas.
    #[cfg(target_os = "linux")]
    #[test]
    fn published_schemas_are_current() {
        use super::{machine::MachineReport, ordinary::OrdinaryReport, report::AttackReport};
        use schemars::schema_for;
        use std::path::Path;

        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        let schemas = [
            ("doctor", schema_for!(MachineReport)),
            #[cfg(feature = "fleet")]
            ("doctor-fleet", schema_for!(super::fleet::FleetReport)),
            ("attacks", schema_for!(AttackReport)),
            ("ordinary", schema_for!(OrdinaryReport)),
        ];
        for (name, schema) in schemas {
            let file = folder.join(format!("{name}.schema.json"));
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("UPDATE_SCHEMAS").is_some() {
                std::fs::write(&file, &text).unwrap();
            }
            let published = std::fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(published, text, "run `UPDATE_SCHEMAS=1 cargo test -p glovebox schemas`: {name} differs");
        }
    }
}
