//! Prints figures about the code of each crate: public items, parameters and how many of them are bare strings or
//! tuples, clones, the longest function, and the share of async functions.
//!
//! Every Rust file is parsed. Production code is everything except `#[cfg(test)]` items, `#[test]` functions, and files
//! in folders for tests, benches, examples, fixtures or fuzzing. The figures are for orientation, and no check depends
//! on them. The code bases that serve as models have at most 7 % bare-string parameters, 8 clones in a thousand lines,
//! and few functions over 70 lines. The parts of a tuple parameter count as parameters.

use crate::{Step, repository};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const CRATES: [&str; 4] = ["runtime", "plugins", "plugin-sdk", "xtask"];

/// Figures of a piece of code.
#[derive(Debug, Default, Clone)]
struct Count {
    code_lines: usize,
    /// Number of items that other crates can name.
    public: usize,
    parameters: usize,
    /// Number of parameters that are tuples.
    tuples: usize,
    strings: usize,
    clones: usize,
    functions: usize,
    asyncs: usize,
    longest: usize,
    test_lines: Vec<(usize, usize)>,
    /// Line and kind of every string parameter, tuple parameter and clone.
    places: Vec<(usize, String)>,
}

impl Count {
    fn add(&mut self, other: &Count) {
        self.code_lines += other.code_lines;
        self.public += other.public;
        self.parameters += other.parameters;
        self.tuples += other.tuples;
        self.strings += other.strings;
        self.clones += other.clones;
        self.functions += other.functions;
        self.asyncs += other.asyncs;
        self.longest = self.longest.max(other.longest);
    }

    fn string_percent(&self) -> f64 {
        100.0 * self.strings as f64 / self.parameters.max(1) as f64
    }

    fn clones_per_kloc(&self) -> f64 {
        1000.0 * self.clones as f64 / self.code_lines.max(1) as f64
    }

    fn signature(&mut self, signature: &syn::Signature, lines: usize) {
        self.functions += 1;
        self.asyncs += usize::from(signature.asyncness.is_some());
        self.longest = self.longest.max(lines);
        for input in &signature.inputs {
            if let syn::FnArg::Typed(parameter) = input {
                self.parameter(&parameter.ty, &signature.ident);
            }
        }
    }

    fn parameter(&mut self, kind: &syn::Type, function: &syn::Ident) {
        let mut note = |what: &str| self.places.push((kind.span().start().line, format!("{what} of `{function}`")));
        match kind {
            syn::Type::Tuple(tuple) => {
                self.tuples += 1;
                note("tuple parameter");
                tuple.elems.iter().for_each(|part| self.parameter(part, function));
            }
            other => {
                self.parameters += 1;
                if is_string(other) {
                    self.strings += 1;
                    note("string parameter");
                }
            }
        }
    }
}

/// Returns true for `&str`, `String`, a reference to one of them, and an `Option` of one of them.
fn is_string(kind: &syn::Type) -> bool {
    match kind {
        syn::Type::Reference(reference) => is_string(&reference.elem),
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|segment| match &segment.arguments {
            syn::PathArguments::None => segment.ident == "str" || segment.ident == "String",
            syn::PathArguments::AngleBracketed(arguments) if segment.ident == "Option" => arguments
                .args
                .iter()
                .any(|argument| matches!(argument, syn::GenericArgument::Type(inner) if is_string(inner))),
            _ => false,
        }),
        _ => false,
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = || {
            attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
        };
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "test") || is_cfg_test()
    })
}

fn lines_of(node: &impl Spanned) -> (usize, usize) {
    (node.span().start().line, node.span().end().line)
}

impl<'ast> Visit<'ast> for Count {
    fn visit_visibility(&mut self, visibility: &'ast syn::Visibility) {
        self.public += usize::from(matches!(visibility, syn::Visibility::Public(_)));
    }

