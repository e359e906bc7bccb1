//! Import circles. Files that import each other can only be understood together, so at most four files may form a
//! circle, and the top-level modules of a crate may form none. This is checked for the crates in [`HELD`].
//!
//! An import is a path in a `use` declaration, or a path that begins with `crate`, `self` or `super`. It leads to the
//! file that defines the name, through re-exports. A module and its submodules are treated as one module: imports
//! between them are ignored.

use crate::{Source, none, sources};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Path, UseTree};

const FILES_MAX: usize = 4;
/// The checked crates. The other crates still have circles.
const HELD: &[&str] = &[
    "plugin-sdk/src/",
    "plugins/codergen/src/",
    "plugins/diff-limits/src/",
    "plugins/intruder/src/",
    "plugins/json-schema/src/",
    "plugins/junit/src/",
    "plugins/tool/src/",
    "plugins/tree-assert/src/",
    "plugins/verification/src/",
    "plugins/verify/src/",
    "runtime/cli/src/",
    "runtime/drawing/src/",
    "runtime/engine/src/",
    "runtime/host/src/",
    "runtime/jail/helper/src/",
    "runtime/jail/src/",
    "runtime/journal/src/",
    "runtime/mcp/src/",
    "runtime/models/src/",
    "runtime/names/src/",
    "runtime/pipeline/src/",
    "runtime/plan/src/",
    "runtime/record/src/",
    "runtime/registry/src/",
    "runtime/schema/src/",
    "runtime/serve/src/",
    "runtime/signing/src/",
    "runtime/state/src/",
    "runtime/workspace/src/",
    "tests/attack/src/",
    "tests/contract/src/",
    "tests/fake-llm/src/",
    "xtask/src/",
];
/// Maximum number of re-exports that are followed.
const HOPS_MAX: usize = 8;

/// The names from the root of the crate to a module.
type Module = Vec<String>;

/// The import paths of one file.
struct Paths {
    here: Module,
    /// All paths, absolute in the crate.
    found: BTreeSet<Module>,
    /// Names that `use` declarations import, with their paths.
    brought: BTreeMap<String, Module>,
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_cfg_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_cfg_test)
}

impl Paths {
    /// Returns the path from the root of the crate, or `None` if it does not begin with `crate`, `self` or `super`.
    fn absolute(&self, names: &[String]) -> Option<Module> {
        let (first, rest) = names.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.here.clone(),
            _ => return None,
        };
        let mut rest = rest;
        if first == "super" {
            path.pop()?;
            while let Some(("super", after)) = rest.split_first().map(|(name, after)| (name.as_str(), after)) {
                path.pop()?;
                rest = after;
            }
        }
        path.extend(rest.iter().cloned());
        Some(path)
    }

    fn take(&mut self, names: &[String], alias: Option<&str>) {
        // A `use` of a submodule may omit `self`.
        let inside = || Some([&self.here[..], names].concat());
        let Some(path) = self.absolute(names).or_else(inside) else { return };
        if let Some(name) = alias {
            self.brought.insert(name.to_owned(), path.clone());
        }
        self.found.insert(path);
    }

    fn tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
            UseTree::Name(name) if name.ident == "self" => self.take(before, before.last().map(String::as_str)),
            UseTree::Name(name) => self.take(&with(&name.ident), Some(&name.ident.to_string())),
            UseTree::Rename(name) => self.take(&with(&name.ident), Some(&name.rename.to_string())),
            UseTree::Glob(_) => self.take(before, None),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() && !is_test(&item.attrs) {
            self.here.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1
            && let Some(path) = self.absolute(&names)
        {
            self.found.insert(path);
        }
        visit::visit_path(self, path);
    }
}

/// The modules of a crate, each with its import paths.
struct Crate(BTreeMap<Module, Paths>);

impl Crate {
    fn of(folder: &str, sources: &[Source]) -> Self {
        let mut modules = BTreeMap::new();
        for source in sources.iter().filter(|source| !source.is_test()) {
            let Some(inside) = source.path.strip_prefix(folder) else { continue };
            let mut here: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            here.pop_if(|name| matches!(name.as_str(), "lib" | "main" | "mod"));
            let mut paths = Paths { here: here.clone(), found: BTreeSet::new(), brought: BTreeMap::new() };
            paths.visit_file(&syn::parse_file(&source.text).unwrap());
            modules.insert(here, paths);
        }
        Self(modules)
    }

