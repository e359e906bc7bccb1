//! The files of the page. They are part of the program: the page loads nothing from another host.
//!
//! They are plain modules and one style sheet, as they are in the folder `page`. No tool makes them, so whoever reviews the
//! repository has reviewed the page.

use crate::answer;
use crate::desk::Problem;
use axum::body::Body;
use axum::http::Response;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Files of the page by name, with their types.
const FILES: &[(&str, &str, &[u8])] = &[
    ("index.html", HTML, include_bytes!("page/index.html")),
    ("page.css", CSS, include_bytes!("page/page.css")),
    ("api.js", SCRIPT, include_bytes!("page/api.js")),
    ("changes.js", SCRIPT, include_bytes!("page/changes.js")),
    ("dom.js", SCRIPT, include_bytes!("page/dom.js")),
    ("evidence.js", SCRIPT, include_bytes!("page/evidence.js")),
    ("gates.js", SCRIPT, include_bytes!("page/gates.js")),
    ("graph.js", SCRIPT, include_bytes!("page/graph.js")),
    ("holdouts.js", SCRIPT, include_bytes!("page/holdouts.js")),
    ("keys.js", SCRIPT, include_bytes!("page/keys.js")),
    ("list.js", SCRIPT, include_bytes!("page/list.js")),
    ("live.js", SCRIPT, include_bytes!("page/live.js")),
    ("main.js", SCRIPT, include_bytes!("page/main.js")),
    ("overview.js", SCRIPT, include_bytes!("page/overview.js")),
    ("patch.js", SCRIPT, include_bytes!("page/patch.js")),
    ("records.js", SCRIPT, include_bytes!("page/records.js")),
    ("run.js", SCRIPT, include_bytes!("page/run.js")),
    ("runs.js", SCRIPT, include_bytes!("page/runs.js")),
    ("stage.js", SCRIPT, include_bytes!("page/stage.js")),
    ("start.js", SCRIPT, include_bytes!("page/start.js")),
    ("states.js", SCRIPT, include_bytes!("page/states.js")),
    ("stream.js", SCRIPT, include_bytes!("page/stream.js")),
    ("text.js", SCRIPT, include_bytes!("page/text.js")),
];

/// Returns a file of the page.
pub(crate) fn file(name: &str) -> Result<Response<Body>, Problem> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, media, bytes) = found.ok_or_else(|| Problem::new(404, "unknown-file", "the page has no such file"))?;
    Ok(answer::page(media, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files, bytes.
    const BYTES_MAX: usize = 150_000;
    /// Maximum size of all files after compression, bytes. `docs/serve.md` says what it is spent on.
    const COMPRESSED_MAX: usize = 50_000;
    /// Maximum number of lines of all files.
    const LINES_MAX: usize = 3_000;
    /// Maximum number of lines of one file.
    const FILE_LINES_MAX: usize = 300;

    fn text(bytes: &'static [u8]) -> &'static str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_page_is_small() {
        let all: Vec<u8> = FILES.iter().flat_map(|(.., bytes)| bytes.iter().copied()).collect();
        assert!(all.len() <= BYTES_MAX, "{} bytes", all.len());
        // What a server would send if it compressed each file by itself.
        let compressed: usize =
            FILES.iter().map(|(.., bytes)| miniz_oxide::deflate::compress_to_vec(bytes, 9).len()).sum();
        assert!(compressed <= COMPRESSED_MAX, "{compressed} bytes after compression");
        let lines: Vec<(&str, usize)> =
            FILES.iter().map(|(name, _, bytes)| (*name, text(bytes).lines().count())).collect();
        assert!(lines.iter().map(|(_, lines)| lines).sum::<usize>() <= LINES_MAX, "{lines:?}");
        assert!(lines.iter().all(|(_, lines)| *lines <= FILE_LINES_MAX), "{lines:?}");
    }

    #[test]
    fn every_file_is_embedded_and_imported() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let mut there: Vec<String> =
            folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        let mut embedded: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        embedded.sort_unstable();
        assert_eq!(there, embedded);
        let all: String = FILES.iter().map(|(.., bytes)| text(bytes)).collect();
        for (name, ..) in FILES.iter().filter(|(name, ..)| *name != "index.html") {
            assert!(all.contains(&format!("\"/page/{name}\"")) || all.contains(&format!("\"./{name}\"")), "{name}");
        }
    }

    #[test]
    fn nothing_is_parsed_as_markup_and_nothing_is_inline() {
        for (name, _, bytes) in FILES {
            let text = text(bytes);
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "DOMParser",
                "srcdoc",
                "eval(",
                "new Function",
                "setHTML",
                "javascript:",
                "@import",
                "url(",
                "@font-face",
                "localStorage",
                "document.cookie",
                "EventSource(",
            ] {
                assert!(!text.contains(word), "{name} has `{word}`");
            }
            // The namespace of SVG is a name, not a place.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http://") && !text.contains("https://") && !text.contains("\"//"),
                "{name} names a host"
            );
        }
        let html = text(FILES[0].2);
        assert!(!html.contains("style=") && !html.contains("<style") && !html.contains(" on"), "{html}");
        assert_eq!(html.matches("<script").count(), html.matches("<script type=\"module\" src=\"/page/").count());
    }

    /// The page shows the same characters as escapes as every other output.
    #[test]
    fn deceptive_characters_are_those_of_all_outputs() {
        let (_, _, bytes) = FILES.iter().find(|(name, ..)| *name == "text.js").unwrap();
        let table = text(bytes).split_once("DECEPTIVE = [").unwrap().1.split_once("];").unwrap().0;
        let numbers: Vec<u32> = table
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .collect();
        let ranges: Vec<_> = numbers.chunks(2).map(|pair| pair[0]..=pair[1]).collect();
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let is_listed = ranges.iter().any(|range| range.contains(&u32::from(character)));
            assert_eq!(is_listed, glovebox_names::visible::is_deceptive(character), "{:x}", u32::from(character));
        }
    }
}
