# why: tests of git tools make repositories in a folder for temporary files
# source: https://git-scm.com/docs/git-init
# needs: git
git init -q -b main "$TMPDIR/repo"
cd "$TMPDIR/repo"
git config user.name A
git config user.email a@example.org
echo 1 > a
git add a
git commit -q -m first
git clone -q --bare . ../bare.git
git push -q ../bare.git HEAD:pushed
git -C ../bare.git rev-parse -q --verify pushed
