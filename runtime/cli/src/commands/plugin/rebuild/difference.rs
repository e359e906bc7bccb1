//! Where two components differ first: the offset, and the section of the first component that has it.

/// Size of the magic number and the version of a component or a core module.
const HEAD: usize = 8;
/// The version and layer of a component.
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];
/// Maximum depth of components in components that is looked at.
const DEPTH_MAX: usize = 8;
/// The sections of a component, by id.
const OF_COMPONENT: [&str; 13] = [
    "custom",
    "core module",
    "core instance",
    "core type",
    "component",
    "instance",
    "alias",
    "type",
    "canonical function",
    "start",
    "import",
    "export",
    "value",
];
/// The sections of a core module, by id.
const OF_MODULE: [&str; 14] = [
    "custom",
    "type",
    "import",
    "function",
    "table",
    "memory",
    "global",
    "export",
    "start",
    "element",
    "code",
    "data",
    "data count",
    "tag",
];

/// The first difference of two components.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// The offset of the first byte that differs, or that only one of them has.
    pub offset: usize,
    /// The place in the first component, for people.
    pub section: String,
}

/// Returns the first difference. `None` if the bytes are the same.
pub fn first_difference(one: &[u8], other: &[u8]) -> Option<Difference> {
    let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    if one.len() == other.len() && common == one.len() {
        return None;
    }
    Some(Difference { offset: common, section: place(one, common, 0) })
}

/// Returns the section with this offset.
fn place(bytes: &[u8], offset: usize, depth: usize) -> String {
    let is_component = bytes.get(HEAD - COMPONENT.len()..HEAD) == Some(COMPONENT);
    let kind = if is_component { "component" } else { "core module" };
    if offset < HEAD {
        return format!("the head of the {kind}");
    }
    let mut at = HEAD;
    while let Some(section) = Section::read(bytes, at) {
        if offset < section.end {
            let names: &[&str] = if is_component { &OF_COMPONENT } else { &OF_MODULE };
            let name = names.get(usize::from(section.id)).copied().unwrap_or("unknown");
            let is_nested = is_component && matches!(name, "core module" | "component") && depth < DEPTH_MAX;
            return match (offset.checked_sub(section.begin), bytes.get(section.begin..section.end)) {
                (Some(inner), Some(content)) if is_nested => {
                    format!("{} of the section `{name}` at offset {at}", place(content, inner, depth + 1))
                }
                _ => format!("the section `{name}` of the {kind}, which begins at offset {at}"),
            };
        }
        at = section.end;
    }
    format!("what follows the last section of the {kind}")
}

/// A section of a component or a core module.
struct Section {
    id: u8,
    /// Where its content begins.
    begin: usize,
    /// Where it ends.
    end: usize,
}

impl Section {
    fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let id = *bytes.get(at)?;
        let (mut length, mut begin) = (0_u64, at + 1);
        for shift in (0..35).step_by(7) {
            let byte = *bytes.get(begin)?;
            begin += 1;
            length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let end = begin.checked_add(usize::try_from(length).ok()?)?;
                return (end <= bytes.len()).then_some(Self { id, begin, end });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(text: &str) -> Vec<u8> {
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn the_section_of_the_first_difference_is_named() {
        let one =
            component(r#"(component (core module (func (export "f") (result i32) i32.const 1)) (@custom "a" "x"))"#);
        assert_eq!(first_difference(&one, &one), None);
        let other =
            component(r#"(component (core module (func (export "f") (result i32) i32.const 2)) (@custom "a" "x"))"#);
        let found = first_difference(&one, &other).unwrap();
        assert!(found.section.starts_with("the section `code` of the core module"), "{found:?}");
        assert!(found.section.ends_with("of the section `core module` at offset 8"), "{found:?}");
        assert_ne!(one[found.offset], other[found.offset]);
        let last =
            component(r#"(component (core module (func (export "f") (result i32) i32.const 1)) (@custom "a" "y"))"#);
        assert!(first_difference(&one, &last).unwrap().section.starts_with("the section `custom` of the component"));
        let longer = [&one[..], b"x"].concat();
        let found = first_difference(&one, &longer).unwrap();
        assert_eq!((found.offset, &*found.section), (one.len(), "what follows the last section of the component"));
        assert_eq!(first_difference(b"", &one).unwrap().section, "the head of the core module");
    }

    #[test]
    fn bytes_of_strangers_have_a_place() {
        let mut hostile = component("(component (component (component)))");
        for at in 8..hostile.len() {
            for value in [0, 0x7f, 0x80, 0xff] {
                let before = std::mem::replace(&mut hostile[at], value);
                (0..=hostile.len()).for_each(|offset| drop(place(&hostile, offset, 0)));
                hostile[at] = before;
            }
        }
    }
}
