# why: people and agents look for the commit that broke a test
# source: https://git-scm.com/docs/git-bisect
# needs: git
# setting: workspace.git = "history"
git stash push -q -u
git bisect start HEAD HEAD~1
git bisect run sh -c '! grep -q "Second line" README.md' > "$TMPDIR/out"
grep -q 'is the first bad commit' "$TMPDIR/out"
git bisect reset > "$TMPDIR/out" 2>&1
