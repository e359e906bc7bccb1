# why: agents make a branch for their work
# source: https://git-scm.com/docs/git-switch
# needs: git
git switch -q -c feature
test "$(git branch --show-current)" = feature
