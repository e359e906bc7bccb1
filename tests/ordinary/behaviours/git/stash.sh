# why: hook managers (lint-staged) stash what is not staged, and take it back
# source: https://git-scm.com/docs/git-stash
# needs: git
git stash push -q
test "$(wc -l < notes.md)" -eq 3
git stash pop -q
test "$(wc -l < notes.md)" -eq 4
