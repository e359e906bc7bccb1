# why: agents ask who wrote a line, and why
# source: https://git-scm.com/docs/git-blame
# needs: git
# setting: workspace.git = "history"
git blame --porcelain README.md | grep -q '^summary first: the project'
git blame --porcelain README.md | grep -q '^author Ada Lovelace'
