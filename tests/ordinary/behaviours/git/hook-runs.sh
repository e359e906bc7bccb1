# why: husky, lefthook and pre-commit install hooks and test them with a commit
# source: https://typicode.github.io/husky/
# needs: git
mkdir -p .hooks
printf '#!/bin/sh\ntouch "$TMPDIR/hooked"\n' > .hooks/pre-commit
chmod +x .hooks/pre-commit
git -c core.hooksPath=.hooks commit -q --allow-empty -m hooked
test -f "$TMPDIR/hooked"
rm -r .hooks
