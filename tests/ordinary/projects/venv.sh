# A project in Python with an installed environment.
git init -q -b main project
cd project
git config user.name 'Ada Lovelace'
git config user.email ada@example.org
cp -r "$PROGRAMS" .ordinary
printf '[project]\nname = "own"\nversion = "1.0"\n' > pyproject.toml
printf '.venv/\n__pycache__/\n' > .gitignore
git add -A
git commit -q -m first
python3 -m venv .venv
