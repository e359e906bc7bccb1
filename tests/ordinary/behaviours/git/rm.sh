# why: refactorings remove tracked files
# source: https://git-scm.com/docs/git-rm
# needs: git
git rm -q src/app.py
test ! -e src/app.py
