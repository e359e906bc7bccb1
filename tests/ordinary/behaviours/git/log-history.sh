# why: change logs, blame views and version counters read more than one commit
# source: https://git-scm.com/docs/git-log
# needs: git
# setting: workspace.git = "history"
test "$(git rev-list --count HEAD)" = 2
git log --oneline | grep -q 'first: the project'
