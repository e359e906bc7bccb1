//! The tables of `docs/serve.md` are those of the code. `UPDATE_DOCS=1` writes them.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use glovebox_serve::right::Right;
use glovebox_serve::route::{Answer, Body, Field, ROUTES};
use std::path::Path;

const END: &str = "<!-- end -->";

fn rights() -> String {
    Right::ALL.iter().map(|right| format!("| `{right}` | {} |\n", right.about())).collect()
}

fn names(fields: &[Field]) -> String {
    fields.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ")
}

fn routes() -> String {
    let mut table = "| route | right | takes | answers |\n|---|---|---|---|\n".to_owned();
    for route in ROUTES {
        let right = route.right.map_or_else(|| "none".to_owned(), |right| format!("`{right}`"));
        let body = match route.body {
            Body::None => String::new(),
            Body::Json(fields) => names(fields),
            Body::Pipeline(fields) => format!("DOT, or {}", names(fields)),
        };
        let takes =
            [names(route.query), body].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        let answer = match route.answer {
            Answer::Document(schema) => format!("`{schema}`"),
            Answer::Lines(schema) => format!("lines of `{schema}`"),
            Answer::Events => "events".to_owned(),
            Answer::Bytes(media) => format!("`{media}`"),
        };
        let about = route.about;
        let verb = route.verb.as_str();
        table.push_str(&format!("| `{verb} {}` | {right} | {takes} | {answer}. {about} |\n", route.path));
    }
    table
}

#[test]
fn the_page_has_every_right_and_route() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let mut expected = page.clone();
    for (name, table) in [("rights", rights()), ("routes", routes())] {
        let marker = format!("<!-- {name} -->\n");
        let (before, rest) = expected.split_once(&marker).unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        expected = format!("{before}{marker}{table}{END}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, expected).unwrap();
    } else {
        assert!(page == expected, "run `UPDATE_DOCS=1 cargo test --workspace --test docs`");
    }
}

#[test]
fn every_answer_has_a_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    for route in ROUTES {
        if let Answer::Document(schema) | Answer::Lines(schema) = route.answer {
            assert!(folder.join(format!("{schema}.schema.json")).is_file(), "{}: {schema}", route.path);
        }
    }
}
