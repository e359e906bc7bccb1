# Names, links and modes that are rare but legal.
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
mkdir -p dir/sub 'with space' locked
printf 'x\n' > "$(printf 'bad\377name')"
printf 'x\n' > "$(printf 'two\nlines')"
printf 'x\n' > 'with space/a file'
printf 'x\n' > 'quote"and\backslash'
printf 'x\n' > '-dash'
printf 'x\n' > "$(printf 'd\303\251j\303\240')"
printf 'x\n' > "$(printf 'de\314\201ja')"
printf 'lower\n' > case.txt
printf 'upper\n' > Case.txt
printf 'x\n' > "$(printf '%0200d' 7)"
printf 'file\n' > dir/sub/file
printf 'locked\n' > locked/file
ln -s /usr/bin/env tool
ln -s ../shared shared
ln -s absent dangling
ln -s dir link-to-dir
ln -s loop loop
git add -A
git commit -q -m first
mkdir empty
chmod 555 locked
