# why: builds read the files of a submodule, and ask for its state
# source: https://git-scm.com/docs/git-submodule
# needs: git
# project: submodule
grep -qx library vendor/library/lib.txt
git submodule status | grep -q '^ [0-9a-f]* vendor/library'
