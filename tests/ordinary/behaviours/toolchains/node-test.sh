# why: projects in node run the built-in test runner, which starts a process for each file
# source: https://nodejs.org/api/test.html
# needs: node
printf 'import test from "node:test"; import assert from "node:assert";\ntest("adds", () => assert.equal(1 + 1, 2));\n' > own.test.mjs
node --test own.test.mjs > "$TMPDIR/log"
grep -q '^# pass 1' "$TMPDIR/log" || grep -q 'pass 1' "$TMPDIR/log"
