# why: packagers make a source archive of HEAD
# source: https://git-scm.com/docs/git-archive
# needs: git tar
git archive --prefix=p/ HEAD | tar -t | grep -qx p/src/app.py
