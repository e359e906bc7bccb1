# why: builds begin with a clean tree
# source: https://git-scm.com/docs/git-clean
# needs: git
# setting: workspace.git = "history"
git clean -fdq
test ! -e draft.txt
test -f README.md
