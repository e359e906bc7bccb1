# why: prompts, skills and release tools order a commit
# source: https://github.com/openai/codex/issues/7071
# needs: git
git add -A
git commit -q -m 'third'
test "$(git log -1 --format=%s)" = third
test -z "$(git status --porcelain)"
