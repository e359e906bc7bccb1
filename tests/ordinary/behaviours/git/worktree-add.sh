# why: agents work on several branches at a time
# source: https://git-scm.com/docs/git-worktree
# needs: git
# setting: workspace.git = "history"
git worktree add -q "$TMPDIR/second" topic
test "$(git -C "$TMPDIR/second" branch --show-current)" = topic
git worktree remove "$TMPDIR/second"
