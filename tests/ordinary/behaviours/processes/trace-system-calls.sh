# why: people and agents find out what a program does with strace
# source: https://github.com/openai/codex/issues/16011
# needs: strace
strace -o "$TMPDIR/trace" true
grep -q execve "$TMPDIR/trace"
