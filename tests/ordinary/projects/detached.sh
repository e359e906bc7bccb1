# A checkout of a tag, as continuous integration makes it.
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
printf 'one\n' > a.txt
git add -A
git commit -q -m first
git tag -a v2.1 -m 'version 2.1'
printf 'two\n' >> a.txt
git commit -q -a -m second
git checkout -q --detach v2.1
