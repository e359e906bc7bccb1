# why: people and agents work in linked worktrees, where `.git` is a file
# source: https://github.com/openai/codex/issues/23661
# needs: git
# setting: workspace.git = "history"
# project: worktree
test "$(git branch --show-current)" = feature
test "$(git rev-list --count HEAD)" = 2
echo three >> a.txt
git commit -q -a -m third
