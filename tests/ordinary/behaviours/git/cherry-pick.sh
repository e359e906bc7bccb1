# why: release tools bring single commits to a branch
# source: https://git-scm.com/docs/git-cherry-pick
# needs: git
# setting: workspace.git = "history"
git stash push -q -u
git switch -q -c release topic
git cherry-pick work > /dev/null
grep -q 'Second line' README.md
