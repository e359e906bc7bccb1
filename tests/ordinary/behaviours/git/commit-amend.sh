# why: commit tools and hook managers change the last commit
# source: https://git-scm.com/docs/git-commit
# needs: git
git commit -q -a --amend -m 'second, better'
test "$(git log -1 --format=%s)" = 'second, better'
test "$(git show HEAD:notes.md | wc -l)" -eq 4
