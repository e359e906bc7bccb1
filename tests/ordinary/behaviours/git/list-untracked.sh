# why: formatters and linters list new files with `git ls-files -o`
# source: https://git-scm.com/docs/git-ls-files
# needs: git
test "$(git ls-files -o --exclude-standard)" = draft.txt
