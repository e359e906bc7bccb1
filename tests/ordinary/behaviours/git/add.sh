# why: agents and formatters stage what they changed
# source: https://github.com/openai/codex/issues/7071
# needs: git
git add notes.md draft.txt
git diff --cached --name-only | grep -qx draft.txt
