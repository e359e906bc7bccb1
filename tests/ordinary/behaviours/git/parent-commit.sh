# why: test selection and linters compare with HEAD~1
# source: https://git-scm.com/docs/gitrevisions
# needs: git
# setting: workspace.git = "history"
git show HEAD~1:README.md | grep -q 'First line'
git diff --name-only HEAD~1 HEAD | grep -qx README.md
