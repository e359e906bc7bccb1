# why: large repositories are checked out in part, and tools must not see the rest as deleted
# source: https://git-scm.com/docs/git-sparse-checkout
# needs: git
# setting: workspace.git = "history"
# project: sparse
test -f app/a.txt
test ! -e docs
test -z "$(git status --porcelain)"
git cat-file -e HEAD:docs/d.txt
