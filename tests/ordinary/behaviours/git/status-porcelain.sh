# why: release scripts refuse to work in a changed tree, agents look at what they changed
# source: https://git-scm.com/docs/git-status
# needs: git
test "$(git status --porcelain)" = " M notes.md
?? draft.txt"
