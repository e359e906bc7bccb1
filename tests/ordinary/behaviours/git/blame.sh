# why: agents ask who wrote a line, and why
# source: https://git-scm.com/docs/git-blame
# needs: git
git blame --porcelain README.md | grep -q '^summary first: the project'
git blame --porcelain README.md | grep -q '^author Ada Lovelace'
