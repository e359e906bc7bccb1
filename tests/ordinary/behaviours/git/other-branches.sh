# why: scripts compare the work with another branch
# source: https://git-scm.com/docs/git-merge-base
# needs: git
# setting: workspace.git = "history"
git rev-parse --verify -q topic
test "$(git merge-base HEAD topic)" = "$(git rev-parse topic)"
