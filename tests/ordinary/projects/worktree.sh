# A linked worktree of a repository beside it, as agents and people use for a second branch.
git init -q -b main origin
cd origin
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
printf 'one\n' > a.txt
git add -A
git commit -q -m first
git tag v1.0
printf 'two\n' >> a.txt
git commit -q -a -m second
git worktree add -q ../project -b feature
