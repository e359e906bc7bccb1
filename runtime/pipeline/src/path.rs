//! Which workspace paths an attribute may name: relative, inside the workspace, in the path grammar of scopes.

/// The whole workspace, as an entry of a path list.
pub(crate) const WHOLE: &str = "./";

/// The fault of an entry; `./` for the whole workspace is valid.
pub(crate) fn scope_fault(path: &str) -> Option<&'static str> {
    if path == WHOLE { None } else { path_fault(path) }
}

/// The fault of an entry of a path list, in the wording of seed 2 and the path grammar of scopes.
pub(crate) fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("empty entry");
    }
    if path.starts_with('/') {
        return Some("absolute path");
    }
    let segments = || path.strip_suffix('/').unwrap_or(path).split('/');
    if segments().any(|segment| segment == "..") {
        return Some("parent segment");
    }
    if segments().any(|segment| segment == ".") {
        return Some("`.` segment");
    }
    if segments().any(str::is_empty) {
        return Some("empty segment");
    }
    path.contains('\0').then_some("NUL character")
}
