# why: builds begin with a clean tree
# source: https://git-scm.com/docs/git-clean
# needs: git
git clean -fdq
test ! -e draft.txt
test -f README.md
