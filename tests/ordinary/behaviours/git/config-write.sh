# why: set-up scripts write settings of the repository
# source: https://git-scm.com/docs/git-config
# needs: git
git config merge.renames true
test "$(git config merge.renames)" = true
