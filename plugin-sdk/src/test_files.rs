//! Recognizes test files by the names that test runners for Node and Python use.

/// Words in the names of test files and of their folders.
const TESTS: [&str; 4] = ["test", "tests", "spec", "specs"];
/// Extensions of files in which test runners look for tests.
const CODE: [&str; 9] = ["cjs", "cts", "js", "jsx", "mjs", "mts", "py", "ts", "tsx"];

/// Returns true if a file has the name of a test or is in a folder with such a name: `src/test_a.py`, `a.spec.ts`, `__tests__/a.js`.
/// Returns false for hidden files and for files in `node_modules`.
pub fn is_test_file(path: &str) -> bool {
    let is_code = path.rsplit('/').next().is_some_and(|name| CODE.iter().any(|end| name.ends_with(&format!(".{end}"))));
    is_code && path.split('/').all(is_searched) && path.split('/').any(is_of_tests)
}

/// Returns true for the name of a file or folder in which test runners look for tests.
pub fn is_searched(name: &str) -> bool {
    !name.starts_with('.') && name != "node_modules"
}

/// Returns true for names such as `test_a.py`, `a.spec.ts` and `__tests__`.
fn is_of_tests(name: &str) -> bool {
    name.split(|character: char| !character.is_alphanumeric()).any(|part| TESTS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_files_of_tests() {
        for path in ["test_a.py", "src/a_test.py", "a.spec.ts", "__tests__/a.js", "tests/deep/a.py"] {
            assert!(is_test_file(path), "{path}");
        }
        for path in
            ["contest.py", "latest.js", "testing/a.js", "a.py", "tests/a.md", ".tests/a.py", "node_modules/a/test.js"]
        {
            assert!(!is_test_file(path), "{path}");
        }
    }
}
