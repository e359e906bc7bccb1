# why: linters of changed files only (lint-staged, pre-commit) ask what was edited
# source: https://pre-commit.com/#usage
# needs: git
test "$(git diff --name-only)" = notes.md
git diff | grep -qx '+four'
