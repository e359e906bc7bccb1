//! A small XML reader for pictures: a picture must be well-formed, and contain only known elements and attributes, and
//! no script or reference.

const ELEMENTS: [&str; 9] = ["svg", "title", "desc", "style", "rect", "g", "path", "circle", "text"];
const ATTRIBUTES: [&str; 21] = [
    "xmlns",
    "class",
    "role",
    "width",
    "height",
    "viewBox",
    "x",
    "y",
    "rx",
    "d",
    "cx",
    "cy",
    "r",
    "id",
    "data-from",
    "data-to",
    "data-edge",
    "data-node",
    "fill",
    "stroke",
    "opacity",
];
const ENTITIES: [&str; 5] = ["amp", "lt", "gt", "quot", "#39"];

/// Panics if the text is not a valid picture of Glovebox.
pub(crate) fn check(text: &str) {
    let mut reader = Reader { rest: text, open: Vec::new(), ids: Vec::new() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    assert!(reader.open.is_empty(), "left open: {:?}", reader.open);
    let before = reader.ids.len();
    reader.ids.sort_unstable();
    reader.ids.dedup();
    assert_eq!(before, reader.ids.len(), "an id twice");
}

struct Reader<'a> {
    rest: &'a str,
    open: Vec<&'a str>,
    ids: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        match self.rest.strip_prefix('<') {
            Some(rest) if rest.starts_with('/') => {
                let (name, rest) = rest[1..].split_once('>').expect("a closing tag ends");
                assert_eq!(self.open.pop(), Some(name), "closes what is open");
                self.rest = rest;
            }
            Some(rest) => self.element(rest),
            None => {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (content, rest) = self.rest.split_at(end);
                if self.open.last() == Some(&"style") {
                    assert!(
                        !content.contains(['&', '@']) || content.contains("@media (prefers-color-scheme:dark)"),
                        "{content}"
                    );
                    assert!(!content.contains("url") && !content.contains("import"), "{content}");
                }
                assert!(!self.open.is_empty() || content.trim().is_empty(), "text outside: {content:?}");
                characters(content);
                self.rest = rest;
            }
        }
    }

    fn element(&mut self, rest: &'a str) {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).expect("a tag ends");
        let (name, mut rest) = rest.split_at(end);
        assert!(ELEMENTS.contains(&name), "element {name:?}");
        let mut seen = Vec::new();
        while let Some(tail) = rest.strip_prefix(' ') {
            let (attribute, tail) = tail.split_once("=\"").expect("an attribute has a quoted value");
            assert!(ATTRIBUTES.contains(&attribute), "attribute {attribute:?}");
            assert!(!seen.contains(&attribute), "attribute {attribute:?} twice");
            seen.push(attribute);
            let (value, tail) = tail.split_once('"').expect("a value ends");
            assert!(!value.contains('<'), "{value:?}");
            characters(value);
            if attribute == "id" {
                self.ids.push(value);
            }
            rest = tail;
        }
        match rest.strip_prefix("/>") {
            Some(tail) => self.rest = tail,
            None => {
                self.open.push(name);
                self.rest = rest.strip_prefix('>').expect("a tag ends with its bracket");
            }
        }
    }
}

/// Checks character data: no control characters, and no references except the five predefined entities.
fn characters(text: &str) {
    for (index, _) in text.match_indices('&') {
        let (entity, _) = text[index + 1..].split_once(';').expect("a reference ends");
        assert!(ENTITIES.contains(&entity), "reference {entity:?}");
    }
    let is_bad =
        |c: char| c.is_control() && c != '\n' || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}');
    assert!(!text.contains(is_bad), "{text:?}");
}
