# A project as most are: two commits, a tag, a branch, a remote, an edited file, a new file and ignored ones.
git init -q -b work project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
git remote add origin https://example.org/team/project.git
cp -r "$PROGRAMS" .ordinary
mkdir -p src/lib data bin .vscode
printf '# Project\n\nFirst line.\n' > README.md
printf 'one\ntwo\nthree\n' > notes.md
printf 'def twice(x):\n    return 2 * x\n' > src/app.py
printf 'int twice(int x) { return 2 * x; }\n' > src/lib/twice.c
printf 'all:\n\t@echo built\n' > Makefile
printf 'build/\nout/\n*.log\n.env\nnode_modules/\n.venv/\ntarget/\n' > .gitignore
printf '*.bat text eol=crlf\n' > .gitattributes
printf '{ "editor.tabSize": 4 }\n' > .vscode/settings.json
printf 'echo off\r\necho done\r\n' > run.bat
printf 'one\r\ntwo\r\n' > data/crlf.txt
printf 'caf\351\n' > data/latin1.txt
printf '#!/bin/sh\necho tool\n' > bin/tool.sh
printf 'secret\n' > data/key.pem
printf 'fixed\n' > data/fixed.txt
ln -s ../src/app.py bin/app
chmod 755 bin/tool.sh
git add -A
git commit -q -m 'first: the project'
printf 'Second line.\n' >> README.md
git commit -q -a -m 'second: a line for the README'
git tag -a v1.0 -m 'version 1.0'
git branch topic HEAD~1
chmod 600 data/key.pem
chmod 444 data/fixed.txt
printf 'four\n' >> notes.md
printf 'draft\n' > draft.txt
printf 'TOKEN=for-tests\n' > .env
mkdir build
printf 'old\n' > build/result.txt
