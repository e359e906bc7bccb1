# A clone of depth 1, as `actions/checkout` makes it.
git init -q -b main origin
cd origin
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
printf 'one\n' > a.txt
git add -A
git commit -q -m first
printf 'two\n' >> a.txt
git commit -q -a -m second
cd ..
git clone -q --depth 1 "file://$PWD/origin" project
