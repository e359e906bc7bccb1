//! Checks names and pages against `docs/glossary.md`.
//!
//! All types that the glossary names must exist, the types of `runtime/record` must use its words, and neither a name
//! in the code nor a page may use a word that it refuses. To refuse a word, add a row to the table in the last section
//! of the glossary.

use crate::{Source, files, none, root, sources, words};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/glossary.md";
const SENTENCES_MAX: usize = 4;

/// A line `**term**: text`. Its last sentence may be "In code: `Type`."
struct Entry {
    term: String,
    text: String,
}

impl Entry {
    fn types(&self) -> Vec<&str> {
        let types = self.text.split_once("In code: ").map_or("", |(_, types)| types);
        types.split('`').skip(1).step_by(2).collect()
    }
}

/// The places where the glossary refuses a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// A part of any name of a type, module or function.
    Names,
    /// As [`Where::Names`], except for the names of private functions.
    PublicNames,
    /// A part of the name of a type or module.
    Types,
    /// The whole name of a type or module.
    WholeTypes,
    /// The whole name of a public function.
    WholeFunctions,
    /// The first of several words in the name of a function.
    FunctionStarts,
    /// Sentences of the documentation.
    Pages,
}

const WHERES: [(&str, Where); 7] = [
    ("names", Where::Names),
    ("public names", Where::PublicNames),
    ("types", Where::Types),
    ("whole types", Where::WholeTypes),
    ("whole functions", Where::WholeFunctions),
    ("starts of functions", Where::FunctionStarts),
    ("pages", Where::Pages),
];

/// A row of the table: a word, where it is refused, and what to write instead.
struct Refused {
    word: String,
    wheres: Vec<Where>,
    instead: String,
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).unwrap()
}

fn entries(page: &str) -> Vec<Entry> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("**")?.split_once("**: "));
    lines.map(|(term, text)| Entry { term: term.to_owned(), text: text.to_owned() }).collect()
}

fn refused(page: &str) -> Vec<Refused> {
    let rows =
        page.lines().skip_while(|line| !line.starts_with("| not |")).skip(2).take_while(|line| line.starts_with('|'));
    let mut found = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [list, listed, instead] = cells[..] else { panic!("{PAGE}: three cells, not `{row}`") };
        let known = |name: &str| WHERES.iter().find(|(known, _)| *known == name).map(|(_, found)| *found);
        let wheres = listed.split(", ").map(|name| known(name).unwrap_or_else(|| panic!("{PAGE}: what is `{name}`?")));
        let (wheres, instead): (Vec<Where>, _) = (wheres.collect(), instead.to_owned());
        let words = list.split(", ").map(str::to_owned);
        found.extend(words.map(|word| Refused { word, wheres: wheres.clone(), instead: instead.clone() }));
    }
    found
}

