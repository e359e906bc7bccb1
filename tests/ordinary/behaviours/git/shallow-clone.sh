# why: tools look whether the history is complete before they count commits
# source: https://git-scm.com/docs/git-rev-parse
# needs: git
# setting: workspace.git = "history"
# project: shallow
test "$(git rev-parse --is-shallow-repository)" = true
test "$(git log -1 --format=%s)" = second
