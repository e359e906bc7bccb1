# why: tests of release tools clone the project to another folder
# source: https://git-scm.com/docs/git-clone
# needs: git
git clone -q . "$TMPDIR/copy"
test -f "$TMPDIR/copy/README.md"