    /// Returns the module that defines the name at the end of a path.
    fn home(&self, path: &Module) -> Module {
        let mut path = path.clone();
        for _ in 0..HOPS_MAX {
            let depth = (0..=path.len()).rev().find(|depth| self.0.contains_key(&path[..*depth])).unwrap_or(0);
            let module = path[..depth].to_vec();
            let brought = path.get(depth).and_then(|name| self.0.get(&module)?.brought.get(name));
            match brought.filter(|brought| **brought != path) {
                Some(brought) => path = [&brought[..], &path[depth + 1..]].concat(),
                None => return module,
            }
        }
        path
    }

    /// Returns the modules that each module imports.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let is_one = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
        let of = |(here, paths): (&Module, &Paths)| {
            let homes = paths.found.iter().map(|path| self.home(path));
            (here.clone(), homes.filter(|home| self.0.contains_key(home) && !is_one(here, home)).collect())
        };
        self.0.iter().map(of).collect()
    }
}

/// Returns the groups of two or more nodes that can reach each other.
fn circles<N: Ord + Clone>(arrows: &BTreeMap<N, BTreeSet<N>>) -> BTreeSet<BTreeSet<N>> {
    let reached = |from: &N| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for to in arrows.get(&next).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&N, BTreeSet<N>> = arrows.keys().map(|node| (node, reached(node))).collect();
    let circle = |(node, reaches): (&&N, &BTreeSet<N>)| {
        let back = |other: &&N| reach.get(*other).is_some_and(|reaches| reaches.contains(*node));
        reaches.iter().filter(back).cloned().collect::<BTreeSet<N>>()
    };
    reach.iter().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn imports_form_no_large_circle() {
    let sources = sources();
    let (mut findings, mut arrows) = (Vec::new(), 0);
    for folder in HELD {
        let imports = Crate::of(folder, &sources).imports();
        arrows += imports.values().map(BTreeSet::len).sum::<usize>();
        for circle in circles(&imports).into_iter().filter(|circle| circle.len() > FILES_MAX) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            findings.push(format!("{folder}: a circle of {} files: {}", names.len(), names.join(", ")));
        }
        let mut tops: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in &imports {
            let names = to.iter().filter_map(|to| to.first().cloned());
            let Some(from) = from.first() else { continue };
            tops.entry(from.clone()).or_default().extend(names.filter(|name| name != from));
        }
        for circle in circles(&tops) {
            findings.push(format!("{folder}: top-level modules in a circle: {circle:?}"));
        }
    }
    assert!(arrows > 300, "only {arrows} imports were seen");
    none(&findings);
}

#[test]
fn a_circle_is_found_through_a_re_export_and_not_between_a_module_and_its_own() {
    let source = |path: &str, text: &str| Source { path: path.into(), text: text.into(), code: text.into() };
    let sources = [
        source("x/src/lib.rs", "pub mod a; pub mod b; pub mod c;"),
        source("x/src/a.rs", "mod inner; pub use inner::Name; use crate::b;"),
        source("x/src/a/inner.rs", "use super::Other; pub struct Name;"),
        source("x/src/b.rs", "fn f() { super::c::g() }"),
        source("x/src/c.rs", "use crate::a::Name; #[cfg(test)] mod tests { use crate::b; }"),
    ];
    let imports = Crate::of("x/src/", &sources).imports();
    let names = |module: &[&str]| module.iter().map(|name| (*name).to_owned()).collect::<Module>();
    assert_eq!(imports[&names(&["c"])], BTreeSet::from([names(&["a", "inner"])]), "where it is defined");
    assert!(imports[&names(&["a", "inner"])].is_empty());
    assert!(circles(&imports).is_empty(), "the inner module needs nobody");
    let mut tops = BTreeMap::from([("a", BTreeSet::from(["b"])), ("b", BTreeSet::from(["c"]))]);
    assert!(circles(&tops).is_empty());
    tops.insert("c", BTreeSet::from(["a"]));
    assert_eq!(circles(&tops), BTreeSet::from([BTreeSet::from(["a", "b", "c"])]));
}
