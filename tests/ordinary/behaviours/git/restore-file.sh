# why: agents and people take an edit back
# source: https://git-scm.com/docs/git-checkout
# needs: git
git checkout -q -- notes.md
test "$(wc -l < notes.md)" -eq 3
