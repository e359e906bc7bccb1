# why: commits and change logs take the author from the settings of the repository
# source: https://git-scm.com/docs/git-config
# needs: git
test "$(git config user.email)" = ada@example.org
git var GIT_AUTHOR_IDENT | grep -q '^Ada Lovelace <ada@example.org>'
