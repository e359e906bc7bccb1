# why: people and stacked-diff tools rebase a branch
# source: https://git-scm.com/docs/git-rebase
# needs: git
# setting: workspace.git = "history"
git stash push -q -u
git switch -q -c feature topic
echo new > based.txt
git add based.txt
git commit -q -m feature
git rebase -q work
test "$(git rev-list --count HEAD)" = 3
