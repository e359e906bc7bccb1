# why: agents and code generators apply patches
# source: https://git-scm.com/docs/git-apply
# needs: git
git diff > "$TMPDIR/p"
git apply -R "$TMPDIR/p"
test "$(wc -l < notes.md)" -eq 3
git apply "$TMPDIR/p"
test "$(wc -l < notes.md)" -eq 4
