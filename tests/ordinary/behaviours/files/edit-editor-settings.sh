# why: `prettier --write .` and other formatters rewrite the settings of editors too
# source: https://prettier.io/docs/cli#--write
sed -i 's/4/2/' .vscode/settings.json
grep -q 2 .vscode/settings.json
echo formatted >> notes.md
