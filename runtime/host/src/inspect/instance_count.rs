//! Counts the instances that a component creates, from its bytes and before anything is compiled.
//!
//! The number can grow exponentially: twenty nested components that each instantiate the next one twice create a million instances.
//! The compiler would process all of them, so they are counted first. A component that instantiates a component which it gets at run
//! time cannot be counted and is refused.

use crate::inspect::{InspectError, items};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Encoding,
    Instance, Payload,
};

/// Counts instances while the payloads of a binary are read.
#[derive(Default)]
pub(crate) struct InstanceCount {
    open: Vec<Option<Frame>>,
    total: u64,
}

/// A component whose end was not reached yet.
#[derive(Default)]
struct Frame {
    /// Number of instances of each nested component, by index; `None` if the number is unknown.
    components: Vec<Option<u64>>,
    count: u64,
}

impl InstanceCount {
    /// Returns the number of instances of the outermost component, after all payloads were read.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn add(&mut self, payload: &Payload<'_>) -> Result<(), InspectError> {
        match payload {
            Payload::Version { encoding: Encoding::Component, .. } => self.open.push(Some(Frame::default())),
            Payload::Version { .. } => self.open.push(None),
            Payload::End(_) => self.close(),
            Payload::ComponentAliasSection(section) => {
                for alias in items(section) {
                    self.alias(&alias?);
                }
            }
            _ => {
                if let Some(Some(frame)) = self.open.last_mut() {
                    frame.add(payload)?;
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(Some(frame)) = self.open.pop() else {
            return;
        };
        match self.open.last_mut() {
            Some(Some(parent)) => parent.components.push(Some(frame.count.saturating_add(1))),
            _ => self.total = frame.count,
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) {
        let known = match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => None,
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                let outer = self.open.iter().rev().flatten().nth(*count as usize);
                outer.and_then(|frame| frame.components.get(*index as usize).copied().flatten())
            }
            _ => return,
        };
        if let Some(Some(frame)) = self.open.last_mut() {
            frame.components.push(known);
        }
    }
}

impl Frame {
    fn add(&mut self, payload: &Payload<'_>) -> Result<(), InspectError> {
        match payload {
            Payload::InstanceSection(section) => {
                for instance in items(section) {
                    if matches!(instance?, Instance::Instantiate { .. }) {
                        self.count = self.count.saturating_add(1);
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in items(section) {
                    if let ComponentInstance::Instantiate { component_index, .. } = instance? {
                        let cost = self.components.get(component_index as usize).copied().flatten();
                        self.count = self.count.saturating_add(cost.ok_or(InspectError::HandedComponent)?);
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in items(section) {
                    if matches!(import?.ty, ComponentTypeRef::Component(_)) {
                        self.components.push(None);
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in items(section) {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Component {
                        self.components.push(self.components.get(export.index as usize).copied().flatten());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::inspect::inspect;
    use std::fmt::Write as _;

    /// Returns a component with `depth` nested components, each of which instantiates the one before it twice.
    fn tower(depth: u32) -> Vec<u8> {
        let mut text = "(component (component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
        for level in 1..=depth {
            let below = level - 1;
            write!(
                text,
                "(component $c{level} (alias outer 1 $c{below} (component $b)) (instance (instantiate $b)) (instance (instantiate $b)))"
            )
            .unwrap();
        }
        write!(text, "(instance (instantiate $c{depth})))").unwrap();
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn nested_instances_multiply() {
        assert_eq!(inspect(&tower(0)).unwrap().core_instances, 2);
        assert_eq!(inspect(&tower(1)).unwrap().core_instances, 5);
        assert!(inspect(&tower(40)).unwrap().core_instances > 1 << 40);
    }

    #[test]
    fn a_component_handed_over_is_not_instantiated() {
        let bytes = wat::parse_str("(component (import \"c\" (component $c)) (instance (instantiate $c)))").unwrap();
        assert!(inspect(&bytes).unwrap_err().to_string().contains("imported component"));
    }
}
