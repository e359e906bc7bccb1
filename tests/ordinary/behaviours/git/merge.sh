# why: release scripts and tests of git tools merge branches
# source: https://git-scm.com/docs/git-merge
# needs: git
# setting: workspace.git = "history"
git stash push -q -u
git switch -q topic
echo new > merged.txt
git add merged.txt
git commit -q -m topic
git switch -q work
git merge -q -m merged topic
test -f merged.txt
test "$(git rev-list --count HEAD)" = 4
