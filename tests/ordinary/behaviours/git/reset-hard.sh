# why: scripts and agents go back to a known state
# source: https://git-scm.com/docs/git-reset
# needs: git
# setting: workspace.git = "history"
git reset -q --hard HEAD~1
test "$(git rev-list --count HEAD)" = 1
! grep -q 'Second line' README.md
