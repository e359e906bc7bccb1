# A project with a submodule that is checked out.
git init -q -b main library
cd library
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
printf 'library\n' > lib.txt
git add -A
git commit -q -m library
cd ..
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
git -c protocol.file.allow=always submodule --quiet add "file://$PWD/../library" vendor/library
git add -A
git commit -q -m 'with a submodule'
