# why: builds read the files of a submodule, and ask for its state
# source: https://git-scm.com/docs/git-submodule
# needs: git
# setting: workspace.git = "history"
# project: submodule
grep -qx library vendor/library/lib.txt
git submodule status | grep -q '^ [0-9a-f]* vendor/library'
