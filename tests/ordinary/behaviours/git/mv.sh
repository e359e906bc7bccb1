# why: refactorings rename tracked files
# source: https://git-scm.com/docs/git-mv
# needs: git
git mv src/app.py src/main.py
test -f src/main.py
git ls-files src | grep -qx src/main.py