/// Splits a name such as `ReadOnlyView`, `read_only_view` or `READ_ONLY` into lower-case words.
fn segments(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut parts = vec![String::new()];
    for (at, character) in characters.iter().enumerate() {
        let ends_a_word = at > 0 && !characters[at - 1].is_uppercase();
        let begins_a_word = at > 0 && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if matches!(character, '_' | '-') || character.is_uppercase() && (ends_a_word || begins_a_word) {
            parts.push(String::new());
        }
        if character.is_alphanumeric() {
            parts.last_mut().unwrap().extend(character.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Type,
    Module,
    Function,
}

/// A name that a file declares, with its line number.
struct Declared<'a> {
    line: usize,
    kind: Kind,
    name: &'a str,
    is_public: bool,
}

fn declared(source: &Source) -> Vec<Declared<'_>> {
    let stem = Path::new(&source.path).file_stem().unwrap().to_str().unwrap();
    let mut found = vec![Declared { line: 1, kind: Kind::Module, name: stem, is_public: true }];
    let all = words(&source.code);
    for at in 1..all.len() {
        let kind = match all[at - 1].1 {
            // In a macro, the name is a variable of the macro.
            "struct" | "enum" | "trait" if all[at].1.starts_with(char::is_uppercase) => Kind::Type,
            "mod" => Kind::Module,
            "fn" => Kind::Function,
            _ => continue,
        };
        let before = all[..at - 1].iter().rev().map(|(_, word)| *word);
        let is_public = before
            .take_while(|word| {
                matches!(*word, "pub" | "crate" | "super" | "in" | "const" | "async" | "unsafe" | "extern")
            })
            .any(|word| word == "pub");
        found.push(Declared { line: all[at].0, kind, name: all[at].1, is_public });
    }
    found
}

fn is_refused(word: &str, at: Where, declared: &Declared<'_>, parts: &[String]) -> bool {
    let is_part = parts.iter().any(|part| part == word);
    let is_whole = parts.len() == 1 && is_part;
    let is_function = declared.kind == Kind::Function;
    match at {
        Where::Names => is_part,
        Where::PublicNames => is_part && (declared.is_public || !is_function),
        Where::Types => is_part && !is_function,
        Where::WholeTypes => is_whole && !is_function,
        Where::WholeFunctions => is_whole && is_function && declared.is_public,
        Where::FunctionStarts => is_function && parts.len() > 1 && parts[0] == word,
        Where::Pages => false,
    }
}

#[test]
fn entries_are_in_order_and_short() {
    let page = page();
    let (entries, refused) = (entries(&page), refused(&page));
    let mut findings = Vec::new();
    for pair in entries.windows(2).filter(|pair| pair[0].term >= pair[1].term) {
        findings.push(format!("{PAGE}: `{}` comes after `{}`", pair[0].term, pair[1].term));
    }
    for entry in &entries {
        let text = entry.text.split("In code: ").next().unwrap();
        if text.split_terminator(". ").count() > SENTENCES_MAX {
            findings.push(format!("{PAGE}: `{}` has more than {SENTENCES_MAX} sentences", entry.term));
        }
        if refused.iter().any(|refused| refused.word == entry.term) {
            findings.push(format!("{PAGE}: `{}` is a term and a refused word", entry.term));
        }
    }
    assert!(entries.len() > 50 && refused.len() > 20, "{PAGE}: {} terms, {} refused", entries.len(), refused.len());
    none(&findings);
}

#[test]
fn types_of_the_glossary_exist() {
    let sources = sources();
    let code = sources.iter().filter(|source| source.is_under(&["runtime/", "plugin-sdk/"]) && !source.is_test());
    let types: BTreeSet<&str> = code
        .flat_map(declared)
        .filter(|declared| declared.kind == Kind::Type && declared.is_public)
        .map(|declared| declared.name)
        .collect();
    let mut findings = Vec::new();
    for entry in entries(&page()) {
        for name in entry.types().iter().filter(|name| !types.contains(*name)) {
            findings.push(format!("{PAGE}: `{}`: there is no public type `{name}`", entry.term));
        }
    }
    none(&findings);
}

/// Each type of the crate whose types all other crates share must have a word of the glossary in its name.
#[test]
fn types_of_the_record_use_words_of_the_glossary() {
    let terms = entries(&page()).into_iter().map(|entry| entry.term);
    let terms: BTreeSet<String> =
        terms.flat_map(|term| term.split([' ', '-']).map(str::to_owned).collect::<Vec<_>>()).collect();
    let known = |part: &String| {
        ["", "s", "d", "ed"].iter().any(|ending| part.strip_suffix(ending).is_some_and(|stem| terms.contains(stem)))
    };
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| source.is_under(&["runtime/record/src/"]) && !source.is_test()) {
        for declared in declared(source).iter().filter(|declared| declared.kind == Kind::Type && declared.is_public) {
            if !segments(declared.name).iter().any(known) {
                findings.push(format!("{}:{}: `{}` has no word of {PAGE}", source.path, declared.line, declared.name));
            }
        }
    }
    none(&findings);
}

#[test]
fn no_name_uses_a_refused_word() {
    let refused = refused(&page());
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| !source.is_under(&["examples/"])) {
        for declared in declared(source) {
            let parts = segments(declared.name);
            for Refused { word, wheres, instead } in &refused {
                if wheres.iter().any(|at| is_refused(word, *at, &declared, &parts)) {
                    let (path, line, kind, name) = (&source.path, declared.line, declared.kind, declared.name);
                    findings.push(format!("{path}:{line}: {kind:?} `{name}`: not `{word}` but {instead}"));
                }
            }
        }
    }
    none(&findings);
}

/// Returns the lines of a page with their line numbers, without fenced blocks and code spans.
fn sentences(page: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.push((index + 1, line.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase()));
        }
    }
    found
}

#[test]
fn no_page_uses_a_refused_word() {
    let refused = refused(&page());
    let mut findings = Vec::new();
    for path in files("md") {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let text = if path == PAGE { text.split("\n| not |").next().unwrap().to_owned() } else { text };
        for (line, sentence) in sentences(&text) {
            let words: Vec<&str> = sentence.split(|character: char| !character.is_alphabetic()).collect();
            for Refused { word, instead, .. } in refused.iter().filter(|refused| refused.wheres.contains(&Where::Pages))
            {
                if words.contains(&word.as_str()) {
                    findings.push(format!("{path}:{line}: not `{word}` but {instead}"));
                }
            }
        }
    }
    none(&findings);
}

#[test]
fn names_are_taken_apart() {
    let check = |name: &str, parts: &[&str]| assert_eq!(segments(name), parts, "{name}");
    check("ReadOnlyView", &["read", "only", "view"]);
    check("read_only-view", &["read", "only", "view"]);
    check("READ_ONLY", &["read", "only"]);
    check("NotADigest", &["not", "a", "digest"]);
    check("DOTFile", &["dot", "file"]);
}