    fn visit_field(&mut self, _: &'ast syn::Field) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test(&item.attrs) {
            self.test_lines.push(lines_of(item));
        } else {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            self.test_lines.push(lines_of(item));
        } else {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) {
            self.test_lines.push(lines_of(item));
            return;
        }
        let (first, last) = (item.sig.span().start().line, item.span().end().line);
        self.signature(&item.sig, last - first + 1);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) {
            self.test_lines.push(lines_of(item));
            return;
        }
        let (first, last) = (item.sig.span().start().line, item.span().end().line);
        self.signature(&item.sig, last - first + 1);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.signature(
            &item.sig,
            item.default.as_ref().map_or(1, |body| {
                let (first, last) = lines_of(body);
                last - first + 1
            }),
        );
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "clone" && call.args.is_empty() {
            self.clones += 1;
            self.places.push((call.method.span().start().line, "clone".to_owned()));
        }
        visit::visit_expr_method_call(self, call);
    }
}

fn count(text: &str) -> Result<Count, syn::Error> {
    let mut found = Count::default();
    let file = syn::parse_file(text)?;
    if is_test(&file.attrs) {
        return Ok(found);
    }
    found.visit_file(&file);
    let in_test = |line: usize| found.test_lines.iter().any(|(first, last)| (*first..=*last).contains(&line));
    found.code_lines = text
        .lines()
        .enumerate()
        .filter(|(index, line)| !line.trim().is_empty() && !line.trim().starts_with("//") && !in_test(index + 1))
        .count();
    Ok(found)
}

/// Returns true for files without production code.
fn is_test_file(path: &Path) -> bool {
    path.iter().any(|part| {
        let part = part.to_string_lossy();
        ["tests", "tests.rs", "benches", "examples", "fixtures", "fuzz"].contains(&part.as_ref())
    })
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Step<()> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the crate of a file: the folder above its last `src`.
fn crate_of(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.rsplit_once("/src/").map_or(text.as_ref(), |(folder, _)| folder).to_owned()
}

/// Prints the table, and all places below the named folder.
pub(crate) fn run(below: Option<&String>) -> Step {
    let root = repository();
    let mut files = Vec::new();
    for folder in CRATES {
        rust_files(&root.join(folder), &mut files)?;
    }
    let mut crates: BTreeMap<String, Count> = BTreeMap::new();
    let mut all = Count::default();
    for file in files {
        let path = file.strip_prefix(&root).unwrap_or(&file);
        if is_test_file(path) {
            continue;
        }
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let found = count(&text).map_err(|error| format!("cannot parse {}: {error}", path.display()))?;
        if below.is_some_and(|below| path.starts_with(below)) {
            found.places.iter().for_each(|(line, what)| println!("{}:{line}: {what}", path.display()));
        }
        crates.entry(crate_of(path)).or_default().add(&found);
        all.add(&found);
    }
    println!(
        "{:28} {:>7} {:>7} {:>10} {:>7} {:>8} {:>9} {:>8} {:>10} {:>10} {:>8}",
        "crate",
        "lines",
        "public",
        "parameters",
        "tuples",
        "strings",
        "strings %",
        "clones",
        "clones/k",
        "longest fn",
        "async %"
    );
    for (name, found) in crates.iter().map(|(name, found)| (name.as_str(), found)).chain([("all", &all)]) {
        let async_percent = 100.0 * found.asyncs as f64 / found.functions.max(1) as f64;
        println!(
            "{name:28} {:>7} {:>7} {:>10} {:>7} {:>8} {:>9.1} {:>8} {:>10.1} {:>10} {:>8.1}",
            found.code_lines,
            found.public,
            found.parameters,
            found.tuples,
            found.strings,
            found.string_percent(),
            found.clones,
            found.clones_per_kloc(),
            found.longest,
            async_percent
        );
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_code_is_counted_and_tests_are_not() {
        let text = "pub fn a(x: &str, (y, z): (Option<String>, u8)) { z.clone(); }\n\n// no code\n\
                    #[cfg(test)]\nmod tests { fn b(x: &str) { x.clone(); } }\n#[test]\nfn c(x: String) {}\n";
        let found = count(text).expect("the text parses");
        assert_eq!((found.parameters, found.strings, found.clones, found.functions), (3, 2, 1, 1));
        assert_eq!((found.tuples, found.public), (1, 1));
        assert_eq!(count(&format!("#![cfg(test)]\n{text}")).unwrap().clones, 0, "a file of tests");
        assert_eq!(found.code_lines, 1);
    }
}
