# A sparse checkout, as large repositories are used.
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
mkdir -p app docs
printf 'app\n' > app/a.txt
printf 'docs\n' > docs/d.txt
git add -A
git commit -q -m first
git sparse-checkout set app .ordinary
